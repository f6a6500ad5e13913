"""Device memory: lifetimes, owners, locks, failures with what was live; CuPy's protocol by a double at its boundary."""

import json
import sys
import threading
import types

import pytest

from cuzklab.analysis import vram as analysis
from cuzklab.trace.recorders import Lock, VramTracer, owner, traced_free, traced_malloc
from cuzklab.trace.recorders.cupy_memory import hook
from cuzklab.trace.recorders.vram import RESERVE, SNAPSHOTS_FILE, UNRESERVE


def rows(recording):
    recording.stop()
    return recording.rows["vram"]


def test_every_allocation_has_its_owner_and_lock(recording):
    tracer = VramTracer({0: 100}, recording=recording)
    lock = Lock("gpu0.lock", recording=recording)
    with owner("w1", "p0.3", recording=recording):
        with lock:
            tracer.allocated(1, 60, buffer="d_a")
        with tracer.named("d_bc"):
            tracer.allocated(2, 30)
        tracer.freed(1)
    assert tracer.live_bytes() == 30
    assert [(row.op, row.buffer, row.bytes, row.live, row.limit, row.worker, row.partition, row.lock_held)
            for row in rows(recording)] == [
        ("alloc", "d_a", 60, 60, 100, "w1", "p0.3", "gpu0.lock"),
        ("alloc", "d_bc", 30, 90, 100, "w1", "p0.3", ""),
        ("free", "d_a", 60, 30, 100, "w1", "p0.3", ""),
    ]  # fmt: skip


def test_a_failed_request_tells_what_was_live(recording, tmp_path):
    tracer = VramTracer({0: 100, 1: 50}, recording=recording)
    lock = Lock("gpu0.lock", recording=recording)
    with owner("w0", "p0.0", recording=recording):
        tracer.allocated(1, 20, buffer="small")
    with owner("w1", "p0.1", recording=recording), lock:
        tracer.allocated(2, 70, buffer="large")
        tracer.allocated(1, 40, device=1, buffer="elsewhere")
        tracer.failed(30, buffer="wanted")
    (snapshot,) = tracer.snapshots
    assert (snapshot.requested_bytes, snapshot.live_bytes, snapshot.limit_bytes) == (30, 90, 100)
    assert (snapshot.buffer, snapshot.worker, snapshot.partition) == ("wanted", "w1", "p0.1")
    assert snapshot.locks_held == ("gpu0.lock",)
    assert [(one.buffer, one.worker, one.size_bytes) for one in snapshot.holdings] == [
        ("large", "w1", 70),
        ("small", "w0", 20),
    ]
    assert (snapshot.pool_bytes, snapshot.largest_free_block_bytes) == (None, None)
    run = recording.write(tmp_path / "run")
    (stored,) = json.loads((run.path / SNAPSHOTS_FILE).read_text())
    assert stored["holdings"][0]["buffer"] == "large"
    (failed,) = analysis.failed_requests(run).itertuples()
    assert (failed.requested_bytes, failed.live_bytes, failed.short_bytes, failed.lock_held) == (
        30,
        90,
        20,
        "gpu0.lock",
    )


def test_peaks_and_leaks_of_a_recorded_run(recording, tmp_path):
    tracer = VramTracer({0: 100}, recording=recording)
    for address, size in ((1, 10), (2, 50), (3, 20)):
        tracer.allocated(address, size, buffer=f"b{address}")
    tracer.freed(2)
    tracer.allocated(4, 15, buffer="b4")
    assert [(one.buffer, one.size_bytes) for one in tracer.holdings()] == [("b3", 20), ("b4", 15), ("b1", 10)]
    run = recording.write(tmp_path / "run")
    assert analysis.peaks(run)["live_bytes"].tolist() == [80]
    assert analysis.peak_holdings(run)["buffer"].tolist() == ["b2", "b3", "b1"]
    assert sorted(analysis.leaks(run)["buffer"]) == ["b1", "b3", "b4"]


def test_snapshots_are_bounded_and_failures_are_not(recording):
    tracer = VramTracer({0: 10}, max_snapshots=3, recording=recording)
    for _ in range(20):
        tracer.failed(11)
    assert len(tracer.snapshots) == 3
    assert [row.op for row in rows(recording)] == ["fail"] * 20


def test_what_was_allocated_before_is_counted_when_it_is_freed(recording):
    tracer = VramTracer(recording=recording)
    tracer.freed(12345)
    assert (tracer.unknown_frees, tracer.live_bytes()) == (1, 0)
    assert rows(recording) == []


def test_promises_are_recorded(recording):
    tracer = VramTracer({0: 10}, recording=recording)
    tracer.promised(RESERVE, 4)
    tracer.promised(UNRESERVE, 4)
    assert [(row.op, row.bytes, row.live) for row in rows(recording)] == [("reserve", 4, 0), ("unreserve", 4, 0)]


def test_stacks_tell_where_memory_was_allocated(recording):
    tracer = VramTracer(stacks=True, recording=recording)

    def allocate():
        tracer.allocated(1, 8)

    allocate()
    (row,) = rows(recording)
    assert row.stack.splitlines()[0].startswith("allocate (") and "test_vram.py" in row.stack


@pytest.mark.parametrize("style", ["address", "pair"])
def test_calls_like_cuda_malloc(recording, style):
    """`malloc(size) -> address`, which raises, and `malloc(size) -> (error, address)`, as two bindings have it."""
    tracer = VramTracer({0: 100}, recording=recording)
    freed = []

    def malloc(size_bytes):
        if size_bytes > 100:
            if style == "address":
                raise MemoryError("out of memory")
            return 2, 0
        return 4096 if style == "address" else (0, 4096)

    malloc, free = traced_malloc(tracer, malloc), traced_free(tracer, freed.append)
    with tracer.named("d_a"):
        malloc(64)
    if style == "address":
        with pytest.raises(MemoryError):
            malloc(101)
    else:
        assert malloc(101) == (2, 0)
    free(4096)
    assert freed == [4096]
    assert [(row.op, row.bytes, row.live) for row in rows(recording)] == [
        ("alloc", 64, 64),
        ("fail", 101, 64),
        ("free", 64, 0),
    ]
    assert malloc.__name__ == "malloc"


def test_the_largest_free_block_is_the_largest_gap_of_a_segment(recording):
    tracer = VramTracer({0: 10_000}, recording=recording)
    assert tracer.largest_free_block_bytes() is None
    tracer.pool_took(1000, 500)
    tracer.pool_took(5000, 300)
    for address, size in ((1000, 100), (1200, 100), (5000, 300)):
        tracer.allocated(address, size)
    assert tracer.pool_bytes() == 800
    assert tracer.largest_free_block_bytes() == 200  # 1300 to 1500; 1100 to 1200 is the other gap
    tracer.freed(1200)
    assert tracer.largest_free_block_bytes() == 400
    tracer.freed(5000)
    tracer.pool_trimmed()
    assert tracer.pool_bytes() == 500


class Pool:
    """CuPy's memory pool as far as its hooks can see: what each is told, in which order, with which arguments.

    Follows the protocol that CuPy documents for `cupy.cuda.MemoryHook`: of the calling thread's hooks, `malloc_*` go
    around every request, `alloc_*` around what the pool itself takes from the device, `free_*` around what is given
    back to the pool; a failure shows as a pointer of 0.
    """

    def __init__(self, hooks, device_bytes):
        self._hooks, self._left, self._next = hooks, device_bytes, 1 << 20
        self._kept = []

    def _tell(self, what, **values):
        for it in list(self._hooks().values()):
            getattr(it, what)(**values)

    def malloc(self, size):
        mem_size = -(-size // 512) * 512
        self._tell("malloc_preprocess", device_id=0, size=size, mem_size=mem_size)
        pointer = 0
        try:
            kept = next((one for one in self._kept if one[1] >= mem_size), None)
            if kept:
                self._kept.remove(kept)
                pointer = kept[0]
            else:
                self._tell("alloc_preprocess", device_id=0, mem_size=mem_size)
                if mem_size > self._left:
                    self._left += sum(size for _, size in self._kept)  # all that is unused goes back to the device
                    self._kept.clear()
                if mem_size <= self._left:
                    pointer, self._left, self._next = self._next, self._left - mem_size, self._next + mem_size
                self._tell("alloc_postprocess", device_id=0, mem_size=mem_size, mem_ptr=pointer)
                if not pointer:
                    raise MemoryError("out of memory")
        finally:
            identity = 7 if pointer else 0
            self._tell("malloc_postprocess", device_id=0, size=size, mem_size=mem_size, mem_ptr=pointer,
                       pmem_id=identity)  # fmt: skip
        return pointer, mem_size

    def free(self, block):
        told = {"device_id": 0, "mem_size": block[1], "mem_ptr": block[0], "pmem_id": 7}
        self._tell("free_preprocess", **told)
        self._kept.append(block)
        self._tell("free_postprocess", **told)


@pytest.fixture
def cupy(monkeypatch):
    """A module `cupy` with the hooks of each thread, as CuPy keeps them."""
    hooks = threading.local()

    def of_thread():
        if not hasattr(hooks, "all"):
            hooks.all = {}
        return hooks.all

    class MemoryHook:
        name = "MemoryHook"

        def __enter__(self):
            assert self.name not in of_thread()
            of_thread()[self.name] = self
            return self

        def __exit__(self, *_):
            del of_thread()[self.name]

        def _nothing(self, **values):
            pass

        alloc_preprocess = alloc_postprocess = malloc_preprocess = malloc_postprocess = _nothing
        free_preprocess = free_postprocess = _nothing

    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(MemoryHook=MemoryHook)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return of_thread


def test_the_hook_follows_cupys_pool(recording, cupy):
    tracer, pool = VramTracer({0: 4096}, recording=recording), Pool(cupy, 4096)
    with hook(tracer):
        with tracer.named("d_a"):
            first = pool.malloc(1000)
        second = pool.malloc(512)
        assert (tracer.live_bytes(), tracer.pool_bytes(), tracer.largest_free_block_bytes()) == (1536, 1536, 0)
        pool.free(first)
        assert (tracer.live_bytes(), tracer.pool_bytes(), tracer.largest_free_block_bytes()) == (512, 1536, 1024)
        again = pool.malloc(1024)  # out of the pool: nothing is taken from the device
        assert tracer.pool_bytes() == 1536
        pool.free(again)
        with pytest.raises(MemoryError):
            pool.malloc(4096)
    pool.free(second)  # no hook any more, as CuPy has it
    (snapshot,) = tracer.snapshots
    assert (snapshot.requested_bytes, snapshot.live_bytes, snapshot.pool_bytes) == (4096, 512, 512)
    assert snapshot.largest_free_block_bytes == 0
    assert [(row.op, row.buffer, row.bytes, row.live) for row in rows(recording)] == [
        ("alloc", "d_a", 1024, 1024),
        ("alloc", "unnamed", 512, 1536),
        ("free", "d_a", 1024, 512),
        ("alloc", "unnamed", 1024, 1536),
        ("free", "unnamed", 1024, 512),
        ("fail", "unnamed", 4096, 512),
    ]


def test_a_hook_belongs_to_its_thread(recording, cupy):
    tracer, pool = VramTracer(recording=recording), Pool(cupy, 1 << 20)
    with hook(tracer):
        thread = threading.Thread(target=pool.malloc, args=(512,))
        thread.start()
        thread.join()
    assert tracer.live_bytes() == 0


@pytest.mark.gpu
def test_cupys_own_pool(recording):
    """The same with CuPy itself."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    tracer, pool = VramTracer(recording=recording), cupy.cuda.MemoryPool()
    pool.set_limit(size=8 << 20)
    with cupy.cuda.using_allocator(pool.malloc), hook(tracer):
        with tracer.named("d_a"):
            first = cupy.empty(1 << 20, cupy.uint8)
        assert (tracer.live_bytes(), tracer.pool_bytes()) == (1 << 20, pool.total_bytes())
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            cupy.empty(16 << 20, cupy.uint8)
        del first
        assert tracer.live_bytes() == 0
    assert [(row.op, row.buffer, row.bytes) for row in rows(recording)] == [
        ("alloc", "d_a", 1 << 20), ("fail", "unnamed", 16 << 20), ("free", "d_a", 1 << 20),
    ]  # fmt: skip
