"""tune and simulate --explain from the command line."""

import pytest

from tests.cli.command import cuzklab


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-p", "gw=0"), "-p gw=0"),
        (("--hardware", "nowhere"), "no hardware profile 'nowhere'"),
        (("--price", "0"), "--price 0.0"),
        (("--seeds", "1"), "--seeds 1"),
        (("-p", "policy=phase99"), "no policy 'phase99'"),
    ],
)
def test_bad_questions_are_one_line_and_exit_2(arguments, words, tmp_path):
    done = cuzklab("tune", *arguments, "-o", tmp_path / "out")
    assert done.status == 2
    assert words in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_explanation_names_what_limits():
    arguments = ("simulate", "phase8", "-c", 3, "-p", "gw=1", "-p", "pw=4", "--explain", "--seeds", 2)
    done = cuzklab(*arguments, "--json")
    assert done.status == 0
    # Few syntheses at a time: the GPU waits for them.
    assert done.json["limits"][0] == "synthesis"
    assert done.json["conditions"]["seeds"] == 2
    shown = cuzklab(*arguments)
    assert shown.out.startswith(
        "EXPLANATION of a simulation: phase8 on rtx5070ti-7995wx, c=3, j=3, pw=4, gw=1. Limited"
    )
    assert "host memory bandwidth" in shown.out


def test_an_explanation_stores_nothing(tmp_path):
    done = cuzklab("simulate", "phase8", "--explain", "-o", tmp_path / "run")
    assert done.status == 2 and "--explain goes with neither" in done.err
