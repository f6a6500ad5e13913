"""What the checker finds happens: its schedules, followed in virtual time and by real threads."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cuzklab import policies
from cuzklab.backends.emulated import EmulatedDevice
from cuzklab.check import CheckResult, check, explore
from cuzklab.counterexamples import _concerned, _happened, _turns, replay
from cuzklab.errors import BadInput
from cuzklab.live.forced import force
from cuzklab.policies import effects as e
from cuzklab.policies.model import Semaphore, program
from cuzklab.simulate.forced import follow
from cuzklab.trace.recorders import Recording
from cuzklab.units import GiB
from tests.interpreters.systems import GPU, script
from tests.interpreters.test_agreement import _SCRIPT, CERTAIN
from tests.live.programs import RATES, FakeClock, SmallWorkload
from tests.simulate.conftest import SHAPE, toy_hardware

NEVER_SEEN = {"starvation", "unbounded_queue", "claim"}


def followed(programs, finding):
    """The finding's schedule in both places: whether it happened there."""
    sequences = {name: (one,) for name, one in programs.items()}
    virtual = follow(sequences, _turns(finding), _concerned(finding), toy_hardware(), SHAPE)
    clock = FakeClock()
    device = EmulatedDevice(0, GPU.vram_bytes, RATES, clock)
    real = force(
        sequences, _turns(finding), _concerned(finding), (device,), SmallWorkload(), Recording(clock.now_ns)
    )  # fmt: skip
    device.close()
    assert virtual.diverged == real.diverged == ""
    return (
        _happened(finding, virtual.kind, virtual.waits_for, virtual.leaks),
        _happened(finding, real.kind, real.waits_for, bool(real.leaks)),
    )


def findings(programs):
    found = explore({name: (one,) for name, one in programs.items()}).findings
    return [finding for finding in found if finding.kind not in NEVER_SEEN]


@pytest.mark.parametrize("name", [name for name, (_, outcome) in CERTAIN.items() if outcome != "ok"])
def test_the_findings_of_small_systems_happen(name):
    some = findings(CERTAIN[name][0])
    assert some
    for finding in some:
        assert followed(CERTAIN[name][0], finding) == (True, True)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.dictionaries(st.sampled_from(("a", "b")), _SCRIPT, min_size=1))
@example({"a": script(("fork", ()), ("join",), ("fork", (("alloc", 300, ()),)))})  # two children of one name
def test_whatever_the_checker_finds_in_random_programs_happens(programs):
    for finding in findings(programs):
        assert followed(programs, finding) == (True, True), finding


DESIGNS = [
    ("phase10_ordered", {}, 2, 1, 16, "oom"),
    ("phase10_ordered", {"on_full": "wait"}, 2, 2, 16, "capacity_deadlock"),
    ("phase10_nested", {"on_full": "wait"}, 2, 1, 16, "capacity_deadlock"),
    pytest.param("phase10_ticket", {"on_full": "wait"}, 3, 1, 16, "capacity_deadlock", marks=pytest.mark.slow),
    pytest.param("phase10_ordered", {}, 3, 2, 16, "oom", marks=pytest.mark.slow),
    ("phase10_handoff", {}, 2, 1, 16, "use_after_free"),
    ("phase10_reservation", {}, 2, 1, 11, "request_above_capacity"),
    ("phase9", {}, 2, 1, 13, "oom"),
    ("phase12", {}, 2, 2, 13, "oom"),
]


@pytest.mark.parametrize(("name", "options", "workers", "partitions", "vram_gib", "kind"), DESIGNS)
def test_a_designs_counterexample_happens_ten_times_out_of_ten(name, options, workers, partitions, vram_gib, kind):
    result = check(
        policies.load(name, **options), workers=workers, partitions=partitions, vram_bytes=vram_gib * GiB
    )  # fmt: skip
    finding = result.findings[0]
    assert finding.kind == kind
    virtual = replay(result, finding, "simulate")
    assert (virtual.happened, virtual.followed) == (True, len(_turns(finding)))
    runs = [replay(result, finding, "live", log2_domain=8) for _ in range(10)]
    assert [run.happened for run in runs] == 10 * [True]
    assert {run.explanation for run in runs} == {runs[0].explanation}
    assert {run.outcome for run in runs} == {virtual.outcome}
    steps = [row.value for row in runs[0].recorder.rows["counters"] if row.name == "schedule step"]
    assert steps == [step.step for step in _turns(finding)]


EARLY = """
from cuzklab.policies.common import prep
from cuzklab.policies.effects import Compute, Fork, Join
from cuzklab.policies.model import program


@program
def prove_partition(p, gpu):
    thread = yield Fork(prep(p))
    yield Compute("{early}", p)
    yield Join(thread)
"""


@pytest.mark.parametrize(
    ("early", "missing"),
    [
        ("b_g2_msm", "b_g2_msm of p0.0 reads tails, which prep_msm has yet to write"),
        ("epilogue", "epilogue of p0.0 reads h sum, sums of ones (l), sums of ones (a) and 6 more, which h_msm, "),
    ],
)
def test_a_stage_that_reads_too_early_does_so_everywhere(early, missing):
    policy = policies.from_source("early", EARLY.format(early=early), "early.py")
    result = check(policy, workers=2, partitions=1, vram_bytes=16 * GiB)
    finding = result.findings[0]
    assert (finding.kind, len(finding.schedule)) == ("read_before_write", 2)
    for where in ("simulate", "live"):
        again = replay(result, finding, where, log2_domain=8)
        assert (again.happened, again.outcome, again.followed) == (True, "fault", 2)
        assert missing in again.explanation


def test_the_very_step_at_which_memory_runs_out_is_in_the_trace(tmp_path):
    result = check(policies.load("phase10_ordered"), workers=2, partitions=1, vram_bytes=16 * GiB)
    finding = result.findings[0]
    again = replay(result, finding, "live")
    run = again.write(tmp_path / "run")
    assert (run.info.origin, run.info.outcome) == ("live", "device_oom")
    (failed,) = [row for row in again.recorder.rows["vram"] if row.op == "fail"]
    assert failed.worker == finding.schedule[-1].actor
    last = max(row.time for row in again.recorder.rows["counters"] if row.name == "schedule step")
    before = [row.time for row in again.recorder.rows["vram"] if row.op == "alloc"]
    assert max(before) < failed.time <= last
    assert not {row.kind for row in again.recorder.rows["waits"]} & {"schedule"}


def test_two_devices_can_be_replayed():
    result = check(policies.load("phase9"), workers=1, partitions=1, devices=2, vram_bytes=13 * GiB)
    assert all(replay(result, result.findings[0], where).happened for where in ("simulate", "live"))


@program
def takes_two():
    yield e.Alloc(GPU, "x", 600)
    yield e.Alloc(GPU, "y", 600)


@program
def takes_one_after_a_bell():
    yield e.Wait(Semaphore("bell"))


def test_programs_that_do_something_else_are_told_at_the_step():
    (finding,) = findings({"a": takes_two()})
    other = {"a": (takes_one_after_a_bell(),)}
    virtual = follow(other, _turns(finding), _concerned(finding), toy_hardware(), SHAPE)
    assert virtual.diverged == "step 1: a does Wait bell, not Alloc gpu0 x 600 B"
    clock = FakeClock()
    device = EmulatedDevice(0, GPU.vram_bytes, RATES, clock)
    real = force(other, _turns(finding), _concerned(finding), (device,), SmallWorkload(), Recording(clock.now_ns))
    device.close()
    assert (real.diverged, real.followed) == (virtual.diverged, 0)


def test_a_step_that_cannot_take_place_ends_the_run_at_once():
    found = explore({"a": (takes_two(),)})
    (finding,) = found.findings

    # As if the device had less memory than in the check, and the first allocation waited for it.
    @program
    def waits():
        yield e.Alloc(GPU, "x", 1001, on_full="wait")

    programs = {"a": (waits(),)}
    clock = FakeClock()
    device = EmulatedDevice(0, GPU.vram_bytes, RATES, clock)
    real = force(programs, _turns(finding), _concerned(finding), (device,), SmallWorkload(), Recording(clock.now_ns))
    device.close()
    assert real.diverged.startswith("at step 1: a Alloc gpu0 x 600 B: nobody can go on: a waits for memory")
    virtual = follow(programs, _turns(finding), _concerned(finding), toy_hardware(), SHAPE)
    assert virtual.diverged == "at step 1: a Alloc gpu0 x 600 B, which cannot take place"


def test_findings_without_an_end_are_refused():
    result = check(policies.load("phase10_ordered"), workers=2, partitions=1, vram_bytes=16 * GiB)
    finding = result.findings[0]
    endless = type(finding)("starvation", "", finding.schedule)
    with pytest.raises(BadInput, match="starvation has no end"):
        replay(result, endless, "live")
    unwritten = type(finding)("read_before_write", "", finding.schedule)
    with pytest.raises(BadInput, match="a proof was never written"):
        replay(result, unwritten, "live")
    small = CheckResult("x", {**result.conditions, "d_a_bytes": 320}, result.exploration)
    with pytest.raises(BadInput, match="sizes of a 32 GiB PoRep partition"):
        replay(small, finding, "live")
