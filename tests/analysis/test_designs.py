"""Runs of one policy are told apart by its options, however a run keeps them."""

from cuzklab import check, policies
from cuzklab.analysis.designs import design, design_name, options_of
from cuzklab.analysis.phrases import run_kind
from cuzklab.report.naming import label
from cuzklab.simulate import simulate
from cuzklab.trace import Run, RunInfo
from cuzklab.units import GiB

OPTIONS = {"serial_dealloc": False, "g2_threads": 32, "throttle": True}


def test_a_simulation_a_check_and_a_live_run_have_the_options_of_their_policy(tmp_path):
    policy = policies.load("phase11", **OPTIONS)
    simulated = simulate(
        policy, "rtx5070ti-7995wx", "porep-32g", proofs=1, in_flight=1, gpu_workers=2, synthesis_workers=10
    ).to_run(tmp_path / "simulated")
    checked = check.check_run(check.check(policy, workers=2, partitions=1, vram_bytes=16 * GiB), tmp_path / "checked")
    for run in (simulated, checked):
        assert options_of(run) == OPTIONS
        assert design(run) == "phase11 (g2_threads=32, throttle)"
    assert run_kind(simulated) == "the simulation with gw 2 (g2_threads=32, throttle)"
    assert run_kind(simulated, options=False) == "the simulation with gw 2"
    assert label(simulated) == "phase11 (g2_threads=32, throttle), 16 GiB, 2 workers"


def test_what_the_engine_records_is_no_option(tmp_path):
    plain = simulate(
        policies.load("phase9"), "rtx5070ti-7995wx", "porep-32g", proofs=1, in_flight=1, gpu_workers=2,
        synthesis_workers=10,
    ).to_run(tmp_path / "plain")  # fmt: skip
    assert options_of(plain) == {}
    assert design(plain) == "phase9"


def test_a_capture_of_a_foreign_program_has_no_options(tmp_path):
    run = Run(tmp_path, RunInfo("imported", "a program", "ok", "", "", {"program": "x", "format": "sqlite"}))
    assert options_of(run) == {}


def test_switches_that_are_off_are_left_out_and_said_where_all_are():
    assert design_name("p", {}) == "p"
    assert design_name("p", {"a": False, "b": 0}) == "p (all options off)"
    assert design_name("p", {"a": True, "b": 3, "c": "wait", "d": None}) == "p (a, b=3, c=wait)"
