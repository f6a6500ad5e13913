"""Every single mutation of the safe policies: refused, or harmless for a reason that is on record."""

import pytest

from cuzklab.check.mutations import MutantPolicy, judge, judge_all, mutations
from cuzklab.check.survivors import DROPPED, MOVED, reason_of
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.policies.model import Gpu, Partition
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB
from tests.cli.command import cuzklab

GPU, SIZES = Gpu(0, 16 * GiB), partition_sizes(POREP_32G)

# For each policy: drops and swaps, how many of them are refused, and the drops that are not. (The others take minutes:
# `cuzklab check phase12 --mutations`.)
TABLE = {
    "phase7": (38, 26, set()),
    "phase8": (39, 26, set()),
    "phase9": (49, 28, {"Pin p0.0.abc", "DeviceSync gpu0", "TrimPool gpu0"}),
    "phase10_reservation": (55, 32, {"Pin p0.0.abc", "TrimPool gpu0"}),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("policy", TABLE)
def test_mutants_are_refused_or_have_a_reason(policy):
    count, refused, dropped = TABLE[policy]
    judged = judge_all(load(policy), 16 * GiB, moves=False)
    survivors = [one for one in judged if not one.refused]
    assert all(one.reason for one in survivors)
    assert (len(judged), sum(one.refused for one in judged)) == (count, refused)
    assert {one.mutation.effect for one in survivors if one.mutation.kind == "drop"} == dropped


@pytest.mark.parametrize("policy", ["phase9", "phase11", "resident"])
def test_the_unchanged_policy_passes_as_a_mutant_without_a_mutation(policy):
    assert judge(load(policy), None, 16 * GiB, SIZES)[0] == ()


@pytest.mark.parametrize(
    ("policy", "effect", "kinds"),
    [
        ("phase9", "Acquire gpu0.lock", {"release_by_non_owner"}),
        ("phase9", "Release gpu0.lock", {"leak"}),
        ("phase9", "Unpin p0.0.abc", {"leak"}),
        ("phase9", "Notify p0.0.barrier", {"lost_wakeup"}),
        ("phase9", "Compute prep_msm", {"missing_data"}),
        ("phase9", "Wait p0.0.barrier", {"missing_data"}),
        ("phase9", "WaitEvent p0.0.upload", {"missing_data"}),
        ("phase9", "Free gpu0 d_a", {"oom", "leak"}),
        ("phase9", "Upload gpu0 p0.0.abc", {"missing_data"}),
        ("phase9", "Compute epilogue", {"missing_data"}),
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
    found, _ = judge(load(policy), one, 16 * GiB, SIZES)
    assert kinds & set(found)


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
    from cuzklab.check.mutations import walk

    program = MutantPolicy(policy, late).prove_partition(Partition(0, 0, SIZES), GPU)
    told = [str(effect) for _, effect in walk(program)]
    assert told[told.index("Compute epilogue") + 1] == "Release gpu0.lock"
    assert told.count("Release gpu0.lock") == 1


def test_a_survivor_without_a_reason_is_an_error():
    from cuzklab.check.mutations import Facts, Mutation

    odd = Mutation("drop", ("prove_partition", "mine.py:3", 0), "Notify bell")
    with pytest.raises(LookupError, match="no reason on record why this is harmless: drop Notify bell"):
        reason_of(odd, Facts(0, frozenset()), Facts(0, frozenset()), 16 * GiB)
    assert all(reason and not reason.endswith(".") for reason in (*DROPPED.values(), *MOVED.values()))


def test_mutations_are_of_safe_policies():
    with pytest.raises(BadInput, match=r"policy phase10_ordered is not safe itself \(oom\)"):
        judge_all(load("phase10_ordered"), 16 * GiB)


def test_the_command_refuses_them_too():
    done = cuzklab("check", "phase10_ordered", "--mutations")
    assert done.status == 2 and "mutations are of safe policies" in done.err
