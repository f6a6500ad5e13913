"""Arrays in parts: where they are cut, and copies of the next part made while kernels use the last.

The first copy of an MSM lies in the open, and the kernels of a masked sum's last part do; so one begins with small
parts, the other ends with them.
"""

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cuzklab.backends.cuda import arrivals, observe
from cuzklab.backends.cuda.arena import carved
from cuzklab.backends.cuda.launch import cupy

Edges = Sequence[tuple[int, int]]
"""First index of each part, and the index after its last."""

_GROWTH = 3.5
"""Kernels of an MSM take three to four times as long as the copy of the points, where the link is PCIe 5."""
_OF_LARGEST = 1 + 1 / _GROWTH + 1 / _GROWTH**2
_LEAST_TAIL = 1 << 16
"""What is not worth cutting any further: its kernels are as long as launching them."""


def equal(n: int, size: int) -> Edges:
    """Parts of one size."""
    return [(begin, min(begin + size, n)) for begin in range(0, n, size)]


def largest(n: int) -> int:
    """The last of three growing parts."""
    return math.ceil(n / _OF_LARGEST)


def growing(n: int, size: int) -> Edges:
    """Parts that grow up to a size, so that the copy of the first is short and each other is over in time.

    Three where they suffice: each further one costs an MSM another addition a bucket.
    """
    last = min(size, largest(n))
    ends = [min(n, max(1, round(last / _GROWTH**2)))]
    ends.append(min(n, ends[0] + max(1, round(last / _GROWTH))))
    while ends[-1] < n:
        ends.append(min(n, ends[-1] + size))
    return [(begin, end) for begin, end in zip([0, *ends], ends) if end > begin]


def shrinking(n: int, size: int, multiple: int = 64) -> Edges:
    """Parts of one size, the last of which is cut in a half and two quarters; edges at multiples of a number."""
    edges = list(equal(n, size))
    begin, end = edges.pop()
    for _ in range(2):
        if end - begin > _LEAST_TAIL:
            edges.append((begin, begin + -(-(end - begin) // (2 * multiple)) * multiple))
            begin = edges[-1][1]
    return [*edges, (begin, end)]


_spare_streams: dict[int, list[Any]] = {}
_mutex = threading.Lock()


@contextlib.contextmanager
def _copy_stream() -> Iterator[Any]:
    """A stream for copies; making one takes as long as several launches."""
    module = cupy()
    device = module.cuda.runtime.getDevice()
    with _mutex:
        spare = _spare_streams.setdefault(device, [])
        stream = spare.pop() if spare else None
    stream = stream or module.cuda.Stream(non_blocking=True)
    try:
        yield stream
    except BaseException:
        stream.synchronize()  # copies may be under way to memory that is given up
        raise
    with _mutex:
        spare.append(stream)


def batches(edges: Edges, *sources: Any) -> Iterator[tuple[Any, ...]]:
    """Parts of arrays on the device, each with its first index: slices, or copies made while the last part is used.

    What is copied is announced: see `arrivals.needed`, which must be called before a kernel reads it. Smaller arrays
    are copied first. The first copy is queued at once, so that it runs while its user prepares. Copies overlap with
    kernels where the host's memory is page-locked (`cupyx.empty_pinned`).
    """
    if not any(isinstance(source, np.ndarray) for source in sources):
        return ((begin, *(source[begin:end] for source in sources)) for begin, end in edges)
    copying = _copied(edges, sources)
    next(copying)
    return copying


def _copied(edges: Edges, sources: Sequence[Any]) -> Iterator[Any]:
    """The parts, after a first value that says that their copying has begun."""
    module = cupy()
    runtime, main = module.cuda.runtime, module.cuda.get_current_stream()
    moving = [place for place, it in enumerate(sources) if isinstance(it, np.ndarray)]
    moving.sort(key=lambda place: sources[place][0].nbytes)
    # Two of each that is copied, used in turn; what lies on the device already is used there.
    most = [max(end - begin for begin, end in edges[turn::2]) for turn in range(min(2, len(edges)))]
    shapes = [(sources[place].shape[1:], sources[place].dtype.type) for place in moving]
    room = iter(carved([((rows, *shape), dtype) for rows in most for shape, dtype in shapes]))
    buffers = [{place: next(room) for place in moving} for _ in most]
    # What has had this memory before is over where the stream is idle.
    consumed = [None if main.done else main.record(module.cuda.Event(disable_timing=True))] * 2

    with _copy_stream() as copies:

        def upload(number: int) -> None:
            begin, end = edges[number]
            if (before := consumed[number % 2]) is not None:
                copies.wait_event(before)
            for place, buffer in buffers[number % 2].items():
                part = sources[place][begin:end]
                begun = observe.begin_copy(copies)
                runtime.memcpyAsync(
                    buffer.data.ptr, part.ctypes.data, part.nbytes, runtime.memcpyHostToDevice, copies.ptr
                )
                there = observe.end_copy(part.nbytes, copies, begun, needed=True)
                event = there or copies.record(module.cuda.Event(disable_timing=True))
                arrivals.announce(buffer, event, main, observed=there is not None)

        upload(0)
        yield None
        for number, (begin, end) in enumerate(edges):
            here = buffers[number % 2]
            parts = [here[at][: end - begin] if at in here else it[begin:end] for at, it in enumerate(sources)]
            if number + 1 < len(edges):
                upload(number + 1)
            yield begin, *parts
            for buffer in here.values():
                arrivals.needed(buffer)  # whatever its user did, the next part is not copied over it before
            consumed[number % 2] = main.record(module.cuda.Event(disable_timing=True))
