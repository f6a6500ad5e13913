"""Alarms: how often they are false, how often a slowdown is found, and what each state means."""

import math

import numpy as np
import pytest

from cuzklab.analysis import regression
from cuzklab.analysis.regression import Judgement, change_points, judge


def history(generator, runs, deviation, level=100.0, samples=5):
    """Runs with noise as measured machines have it: a level that wanders from run to run (log-normal, neighbouring runs
    alike), one run in thirty disturbed by 5 to 20 %, and samples that scatter by 3 % within a run."""
    wander = np.empty(runs)
    wander[0] = generator.normal()
    for index in range(1, runs):
        wander[index] = 0.3 * wander[index - 1] + math.sqrt(1 - 0.09) * generator.normal()
    disturbed = (generator.random(runs) < 1 / 30) * generator.uniform(0.05, 0.20, runs)
    levels = level * np.exp(deviation * wander) * (1 + disturbed)
    return [value * np.exp(0.03 * generator.normal(size=samples)) for value in levels]


def night(generator, deviation, slowdown):
    """One night: history, the run of the night, and reruns for as long as they are asked for."""
    runs = history(generator, regression.WINDOW + regression.MOST_CANDIDATES, deviation)
    old, new = runs[: regression.WINDOW], [run * (1 + slowdown) for run in runs[regression.WINDOW :]]
    for count in range(1, len(new) + 1):
        judgement = judge(new[:count], old)
        if judgement.state != "suspect":
            return judgement
    return judgement


def rates(deviation, nights):
    """Shares of nights with an alarm: where nothing changed, and where everything is five per cent slower."""
    generator = np.random.default_rng(20261130)
    quiet = [night(generator, deviation, 0.0) for _ in range(nights)]
    slow = [night(generator, deviation, 0.05) for _ in range(nights)]
    assert np.median([judgement.candidates for judgement in quiet]) <= 6, "most quiet nights need few reruns"
    return tuple(sum(judgement.alarm for judgement in judged) / nights for judged in (quiet, slow))


def test_alarms_on_a_quiet_machine(without_intervals):
    false, found = rates(0.005, 120)
    assert false < 0.01 and found >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.01, 0.02])
def test_false_alarms_stay_under_one_per_cent_and_five_per_cent_slower_is_found(without_intervals, deviation):
    false, found = rates(deviation, 400)
    print(f"noise {deviation:.1%}: {false:.2%} false alarms, {found:.1%} of slowdowns found")
    assert false < 0.01 and found >= 0.95


@pytest.fixture
def without_intervals(monkeypatch):
    """The interval is no part of the decision."""
    monkeypatch.setattr(regression, "_interval", lambda *arguments: (None, None))


def test_one_run_never_raises_an_alarm():
    assert judge([[200.0]], [[100.0 + index] for index in range(10)]).state == "suspect"


def test_an_alarm_needs_history():
    judgement = judge([[200.0]] * 5, [[100.0]] * (regression.FEWEST_BASELINE - 1))
    assert judgement == Judgement("too short", candidates=5, baseline=regression.FEWEST_BASELINE - 1)


def test_effect_and_interval_of_a_plain_doubling():
    """Every new run is twice as slow as every old one, to within a spread of two per cent."""
    old = [[100.0 + 0.1 * index] for index in range(20)]
    assert judge([[200.0], [200.4], [201.0]], old).state == "suspect", "1 in 1771 is not yet rare enough"
    judgement = judge([[200.0], [200.4], [200.6], [201.0]], old)
    assert judgement.state == "slower" and judgement.alarm
    assert judgement.effect == pytest.approx(200.5 / 100.95 - 1, abs=1e-3)
    assert judgement.low < judgement.effect < judgement.high
    assert judgement.p_value == pytest.approx(1 / math.comb(24, 4))  # the one arrangement of ranks that is as extreme
    assert judge([[50.0], [50.2], [50.4], [50.6]], old).state == "faster"


def test_a_disturbed_run_is_cleared_by_its_reruns():
    old = [[100.0 + 0.1 * index] for index in range(20)]
    assert judge([[120.0]], old).state == "suspect"
    reruns = [[100.0 + 0.15 * index] for index in range(10)]
    states = [judge([[120.0], *reruns[:count]], old).state for count in range(1, 11)]
    assert states[0] == "suspect" and states[-1] == "unchanged"
    assert set(states) == {"suspect", "unchanged"}


def test_an_open_question_is_called_too_noisy():
    generator = np.random.default_rng(5)
    old = history(generator, 20, 0.2)
    new = [run * 1.05 for run in history(generator, regression.MOST_CANDIDATES, 0.2)]
    assert judge(new, old).state in ("too noisy", "unchanged")
    assert not judge(new, old).alarm


def test_thousands_of_samples_of_two_runs_are_two_observations():
    generator = np.random.default_rng(7)
    old = history(generator, 10, 0.02, samples=2000)
    judgement = judge(history(generator, 2, 0.02, samples=2000), old)
    assert judgement.p_value >= 1 / math.comb(12, 2)


@pytest.mark.parametrize("bad", [[[0.0]], [[-1.0]], [[]], []])
def test_samples_without_a_logarithm_are_refused(bad):
    with pytest.raises(ValueError):
        judge(bad, [[1.0]] * 10)


def test_change_points_where_the_level_steps():
    generator = np.random.default_rng(11)
    levels = 100 * np.exp(0.01 * generator.normal(size=60))
    levels[20:] *= 1.08
    levels[45:] *= 0.90
    assert change_points(levels) == [20, 45]


def test_a_quiet_history_has_no_change_points():
    generator = np.random.default_rng(13)
    found = [change_points(np.concatenate(history(generator, 60, 0.01, samples=1))) for _ in range(60)]
    assert sum(map(bool, found)) <= 3
