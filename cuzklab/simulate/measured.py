"""A profile's constants as live runs tell them: rates of stages, launches, copies, page-locking, spreads.

CPU stages and whatever else the host does come from `cuzklab.simulate.alone`, stages on a device from
`cuzklab.simulate.launching`. An emulated device's kernels are computed by threads of the host, so they are among what
competes for it.

A stage's rate at the circuit that the profile's rates are of, and how it grows with the circuit, are the line through
log(rate) over log(domain), where the runs are of several sizes; where they are of one, the profile's exponent stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cuzklab.profiles import LOG2_DOMAIN, Hardware
from cuzklab.simulate.alone import Alone, Observed, measure_alone, observe
from cuzklab.simulate.demands import pool_seconds, shared_seconds
from cuzklab.simulate.host import throughput
from cuzklab.simulate.launching import device_constants, stages_on_device, undisturbed, waking
from cuzklab.stages import STAGES, CircuitShape
from cuzklab.trace import Run

_LEAST_SPREAD = 0.005
_WORST_CONDITION = 100.0  # an error of a hundredth would then be as large as what is to be told
_DRIVER_CALLS = {
    "alloc": "device.alloc_s",
    "free": "device.free_s",
    "trim_pool": "device.trim_s",
    "device_sync": "device.sync_s",
}
_POOLED_CALLS = {"alloc": "device.pooled_s", "free": "device.pooled_free_s"}


@dataclass(frozen=True)
class Measured:
    """Constants by their dotted names, and of those that are inferred what of the uncertainty before is left."""

    constants: Mapping[str, float]
    prior_left: Mapping[str, float]


def measure(runs: Sequence[Run], shapes: Sequence[CircuitShape], base: Hardware) -> Measured:
    """What the runs tell of the constants that the profile has, and of those of [host] and [device] that it may have.

    Parameters
    ----------
    runs : sequence of Run
    shapes : sequence of CircuitShape
        Of the runs.
    base : Hardware
        What is not in the runs stays as it is there.
    """
    by_domain = {shape.domain: shape for shape in shapes}
    constants = _copies(runs, shapes)
    machine = base.with_constants(constants)
    observed = observe(runs, [shape.domain for shape in shapes], kernels=base.device.kernels_on_host)
    alone = measure_alone(observed, by_domain, machine)
    constants |= {
        **alone.shares,
        **_host_work(alone, by_domain),
        **_spreads(alone, base),
        **_pools(alone, by_domain, base),
    }
    seconds = _cpu_seconds(alone, observed, by_domain, base.with_constants(constants))
    stages = stages_on_device(runs, shapes, observed, machine)
    if base.device.kernels_on_host:
        seconds |= _emulated_seconds(alone, by_domain, machine)
        constants["device.launch_s"] = max(1e-6, float((stages["lasted_s"] - stages["extent_s"]).mean()))
        gaps = stages["gap_s"].dropna()
        constants["device.between_s"] = float(gaps.mean()) if len(gaps) else 0.0
        constants |= _calls(runs, base)
    elif len(stages):
        on_device, launching = device_constants(stages, machine)
        if base.engine.wake_s:
            launching |= waking(runs, observed, base.host.cores)
        seconds |= on_device
        constants |= _known(launching, base) | _calls(runs, base)
    return Measured(constants | _rates(seconds, by_domain, base), alone.prior_left)


def _calls(runs: Sequence[Run], base: Hardware) -> dict[str, float]:
    """What calls of the driver take a partition, while nobody changes mappings: medians, as few are on a crowded host.

    A partition has one buffer that is not from the pool, in all designs, and one that is, of which a call takes less.
    Where the profile does not tell pooled frees, both are counted to the one that is not. From the start of a call to
    what is first done in it is what the engine itself adds.
    """
    apart = _POOLED_CALLS if base.device.pooled_free_s else {}
    each: dict[str, list[float]] = {}
    for run in runs:
        spans = undisturbed(run.table("spans"))
        by_call = (spans["end"] - spans["start"]).groupby([spans["name"], spans["partition"]])
        lasted, shortest, count = by_call.sum(), by_call.min(), by_call.count()
        for name, constant in _DRIVER_CALLS.items():
            if name in lasted.index.get_level_values(0):
                pooled = shortest[name].where(count[name] == 2, 0) if name in apart else 0
                each.setdefault(constant, []).extend(lasted[name] - pooled)
                if name in apart:
                    each.setdefault(apart[name], []).extend(pooled[count[name] == 2])
        begun = spans[spans["category"] == "call"].set_index("partition")["start"]
        inside = spans[(spans["category"] != "call") & (spans["name"] != "synthesis")]
        each.setdefault("engine.pickup_s", []).extend((inside.groupby("partition")["start"].min() - begun).dropna())
    return {name: float(np.median(lasted)) * 1e-9 for name, lasted in each.items() if lasted}


def _known(launching: Mapping[str, float], base: Hardware) -> dict[str, float]:
    """Launches as the profile can say them: by stage, or one for all; spreads that it has; and all the rest."""
    tables = {"spread": base.spread, "launch": base.launch}
    found = {}
    for name, value in launching.items():
        section, _, key = name.partition(".")
        if section not in tables or (tables[section] and key in tables[section].values):
            found[name] = value
    if base.launch is None:
        by_stage = [value for name, value in launching.items() if name.startswith("launch.")]
        found["device.launch_s"] = float(np.mean(by_stage))
    return found


def _rates(
    seconds: Mapping[str, Mapping[int, float]], by_domain: Mapping[int, CircuitShape], base: Hardware
) -> dict[str, float]:
    found = {}
    exponents = base.size_exponent.values if base.size_exponent else {}
    for stage, by_size in seconds.items():
        row = STAGES[stage]
        sizes = np.log2(list(by_size))
        logs = np.log2([sum(row.work(by_domain[d], part) for part in row.parts) / by_size[d] for d in by_size])
        if stage not in exponents:
            found[f"rates.{stage}"] = float(2 ** logs.mean())
            continue
        exponent = float(np.polyfit(sizes, logs, 1)[0]) if len(by_size) > 1 else exponents[stage]
        found[f"size_exponent.{stage}"] = exponent
        found[f"rates.{stage}"] = float(2 ** (logs.mean() - exponent * (sizes.mean() - exponents[LOG2_DOMAIN])))
    return found


def _pools(alone: Alone, by_domain: Mapping[int, CircuitShape], base: Hardware) -> dict[str, float]:
    """How pools of several sizes share a stage's work out, of the stages of which the profile says so.

    T(n) = T(1) · (s + (1 − s) · x(n)), x(n) = (1 + d · (n − 1) / work) / throughput(n), as `shared_seconds`, is linear
    in T(1) · s, T(1) · (1 − s) and T(1) · (1 − s) · d. Two sizes of a pool tell s, and three d as well, if one of them
    is more than there are hardware threads: up to those, what is done alone and what is added look the same. So do what
    is done alone and what is shared beyond them. Where the pools do not tell, nothing is found.
    """
    from scipy.optimize import nnls

    found = {}
    for stage in base.serial_share.values if base.serial_share else ():
        by_size: dict[int, list[tuple[int, float]]] = {}
        for kind, seconds in alone.seconds.items():
            if kind.name == stage:
                by_size.setdefault(kind.domain, []).append((kind.threads, seconds))
        serial, added = [], []
        for domain, pools in by_size.items():
            threads, seconds = np.transpose(pools)
            work = STAGES[stage].work(by_domain[domain], "")
            shared = [shared_seconds(base, stage, int(n), work) for n in threads]
            if len(pools) > 2 and max(threads) > base.host.hardware_threads and base.stage_split_work(stage):
                one = np.array([1 / throughput(base.host, int(n)) for n in threads])
                parts = np.transpose([one**0, one, one * (threads - 1)])
            else:
                parts = np.transpose([np.ones(len(pools)), shared])
            if len(pools) < 2 or not _differ(parts):
                continue
            (alone_s, split_s, *added_s), _ = nnls(parts, seconds)
            if added_s and not split_s:
                continue
            serial.append(alone_s / (alone_s + split_s))
            added += [work * one / split_s for one in added_s]
        if serial:
            found[f"serial_share.{stage}"] = float(np.mean(serial))
        if added:
            found[f"split_work.{stage}"] = float(np.mean(added))
    return found


def _differ(columns: np.ndarray) -> bool:
    """Whether columns point in directions so different that how much there is of each can be told."""
    return bool(np.linalg.cond(columns / np.linalg.norm(columns, axis=0)) < _WORST_CONDITION)


def _cpu_seconds(
    alone: Alone, observed: Observed, by_domain: Mapping[int, CircuitShape], hardware: Hardware
) -> dict[str, dict[int, float]]:
    """Of CPU stages with the profile's threads, by stage and domain."""
    counts = np.bincount([one.kind for one in observed.activities], minlength=len(observed.kinds))
    found: dict[str, dict[int, list[tuple[float, int]]]] = {}
    for kind, count in zip(observed.kinds, counts.tolist(), strict=True):
        if kind.name in STAGES and STAGES[kind.name].processor == "cpu":
            work = STAGES[kind.name].work(by_domain[kind.domain], "")
            of_profile = pool_seconds(hardware, kind.name, hardware.stage_threads(kind.name), work)
            alone_s = alone.seconds[kind] * of_profile / pool_seconds(hardware, kind.name, kind.threads, work)
            found.setdefault(kind.name, {}).setdefault(kind.domain, []).append((alone_s, count))
    return {
        stage: {domain: sum(s * n for s, n in ones) / sum(n for _, n in ones) for domain, ones in by_size.items()}
        for stage, by_size in found.items()
    }


def _emulated_seconds(
    alone: Alone, by_domain: Mapping[int, CircuitShape], hardware: Hardware
) -> dict[str, dict[int, float]]:
    """Of an emulated device's kernels, by stage and domain.

    A part that lasts as long as its streamed bytes need on the link tells nothing of its kernels; they are taken to
    need half of that.
    """
    found: dict[str, dict[int, float]] = {}
    for kind, alone_s in alone.seconds.items():
        stage, _, part = kind.name.partition(".")
        if stage in STAGES and STAGES[stage].processor == "gpu":
            link_s = STAGES[stage].streamed_bytes(by_domain[kind.domain], part) / hardware.transfer.pinned_bytes_per_s
            of_stage = found.setdefault(stage, {})
            kernels_s = alone_s if alone_s > 1.05 * link_s else alone_s / 2
            of_stage[kind.domain] = of_stage.get(kind.domain, 0.0) + kernels_s
    return found


def _host_work(alone: Alone, by_domain: Mapping[int, CircuitShape]) -> dict[str, float]:
    """Pageable copies, page-locking, and how much stages spread."""
    names = {"pin": "transfer.pin_s_per_byte", "unpin": "transfer.unpin_s_per_byte"}
    found = {}
    for what, name in names.items():
        each = [
            seconds / by_domain[kind.domain].abc_bytes for kind, seconds in alone.seconds.items() if kind.name == what
        ]
        if each:
            found[name] = float(np.mean(each))
    each = [
        by_domain[kind.domain].abc_bytes / seconds for kind, seconds in alone.seconds.items() if kind.name == "upload"
    ]
    if each:
        found["transfer.pageable_bytes_per_s"] = float(np.mean(each))
    return found


def _spreads(alone: Alone, base: Hardware) -> dict[str, float]:
    """How much what the profile has a spread of differs from one time to the next."""
    each: dict[str, list[float]] = {}
    for kind, spread in alone.spreads.items():
        each.setdefault(kind.share_name, []).append(spread)
    known = base.spread.values if base.spread else {}
    return {f"spread.{name}": max(_LEAST_SPREAD, float(np.mean(each[name]))) for name in known if name in each}


def _copies(runs: Sequence[Run], shapes: Sequence[CircuitShape]) -> dict[str, float]:
    """The rate of copies from pinned memory, the median of uploads: what stages stream waits for more than the link."""
    rates = []
    for run, shape in zip(runs, shapes, strict=True):
        copies = run.table("transfers")
        copies = copies[copies["pinned"] & copies["stream"].str.endswith(".upload")]
        rates += (shape.abc_bytes / ((copies["end"] - copies["start"]) * 1e-9)).tolist()
    return {"transfer.pinned_bytes_per_s": float(np.median(rates))} if rates else {}
