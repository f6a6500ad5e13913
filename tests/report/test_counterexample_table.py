"""The table of a counterexample shows the checker's own schedule: every step, each with its actor."""

import re

import pytest

from cuzklab import check, policies
from cuzklab.report import schedule
from cuzklab.units import GiB

DESIGNS = [
    ("phase10_nested", {"on_full": "wait"}, 2, 1, 16),  # a kernel begins in step 16 and ends in step 17
    ("phase10_nested", {"on_full": "fail"}, 3, 1, 16),
    ("phase10_ordered", {}, 2, 2, 16),
    ("phase10_handoff", {}, 3, 1, 48),
]


@pytest.mark.parametrize(("policy", "options", "workers", "partitions", "vram_gib"), DESIGNS)
def test_every_step_of_the_schedule_is_shown_with_its_actor(tmp_path, policy, options, workers, partitions, vram_gib):
    checked = check.check(
        policies.load(policy, **options), workers=workers, partitions=partitions, vram_bytes=vram_gib * GiB
    )
    assert checked.findings
    for number, finding in enumerate(checked.findings):
        run = check.counterexample_run(checked, finding, tmp_path / str(number))
        shown = [(step.number, step.actor) for step in schedule.steps(run)]
        assert shown == [(step.step, step.actor) for step in finding.schedule]
        assert [step for step, _ in shown] == list(range(1, len(finding.schedule) + 1))


def test_a_kernel_begins_and_ends_in_a_step_each(tmp_path):
    checked = check.check(policies.load("phase10_nested", on_full="wait"), workers=2, partitions=1, vram_bytes=16 * GiB)
    finding = next(one for one in checked.findings if one.kind == "capacity_deadlock")
    table = schedule.table(check.counterexample_run(checked, finding, tmp_path / "run"))
    rows = re.findall(r'<td class="number">(\d+)</td><td>(.*?)</td>', table)
    assert [number for number, _ in rows] == [str(number) for number in range(1, 20)]
    assert rows[15:17] == [("16", "ntt_h begins"), ("17", "ntt_h ends")]


def test_what_is_under_way_when_the_schedule_stops_has_no_end():
    spans = [(1, 2, "w0", "Fork"), (2, 5, "w0", "ntt_h"), (3, 4, "w1", "Fork"), (4, 5, "w1", "Alloc")]
    assert schedule._of_spans(spans) == [
        (1, "w0", "Fork"), (2, "w0", "ntt_h begins"), (3, "w1", "Fork"), (4, "w1", "Alloc"),
    ]  # fmt: skip
