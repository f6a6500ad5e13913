"""What stages on a device take in live runs: their kernels, and what the thread that launches them adds.

A stage lasts h + max(K, B / link): h on the thread that launches, K while its kernels run, B the bytes that it streams.
K, and with it h, come from stages that ran while the host had cores enough and nobody changed mappings beside them:
medians by part and circuit. How much longer h lasts on a host that is too busy is the wake-up penalty, chosen so that
all stages that met one lasted, together, as long as they did.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cuzklab.profiles import LAUNCHING, WAKING, Hardware
from cuzklab.simulate.alone import Observed
from cuzklab.stages import STAGES, CircuitShape
from cuzklab.trace import Run
from cuzklab.trace.metrics import union_length

_LOCKING = ("pin", "unpin")
_LOST = 3.0  # times as long as usual
_LEAST_GAPS = 20
_NOTHING = np.zeros((0, 2), np.int64)


def stages_on_device(
    runs: Sequence[Run], shapes: Sequence[CircuitShape], observed: Observed, hardware: Hardware
) -> pd.DataFrame:
    """One row for each stage that was launched.

    Returns
    -------
    DataFrame
        stage, part, domain; lasted_s on the thread that launched it; gap_s since that ended what it did before, unless
        it waited; kernels_s while any of its kernels ran; link_s that its bytes need; threads runnable beside it on
        average; disturbed: whether mappings were changed beside it, or it was uploaded to.
    """
    found = []
    for run, shape, crowd, threads in zip(runs, shapes, observed.crowds, observed.threads, strict=True):
        spans, kernels, copies = run.table("spans"), run.table("kernels"), run.table("transfers")
        ran = {key: rows[["start", "end"]].to_numpy() for key, rows in kernels.groupby(["partition", "span"])}
        uploads = {
            key: rows[["start", "end"]].to_numpy()
            for key, rows in copies[copies["stream"].str.endswith(".upload")].groupby("partition")
        }
        locking = spans[spans["name"].isin(_LOCKING)][["start", "end"]].to_numpy()
        before = {key: np.sort(rows["end"].to_numpy()) for key, rows in _calling(spans).groupby("partition")}
        waits = {key: rows[["start", "end"]].to_numpy() for key, rows in run.table("waits").groupby("partition")}
        gpu = spans[spans["category"] == "gpu"]
        for name, partition, start, end in zip(
            gpu["name"], gpu["partition"], gpu["start"].tolist(), gpu["end"].tolist(), strict=True
        ):
            stage, _, part = str(name).partition(".")
            there = ran.get((partition, name))
            if there is None:
                continue
            own = uploads.get(partition, _NOTHING)
            earlier = before[partition][before[partition] <= start]
            since = int(earlier[-1]) if len(earlier) else None
            waited = since is None or _overlaps(waits.get(partition, _NOTHING), since, start)
            found.append(
                {
                    "stage": stage, "part": part, "domain": shape.domain, "lasted_s": (end - start) * 1e-9,
                    "gap_s": np.nan if waited else (start - since) * 1e-9,
                    "kernels_s": union_length(there[:, 0], there[:, 1]) * 1e-9,
                    "extent_s": (there[:, 1].max() - there[:, 0].min()) * 1e-9,
                    "link_s": STAGES[stage].streamed_bytes(shape, part) / hardware.transfer.pinned_bytes_per_s,
                    "threads": crowd.mean(start, end, threads),
                    "disturbed": _overlaps(locking, start, end) or _overlaps(own, start, end),
                }
            )  # fmt: skip
    return pd.DataFrame(found)


def _calling(spans: pd.DataFrame) -> pd.DataFrame:
    """What the threads that call the device did."""
    return spans[spans["category"].isin(("gpu", "memory", "transfer"))]


def undisturbed(spans: pd.DataFrame) -> pd.DataFrame:
    """Spans beside which no other partition's pages were locked or unlocked."""
    locking = spans[spans["name"].isin(_LOCKING)]
    others = _met(spans, locking)
    own = dict(list(locking.groupby(locking["partition"].fillna(""))))
    for partition, places in spans.groupby(spans["partition"].fillna("")).indices.items():
        if partition in own:
            others[places] -= _met(spans.iloc[places], own[partition])
    return spans[others == 0]


def _met(spans: pd.DataFrame, intervals: pd.DataFrame) -> np.ndarray:
    """How many intervals each span overlaps: those that begin before its end, less those that end before it begins."""
    begun = np.searchsorted(np.sort(intervals["start"].to_numpy()), spans["end"].to_numpy(), "left")
    return begun - np.searchsorted(np.sort(intervals["end"].to_numpy()), spans["start"].to_numpy(), "right")


def _overlaps(intervals: np.ndarray, start: int, end: int) -> bool:
    return bool(((intervals[:, 0] < end) & (intervals[:, 1] > start)).any())


def typical(stages: pd.DataFrame, cores: int) -> pd.DataFrame:
    """Medians of each part and circuit while there were cores enough; of the faster half where there never were.

    Returns
    -------
    DataFrame
        Indexed by stage, part and domain: lasted_s, kernels_s, link_s, and launch_s.
    """
    keys = ["stage", "part", "domain"]
    calm = stages[(stages["threads"] < cores) & ~stages["disturbed"]]
    crowded = stages[~stages.set_index(keys).index.isin(calm.set_index(keys).index)]
    faster = crowded[crowded["lasted_s"] <= crowded.groupby(keys)["lasted_s"].transform("median")]
    found = pd.concat((calm, faster)).groupby(keys)[["lasted_s", "kernels_s", "link_s"]].median()
    there_s = found[["kernels_s", "link_s"]].max(axis=1)
    found["launch_s"] = (found["lasted_s"] - there_s).clip(lower=1e-6)
    return found


def device_constants(stages: pd.DataFrame, hardware: Hardware) -> tuple[dict[str, dict[int, float]], dict[str, float]]:
    """What the stages say of the device.

    Returns
    -------
    seconds : dict
        Of kernels, by stage and domain; all parts together.
    constants : dict
        `launch.STAGE`, `spread.launching`, `device.between_s`, `host.lost_core_share` and `host.wakeup_penalty`; the
        second only where some stage met a host with cores enough, the fourth only of a profile that has it.
    """
    usual = typical(stages, hardware.host.cores)
    seconds: dict[str, dict[int, float]] = {}
    for (stage, domain), kernels_s in usual["kernels_s"].groupby(["stage", "domain"]):
        seconds.setdefault(stage, {})[domain] = float(kernels_s.sum())
    constants = {f"launch.{stage}": float(rows.mean()) for stage, rows in usual["launch_s"].groupby("stage")}
    gaps = stages["gap_s"].dropna()
    constants["device.between_s"] = float(gaps.median()) if len(gaps) else 0.0
    constants |= _launch_spread(stages, usual, hardware.host.cores)
    if hardware.host.lost_core_share < 1:
        constants |= _lost_cores(stages, constants["device.between_s"], hardware.host.hardware_threads)
    constants["host.wakeup_penalty"] = _wakeup_penalty(stages, usual, hardware.host.hardware_threads)
    return seconds, constants


def _launch_spread(stages: pd.DataFrame, usual: pd.DataFrame, cores: int) -> dict[str, float]:
    """How much launches differ from one time to the next: half of what the middle 68 % of their logarithms span.

    While there were cores enough; a few that lasted much longer do not count.
    """
    keys = ["stage", "part", "domain"]
    calm = stages[(stages["threads"] < cores) & ~stages["disturbed"]]
    both = calm.merge(usual[["kernels_s", "link_s", "launch_s"]], on=keys, suffixes=("", "_usual"))
    if both.empty:
        return {}
    launch_s = (both["lasted_s"] - both[["kernels_s_usual", "link_s_usual"]].max(axis=1)).clip(lower=1e-6)
    low, high = np.quantile(np.log(launch_s / both["launch_s"]), (0.16, 0.84))
    return {f"spread.{LAUNCHING}": float(min(1.0, (high - low) / 2))}


def waking(runs: Sequence[Run], observed: Observed, cores: int) -> dict[str, float]:
    """How long a thread takes to go on, as handovers of locks tell: from a release until who waited longest has it.

    While there were cores enough. The middle 68 % make up the spread, and the median the mean that belongs to it. Who
    waits for an idle device has to be woken, too. Nothing where no lock was handed over.
    """
    found = []
    for run, crowd, threads in zip(runs, observed.crowds, observed.threads, strict=True):
        for _, uses in run.table("locks").dropna(subset=["acquired", "released"]).groupby("lock"):
            uses = uses.sort_values("acquired")
            released, acquired = uses["released"].to_numpy(np.int64)[:-1], uses["acquired"].to_numpy(np.int64)[1:]
            waited = uses["requested"].to_numpy(np.int64)[1:] < released
            found += [
                took - gave
                for gave, took in zip(released[waited].tolist(), acquired[waited].tolist(), strict=True)
                if took > gave and crowd.mean(gave, took, threads) < cores
            ]
    if not found:
        return {}
    low, middle, high = np.quantile(np.log(np.array(found) * 1e-9), (0.16, 0.5, 0.84))
    spread = float(min(1.0, (high - low) / 2))
    wake_s = float(np.exp(middle + spread**2 / 2))
    return {"engine.wake_s": wake_s, "device.idle_s": wake_s, f"spread.{WAKING}": spread}


def _lost_cores(stages: pd.DataFrame, between_s: float, hardware_threads: int) -> dict[str, float]:
    """Of what threads do between two stages on a host that is too busy, the part that lost its core meanwhile.

    Who keeps it takes as long as ever, and who loses it tens of times as long: the limit between is not delicate.
    """
    busy = stages[stages["threads"] > hardware_threads]["gap_s"].dropna()
    if len(busy) < _LEAST_GAPS:
        return {}
    return {"host.lost_core_share": float(max(1, (busy > _LOST * between_s).sum()) / len(busy))}


def _wakeup_penalty(stages: pd.DataFrame, usual: pd.DataFrame, hardware_threads: int) -> float:
    """How much longer launches lasted than their share of the cores explains; 0 where no stage met a full host."""
    keys = ["stage", "part", "domain"]
    both = stages[~stages["disturbed"]].merge(usual[["lasted_s", "launch_s"]], on=keys, suffixes=("", "_usual"))
    over = (both["threads"] / hardware_threads - 1).clip(lower=0.0)
    both, over = both[over > 0], over[over > 0]
    longer_s = both["lasted_s"] - both["lasted_s_usual"] - both["launch_s"] * over
    by_waking_s = both["launch_s"] * (1 + over) * over**2
    return max(0.0, float(longer_s.sum() / by_waking_s.sum())) if len(both) else 0.0
