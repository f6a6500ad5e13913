"""The byte formulas of the stage table against the published sizes of a 32 GiB PoRep partition."""

import pytest

from cuzklab.stages import POREP_32G, STAGES, DeviceModel, batch_add_scratch_bytes, msm_scratch_bytes, partition_sizes
from cuzklab.units import GiB, MiB


def gib(size_bytes: int) -> float:
    return round(size_bytes / GiB, 2)


def test_the_shape_has_the_published_sizes():
    assert POREP_32G.domain == 1 << 27
    assert gib(POREP_32G.abc_bytes) == 11.65
    assert gib(POREP_32G.aux_bytes) == 3.88
    assert [gib(POREP_32G.point_bytes(query)) for query in ("h", "l", "a", "b_g1", "b_g2")] == [
        12.00, 11.64, 11.60, 2.96, 5.92,
    ]  # fmt: skip
    assert gib(POREP_32G.key_bytes) == 44.12
    assert gib(POREP_32G.constraint_bytes) == 25.68
    assert round(POREP_32G.synthesised_bytes / GiB, 1) == 15.5


def test_what_crosses_to_the_device_is_as_published():
    added = sum(STAGES["batch_add"].streamed_bytes(POREP_32G, part) for part in STAGES["batch_add"].parts)
    assert gib(added) == 32.16
    assert gib(STAGES["h_msm"].streamed_bytes(POREP_32G, "")) == 12.00


def test_device_buffers_are_as_published():
    sizes = partition_sizes(POREP_32G)
    assert (sizes.d_a, sizes.d_bc) == (4 * GiB, 8 * GiB)
    assert [gib(sizes.scratch["batch_add", part]) for part in ("l", "a", "b_g1", "b_g2")] == [2.92, 2.92, 0.74, 1.48]
    # The peak of phase 9: both buffers live through the H-MSM, with its 1.6 GiB of temporaries and 184 MiB of buckets.
    assert round((sizes.d_a + sizes.d_bc + sizes.scratch["h_msm", ""]) / GiB, 1) == 13.8


def test_msm_buckets_follow_their_formula():
    # w = 17: 15 windows of 2^16 buckets of 192 bytes and a 4-byte count; the rest is the stride's.
    device = DeviceModel(multiprocessors=70)
    buckets = (15 * 2**16 + 8 * 70) * 192 + 4 * 15 * 2**16
    assert round(buckets / MiB) == 184
    stride = -(-(1 << 27) // 21)
    assert msm_scratch_bytes(1 << 27, device) == buckets + stride * (16 + 4 * 15 + 192)


def test_no_points_need_no_scratch():
    assert msm_scratch_bytes(0, DeviceModel()) == 0
    assert batch_add_scratch_bytes(0, 96, DeviceModel()) == 0


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.name)
def test_a_stage_is_complete(stage):
    assert stage.processor in ("cpu", "gpu")
    assert stage.reads and stage.writes and stage.explanation
    for part in stage.parts:
        assert stage.work(POREP_32G, part) > 0
        assert stage.streamed_bytes(POREP_32G, part) >= 0
        # A CPU stage takes nothing of the device.
        if stage.processor == "cpu":
            assert stage.scratch_bytes(POREP_32G, part, DeviceModel()) == 0
            assert stage.streamed_bytes(POREP_32G, part) == 0
