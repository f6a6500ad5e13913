"""A counterexample as lanes over its steps, and the wait-for graph at its end."""

from cuzklab import policies
from cuzklab.check import check, explore, render_text
from cuzklab.check.findings import CheckResult
from cuzklab.check.timeline import graph_lines, lanes, timeline_lines
from cuzklab.policies import effects as e
from cuzklab.policies.model import Lock, Semaphore, program
from cuzklab.units import GiB

L, M = Lock("L"), Lock("M")


@program
def takes(first, second):
    yield e.Acquire(first)
    yield e.Acquire(second)
    yield e.Release(second)
    yield e.Release(first)


@program
def waits():
    yield e.Wait(Semaphore("bell"))


def result_of(**programs):
    exploration = explore({name: (one,) for name, one in programs.items()})
    return CheckResult("small", {"devices": 1}, exploration)


def test_each_actor_lock_and_device_has_a_lane():
    result = result_of(a=takes(L, M), b=takes(M, L))
    found = {lane.title: lane.cells for lane in lanes(result, result.findings[0])}
    # One step each; after both neither can go on.
    assert found in (
        {"A a": "●░", "B b": "·●", "held: L": "AA", "held: M": "-B", "memory: gpu0": ""},
        {"A a": "·●", "B b": "●░", "held: L": "-A", "held: M": "BB", "memory: gpu0": ""},
    )


def test_the_graph_names_the_cycle():
    result = result_of(a=takes(L, M), b=takes(M, L))
    finding = result.findings[0]
    lines = graph_lines(finding.wait_for, finding.actors)
    assert sorted(lines[:2]) == ["a ──▶ b  lock M", "b ──▶ a  lock L"]
    assert lines[2] in ("cycle: a → b → a", "cycle: b → a → b")


def test_who_waits_for_nobody_is_said():
    result = result_of(a=waits())
    assert graph_lines(result.findings[0].wait_for, ("a",)) == ["a ──▶ nobody  barrier bell"]


def test_a_design_on_a_terminal():
    result = check(policies.load("phase10_nested", on_full="wait"), workers=2, partitions=1, vram_bytes=16 * GiB)
    text = render_text(result)
    finding = result.findings[0]
    found = {lane.title: lane.cells for lane in lanes(result, finding)}
    for title, actor in (("A w0", "w0"), ("B w1", "w1")):
        assert found[title].count("●") == sum(step.actor == actor for step in finding.schedule)
    assert found["memory: gpu0, 16.0 GiB"][-1] == "█"  # the device is full
    assert all(cells.rstrip() in text for cells in found.values())
    assert "8.00 GiB of memory, 0 B are free  (has 12.0 GiB: d_a, d_bc)" in text
    assert "cycle: w" in text and "● its step" in text


def test_long_schedules_are_broken_into_rows():
    @program
    def many():
        for _ in range(120):
            yield e.Notify(Semaphore("s"))
        yield e.Wait(Semaphore("never"))

    result = result_of(a=many())
    lines = timeline_lines(result, result.findings[0])
    assert [line for line in lines if line.startswith("A a")] == [
        "A a           " + 100 * "●",
        "A a           " + 20 * "●",
    ]
