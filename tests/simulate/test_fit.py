"""Fitting: known constants are found again, what no figure depends on is told, and an interrupted fit goes on."""

import json
import math

import numpy as np
import pytest

from cuzklab.simulate.fit import fit
from cuzklab.simulate.problem import Constant, Problem, Target

CONSTANTS = (
    Constant("host.memory_efficiency", 0.5, 1e-4, 1.0),
    Constant("transfer.unpin_s_per_byte", 0.5, 1e-12, 1.0),
    Constant("host.cache_pressure", 0.7, 1e-4, 100.0),
)
TRUTH = {"host.memory_efficiency": 0.3, "transfer.unpin_s_per_byte": 4e-4, "host.cache_pressure": 1.0}


def figures(machine, seed):
    """Known functions of two constants, with noise that depends on the seed alone; nothing depends on the third."""
    random = np.random.default_rng(seed)
    efficiency, unpin = machine.constant("host.memory_efficiency"), machine.constant("transfer.unpin_s_per_byte")
    exact = np.array([1 / efficiency, 3 + 1e4 * unpin, 2 / efficiency + 5e3 * unpin, 1e4 * unpin])
    return exact * np.exp(random.normal(0, 0.002, len(exact)))


@pytest.fixture
def problem(hardware_with):
    start = hardware_with(memory_efficiency=0.2, cache_pressure=1.0).with_constants({"transfer.unpin_s_per_byte": 6e-4})
    measured = figures(start.with_constants(TRUTH), 99)
    targets = tuple(Target(f"figure {number}", value, 0.02) for number, value in enumerate(measured))
    calls = []

    def simulate(machine, seed):
        calls.append(seed)
        return figures(machine, seed)

    return Problem(start, CONSTANTS, targets, simulate, "test"), calls


def test_known_constants_are_found_again_and_the_unknown_one_is_told(problem):
    found = fit(problem[0], seeds=(0, 1), iterations=6, replicates=24)
    by_name = {one.name: one for one in found.constants}
    for name in ("host.memory_efficiency", "transfer.unpin_s_per_byte"):
        one = by_name[name]
        assert one.value == pytest.approx(TRUTH[name], rel=0.03)
        assert one.lowest < TRUTH[name] < one.highest
        assert one.identified and one.prior_left < 0.1
    free = by_name["host.cache_pressure"]
    assert not free.identified and free.prior_left == pytest.approx(1, abs=0.01)
    assert free.value == pytest.approx(free.start) and free.highest / free.lowest > 3
    assert np.abs(found.residuals).max() < 0.02 and found.scatter < 0.01
    # Near-equal fits agree in what the data tell, and not in what they do not.
    members = np.log([[member[constant.name] for constant in CONSTANTS] for member in found.members])
    assert len(members) > 12
    assert members.std(axis=0)[0] < 0.05 < 0.3 < members.std(axis=0)[2]
    assert found.most_different(3)[0] == 0 and len(set(found.most_different(3))) == 3


def test_a_bound_is_kept(problem):
    narrow = (Constant("host.memory_efficiency", 0.5, 0.15, 0.25), *CONSTANTS[1:])
    one = problem[0]
    found = fit(Problem(one.hardware, narrow, one.targets, one.simulate, "narrow"), (0,), 6, 8)
    assert found.constants[0].value == pytest.approx(0.25, rel=1e-3)
    assert all(0.15 <= member["host.memory_efficiency"] <= 0.25 for member in found.members)


def test_a_peak_that_was_only_reached_is_a_lower_bound(problem):
    one = problem[0]
    loose = tuple(Target(target.words, target.measured / 2, target.sd, at_least=True) for target in one.targets)
    found = fit(Problem(one.hardware.with_constants(TRUTH), CONSTANTS, loose, one.simulate, "least"), (0,), 3, 0)
    assert [fitted.value for fitted in found.constants] == [pytest.approx(TRUTH[name.name]) for name in CONSTANTS]


def test_an_interrupted_fit_goes_on_where_it_stopped(problem, tmp_path):
    one, calls = problem
    journal = tmp_path / "fit.journal.jsonl"

    def stops(machine, seed):
        if len(calls) == 5:
            raise KeyboardInterrupt
        return one.simulate(machine, seed)

    with pytest.raises(KeyboardInterrupt):
        fit(Problem(one.hardware, CONSTANTS, one.targets, stops, "test"), (0,), 4, 4, journal)
    assert len(journal.read_text().splitlines()) == 5
    with journal.open("a") as file:
        file.write('{"key": "damaged", "figu')
    calls.clear()
    resumed = fit(one, (0,), 4, 4, journal)
    again = len(calls)
    calls.clear()
    fresh = fit(one, (0,), 4, 4)
    assert len(calls) == again + 5
    assert resumed.members == fresh.members
    whole = [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]
    assert len(whole) == again + 5 and all(set(entry["values"]) == set(TRUTH) for entry in whole)


def test_a_figure_that_does_not_exist_counts_as_off_by_two(problem):
    one = problem[0]
    nothing = Problem(one.hardware, CONSTANTS, one.targets, lambda machine, seed: [math.nan] * 4, "none")
    found = fit(nothing, (0,), 1, 0)
    assert np.expm1(found.residuals) == pytest.approx([1.0] * 4)
