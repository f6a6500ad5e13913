"""The whole engine around a policy, explored like any other programs."""

import pytest

from cuzklab.check import explore
from cuzklab.policies import load
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.policies.model import Gpu
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB


def explored(policy, vram_bytes):
    config = EngineConfig(
        proofs=1, partitions=2, gpus=(Gpu(0, vram_bytes),), in_flight=1, synthesis_workers=1, gpu_workers=2, lookahead=2
    )
    programs = engine_programs(load(policy), config, partition_sizes(POREP_32G))
    return explore({name: (program,) for name, program in programs.items()})


def test_engine_ends_on_every_schedule():
    found = explored("phase9", 16 * GiB)
    assert (found.verdict, found.complete, found.outcomes, found.caught) == ("safe", True, {"ok"}, ())


@pytest.mark.parametrize("vram_gib", [8, 16])
def test_a_failed_partition_gives_back_all_that_it_held(vram_gib):
    # On 16 GiB d_bc does not fit on some schedules, on 8 GiB on none; nothing is left held and nobody waits for ever.
    found = explored("phase10_ordered", vram_gib * GiB)
    assert (found.verdict, found.complete, found.outcomes) == ("safe", True, {"ok"})
    assert [line.split(" @")[0] for line in found.caught] == ["Alloc gpu0 d_bc 8589934592 B"]
