"""How long a launch takes to reach the device, and what it costs to watch one.

The event before a kernel happens at once where its stream is empty, while the launch is still on its way. So the start
of such a kernel is told by the launch: the time of the call, and what is measured here with a kernel that does nothing.
"""

import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from cuzklab.backends.cuda import observe
from cuzklab.backends.cuda.field import UNIT
from cuzklab.backends.cuda.launch import cupy, launch

if TYPE_CHECKING:
    from cuzklab.backends.cuda.device import CudaDevice

_LAUNCHES = 64
_BUSY_BYTES = 256 << 20
_BUSY_TIMES = 16  # as long as launching all the kernels takes, and several times longer


def _nothing(place: object) -> None:
    launch(UNIT, "fr_to_montgomery", 1, 128, (place, place, np.uint64(0)))


def launch_ns(device: "CudaDevice") -> int:
    """From the call to the start of a kernel that finds its stream empty, the median of 64.

    Its end is an event's, on the machine's clock; what it lasts from event to event is taken off, as it is where many
    of it wait behind other work.
    """
    with device.queue("kernels") as stream:
        place = cupy().empty(_BUSY_BYTES // 8, np.uint64)
        _nothing(place)
        stream.synchronize()
        anchor = device.anchor()
        with observe.observed(device.events, stream) as alone:
            for _ in range(_LAUNCHES):
                _nothing(place)
                stream.synchronize()
        with observe.observed(device.events, stream) as queued:
            for _ in range(_BUSY_TIMES):
                place.data.memset_async(0, _BUSY_BYTES)
            with observe.consecutive():
                for _ in range(_LAUNCHES // 4):
                    _nothing(place)
        stream.synchronize()
        moment_ns = device.moment_ns
        lasting = [(start, end) for _, (start,), end, _ in queued.kernels[1:]]
        lasts_ns = median(moment_ns(end, anchor) - moment_ns(start, anchor) for start, end in lasting)
        found_ns = median(moment_ns(end, anchor) - launched_ns for _, _, end, launched_ns in alone.kernels)
        alone.forget()
        queued.forget()
    return max(0, round(found_ns - lasts_ns))


def event_ns(device: "CudaDevice", rounds: int = 31, launches: int = 256) -> float:
    """What one event of a watched kernel costs the thread that launches, with all that is noted; median of rounds.

    Kernels with an event each, launched with nobody watching in turn, on the clock: the driver's calls are in it.
    """

    def launched(seen: observe.Observed | None) -> float:
        stream.synchronize()
        began = time.perf_counter_ns()
        for _ in range(launches):
            _nothing(place)
        took = (time.perf_counter_ns() - began) / launches
        stream.synchronize()
        if seen is not None:
            seen.forget()
        return took

    def watched() -> float:
        with observe.observed(device.events, stream) as seen, observe.consecutive():
            return launched(seen)

    with device.queue("kernels") as stream:
        place = cupy().empty(8, np.uint64)
        launched(None)
        return median(watched() - launched(None) for _ in range(rounds))


def costs() -> dict[str, float]:
    """What an event costs on the first device, by the name that `live.recording_cost` knows it by."""
    from cuzklab.backends.cuda.device import CudaDevice

    device = CudaDevice(0, 1 << 30)
    try:
        return {"device event": event_ns(device)}
    finally:
        device.close()
