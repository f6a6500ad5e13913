"""Circuits of any size with the shape of a 32 GiB PoRep partition: a workload, not a statement about storage.

`porep_counts` says what the shape is and of which rows it is made; here the rows get wires, coefficients and a witness.
Wires of one sort and rows of one sort are spread evenly over the whole, as in a circuit that repeats itself, so a range
of rows or of wires costs the same wherever it lies.
"""

from dataclasses import dataclass

import numpy as np

from cuzklab.backends.host import FR_MODULUS, ints_to_limbs
from cuzklab.prover.model import ConstraintSystem, SparseMatrix
from cuzklab.prover.porep_counts import PorepCounts, porep_counts

# A long row's terms have fewer different exponents than its result has bits: room for the carries.
_CARRY_BITS = 4
# Operands of a derived bit lie this near to each other: a real circuit uses wires soon after it makes them.
_WINDOW = 1024

# Coefficients are numbered: these four, then 2^0 … 2^254, then the constants of the rows of field elements.
_PLUS, _MINUS, _TWO, _MINUS_TWO, _POWERS = range(5)
_CONSTANTS = _POWERS + 255


@dataclass(frozen=True)
class PorepCircuit:
    """A PoRep-shaped circuit, and what makes witnesses for it.

    Attributes
    ----------
    counts : PorepCounts
    system : ConstraintSystem
    wires : dict of str to (n,) int64
        Wires of each sort: public, primary, result, xor, and, majority, choice, significant. Ascending.
    operands : dict of str to (n, 2 or 3) int64
        For each sort of derived bit: the numbers of the primary bits it is made of.
    constants : list of int
        The field element that each row of field elements adds.
    long : LongRows
    """

    counts: PorepCounts
    system: ConstraintSystem
    wires: dict[str, np.ndarray]
    operands: dict[str, np.ndarray]
    constants: list[int]
    long: "LongRows"


@dataclass(frozen=True)
class LongRows:
    """Rows of additions: row j adds up `terms[j]` derived bits, from the one numbered `start[j]`, to `bits[j]` bits."""

    start: np.ndarray
    terms: np.ndarray
    bits: np.ndarray

    def derived(self) -> np.ndarray:
        """For each term: which derived bit."""
        return np.repeat(self.start, self.terms) + _position_in_run(self.terms)

    def exponents(self) -> np.ndarray:
        """For each term: the power of two it counts with. They go round, so that columns are equally high."""
        return _position_in_run(self.terms) % np.repeat(self.bits - _CARRY_BITS, self.terms)


def porep_shaped(constraints: int, seed: int) -> tuple[ConstraintSystem, np.ndarray]:
    """A satisfiable circuit with the shape of a PoRep partition, and a witness.

    Parameters
    ----------
    constraints : int
        See `porep_counts.porep_constraints` for the number that fills a domain as the model does.
    seed : int
        Of everything that is random in both.

    Returns
    -------
    system : ConstraintSystem
    witness : (wires, 4) uint64, plain

    Raises
    ------
    BadInput
        Too few constraints to keep the shape.
    """
    circuit = porep_circuit(constraints, seed)
    return circuit.system, porep_witness(circuit, seed)


def porep_circuit(constraints: int, seed: int) -> PorepCircuit:
    """A PoRep-shaped circuit, for which `porep_witness` makes as many witnesses as there are partitions to prove."""
    counts = porep_counts(constraints)
    rng = np.random.default_rng([seed, 0])
    sizes = {
        "primary": counts.primary,
        "result": counts.results,
        "xor": counts.xors,
        "and": counts.triples,
        "majority": counts.triples,
        "choice": counts.triples,
        "significant": counts.significant,
    }
    wires = {sort: counts.inputs + place for sort, place in _spread(sizes).items()}
    wires["public"] = np.arange(1, counts.inputs)
    operands = {
        "xor": _operands(counts.xors, 2, counts.primary, rng),
        "majority": _operands(counts.triples, 3, counts.primary, rng),
        "choice": _operands(counts.triples, 3, counts.primary, rng),
    }
    operands["and"] = operands["majority"][:, :2]
    constants = _random_field_elements(counts.significant, rng)
    long = _long_rows(counts)
    system = _system(counts, wires, operands, constants, long)
    return PorepCircuit(counts, system, wires, operands, constants, long)


def porep_witness(circuit: PorepCircuit, seed: int) -> np.ndarray:
    """A witness that satisfies the circuit, (wires, 4) uint64, plain; its public inputs and primary bits are random."""
    counts, wires, operands = circuit.counts, circuit.wires, circuit.operands
    rng = np.random.default_rng([seed, 1])
    bits = np.zeros(circuit.system.wires, np.uint8)
    bits[0] = 1
    primary = rng.integers(0, 2, counts.primary, np.uint8)
    bits[wires["primary"]] = primary
    x, y = primary[operands["xor"]].T
    bits[wires["xor"]] = x ^ y
    x, y, z = primary[operands["majority"]].T
    bits[wires["and"]] = x & y
    bits[wires["majority"]] = (x & y) | (x & z) | (y & z)
    x, y, z = primary[operands["choice"]].T
    bits[wires["choice"]] = np.where(z, x, y)
    bits[wires["result"]] = _add_up(circuit.long, bits[_derived_in_a(counts, wires)])

    witness = np.zeros((circuit.system.wires, 4), np.uint64)
    witness[:, 0] = bits
    public = _random_field_elements(counts.inputs - 1, rng)
    witness[wires["public"]] = ints_to_limbs(public, limbs=4)
    witness[wires["significant"]] = ints_to_limbs(_significant_values(counts, public, circuit.constants), limbs=4)
    return witness


def _spread(sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Places 0, 1, … for members of several sorts, each sort evenly spread over all; ascending within a sort."""
    where = np.concatenate([(np.arange(size) + 0.5) / max(size, 1) for size in sizes.values()])
    places = np.empty(len(where), np.int64)
    places[np.argsort(where, kind="stable")] = np.arange(len(where))
    return dict(zip(sizes, np.split(places, np.cumsum(list(sizes.values()))[:-1]), strict=True))


def _operands(count: int, arity: int, primary: int, rng: np.random.Generator) -> np.ndarray:
    """`arity` different primary bits for each of `count` derived ones, near each other."""
    window = max(1, min(_WINDOW, primary // arity))
    steps = 1 + rng.integers(0, window, (count, arity))
    return (np.arange(count)[:, None] * primary // max(count, 1) + np.cumsum(steps, axis=1)) % primary


def _random_field_elements(count: int, rng: np.random.Generator) -> list[int]:
    """Field elements other than 0 and 1. The 64 surplus bits make the bias of the remainder negligible."""
    data = rng.bytes(40 * count)
    return [2 + int.from_bytes(data[i : i + 40], "little") % (FR_MODULUS - 2) for i in range(0, len(data), 40)]


def _long_rows(counts: PorepCounts) -> LongRows:
    """Segments of equal length that overlap as little as possible and together cover all derived bits in A."""
    rows = counts.long_rows
    terms = np.full(rows, counts.long_terms // rows)
    terms[: counts.long_terms % rows] += 1
    bits = np.full(rows, counts.results // rows)
    bits[: counts.results % rows] += 1
    start = np.arange(rows) * (counts.derived - counts.derived_not_in_a - terms) // (rows - 1)
    return LongRows(start, terms, bits)


def _derived_in_a(counts: PorepCounts, wires: dict[str, np.ndarray]) -> np.ndarray:
    """Wires of the derived bits that long rows add, ascending: all but a few XORs, which are in no row of A."""
    sorts = [wires["xor"][counts.derived_not_in_a :], wires["and"], wires["majority"], wires["choice"]]
    return np.sort(np.concatenate(sorts))


def _position_in_run(lengths: np.ndarray) -> np.ndarray:
    """0, 1, … length − 1 for each of the lengths, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)


def _add_up(long: LongRows, derived: np.ndarray) -> np.ndarray:
    """The result bits of all long rows, one row after the other, little end first."""
    rows, columns = len(long.bits), int(long.bits.max())
    cell = np.repeat(np.arange(rows) * columns, long.terms) + long.exponents()
    column_sums = np.bincount(cell, weights=derived[long.derived()], minlength=rows * columns)
    column_sums = column_sums.astype(np.int64).reshape(rows, columns)
    carry = np.zeros(rows, np.int64)
    results = np.empty((rows, columns), np.uint8)
    for i in range(columns):
        carry += column_sums[:, i]
        results[:, i] = carry & 1
        carry >>= 1
    return results[np.arange(columns) < long.bits[:, None]]


def _significant_values(counts: PorepCounts, public: list[int], constants: list[int]) -> list[int]:
    """Values of the field elements: one for each public input, then products of earlier ones."""
    values = [(value + constants[i]) % FR_MODULUS for i, value in enumerate(public)]
    squares = counts.b_nonzeros - counts.constraints
    for i in range(counts.significant - len(public)):
        constant = constants[len(public) + i]
        other = values[_second_factor(i, counts)] + (constant if i < squares else 0)
        values.append((values[i] + constant) * other % FR_MODULUS)
    return values


def _second_factor(i: int | np.ndarray, counts: PorepCounts) -> int | np.ndarray:
    """Which field element product i has as its second factor: the same as its first, as far as B's density goes."""
    return i % counts.significant_in_b


def _system(
    counts: PorepCounts,
    wires: dict[str, np.ndarray],
    operands: dict[str, np.ndarray],
    constants: list[int],
    long: LongRows,
) -> ConstraintSystem:
    """The three matrices, sort of row after sort of row."""
    public, significant = wires["public"], wires["significant"]
    primary = {sort: wires["primary"][numbers] for sort, numbers in operands.items()}
    boolean = np.sort(np.concatenate((wires["primary"], wires["result"])))
    products = counts.significant - len(public)
    squares = counts.b_nonzeros - counts.constraints
    sizes = {sort: len(wires[sort]) for sort in ("xor", "and", "majority", "choice")}
    sizes |= {"boolean": len(boolean), "root": len(public), "square": squares, "product": products - squares}
    rows = _spread(sizes | {"long": counts.long_rows})
    a, b, c = _Matrix(counts.constraints), _Matrix(counts.constraints), _Matrix(counts.constraints)

    a.add(rows["boolean"], [0, boolean], [_PLUS, _MINUS])
    b.add(rows["boolean"], [boolean], [_PLUS])

    x, y = primary["xor"].T
    a.add(rows["xor"], [x], [_TWO])
    b.add(rows["xor"], [y], [_PLUS])
    c.add(rows["xor"], [x, y, wires["xor"]], [_PLUS, _PLUS, _MINUS])

    x, y, z = primary["majority"].T
    a.add(rows["and"], [x], [_PLUS])
    b.add(rows["and"], [y], [_PLUS])
    c.add(rows["and"], [wires["and"]], [_PLUS])
    a.add(rows["majority"], [wires["and"], x, y], [_TWO, _MINUS, _MINUS])
    b.add(rows["majority"], [z], [_PLUS])
    c.add(rows["majority"], [wires["and"], wires["majority"]], [_PLUS, _MINUS])

    x, y, z = primary["choice"].T
    a.add(rows["choice"], [x, y], [_PLUS, _MINUS])
    b.add(rows["choice"], [z], [_PLUS])
    c.add(rows["choice"], [wires["choice"], y], [_PLUS, _MINUS])

    constant = _CONSTANTS + np.arange(counts.significant)
    a.add(rows["root"], [0, public], [constant[: len(public)], _PLUS])
    b.add(rows["root"], [0], [_PLUS])
    c.add(rows["root"], [significant[: len(public)]], [_PLUS])
    for sort, number in (("square", np.arange(squares)), ("product", np.arange(squares, products))):
        added, second = constant[len(public) + number], significant[_second_factor(number, counts)]
        a.add(rows[sort], [0, significant[number]], [added, _PLUS])
        b.add(
            rows[sort], [0, second] if sort == "square" else [second], [added, _PLUS] if sort == "square" else [_PLUS]
        )
        c.add(rows[sort], [significant[len(public) + number]], [_PLUS])

    derived = _derived_in_a(counts, wires)
    a.add_runs(rows["long"], long.terms, derived[long.derived()], _POWERS + long.exponents())
    b.add(rows["long"], [0], [_PLUS])
    c.add_runs(rows["long"], long.bits, wires["result"], _POWERS + _position_in_run(long.bits))

    values = ints_to_limbs([1, FR_MODULUS - 1, 2, FR_MODULUS - 2, *(1 << i for i in range(255)), *constants], limbs=4)
    return ConstraintSystem(
        wires=counts.inputs + counts.aux,
        public_outputs=0,
        public_inputs=len(public),
        a=a.build(values),
        b=b.build(values),
        c=c.build(values),
    )


class _Matrix:
    """A matrix under construction from blocks of equally made rows, given in any order."""

    def __init__(self, rows: int) -> None:
        self._length = np.zeros(rows, np.int64)
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, rows: np.ndarray, wires: list[np.ndarray | int], coefficients: list[np.ndarray | int]) -> None:
        """Rows with one entry for each of `wires`, which may come in any order."""
        shape = (len(wires), len(rows))
        wire = np.stack([np.broadcast_to(np.asarray(each, np.int64), shape[1:]) for each in wires], axis=1)
        coefficient = np.stack(
            [np.broadcast_to(np.asarray(each, np.int64), shape[1:]) for each in coefficients], axis=1
        )
        order = np.argsort(wire, axis=1)
        wire, coefficient = np.take_along_axis(wire, order, 1), np.take_along_axis(coefficient, order, 1)
        self.add_runs(rows, np.full(len(rows), len(wires)), wire.ravel(), coefficient.ravel())

    def add_runs(self, rows: np.ndarray, lengths: np.ndarray, wire: np.ndarray, coefficient: np.ndarray) -> None:
        """Rows of given lengths; their entries, ascending by wire, follow each other."""
        self._length[rows] = lengths
        self._blocks.append((rows, lengths, wire.astype(np.uint32), coefficient.astype(np.uint32)))

    def build(self, values: np.ndarray) -> SparseMatrix:
        row_start = np.concatenate(([0], np.cumsum(self._length)))
        wire, coefficient = np.empty(row_start[-1], np.uint32), np.empty(row_start[-1], np.uint32)
        for rows, lengths, block_wire, block_coefficient in self._blocks:
            if len(rows):
                place = np.repeat(row_start[rows], lengths) + _position_in_run(lengths)
                wire[place], coefficient[place] = block_wire, block_coefficient
        return SparseMatrix(row_start, wire, values[coefficient])
