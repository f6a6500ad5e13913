"""PoRep-shaped circuits: exact counts at every size, satisfied, with the densities and the 0/1 share they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.errors import BadInput
from cuzklab.prover.porep_counts import MINIMUM_CONSTRAINTS, porep_constraints, porep_counts
from cuzklab.prover.porep_shaped import porep_circuit, porep_shaped, porep_witness
from tests.prover.plain import unsatisfied


def occurring(matrix, first: int) -> int:
    """Different wires from number `first` on that occur in a matrix."""
    return int(np.count_nonzero(np.unique(matrix.wire) >= first))


@pytest.mark.parametrize("constraints", [MINIMUM_CONSTRAINTS, 248, 3976, 5000, 30000, 127236])
def test_counts_are_exact(constraints):
    counts = porep_counts(constraints)
    system, witness = porep_shaped(constraints, seed=7)
    assert system.constraints == constraints
    assert system.wires == len(witness) == counts.inputs + counts.aux
    assert system.public + 1 == counts.inputs
    assert system.a.nonzeros == counts.a_nonzeros
    assert system.b.nonzeros == counts.b_nonzeros
    assert system.c.nonzeros == counts.c_nonzeros
    assert occurring(system.a, counts.inputs) == counts.a_aux_density
    assert occurring(system.b, counts.inputs) == counts.b_aux_density
    assert occurring(system.b, 1) == counts.b_aux_density, "of the inputs only the constant one is in B"
    every = np.unique(np.concatenate((system.a.wire, system.b.wire, system.c.wire)))
    assert np.array_equal(every, np.arange(system.wires)), "no wire is without a constraint"


@pytest.mark.parametrize("constraints", [3976, 30000])
def test_share_of_significant_values(constraints):
    counts = porep_counts(constraints)
    system, witness = porep_shaped(constraints, seed=3)
    significant = (witness[:, 1:] != 0).any(axis=1) | (witness[:, 0] > 1)
    assert np.count_nonzero(significant[counts.inputs :]) == counts.significant
    in_b = np.isin(np.arange(system.wires), system.b.wire)
    assert np.count_nonzero(significant & in_b) == counts.significant_in_b
    assert counts.significant == pytest.approx(0.05 * counts.aux, abs=0.5)
    ones = np.count_nonzero(~significant & (witness[:, 0] == 1)) / system.wires
    assert 0.40 < ones < 0.50, "about half of the bits are set"


@given(st.integers(2**12, 2**27))
def test_ratios_are_the_models_within_one_percent(constraints):
    counts = porep_counts(constraints)
    for count, ratio in (
        (counts.aux, 130_169_893 / 130_278_869),
        (counts.a_nonzeros, 2.375),
        (counts.b_nonzeros, 1.0004),
        (counts.c_nonzeros, 2.170),
        (counts.a_aux_density, 0.997 * 130_169_893 / 130_278_869),
        (counts.b_aux_density, 0.254 * 130_169_893 / 130_278_869),
    ):
        assert count / constraints == pytest.approx(ratio, rel=0.01)


def test_the_model_itself_comes_out_to_the_digit():
    counts = porep_counts(130_278_869)
    assert (counts.inputs, counts.aux) == (328, 130_169_893)
    assert (counts.a_nonzeros, counts.b_nonzeros, counts.c_nonzeros) == (309_405_051, 130_327_340, 282_656_500)
    assert (counts.a_aux_density, counts.b_aux_density) == (129_753_292, 33_112_281)
    assert porep_constraints(27) == 130_278_869


@given(st.integers(8, 26))
def test_a_domain_is_filled_as_the_models(log2_domain):
    constraints = porep_constraints(log2_domain)
    assert abs(constraints - 130_278_869 / 2**27 * 2**log2_domain) <= 0.5
    assert constraints + porep_counts(constraints).inputs <= 2**log2_domain


@settings(max_examples=20, deadline=None)
@given(st.integers(MINIMUM_CONSTRAINTS, 3000), st.integers(0, 2**32))
def test_satisfied_at_any_size_and_seed(constraints, seed):
    assert unsatisfied(*porep_shaped(constraints, seed)) == []


def test_one_circuit_has_many_witnesses():
    circuit = porep_circuit(3976, seed=1)
    first, again, second = porep_witness(circuit, 1), porep_witness(circuit, 1), porep_witness(circuit, 2)
    assert np.array_equal(first, again) and not np.array_equal(first, second)
    assert unsatisfied(circuit.system, first) == unsatisfied(circuit.system, second) == []


def test_rows_ascend_and_name_each_wire_once():
    system, _ = porep_shaped(3976, seed=1)
    for matrix in (system.a, system.b, system.c):
        row = np.repeat(np.arange(matrix.rows), np.diff(matrix.row_start))
        same_row = row[1:] == row[:-1]
        assert (np.diff(matrix.wire.astype(np.int64))[same_row] > 0).all()


def test_too_small_a_circuit_is_refused():
    with pytest.raises(BadInput, match="199 constraints"):
        porep_shaped(199, seed=1)
