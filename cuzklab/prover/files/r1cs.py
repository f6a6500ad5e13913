"""Constraint systems as circom writes them (`.r1cs`)."""

import os
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.prover.files.container import Section, read_container, require_section, write_container
from cuzklab.prover.files.fields import FR_BYTES, first_not_below
from cuzklab.prover.model import ConstraintSystem, SparseMatrix

MAXIMUM_DOMAIN = 1 << 28
_NAMES = {1: "header", 2: "constraints", 3: "labels", 4: "custom gates", 5: "custom gate uses"}
_MAGIC, _VERSION = b"r1cs", 1
_RECOMPILE = "compile the circuit again with --prime bls12381"
# The constraint section is a run of 32-bit words: a linear combination is its number of entries, then for each the
# wire and eight words of coefficient.
_ENTRY_WORDS = 9
_BLOCK_CONSTRAINTS = 1 << 16


@dataclass(frozen=True)
class R1csHeader:
    """What the header of an `.r1cs` file states."""

    wires: int
    public_outputs: int
    public_inputs: int
    private_inputs: int
    labels: int
    constraints: int


def read_r1cs_header(path: str | os.PathLike) -> R1csHeader:
    """Read and check the counts of an `.r1cs` file (`.xz` too) without reading its constraints."""
    return _header(_sections(path), path)


def read_r1cs(path: str | os.PathLike) -> ConstraintSystem:
    """Read a constraint system.

    Parameters
    ----------
    path : path
        A `.r1cs` file of version 1 as circom writes, also inside an `.xz` (up to 4 GiB unpacked).

    Raises
    ------
    BadInput
        Not such a file, another field, sizes that do not agree, a wire beyond the last one or twice in a linear
        combination, a coefficient that is not below r, custom gates (Groth16 has none).
    """
    sections = _sections(path)
    header = _header(sections, path)
    section = require_section(sections, 2, _NAMES, path)
    words = section.array("<u4", len(section) // 4)
    counts, starts = _linear_combinations(section, header.constraints)
    matrices = []
    for which in range(3):
        row_start = np.zeros(header.constraints + 1, np.int64)
        np.cumsum(counts[which::3], out=row_start[1:])
        matrices.append(
            SparseMatrix(row_start, np.empty(row_start[-1], np.uint32), np.empty((row_start[-1], 4), np.uint64))
        )
    for first in range(0, header.constraints, _BLOCK_CONSTRAINTS):
        last = min(first + _BLOCK_CONSTRAINTS, header.constraints)
        _copy_entries(words, counts, starts, first, last, matrices)
    for name, matrix, which in zip("ABC", matrices, range(3)):
        _check_matrix(section, name, matrix, starts[which::3], header.wires)
    return ConstraintSystem(header.wires, header.public_outputs, header.public_inputs, *matrices)


def _sections(path) -> dict[int, Section]:
    return read_container(path, _MAGIC, _VERSION, _NAMES, packed=True)


def _header(sections: dict[int, Section], path) -> R1csHeader:
    section = require_section(sections, 1, _NAMES, path)
    at = section.require_prime(0, FR_MODULUS, FR_BYTES, _RECOMPILE)
    section.require(at + 28, "a modulus and seven counts")
    header = R1csHeader(*struct.unpack_from("<IIIIQI", section.body, at))
    named = 1 + header.public_outputs + header.public_inputs + header.private_inputs
    if named > header.wires:
        raise section.bad(f"{header.wires} wires, fewer than the {named} that are one, outputs and inputs", at=at)
    if header.constraints + header.public_outputs + header.public_inputs + 1 > MAXIMUM_DOMAIN:
        raise section.bad(f"{header.constraints} constraints need a domain beyond 2^28", "split the circuit", at)
    constraints = require_section(sections, 2, _NAMES, path)
    if 12 * header.constraints > len(constraints):
        raise constraints.bad(f"{len(constraints)} bytes cannot hold {header.constraints} constraints")
    if len(constraints) % 4:
        raise constraints.bad(f"{len(constraints)} bytes, not a multiple of 4")
    require_section(sections, 3, _NAMES, path).require(8 * header.wires, f"{header.wires} wires")
    if 4 in sections and sections[4].u32(0):
        raise sections[4].bad("custom gates, which belong to PLONK", "compile the circuit without them")
    return header


def _linear_combinations(section: Section, constraints: int) -> tuple[np.ndarray, np.ndarray]:
    """Entries of each linear combination (A, B, C of constraint 0, then of 1, …), and the word where each begins."""
    # Each length leads to the next, so this one walk cannot be done by numpy. Reading a memoryview makes Python
    # integers, which do not overflow.
    end = len(section) // 4
    view = section.body.cast("I") if end else []
    counts = array("I")
    position = 0
    for _ in range(3 * constraints):
        if position >= end:
            break
        count = view[position]
        counts.append(count)
        position += 1 + _ENTRY_WORDS * count
    if position != end or len(counts) != 3 * constraints:
        where = f"constraint {max(len(counts) - 1, 0) // 3} of {constraints}"
        raise section.bad(f"linear combinations end at byte {4 * position} of {len(section)}, in {where}")
    counts = np.frombuffer(counts, np.uint32).astype(np.int64) if counts else np.zeros(0, np.int64)
    starts = np.zeros(len(counts), np.int64)
    np.cumsum(1 + _ENTRY_WORDS * counts[:-1], out=starts[1:])
    return counts, starts


def _copy_entries(words, counts, starts, first: int, last: int, matrices: list[SparseMatrix]) -> None:
    """Copy the entries of constraints first … last − 1 to their places in the three matrices."""
    some = slice(3 * first, 3 * last)
    begin = starts[some][0]
    end = starts[3 * last - 1] + 1 + _ENTRY_WORDS * counts[3 * last - 1]
    is_entry = np.ones(end - begin, dtype=bool)
    is_entry[starts[some] - begin] = False
    entries = words[begin:end][is_entry].reshape(-1, _ENTRY_WORDS)
    which = np.repeat(np.tile(np.arange(3), last - first), counts[some])
    for number, matrix in enumerate(matrices):
        mine = entries[which == number]
        place = slice(matrix.row_start[first], matrix.row_start[last])
        matrix.wire[place] = mine[:, 0]
        matrix.value[place] = np.ascontiguousarray(mine[:, 1:]).view("<u8")


def _check_matrix(section: Section, name: str, matrix: SparseMatrix, starts: np.ndarray, wires: int) -> None:
    def refuse(entry: int, what: str):
        row = int(np.searchsorted(matrix.row_start, entry, side="right")) - 1
        word = int(starts[row]) + 1 + _ENTRY_WORDS * (entry - int(matrix.row_start[row]))
        return section.bad(f"constraint {row}, {name}: {what}", _RECOMPILE, 4 * word)

    beyond = matrix.wire >= wires
    if beyond.any():
        entry = int(np.argmax(beyond))
        raise refuse(entry, f"wire {matrix.wire[entry]} of {wires}")
    entry = first_not_below(matrix.value, FR_MODULUS)
    if entry >= 0:
        raise refuse(entry, "a coefficient that is not below r")
    entry = _first_repeated(matrix)
    if entry >= 0:
        # Some programs would add the two coefficients, others keep the last one.
        raise refuse(entry, f"wire {matrix.wire[entry]} twice in one linear combination")


def _first_repeated(matrix: SparseMatrix) -> int:
    """Index of an entry whose wire occurs in its row already; −1 if there is none."""
    if matrix.nonzeros < 2:
        return -1
    starts_row = np.zeros(matrix.nonzeros + 1, dtype=bool)
    starts_row[matrix.row_start] = True
    # Wires ascend in files of circom, so that sorting is seldom needed.
    if ((matrix.wire[1:] > matrix.wire[:-1]) | starts_row[1:-1]).all():
        return -1
    row = np.repeat(np.arange(matrix.rows), np.diff(matrix.row_start))
    order = np.lexsort((matrix.wire, row))
    same = (row[order][1:] == row[order][:-1]) & (matrix.wire[order][1:] == matrix.wire[order][:-1])
    return int(order[1:][same].min()) if same.any() else -1


def write_r1cs(path: str | os.PathLike, system: ConstraintSystem, *, private_inputs: int = 0, labels: int = 0) -> None:
    """Write a constraint system as circom does.

    Parameters
    ----------
    path : path
    system : ConstraintSystem
    private_inputs : int
        How many of the private wires a person gives; only shown by tools.
    labels : int
        Signals of the source, at least `wires` (the default). Wire i is written with label i.
    """
    labels = labels or system.wires
    matrices = (system.a, system.b, system.c)
    if len({matrix.rows for matrix in matrices}) != 1:
        raise ValueError("A, B and C differ in their number of rows")
    counts = (system.wires, system.public_outputs, system.public_inputs, private_inputs, labels, system.constraints)
    header = struct.pack("<I", FR_BYTES) + FR_MODULUS.to_bytes(FR_BYTES, "little") + struct.pack("<IIIIQI", *counts)
    length = 12 * system.constraints + 4 * _ENTRY_WORDS * sum(matrix.nonzeros for matrix in matrices)
    # The order in which circom writes them.
    sections = [
        (2, length, _constraint_words(matrices)),
        (1, len(header), [header]),
        (3, 8 * system.wires, [np.arange(system.wires, dtype="<u8")]),
    ]
    with atomic_write(path) as file:
        write_container(file, _MAGIC, _VERSION, sections)


def _constraint_words(matrices: tuple[SparseMatrix, ...]) -> Iterator[np.ndarray]:
    for first in range(0, matrices[0].rows, _BLOCK_CONSTRAINTS):
        last = min(first + _BLOCK_CONSTRAINTS, matrices[0].rows)
        counts = np.stack([np.diff(matrix.row_start[first : last + 1]) for matrix in matrices], axis=1).reshape(-1)
        ends = np.cumsum(1 + _ENTRY_WORDS * counts)
        starts = ends - 1 - _ENTRY_WORDS * counts
        words = np.empty(ends[-1], "<u4")
        is_entry = np.ones(len(words), dtype=bool)
        is_entry[starts] = False
        words[starts] = counts
        which = np.repeat(np.tile(np.arange(3), last - first), counts)
        entries = np.empty((len(which), _ENTRY_WORDS), "<u4")
        for number, matrix in enumerate(matrices):
            place = slice(matrix.row_start[first], matrix.row_start[last])
            mine = which == number
            entries[mine, 0] = matrix.wire[place]
            entries[mine, 1:] = np.ascontiguousarray(matrix.value[place], "<u8").view("<u4")
        words[is_entry] = entries.reshape(-1)
        yield words
