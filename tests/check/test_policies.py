"""The built-in policies at the sizes of a 32 GiB PoRep partition: what is known about them."""

import json
import re

import pytest

from cuzklab.check import check, render_text
from cuzklab.policies import load
from cuzklab.units import GiB
from tests.check.programs import steps

STAGED_BYTES, MARGIN_BYTES = 12 * GiB, GiB // 2


def verdict(vram_bytes, workers, policy="phase10_ordered", partitions=1, **options):
    found = check(
        load(policy, **options), workers=workers, partitions=partitions, vram_bytes=vram_bytes, shortest=False
    )
    assert found.complete
    return found.verdict


@pytest.mark.parametrize("policy", ["phase8", "phase9"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_one_lock_is_safe_on_16_gib(policy, workers):
    found = check(load(policy), workers=workers, partitions=2, vram_bytes=16 * GiB)
    assert (found.verdict, found.complete, found.findings) == ("safe", True, ())


def test_ordered_locks_run_out_of_memory_with_two_workers():
    found = check(load("phase10_ordered"), workers=2, partitions=1, vram_bytes=16 * GiB)
    (finding,) = found.findings
    assert (finding.kind, finding.shortest, found.verdict) == ("oom", True, "unsafe")
    # One worker stages its 12 GiB and lets go of `mem`. The other sees too little free memory, overtakes it at
    # `compute` and allocates there: 4 GiB still fit, 8 do not. Its trim waits for the device, so for the first's copy.
    first = steps(finding)[0][:2]
    second = {"w0": "w1", "w1": "w0"}[first]
    names = {first: "A", second: "B"}
    told = [re.sub(r"\bp\d\.0\b", "p", names[line[:2]] + line[2:]) for line in steps(finding)]
    assert told == [
        "A: Fork prep", "A: Pin p.abc", "A: Acquire gpu0.mem", "A: TrimPool gpu0", "A: QueryFree gpu0",
        "A: Alloc gpu0 d_a 4294967296 B", "A: Alloc gpu0 d_bc 8589934592 B", "A: Upload gpu0 p.abc",
        "A: RecordEvent p.upload", "A: WaitEvent p.upload", "A: Release gpu0.mem",
        "B: Fork prep", "B: Pin p.abc", "B: Acquire gpu0.mem", "A/copy: Copy gpu0 p.abc", "B: TrimPool gpu0",
        "B: QueryFree gpu0",
        "B: Release gpu0.mem", "B: Acquire gpu0.compute", "B: Alloc gpu0 d_a 4294967296 B",
        "B: Alloc gpu0 d_bc 8589934592 B",
    ]  # fmt: skip
    assert finding.message == (
        f"{second} runs out of device memory at {finding.where}: d_bc needs 8.00 GiB, but 16.0 GiB of 16.0 GiB on gpu0 "
        + "are in use by "
        + ", ".join(sorted((f"{first} 12.0 GiB (d_a, d_bc)", f"{second} 4.00 GiB (d_a)")))
        + "."
    )


def test_ordered_locks_run_out_of_memory_with_three_workers():
    found = check(load("phase10_ordered"), workers=3, partitions=1, vram_bytes=16 * GiB)
    assert {finding.kind for finding in found.findings} == {"oom"} and found.complete
    assert all(finding.shortest for finding in found.findings)
    # The third worker makes no shorter schedule possible, but lets memory run out at every launch with scratch.
    assert [len(finding.schedule) for finding in found.findings] == [21, 61, 67, 69, 71, 73, 75, 77, 79]


def test_nested_locks_with_waiting_allocation_come_to_the_capacity_deadlock():
    found = check(load("phase10_nested", on_full="wait"), workers=2, partitions=1, vram_bytes=16 * GiB)
    finding = found.findings[0]
    assert (finding.kind, finding.shortest, len(finding.schedule)) == ("capacity_deadlock", True, 19)
    holder, waiter = finding.wait_for if finding.wait_for[0].kind == "memory" else finding.wait_for[::-1]
    assert (holder.kind, holder.wanted_bytes, holder.free_bytes) == ("memory", 8 * GiB, 0)
    assert {(h.actor, h.held_bytes) for h in holder.holders} == {(holder.actor, 4 * GiB), (waiter.actor, 12 * GiB)}
    assert (waiter.kind, waiter.on, waiter.holders[0].actor) == ("lock", "gpu0.mem", holder.actor)
    # The one in `compute` has launched its first kernels; the other stands in `mem` with half of its memory.
    assert [step.effect for step in finding.schedule if step.actor == waiter.actor][-1] == "Launch gpu0 ntt_h"
    assert [step.effect for step in finding.schedule if step.actor == holder.actor][-1].startswith("Alloc gpu0 d_a")


def test_nested_locks_with_failing_allocation_run_out_of_memory():
    found = check(load("phase10_nested", on_full="fail"), workers=2, partitions=1, vram_bytes=16 * GiB)
    assert {finding.kind for finding in found.findings} == {"oom"} and found.complete
    # As above, but without the kernels: d_a and d_bc of one, d_a of the other, then no room for its d_bc. The trim
    # of the other waits for the copy of the first.
    assert len(found.findings[0].schedule) == 10 + 7


def smallest_safe_vram_gib(workers, low, high):
    """By bisection, in 1/1024 GiB, between an unsafe and a safe amount of memory."""
    assert (verdict(low * GiB, workers), verdict(high * GiB, workers)) == ("unsafe", "safe")
    low, high = low * 1024, high * 1024
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if verdict(middle * GiB // 1024, workers) == "safe" else (middle, high)
    return high / 1024


def test_smallest_vram_for_two_workers_is_what_two_partitions_stage():
    # Whoever holds `compute` may have to allocate 12 GiB there while the other has staged 12 GiB; scratch is needed
    # only when d_bc is free again, and is smaller.
    assert smallest_safe_vram_gib(2, 16, 32) * GiB == 2 * STAGED_BYTES
    assert verdict(2 * STAGED_BYTES - 1, 2) == "unsafe"


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_ordered_locks_are_safe_from_twelve_gib_a_worker_on(workers):
    # To the byte: 24, 36 and 48 GiB. On 16 GiB none of them is.
    assert verdict(workers * STAGED_BYTES - 1, workers) == "unsafe"
    assert verdict(workers * STAGED_BYTES, workers) == "safe"
    assert verdict(16 * GiB, workers) == "unsafe"


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_reservation_is_safe_on_16_gib(workers):
    assert verdict(16 * GiB, workers, policy="phase10_reservation") == "safe"


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("vram_gib", [12, 12.5, 24, 24.5, 36])
@pytest.mark.parametrize("less_bytes", [0, 1])
def test_safe_vram_of_ordered_locks_by_formula(workers, vram_gib, less_bytes):
    # Staging asks for 12 GiB beyond what is staged and 0.5 GiB of margin, so ⌊(vram − margin) / 12 GiB⌋ workers can
    # stage; one more can be in `compute` and allocate there. Safety does not grow with memory: below 12.5 GiB nobody
    # stages at all, and all goes one by one.
    vram_bytes = int(vram_gib * GiB) - less_bytes
    at_once = min(workers, (vram_bytes - MARGIN_BYTES) // STAGED_BYTES + 1)
    assert verdict(vram_bytes, workers) == ("safe" if vram_bytes >= at_once * STAGED_BYTES else "unsafe")


def test_three_workers_with_two_partitions_each():
    found = check(load("phase10_ordered"), workers=3, partitions=2, vram_bytes=16 * GiB, shortest=False)
    assert (found.verdict, found.complete) == ("unsafe", True)
    assert {finding.kind for finding in found.findings} == {"oom"}
    assert len(found.findings) == 9


def test_devices_do_not_share_memory():
    # One worker on each of two devices: nobody to compete with.
    found = check(load("phase10_ordered"), workers=1, partitions=1, vram_bytes=16 * GiB, devices=2)
    assert (found.verdict, list(found.exploration.programs)) == ("safe", ["gpu0.w0", "gpu1.w0"])


def test_json_and_text():
    found = check(load("phase10_nested", on_full="wait"), workers=2, partitions=1, vram_bytes=16 * GiB)
    shape = json.loads(json.dumps(found.to_json()))
    assert (shape["verdict"], shape["complete"], shape["states"]) == ("unsafe", True, found.states)
    assert shape["findings"][0]["kind"] == "capacity_deadlock"
    assert shape["findings"][0]["schedule"][2].keys() >= {"step", "actor", "effect"}
    assert [step["step"] for step in shape["findings"][0]["schedule"]] == list(range(1, 20))
    text = render_text(found)
    assert text.startswith("phase10_nested is unsafe with 2 workers × 1 partition on 16.0 GiB: 9 findings;")
    assert "Schedule of 19 steps, the shortest there is" in text
    assert "w0 ──▶ w1  lock gpu0.mem" in text and "w1 ──▶ w0  8.00 GiB of memory, 0 B are free" in text
    assert "cycle: w0 → w1 → w0" in text


def test_text_of_a_safe_policy():
    text = render_text(check(load("phase9"), workers=2, partitions=1, vram_bytes=16 * GiB), width=200)
    assert text.startswith("phase9 is safe with 2 workers × 1 partition on 16.0 GiB: every interleaving covered (")
