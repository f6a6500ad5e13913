"""The model checker SPIN, given the programs and rules of its own, finds what the checker finds.

Compared are the ways in which programs can end: that all end, that some wait for ever, each fault with its place, each
thing that is not given back.
"""

from dataclasses import dataclass
from itertools import product

import pytest

from cuzklab.check import worker_programs
from cuzklab.check.promela import promela
from cuzklab.check.promela.closure import close
from cuzklab.check.promela.rules import RULES
from cuzklab.errors import BadInput
from cuzklab.policies import effects, load, names
from cuzklab.policies.effects import Alloc, Compute, Copy, Effect, OutOfDeviceMemory, QueryFree
from cuzklab.policies.model import Gpu, program
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB
from tests.check.programs import FLAG, GPU, PARTITION, plain
from tests.check.random_programs import system
from tests.check.spin import assert_agreement, in_mib, spin
from tests.check.test_kinds import DEFECTS, REPAIRED

DESIGNS = (
    ("phase8", {}),
    ("phase9", {}),
    ("phase10_ordered", {"on_full": "fail"}),
    ("phase10_ordered", {"on_full": "wait"}),
    ("phase10_nested", {"on_full": "fail"}),
    ("phase10_nested", {"on_full": "wait"}),
)
TOO_MANY = {"queue grows", "permit released before the send"}
RANDOM_QUEUE_BOUND = 2  # of the random programs, few of which put more


def workers_of(name, options, number, vram_gib):
    gpu = Gpu(0, vram_gib * GiB)
    sizes = in_mib(partition_sizes(POREP_32G))
    return worker_programs(load(name, **options), workers=number, partitions=1, gpus=(gpu,), sizes=sizes)


def designs(number):
    return {
        (name, *options.values(), vram_gib): workers_of(name, options, number, vram_gib)
        for (name, options), vram_gib in product(DESIGNS, (16, 48))
    }


def test_two_workers_of_each_policy(tmp_path):
    judged = dict(zip(designs(2), assert_agreement(tmp_path, designs(2), 16), strict=True))
    unsafe = {name for name, verdict in judged.items() if verdict.endings != {"ended"}}
    assert unsafe == {
        (name, on_full, 16) for name in ("phase10_ordered", "phase10_nested") for on_full in ("fail", "wait")
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_three_workers_of_each_policy(tmp_path):
    judged = assert_agreement(tmp_path, designs(3), 16)
    assert max(verdict.states for verdict in judged) > 500_000


@pytest.mark.slow
def test_two_workers_of_the_other_policies(tmp_path):
    others = set(names()) - {name for name, _ in DESIGNS}
    assert "phase10_ticket" in others
    assert_agreement(tmp_path, {name: workers_of(name, {}, 2, 16) for name in sorted(others)}, 16)


def test_named_defects_and_their_repaired_twins(tmp_path):
    systems = {("defect", name): one for name, (_, one, _) in DEFECTS.items()}
    systems |= {("repaired", name): one for name, one in REPAIRED.items()}
    # Twenty different items of a queue, each of which might come at each of twenty steps, are too many histories.
    systems = {name: one for name, one in systems.items() if name[1] not in TOO_MANY}
    systems = {name: {actor: (only,) for actor, only in one.items()} for name, one in systems.items()}
    judged = dict(zip(systems, assert_agreement(tmp_path, systems, 16), strict=True))
    assert all((verdict.endings == {"ended"}) == (name[0] == "repaired") for name, verdict in judged.items())


def test_random_programs_few(tmp_path):
    assert_agreement(tmp_path, {seed: system(seed) for seed in range(15)}, RANDOM_QUEUE_BOUND)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_random_programs_many(tmp_path):
    endings = []
    for first in range(15, 255, 40):
        judged = assert_agreement(
            tmp_path, {seed: system(seed) for seed in range(first, first + 40)}, RANDOM_QUEUE_BOUND
        )
        endings += [{ending.split(":")[0] for ending in verdict.endings} for verdict in judged]
    # The comparison means something only if all that can happen does.
    faults = {kind.kind for kind in vars(effects).values() if isinstance(kind, type) and hasattr(kind, "kind")} - {
        "fault", "read_before_write",  # the latter by the programs of `data_programs`
    }  # fmt: skip
    assert set().union(*endings) == {"ended", "deadlock", "leak", "request_above_capacity", "unbounded_queue", *faults}
    assert sum(len(kinds) > 1 for kinds in endings) >= len(endings) / 3


def test_every_effect_has_a_rule():
    assert {kind for kind in Effect.__subclasses__() if kind.__module__.startswith(effects.__name__)} - {Copy} == set(
        RULES
    )


def test_effect_without_a_rule_is_refused():
    @dataclass(frozen=True)
    class Unknown(Effect):
        pass

    @program
    def strange():
        yield Unknown()

    with pytest.raises(BadInput, match="Unknown has no translation"):
        promela([close({"a": (strange(),)})], 16)


def test_sizes_without_a_common_unit_are_refused():
    sizes = partition_sizes(POREP_32G)
    programs = worker_programs(load("phase8"), workers=1, partitions=1, gpus=(Gpu(0, 16 * GiB),), sizes=sizes)
    with pytest.raises(BadInput, match="too many of 1 B"):
        promela([close(programs)], 16)


def test_more_than_spin_takes_is_refused():
    closed = close({"a": (plain(Compute("stage", PARTITION)),)})
    with pytest.raises(BadInput, match="251 actors are too many"):
        promela([closed] * 251, 16)
    with pytest.raises(BadInput, match="2041 indivisible steps are too many"):
        promela([close({"a": (plain(*[effects.SetFlag(FLAG)] * 2040),)})], 16)


def test_program_that_looks_at_the_numbers_of_a_failure_is_refused():
    @program
    def curious():
        try:
            yield Alloc(GPU, "large", 11)
        except OutOfDeviceMemory as full:
            yield Compute(f"{full.live_bytes}", PARTITION)

    with pytest.raises(BadInput, match="depends on the numbers"):
        close({"a": (curious(),)})


def test_points_with_the_same_future_are_one():
    @program
    def look():
        enough = (yield QueryFree(GPU)) >= 5
        buffer = yield Alloc(GPU, "roomy" if enough else "tight", 1)
        yield effects.Free(buffer)

    closed = close({"a": (look(),)})
    # Eleven amounts of free memory, two continuations of an allocation and a free each.
    assert [len(point.branches) for point in closed.points if isinstance(point.effect, QueryFree)] == [11]
    assert len(closed.points) == 1 + 2 * 2


def test_amounts_of_free_memory_that_cannot_be_enumerated_are_found_one_by_one(tmp_path):
    big = Gpu(0, 1_000_003)

    @program
    def look():
        if (yield QueryFree(big)) == 3:
            yield Alloc(big, "found", 1)

    @program
    def take():
        yield Alloc(big, "most", 1_000_000)

    (verdict,) = spin(tmp_path, {"a": (look(),), "b": (take(),)}, queue_bound=16)
    assert {ending.split(" @")[0] for ending in verdict.endings} == {
        "ended", "leak: device memory found", "leak: device memory most",
    }  # fmt: skip
