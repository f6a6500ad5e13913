"""What every device must do, whatever it is: the promises of `cuzklab.backends.device`, as functions of a device.

Each is called with a fresh device of 1000 KiB and a function that brings the words of its memory to the host.
"""

import threading

import numpy as np
import pytest

from cuzklab.backends.device import DeviceMemoryExhausted, Piece

KIB = 1024
LIMIT_BYTES = 1000 * KIB


def memory_is_limited_to_the_byte(device, words):
    memory = device.alloc(640 * KIB)
    assert len(memory.array) == 640 * KIB // 8
    with pytest.raises(DeviceMemoryExhausted) as full:
        device.alloc(360 * KIB + 1)
    found = full.value.size_bytes, full.value.in_use_bytes, full.value.limit_bytes
    assert found == (360 * KIB + 1, 640 * KIB, LIMIT_BYTES)
    rest = device.alloc(360 * KIB)
    assert device.free_bytes() == 0
    device.free(memory)
    device.free(rest)
    assert device.free_bytes() == LIMIT_BYTES
    assert memory.array is None


def memory_that_is_only_set_aside_counts_but_has_no_words(device, words):
    assert device.alloc(LIMIT_BYTES, backed=False).array is None
    assert device.free_bytes() == 0


def the_pool_keeps_what_was_pooled_until_it_is_trimmed(device, words):
    memory = device.alloc(600 * KIB, pooled=True)
    device.free(memory)
    assert device.free_bytes() == 400 * KIB
    with pytest.raises(DeviceMemoryExhausted) as full:
        device.alloc(401 * KIB)
    assert full.value.in_use_bytes == 600 * KIB
    again = device.alloc(500 * KIB, pooled=True)  # takes it out of the pool
    assert device.free_bytes() == 400 * KIB
    device.free(again)
    device.trim()
    assert device.free_bytes() == LIMIT_BYTES


def memory_is_freed_once(device, words):
    memory = device.alloc(8)
    device.free(memory)
    with pytest.raises(ValueError, match="freed that are not allocated"):
        device.free(memory)


def what_is_live_is_known_and_given_up_at_the_end(device, words):
    memory = device.alloc(8)
    assert device.live == {memory}
    device.close()
    assert device.live == frozenset() and memory.array is None


def an_upload_fills_its_part_and_clears_the_rest(device, words, pinned=True):
    memory, whole = device.alloc(64), np.full((2, 4), 9, np.uint64)
    source = device.host_array(1, 4)
    source[...] = [[0, 1, 2, 3]]
    if pinned:
        device.pin([source])
    stream = device.stream("s")
    stream.upload([Piece(whole, memory, 0, 64)], pinned=False).wait()
    work = stream.upload([Piece(source, memory, 16, 40)], pinned=pinned)
    assert work.wait() is None and work.done
    assert words(memory).tolist() == [9, 9, 0, 1, 2, 3, 0, 9]
    start, end = work.transfer_ns
    assert 0 < work.start_ns <= start <= end <= work.end_ns
    assert work.transfer_bytes == 32
    if pinned:
        device.unpin([source])


def an_upload_from_pageable_memory_does_the_same(device, words):
    an_upload_fills_its_part_and_clears_the_rest(device, words, pinned=False)


def an_upload_that_does_not_fit_is_refused_at_once(device, words):
    memory = device.alloc(64)
    for offset, extent, length in ((0, 72, 4), (32, 40, 4), (0, 24, 4)):
        with pytest.raises(ValueError, match="do not fit"):
            piece = Piece(np.zeros((1, length), np.uint64), memory, offset, extent)
            device.stream("s").upload([piece], pinned=False)


def a_stream_is_in_order_and_events_tie_streams_together(device, words):
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
    device.sync()
    assert device.idle


def an_upload_takes_its_turn_in_a_stream(device, words):
    go, memory = threading.Event(), device.alloc(32)
    source = device.host_array(4)
    source[...] = 5
    device.pin([source])
    stream, seen = device.stream("s"), []
    stream.run(lambda: (go.wait(10), seen.append("ran")))
    upload = stream.upload([Piece(source, memory, 0, 32)], pinned=True)
    assert not upload.done
    go.set()
    upload.wait()
    assert seen == ["ran"] and words(memory).tolist() == [5] * 4
    device.unpin([source])


def work_that_nobody_waits_for_is_done_all_the_same(device, words):
    ran = threading.Event()
    device.stream("s").run(ran.set)
    assert ran.wait(10)


def an_event_of_an_empty_stream_has_fired(device, words):
    event = device.stream("s").record()
    assert event.fired
    event.wait()


def device_wide_synchronisation_waits_for_every_stream(device, words):
    ran = []
    for name in ("s", "t"):
        device.stream(name).run(lambda name=name: ran.append(name))
    device.sync()
    assert sorted(ran) == ["s", "t"] and device.idle


def many_waiters_execute_work_once(device, words):
    ran, results = [], []
    stream = device.stream("s")
    work = stream.run(lambda: ran.append(1) or 42)
    waiters = [threading.Thread(target=lambda: results.append(work.wait())) for _ in range(8)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join()
    assert ran == [1] and results == [42] * 8
    assert work.start_ns <= work.end_ns


def awaited_work_is_executed_by_who_waits_or_at_the_latest_at_a_synchronisation(device, words):
    ran = []
    stream = device.stream("s")
    assert stream.run(lambda: ran.append("waited") or 7, awaited=True).wait() == 7
    before = stream.run(lambda: ran.append("first"))
    after = stream.run(lambda: ran.append("second"), awaited=True)
    after.wait()
    assert before.done and ran == ["waited", "first", "second"]
    stream.run(lambda: ran.append("left"), awaited=True)
    device.sync()
    assert ran[3:] == ["left"] and device.idle


def what_a_stage_raises_is_raised_where_it_is_waited_for(device, words):
    work = device.stream("s").run(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        work.wait()
    device.sync()
    assert device.stream("s").run(lambda: "goes on").wait() == "goes on"


def memory_freed_under_work_stays_valid_for_it(device, words):
    memory, go = device.alloc(32), threading.Event()
    array = memory.array
    work = device.stream("s").run(lambda: (go.wait(10), len(array)))
    device.free(memory)
    go.set()
    assert work.wait()[1] == 4


def host_memory_can_be_pinned_again_and_again(device, words):
    arrays = [device.host_array(1000, 4) for _ in range(3)]
    for _ in range(2):
        device.pin(arrays)
        device.unpin(arrays)
    device.pin(arrays, keep=True)
    assert device.keeps(arrays)
    device.unpin(arrays, keep=True)
    assert device.keeps(arrays)
    assert device.keeps([device.host_array(10, pinned=True)])
    assert device.host_array(3, 4).shape == (3, 4)


def memory_that_is_kept_pinned_is_used_again(device, words):
    array = device.host_array(1000, 4)
    device.pin([array], keep=True)
    del array
    assert device.keeps([device.host_array(1000, 4)])
    # A little smaller is large enough, and another at the same time is another.
    first, second = (device.host_array(990, 4, pinned=True) for _ in range(2))
    assert device.keeps([first, second]) and first.ctypes.data != second.ctypes.data


CONTRACT = [
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
]
