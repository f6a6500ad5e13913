"""Nothing reads what has yet to be written: found on some schedule, or shown to be impossible without looking at any."""

import importlib

import pytest

from cuzklab.check import check, explore
from cuzklab.check.dataflow import unordered
from cuzklab.check.endings import Due
from cuzklab.check.model import Model
from cuzklab.check.policy import small_engine
from cuzklab.check.search import Budget, survey
from cuzklab.policies import from_source, load, names
from cuzklab.policies.effects import Compute, Launch, Notify, Wait
from cuzklab.policies.model import Gpu, Partition, program
from cuzklab.stages import FLOW, POREP_32G, STAGES, partition_sizes
from cuzklab.units import GiB
from tests.check import data_programs
from tests.check.data_programs import DATA, PARTITION, system
from tests.check.spin import assert_agreement

exploring = importlib.import_module("cuzklab.check.explore")
PROOF = Due(DATA[-1], "w1", 0)


def minded(programs, due=()):
    """What a check finds that it must mind."""
    model = Model(programs, 16)
    return unordered(model, due, survey(model, Budget(100_000, 60), large=None).symmetry)


def causes(exploration):
    assert exploration.complete
    return {(one.kind, one.sites, len(one.schedule)) for one in exploration.findings}, exploration.outcomes


def compare(seeds, monkeypatch):
    """Compare checks that mind what they must with plain ones that mind everything; how many there are of each sort."""
    judged = {"ordered": 0, "early": 0, "minded for nothing": 0}
    for seed in seeds:
        programs = system(seed)
        found = causes(explore(programs, due=(PROOF,)))
        with monkeypatch.context() as patch:
            patch.setattr(exploring, "unordered", lambda *of: frozenset(DATA))
            plain = explore(programs, due=(PROOF,), partial_order=False, symmetric=False, merge=False)
        assert causes(plain) == found, seed
        early = any(kind == "read_before_write" for kind, *_ in found[0])
        judged["early" if early else "minded for nothing" if minded(programs, (PROOF,)) else "ordered"] += 1
    return judged


def test_what_need_not_be_minded_is_never_read_early(monkeypatch):
    judged = compare(range(60), monkeypatch)
    assert min(judged["ordered"], judged["early"]) > 10


@pytest.mark.slow
def test_what_need_not_be_minded_is_never_read_early_many(monkeypatch):
    compare(range(60, 1000), monkeypatch)


def test_spin_finds_the_same_few(tmp_path):
    assert_agreement(tmp_path, {seed: system(seed) for seed in range(12)}, 16)
