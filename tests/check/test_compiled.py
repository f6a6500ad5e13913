"""The compiled search finds what the plain one finds: states by number, and every finding; and it is fast."""

import os
import random
import shutil
import subprocess
import sys
import time

import pytest

from cuzklab.check import check, explore, worker_programs
from cuzklab.check import search as searching
from cuzklab.check.model import Model
from cuzklab.check.search import Budget, survey
from cuzklab.policies import load
from cuzklab.policies.effects import Acquire, Release
from cuzklab.policies.model import Gpu, Partition, program
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB
from tests.check.programs import LOCKS, SIZES, plain
from tests.check.random_programs import system
from tests.conftest import ROOT

NEVER = 10**9


def causes(exploration):
    return {(finding.kind, finding.sites) for finding in exploration.findings}, exploration.outcomes


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("policy", ["phase9", "phase10_ordered", "phase10_nested", "phase10_ticket", "phase12"])
def test_policies_have_the_same_states_and_findings(policy, reduced):
    def found(large):
        return check(
            load(policy), workers=2, partitions=1, vram_bytes=16 * GiB, shortest=False, partial_order=reduced,
            symmetric=reduced, large=large,
        )  # fmt: skip

    compiled, interpreted = found(0), found(NEVER)
    assert compiled.complete and interpreted.complete
    assert compiled.states == interpreted.states
    assert causes(compiled.exploration) == causes(interpreted.exploration)


@pytest.mark.parametrize("seed", random.Random(7).sample(range(1000), 12))
def test_random_programs_have_the_same_findings(seed):
    for how in ({}, {"partial_order": False, "symmetric": False}):
        compiled = explore(system(seed), queue_bound=2, large=0, **how)
        interpreted = explore(system(seed), queue_bound=2, large=NEVER, **how)
        lengths = [
            sorted((finding.kind, finding.sites, len(finding.schedule), finding.shortest) for finding in one.findings)
            for one in (compiled, interpreted)
        ]
        assert lengths[0] == lengths[1] and causes(compiled) == causes(interpreted)


def test_states_are_counted_as_by_hand():
    # Three workers that take one lock in turn, as counted for the plain search: 20, and 7 up to names.
    @program
    def once(p):
        yield Acquire(LOCKS[0])
        yield Release(LOCKS[0])

    programs = {f"w{number}": (once(Partition(number, 0, SIZES)),) for number in range(3)}
    assert explore(programs, partial_order=False, symmetric=False, large=0).states == 20
    assert explore(programs, partial_order=False, large=0).states == 4 + 3


def test_a_large_search_goes_on_in_compiled_code(monkeypatch):
    used = []
    original = searching._compiled
    monkeypatch.setattr(searching, "_compiled", lambda *of: used.append(1) or original(*of))
    how = {"workers": 2, "partitions": 1, "vram_bytes": 16 * GiB, "partial_order": False, "symmetric": False}
    assert check(load("phase10_ordered"), shortest=False, large=2000, **how).complete and used


def test_more_locks_than_it_has_room_for_are_left_to_the_plain_search():
    from cuzklab.policies.model import Lock

    locks = [Lock(f"lock {number}") for number in range(8)]
    programs = {name: (plain(*[e(lock) for lock in locks for e in (Acquire, Release)]),) for name in "ab"}
    assert explore(programs, large=0).states == explore(programs, large=NEVER).states


def test_limits_hold():
    found = check(
        load("phase10_ordered"), workers=3, partitions=1, vram_bytes=16 * GiB, partial_order=False, symmetric=False,
        shortest=False, large=0, max_states=5000,
    )  # fmt: skip
    assert (found.complete, found.exploration.stopped) == (False, "5000 states were not enough")
    assert 5000 <= found.states < 25_000


def test_an_interruption_leaves_what_was_covered():
    def stop(states, seconds):
        if states > 1000:
            raise KeyboardInterrupt

    found = check(
        load("phase10_ordered"), workers=3, partitions=1, vram_bytes=16 * GiB, partial_order=False, symmetric=False,
        shortest=False, large=0, progress=stop,
    )  # fmt: skip
    assert (found.complete, found.exploration.stopped) == (False, "interrupted")
    assert found.states > 1000


@pytest.mark.slow
def test_three_hundred_thousand_states_a_second_without_reduction():
    gpu = Gpu(0, 16 * GiB)
    programs = worker_programs(
        load("phase10_ordered"), workers=3, partitions=1, gpus=(gpu,), sizes=partition_sizes(POREP_32G)
    )
    survey(Model(programs, 16), Budget(50_000, 60), False, False, large=0)  # compiles, or loads what is compiled
    rates = []
    for _ in range(3):
        began = time.process_time()
        found = survey(Model(programs, 16), Budget(2_000_000, 60), False, False, large=0)
        rates.append(found.states / (time.process_time() - began))
    assert found.states > 700_000 and not found.stopped
    assert max(rates) >= 300_000  # of CPU time: others may use the machine


@pytest.mark.slow
def test_compiled_code_works_where_nothing_can_be_kept(tmp_path):
    """Numba keeps it in the package's folder or in the user's cache; here a file stands in the place of either."""
    shutil.copytree(ROOT / "cuzklab", tmp_path / "cuzklab", ignore=shutil.ignore_patterns("__pycache__", "_share"))
    (tmp_path / "cuzklab" / "check" / "__pycache__").touch()
    code = "import numpy; from cuzklab.check import kernel; print(kernel.hash_of(numpy.zeros(3, numpy.uint16)))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env=environment | {"HOME": "/dev/null/home", "XDG_CACHE_HOME": "/dev/null/cache", "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
