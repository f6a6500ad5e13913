"""How the clock of a capture lies to that of a run: found from ranges that both have.

A span of a run is an NVTX range of its capture, so each clock says of many of the same ranges when they began and
ended. The offset that most pairs of equal names and lengths agree on is the candidate; the ranges that lie where it
says give offset and drift by the median slope (Theil and Sen), which a minority of false pairs cannot move.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzklab.errors import BadInput

_SAMPLED = 256
_FITTED = 400
_CANDIDATES = 6
_LEAST_MATCHED = 3
_LEAST_SHARE = 0.5
_SHORTEST_FOR_DRIFT_NS = 10**9
_LEAST_FOR_DRIFT = 8
_MOST_DRIFT = 200e-6  # of two clocks of one machine
_NEAR_NS = 1_000_000
_LENGTHS_DIFFER_NS = 200_000
_LOOKED_AT = 256  # ranges of one name around one moment


@dataclass(frozen=True)
class Alignment:
    """The clock of a capture as seen from a run: ``capture = run + offset + drift · (run − reference)``.

    Attributes
    ----------
    offset_ns, reference_ns : int
    drift : float
        Seconds a second; 0 where the run is too short to tell.
    matched, shared : int
        Ranges found in both; ranges of the run whose name the capture has.
    residual_median_ns, residual_p95_ns, residual_max_ns : int
        Of the matched ranges' middles.
    pairs : ndarray of int64, shape (matched, 2)
        Rows of the run and of the capture.
    """

    offset_ns: int
    reference_ns: int
    drift: float
    matched: int
    shared: int
    residual_median_ns: int
    residual_p95_ns: int
    residual_max_ns: int
    pairs: NDArray[np.int64]

    def to_run(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the capture as times of the run."""
        since = times - self.offset_ns - self.reference_ns
        return (
            self.reference_ns + np.rint(since / (1 + self.drift)).astype(np.int64)
            if self.drift
            else times - self.offset_ns
        )

    def in_words(self) -> str:
        """What was found, for a note."""
        drift = f", drift {self.drift * 1e6:+.2f} ppm" if self.drift else ""
        return (
            f"{self.matched:,} of {self.shared:,} ranges of the run are in the capture; clocks aligned by them: offset"
            f" {self.offset_ns:,} ns{drift}; residuals: median {self.residual_median_ns:,} ns, 95 % below"
            f" {self.residual_p95_ns:,} ns, at most {self.residual_max_ns:,} ns"
        )


@dataclass(frozen=True)
class Ranges:
    """Named ranges: name, start, end of each."""

    name: Sequence[str]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


def align(run: Ranges, capture: Ranges) -> Alignment:
    """Find how the two clocks lie.

    Raises
    ------
    BadInput
        Too few ranges agree: the capture is not of this run; or two offsets fit equally well.
    """
    groups = _groups(run, capture)
    shared = sum(len(mine) for mine, _ in groups)
    if not groups:
        raise BadInput("no range of the run has its name in the capture: it is not of this run, or ran without NVTX")
    found = sorted((_fit(run, capture, groups, offset) for offset in _offsets(run, capture, groups)),
                   key=lambda one: (-len(one[2]), one[3]))  # fmt: skip
    offset, drift, pairs, spread = found[0] if found else (0, 0.0, np.empty((0, 2), np.int64), 0)
    if len(pairs) < _LEAST_MATCHED or len(pairs) < _LEAST_SHARE * shared:
        raise BadInput(
            f"only {len(pairs):,} of {shared:,} ranges of the run lie in the capture at one offset of the clocks: it is"
            " not of this run"
        )
    for other, _, also, width in found[1:]:
        if abs(other - offset) > 2 * _NEAR_NS and len(also) >= len(pairs) and width <= 2 * spread:
            raise BadInput(
                "two offsets of the clocks fit equally well; the run repeats itself too regularly to join it"
            )
    reference, residuals = _residuals(run, capture, pairs, offset, drift)
    return Alignment(
        offset, reference, drift, len(pairs), shared, int(np.median(residuals)), int(np.quantile(residuals, 0.95)),
        int(residuals.max()), pairs,
    )  # fmt: skip


Groups = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def _groups(run: Ranges, capture: Ranges) -> Groups:
    """Rows of both by name, each in order of start."""
    theirs: dict[str, list[int]] = {}
    for row in np.argsort(capture.start, kind="stable").tolist():
        theirs.setdefault(capture.name[row], []).append(row)
    mine: dict[str, list[int]] = {}
    for row in np.argsort(run.start, kind="stable").tolist():
        if run.name[row] in theirs:
            mine.setdefault(run.name[row], []).append(row)
    return [(np.array(rows), np.array(theirs[name])) for name, rows in mine.items()]


def _offsets(run: Ranges, capture: Ranges, groups: Groups) -> list[int]:
    """The offsets on which most pairs agree, the best first."""
    differences = []
    for mine, theirs in groups:
        a, b = _some(mine, _SAMPLED), _some(theirs, _SAMPLED)
        apart = capture.start[b][None, :] - run.start[a][:, None]
        longer = (capture.end - capture.start)[b][None, :] - (run.end - run.start)[a][:, None]
        differences.append(apart[np.abs(longer) <= _LENGTHS_DIFFER_NS])
    sorted_ = np.sort(np.concatenate(differences)) if differences else np.empty(0, np.int64)
    found: list[int] = []
    width = _NEAR_NS
    while len(sorted_) and len(found) < _CANDIDATES:
        last = np.searchsorted(sorted_, sorted_ + width, side="right")
        best = int(np.argmax(last - np.arange(len(sorted_))))
        chosen = sorted_[best : last[best]]
        found.append(int(np.median(chosen)))
        sorted_ = sorted_[np.abs(sorted_ - found[-1]) > 2 * width]
    return found


def _fit(run: Ranges, capture: Ranges, groups: Groups, offset: int) -> tuple[int, float, NDArray[np.int64], int]:
    """Offset at the run's middle, drift, the pairs that lie there, and how far their middles spread."""
    from scipy.stats import theilslopes

    drift, pairs, spread = 0.0, np.empty((0, 2), np.int64), 0
    for near in (_NEAR_NS, _NEAR_NS // 4):
        reference = _middle(run)
        pairs = _pairs(run, capture, groups, offset, drift, reference, near)
        if len(pairs) < _LEAST_MATCHED:
            break
        x = _middles(run, pairs[:, 0]) - reference
        y = _middles(capture, pairs[:, 1]) - _middles(run, pairs[:, 0])
        base = int(np.median(y))
        if np.ptp(x) >= _SHORTEST_FOR_DRIFT_NS and len(pairs) >= _LEAST_FOR_DRIFT:
            chosen = _some(np.arange(len(x)), _FITTED)
            slope = float(theilslopes((y - base)[chosen].astype(float), x[chosen].astype(float))[0])
            drift = slope if abs(slope) <= _MOST_DRIFT else 0.0
        offset = base + round(float(np.median((y - base) - drift * x)))
        spread = int(np.median(np.abs(y - offset - drift * x)))
    return offset, drift, pairs, spread


def _pairs(
    run: Ranges, capture: Ranges, groups: Groups, offset: int, drift: float, reference: int, near: int
) -> NDArray[np.int64]:
    """Each range of the run with the one of its name that lies nearest and is as long, each with one."""
    found: list[tuple[int, int]] = []
    for mine, theirs in groups:
        since = run.start[mine] - reference
        expected = (run.start[mine] + offset + np.rint(drift * since).astype(np.int64)).tolist()
        starts = capture.start[theirs].tolist()
        mine_long = (run.end - run.start)[mine].tolist()
        theirs_long = (capture.end - capture.start)[theirs].tolist()
        taken: set[int] = set()
        first = 0
        for place, (at, length) in enumerate(zip(expected, mine_long, strict=True)):
            while first < len(starts) and starts[first] < at - near:
                first += 1
            best, fit = -1, 0
            for other in range(first, min(first + _LOOKED_AT, len(starts))):
                if starts[other] > at + near:
                    break
                longer = abs(theirs_long[other] - length)
                if other not in taken and longer <= _LENGTHS_DIFFER_NS:
                    apart = abs(starts[other] - at) + longer
                    if best < 0 or apart < fit:
                        best, fit = other, apart
            if best >= 0:
                taken.add(best)
                found.append((int(mine[place]), int(theirs[best])))
    return np.array(found, np.int64).reshape(-1, 2)


def _residuals(
    run: Ranges, capture: Ranges, pairs: NDArray[np.int64], offset: int, drift: float
) -> tuple[int, NDArray[np.int64]]:
    reference = _middle(run)
    x = _middles(run, pairs[:, 0])
    y = _middles(capture, pairs[:, 1])
    return reference, np.abs(y - x - offset - np.rint(drift * (x - reference)).astype(np.int64))


def _middle(run: Ranges) -> int:
    return int(run.start.min()) + (int(run.end.max()) - int(run.start.min())) // 2 if len(run.start) else 0


def _middles(ranges: Ranges, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return ranges.start[rows] + (ranges.end[rows] - ranges.start[rows]) // 2


def _some(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of some rows, spread evenly."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
