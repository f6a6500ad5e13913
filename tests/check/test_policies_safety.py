"""The designs beside phases 8 to 10 at the sizes of a 32 GiB PoRep partition: verdicts, each with the reason for it.

d_a takes 4 GiB, d_bc 8 GiB, the scratch memory of the H-MSM 1.77 GiB and that of the largest sum of ones 2.92 GiB.
"""

import re

import pytest

from cuzklab.check import check, explore
from cuzklab.policies import load
from cuzklab.policies.effects import Alloc, Exchange
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.policies.model import Gpu, program
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB, MiB
from tests.check.programs import GPU, kinds, run, steps

SIZES = partition_sizes(POREP_32G)
STAGED = SIZES.d_a + SIZES.d_bc
MARGIN = 512 * MiB
SCRATCH = max(SIZES.scratch.values())
H_MSM_SCRATCH = SIZES.scratch["h_msm", ""]
D_A, D_BC = f"Alloc gpu0 d_a {SIZES.d_a} B", f"Alloc gpu0 d_bc {SIZES.d_bc} B"


def checked(policy, workers, partitions, vram_bytes=16 * GiB, shortest=False, **options):
    found = check(
        load(policy, **options), workers=workers, partitions=partitions, vram_bytes=vram_bytes, shortest=shortest
    )
    assert found.complete
    return found


def defects(policy, workers, partitions, vram_bytes=16 * GiB, **options):
    return {finding.kind for finding in checked(policy, workers, partitions, vram_bytes, **options).findings}


def told(finding):
    """A schedule with workers called A, B, C in the order in which they appear."""
    lines = [re.sub(r"\bp\d\.\d\b", "p", line) for line in steps(finding)]
    names = {name: letter for name, letter in zip(dict.fromkeys(line[:2] for line in lines), "ABC", strict=False)}
    return [names[line[:2]] + line[2:] for line in lines]


# --- one lock --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["phase7", "phase11", "phase12", "resident"])
@pytest.mark.parametrize(("workers", "partitions"), [(1, 2), (2, 2), (3, 1)])
def test_one_lock_around_all_device_memory_is_safe_on_16_gib(policy, workers, partitions):
    # All device memory is taken and given back under one lock, so only one partition's is live, at most 12 GiB and the
    # scratch of one stage. Whoever holds the lock waits only for its own prep thread, which takes no lock.
    assert checked(policy, workers, partitions).findings == ()


@pytest.mark.parametrize("serial_dealloc", [True, False])
@pytest.mark.parametrize("throttle", [True, False])
def test_phase_11_is_safe_with_any_of_its_interventions(serial_dealloc, throttle):
    # The lock of deallocation is taken by a thread that holds nothing else; nobody waits for the flag in a call.
    options = {"serial_dealloc": serial_dealloc, "throttle": throttle, "g2_threads": 0}
    assert checked("phase11", 2, 2, **options).findings == ()


@pytest.mark.parametrize("policy", ["phase9", "phase11", "phase12"])
def test_the_margin_of_phase_9_does_not_cover_the_h_msm(policy):
    # With 12.5 GiB free the query says that there is room to stage; then d_bc stays through the H-MSM, whose scratch
    # needs more than the margin. With less memory the query says no, d_bc is freed before, and all fits.
    assert H_MSM_SCRATCH > MARGIN
    assert defects(policy, 2, 1, STAGED) == set()
    assert defects(policy, 2, 1, STAGED + MARGIN - 1) == set()
    assert defects(policy, 2, 1, STAGED + MARGIN) == {"oom"}
    assert defects(policy, 2, 1, STAGED + H_MSM_SCRATCH - 1) == {"oom"}
    assert defects(policy, 2, 1, STAGED + H_MSM_SCRATCH) == set()


def test_memory_that_the_pool_keeps_is_missing_for_scratch():
    # Resident: d_a is live and the pool keeps d_bc while the sums of ones take their scratch.
    assert defects("resident", 2, 1, STAGED + SCRATCH - 1) == {"oom"}
    assert defects("resident", 2, 1, STAGED + SCRATCH) == set()


# --- reservation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "partitions"), [(2, 1), (2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("vram_gib", [12, 16, 24, 36])
def test_reservation_is_safe_wherever_one_partition_fits(workers, partitions, vram_gib):
    # What an actor has allocated, and what the pool keeps of it, is never more than it has reserved; reservations
    # never exceed the memory. So no allocation fails. Whoever waits for a reservation holds no lock.
    assert checked("phase10_reservation", workers, partitions, vram_gib * GiB).findings == ()


def test_a_reservation_larger_than_the_device_is_said_to_wait_for_ever():
    assert defects("phase10_reservation", 2, 1, STAGED - 1) == {"request_above_capacity"}


# --- ticket ----------------------------------------------------------------------------------------------------------


def test_tickets_are_safe_while_nobody_comes_after_the_one_that_could_not_stage():
    # Two workers with a partition each: the second finds too little, waits for its turn, and then the first is done.
    # Ordered locks fail here, because the second may overtake the first at `compute`.
    assert defects("phase10_ordered", 2, 1) == {"oom"}
    assert defects("phase10_ticket", 2, 1) == set()


@pytest.mark.parametrize(("workers", "partitions"), [(2, 2), (3, 1)])
def test_tickets_do_not_keep_memory_for_the_one_whose_turn_it_is(workers, partitions):
    # The one that could not stage allocates in its turn; by then a later ticket has staged 12 of the 16 GiB. If
    # allocation waits, that one waits for its turn: a deadlock over memory. And whoever staged 12 GiB beside d_a of
    # another, by waiting, leaves too little for the other's scratch.
    assert defects("phase10_ticket", workers, partitions) == {"oom"}
    assert defects("phase10_ticket", workers, partitions, on_full="wait") == {"oom", "capacity_deadlock"}
    assert defects("phase10_ticket", workers, partitions, 2 * STAGED - 1) == {"oom"}
    assert defects("phase10_ticket", workers, partitions, 2 * STAGED) == set()


def test_the_shortest_schedule_against_tickets():
    found = checked("phase10_ticket", 3, 1, shortest=True)
    finding = found.findings[0]
    assert (finding.kind, finding.shortest, finding.effect) == ("oom", True, D_BC)
    lines = told(finding)
    memory = [line for line in lines if "Alloc" in line or "QueryFree" in line or "Free gpu0" in line]
    assert {actor: [line[3:] for line in memory if line[0] == actor] for actor in "ABC"} == {
        "A": ["QueryFree gpu0", D_A, D_BC, "Free gpu0 d_bc", "Free gpu0 d_a"],
        "B": ["QueryFree gpu0", D_A, D_BC],
        "C": ["QueryFree gpu0", D_A, D_BC],
    }
    moments = [
        f"A: {D_BC}", "B: QueryFree gpu0", "A: Free gpu0 d_a", "C: QueryFree gpu0", "A: Notify gpu0.turn1", f"B: {D_A}",
    ]  # fmt: skip
    assert sorted(moments, key=lines.index) == moments
    assert {lines[-1], lines[-2]} <= {f"B: {D_BC}", f"C: {D_BC}"}  # room for one of the two


# --- hand-off --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vram_gib", [16, 48])
@pytest.mark.parametrize(("workers", "partitions"), [(2, 1), (2, 2), (3, 1)])
def test_a_successor_frees_what_its_predecessor_still_uses(workers, partitions, vram_gib):
    # Nothing makes a successor start after its predecessor's kernels, whatever the memory. A buffer is taken out of
    # its slot by one worker only, so none is freed twice.
    found = checked("phase10_handoff", workers, partitions, vram_gib * GiB)
    assert {finding.kind for finding in found.findings} == {"use_after_free"}
    assert {finding.effect for finding in found.findings} == {"Launch gpu0 ntt_h", "Launch gpu0 h_msm"}


def test_the_shortest_schedule_against_hand_off():
    (first, _) = checked("phase10_handoff", 2, 1, shortest=True).findings
    assert first.shortest
    lines = told(first)
    assert [line[3:] for line in lines if line[:2] == "A:"] == [
        "Fork prep", "Pin p.abc", "Acquire gpu0.mem", "Exchange gpu0.d_a", "Exchange gpu0.d_bc", "TrimPool gpu0", D_A,
        D_BC, "Upload gpu0 p.abc", "RecordEvent p.upload", "WaitEvent p.upload", "Exchange gpu0.d_a",
        "Exchange gpu0.d_bc", "Release gpu0.mem", "Acquire gpu0.compute", "Launch gpu0 ntt_h start",
    ]  # fmt: skip
    assert [line for line in lines if "/copy" in line] == ["A/copy: Copy gpu0 p.abc"]
    assert [line[3:] for line in lines if line[0] == "B"] == [
        "Fork prep", "Pin p.abc", "Acquire gpu0.mem", "Exchange gpu0.d_a", "Free gpu0 d_a",
    ]  # fmt: skip
    assert lines[-1] == "A: Launch gpu0 ntt_h start"


def test_one_worker_alone_hands_off_to_itself():
    assert checked("phase10_handoff", 1, 2).findings == ()
    assert checked("phase10_handoff", 1, 2, leave="after_kernels").findings == ()


@pytest.mark.parametrize("workers", [2, 3])
def test_left_after_its_kernels_memory_is_safe_and_too_much(workers):
    # Each worker has at most 12 GiB that are its own or lie in the slots, and one of them takes scratch.
    needed = workers * STAGED + SCRATCH
    assert defects("phase10_handoff", workers, 1, leave="after_kernels") == {"oom"}
    assert defects("phase10_handoff", workers, 1, needed - 1, leave="after_kernels") == {"oom"}
    assert defects("phase10_handoff", workers, 1, needed, leave="after_kernels") == set()


def test_a_successor_that_waits_for_memory_waits_for_its_own_start():
    # It looked into the slots before its predecessor left anything there; only another start would look again.
    found = checked("phase10_handoff", 2, 1, leave="after_kernels", on_full="wait")
    assert {finding.kind for finding in found.findings} == {"oom", "capacity_deadlock"}


# --- what outlives partitions ----------------------------------------------------------------------------------------


@program
def keeps(slot, times):
    for _ in range(times):
        yield Exchange(slot, (yield Alloc(GPU, "x", 4)))


def test_a_buffer_in_a_slot_is_kept_and_one_that_is_pushed_out_of_it_leaks():
    slot = GPU.slot("kept")
    assert run(a=keeps(slot, 1)).findings == ()
    found = run(a=keeps(slot, 2))
    assert kinds(found) == ["leak"]
    assert found.findings[0].message == "Every program has ended, but device memory x, taken by a was not given back."


# --- the whole engine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["phase7", "phase10_reservation", "phase11", "phase12", "resident"])
def test_the_engine_with_what_a_policy_adds_ends_on_every_schedule(policy):
    config = EngineConfig(1, 2, (Gpu(0, 16 * GiB),), 1, 1, 2, 2)
    found = explore(
        {name: (one,) for name, one in engine_programs(load(policy), config, SIZES).items()}, shortest=False
    )
    assert (found.verdict, found.complete, found.outcomes, found.caught) == ("safe", True, {"ok"}, ())


@pytest.mark.parametrize("policy", ["phase10_ticket", "phase12", "resident"])
def test_a_partition_that_fails_gives_everything_back_and_passes_its_turn(policy):
    # On 8 GiB no d_bc fits.
    config = EngineConfig(1, 2, (Gpu(0, 8 * GiB),), 1, 1, 2, 2)
    found = explore(
        {name: (one,) for name, one in engine_programs(load(policy), config, SIZES).items()}, shortest=False
    )
    assert (found.verdict, found.complete, found.outcomes) == ("safe", True, {"ok"})
    assert {line.split(" @")[0] for line in found.caught} == {D_BC}


@pytest.mark.parametrize("policy", ["phase7", "phase10_reservation", "phase11", "phase12", "resident"])
def test_four_workers_with_three_partitions_each_are_covered(policy):
    assert checked(policy, 4, 3).findings == ()
