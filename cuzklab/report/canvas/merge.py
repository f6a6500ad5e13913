"""A smaller picture of a large run: the longest spans as they are, the shortest merged; of memory what is highest."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cuzklab.report.canvas.memory import Memory, kept_events
from cuzklab.report.canvas.picture import Picture

_GOLDEN = (5**0.5 - 1) / 2
MOST_EVENTS = 20_000  # changes of a device's memory: several a pixel of any screen
_FINEST = 1 << 20  # parts of the run's length: the finest stretch in which spans are merged


def thinned(picture: Picture, at_most: int) -> Picture:
    """The picture in at most about `at_most` bars, or itself where it has no more.

    Spans shorter than a stretch of time (a power of two of the run's length over 2^20) that follow each other in a row
    inside one such stretch become one bar from the first one's start to the last one's end. The stretch is the shortest
    that makes the picture small enough. The picture's `note` says how many spans were merged; `source` of a merged bar
    is −1 and its `idle` the time in it in which none of its spans is.

    A merged bar has the kind and the names of one of its spans, each with the chance of its part of their time: were it
    always the longest, what takes a little everywhere would be nowhere. The draws are evenly spread (multiples of the
    golden ratio), so that many bars together show each kind in its proportion, and a picture is always the same.

    Of a device's memory that changes more often than `MOST_EVENTS`, the highest and the last moment of each of equally
    long stretches are kept: peaks are exact, and so is what they consist of.
    """
    picture = _fewer_events(picture)
    if len(picture) <= at_most:
        return picture
    row = np.repeat(np.arange(len(picture.row_count)), picture.row_count)
    stretch = max(picture.length_ns // _FINEST, 1)
    while True:
        group = _groups(picture, row, stretch)
        count = int(group[-1]) + 1
        if count <= at_most or stretch >= picture.length_ns:
            break
        stretch *= 2
    return _merged(picture, row, group, count)


def _fewer_events(picture: Picture) -> Picture:
    """The picture with at most `MOST_EVENTS` changes of each device's memory."""
    events = sum(len(memory.time) for memory in picture.memory)
    memory = tuple(_highest(memory, picture.length_ns) for memory in picture.memory)
    kept = sum(len(memory.time) for memory in memory)
    if kept == events:
        return picture
    note = f"Device memory: {kept:,} of {events:,} changes are kept, with every stretch's highest."
    return replace(picture, memory=memory, note=" ".join(filter(None, (picture.note, note))))


def _highest(memory: Memory, length_ns: int) -> Memory:
    if len(memory.time) <= MOST_EVENTS:
        return memory
    stretch = memory.time // max(-(-length_ns * 2 // MOST_EVENTS), 1)
    # The last of the highest of each stretch, and its last.
    last = np.flatnonzero(np.append(np.diff(stretch), 1))
    order = np.lexsort((np.arange(len(stretch)), memory.live_bytes, stretch))
    return kept_events(memory, np.union1d(last, order[last]))


def _groups(picture: Picture, row: NDArray[np.int64], stretch: int) -> NDArray[np.int64]:
    """The number of the bar that each span becomes or joins."""
    short, part = picture.length < stretch, picture.start // stretch
    joins = short[1:] & short[:-1] & (part[1:] == part[:-1]) & (row[1:] == row[:-1])
    return np.concatenate(([0], np.cumsum(~joins)))


def _merged(picture: Picture, row: NDArray[np.int64], group: NDArray[np.int64], count: int) -> Picture:
    first = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(np.append(first, len(group)))
    ends = np.maximum.reduceat(picture.start + picture.length, first)
    busy = np.add.reduceat(picture.length, first)
    one = _drawn(picture.length, busy, first, sizes)
    alone = sizes == 1
    rows = row[first]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    note = (
        f"Kept as {count:,} bars: {int(sizes[~alone].sum()):,} spans, the shortest, "
        f"are merged into {int((~alone).sum()):,} bars."
    )
    return replace(
        picture,
        row_lane=picture.row_lane[rows[begins]],
        row_first=begins,
        row_count=np.diff(np.append(begins, count)),
        start=picture.start[first],
        length=ends - picture.start[first],
        idle=np.where(alone, picture.idle[first], ends - picture.start[first] - busy),
        **{name: getattr(picture, name)[one] for name in ("kind", "label", "worker", "partition")},
        open=np.logical_or.reduceat(picture.open, first),
        merged=np.add.reduceat(picture.merged, first),
        source=np.where(alone, picture.source[first], -1),
        note=" ".join(filter(None, (picture.note, note))),
    )


def _drawn(
    length: NDArray[np.int64], busy: NDArray[np.int64], first: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of each group one span, drawn by the time that spans take."""
    reached = np.cumsum(length)
    share = np.modf((np.arange(len(first)) + 0.5) * _GOLDEN)[0]
    wanted = reached[first] - length[first] + (share * busy).astype(np.int64)
    return np.clip(np.searchsorted(reached, wanted, side="right"), first, first + sizes - 1)
