"""The emulated device keeps its promises about memory, order, the link and device-wide calls."""

import threading

import numpy as np
import pytest

from cuzklab.backends.device import DeviceMemoryExhausted, Piece
from cuzklab.backends.emulated import EmulatedDevice, Link
from tests.live.programs import RATES, FakeClock


@pytest.fixture
def device():
    device = EmulatedDevice(0, 1000, RATES, FakeClock())
    yield device
    device.close()


def test_memory_is_real_and_limited(device):
    memory = device.alloc(640)
    assert memory.array.nbytes == 640
    with pytest.raises(DeviceMemoryExhausted) as full:
        device.alloc(361)
    assert (full.value.size_bytes, full.value.in_use_bytes, full.value.limit_bytes) == (361, 640, 1000)
    device.alloc(360)
    assert device.free_bytes() == 0


def test_memory_that_is_only_set_aside_counts_but_has_no_words(device):
    assert device.alloc(1000, backed=False).array is None
    assert device.free_bytes() == 0


def test_the_pool_keeps_what_was_pooled_until_it_is_trimmed(device):
    memory = device.alloc(600, pooled=True)
    device.free(memory)
    assert device.free_bytes() == 400
    with pytest.raises(DeviceMemoryExhausted):
        device.alloc(401)
    again = device.alloc(500, pooled=True)  # takes it out of the pool
    assert device.free_bytes() == 400
    device.free(again)
    device.trim()
    assert device.free_bytes() == 1000


def test_memory_is_freed_once(device):
    memory = device.alloc(8)
    device.free(memory)
    with pytest.raises(ValueError, match="freed that are not allocated"):
        device.free(memory)


def test_what_is_live_is_known_and_given_up_at_the_end(device):
    memory = device.alloc(8)
    assert device.live == {memory}
    device.close()
    assert device.live == frozenset() and device.free_bytes() == 1000


def test_the_link_takes_transfers_one_after_the_other():
    link = Link(RATES)  # 1 ns a byte pinned, 10 ns pageable
    assert link.reserve(100, 50, pinned=True) == (100, 150)
    assert link.reserve(120, 50, pinned=True) == (150, 200)
    # A pageable copy is held up by the host and leaves the link free meanwhile.
    assert link.reserve(300, 50, pinned=False) == (300, 800)
    assert link.reserve(300, 50, pinned=True) == (350, 400)


def test_an_upload_fills_its_part_and_clears_the_rest(device):
    memory = device.alloc(64)
    memory.array[:] = 9
    source = np.arange(8, dtype=np.uint64).reshape(2, 4)[:1]
    stream = device.stream("s")
    work = stream.upload([Piece(source, memory, 16, 40)], pinned=True)
    work.wait()
    assert memory.array.tolist() == [9, 9, 0, 1, 2, 3, 0, 9]
    start, end = work.transfer_ns
    assert 32 <= end - start <= 34


@pytest.mark.parametrize(("offset", "extent", "words"), [(0, 72, 4), (32, 40, 4), (0, 24, 4)])
def test_an_upload_that_does_not_fit_is_refused_at_once(device, offset, extent, words):
    memory = device.alloc(64)
    with pytest.raises(ValueError, match="do not fit"):
        device.stream("s").upload([Piece(np.zeros((1, words), np.uint64), memory, offset, extent)], pinned=True)


def test_a_stream_is_in_order_and_events_tie_streams_together(device):
    ran, go = [], threading.Event()
    first, second = device.stream("first"), device.stream("second")
    first.run(lambda: (go.wait(10), ran.append("a")))
    first.run(lambda: ran.append("b"))
    event = first.record()
    second.wait(event)
    last = second.run(lambda: ran.append("c"))
    assert not event.fired and not last.done and not device.idle
    go.set()
    last.wait()
    assert ran == ["a", "b", "c"]
    assert event.fired


def test_an_event_of_an_empty_stream_has_fired(device):
    assert device.stream("s").record().fired


def test_device_wide_synchronisation_waits_for_every_stream(device):
    ran = []
    for name in ("s", "t"):
        device.stream(name).run(lambda name=name: ran.append(name))
    device.sync()
    assert sorted(ran) == ["s", "t"] and device.idle


def test_a_stage_lasts_at_least_as_long_as_its_points_take(device):
    work = device.stream("s").run(lambda: 42, streamed_bytes=500)
    assert work.wait() == 42
    start, end = work.transfer_ns
    assert end - start == 500
    assert work.start_ns <= start and work.end_ns >= end


def test_stages_of_several_streams_take_turns(device):
    inside, most = [], []

    def stage():
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    for work in [device.stream(str(i)).run(stage) for i in range(8)]:
        work.wait()
    assert most == [1] * 8


def test_what_a_stage_raises_is_raised_where_it_is_waited_for(device):
    work = device.stream("s").run(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        work.wait()
    device.sync()
    assert device.stream("s").run(lambda: "goes on").wait() == "goes on"


def test_pinning_takes_time_by_the_byte(device):
    before = device.clock.time_ns
    device.pin([np.zeros(125, np.uint64)])
    assert 2000 <= device.clock.time_ns - before <= 2001
