"""Who keeps a device idle: holders of locks, who would have run instead, and who waits for whom at the worst moment."""

from cuzklab.analysis import blocking, lock_order, occupancy
from cuzklab.analysis.frames import window
from cuzklab.report import display, figures, schedule, tables
from cuzklab.report.naming import label
from cuzklab.trace import Run
from cuzklab.units import format_seconds

_MOST_ROWS = 40


def blame(run: Run) -> None:
    """Who held locks while the device was idle, who would have run, and the wait-for graph of the worst moment."""
    start_ns, _ = window(run)
    holders = occupancy.idle_under_locks(run)
    display.table(
        holders, "Time in which the device was idle and a worker waited for a lock, by who held it.",
        headings={"time_ns": "idle"}, rows=_MOST_ROWS,
    )  # fmt: skip
    candidates = blocking.would_have_run(run)
    stopped = candidates[candidates["idle_ns"] > 0]
    if not len(stopped):
        display.markup(
            '<p class="cz-absent">No worker stood in the queue of a held lock while the'
            " device was idle, so nobody would have run instead.</p>"
        )
    else:
        display.text(_worst(stopped.iloc[0]))
        display.table(
            stopped.assign(start_ns=stopped["start_ns"] - start_ns),
            "Waits for a lock during which the device was idle, the most telling first. Place: in the lock's queue; the"
            " first would have run first. Idle: of the device while it waited. Work: of the device, once it had the"
            " lock. Fillable: the smaller of both; of several who wait at a time only one can fill it, so these figures"
            " do not add up.",
            headings={"lock": "waits for", "holder": "held by", "start_ns": "from", "wait_ns": "waited",
                      "idle_ns": "device idle", "work_ns": "work", "fillable_ns": "fillable"},
            fold=f"Table: who would have run, {len(stopped)} wait{'s' if len(stopped) > 1 else ''}", rows=_MOST_ROWS,
        )  # fmt: skip
    _wait_for(run, start_ns)


def _worst(one: object) -> str:
    place = "first" if one.place == 1 else f"no. {one.place}"
    return (
        f"{one.worker} would have run. It stood {place} in the queue of {one.lock} for"
        f" {format_seconds(one.wait_ns * 1e-9)}, held by {one.holder}; the device was idle for"
        f" {format_seconds(one.idle_ns * 1e-9)} of it, of which its own work would have filled"
        f" {format_seconds(one.fillable_ns * 1e-9)}."
    )


def _wait_for(run: Run, start_ns: int) -> None:
    stretch = lock_order.most_waiting(run)
    if stretch is None:
        display.markup(
            f'<p class="cz-absent">No wait-for graph: in {tables.escape(label(run))} nobody waits for what another'
            " worker holds.</p>"
        )
        return
    since, until = stretch
    found = lock_order.wait_for(run, since)
    edges = [
        (row.waiter, row.holder, schedule.readable(row.on))
        for row in found.itertuples()
        if row.holder and row.holder != row.waiter
    ]
    when = f"{format_seconds((since - start_ns) * 1e-9)} after the start, for {format_seconds((until - since) * 1e-9)}"
    if edges:
        ends = "a cycle: a deadlock while it lasts" if lock_order.cycles(found) else "no cycle"
        display.figure(figures.wait_graph(edges, f"{label(run)}, when the most workers wait: {when}; {ends}."))
    display.table(
        found.assign(since_ns=found["since_ns"] - start_ns, until_ns=found["until_ns"] - start_ns),
        f"Every wait of that moment ({when}).", headings={"since_ns": "since", "until_ns": "until", "on": "for"},
        fold="Table: who waits for whom when the most workers wait",
    )  # fmt: skip
