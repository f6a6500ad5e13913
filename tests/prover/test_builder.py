"""The circuit builder: gadgets against Python's operators, canonical rows, circom's order of wires."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.prover.builder import (
    CircuitBuilder,
    boolean,
    choose,
    constant,
    constant_word,
    multiply,
    pack,
    rotate_right,
    shift_right,
    unpack,
    xor,
)
from tests.prover.plain import R, integers, unsatisfied

scalars = st.integers(0, R - 1)


@given(scalars, scalars, scalars)
def test_linear_combinations_compute_their_values(x, y, factor):
    builder = CircuitBuilder()
    a, b = builder.private(x), builder.public_input(y)
    assert (a + b).value == (x + y) % R
    assert (a - b * factor).value == (x - y * factor) % R
    assert (3 - a).value == (3 - x) % R
    assert (a + a - 2 * a).terms == {}
    assert multiply(builder, a, b).value == x * y % R


def test_wires_are_ordered_as_in_circom_and_rows_ascend():
    builder = CircuitBuilder()
    secret = builder.private(6)
    given_input = builder.public_input(7)
    product = multiply(builder, given_input + secret, secret + 1)
    builder.public_output(product + 5)
    system, witness = builder.build()
    assert (system.wires, system.public_outputs, system.public_inputs, system.constraints) == (5, 1, 1, 2)
    assert integers(witness) == [1, 13 * 7 + 5, 7, 6, 13 * 7]
    # (input + secret) · (1 + secret) = product; (5 + product) · 1 = output
    assert system.a.wire.tolist() == [2, 3, 0, 4] and system.a.row_start.tolist() == [0, 2, 4]
    assert system.b.wire.tolist() == [0, 3, 0] and system.b.row_start.tolist() == [0, 2, 3]
    assert system.c.wire.tolist() == [4, 1] and integers(system.a.value) == [1, 1, 5, 1]
    assert unsatisfied(system, witness) == []
    assert unsatisfied(system, [1, 97, 7, 6, 91]) == [1]


@pytest.mark.parametrize("wired", list(itertools.product((False, True), repeat=3)))
@pytest.mark.parametrize("bits", list(itertools.product((0, 1), repeat=3)))
def test_boolean_gadgets_agree_with_their_truth_tables_wires_or_constants(wired, bits):
    builder = CircuitBuilder()
    x, y, z = (boolean(builder, bit) if is_wire else constant(bit) for bit, is_wire in zip(bits, wired, strict=True))
    before = builder.constraints
    assert xor(builder, x, y).value == bits[0] ^ bits[1]
    assert builder.constraints - before == (wired[0] and wired[1])
    assert multiply(builder, x, y).value == bits[0] & bits[1]
    assert choose(builder, x, y, z).value == (bits[1] if bits[0] else bits[2])
    assert unsatisfied(*builder.build()) == []


@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_words_rotate_shift_and_pack(value, by):
    word = constant_word(value)
    assert pack(rotate_right(word, by)).value == ((value << 32 | value) >> by % 32) & 0xFFFFFFFF
    assert pack(shift_right(word, by)).value == value >> by


@given(st.data())
def test_unpacked_bits_admit_no_other_values(data):
    count = data.draw(st.integers(1, 254))
    value = data.draw(st.integers(0, 2**count - 1))
    builder = CircuitBuilder()
    bits = unpack(builder, builder.private(value), count)
    assert [bit.value for bit in bits] == [value >> i & 1 for i in range(count)]
    system, witness = builder.build()
    assert system.constraints == count + 1 and unsatisfied(system, witness) == []
    values = integers(witness)
    values[data.draw(st.integers(1, count + 1))] += data.draw(st.integers(1, R - 1))
    assert unsatisfied(system, values) != []


def test_a_number_that_does_not_fit_its_bits_or_a_false_bit_is_refused():
    builder = CircuitBuilder()
    with pytest.raises(ValueError, match="constraint 4 does not hold"):
        unpack(builder, builder.private(16), 4)
    with pytest.raises(ValueError, match="constraint 4 does not hold"):
        boolean(builder, 2)
    with pytest.raises(ValueError, match="choose 1 to 254"):
        unpack(builder, builder.private(16), 255)


def test_a_circuit_without_constraints_has_empty_matrices():
    builder = CircuitBuilder()
    builder.private(3)
    system, witness = builder.build()
    assert (system.wires, system.constraints, system.c.nonzeros) == (2, 0, 0) and integers(witness) == [1, 3]


def test_arrays_have_the_layout_that_native_code_reads():
    builder = CircuitBuilder()
    builder.public_output(xor(builder, boolean(builder, 1), boolean(builder, 0)))
    system, witness = builder.build()
    assert witness.dtype == np.uint64 and witness.flags.c_contiguous and witness.flags.writeable
    for matrix in (system.a, system.b, system.c):
        assert (matrix.row_start.dtype, matrix.wire.dtype, matrix.value.dtype) == (np.int64, np.uint32, np.uint64)
        assert matrix.value.flags.c_contiguous and matrix.value.shape == (matrix.nonzeros, 4)
