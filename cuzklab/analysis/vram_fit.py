"""What fits the device: headroom, each worker's own need, whether several workers' buffers could live side by side."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cuzklab.analysis import vram
from cuzklab.analysis.frames import per_run, table, window
from cuzklab.trace import Run

_OWNERS = {
    "device": "int64", "worker": "str", "at_peak_bytes": "int64", "own_peak_bytes": "int64", "allocations": "int64",
    "largest_bytes": "int64",
}  # fmt: skip
_LIFETIMES = {
    "device": "int64", "buffer": "str", "count": "int64", "bytes": "int64", "largest_bytes": "int64",
    "life_mean_ns": "float64", "life_max_ns": "int64", "live_share": "float64", "never_freed": "int64",
}  # fmt: skip


@per_run
def lifetimes(run: Run) -> pd.DataFrame:
    """How long each kind of buffer lives.

    Returns
    -------
    DataFrame
        `device`, `buffer`, `count`, `bytes` (mean), `largest_bytes`, `life_mean_ns`, `life_max_ns`, `live_share` (of
        the wall time, the sum over all lives: 2 means that two live at a time on average), `never_freed`; what takes
        most memory for longest comes first.
    """
    lives = vram.allocations(run)
    start, end = window(run)
    life = lives["freed_ns"].fillna(end).astype("int64") - lives["allocated_ns"]
    lives = lives.assign(life_ns=life)
    rows = [
        (device, buffer, len(part), int(part["bytes"].mean()), part["bytes"].max(), part["life_ns"].mean(),
         part["life_ns"].max(), part["life_ns"].sum() / max(end - start, 1), int(part["freed_ns"].isna().sum()))
        for (device, buffer), part in lives.groupby(["device", "buffer"])
    ]  # fmt: skip
    found = table(rows, _LIFETIMES)
    weight = found["bytes"] * found["live_share"]
    return found.loc[weight.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


@per_run
def owners(run: Run) -> pd.DataFrame:
    """Who needs how much device memory.

    Returns
    -------
    DataFrame
        `device`, `worker`, `at_peak_bytes` (its part of what is live at the device's peak), `own_peak_bytes` (the most
        that it has live itself, whenever that is), `allocations`, `largest_bytes`.
    """
    lives, peak = vram.allocations(run), vram.peak_holdings(run)
    rows = []
    for (device, worker), part in lives.groupby(["device", "worker"]):
        theirs = peak[(peak["device"] == device) & (peak["worker"] == worker)]
        changes = np.zeros(int(part["last_event"].max()) + 2, dtype=np.int64)
        np.add.at(changes, part["first_event"].to_numpy(), part["bytes"].to_numpy())
        np.subtract.at(changes, part["last_event"].to_numpy(), part["bytes"].to_numpy())
        own = int(np.cumsum(changes).max())
        rows.append((device, worker, theirs["bytes"].sum(), own, len(part), part["bytes"].max()))
    found = table(rows, _OWNERS)
    return found.sort_values(["device", "own_peak_bytes", "worker"], ascending=[True, False, True], ignore_index=True)


@dataclass(frozen=True)
class Fit:
    """Whether the buffers of several workers fit a device together.

    Attributes
    ----------
    device : int
    limit_bytes : int
    worker_bytes : int
        The largest peak of a single worker.
    fitting_workers : int
        How many such peaks fit at the same moment: with that many, no order of the workers runs out of memory.
    short_bytes : int
        What the device lacks for one more.
    headroom_bytes : int
        The least that was free in the run.
    largest_more_bytes : int
        The largest further buffer that would have fitted at any moment of the run: the least headroom, if not negative.
    """

    device: int
    limit_bytes: int
    worker_bytes: int
    fitting_workers: int
    short_bytes: int
    headroom_bytes: int
    largest_more_bytes: int


def fits(run: Run) -> list[Fit]:
    """For each device with a limit, how many workers' peaks it holds side by side."""
    found = []
    need = owners(run)
    for peak in vram.peaks(run).itertuples():
        mine = need[need["device"] == peak.device]
        if not peak.limit_bytes or not len(mine):
            continue
        worker_bytes = int(mine["own_peak_bytes"].max())
        count = int(peak.limit_bytes // worker_bytes) if worker_bytes else 0
        found.append(
            Fit(
                int(peak.device), int(peak.limit_bytes), worker_bytes, count,
                (count + 1) * worker_bytes - int(peak.limit_bytes), int(peak.headroom_bytes),
                max(int(peak.headroom_bytes), 0),
            )
        )  # fmt: skip
    return found


def fragmentation(run: Run) -> pd.DataFrame:
    """Memory that is taken and is no live buffer: kept by a pool, lost to fragmentation, or not traced.

    Two signs of it are in a trace: the recorded sum of live bytes exceeds the buffers that are known, and a request
    fails although the sum left room for it.

    Returns
    -------
    DataFrame
        One row a device: `device`, `unexplained_max_bytes`, `unexplained_share` (of the limit), `failed_with_room`
        (requests), `at_least_bytes` (what must have been unusable at the worst of them).
    """
    steps, lives = vram.steps(run), vram.allocations(run)
    rows = []
    for device, part in steps.groupby("device"):
        mine = lives[lives["device"] == device]
        changes = np.zeros(len(steps) + 1, dtype=np.int64)
        np.add.at(changes, mine["first_event"].to_numpy(), mine["bytes"].to_numpy())
        np.subtract.at(changes, mine["last_event"].to_numpy(), mine["bytes"].to_numpy())
        known = np.cumsum(changes)[part.index.to_numpy()]
        unexplained = int(np.maximum(part["live_bytes"].to_numpy() - known, 0).max())
        failed = part[part["op"] == "fail"]
        room = failed["limit_bytes"] - failed["live_bytes"] - failed["bytes"]
        limit = int(part["limit_bytes"].max())
        rows.append((device, unexplained, unexplained / limit if limit else 0.0, int((room >= 0).sum()),
                     int(room[room >= 0].max()) if (room >= 0).any() else 0))  # fmt: skip
    return table(rows, {"device": "int64", "unexplained_max_bytes": "int64", "unexplained_share": "float64",
                        "failed_with_room": "int64", "at_least_bytes": "int64"})  # fmt: skip
