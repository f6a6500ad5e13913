"""Predictions: means over seeds, intervals that contain what they must, outcomes that warn."""

import math
from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest

from cuzklab.errors import BadInput
from cuzklab.profiles import Calibration, load_hardware
from cuzklab.simulate import predict, simulate
from cuzklab.simulate.predict import interval
from cuzklab.units import GiB

HARDWARE, WORKLOAD = "rtx5070ti-7995wx", "porep-32g"
SMALL = dict(proofs=1, in_flight=1, gpu_workers=2, synthesis_workers=4)


def test_the_value_is_the_mean_over_the_seeds():
    found = predict("phase9", HARDWARE, WORKLOAD, seeds=3, members=2, first_seed=5, **SMALL)
    singles = [
        simulate("phase9", HARDWARE, WORKLOAD, seed=seed, record=False, **SMALL).metrics["batch_average_s"].value
        for seed in (5, 6, 7)
    ]
    assert found.metrics["batch_average_s"].value == pytest.approx(fmean(singles))
    assert (found.seeds, found.members, found.outcome, found.outcomes) == (3, 2, "ok", {"ok": 5})
    low, high = found.intervals["batch_average_s"]
    scatter = load_hardware(HARDWARE).calibration.scatter
    assert low < min(singles) and max(singles) < high
    assert math.log(high / low) > 2 * 1.645 * scatter
    assert found.intervals["kernel_occupancy"][1] <= 1
    assert "near-equal fits" in found.notes[-1]
    assert found.to_json()["intervals"]["batch_average_s"] == [low, high]


def test_one_seed_of_a_profile_without_calibration_has_no_interval():
    plain = replace(load_hardware(HARDWARE), calibration=None)
    found = predict("phase9", plain, WORKLOAD, seeds=1, **SMALL)
    assert found.intervals == {} and found.members == 0
    assert "one seed" in found.notes[-1]
    several = predict("phase9", plain, WORKLOAD, seeds=2, **SMALL)
    assert "do not contain the error of the constants" in several.notes[-1]


def test_one_run_of_many_that_ends_badly_is_a_warning():
    found = predict(
        "phase10_ordered", HARDWARE, WORKLOAD, seeds=2, members=0, proofs=1, in_flight=1, gpu_workers=3,
        synthesis_workers=10,
    )  # fmt: skip
    assert found.outcome == "device_oom" and "failed for want of device memory" in found.explanation
    outcomes = Counter(
        simulate("phase10_ordered", HARDWARE, WORKLOAD, seed=seed, proofs=1, in_flight=1, gpu_workers=3,
                 synthesis_workers=10, record=False).outcome
        for seed in (0, 1)
    )  # fmt: skip
    assert found.outcomes == dict(outcomes)


@pytest.mark.parametrize(
    ("values", "near", "scatter", "expected"),
    [
        ([10.0], [], None, None),
        ([10.0, 10.0], [], None, (10.0, 10.0)),
        ([10.0], [], 0.1, (10 * math.exp(-0.1645), 10 * math.exp(0.1645))),
        # Deviations of the logarithm ±d about the mean: variance 2·d² / 1.
        ([10 * math.exp(0.1), 10 * math.exp(-0.1)], [], None,
         (10 * math.exp(-1.645 * math.sqrt(0.02)), 10 * math.exp(1.645 * math.sqrt(0.02)))),
        ([10.0, 10.0], [10 * math.exp(0.3)], None,
         (10 * math.exp(-1.645 * math.sqrt(0.045)), 10 * math.exp(1.645 * math.sqrt(0.045)))),
    ],
)  # fmt: skip
def test_intervals_by_hand(values, near, scatter, expected):
    found = interval(values, near, scatter, "batch_average")
    assert found == (pytest.approx(expected) if expected else None)


def test_a_share_is_at_most_one():
    assert interval([0.95], [], 0.1, "call_occupancy")[1] == 1.0


def test_no_seed_is_refused():
    with pytest.raises(BadInput, match="seeds is 0"):
        predict("phase9", HARDWARE, WORKLOAD, seeds=0, **SMALL)


def test_near_equal_fits_are_used_one_by_one():
    base = load_hardware(HARDWARE)
    names = ("host.reserved_bytes",)
    # A "near-equal fit" in which the machine has hardly any memory must show up in the outcome.
    odd = Calibration("by hand", names, ((0.0,), (float(base.host.memory_bytes - 60 * GiB),)), 0.02, 0.02, ())
    found = predict("phase9", replace(base, calibration=odd), WORKLOAD, seeds=2, members=1, **SMALL)
    assert found.outcomes == {"ok": 2, "host_oom": 1} and found.outcome == "host_oom"
