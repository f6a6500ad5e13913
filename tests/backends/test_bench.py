"""The bench measures what it says, with a peer that agrees."""

import pytest

from cuzklab.backends import bench, peers


def test_rows(monkeypatch):
    seen = []
    rows = bench.bench_host(
        log2n=(8,), ntt_log2n=(6,), threads=(1, 2), repeats=2, report=lambda share, words: seen.append((share, words))
    )
    kinds = [(row["kernel"], row["log2n"], row["threads"]) for row in rows]
    assert kinds == [
        ("fp_mul", None, 1),
        ("fr_mul", None, 1),
        *((kernel, size, t) for kernel, size in (("msm_g1", 8), ("msm_g2", 8), ("ntt", 6)) for t in (1, 2)),
        *((kernel, 8, t) for kernel in ("masked_sum_g1", "masked_sum_g2") for t in (1, 2)),
    ]
    for row in rows:
        assert 0 < row["min_ms"] <= row["median_ms"] and row["floor_ms"] > 0 and row["rate"] > 0
        has_peer = row["kernel"].startswith(("msm", "masked"))
        assert (row["peer"] == "blst") == has_peer and (row["peer_ms"] is not None) == has_peer
    by_kind = dict(zip(kinds, rows, strict=True))
    assert by_kind["ntt", 6, 1]["field_products"] == 64 / 2 * 6 - 64 + 1
    assert [share for share, _ in seen] == sorted(share for share, _ in seen) and seen[-1] == (1.0, "done")


def test_a_result_that_differs_from_the_peers_is_an_error(monkeypatch):
    monkeypatch.setattr(peers, "blst_sum", lambda points, threads: points[0] * 0)
    with pytest.raises(RuntimeError, match="masked_sum_g1 2\\^7: our result differs"):
        bench.bench_host(kernels=("masked_sum_g1",), log2n=(7,), threads=(1,), repeats=1)


def test_without_a_peer_rows_say_so(monkeypatch):
    monkeypatch.setattr(peers, "blst", lambda: None)
    (row,) = bench.bench_host(kernels=("msm_g1",), log2n=(7,), threads=(1,), repeats=1)
    assert row["peer"] is None and row["peer_ms"] is None


def test_unknown_kernels_are_refused():
    with pytest.raises(ValueError, match="unknown msm_g3"):
        bench.bench_host(kernels=("msm_g3",))
