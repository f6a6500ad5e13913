"""Several devices: each has locks of its own, so what is safe on one is safe on two, and nobody works on another's."""

import pytest

from cuzklab import policies
from cuzklab.check import check
from cuzklab.units import GiB


@pytest.mark.parametrize("name", policies.names())
def test_a_worker_on_each_of_two_devices(name):
    found = check(policies.load(name), workers=1, partitions=1, devices=2, vram_bytes=16 * GiB, shortest=False)
    assert (found.verdict, found.complete) == ("safe", True)
    alone = check(policies.load(name), workers=1, partitions=1, vram_bytes=16 * GiB, shortest=False)
    assert found.states > alone.states  # the devices go on beside each other


@pytest.mark.parametrize("name", ["phase8", "phase9", "phase12"])
def test_two_workers_on_each_of_two_devices(name):
    found = check(policies.load(name), workers=2, partitions=1, devices=2, vram_bytes=16 * GiB, shortest=False)
    assert (found.verdict, found.complete) == ("safe", True)
