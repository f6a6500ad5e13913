"""The design bench's picture and its second look are the simulation, the checker and the analysis; nothing else."""

import json
import threading

import pytest
from ipywidgets.widgets.widget import _remove_buffers

from cuzklab.check import check
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.workbench.bench import DesignBench
from cuzklab.workbench.consult import PARTS, Consultant
from cuzklab.workbench.design import RANGES, Design, choices, hardware_of, simulated
from cuzklab.workbench.packed import places, reals, unpacked
from cuzklab.workbench.picture import chart, picture
from cuzklab.workbench.plan import plan_of, plan_rows
from cuzklab.workbench.second_look import Superseded, checked, intervals, limits
from cuzklab.workbench.turn import Turns

SMALL = Design(c=2, j=2, pw=6)
never = lambda: False  # noqa: E731


@pytest.fixture(scope="module")
def simulation():
    return simulated(SMALL)


@pytest.fixture(scope="module")
def drawn(simulation):
    return picture(simulation)


def test_a_picture_holds_every_kernel_and_every_wait_for_a_lock(simulation, drawn):
    plain, _, buffers = _remove_buffers(drawn)
    assert json.loads(json.dumps(plain)) == plain and len(buffers) == 5 + 6 + 2  # columns of bars, waits and memory
    device = next(number for number, lane in enumerate(drawn["lanes"]) if lane["kind"] == "device")
    on_device = unpacked(drawn["bars"]["lane"]) == device
    kernels = sorted(simulation.recorder.rows["kernels"], key=lambda row: row.start)
    assert unpacked(drawn["bars"]["start"])[on_device] == pytest.approx([row.start * 1e-9 for row in kernels], rel=1e-6)
    assert [drawn["names"][place] for place in unpacked(drawn["bars"]["name"])[on_device]] == [
        row.name for row in kernels
    ]
    waits = [row for row in simulation.recorder.rows["waits"] if row.kind == "lock" and row.end > row.start]
    assert sum(drawn["texts"][place] == "lock" for place in unpacked(drawn["waits"]["kind"])) == len(waits)
    assert drawn["locks"][0]["wait_s"] == pytest.approx(sum(row.end - row.start for row in waits) * 1e-9, rel=1e-9)


def test_figures_are_those_of_the_simulation_with_their_kind_and_a_reason_where_there_is_none(simulation, drawn):
    shown = {row["name"]: row for row in drawn["metrics"]}
    for name, metric in simulation.metrics.items():
        assert (shown[name]["kind"], shown[name]["value"]) == (metric.kind, metric.value)
    assert shown["steady_interval_s"]["value"] is None
    assert "needs 4" in shown["steady_interval_s"]["reason"]


def test_memory_reaches_the_peak_that_is_reported_below_the_limit(simulation, drawn):
    assert unpacked(drawn["vram"]["gib"]).max() == pytest.approx(
        simulation.metrics["peak_vram_bytes"].value / 2**30, abs=1e-3
    )
    assert drawn["vram"]["limit_gib"] == 16


def test_sliders_change_the_machine_that_is_simulated():
    hardware = hardware_of(Design(gt=32, link_gb_per_s=26.5))
    assert hardware.stage_threads("b_g2_msm") == 32
    assert hardware.transfer.pinned_bytes_per_s == 26.5e9
    assert hardware.transfer.pageable_bytes_per_s == pytest.approx(6.33e9 / 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gw": 0}, "must be 1 to 6"), ({"gw": 2.5}, "not a int"), ({"gw": "2"}, "not a int"),
        ({"gw": True}, "not a int"), ({"vram_gib": float("nan")}, "must be"), ({"more": 1}, "got"),
        ({"policy": 3}, "not a str"),
    ],
)  # fmt: skip
def test_knobs_from_a_page_are_trusted_in_nothing(change, words):
    with pytest.raises(BadInput, match=words):
        Design.from_json({**Design().to_json(), **change})


def test_what_can_be_chosen_can_be_simulated():
    found = choices({})
    assert set(found["ranges"]) == set(RANGES)
    for name, machine in found["hardware"].items():
        hardware_of(Design(hardware=name, gt=machine["gt"]))


def test_the_limiting_resource_is_where_the_idle_time_goes(simulation):
    found = limits(simulation)
    shares = [float(row[3].rstrip("%")) for row in found["rows"]]
    assert sum(shares) == pytest.approx(100, abs=0.1 * len(shares))
    assert found["sentence"].endswith("of the batch for it.")


def test_the_checker_is_asked_about_the_sliders_and_its_schedule_is_shown():
    refused = checked(Design(policy="phase10_nested", gw=3), never)
    result = check(load("phase10_nested"), workers=3, partitions=1, vram_bytes=16 << 30)
    assert refused["verdict"] == result.verdict == "unsafe"
    shortest = min(result.findings, key=lambda finding: len(finding.schedule))
    assert [step[1] for step in refused["findings"][0]["steps"]] == [step.actor for step in shortest.schedule]


def test_intervals_hold_the_figure_and_the_exact_ones_are_narrow():
    found = intervals(Design(c=2, j=2, pw=4), never)
    low, high, words = found["rows"]["batch_average_s"]
    assert low < high and words.endswith("s/proof") and " to " in words
    assert found["rows"]["peak_vram_bytes"][0] == found["rows"]["peak_vram_bytes"][1]
    assert "90 %" in found["how"]


def test_a_newer_question_ends_the_work_on_an_older_one():
    with pytest.raises(Superseded):
        intervals(SMALL, lambda: True)


def test_the_bench_draws_every_turn_and_says_what_is_wrong_with_a_design():
    bench = DesignBench(consult=False, c=1, j=1, pw=2)
    first = bench.picture
    bench.design = Design(c=1, j=1, pw=3)
    assert bench.picture["of"] == first["of"] + 1
    assert bench.picture["conditions"]["pw"] == 3
    bench.knobs = {**bench.knobs, "gt": 300}
    assert "192 threads" in bench.picture["error"]
    bench.close()


@pytest.mark.parametrize("values", [[], [0], [3, 65_535], [65_536, 1]])
def test_places_come_back(values):
    assert unpacked(places(values)).tolist() == values


def test_reals_come_back_to_seven_digits():
    assert unpacked(reals([0.0, 1 / 3, 12345.678])) == pytest.approx([0.0, 1 / 3, 12345.678], rel=1e-7)


def turned(design, looks):
    """The whole picture of a design, and those shown before; the clock says one second a look."""
    shown, ticks = [], iter(range(1_000_000))
    turns = Turns(shown.append, first_s=looks, clock=lambda: float(next(ticks)))
    return turns, turns.turn(design.to_json(), 1), shown


def test_a_simulation_that_takes_long_is_shown_once_as_far_as_it_is():
    _, whole, (first,) = turned(SMALL, looks=3)
    assert first["partial"] and not whole["partial"] and "metrics" not in first
    assert 0 < first["end_s"] < whole["end_s"]
    assert (first["of"], first["knobs"]) == (whole["of"], whole["knobs"])
    # What had ended by then is the same in both: it is the same run.
    assert first["vram"]["limit_gib"] == whole["vram"]["limit_gib"]
    kernels = [unpacked(of["bars"]["start"])[unpacked(of["bars"]["lane"]) == 0] for of in (first, whole)]
    assert len(kernels[0]) and kernels[0].tolist() == kernels[1][: len(kernels[0])].tolist()


def test_a_simulation_that_is_quick_is_shown_once_and_whole():
    _, whole, shown = turned(SMALL, looks=1e9)
    assert shown == [] and whole["outcome"] == "ok"


def test_being_watched_changes_nothing():
    looks = []
    watched = simulated(SMALL, lambda recorder, now: looks.append((recorder.count("spans"), now)))
    assert watched.recorder.rows == simulated(SMALL).recorder.rows
    assert looks == sorted(looks) and len(looks) > 3
    assert chart(watched.recorder, watched.devices) == chart(simulated(SMALL).recorder, watched.devices)


def test_knobs_that_were_turned_before_are_remembered(monkeypatch):
    turns, whole, _ = turned(SMALL, looks=1e9)
    monkeypatch.setattr("cuzklab.workbench.turn.simulated", None)
    again = turns.turn(SMALL.to_json(), 2)
    assert again["of"] == 2 and again["bars"] == whole["bars"] and "remembered" in again["took_ms"]


def test_what_is_run_for_real_is_said_with_what_it_leaves_out():
    plan = plan_of(Design(c=8, j=8, pw=20, gw=3))
    assert (plan.proofs, plan.in_flight, plan.synthesis_workers, plan.workers) == (2, 2, 4, 3)
    assert plan.scaled_vram_bytes == (16 << 30) >> 12  # 2^15 rows where a partition has 2^27
    said = plan_rows(Design(c=8, j=8, pw=20, gw=3))
    assert "2 proofs of 6 partitions, circuits of 2^15 rows, 3 GPU workers" in said["words"]
    assert "4.00 MiB" in said["words"] and "test keys" in said["words"]
    rows = {name: (design, run) for name, design, run in said["rows"]}
    assert rows["proofs (c)"] == ("8", "2") and rows["GPU workers (gw)"] == ("3", "the same")


def test_a_design_is_looked_at_in_a_child_and_remembered():
    answers, whole = [], threading.Event()

    def heard(answer):
        answers.append(answer)
        if not answer["pending"]:
            whole.set()

    consultant = Consultant(heard, rest_s=0)
    consultant.ask(7, Design(c=1, j=1, pw=2))
    assert whole.wait(60)
    assert {part for part in PARTS if "error" not in answers[-1][part]} == set(PARTS)
    assert answers[-1]["of"] == 7
    count = len(answers)
    consultant.ask(8, Design(c=1, j=1, pw=2))  # answered at once, from memory
    assert len(answers) == count + 1 and answers[-1]["of"] == 8 and answers[-1]["pending"] == []
    consultant.close()


def test_a_second_look_that_dies_is_told(monkeypatch):
    answers, whole = [], threading.Event()

    def heard(answer):
        answers.append(answer)
        if not answer["pending"]:
            whole.set()

    consultant = Consultant(heard, rest_s=0)
    monkeypatch.setattr("cuzklab.workbench.consult.Child", _failing)
    consultant.ask(1, Design(c=1, j=1, pw=2))
    assert whole.wait(60)
    assert "ended with status 1" in answers[-1]["check"]["error"]
    assert "no_such_module" in answers[-1]["check"]["error"]


def _failing(arguments, **hears):
    from cuzklab.workbench.child import Child

    return Child(["no_such_module"], **hears)
