"""How busy a device is, and why it idles: each idle nanosecond has exactly one cause."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.frames import as_set, device_work, root, table, window
from cuzklab.analysis.intervals import EMPTY, Intervals, complement, difference, intersection, total, union
from cuzklab.trace import Run


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


# In order of precedence: a nanosecond to which several apply has the first of them. What keeps the device itself from
# going on comes before what keeps a worker from using it, and that before there being nothing to do.
CAUSES: Mapping[str, tuple[str, Callable[[_Device], Intervals]]] = {
    "ramp": ("no kernel has run yet", _ramp),
    "drain": ("the last kernel has run", _drain),
    "transfer": ("a copy to or from the device is under way", _transfer),
    "device_sync": ("a worker waits for the whole device", lambda device: device.waits("device_sync")),
    "memory": ("a worker waits for device memory", lambda device: device.waits("memory")),
    "barrier": ("a worker waits for its CPU preparation (barrier)", lambda device: device.waits("barrier")),
    "event": ("a worker waits for an event of a stream", lambda device: device.waits("event")),
    "lock": ("a worker waits for a lock whose holder runs no kernel", _lock),
    "host": ("a call is under way, on the host", _host),
    "queue": ("workers wait for a synthesised partition: nothing is queued", lambda device: device.waits("queue")),
}
UNATTRIBUTED = "unattributed"


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
        for cause, (_, when) in CAUSES.items():
            times = when(device)
            rows += [(device.index, cause, start, end) for start, end in intersection(left, times).tolist()]
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
        (device, cause, CAUSES[cause][0] if cause in CAUSES else "the trace does not tell", len(part), part.sum(),
         part.sum() / max(end - start, 1))
        for (device, cause), part in times
    ]  # fmt: skip
    columns = {
        "device": "int64", "cause": "str", "explanation": "str", "pieces": "int64", "time_ns": "int64",
        "share": "float64",
    }  # fmt: skip
    found = table(rows, columns)
    return found.sort_values(["device", "time_ns", "cause"], ascending=[True, False, True], ignore_index=True)
