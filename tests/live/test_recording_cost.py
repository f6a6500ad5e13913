"""The cost of recording: what rows cost by their number, and the interval of a median over pairs."""

import numpy as np
from scipy import stats

from cuzklab.live import recording_cost

COSTS = {"allocation and free": 10.0, "span, by name": 100.0, "lock round trip": 1000.0}


def test_rows_cost_what_each_of_them_costs():
    rows = {"spans": 3, "locks": 2, "vram": 5, "waits": 1, "counters": 4, "kernels": 99, "transfers": 99, "events": 0}
    assert recording_cost.recording_ns(rows, COSTS) == 3 * 105 + 2 * 1000 + 10 * 5
    more = recording_cost.recording_ns(rows | {"events": 50}, COSTS | {"device event": 2.0})
    assert more == recording_cost.recording_ns(rows, COSTS) + 100


def test_the_interval_is_that_of_an_independent_bootstrap():
    ratios = np.random.default_rng(3).normal(1.0, 0.05, 24)
    low, high = recording_cost.interval_of_median(list(ratios))
    judged = stats.bootstrap(
        (ratios,), np.median, n_resamples=20_000, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    assert abs(low - judged.low) < 0.005 and abs(high - judged.high) < 0.005
    assert low <= np.median(ratios) <= high


def test_pairs_of_real_runs():
    found = recording_cost.cost_of_recording(2, 8, COSTS, proofs=1, partitions=1, gpu_workers=1)
    assert len(found.bare_wall_s) == len(found.recorded_wall_s) == found.pairs == 2
    assert found.ratio_low <= found.ratio <= found.ratio_high
    assert found.rows["kernels"] == 9 and found.rows["events"] == 0 and found.within == (found.share <= 0.01)
