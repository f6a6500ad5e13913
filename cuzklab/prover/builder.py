"""A small builder of constraint systems that computes the witness as it goes.

A `Linear` is a linear combination of wires that knows its value. `CircuitBuilder` makes wires and records constraints;
the functions below it are the gadgets of boolean circuits. Whether a gadget needs a constraint depends on which of its
operands are constants, never on a value, so one circuit fits every witness.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuzklab.backends.host import FR_MODULUS, ints_to_limbs
from cuzklab.prover.model import ConstraintSystem, SparseMatrix

_ONE, _OUTPUT, _INPUT, _PRIVATE = range(4)


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear combination of wires.

    Attributes
    ----------
    terms : dict
        Builder's wire number → coefficient, neither zero nor ≥ r. Wire 0 is the constant one.
    value : int
        Its value under the witness, below r.
    """

    terms: dict[int, int]
    value: int

    @property
    def is_constant(self) -> bool:
        """No wire but the constant one occurs."""
        return not self.terms or (len(self.terms) == 1 and 0 in self.terms)

    def __add__(self, other: "Linear | int") -> "Linear":
        other = _linear(other)
        if len(self.terms) < len(other.terms):
            self, other = other, self
        terms = dict(self.terms)
        for wire, coefficient in other.terms.items():
            total = (terms.get(wire, 0) + coefficient) % FR_MODULUS
            if total:
                terms[wire] = total
            else:
                del terms[wire]
        return Linear(terms, (self.value + other.value) % FR_MODULUS)

    __radd__ = __add__

    def __mul__(self, factor: int) -> "Linear":
        factor %= FR_MODULUS
        if factor == 0:
            return Linear({}, 0)
        terms = {wire: coefficient * factor % FR_MODULUS for wire, coefficient in self.terms.items()}
        return Linear(terms, self.value * factor % FR_MODULUS)

    __rmul__ = __mul__

    def __neg__(self) -> "Linear":
        return self * -1

    def __sub__(self, other: "Linear | int") -> "Linear":
        return self + _linear(other) * -1

    def __rsub__(self, other: int) -> "Linear":
        return _linear(other) - self


def _linear(value: "Linear | int") -> Linear:
    if isinstance(value, Linear):
        return value
    value %= FR_MODULUS
    return Linear({0: value} if value else {}, value)


class _Rows:
    """One matrix under construction; coefficients are numbered, for few different ones occur."""

    def __init__(self) -> None:
        self.length = array("Q")
        self.wire = array("I")
        self.coefficient = array("I")

    def append(self, terms: dict[int, int], number: dict[int, int]) -> None:
        self.length.append(len(terms))
        for wire, coefficient in terms.items():
            self.wire.append(wire)
            self.coefficient.append(number.setdefault(coefficient, len(number)))

    def matrix(self, renumbered: np.ndarray, coefficients: np.ndarray) -> SparseMatrix:
        length = np.frombuffer(self.length, np.uint64).astype(np.int64)
        row_start = np.concatenate(([0], np.cumsum(length)))
        wire = renumbered[np.frombuffer(self.wire, np.uint32)]
        order = np.lexsort((wire, np.repeat(np.arange(len(length)), length)))
        number = np.frombuffer(self.coefficient, np.uint32)[order]
        return SparseMatrix(row_start, wire[order], coefficients[number])


class CircuitBuilder:
    """Makes wires and constraints; `build` returns the constraint system and its witness."""

    def __init__(self) -> None:
        self._values = [1]
        self._kinds = bytearray([_ONE])
        self._number: dict[int, int] = {}
        self._a, self._b, self._c = _Rows(), _Rows(), _Rows()

    @property
    def constraints(self) -> int:
        return len(self._a.length)

    def _wire(self, value: int, kind: int) -> Linear:
        value %= FR_MODULUS
        self._values.append(value)
        self._kinds.append(kind)
        return Linear({len(self._values) - 1: 1}, value)

    def private(self, value: int) -> Linear:
        """A new private wire."""
        return self._wire(value, _PRIVATE)

    def public_input(self, value: int) -> Linear:
        """A new public input."""
        return self._wire(value, _INPUT)

    def public_output(self, of: Linear) -> Linear:
        """A new public output, constrained to equal `of`."""
        wire = self._wire(of.value, _OUTPUT)
        self.constrain(of, 1, wire)
        return wire

    def constrain(self, a: Linear | int, b: Linear | int, c: Linear | int) -> None:
        """Add the constraint a · b = c.

        Raises
        ------
        ValueError
            The values computed so far contradict it: the circuit or its input is wrong.
        """
        a, b, c = _linear(a), _linear(b), _linear(c)
        if (a.value * b.value - c.value) % FR_MODULUS:
            raise ValueError(f"constraint {self.constraints} does not hold: {a.value} · {b.value} is not {c.value}")
        self._a.append(a.terms, self._number)
        self._b.append(b.terms, self._number)
        self._c.append(c.terms, self._number)

    def build(self) -> tuple[ConstraintSystem, np.ndarray]:
        """The constraint system and its witness, plain, shape (wires, 4) uint64.

        Wires come in circom's order: the constant one, public outputs, public inputs, private wires, each kind in the
        order of its creation. Entries of a row ascend by wire.
        """
        kinds = np.frombuffer(self._kinds, np.uint8)
        order = np.argsort(kinds, kind="stable")
        renumbered = np.empty(len(kinds), np.uint32)
        renumbered[order] = np.arange(len(kinds), dtype=np.uint32)
        coefficients = ints_to_limbs(list(self._number), limbs=4)
        system = ConstraintSystem(
            wires=len(kinds),
            public_outputs=int(np.count_nonzero(kinds == _OUTPUT)),
            public_inputs=int(np.count_nonzero(kinds == _INPUT)),
            a=self._a.matrix(renumbered, coefficients),
            b=self._b.matrix(renumbered, coefficients),
            c=self._c.matrix(renumbered, coefficients),
        )
        return system, ints_to_limbs(self._values, limbs=4)[order]


def multiply(builder: CircuitBuilder, x: Linear, y: Linear) -> Linear:
    """x · y, at the cost of one constraint, or none where one of them is constant. For bits: AND."""
    if x.is_constant:
        return y * x.value
    if y.is_constant:
        return x * y.value
    product = builder.private(x.value * y.value)
    builder.constrain(x, y, product)
    return product


def boolean(builder: CircuitBuilder, value: int) -> Linear:
    """A new private wire that can only be 0 or 1."""
    bit = builder.private(value)
    builder.constrain(1 - bit, bit, 0)
    return bit


def xor(builder: CircuitBuilder, x: Linear, y: Linear) -> Linear:
    """x ⊕ y of two bits: 2x · y = x + y − result."""
    if x.is_constant:
        return 1 - y if x.value else y
    if y.is_constant:
        return 1 - x if y.value else x
    result = builder.private(x.value ^ y.value)
    builder.constrain(2 * x, y, x + y - result)
    return result


def choose(builder: CircuitBuilder, condition: Linear, if_one: Linear, if_zero: Linear) -> Linear:
    """`if_one` where the bit `condition` is 1, else `if_zero`."""
    return if_zero + multiply(builder, condition, if_one - if_zero)


def pack(bits: Sequence[Linear]) -> Linear:
    """Σ 2^i · bits[i]: little end first. Costs no constraint."""
    terms: dict[int, int] = {}
    value = 0
    for i, bit in enumerate(bits):
        value += bit.value << i
        for wire, coefficient in bit.terms.items():
            terms[wire] = (terms.get(wire, 0) + (coefficient << i)) % FR_MODULUS
    return Linear({wire: coefficient for wire, coefficient in terms.items() if coefficient}, value % FR_MODULUS)


def unpack(builder: CircuitBuilder, x: Linear, count: int) -> list[Linear]:
    """The `count` bits of x, little end first, each boolean, and one constraint that they add up to x.

    `count` must be below 255, else a second set of bits, that of x + r, would fit as well.
    """
    if not 0 < count < FR_MODULUS.bit_length():
        raise ValueError(f"unpack: {count} bits; choose 1 to {FR_MODULUS.bit_length() - 1}")
    bits = [boolean(builder, x.value >> i & 1) for i in range(count)]
    builder.constrain(x, 1, pack(bits))
    return bits


def rotate_right(word: Sequence[Linear], by: int) -> list[Linear]:
    """A word (little end first) rotated towards its little end. Costs no constraint."""
    by %= len(word)
    return list(word[by:]) + list(word[:by])


def shift_right(word: Sequence[Linear], by: int) -> list[Linear]:
    """A word shifted towards its little end, zeros moving in. Costs no constraint."""
    return list(word[by:]) + [_linear(0)] * min(by, len(word))


def constant(value: int) -> Linear:
    """A constant as a linear combination."""
    return _linear(value)


def constant_word(value: int, bits: int = 32) -> list[Linear]:
    """A word of constant bits, little end first."""
    return [_linear(value >> i & 1) for i in range(bits)]
