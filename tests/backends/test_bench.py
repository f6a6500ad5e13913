"""The bench measures what it says, with a peer that agrees."""

import pytest

from cuzklab.backends import bench, peers
from cuzklab.backends.host import parallel


def test_rows():
    seen = []
    rows = bench.bench_kernels(
        log2_sizes=(5, 8), threads=2, repeats=2, progress=lambda share, words: seen.append((share, words))
    )
    kinds = [(row["kernel"], row["log2n"], row["threads"]) for row in rows]
    assert kinds == [
        ("fp_mul", 17, 1),
        ("fr_mul", 17, 1),
        *((kernel, size, 2) for kernel in bench.KERNELS[2:] for size in (5, 8)),
    ]
    for row in rows:
        assert 0 < row["min_ms"] <= row["median_ms"] and row["floor_ms"] > 0 and row["rate"] > 0
        has_peer = row["kernel"].startswith(("msm", "masked"))
        assert (row["peer"] == "blst") == has_peer and (row["peer_ms"] is not None) == has_peer
    by_kind = dict(zip(kinds, rows, strict=True))
    assert by_kind["ntt", 8, 2]["field_products"] == 256 / 2 * 8 - 256 + 1
    assert [share for share, _ in seen] == sorted(share for share, _ in seen) and seen[-1] == (1.0, "done")


def test_a_result_that_differs_from_the_peers_is_an_error(monkeypatch):
    monkeypatch.setattr(peers, "blst_sum", lambda points, threads: points[0] * 0)
    with pytest.raises(RuntimeError, match="masked_sum_g1 2\\^7: our result differs"):
        bench.bench_kernels(kernels=("masked_sum_g1",), log2_sizes=(7,), threads=1, repeats=1)


def test_without_a_peer_rows_say_so(monkeypatch):
    monkeypatch.setattr(peers, "blst", lambda: None)
    (row,) = bench.bench_kernels(kernels=("msm_g1",), log2_sizes=(7,), threads=1, repeats=1)
    assert row["peer"] is None and row["peer_ms"] is None


def test_unknown_kernels_are_refused():
    with pytest.raises(ValueError, match="unknown msm_g3"):
        bench.bench_kernels(kernels=("msm_g3",))


def test_without_a_number_of_threads_one_and_all_are_measured():
    rows = bench.bench_kernels(kernels=("ntt",), log2_sizes=(6,), repeats=1)
    assert [row["threads"] for row in rows] == sorted({1, parallel.thread_count(None)})
