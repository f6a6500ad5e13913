"""What could be faster or larger: one row a resource, with what a tenth more of it changes in a setup.

`RESOURCES` is the list; a new resource is one row. A rate is multiplied by 1.1, a time divided by it. What comes in
whole numbers goes up by a tenth, by one at least, and the row says by how much. A lock has no rate: a tenth less of it
means that one call in eleven does without it, with device memory for everybody so that the gain is that of the
exclusion alone; it is compared with the same memory and the lock whole.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cuzklab.simulate.relaxed import relaxed
from cuzklab.simulate.setup import Setup
from cuzklab.stages import STAGES
from cuzklab.units import format_size

STEP = 1.1
_PERIOD = 11  # one call in so many without locks: their demand becomes 1 / 1.1
_CALL_STAGES = tuple(name for name, stage in STAGES.items() if stage.processor == "cpu" and name != "synthesis")
_GPU_STAGES = tuple(name for name, stage in STAGES.items() if stage.processor == "gpu")


@dataclass(frozen=True)
class Change:
    """A setup with a little more of a resource.

    Attributes
    ----------
    setup : Setup
    words : str
        What was changed, with amounts.
    against : Setup or None
        What it is compared with, if not the setup that was asked about.
    """

    setup: Setup
    words: str
    against: Setup | None = None


@dataclass(frozen=True)
class Resource:
    """Something that may limit a run.

    Attributes
    ----------
    name : str
        Key in JSON.
    title : str
        In a sentence: "limited by …".
    more : callable (Setup) -> Change or str
        A tenth more of it; or why that means nothing for this setup.
    """

    name: str
    title: str
    more: Callable[[Setup], Change | str]


def _constants(setup: Setup, factors: Mapping[str, float], words: str) -> Change | str:
    """Constants of the machine multiplied."""
    values = {name: setup.hardware.constant(name) * factor for name, factor in factors.items()}
    if not any(values.values()):
        return "the profile has no cost for it"
    return Change(replace(setup, hardware=setup.hardware.with_constants(values)), words)


def _rates(setup: Setup, stages: tuple[str, ...], words: str) -> Change | str:
    return _constants(setup, {f"rates.{stage}": STEP for stage in stages}, words)


def _pageable(setup: Setup) -> Change | str:
    transfer = setup.hardware.transfer
    rate = min(transfer.pageable_bytes_per_s * STEP, transfer.pinned_bytes_per_s)
    if rate <= transfer.pageable_bytes_per_s:
        return "they are as fast as pinned ones"
    machine = setup.hardware.with_constants({"transfer.pageable_bytes_per_s": rate})
    return Change(replace(setup, hardware=machine), f"{100 * (rate / transfer.pageable_bytes_per_s - 1):.0f} % faster")


def _page_locking(setup: Setup) -> Change | str:
    names = ("transfer.pin_s_per_byte", "transfer.unpin_s_per_byte")
    return _constants(setup, dict.fromkeys(names, 1 / STEP), "10 % faster")


def _device_calls(setup: Setup) -> Change | str:
    names = ("alloc_s", "free_s", "pooled_s", "trim_s", "sync_s", "launch_s")
    return _constants(setup, {f"device.{name}": 1 / STEP for name in names}, "10 % shorter")


def _cores(setup: Setup) -> Change:
    cores = setup.hardware.host.cores
    more = _tenth_more(cores)
    machine = setup.hardware.with_constants({"host.cores": more})
    return Change(replace(setup, hardware=machine), f"{cores} → {more}")


def _host_memory(setup: Setup) -> Change:
    host = setup.hardware.host
    more = round(host.available_bytes * STEP) + host.reserved_bytes
    machine = setup.hardware.with_constants({"host.memory_bytes": more})
    words = f"{format_size(host.available_bytes)} → {format_size(more - host.reserved_bytes)}"
    return Change(replace(setup, hardware=machine), words)


def _device_memory(setup: Setup) -> Change:
    more = round(setup.device_bytes * STEP)
    return Change(replace(setup, vram_bytes=more), f"{format_size(setup.device_bytes)} → {format_size(more)}")


def _lock(setup: Setup) -> Change | str:
    partitions = setup.partitions_per_proof
    if setup.gpu_workers == 1:
        return "one worker has nobody to wait for"
    if setup.proofs * partitions < 2 * _PERIOD:
        return f"fewer than {2 * _PERIOD} partitions are too few to tell"
    roomy = replace(setup, vram_bytes=setup.device_bytes * setup.gpu_workers)
    policy = relaxed(setup.policy, _PERIOD, partitions)
    return Change(replace(roomy, policy=policy), f"1 call in {_PERIOD} without it", roomy)


def _queue(setup: Setup) -> Change | str:
    places, all_partitions = setup.places, setup.in_flight * setup.partitions_per_proof
    if places >= all_partitions:
        return "all partitions in flight may wait in it"
    more = _tenth_more(places)
    return Change(replace(setup, lookahead=more), f"{places} → {more} places")


def _in_flight(setup: Setup) -> Change | str:
    if setup.in_flight >= setup.proofs:
        return "all proofs are in flight"
    more = min(_tenth_more(setup.in_flight), setup.proofs)
    # The queue's length depends on it unless stated.
    return Change(replace(setup, in_flight=more, lookahead=setup.places), f"{setup.in_flight} → {more}")


def _tenth_more(count: int) -> int:
    return max(count + 1, math.floor(count * STEP))


RESOURCES: tuple[Resource, ...] = (
    Resource("gpu", "the GPU (its kernels)", lambda setup: _rates(setup, _GPU_STAGES, "kernels 10 % faster")),
    Resource("lock", "the lock", _lock),
    Resource("synthesis", "synthesis", lambda setup: _rates(setup, ("synthesis",), "10 % faster")),
    Resource(
        "call_cpu", "the CPU stages of a call",
        lambda setup: _rates(setup, _CALL_STAGES, f"{', '.join(_CALL_STAGES)} 10 % faster"),
    ),
    Resource("cores", "the number of cores", _cores),
    Resource(
        "host_bandwidth", "host memory bandwidth",
        lambda setup: _constants(setup, {"host.memory_bandwidth_bytes_per_s": STEP}, "10 % more"),
    ),
    Resource("pcie", "PCIe", lambda setup: _constants(setup, {"transfer.pinned_bytes_per_s": STEP}, "10 % faster")),
    Resource("pageable_copies", "copies from pageable memory", _pageable),
    Resource("page_locking", "locking and unlocking pages", _page_locking),
    Resource("device_calls", "calls of the driver", _device_calls),
    Resource("vram", "device memory (VRAM)", _device_memory),
    Resource("host_memory", "the amount of host memory", _host_memory),
    Resource("queue", "the queue before the GPU workers", _queue),
    Resource("in_flight", "the number of proofs in flight", _in_flight),
)  # fmt: skip
