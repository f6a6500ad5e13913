"""bench kernels from the command line."""

import pytest

from cuzklab.backends import bench, cuda, peers
from tests.cli.command import cuzklab


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without CuPy, whatever this one has."""
    monkeypatch.setattr(cuda, "available", lambda: "CUDA: CuPy is not installed: do this, or use --backend host")


def test_the_hosts_rows(no_gpu):
    done = cuzklab("bench", "kernels", "--sizes", "5:6", "--kernels", "ntt", "--threads", 1, "--repeats", 1, "--json")
    assert done.status == 0
    assert done.json["backend"] == "host"
    assert [(row["kernel"], row["log2n"]) for row in done.json["rows"]] == [("ntt", 5), ("ntt", 6)]
    assert {"median_ms", "min_ms", "floor_ms", "rate", "peer", "peer_ms"} <= set(done.json["rows"][0])


def test_the_table_says_whose_kernels_it_shows(no_gpu):
    done = cuzklab("bench", "kernels", "--sizes", "5", "--kernels", "ntt", "--threads", 1, "--repeats", 1)
    assert done.out.startswith("host backend on ")
    assert "2^5" in done.out and "elements/s" in done.out


def test_the_table_says_why_it_has_no_peers(no_gpu, monkeypatch):
    arguments = ("bench", "kernels", "--sizes", "5", "--kernels", "ntt", "--threads", 1, "--repeats", 1)
    assert ", peers interleaved\n" in cuzklab(*arguments).out
    monkeypatch.setattr(peers, "blst", lambda: None)
    alone = cuzklab(*arguments).out
    assert "interleaved" not in alone
    assert "no peer: blst is not installed (pip install 'cuzklab[bench]')" in " ".join(alone.split())


def test_cuda_without_a_gpu_is_one_line(no_gpu):
    done = cuzklab("bench", "kernels", "--backend", "cuda")
    assert (done.status, done.out) == (2, "")
    assert done.err == "cuzklab: --backend cuda: CUDA: CuPy is not installed: do this, or use --backend host\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--backend", "abacus"), "--backend abacus: no such backend; use auto, cuda, host"),
        (("--kernels", "msm_g3"), f"no host kernel msm_g3; there are: {', '.join(bench.KERNELS)}"),
        (("--sizes", "3:99"), "--sizes '3:99': write powers of two between 4 and 27"),
        (("--sizes", "9:8"), "--sizes '9:8'"),
    ],
)
def test_bad_input(no_gpu, arguments, said):
    done = cuzklab("bench", "kernels", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err and done.err.count("\n") == 1
