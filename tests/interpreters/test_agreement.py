"""The interpreters agree: what runs for real and in virtual time is what the model allows and the checker found."""

import random

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.check import explore
from cuzklab.policies import effects as e
from cuzklab.policies.model import program
from cuzklab.simulate.costs import Machine
from cuzklab.simulate.interpreter import Interpreter
from tests.interpreters.systems import BELL, BOX, GPU, leaks, run_on_model, script
from tests.live.programs import run_small
from tests.simulate.conftest import SHAPE, toy_hardware


def live(programs):
    """Outcome of a live run, and what the programs returned."""
    ended = run_small(programs, vram_bytes=GPU.vram_bytes, deadline_s=60).ended
    if ended.outcome == "fault" and ended.fault is None:
        assert ended.explanation.startswith("never given back: ")
        return "leak", ended
    return ended.outcome, ended


def simulated(programs):
    """Outcome of a simulation: its first fault, else a deadlock, else a leak."""
    interpreter = Interpreter(Machine(simpy.Environment(), toy_hardware(), SHAPE))
    ending = interpreter.run(programs)
    for fault in ending.faults.values():
        return "device_oom" if isinstance(fault, e.OutOfDeviceMemory) else "fault", ending
    return "deadlock" if ending.stuck else "leak" if leaks(interpreter.world) else "ok", ending


def allowed(programs):
    """The outcomes that the checker found possible."""
    exploration = explore({name: (one,) for name, one in programs.items()}, shortest=False)
    assert exploration.complete
    kinds = {finding.kind for finding in exploration.findings}
    # A leak is a finding of the checker, where the programs end and something is left.
    return set(exploration.outcomes) | ({"leak"} & kinds), kinds


ACQ, REL = ("acquire", 0), ("release", 0)
CROSSED = {
    "a": script(("acquire", 0), ("ring",), ("get",), ("acquire", 1)),
    "b": script(("acquire", 1), ("wait",), ("put", 1), ("acquire", 0)),
}

CERTAIN = {
    "a lock taken and given back": ({"a": script(ACQ, REL)}, "ok"),
    "a lock taken twice": ({"a": script(ACQ, ACQ)}, "deadlock"),
    "a lock of another": ({"a": script(REL)}, "fault"),
    "a lock kept": ({"a": script(ACQ)}, "leak"),
    "locks crossed": (CROSSED, "deadlock"),
    "memory that fits": ({"a": script(("alloc", 1000, ()), ("free", False))}, "ok"),
    "memory that does not": ({"a": script(("alloc", 1001, ()))}, "device_oom"),
    "more than there is, waited for": ({"a": script(("alloc", 1001, (("on_full", "wait"),)))}, "deadlock"),
    "room that a pool keeps": (
        {"a": script(("alloc", 600, (("pooled", True),)), ("free", False), ("alloc", 601, ()))},
        "device_oom",
    ),
    "room that a trim gives back": (
        {
            "a": script(
                ("alloc", 600, (("pooled", True),)), ("free", False), ("trim",), ("alloc", 601, ()), ("free", True)
            )
        },
        "ok",
    ),
    "scratch without room": ({"a": script(("alloc", 702, ()), ("launch",))}, "device_oom"),
    "scratch with room": ({"a": script(("alloc", 700, ()), ("launch",), ("free", True))}, "ok"),
    "a staged partition": (
        {"a": script(("pin",), ("alloc", 320, ()), ("upload",), ("launch",), ("free", True), ("unpin",))},
        "ok",
    ),
    "memory given back under a copy, as cudaFree does": (
        {"a": script(("pin",), ("alloc", 320, ()), ("upload",), ("free", True), ("unpin",))},
        "ok",
    ),
    "a copy that the device is waited for": (
        {"a": script(("pin",), ("alloc", 320, ()), ("upload",), ("sync",), ("free", False), ("unpin",))},
        "ok",
    ),
    "a copy from pageable memory": ({"a": script(("alloc", 320, ()), ("upload",), ("free", False))}, "ok"),
    "pinned memory kept": ({"a": script(("pin",))}, "leak"),
    "a bell that nobody rings": ({"a": script(("wait",))}, "deadlock"),
    "a bell rung before": ({"a": script(("ring",), ("wait",))}, "ok"),
    "a full box": ({"a": script(("put", 1), ("put", 2))}, "deadlock"),
    "an empty box": ({"a": script(("get",))}, "deadlock"),
    "a reservation too many": ({"a": script(("reserve", 600), ("reserve", 401))}, "deadlock"),
    "a reservation not held": ({"a": script(("unreserve", 600))}, "fault"),
    "a child that never ends": ({"a": script(("fork", (("wait",),)), ("join",))}, "deadlock"),
    "a child that its parent lets go on": ({"a": script(("fork", (("wait",),)), ("ring",), ("join",))}, "ok"),
    "a buffer kept": ({"a": script(("alloc", 600, ()), ("keep",))}, "ok"),
    "a buffer kept and taken out": ({"a": script(("alloc", 600, ()), ("keep",), ("take",), ("free", False))}, "ok"),
    "a buffer kept and freed by another": (
        {
            "a": script(("alloc", 600, ()), ("keep",), ("ring",)),
            "b": script(("wait",), ("take",), ("free", False), ("alloc", 900, ()), ("free", False)),
        },
        "ok",
    ),
    "a buffer pushed out of its slot": ({"a": script(("alloc", 600, ()), ("keep",), ("exchange", 0))}, "leak"),
    "memory that is kept is missing": ({"a": script(("alloc", 600, ()), ("keep",), ("alloc", 501, ()))}, "device_oom"),
    "a flag that nobody clears": ({"a": script(("set",), ("wait_clear",))}, "deadlock"),
    "a flag that is clear": ({"a": script(("set",), ("clear",), ("wait_clear",))}, "ok"),
    "a flag that another clears": (
        {"a": script(("set",), ("ring",), ("wait_clear",)), "b": script(("wait",), ("clear",))},
        "ok",
    ),
    "host memory freed twice": ({"a": script(("free_host",), ("free_host",))}, "fault"),
    "host memory uploaded and freed": (
        {
            "a": script(
                ("pin",), ("alloc", 320, ()), ("upload",), ("launch",), ("unpin",), ("free_host",), ("free", True)
            )
        },
        "ok",
    ),
    "host memory uploaded after it was freed": (
        {"a": script(("alloc", 320, ()), ("free_host",), ("upload",))},
        "fault",
    ),
    "a failing task that was given away": (
        {"a": script(("fork", (("wait",), ("alloc", 1001, ()))), ("fork_adopting", (("ring",),)), ("join",))},
        "device_oom",
    ),
    "memory handed on": (
        {
            "a": script(("alloc", 700, ()), ("ring",), ("free", False)),
            "b": script(("wait",), ("alloc", 600, (("on_full", "wait"),)), ("free", False)),
        },
        "ok",
    ),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_systems_with_one_possible_outcome_have_it_everywhere(name):
    programs, outcome = CERTAIN[name]
    assert live(programs)[0] == outcome
    assert simulated(programs)[0] == outcome
    assert {run_on_model(programs, random.Random(seed)).outcome for seed in range(10)} == {outcome}
    outcomes, kinds = allowed(programs)
    assert outcome in outcomes
    if outcome == "ok":
        assert not kinds


@program
def fails_when_told():
    yield e.Wait(BELL)
    yield e.Alloc(GPU, "too large", GPU.vram_bytes + 1)


@program
def heir(task):
    try:
        yield e.Join(task)
    except e.OutOfDeviceMemory:
        yield e.Put(BOX, "told")


@program
def gives_away():
    task = yield e.Fork(fails_when_told())
    rest = yield e.Fork(heir(task), adopts=(task,))
    yield e.Notify(BELL)
    told = yield e.Get(BOX)
    yield e.Join(rest)
    return told


def test_the_fault_of_a_task_reaches_the_one_that_adopted_it():
    programs = {"a": gives_away()}
    outcome, ended = live(programs)
    assert (outcome, ended.results) == ("ok", {"a": "told"})
    virtual, ending = simulated(programs)
    assert (virtual, ending.results["a"]) == ("ok", "told")


_OPTIONS = st.fixed_dictionaries(
    {},
    optional={"on_full": st.just("wait"), "pooled": st.just(True), "device_wide": st.just(True)},
).map(lambda options: tuple(sorted(options.items())))
_STEP = st.one_of(
    st.tuples(st.just("alloc"), st.sampled_from((300, 501, 600, 701)), _OPTIONS),
    st.tuples(st.just("free"), st.booleans()),
    st.tuples(st.sampled_from(("acquire", "release")), st.integers(0, 1)),
    st.tuples(st.just("put"), st.integers(0, 1)),
    st.tuples(st.sampled_from(("reserve", "unreserve")), st.sampled_from((400, 700))),
    st.sampled_from((
        ("launch",), ("compute",), ("ring",), ("wait",), ("get",), ("set",), ("read",), ("sync",), ("trim",),
        ("query",), ("join",), ("clear",), ("wait_clear",), ("keep",), ("take",), ("free_host",),
    )),
)  # fmt: skip
_FORK = st.tuples(st.just("fork"), st.lists(_STEP, max_size=2).map(tuple))
# Copies from pinned memory end when they like, so programs with these may end in several ways.
_STAGING = st.sampled_from((("pin",), ("upload",), ("unpin",), ("launch",)))
_SCRIPT = st.lists(st.one_of(_STEP, _STEP, _STAGING, _FORK), max_size=6).map(lambda steps: script(("read",), *steps))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(("a", "b")), _SCRIPT, min_size=1))
def test_whatever_runs_lies_within_what_the_checker_allows(programs):
    outcomes, _ = allowed(programs)
    for outcome in (live(programs)[0], simulated(programs)[0], run_on_model(programs, random.Random(1)).outcome):
        assert outcome in outcomes


_ALONE = st.lists(_STEP, max_size=10).map(lambda steps: script(*steps))


@settings(max_examples=200, deadline=None)
@given(_ALONE)
def test_a_program_alone_gets_the_same_results_everywhere(one):
    """Buffers, free bytes, flags, items, and the words of each failure."""
    model = run_on_model({"a": one}, random.Random(0))
    outcome, ended = live({"a": one})
    virtual, ending = simulated({"a": one})
    assert outcome == virtual == model.outcome
    assert ended.results["a"] == ending.results.get("a") == model.results.get("a")
    if model.fault:
        assert str(ended.fault) == str(ending.faults["a"]) == str(model.fault)
