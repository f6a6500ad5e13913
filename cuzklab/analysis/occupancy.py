"""How busy a device is, and why it idles: each idle nanosecond has exactly one cause."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.frames import as_set, device_work, root, table, window
from cuzklab.analysis.intervals import EMPTY, Intervals, complement, difference, intersection, total, union
from cuzklab.trace import Run
from cuzklab.trace.schema import TABLES

SATURATED = 0.9  # a device this busy between its first and last kernel is the limit itself


@dataclass(frozen=True)
class _Device:
    """What the causes look at: a run, one of its devices, the workers that use it, and when its kernels ran."""

    run: Run
    index: int
    workers: frozenset[str]
    busy: Intervals
    start: int
    end: int

    def waits(self, kind: str) -> Intervals:
        rows = self.run.table("waits")
        rows = rows[(rows["kind"] == kind) & root(rows["worker"]).isin(self.workers)]
        return union(rows["start"], rows["end"])

    def memory_spans(self, names: str) -> Intervals:
        """Work on memory whose name begins with one of some words, as a regular expression."""
        rows = self.run.table("spans")
        rows = rows[(rows["category"] == "memory") & root(rows["worker"]).isin(self.workers)]
        rows = rows[rows["name"].str.match(names)] if len(rows) else rows
        return union(rows["start"], rows["end"])


def _profiler(device: _Device) -> Intervals:
    """What a profiler says that it did itself."""
    if "api_calls" not in TABLES:
        return EMPTY
    rows = device.run.table("api_calls")
    rows = rows[rows["api"] == "profiler"]
    return union(rows["start"], rows["end"])


def _ramp(device: _Device) -> Intervals:
    return union([device.start], [device.busy[0, 0] if len(device.busy) else device.end])


def _drain(device: _Device) -> Intervals:
    return union([device.busy[-1, 1]], [device.end]) if len(device.busy) else EMPTY


def _transfer(device: _Device) -> Intervals:
    rows = device.run.table("transfers")
    rows = rows[rows["device"] == device.index]
    return union(rows["start"], rows["end"])


def _lock(device: _Device) -> Intervals:
    rows = locks.uses(device.run)
    rows = rows[rows["worker"].isin(device.workers)]
    return union(rows["requested_ns"], rows["acquired_ns"])


def _host(device: _Device) -> Intervals:
    rows = calls(device.run)
    return as_set(rows[rows["worker"].isin(device.workers)])


@dataclass(frozen=True)
class Cause:
    """A reason for which a device idles.

    Attributes
    ----------
    explanation : str
        What is the case in such a nanosecond.
    idles : str
        How the device then idles, for a sentence: "idles 12 % *on copies*".
    owed_to : str
        Whose slowness it is.
    when : callable
        The times at which it applies, whether or not the device idles in them.
    """

    explanation: str
    idles: str
    owed_to: str
    when: Callable[[_Device], Intervals]


_DEVICE_MEMORY = r"(?:alloc|trim|free(?!.host))"
_HOST_MEMORY = r"(?:pin|unpin|free.host)"

# In order of precedence: a nanosecond to which several apply has the first of them. What keeps the device itself from
# going on comes before what keeps a worker from using it, and that before there being nothing to do.
CAUSES: Mapping[str, Cause] = {
    "ramp": Cause("no kernel has run yet", "before its first kernel", "the start of the run", _ramp),
    "drain": Cause("the last kernel has run", "after its last kernel", "the end of the run", _drain),
    "profiler": Cause(
        "the profiler was at work itself", "on the profiler's own work",
        "the profiler, without which it would be busier",
        _profiler,
    ),
    "transfer": Cause(
        "a copy to or from the device is under way", "on copies", "copies to and from the device", _transfer
    ),
    "device_sync": Cause(
        "a worker waits for the whole device", "on device-wide waits", "device-wide synchronisation",
        lambda device: device.waits("device_sync"),
    ),
    "memory": Cause(
        "a worker waits for device memory", "on waits for memory", "device memory",
        lambda device: device.waits("memory"),
    ),
    "allocation": Cause(
        "a worker allocates, frees or trims device memory", "on allocation", "allocating and freeing device memory",
        lambda device: device.memory_spans(_DEVICE_MEMORY),
    ),
    "barrier": Cause(
        "a worker waits for its CPU preparation (barrier)", "at the barrier",
        "CPU preparation (prep_msm), for which the sums on the device wait",
        lambda device: device.waits("barrier"),
    ),
    "event": Cause(
        "a worker waits for an event of a stream", "on stream events", "work that kernels wait for in their stream",
        lambda device: device.waits("event"),
    ),
    "host_memory": Cause(
        "a worker pins, unpins or frees host memory", "on host memory", "pinning, unpinning and freeing host memory",
        lambda device: device.memory_spans(_HOST_MEMORY),
    ),
    "lock": Cause(
        "a worker waits for a lock whose holder runs no kernel", "on lock waits", "locks held over work on the host",
        _lock,
    ),
    "host": Cause(
        "a call is under way, on the host", "on host work inside calls", "work on the host inside the calls", _host
    ),
    "queue": Cause(
        "workers wait for a synthesised partition: nothing is queued", "with nothing queued",
        "synthesis on the CPU, which does not deliver partitions fast enough",
        lambda device: device.waits("queue"),
    ),
}  # fmt: skip
UNATTRIBUTED = "unattributed"
_UNKNOWN = Cause(
    "the trace does not tell", "for no reason that the trace tells", "something that the trace does not tell",
    lambda device: EMPTY,
)  # fmt: skip


def cause_named(name: str) -> Cause:
    """What a cause in the tables means."""
    return CAUSES.get(name, _UNKNOWN)


def _devices(run: Run) -> list[_Device]:
    start, end = window(run)
    work, memory = device_work(run), run.table("vram")
    found = []
    users = pd.DataFrame(
        {
            "device": pd.concat([work["device"], memory["device"]]),
            "worker": pd.concat([work["worker"], root(memory["worker"])]),
        }
    )
    for index in sorted(work["device"].unique()):
        workers = frozenset(users.loc[users["device"] == index, "worker"])
        # A worker that never got to use the device is told by its name alone.
        named = (root(run.table(name)["worker"]).unique() for name in ("locks", "waits", "spans"))
        workers |= {worker for names in named for worker in names if worker.startswith(f"gpu{index}.")}
        busy = as_set(work[work["device"] == index])
        found.append(_Device(run, int(index), workers, busy, start, end))
    return found


def occupancy(run: Run) -> pd.DataFrame:
    """Both kinds of utilisation of each device on which something ran.

    Returns
    -------
    DataFrame
        `device`, `window_ns` (the run's wall time), `kernel_busy_ns`, `kernel_occupancy`, `call_busy_ns`,
        `call_occupancy`, `idle_ns` (window − kernel busy).
    """
    rows = []
    for device in _devices(run):
        whole, busy, called = device.end - device.start, total(device.busy), total(_host(device))
        rows.append((device.index, whole, busy, busy / max(whole, 1), called, called / max(whole, 1), whole - busy))
    shares = dict.fromkeys(("kernel_occupancy", "call_occupancy"), "float64")
    names = ("device", "window_ns", "kernel_busy_ns", "kernel_occupancy", "call_busy_ns", "call_occupancy", "idle_ns")
    return table(rows, dict.fromkeys(names, "int64") | shares)


def idle_pieces(run: Run) -> pd.DataFrame:
    """The idle time of each device, cut by cause.

    Returns
    -------
    DataFrame
        `device`, `cause` (a key of `CAUSES`, or `UNATTRIBUTED`), `start_ns`, `end_ns`, in order of time. Pieces do not
        overlap and add up to the idle time.
    """
    rows = []
    for device in _devices(run):
        left = complement(device.busy, device.start, device.end)
        for name, cause in CAUSES.items():
            times = cause.when(device)
            rows += [(device.index, name, start, end) for start, end in intersection(left, times).tolist()]
            left = difference(left, times)
        rows += [(device.index, UNATTRIBUTED, start, end) for start, end in left.tolist()]
    pieces = table(rows, {"device": "int64", "cause": "str", "start_ns": "int64", "end_ns": "int64"})
    return pieces.sort_values(["device", "start_ns"], ignore_index=True)


def idle(run: Run) -> pd.DataFrame:
    """What the idle time of each device is spent on.

    Returns
    -------
    DataFrame
        `device`, `cause`, `explanation`, `pieces`, `time_ns`, `share` (of the run's wall time); the largest first.
        Over the causes of a device `time_ns` adds up to its idle time.
    """
    pieces = idle_pieces(run)
    start, end = window(run)
    times = (pieces["end_ns"] - pieces["start_ns"]).groupby([pieces["device"], pieces["cause"]])
    rows = [
        (device, cause, cause_named(cause).explanation, len(part), part.sum(), part.sum() / max(end - start, 1))
        for (device, cause), part in times
    ]  # fmt: skip
    columns = {
        "device": "int64", "cause": "str", "explanation": "str", "pieces": "int64", "time_ns": "int64",
        "share": "float64",
    }  # fmt: skip
    found = table(rows, columns)
    return found.sort_values(["device", "time_ns", "cause"], ascending=[True, False, True], ignore_index=True)


@dataclass(frozen=True)
class Binding:
    """What limits a device: itself, or the cause of the largest part of its idle time.

    Attributes
    ----------
    device : int
    cause : str
        ``device``, or a key of `CAUSES`.
    busy_share : float
        Kernels between the first and the last.
    inner_ns : int
        Time between the first kernel's start and the last one's end.
    between_ns : mapping
        Idle time between the first and the last kernel, by cause.
    """

    device: int
    cause: str
    busy_share: float
    inner_ns: int
    between_ns: Mapping[str, int]

    @property
    def owed_to(self) -> str:
        """Whose slowness it is, for a sentence."""
        return "the device" if self.cause == "device" else cause_named(self.cause).owed_to


def bindings(run: Run) -> list[Binding]:
    """What limits each device of a run on which something ran."""
    causes = idle(run)
    found = []
    for device in occupancy(run).itertuples():
        mine = causes[causes["device"] == device.device]
        times = dict(zip(mine["cause"], mine["time_ns"].tolist(), strict=True))
        inner = device.window_ns - times.pop("ramp", 0) - times.pop("drain", 0)
        share = device.kernel_busy_ns / max(inner, 1)
        worst = max(times, key=times.get, default="device")
        found.append(Binding(device.device, "device" if share >= SATURATED else worst, share, inner, times))
    return found


def idle_under_locks(run: Run) -> pd.DataFrame:
    """Idle time in which a worker waits for a lock, by who held that lock.

    Returns
    -------
    DataFrame
        `device`, `lock`, `holder`, `time_ns`; the largest first. Where several locks are waited for at once, each
        counts.
    """
    pieces, uses = idle_pieces(run), locks.uses(run)
    rows = []
    for device, part in pieces[pieces["cause"] == "lock"].groupby("device"):
        idle_then = as_set(part)
        for lock, used in uses.groupby("lock"):
            wanted = intersection(idle_then, union(used["requested_ns"], used["acquired_ns"]))
            for holder, held in used.groupby("worker"):
                time = total(intersection(wanted, union(held["acquired_ns"], held["released_ns"])))
                if time:
                    rows.append((device, lock, holder, time))
    found = table(rows, {"device": "int64", "lock": "str", "holder": "str", "time_ns": "int64"})
    return found.sort_values(["device", "time_ns"], ascending=[True, False], ignore_index=True)
