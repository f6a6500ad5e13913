"""The rows of a PoRep-shaped circuit: its three matrices, sort of row after sort of row.

A matrix is put together from blocks of equally made rows. Its coefficients are few, so an entry has the number of one.
"""

from typing import Any

import numpy as np

from cuzklab.backends.host import FR_MODULUS, ints_to_limbs
from cuzklab.prover.arrays import on_host, repeated
from cuzklab.prover.model import CodedMatrix, ConstraintSystem
from cuzklab.prover.porep_counts import PorepCounts
from cuzklab.prover.porep_layout import LongRows, derived_in_a, position_in_run, second_factor, spread

# Coefficients are numbered: these four, then 2^0 … 2^254, then the constants of the rows of field elements.
_PLUS, _MINUS, _TWO, _MINUS_TWO, _POWERS = range(5)
_CONSTANTS = _POWERS + 255


def constraint_system(
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
    rows = spread(arrays, sizes | {"long": counts.long_rows})
    values = ints_to_limbs([1, FR_MODULUS - 1, 2, FR_MODULUS - 2, *(1 << i for i in range(255)), *constants], limbs=4)
    constant = _CONSTANTS + arrays.arange(counts.significant)
    of_products = (("square", arrays.arange(squares)), ("product", arrays.arange(squares, products)))
    derived = derived_in_a(arrays, counts, wires)

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
        second = significant[second_factor(number, counts)]
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
    c.add_runs(rows["long"], long.bits, wires["result"], _POWERS + position_in_run(arrays, long.bits))

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
                place = repeated(arrays, row_start[rows], lengths) + position_in_run(arrays, lengths)
            wire[place], coefficient[place] = block_wire, block_coefficient
        return CodedMatrix(*map(on_host, (row_start, wire, coefficient)), values)
