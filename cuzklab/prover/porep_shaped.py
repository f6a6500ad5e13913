"""Circuits of any size with the shape of a 32 GiB PoRep partition: a workload, not a statement about storage.

`porep_counts` says what the shape is, `porep_layout` where wires and rows lie, `porep_rows` makes the matrices; here
it all becomes a circuit and gets a witness.

What is random is drawn by NumPy; the rest is array operations that NumPy does or, with `arrays` = CuPy, a GPU: the same
circuit and the same witness, faster by orders of magnitude. Either way what comes out lies in the host's memory.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuzklab.backends.host import FR_MODULUS, ints_to_limbs
from cuzklab.prover.arrays import on_host, repeated
from cuzklab.prover.model import ConstraintSystem
from cuzklab.prover.porep_counts import PorepCounts, porep_counts
from cuzklab.prover.porep_layout import LongRows, derived_in_a, long_rows_of, operands_near, second_factor, spread
from cuzklab.prover.porep_rows import constraint_system


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
    long: LongRows


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
    wires = {sort: counts.inputs + place for sort, place in spread(arrays, sizes).items()}
    wires["public"] = arrays.arange(1, counts.inputs)
    operands = {
        "xor": operands_near(arrays, counts.xors, 2, counts.primary, rng),
        "majority": operands_near(arrays, counts.triples, 3, counts.primary, rng),
        "choice": operands_near(arrays, counts.triples, 3, counts.primary, rng),
    }
    operands["and"] = operands["majority"][:, :2]
    constants = _random_field_elements(counts.significant, rng)
    long = long_rows_of(counts)
    system = constraint_system(arrays, counts, wires, operands, constants, long.of(arrays))
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
    derived = bits[derived_in_a(arrays, counts, wires)]
    columns = int(circuit.long.bits.max())
    bits[wires["result"]] = _add_up(arrays, circuit.long.of(arrays), columns, derived)

    witness = arrays.zeros((circuit.system.wires, 4), np.uint64)
    witness[:, 0] = bits
    public = _random_field_elements(counts.inputs - 1, rng)
    significant = _significant_values(counts, public, circuit.constants)
    for sort, values in (("public", public), ("significant", significant)):
        witness[wires[sort]] = arrays.asarray(ints_to_limbs(values, limbs=4))
    return on_host(witness)


def _random_field_elements(count: int, rng: np.random.Generator) -> list[int]:
    """Field elements other than 0 and 1. The 64 surplus bits make the bias of the remainder negligible."""
    data = rng.bytes(40 * count)
    return [2 + int.from_bytes(data[i : i + 40], "little") % (FR_MODULUS - 2) for i in range(0, len(data), 40)]


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
        other = values[second_factor(i, counts)] + (constant if i < squares else 0)
        values.append((values[i] + constant) * other % FR_MODULUS)
    return values
