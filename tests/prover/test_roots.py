"""Keys whose rows are in the order of the other dialect's root are refused, and say so; all others pass."""

import dataclasses

import numpy as np
import pytest

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import BELLMAN_ROOT, SNARKJS_ROOT
from cuzklab.errors import BadInput
from cuzklab.prover import setup as making
from cuzklab.prover.builder import CircuitBuilder, multiply
from cuzklab.prover.files import write_params, write_zkey
from cuzklab.prover.keys import open_key
from cuzklab.prover.porep_shaped import porep_shaped
from cuzklab.prover.prove import prove
from cuzklab.prover.roots import order_of_rows
from cuzklab.prover.setup import bellman_setup, setup
from cuzklab.prover.stages import dense_key


@pytest.fixture(scope="module")
def circuit():
    return porep_shaped(248, seed=4)


@pytest.fixture
def exchanged(monkeypatch):
    """The setups of both dialects with each other's root."""
    with monkeypatch.context() as patch:
        patch.setattr(making.host, "SNARKJS_ROOT", BELLMAN_ROOT)
        patch.setattr(making.host, "BELLMAN_ROOT", SNARKJS_ROOT)
        yield setup, bellman_setup


def test_a_zkey_in_bellmans_order_is_refused(circuit, exchanged, tmp_path):
    system, witness = circuit
    key = exchanged[0](system, 1)
    write_zkey(tmp_path / "k.zkey", key)
    with pytest.raises(BadInput, match=r"order of bellman's root of unity.*must be made for 5\^"):
        open_key(tmp_path / "k.zkey")
    with pytest.raises(BadInput, match=r"order of bellman's root of unity"):
        prove(key, witness)


def test_a_params_key_in_snarkjss_order_is_refused(circuit, exchanged, tmp_path):
    write_params(tmp_path / "k.params", exchanged[1](circuit[0], 1))
    with pytest.raises(BadInput, match=r"order of snarkjs's root of unity.*must be made for 7\^"):
        open_key(tmp_path / "k.params", circuit[0])


def test_the_arrays_of_a_zkey_in_a_params_file_are_refused(circuit, tmp_path):
    """What a person gets who copies the arrays over and leaves the roots as they are."""
    system, _ = circuit
    theirs, ours = setup(system, 1), bellman_setup(system, 1)
    in_a, in_b = theirs.a_query.any(axis=1), theirs.b_g2_query.any(axis=1)
    copied = dataclasses.replace(
        ours, a=theirs.a_query[in_a], b_g1=theirs.b_g1_query[in_b], b_g2=theirs.b_g2_query[in_b], l=theirs.l_query
    )
    write_params(tmp_path / "k.params", copied)
    with pytest.raises(BadInput, match="order of snarkjs's root of unity"):
        open_key(tmp_path / "k.params", system)
    write_params(tmp_path / "k.params", dataclasses.replace(copied, h=theirs.h_query[:-1]))
    with pytest.raises(BadInput, match="points of B are not those of its constraints"):
        open_key(tmp_path / "k.params", system)


@pytest.mark.parametrize("name", ["chain", "poseidon2", "merkle16"])
def test_real_keys_pass(shared_data, name):
    """Two of them are ceremonies of snarkjs, whose H lacks the highest power of tau."""
    key = open_key(shared_data / "groth16" / name / f"{name}.zkey")
    assert (order_of_rows(key, "snarkjs"), order_of_rows(key, "bellman")) == (True, False)


def test_points_of_another_circuit_are_told(circuit):
    system, _ = circuit
    key = setup(system, 1)
    swapped = key.b_g2_query.copy()
    some = np.flatnonzero(key.b_g2_query.any(axis=1))
    swapped[some] = np.roll(key.b_g2_query[some], 1, axis=0)
    assert order_of_rows(dense_key(dataclasses.replace(key, b_g2_query=swapped)), "snarkjs") is False


def test_columns_of_several_rows(tmp_path):
    """Here every wire of B occurs in several rows."""
    builder = CircuitBuilder()
    x, y = builder.private(3), builder.private(5)
    value = builder.private(7)
    for step in range(5):
        value = multiply(builder, value, x * (step + 1) + y)
    value = multiply(builder, value, y)
    builder.public_output(value)
    system, witness = builder.build()
    for make, writer, name in ((setup, write_zkey, "k.zkey"), (bellman_setup, write_params, "k.params")):
        writer(tmp_path / name, make(system, 9))
        key = open_key(tmp_path / name, system)
        assert order_of_rows(key, key.dialect) is True
        prove(key, witness)


def test_a_circuit_with_a_single_column_of_b_cannot_be_told_and_is_proved(tmp_path):
    builder = CircuitBuilder()
    x = builder.private(3)
    builder.public_output(multiply(builder, x, x))
    system, witness = builder.build()
    write_zkey(tmp_path / "k.zkey", setup(system, 1))
    key = open_key(tmp_path / "k.zkey")
    proof, _ = prove(key, witness)
    assert host.on_curve_g1(proof.a[None]) == -1
