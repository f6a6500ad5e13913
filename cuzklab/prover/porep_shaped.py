"""Circuits of any size with the shape of a 32 GiB PoRep partition: a workload, not a statement about storage.

`porep_counts` says what the shape is and of which rows it is made; here the rows get wires, coefficients and a witness.
Wires of one sort and rows of one sort are spread evenly over the whole, as in a circuit that repeats itself, so a range
of rows or of wires costs the same wherever it lies.

What is random is drawn by NumPy; the rest is array operations that NumPy does or, with `arrays` = CuPy, a GPU: the same
circuit and the same witness, faster by orders of magnitude. Either way what comes out lies in the host's memory.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuzklab.backends.host import FR_MODULUS, ints_to_limbs
from cuzklab.prover.arrays import on_host, repeated
from cuzklab.prover.model import CodedMatrix, ConstraintSystem
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

    start: Any
    terms: Any
    bits: Any

    def of(self, arrays: Any) -> "LongRows":
        """The same as arrays of another module."""
        return LongRows(*(arrays.asarray(each) for each in (self.start, self.terms, self.bits)))

    def derived(self, arrays: Any = np) -> Any:
        """For each term: which derived bit."""
        return repeated(arrays, self.start, self.terms) + _position_in_run(arrays, self.terms)

    def exponents(self, arrays: Any = np) -> Any:
        """For each term: the power of two it counts with. They go round, so that columns are equally high."""
        return _position_in_run(arrays, self.terms) % repeated(arrays, self.bits - _CARRY_BITS, self.terms)


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
    circuit = coded_porep_circuit(constraints, seed)
    system = circuit.system
    return replace(circuit, system=replace(system, a=system.a.plain(), b=system.b.plain(), c=system.c.plain()))


def coded_porep_circuit(constraints: int, seed: int, arrays: Any = np) -> PorepCircuit:
    """As `porep_circuit`, with matrices whose entries have numbers of coefficients: a fourth of the memory.

    Parameters
    ----------
    arrays : module
        NumPy, or CuPy for its current device.
    """
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
    wires = {sort: counts.inputs + place for sort, place in _spread(arrays, sizes).items()}
    wires["public"] = arrays.arange(1, counts.inputs)
    operands = {
        "xor": _operands(arrays, counts.xors, 2, counts.primary, rng),
        "majority": _operands(arrays, counts.triples, 3, counts.primary, rng),
        "choice": _operands(arrays, counts.triples, 3, counts.primary, rng),
    }
    operands["and"] = operands["majority"][:, :2]
    constants = _random_field_elements(counts.significant, rng)
    long = _long_rows(counts)
    system = _system(arrays, counts, wires, operands, constants, long.of(arrays))
    wires, operands = ({name: on_host(each) for name, each in some.items()} for some in (wires, operands))
    return PorepCircuit(counts, system, wires, operands, constants, long)


def porep_witness(circuit: PorepCircuit, seed: int, arrays: Any = np) -> np.ndarray:
    """A witness that satisfies the circuit, (wires, 4) uint64, plain; its public inputs and primary bits are random.

    `arrays` as in `coded_porep_circuit`.
    """
    counts = circuit.counts
    wires, operands = (
        {name: arrays.asarray(each) for name, each in some.items()} for some in (circuit.wires, circuit.operands)
    )
    rng = np.random.default_rng([seed, 1])
    bits = arrays.zeros(circuit.system.wires, np.uint8)
    bits[0] = 1
    primary = arrays.asarray(rng.integers(0, 2, counts.primary, np.uint8))
    bits[wires["primary"]] = primary
    x, y = primary[operands["xor"]].T
    bits[wires["xor"]] = x ^ y
    x, y, z = primary[operands["majority"]].T
    bits[wires["and"]] = x & y
    bits[wires["majority"]] = (x & y) | (x & z) | (y & z)
    x, y, z = primary[operands["choice"]].T
    bits[wires["choice"]] = arrays.where(z, x, y)
    derived = bits[_derived_in_a(arrays, counts, wires)]
    columns = int(circuit.long.bits.max())
    bits[wires["result"]] = _add_up(arrays, circuit.long.of(arrays), columns, derived)

    witness = arrays.zeros((circuit.system.wires, 4), np.uint64)
    witness[:, 0] = bits
    public = _random_field_elements(counts.inputs - 1, rng)
    significant = _significant_values(counts, public, circuit.constants)
    for sort, values in (("public", public), ("significant", significant)):
        witness[wires[sort]] = arrays.asarray(ints_to_limbs(values, limbs=4))
    return on_host(witness)


def _spread(arrays: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Places 0, 1, … for members of several sorts, each sort evenly spread over all; ascending within a sort."""
    where = arrays.concatenate([(arrays.arange(size) + 0.5) / max(size, 1) for size in sizes.values()])
    places = arrays.empty(len(where), np.int64)
    places[arrays.argsort(where, kind="stable")] = arrays.arange(len(where))
    ends = np.cumsum(list(sizes.values())).tolist()
    return {sort: places[end - size : end] for (sort, size), end in zip(sizes.items(), ends, strict=True)}


def _operands(arrays: Any, count: int, arity: int, primary: int, rng: np.random.Generator) -> Any:
    """`arity` different primary bits for each of `count` derived ones, near each other."""
    window = max(1, min(_WINDOW, primary // arity))
    steps = 1 + arrays.asarray(rng.integers(0, window, (count, arity)))
    return (arrays.arange(count)[:, None] * primary // max(count, 1) + arrays.cumsum(steps, axis=1)) % primary


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


def _derived_in_a(arrays: Any, counts: PorepCounts, wires: dict[str, Any]) -> Any:
    """Wires of the derived bits that long rows add, ascending: all but a few XORs, which are in no row of A."""
    sorts = [wires["xor"][counts.derived_not_in_a :], wires["and"], wires["majority"], wires["choice"]]
    return arrays.sort(arrays.concatenate(sorts))


def _position_in_run(arrays: Any, lengths: Any) -> Any:
    """0, 1, … length − 1 for each of the lengths, one after the other."""
    ends = arrays.cumsum(lengths)
    return arrays.arange(int(ends[-1])) - repeated(arrays, ends - lengths, lengths)


def _add_up(arrays: Any, long: LongRows, columns: int, derived: Any) -> Any:
    """The result bits of all long rows, of at most `columns` bits each, one row after the other, little end first."""
    rows = len(long.bits)
    cell = repeated(arrays, arrays.arange(rows) * columns, long.terms) + long.exponents(arrays)
    terms = derived[long.derived(arrays)].astype(np.float64)
    column_sums = arrays.bincount(cell, weights=terms, minlength=rows * columns)
    column_sums = column_sums.astype(np.int64).reshape(rows, columns)
    carry = arrays.zeros(rows, np.int64)
    results = arrays.empty((rows, columns), np.uint8)
    for i in range(columns):
        carry += column_sums[:, i]
        results[:, i] = carry & 1
        carry >>= 1
    return results[arrays.arange(columns) < long.bits[:, None]]


def _significant_values(counts: PorepCounts, public: list[int], constants: list[int]) -> list[int]:
    """Values of the field elements: one for each public input, then products of earlier ones."""
    values = [(value + constants[i]) % FR_MODULUS for i, value in enumerate(public)]
    squares = counts.b_nonzeros - counts.constraints
    for i in range(counts.significant - len(public)):
        constant = constants[len(public) + i]
        other = values[_second_factor(i, counts)] + (constant if i < squares else 0)
        values.append((values[i] + constant) * other % FR_MODULUS)
    return values


def _second_factor(i: Any, counts: PorepCounts) -> Any:
    """Which field element product i has as its second factor: the same as its first, as far as B's density goes."""
    return i % counts.significant_in_b


def _system(
    arrays: Any,
    counts: PorepCounts,
    wires: dict[str, Any],
    operands: dict[str, Any],
    constants: list[int],
    long: LongRows,
) -> ConstraintSystem:
    """The three matrices, sort of row after sort of row."""
    public, significant = wires["public"], wires["significant"]
    primary = {sort: wires["primary"][numbers] for sort, numbers in operands.items()}
    boolean = arrays.sort(arrays.concatenate((wires["primary"], wires["result"])))
    products = counts.significant - len(public)
    squares = counts.b_nonzeros - counts.constraints
    sizes = {sort: len(wires[sort]) for sort in ("xor", "and", "majority", "choice")}
    sizes |= {"boolean": len(boolean), "root": len(public), "square": squares, "product": products - squares}
    rows = _spread(arrays, sizes | {"long": counts.long_rows})
    values = ints_to_limbs([1, FR_MODULUS - 1, 2, FR_MODULUS - 2, *(1 << i for i in range(255)), *constants], limbs=4)
    constant = _CONSTANTS + arrays.arange(counts.significant)
    of_products = (("square", arrays.arange(squares)), ("product", arrays.arange(squares, products)))
    derived = _derived_in_a(arrays, counts, wires)

    a = _Matrix(arrays, counts.constraints)
    a.add(rows["boolean"], [0, boolean], [_PLUS, _MINUS])
    a.add(rows["xor"], [primary["xor"][:, 0]], [_TWO])
    x, y = primary["majority"][:, :2].T
    a.add(rows["and"], [x], [_PLUS])
    a.add(rows["majority"], [wires["and"], x, y], [_TWO, _MINUS, _MINUS])
    x, y = primary["choice"][:, :2].T
    a.add(rows["choice"], [x, y], [_PLUS, _MINUS])
    a.add(rows["root"], [0, public], [constant[: len(public)], _PLUS])
    for sort, number in of_products:
        a.add(rows[sort], [0, significant[number]], [constant[len(public) + number], _PLUS])
    a.add_runs(rows["long"], long.terms, derived[long.derived(arrays)], _POWERS + long.exponents(arrays))

    b = _Matrix(arrays, counts.constraints)
    b.add(rows["boolean"], [boolean], [_PLUS])
    b.add(rows["xor"], [primary["xor"][:, 1]], [_PLUS])
    b.add(rows["and"], [primary["majority"][:, 1]], [_PLUS])
    b.add(rows["majority"], [primary["majority"][:, 2]], [_PLUS])
    b.add(rows["choice"], [primary["choice"][:, 2]], [_PLUS])
    b.add(rows["root"], [0], [_PLUS])
    for sort, number in of_products:
        second = significant[_second_factor(number, counts)]
        if sort == "square":
            b.add(rows[sort], [0, second], [constant[len(public) + number], _PLUS])
        else:
            b.add(rows[sort], [second], [_PLUS])
    b.add(rows["long"], [0], [_PLUS])

    c = _Matrix(arrays, counts.constraints)
    x, y = primary["xor"].T
    c.add(rows["xor"], [x, y, wires["xor"]], [_PLUS, _PLUS, _MINUS])
    c.add(rows["and"], [wires["and"]], [_PLUS])
    c.add(rows["majority"], [wires["and"], wires["majority"]], [_PLUS, _MINUS])
    c.add(rows["choice"], [wires["choice"], primary["choice"][:, 1]], [_PLUS, _MINUS])
    c.add(rows["root"], [significant[: len(public)]], [_PLUS])
    for sort, number in of_products:
        c.add(rows[sort], [significant[len(public) + number]], [_PLUS])
    c.add_runs(rows["long"], long.bits, wires["result"], _POWERS + _position_in_run(arrays, long.bits))

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

    def __init__(self, arrays: Any, rows: int) -> None:
        self._arrays = arrays
        self._length = arrays.zeros(rows, np.int64)
        self._blocks: list[tuple[Any, Any, Any]] = []  # rows, and the entries of each: (n, k) or one after the other

    def add(self, rows: Any, wires: list[Any], coefficients: list[Any]) -> None:
        """Rows with one entry for each of `wires`, which may come in any order."""
        arrays = self._arrays
        entries = [
            arrays.broadcast_to(
                arrays.asarray(wire, np.int64) << 32 | arrays.asarray(coefficient, np.int64), rows.shape
            )
            for wire, coefficient in zip(wires, coefficients, strict=True)
        ]
        for last in range(len(entries) - 1, 0, -1):
            for i in range(last):
                entries[i : i + 2] = arrays.minimum(*entries[i : i + 2]), arrays.maximum(*entries[i : i + 2])
        self._take(rows, len(entries), arrays.stack(entries, axis=1))

    def add_runs(self, rows: Any, lengths: Any, wire: Any, coefficient: Any) -> None:
        """Rows of given lengths; their entries, ascending by wire, follow each other."""
        self._take(rows, lengths, wire << 32 | coefficient)

    def _take(self, rows: Any, lengths: Any, entries: Any) -> None:
        self._length[rows] = lengths
        self._blocks.append((rows, (entries >> 32).astype(np.uint32), (entries & 0xFFFFFFFF).astype(np.uint32)))

    def build(self, values: np.ndarray) -> CodedMatrix:
        """The matrix, on the host."""
        arrays = self._arrays
        row_start = arrays.concatenate((arrays.zeros(1, np.int64), arrays.cumsum(self._length)))
        nonzeros = int(row_start[-1])
        wire, coefficient = arrays.empty(nonzeros, np.uint32), arrays.empty(nonzeros, np.uint32)
        for rows, block_wire, block_coefficient in self._blocks:
            if not len(rows):
                continue
            if block_wire.ndim == 2:
                place = row_start[rows][:, None] + arrays.arange(block_wire.shape[1])
            else:
                lengths = self._length[rows]
                place = repeated(arrays, row_start[rows], lengths) + _position_in_run(arrays, lengths)
            wire[place], coefficient[place] = block_wire, block_coefficient
        return CodedMatrix(*map(on_host, (row_start, wire, coefficient)), values)
