"""A changed kernel is built beside the shipped one, checked, and timed in turns; a slip is one line."""

import pytest

from cuzklab.backends.trial import Change, Edit, compare
from cuzklab.errors import BadInput


@pytest.mark.parametrize(
    ("kernel", "change", "said"),
    [
        ("msm_g1", Change(edits=[Edit("msm/nothing.h", "a", "b")]), "kernels/msm/nothing.h: no such file"),
        ("msm_g1", Change(edits=[Edit("../pyproject.toml", "a", "b")]), "no such file"),
        ("msm_g1", Change(edits=[Edit("msm/digits.h", "not there", "b")]), "does not hold 'not there'"),
        ("msm_g3", Change(), "no host kernel 'msm_g3'"),
        ("msm_g1", Change(options={"bits": 3}), "neither macros nor options"),
    ],
)
def test_what_cannot_be_tried(kernel, change, said):
    with pytest.raises(BadInput) as error:
        compare(kernel, 4, change, backend="host")
    assert said in str(error.value) and "\n" not in str(error.value)


def test_without_a_change_both_are_the_shipped_kernel():
    seen = []
    shipped, changed = compare(
        "ntt", 6, Change(), backend="host", repeats=3, progress=lambda share, words: seen.append(share)
    )
    assert (shipped["variant"], changed["variant"]) == ("as shipped", "changed")
    assert shipped["time_ratio"] == 1.0 and changed["time_ratio"] > 0
    assert all(0 < row["min_ms"] <= row["median_ms"] for row in (shipped, changed))
    assert seen == sorted(seen) and seen[-1] == 1.0


@pytest.mark.slow
def test_an_edit_that_does_not_compile_says_where():
    slip = Change(edits=[Edit("ntt/butterflies.h", "#pragma once", "#pragma once\nunknown_word x;")])
    with pytest.raises(BadInput, match=r"butterflies\.h:\d+:\d+: error: .*unknown_word") as error:
        compare("ntt", 4, slip, backend="host", repeats=1)
    assert "\n" not in str(error.value)
    assert compare("ntt", 4, Change(), backend="host", repeats=1)


@pytest.mark.slow
def test_a_wrong_result_is_not_timed():
    wrong = Change(edits=[Edit("msm/digits.h", "return i32(d & ((u64(1) << r.bits) - 1))", "return 1 + i32(d & 1)")])
    with pytest.raises(RuntimeError, match="the changed kernel's result is wrong; nothing was timed"):
        compare("msm_g1", 6, wrong, backend="host", repeats=1)
