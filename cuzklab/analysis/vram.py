"""Device memory: how much is live, whose it is, what failed to fit, what was never given back."""

import numpy as np
import pandas as pd

from cuzklab.analysis.frames import per_run, root, table
from cuzklab.trace import Run

NOT_TRACED = "(kept by the pool or not traced)"
_OF_ALLOCATIONS = ("alloc", "free", "fail")  # `live` of a reservation's row is a sum of promises, not of allocations
_HOLDING = {"buffer": "str", "worker": "str", "partition": "str", "bytes": "int64"}
HOLDING_COLUMNS = tuple(_HOLDING)


@per_run
def steps(run: Run) -> pd.DataFrame:
    """Live bytes after each allocation, free and failed request, against the limit.

    Returns
    -------
    DataFrame
        In order of time: `time_ns`, `device`, `op`, `buffer`, `bytes`, `live_bytes`, `limit_bytes`,
        `headroom_bytes` (limit − live), `worker`, `partition`, `lock_held`.
    """
    rows = run.table("vram")
    rows = rows[rows["op"].isin(_OF_ALLOCATIONS)].reset_index(drop=True)
    return pd.DataFrame(
        {
            "time_ns": rows["time"],
            "device": rows["device"],
            "op": rows["op"],
            "buffer": rows["buffer"],
            "bytes": rows["bytes"],
            "live_bytes": rows["live"],
            "limit_bytes": rows["limit"],
            "headroom_bytes": rows["limit"] - rows["live"],
            "worker": root(rows["worker"]),
            "partition": rows["partition"],
            "lock_held": rows["lock_held"],
        }
    )


@per_run
def allocations(run: Run) -> pd.DataFrame:
    """The life of each allocation.

    A free is matched to the newest live allocation of the same device, buffer and partition.

    Returns
    -------
    DataFrame
        `device`, `buffer`, `worker` (who allocated), `partition`, `bytes`, `allocated_ns`, `freed_ns` (Int64, null:
        never freed), `freed_by`, and `first_event`, `last_event`: the rows of `steps` between which it is live.
    """
    events = steps(run)
    lives: list[dict[str, object]] = []
    open_lives: dict[tuple[int, str, str], list[dict[str, object]]] = {}
    for number, event in enumerate(events.itertuples()):
        key = (event.device, event.buffer, event.partition)
        if event.op == "alloc":
            life = {
                "device": event.device, "buffer": event.buffer, "worker": event.worker, "partition": event.partition,
                "bytes": event.bytes, "allocated_ns": event.time_ns, "freed_ns": None, "freed_by": "",
                "first_event": number, "last_event": len(events),
            }  # fmt: skip
            lives.append(life)
            open_lives.setdefault(key, []).append(life)
        elif event.op == "free" and open_lives.get(key):
            open_lives[key].pop().update(freed_ns=event.time_ns, freed_by=event.worker, last_event=number)
    columns = {
        "device": "int64", "buffer": "str", "worker": "str", "partition": "str", "bytes": "int64",
        "allocated_ns": "int64", "freed_ns": "Int64", "freed_by": "str", "first_event": "int64", "last_event": "int64",
    }  # fmt: skip
    return table(lives, columns)


def holdings(run: Run, event: int) -> pd.DataFrame:
    """What is live after an event.

    Parameters
    ----------
    event : int
        Row of `steps`.

    Returns
    -------
    DataFrame
        `buffer`, `worker`, `partition`, `bytes`, the largest first. Its bytes add up to the live bytes recorded: what
        the trace does not name (memory that a pool keeps, allocations from before the recording) is one row of the
        buffer `NOT_TRACED`.
    """
    at = steps(run).iloc[event]
    lives = allocations(run)
    alive = (lives["device"] == at["device"]) & (lives["first_event"] <= event) & (event < lives["last_event"])
    held = lives.loc[alive, list(HOLDING_COLUMNS)]
    rest = int(at["live_bytes"]) - int(held["bytes"].sum())
    if rest > 0:
        unknown = table([(NOT_TRACED, "", "", rest)], _HOLDING)
        held = pd.concat([held, unknown]) if len(held) else unknown
    return held.sort_values(["bytes", "worker", "buffer"], ascending=[False, True, True], ignore_index=True)


def peaks(run: Run) -> pd.DataFrame:
    """Where each device's live bytes are highest (for the first time).

    Returns
    -------
    DataFrame
        `device`, `event` (row of `steps`), `time_ns`, `live_bytes`, `limit_bytes`, `headroom_bytes`.
    """
    events = steps(run)
    rows = [int(part["live_bytes"].to_numpy().argmax()) for _, part in events.groupby("device")]
    places = [int(part.index[row]) for row, (_, part) in zip(rows, events.groupby("device"), strict=True)]
    columns = ["device", "time_ns", "live_bytes", "limit_bytes", "headroom_bytes"]
    found = events.loc[places, columns].reset_index(names="event")
    return found[["device", "event", "time_ns", "live_bytes", "limit_bytes", "headroom_bytes"]]


def peak_holdings(run: Run) -> pd.DataFrame:
    """Who holds what at each device's peak: `device` and the columns of `holdings`."""
    return _with_holdings(run, peaks(run), ["device"])


def failed_requests(run: Run) -> pd.DataFrame:
    """Requests that did not fit.

    Returns
    -------
    DataFrame
        `event`, `time_ns`, `device`, `worker`, `partition`, `buffer`, `requested_bytes`, `live_bytes`,
        `limit_bytes`, `short_bytes` (how much more memory it would have taken; not above 0 where what was live left
        room, so that memory kept by the pool or fragmentation was in the way), `lock_held`.
    """
    events = steps(run)
    failed = events[events["op"] == "fail"].rename(columns={"bytes": "requested_bytes"})
    failed = failed.assign(short_bytes=failed["live_bytes"] + failed["requested_bytes"] - failed["limit_bytes"])
    columns = [
        "event", "time_ns", "device", "worker", "partition", "buffer", "requested_bytes", "live_bytes", "limit_bytes",
        "short_bytes", "lock_held",
    ]  # fmt: skip
    return failed.reset_index(names="event")[columns]


def failed_holdings(run: Run) -> pd.DataFrame:
    """What was live when each request failed: `event`, `device` and the columns of `holdings`."""
    return _with_holdings(run, failed_requests(run), ["event", "device"])


def leaks(run: Run) -> pd.DataFrame:
    """Allocations that were never freed: `device`, `buffer`, `worker`, `partition`, `bytes`, `allocated_ns`."""
    lives = allocations(run)
    kept = lives[lives["freed_ns"].isna()]
    return kept[["device", "buffer", "worker", "partition", "bytes", "allocated_ns"]].reset_index(drop=True)


def _with_holdings(run: Run, moments: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    parts = []
    for moment in moments.to_dict("records"):
        held = holdings(run, moment["event"])
        for place, column in enumerate(columns):
            held.insert(place, column, np.int64(moment[column]))
        parts.append(held)
    if not parts:
        return table((), dict.fromkeys(columns, "int64") | _HOLDING)
    return pd.concat(parts, ignore_index=True)
