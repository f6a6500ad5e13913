"""Kernels begin on what has arrived of an upload, and nothing is read before it is there."""

import threading

import numpy as np

from cuzklab.backends.cuda import arrivals
from cuzklab.backends.cuda.device import CudaDevice
from cuzklab.backends.device import Piece
from tests.cuda_live import software_cupy


class Stream:
    def __init__(self):
        self.waited = []

    def wait_event(self, event):
        self.waited.append(event)


def at(place):
    array = np.zeros(1, np.uint64).view(software_cupy.ndarray)
    array.memory = None
    pointer = software_cupy._Pointer.__new__(software_cupy._Pointer)
    pointer.memory, pointer.ptr = None, place
    return type("Array", (), {"data": pointer})


def test_each_array_is_waited_for_when_it_is_needed_and_the_rest_at_the_end():
    stream = Stream()
    with arrivals.expected({10: "a", 20: "b", 30: "c"}, stream):
        assert stream.waited == []
        arrivals.needed(at(20))
        assert stream.waited == ["b"]
        arrivals.needed(at(20))
        arrivals.needed(at(99))
        assert stream.waited == ["b"]
    assert stream.waited == ["b", "a", "c"]
    arrivals.needed(at(10))
    assert stream.waited == ["b", "a", "c"]


def test_another_threads_arrays_are_its_own():
    stream = Stream()
    with arrivals.expected({10: "a"}, stream):
        other = threading.Thread(target=arrivals.needed, args=(at(10),))
        other.start()
        other.join()
        assert stream.waited == []


def test_nothing_is_waited_for_where_the_stage_failed():
    stream = Stream()
    try:
        with arrivals.expected({10: "a"}, stream):
            raise ValueError
    except ValueError:
        pass
    assert stream.waited == []


def test_a_stage_begins_while_an_upload_is_under_way(monkeypatch):
    """It runs before the upload has ended; its stream waits for the array that it asks for, then for the rest."""
    arrived = threading.Event()

    class Slow(software_cupy.Event):
        def __init__(self, block=False, disable_timing=False):
            super().__init__(block, disable_timing)
            self.of_upload = block and not arrived.is_set()

        @property
        def done(self):
            return self.recorded and (not self.of_upload or arrived.is_set())

    monkeypatch.setattr(software_cupy.cuda, "Event", Slow)
    waits = []
    monkeypatch.setattr(software_cupy.cuda.Stream, "wait_event", lambda self, event: waits.append(event))
    device = CudaDevice(0, 1 << 20, software_cupy)
    memory = device.alloc(128)
    source = np.arange(8, dtype=np.uint64).reshape(2, 4)
    device.pin([source])
    upload = device.stream("upload").upload(
        [Piece(source[:1], memory, 0, 64), Piece(source[1:], memory, 64, 64)], pinned=True
    )
    assert not upload.done
    first, second = upload.arrivals.values()

    def stage():
        assert not upload.done
        arrivals.needed(memory.array)
        return list(waits)

    try:
        seen = device.stream("compute").run(stage, arriving=(upload,)).wait()
        assert seen == [first] and waits == [first, second]
    finally:
        arrived.set()
        device.unpin([source])
        device.close()
