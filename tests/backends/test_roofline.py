"""Kernels under the roof: what is derived follows from what was measured."""

import pytest

from cuzklab.backends import bench, roofline
from cuzklab.report import figures

MEASURED = [
    {"kernel": "ntt", "log2n": 10, "median_ms": 2.0, "floor_ms": 1.0, "field_products": 1000.0},
    {"kernel": "masked_sum_g1", "log2n": 6, "median_ms": 0.5, "floor_ms": 0.25, "field_products": 192.0},
]


def test_rates_intensities_and_shares(monkeypatch):
    monkeypatch.setattr(bench, "bench_kernels", lambda **options: MEASURED)
    monkeypatch.setattr(roofline, "_copy_rate", lambda: 1e6)
    found = roofline.measure("host")
    ntt, masked = found.rows
    assert (ntt["operations"], ntt["bytes"]) == (36_000, 2 * 64 * 1024)
    assert (masked["operations"], masked["bytes"]) == (192 * 78, 32 * 96 + 8)
    # The multiplier's limit is the faster of both fields' loops, here Fp's.
    assert found.operations_per_s == pytest.approx(192 * 78 / 0.25e-3)
    assert ntt["operations_per_s"] == pytest.approx(36_000 / 2e-3)
    # Under the slope: memory allows intensity · bytes a second.
    assert ntt["roof_share"] == pytest.approx(ntt["operations_per_s"] / (ntt["intensity"] * 1e6))


def test_a_small_bench_of_this_machine():
    found = roofline.measure("host", kernels=("ntt", "msm_g1"), log2_sizes=(5,), repeats=1)
    assert [row["kernel"] for row in found.rows] == ["ntt", "msm_g1"]
    assert found.operations_per_s > 1e6 and found.bytes_per_s > 1e6
    assert "one thread, multiply path" in found.conditions
    drawn = figures.roofline(found.rows, found.operations_per_s, found.bytes_per_s, found.unit, found.conditions)
    assert [trace.name for trace in drawn.data[1:]] == ["ntt", "msm_g1"]
    assert drawn.data[0].y[1] == pytest.approx(drawn.data[0].y[2]) and drawn.data[0].y[1] > drawn.data[0].y[0]


def test_nothing_measured_is_said():
    drawn = figures.roofline([], 1.0, 1.0, "x", "y")
    assert drawn.reason == "No roofline: nothing was measured."
