"""How locks and memory hang together: which lock is taken under which, convoys, and who waits for whom at a moment.

Two locks that are taken in both orders can deadlock, even if they did not in this run; a lock under which memory is
waited for can as well, where whoever holds the memory wants that lock. Both show as a cycle of the graph of
`wait_for`, over locks and memory alike.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.frames import root, table
from cuzklab.trace import Run

MEMORY = "device memory"
_EDGES = {"held": "str", "wanted": "str", "times": "int64", "workers": "int64", "inverted": "bool"}
_WAITS = {"waiter": "str", "kind": "str", "on": "str", "holder": "str", "since_ns": "int64", "until_ns": "int64"}
_CONVOYS = {
    "lock": "str", "start_ns": "int64", "end_ns": "int64", "holds": "int64", "workers": "int64",
    "hold_mean_ns": "float64",
}  # fmt: skip
_FEWEST_HOLDS = 3  # hand-overs with somebody always waiting that make a convoy


def order(run: Run) -> pd.DataFrame:
    """Which lock, or device memory, was wanted by a worker while it held which lock.

    Returns
    -------
    DataFrame
        `held`, `wanted` (a lock, or `MEMORY` for a wait for memory), `times`, `workers`, `inverted` (the opposite order
        occurs too, directly or over others: a cycle); inverted ones first.
    """
    uses = locks.uses(run)
    got = uses[~uses["given_up"]]
    waits = run.table("waits")
    waits = waits[waits["kind"] == "memory"]
    requests = pd.concat(
        [
            uses[["worker", "lock", "requested_ns"]].rename(columns={"lock": "wanted"}),
            pd.DataFrame({"worker": root(waits["worker"]), "wanted": MEMORY, "requested_ns": waits["start"]}),
        ]
    )
    pairs = got.merge(requests, on="worker", suffixes=("", "_then"))
    at = pairs["requested_ns_then"]
    pairs = pairs[(pairs["acquired_ns"] <= at) & (at < pairs["released_ns"]) & (pairs["lock"] != pairs["wanted"])]
    counted = (
        pairs.groupby(["lock", "wanted"]).agg(times=("worker", "size"), workers=("worker", "nunique")).reset_index()
    )
    follows: dict[str, set[str]] = {}
    for held, wanted in zip(counted["lock"], counted["wanted"], strict=True):
        follows.setdefault(held, set()).add(wanted)
    # Whoever waits for memory waits for those that hold it, and they may want any lock that is taken elsewhere.
    if MEMORY in set(counted["wanted"]):
        follows[MEMORY] = set(uses.loc[uses["wait_ns"] > 0, "lock"])
    rows = [
        (row.lock, row.wanted, row.times, row.workers, row.lock in _reachable(follows, row.wanted))
        for row in counted.itertuples()
    ]
    return table(rows, _EDGES).sort_values(["inverted", "times"], ascending=[False, False], ignore_index=True)


def _reachable(follows: dict[str, set[str]], start: str) -> set[str]:
    found, left = set(), [start]
    while left:
        for following in follows.get(left.pop(), ()):
            if following not in found:
                found.add(following)
                left.append(following)
    return found


def wait_for(run: Run, time_ns: int) -> pd.DataFrame:
    """The wait-for graph of a moment: an edge from each waiting worker to each that holds what it waits for.

    Waits for locks and for memory stand beside each other; a cycle among them is a deadlock for as long as it lasts.

    Returns
    -------
    DataFrame
        `waiter`, `kind` (lock, memory, …), `on`, `holder` (empty: nobody that the trace names), `since_ns`, `until_ns`.
    """
    return table(_edges(run, time_ns), _WAITS).sort_values(["since_ns", "waiter"], ignore_index=True)


def _edges(run: Run, time_ns: int) -> Iterator[tuple[object, ...]]:
    waits = run.table("waits")
    uses = locks.uses(run)
    holding = uses[(uses["acquired_ns"] <= time_ns) & (time_ns < uses["released_ns"])]
    for wait in waits[(waits["start"] <= time_ns) & (time_ns < waits["end"])].itertuples():
        waiter = wait.worker.partition("/")[0]
        holders = list(holding.loc[holding["lock"] == wait.on, "worker"]) if wait.kind == "lock" else []
        holders = holders or [name.partition("/")[0] for name in wait.holder.split(", ") if name]
        for holder in [name for name in dict.fromkeys(holders) if name != waiter] or [""]:
            yield waiter, wait.kind, wait.on, holder, wait.start, wait.end


def most_waiting(run: Run) -> tuple[int, int] | None:
    """The stretch in which the most workers wait for a lock or for memory that somebody holds: from, until.

    Of several the longest. None where nobody waits for anybody.
    """
    waits = run.table("waits")
    waits = waits[waits["kind"].isin(("lock", "memory")) & (waits["holder"] != "") & (waits["end"] > waits["start"])]
    if not len(waits):
        return None
    times = np.unique(np.concatenate([waits["start"], waits["end"]])).astype(np.int64)
    begun = np.searchsorted(np.sort(waits["start"].to_numpy()), times[:-1], side="right")
    ended = np.searchsorted(np.sort(waits["end"].to_numpy()), times[:-1], side="right")
    waiting = begun - ended
    lasting = np.where(waiting == waiting.max(), np.diff(times), 0)
    place = int(lasting.argmax())
    return int(times[place]), int(times[place + 1])


def cycles(edges: pd.DataFrame) -> list[tuple[str, ...]]:
    """Cycles of a wait-for graph, each once, from its first worker by name."""
    follows: dict[str, set[str]] = {}
    for waiter, holder in zip(edges["waiter"], edges["holder"], strict=True):
        if holder:
            follows.setdefault(waiter, set()).add(holder)
    found: list[tuple[str, ...]] = []

    def search(first: str, path: tuple[str, ...]) -> None:
        for following in sorted(follows.get(path[-1], ())):
            if following == first:
                found.append(path)
            elif following > first and following not in path:
                search(first, (*path, following))

    for first in sorted(follows):
        search(first, (first,))
    return found


def convoys(run: Run) -> pd.DataFrame:
    """Stretches in which a lock went from worker to worker with the next one always waiting already.

    Returns
    -------
    DataFrame
        `lock`, `start_ns`, `end_ns`, `holds`, `workers`, `hold_mean_ns`; the longest first. Three holds are the least.
    """
    rows: list[tuple[object, ...]] = []
    uses = locks.uses(run)
    for lock, part in uses[~uses["given_up"]].groupby("lock"):
        held = part.sort_values("acquired_ns", kind="stable")
        handed = (held["requested_ns"] < held["released_ns"].shift(1)) & (held["worker"] != held["worker"].shift(1))
        for _, stretch in held.groupby((~handed).cumsum()):
            if len(stretch) >= _FEWEST_HOLDS:
                rows.append(
                    (lock, stretch["acquired_ns"].min(), stretch["released_ns"].max(), len(stretch),
                     stretch["worker"].nunique(), stretch["hold_ns"].mean())
                )  # fmt: skip
    found = table(rows, _CONVOYS)
    longest = found["end_ns"] - found["start_ns"]
    return found.loc[longest.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)
