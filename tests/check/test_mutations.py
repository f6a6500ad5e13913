"""Every single mutation of the safe policies: refused, or harmless for a reason that is on record."""

import re
from collections import Counter
from pathlib import Path

import pytest

from cuzklab.check.judging import Facts, judge, judge_all, judged
from cuzklab.check.mutants import MutantPolicy, Mutation, walk
from cuzklab.check.mutations import mutations
from cuzklab.check.survivors import DROPPED, MOVED, reason_of
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.policies.model import Gpu, Partition
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB
from tests.cli.command import cuzklab

GPU, SIZES = Gpu(0, 16 * GiB), partition_sizes(POREP_32G)

# Every mutant of these was checked; those that survive are listed beside, with the reason why each is harmless:
# `cuzklab check POLICY --mutations` makes the list anew. How many there are, and how many are refused:
TABLE = {
    "phase7": (290, 205),
    "phase8": (289, 199),
    "phase9": (494, 300),
    "phase10_reservation": (618, 356),
    "resident": (387, 253),
    "phase11": (562, 339),
    "phase12": (474, 272),
}
SURVIVORS = Path(__file__).parent / "survivors.tsv"


def survivors() -> dict[str, dict[str, str]]:
    """For each policy its mutants that survive, without line numbers, and why they may."""
    found = {policy: {} for policy in TABLE}
    for line in SURVIVORS.read_text().splitlines():
        policy, mutation, reason = line.split("\t")
        found[policy][mutation] = reason
    return found


def named(design) -> list[tuple[str, Mutation]]:
    """Every mutation with its name in the list: without a line number, but with a number where two read alike."""
    seen, found = Counter(), []
    for mutation in mutations(design, GPU, SIZES):
        name = re.sub(r"\.py:\d+\)", ".py)", str(mutation))
        seen[name] += 1
        found.append((name if seen[name] == 1 else f"{name} ({seen[name]})", mutation))
    return found


def judged_as_listed(policy: str, step: int) -> None:
    """Every so many-th mutant is refused, or listed with the reason that it gets."""
    design, listed = load(policy), survivors()[policy]
    some = named(design)[step // 2 :: step]
    assert len(some) >= 2
    for name, mutation in some:
        found = judged(design, mutation, 16 * GiB)
        assert not found.undecided
        assert (found.survived, found.reason) == (
            name in listed, listed.get(name, "")
        ), (policy, name, found.kinds)  # fmt: skip


@pytest.mark.parametrize("policy", TABLE)
def test_the_list_of_survivors_is_of_the_mutants_that_there_are(policy):
    everyone = [name for name, _ in named(load(policy))]
    listed = survivors()[policy]
    assert (len(everyone), sum(one not in listed for one in everyone)) == TABLE[policy]
    assert set(listed) <= set(everyone) and all(listed.values())


@pytest.mark.parametrize("policy", TABLE)
def test_a_few_mutants_are_judged_as_listed(policy):
    judged_as_listed(policy, 140)


@pytest.mark.slow
@pytest.mark.parametrize("policy", TABLE)
def test_many_mutants_are_judged_as_listed(policy):
    judged_as_listed(policy, 20)


@pytest.mark.parametrize("policy", ["phase9", "phase11", "resident"])
def test_the_unchanged_policy_passes_as_a_mutant_without_a_mutation(policy):
    assert judge(load(policy), None, 16 * GiB, SIZES).kinds == ()


@pytest.mark.parametrize(
    ("policy", "effect", "kinds"),
    [
        ("phase9", "Acquire gpu0.lock", {"release_by_non_owner"}),
        ("phase9", "Release gpu0.lock", {"leak"}),
        ("phase9", "Unpin p0.0.abc", {"leak"}),
        ("phase9", "Notify p0.0.barrier", {"lost_wakeup"}),
        ("phase9", "Compute prep_msm", {"read_before_write"}),
        ("phase9", "Wait p0.0.barrier", {"read_before_write"}),
        ("phase9", "WaitEvent p0.0.upload", {"read_before_write"}),
        ("phase9", "Free gpu0 d_a", {"oom", "leak"}),
        ("phase9", "Upload gpu0 p0.0.abc", {"read_before_write"}),
        ("phase9", "Compute epilogue", {"read_before_write"}),
        ("phase10_reservation", "Reserve gpu0 12884901888 B", {"release_by_non_owner"}),
        ("phase10_reservation", "Unreserve gpu0 12884901888 B", {"capacity_deadlock", "leak"}),
    ],
)
def test_an_effect_that_is_dropped_is_missed(policy, effect, kinds):
    (one,) = [
        mutation
        for mutation in mutations(load(policy), GPU, SIZES, moves=False)
        if mutation.kind == "drop" and mutation.effect == effect
    ]
    assert kinds & set(judge(load(policy), one, 16 * GiB, SIZES).kinds)


def test_every_effect_of_a_program_is_mutated():
    found = mutations(load("phase8"), GPU, SIZES)
    drops = [one.effect for one in found if one.kind == "drop"]
    # Eighteen steps of the call and three of prep give no result; the fork and the allocations do.
    assert len(drops) == len(set(drops)) == 20
    assert {one.place[0] for one in found} == {"prove_partition", "prep"}
    assert sum(one.kind == "move" for one in found) == 250
    assert len(set(map(str, found))) == len(found)


def test_a_moved_effect_takes_place_where_it_is_put():
    policy = load("phase8")
    (late,) = [
        one
        for one in mutations(policy, GPU, SIZES)
        if (one.kind, one.effect, one.beside) == ("move", "Release gpu0.lock", "Compute epilogue") and one.later
    ]
    program = MutantPolicy(policy, late).prove_partition(Partition(0, 0, SIZES), GPU)
    told = [str(effect) for _, effect in walk(program)]
    assert told[told.index("Compute epilogue") + 1] == "Release gpu0.lock"
    assert told.count("Release gpu0.lock") == 1


def test_a_survivor_that_no_row_speaks_of_has_no_reason():
    odd = Mutation("drop", ("prove_partition", "mine.py:3", 0), "Notify bell")
    assert reason_of(odd, Facts(0, frozenset()), Facts(0, frozenset()), 16 * GiB) == ""
    assert all(reason and not reason.endswith(".") for reason in (*DROPPED.values(), *MOVED.values()))


def test_mutations_are_of_safe_policies():
    with pytest.raises(BadInput, match=r"policy phase10_ordered is not safe itself \(oom\)"):
        judge_all(load("phase10_ordered"), 16 * GiB)


def test_the_command_refuses_them_too():
    done = cuzklab("check", "phase10_ordered", "--mutations")
    assert done.status == 2 and "mutations are of safe policies" in done.err
