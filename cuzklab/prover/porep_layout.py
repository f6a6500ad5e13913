"""Where the wires and rows of a PoRep-shaped circuit lie, and of which bits the derived ones are made.

Wires of one sort and rows of one sort are spread evenly over the whole, as in a circuit that repeats itself, so a range
of rows or of wires costs the same wherever it lies. `arrays` is NumPy, or CuPy for its current device.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.prover.arrays import repeated
from cuzklab.prover.porep_counts import PorepCounts

# A long row's terms have fewer different exponents than its result has bits: room for the carries.
_CARRY_BITS = 4
# Operands of a derived bit lie this near to each other: a real circuit uses wires soon after it makes them.
_WINDOW = 1024


@dataclass(frozen=True)
class LongRows:
    """Rows of additions: row j adds up `terms[j]` derived bits, from the one numbered `start[j]`, to `bits[j]` bits."""

    start: Any
    terms: Any
    bits: Any

    def of(self, arrays: Any) -> "LongRows":
        """The same as arrays of another module."""
        return LongRows(*(arrays.asarray(each) for each in (self.start, self.terms, self.bits)))

    def derived(self, arrays: Any = np) -> Any:
        """For each term: which derived bit."""
        return repeated(arrays, self.start, self.terms) + position_in_run(arrays, self.terms)

    def exponents(self, arrays: Any = np) -> Any:
        """For each term: the power of two it counts with. They go round, so that columns are equally high."""
        return position_in_run(arrays, self.terms) % repeated(arrays, self.bits - _CARRY_BITS, self.terms)


def spread(arrays: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Places 0, 1, … for members of several sorts, each sort evenly spread over all; ascending within a sort."""
    where = arrays.concatenate([(arrays.arange(size) + 0.5) / max(size, 1) for size in sizes.values()])
    places = arrays.empty(len(where), np.int64)
    places[arrays.argsort(where, kind="stable")] = arrays.arange(len(where))
    ends = np.cumsum(list(sizes.values())).tolist()
    return {sort: places[end - size : end] for (sort, size), end in zip(sizes.items(), ends, strict=True)}


def operands_near(arrays: Any, count: int, arity: int, primary: int, rng: np.random.Generator) -> Any:
    """`arity` different primary bits for each of `count` derived ones, near each other."""
    window = max(1, min(_WINDOW, primary // arity))
    steps = 1 + arrays.asarray(rng.integers(0, window, (count, arity)))
    return (arrays.arange(count)[:, None] * primary // max(count, 1) + arrays.cumsum(steps, axis=1)) % primary


def long_rows_of(counts: PorepCounts) -> LongRows:
    """Segments of equal length that overlap as little as possible and together cover all derived bits in A."""
    rows = counts.long_rows
    terms = np.full(rows, counts.long_terms // rows)
    terms[: counts.long_terms % rows] += 1
    bits = np.full(rows, counts.results // rows)
    bits[: counts.results % rows] += 1
    start = np.arange(rows) * (counts.derived - counts.derived_not_in_a - terms) // (rows - 1)
    return LongRows(start, terms, bits)


def derived_in_a(arrays: Any, counts: PorepCounts, wires: dict[str, Any]) -> Any:
    """Wires of the derived bits that long rows add, ascending: all but a few XORs, which are in no row of A."""
    sorts = [wires["xor"][counts.derived_not_in_a :], wires["and"], wires["majority"], wires["choice"]]
    return arrays.sort(arrays.concatenate(sorts))


def position_in_run(arrays: Any, lengths: Any) -> Any:
    """0, 1, … length − 1 for each of the lengths, one after the other."""
    ends = arrays.cumsum(lengths)
    return arrays.arange(int(ends[-1])) - repeated(arrays, ends - lengths, lengths)


def second_factor(i: Any, counts: PorepCounts) -> Any:
    """Which field element product i has as its second factor: the same as its first, as far as B's density goes."""
    return i % counts.significant_in_b
