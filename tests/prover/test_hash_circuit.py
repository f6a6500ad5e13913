"""The SHA-256 circuit against hashlib, and that its wires admit no other values."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.prover.hash_circuit import INITIAL_STATE, ROUND_CONSTANTS, sha256_circuit
from tests.prover.plain import R, integers, unsatisfied


def test_constants_are_those_of_the_standard():
    assert (INITIAL_STATE[0], INITIAL_STATE[7]) == (0x6A09E667, 0x5BE0CD19)
    assert (ROUND_CONSTANTS[0], ROUND_CONSTANTS[63], len(ROUND_CONSTANTS)) == (0x428A2F98, 0xC67178F2, 64)


@settings(max_examples=8, deadline=None)
@given(st.binary(max_size=130))
def test_packed_digest_equals_hashlib(message):
    system, witness = sha256_circuit(message)
    high, low = integers(witness[1:3])
    assert (high << 128 | low).to_bytes(32, "big") == hashlib.sha256(message).digest()
    assert (system.public_outputs, system.public_inputs) == (2, 0)


@pytest.mark.parametrize("length", [0, 55, 56, 64])
def test_bits_of_the_digest_equal_hashlib_around_the_padding_boundaries(length):
    message = bytes(range(length))
    system, witness = sha256_circuit(message, public="bits")
    bits = "".join(map(str, integers(witness[1:257])))
    assert int(bits, 2).to_bytes(32, "big") == hashlib.sha256(message).digest()
    assert system.public == 256


def test_the_circuit_depends_on_the_length_only():
    system, witness = sha256_circuit(b"a" * 40)
    other, _ = sha256_circuit(bytes(40))
    for mine, theirs in ((system.a, other.a), (system.b, other.b), (system.c, other.c)):
        assert np.array_equal(mine.row_start, theirs.row_start)
        assert np.array_equal(mine.wire, theirs.wire) and np.array_equal(mine.value, theirs.value)
    assert unsatisfied(other, witness) == []


@pytest.fixture(scope="module")
def one_block():
    return sha256_circuit(b"one block")


def test_one_block_is_satisfied_and_fits_its_domain(one_block):
    system, witness = one_block
    assert unsatisfied(system, witness) == []
    assert system.domain == 2**15


def test_every_wire_is_bound(one_block):
    """A change of any one wire breaks a constraint, so no wire is free once the others are fixed."""
    system, witness = one_block
    values = integers(witness)
    touching = [[] for _ in values]
    rows = []
    for row in range(system.constraints):
        entries = [
            {w: v for w, v in zip(m.wire[s:e].tolist(), integers(m.value[s:e]), strict=True)}
            for m, s, e in ((m, m.row_start[row], m.row_start[row + 1]) for m in (system.a, system.b, system.c))
        ]
        rows.append(entries)
        for wire in set().union(*entries):
            touching[wire].append(row)
    rng = np.random.default_rng(1)
    for wire in rng.choice(np.arange(1, system.wires), 2000, replace=False).tolist():
        changed = 1 - values[wire] if values[wire] in (0, 1) else values[wire] + 1
        old, values[wire] = values[wire], changed

        def holds(row):
            a, b, c = (sum(v * values[w] for w, v in terms.items()) for terms in rows[row])
            return (a * b - c) % R == 0

        assert not all(holds(row) for row in touching[wire]), f"wire {wire} is free"
        values[wire] = old
