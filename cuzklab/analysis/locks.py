"""Contention: how long locks are waited for and held, who waits for whom, and how they change hands."""

import numpy as np
import pandas as pd

from cuzklab.analysis.frames import per_run, root, window
from cuzklab.analysis.intervals import covered, total, union
from cuzklab.trace import Run

USE_COLUMNS = (
    "lock", "worker", "partition", "requested_ns", "acquired_ns", "released_ns", "wait_ns", "hold_ns", "contended",
    "given_up", "held_to_end",
)  # fmt: skip


@per_run
def uses(run: Run) -> pd.DataFrame:
    """Every use of every lock, in order of request.

    A request that was given up waits until then, or to the end of the recording where the trace does not tell, and
    holds nothing; a lock that was not released is held to the end.

    Returns
    -------
    DataFrame
        Columns `USE_COLUMNS`; times int64 nanoseconds; `contended` is True where somebody held the lock when it was
        requested.
    """
    rows = run.table("locks")
    _, end = window(run)
    given_up, held_to_end = rows["acquired"].isna(), rows["acquired"].notna() & rows["released"].isna()
    acquired = rows["acquired"].fillna(rows["released"]).fillna(end).astype(np.int64)
    released = rows["released"].fillna(end).astype(np.int64).where(~given_up, acquired)
    return pd.DataFrame(
        {
            "lock": rows["lock"],
            "worker": root(rows["worker"]),
            "partition": rows["partition"],
            "requested_ns": rows["requested"],
            "acquired_ns": acquired,
            "released_ns": released,
            "wait_ns": acquired - rows["requested"],
            "hold_ns": released - acquired,
            "contended": rows["holder_at_request"] != "",
            "given_up": given_up,
            "held_to_end": held_to_end,
        }
    )[list(USE_COLUMNS)]


def contention(run: Run, by_worker: bool = False) -> pd.DataFrame:
    """Waits and holds of each lock, or of each lock and worker.

    Returns
    -------
    DataFrame
        One row a lock (and worker), the longest total wait first: `lock`, (`worker`,) `uses`, `contended`,
        `contended_share`, `wait_total_ns`, `wait_mean_ns`, `wait_max_ns`, `hold_total_ns`, `hold_mean_ns`,
        `hold_max_ns`, `held_share` (part of the run's wall time in which it is held, by that worker where one is
        given), `handoffs` (acquisitions by another worker than the one before), `handoff_delay_ns` (total time from
        release to acquisition where the next was already waiting).
    """
    rows = uses(run)
    keys = ["lock", "worker"] if by_worker else ["lock"]
    start, end = window(run)
    handed = _handoffs(rows)
    rows = rows.assign(handoff=handed["handoff"], delay_ns=handed["delay_ns"])
    grouped = rows.groupby(keys, sort=True)
    table = grouped.agg(
        uses=("wait_ns", "size"), contended=("contended", "sum"), wait_total_ns=("wait_ns", "sum"),
        wait_mean_ns=("wait_ns", "mean"), wait_max_ns=("wait_ns", "max"), hold_total_ns=("hold_ns", "sum"),
        hold_mean_ns=("hold_ns", "mean"), hold_max_ns=("hold_ns", "max"), handoffs=("handoff", "sum"),
        handoff_delay_ns=("delay_ns", "sum"),
    )  # fmt: skip
    held = [total(union(part["acquired_ns"], part["released_ns"])) for _, part in grouped]
    table["held_share"] = np.array(held, dtype=float) / max(end - start, 1)
    table["contended_share"] = table["contended"] / table["uses"]
    columns = [
        "uses", "contended", "contended_share", "wait_total_ns", "wait_mean_ns", "wait_max_ns", "hold_total_ns",
        "hold_mean_ns", "hold_max_ns", "held_share", "handoffs", "handoff_delay_ns",
    ]  # fmt: skip
    table = table[columns].reset_index()
    return table.sort_values(["wait_total_ns", *keys], ascending=[False] + [True] * len(keys), ignore_index=True)


def _handoffs(rows: pd.DataFrame) -> pd.DataFrame:
    """For each use: whether another worker had the lock before, and the delay of a waiting successor."""
    got = rows[~rows["given_up"]].sort_values(["lock", "acquired_ns"], kind="stable")
    before = got.groupby("lock")[["worker", "released_ns"]].shift(1)
    known = before["worker"].notna()
    waited = known & (got["requested_ns"] < before["released_ns"])
    delay = (got["acquired_ns"] - before["released_ns"].fillna(0).astype(np.int64)).where(waited, 0).clip(lower=0)
    handoff = known & (before["worker"] != got["worker"])
    found = pd.DataFrame({"handoff": handoff.astype(np.int64), "delay_ns": delay.astype(np.int64)})
    return found.reindex(rows.index, fill_value=0)


def waited_for(run: Run) -> pd.DataFrame:
    """Who waited for whom: each nanosecond of a wait is charged to whoever held the lock in it.

    Returns
    -------
    DataFrame
        `lock`, `victim`, `holder` (empty: nobody held it, a hand-over was under way), `waits` (number of waits with
        some time charged), `time_ns`; the longest first. The times of a victim add up to its waits, unless several
        permits of a semaphore are held at once.
    """
    rows = uses(run)
    pieces = [_charge(part) for _, part in rows.groupby("lock")]
    charged = pd.concat(pieces) if pieces else _charge(rows)
    table = charged[charged["time_ns"] > 0].groupby(["lock", "victim", "holder"], as_index=False)
    table = table.agg(waits=("time_ns", "size"), time_ns=("time_ns", "sum"))
    return table.sort_values(["time_ns", "lock", "victim"], ascending=[False, True, True], ignore_index=True)


def _charge(rows: pd.DataFrame) -> pd.DataFrame:
    """Overlap of each wait for a lock with each hold of it, and what no hold covers."""
    waits = rows[rows["wait_ns"] > 0]
    holds = rows[rows["hold_ns"] > 0].sort_values("acquired_ns", kind="stable")
    acquired, released = holds["acquired_ns"].to_numpy(), holds["released_ns"].to_numpy()
    # Holds of several permits may overlap; with the running maximum a search finds the first that can matter.
    reached = np.maximum.accumulate(released) if len(released) else released
    requested, until = waits["requested_ns"].to_numpy(), waits["acquired_ns"].to_numpy()
    first = np.searchsorted(reached, requested, side="right")
    counts = np.maximum(np.searchsorted(acquired, until, side="left") - first, 0)
    wait = np.repeat(np.arange(len(waits)), counts)
    hold = np.repeat(first, counts) + np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    time = np.minimum(until[wait], released[hold]) - np.maximum(requested[wait], acquired[hold])
    nobody = (until - requested) - covered(requested, until, union(acquired, released))
    victims, holders = waits["worker"].to_numpy(object), holds["worker"].to_numpy(object)
    lock = rows["lock"].iloc[0] if len(rows) else ""
    return pd.DataFrame(
        {
            "lock": lock,
            "victim": np.concatenate((victims[wait], victims)),
            "holder": np.concatenate((holders[hold], np.full(len(waits), "", dtype=object))),
            "time_ns": np.concatenate((np.maximum(time, 0), nobody)).astype(np.int64),
        }
    )
