"""What the tests of CUDA kernels share."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from cuzklab.backends import cuda
from cuzklab.backends.cuda import launch

_POISON = 0xDEADBEEFDEADBEEF


@pytest.fixture(autouse=True)
def _gpu_with_poisoned_memory(request):
    """Tests marked `gpu` skip without one, with the reason; with one, whatever they allocate is full of poison."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    reason = cuda.available()
    if reason is not None:
        pytest.skip(reason)
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    poison = cupy.full(1 << 27, _POISON, cupy.uint64)  # 1 GiB, which the pool then cuts into what is asked for
    del poison
    yield
    pool.free_all_blocks()


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


class CUDADriverError(RuntimeError):
    """As CuPy's."""


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


@pytest.fixture
def driver(monkeypatch):
    """A CuPy whose driver does what a test says: the boundary that faults come in by, where there is no GPU."""
    module = ModuleType("cupy")
    pool = SimpleNamespace(
        free_all_blocks=lambda: None, free_bytes=lambda: 0, get_limit=lambda: 0, used_bytes=lambda: 0
    )
    device = SimpleNamespace(compute_capability="90", id=0, synchronize=lambda: None)
    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: 1, memGetInfo=lambda: (3 << 30, 80 << 30)
    )
    module.cuda = SimpleNamespace(
        runtime=runtime,
        driver=SimpleNamespace(CUDADriverError=CUDADriverError),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        Device=lambda: device,
    )
    module.get_default_memory_pool = lambda: pool
    module.device = device
    monkeypatch.setitem(sys.modules, "cupy", module)
    launch.cupy.cache_clear()
    yield module
    launch.cupy.cache_clear()
