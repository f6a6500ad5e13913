"""What a stretch of a run went into: the devices' time by cause, the stages, the locks, who held memory.

Every table here is cut at the edges of the stretch: what reaches beyond them counts with what is inside.
"""

import numpy as np
import pandas as pd

from cuzklab.analysis import occupancy, vram
from cuzklab.analysis.frames import as_set, cpu_work, device_work, per_run, table
from cuzklab.analysis.intervals import clip, total, union
from cuzklab.analysis.locks import uses
from cuzklab.trace import Run

KERNELS = "kernels"
_DEVICE = {"device": "int64", "cause": "str", "explanation": "str", "time_ns": "int64", "share": "float64"}
_STAGE = {"stage": "str", "processor": "str", "count": "int64", "time_ns": "int64", "share": "float64"}
_LOCK = {
    "lock": "str", "worker": "str", "holds": "int64", "held_ns": "int64", "held_share": "float64", "waits": "int64",
    "waited_ns": "int64",
}  # fmt: skip


@per_run
def _pieces(run: Run) -> pd.DataFrame:
    return occupancy.idle_pieces(run)


def device_time(run: Run, start_ns: int, end_ns: int) -> pd.DataFrame:
    """Where the devices' time went between two moments.

    Parameters
    ----------
    run : Run
    start_ns, end_ns : int
        Moments of the trace's clock.

    Returns
    -------
    DataFrame
        `device`, `cause` (`KERNELS`, or a cause of idle time: see `occupancy.CAUSES`), `explanation`, `time_ns`,
        `share` (of the stretch); the largest first. A device's times add up to the part of the stretch in which the
        run was under way.
    """
    work, pieces = device_work(run), _pieces(run)
    rows = []
    for device in sorted(set(work["device"]) | set(pieces["device"])):
        busy = clip(as_set(work[work["device"] == device]), start_ns, end_ns)
        rows.append((device, KERNELS, "kernels run", total(busy)))
        own = pieces[pieces["device"] == device]
        inside = _inside(own["start_ns"], own["end_ns"], start_ns, end_ns)
        for cause, times in inside.groupby(own["cause"]):
            rows.append((device, str(cause), occupancy.cause_named(str(cause)).explanation, int(times.sum())))
    stretch = max(end_ns - start_ns, 1)
    found = table([(*row, row[-1] / stretch) for row in rows if row[-1] > 0], _DEVICE)
    return found.sort_values(["device", "time_ns", "cause"], ascending=[True, False, True], ignore_index=True)


def stage_time(run: Run, start_ns: int, end_ns: int) -> pd.DataFrame:
    """The stages that ran between two moments.

    Returns
    -------
    DataFrame
        `stage`, `processor` (cpu, gpu), `count` (executions of which some part is inside), `time_ns` (their sum, also
        where several ran at once), `share` (of the stretch in which at least one ran); the largest first.
    """
    rows = []
    for processor, work in (("cpu", cpu_work(run)), ("gpu", device_work(run))):
        inside = work[(work["end_ns"] > start_ns) & (work["start_ns"] < end_ns)]
        for stage, part in inside.groupby("stage"):
            times = _inside(part["start_ns"], part["end_ns"], start_ns, end_ns)
            whole = total(clip(as_set(part), start_ns, end_ns))
            rows.append((str(stage), processor, len(part), int(times.sum()), whole / max(end_ns - start_ns, 1)))
    found = table(rows, _STAGE)
    return found.sort_values(["time_ns", "stage"], ascending=[False, True], ignore_index=True)


def lock_time(run: Run, start_ns: int, end_ns: int) -> pd.DataFrame:
    """Who held and who waited for each lock between two moments.

    Returns
    -------
    DataFrame
        `lock`, `worker`, `holds` and `waits` (those of which some part is inside), `held_ns`, `held_share` (of the
        stretch), `waited_ns`; by lock, the longest hold first.
    """
    rows = uses(run)
    held = _inside(rows["acquired_ns"], rows["released_ns"], start_ns, end_ns).where(~rows["given_up"], 0)
    waited = _inside(rows["requested_ns"], rows["acquired_ns"], start_ns, end_ns)
    some = rows.assign(held_ns=held, waited_ns=waited)[(held > 0) | (waited > 0)]
    found = [
        (lock, worker, int((part["held_ns"] > 0).sum()), int(part["held_ns"].sum()),
         total(clip(union(part["acquired_ns"], part["released_ns"]), start_ns, end_ns)) / max(end_ns - start_ns, 1),
         int((part["waited_ns"] > 0).sum()), int(part["waited_ns"].sum()))
        for (lock, worker), part in some.groupby(["lock", "worker"])
    ]  # fmt: skip
    order = ["lock", "held_ns", "waited_ns", "worker"]
    return table(found, _LOCK).sort_values(order, ascending=[True, False, False, True], ignore_index=True)


def memory_at_peak(run: Run, start_ns: int, end_ns: int) -> pd.DataFrame:
    """Who held what when most device memory was live between two moments, what was live before included.

    Returns
    -------
    DataFrame
        `device`, `time_ns` (of the peak; the stretch's start where it was reached before), `buffer`, `worker`,
        `partition`, `bytes`, the largest first.
    """
    parts = []
    for device, events in vram.steps(run).groupby("device"):
        inside = events[(events["time_ns"] >= start_ns) & (events["time_ns"] < end_ns)]
        before = events[events["time_ns"] < start_ns].tail(1)
        candidates = pd.concat([before, inside]) if len(before) else inside
        if not len(candidates):
            continue
        event = int(candidates.index[int(candidates["live_bytes"].to_numpy().argmax())])
        held = vram.holdings(run, event)
        held.insert(0, "time_ns", max(int(events.loc[event, "time_ns"]), start_ns))
        held.insert(0, "device", np.int64(device))
        parts.append(held)
    columns = {
        "device": "int64",
        "time_ns": "int64",
        "buffer": "str",
        "worker": "str",
        "partition": "str",
        "bytes": "int64",
    }
    return pd.concat(parts, ignore_index=True)[list(columns)] if parts else table((), columns)


def waiting_during(run: Run, lock: str, start_ns: int, end_ns: int) -> pd.DataFrame:
    """Who waited for a lock between two moments, and for how long in them.

    Returns
    -------
    DataFrame
        `worker`, `partition`, `requested_ns`, `time_ns`; the longest first.
    """
    rows = uses(run)
    rows = rows[rows["lock"] == lock]
    found = rows.assign(time_ns=_inside(rows["requested_ns"], rows["acquired_ns"], start_ns, end_ns))
    found = found.loc[found["time_ns"] > 0, ["worker", "partition", "requested_ns", "time_ns"]]
    return found.sort_values(["time_ns", "worker"], ascending=[False, True], ignore_index=True)


def _inside(starts: pd.Series, ends: pd.Series, start_ns: int, end_ns: int) -> pd.Series:
    """How much of each interval is in a stretch."""
    return (ends.clip(upper=end_ns) - starts.clip(lower=start_ns)).clip(lower=0).astype(np.int64)
