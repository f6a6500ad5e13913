"""The bench, the roofline and the trial of a change on a GPU."""

import json

import pytest

from cuzklab.backends import cuda, roofline
from cuzklab.backends.cuda import bench, harness, transform
from cuzklab.backends.trial import Change, Edit, compare
from cuzklab.errors import BadInput
from tests.cli.command import cuzklab

pytestmark = pytest.mark.gpu


def test_the_command_line_uses_the_gpu_and_says_so():
    done = cuzklab("bench", "kernels", "--sizes", "8,10", "--repeats", 2, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["backend"] == "cuda" and found["device"]
    assert {"cuda_driver", "cuda_runtime", "nvrtc", "cupy"} <= set(found["versions"])
    assert found["ceilings"]["wide_multiply_adds"] > 1e11 and found["ceilings"]["bytes_copied"] > 1e11
    assert [(row["kernel"], row["log2n"]) for row in found["rows"]] == [(k, n) for k in bench.KERNELS for n in (8, 10)]
    for row in found["rows"]:
        assert 0 < row["min_ms"] <= row["median_ms"] and row["repeats"] == 2
        assert row["ratio_to_floor"] == pytest.approx(row["median_ms"] / row["floor_ms"])
        assert row["rate"] == pytest.approx((1 << row["log2n"]) / row["median_ms"] * 1e3, rel=1e-3)
        assert row["peak_vram_bytes"] > 0
    assert found["skipped"] == []
    table = cuzklab("bench", "kernels", "--backend", "cuda", "--sizes", "8", "--kernels", "ntt", "--phases")
    assert table.out.startswith("cuda backend on ") and "ntt 2^8, ms: ntt_rows" in table.out


def test_a_size_that_does_not_fit_is_left_out_with_the_reason():
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    cuda.release_tables()
    rates = bench.ceilings()
    pool.free_all_blocks()
    pool.set_limit(size=256 << 20)
    try:
        with pytest.raises(bench.NotEnoughMemory, match=r"table of \d+ multiples"):
            bench.measure("fixed_msm_g1", 20, rates["wide_multiply_adds"], harness.Inputs(), 1)
    finally:
        pool.set_limit(size=0)
    assert bench.measure("fixed_msm_g1", 10, rates["wide_multiply_adds"], harness.Inputs(), 1).median_ms > 0


def test_kernels_lie_under_the_roof():
    found = roofline.measure("cuda", kernels=("ntt", "msm_g1"), log2_sizes=(16, 18), repeats=3)
    assert found.unit == "wide multiply-adds"
    for row in found.rows:
        assert 0 < row["roof_share"] <= 1


@pytest.mark.parametrize(
    ("kernel", "change"),
    [
        ("msm_g1", Change(options={"bits": 11})),
        ("msm_g1", Change(macros={"accumulate.cu": {"THREADS": 64, "BLOCKS_PER_SM": 8}})),
        ("fixed_msm_g2", Change(options={"bits": 12, "multiples": 5})),
        ("ntt", Change(options={"passes": (6, 6, 4)})),
        ("ntt", Change(macros={"ntt.cu": {"FACTORS_AT_ONCE": 1}})),
        ("masked_sum_g1", Change(edits=[Edit("cuda/accumulate.cu", "#pragma unroll 1", "#pragma unroll 2")])),
    ],
)
def test_a_change_is_built_checked_and_timed(kernel, change):
    shipped, changed = compare(kernel, 16, change, backend="cuda", repeats=3)
    assert shipped["min_ms"] > 0 and changed["min_ms"] > 0


def test_a_slip_says_where_and_leaves_the_device_usable():
    slip = Change(edits=[Edit("cuda/ntt.cu", "const Fr sum = a + b;", "const Fr sum = a + c;")])
    with pytest.raises(BadInput, match=r'ntt\.cu\(\d+\): error: identifier "c" is undefined') as error:
        compare("ntt", 12, slip, backend="cuda")
    assert "\n" not in str(error.value)
    assert harness.agrees_with_host("ntt")


def test_a_wrong_result_is_not_timed():
    wrong = Change(edits=[Edit("cuda/ntt.cu", "b = a - b;", "b = a + b;")])
    with pytest.raises(RuntimeError, match="the changed kernel's result is wrong; nothing was timed"):
        compare("ntt", 12, wrong, backend="cuda")
    assert harness.agrees_with_host("ntt")


@pytest.mark.parametrize("passes", [(9, 9, 9, 9), (5, 9), (9, 3), (10,), (9, 9)])
def test_passes_that_make_no_transform_are_refused(passes):
    with pytest.raises(ValueError, match="do not make a transform"):
        transform.plan(14, passes=passes)
