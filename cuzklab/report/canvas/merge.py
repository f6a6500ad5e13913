"""A smaller picture of a large run: the longest spans as they are, the shortest merged into bars."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cuzklab.report.canvas.picture import Picture

_FINEST = 1 << 20  # parts of the run's length: the finest stretch in which spans are merged


def thinned(picture: Picture, at_most: int) -> Picture:
    """The picture in at most about `at_most` bars, or itself where it has no more.

    Spans shorter than a stretch of time (a power of two of the run's length over 2^20) that follow each other in a row
    inside one such stretch become one bar from the first one's start to the last one's end, of the kind that takes most
    of their time. The stretch is the shortest that makes the picture small enough. The picture's `note` says how many
    spans were merged; `source` of a merged bar is −1.
    """
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


def _groups(picture: Picture, row: NDArray[np.int64], stretch: int) -> NDArray[np.int64]:
    """The number of the bar that each span becomes or joins."""
    short, part = picture.length < stretch, picture.start // stretch
    joins = short[1:] & short[:-1] & (part[1:] == part[:-1]) & (row[1:] == row[:-1])
    return np.concatenate(([0], np.cumsum(~joins)))


def _merged(picture: Picture, row: NDArray[np.int64], group: NDArray[np.int64], count: int) -> Picture:
    first = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(np.append(first, len(group)))
    last_end = np.maximum.reduceat(picture.start + picture.length, first)
    most = _dominant(picture, group, first)
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
        length=last_end - picture.start[first],
        **{name: getattr(picture, name)[most] for name in ("kind", "label", "worker", "partition")},
        open=np.logical_or.reduceat(picture.open, first),
        merged=np.add.reduceat(picture.merged, first),
        source=np.where(alone, picture.source[first], -1),
        note=" ".join(filter(None, (picture.note, note))),
    )


def _dominant(picture: Picture, group: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each group the longest span of the kind that takes most of its time."""
    kinds = len(picture.kinds)
    key, of_key = np.unique(group * kinds + picture.kind, return_inverse=True)
    time = np.bincount(of_key, picture.length.astype(float))
    # Of each group the key with most time, the first kind of equal ones.
    order = np.lexsort((key, -time, key // kinds))
    best = order[np.flatnonzero(np.diff(key[order] // kinds, prepend=-1))]
    chosen = np.zeros(len(key), dtype=bool)
    chosen[best] = True
    own = np.flatnonzero(chosen[of_key])
    ranked = own[np.lexsort((own, -picture.length[own], group[own]))]
    found = ranked[np.flatnonzero(np.diff(group[ranked], prepend=-1))]
    assert len(found) == len(first)
    return found
