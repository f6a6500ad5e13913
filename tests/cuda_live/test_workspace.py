"""The room of kernels' temporaries on a card that is played, with CuPy in software."""

import pytest

from cuzklab.backends.cuda import workspace
from cuzklab.backends.cuda.device import CudaDevice
from cuzklab.backends.cuda.workspace import FLOOR_BYTES, Workspace
from cuzklab.backends.device import DeviceMemoryExhausted
from cuzklab.units import GiB, MiB
from tests.cuda_live import software_cupy


@pytest.fixture
def small_floor(monkeypatch):
    monkeypatch.setattr("cuzklab.backends.cuda.device.FLOOR_BYTES", 8 * MiB)


def taken(device, size):
    """Memory that a kernel's stage has taken, and its pool."""
    pool = device._workspace._pool
    return pool, pool.malloc(size)


def test_what_is_left_is_known_only_to_the_thread_that_a_workspace_serves():
    own = Workspace(software_cupy.cuda)
    own.allow(100)
    assert workspace.left_bytes() is None
    with own.current():
        assert workspace.left_bytes() == 100
        own._malloc(30)
        assert workspace.left_bytes() == 70
    assert workspace.left_bytes() is None
    assert own.peak_bytes == own.held_bytes == 30


def test_pieces_that_nobody_uses_make_room_before_anything_is_refused():
    own = Workspace(software_cupy.cuda)
    own.allow(100)
    own._pool.give_back(own._malloc(60))
    assert (own.held_bytes, own.left_bytes()) == (60, 100)
    own._malloc(90)
    assert own.held_bytes == 90
    with pytest.raises(software_cupy.OutOfMemoryError):
        own._malloc(20)
    own.allow(50)  # of what is in use nothing can be taken
    assert own.held_bytes == 90 and own.left_bytes() == 0


def test_buffers_and_temporaries_share_the_memory_of_the_card_that_is_played(small_floor):
    device = CudaDevice(0, 100 * MiB, software_cupy)
    assert device._workspace.left_bytes() == 100 * MiB
    buffer = device.alloc(70 * MiB)
    assert device._workspace.left_bytes() == 30 * MiB
    scratch = device.alloc(20 * MiB, backed=False)
    assert device._workspace.left_bytes() == 30 * MiB, "what is only set aside takes nothing from kernels"
    pool, block = taken(device, 25 * MiB)
    device.free(scratch)
    with pytest.raises(DeviceMemoryExhausted) as full:
        device.alloc(10 * MiB)
    assert (full.value.in_use_bytes, full.value.limit_bytes) == (95 * MiB, 100 * MiB)
    pool.give_back(block)
    second = device.alloc(10 * MiB)
    assert pool.total_bytes() == 0, "what kernels no longer use went back to the card"
    device.free(buffer)
    device.free(second)
    assert device._workspace.left_bytes() == 100 * MiB
    device.close()


def test_pooled_memory_counts_until_it_is_trimmed(small_floor):
    device = CudaDevice(0, 100 * MiB, software_cupy)
    device.free(device.alloc(80 * MiB, pooled=True))
    assert device._workspace.left_bytes() == 20 * MiB
    again = device.alloc(80 * MiB, pooled=True)
    assert device._workspace.left_bytes() == 20 * MiB
    device.free(again)
    device.trim()
    assert device._workspace.left_bytes() == 100 * MiB
    device.close()


def test_temporaries_have_their_floor_on_a_card_scaled_down():
    device = CudaDevice(0, 128 * MiB, software_cupy)
    device.alloc(96 * MiB)
    assert device._workspace.left_bytes() == FLOOR_BYTES == 2 * GiB
    _, block = taken(device, 500 * MiB)
    device.alloc(16 * MiB)
    device.events.watching = 7
    device.forget_peaks()
    assert (device.workspace_bytes, device.physical_bytes) == (500 * MiB, 612 * MiB)
    assert device.events.watching == 0
    del block
    device.close()
