"""The GPU: whether there is one, its compiled units, and launches inside NVTX ranges of the domain `cuzk`."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import nvtx

from cuzklab.backends.cuda import observe
from cuzklab.backends.cuda.compile import OLDEST_ARCHITECTURE, Unit, compile_unit
from cuzklab.errors import BadInput
from cuzklab.units import format_size

DOMAIN = "cuzk"
_PLAIN_SHARED_BYTES = 48 * 1024
_NULL = np.uint64(0)

Given, Result = ParamSpec("Given"), TypeVar("Result")


@functools.cache
def cupy():
    """CuPy, once it is known that it can reach a GPU.

    Raises
    ------
    BadInput
        CuPy is missing, there is no driver or no GPU, or the GPU is too old: what is wrong, and what to do.
    """
    try:
        import cupy as module
    except ImportError:
        raise BadInput(
            "CUDA: CuPy is not installed: pip install 'cuzklab[cu13]' or 'cuzklab[cu12]', or use --backend host"
        ) from None
    runtime = module.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise BadInput(f"CUDA: no usable GPU or driver ({str(error).split(': ', 1)[-1]}); use --backend host") from None
    if count == 0:
        raise BadInput("CUDA: the driver sees no GPU; use --backend host")
    found = int(module.cuda.Device().compute_capability)
    if found < OLDEST_ARCHITECTURE:
        raise BadInput(
            f"CUDA: this GPU is sm_{found}, kernels need sm_{OLDEST_ARCHITECTURE} or newer; use --backend host"
        )
    return module


def available() -> str | None:
    """None where the backend can be used, else the reason why not, in one line."""
    try:
        cupy()
    except BadInput as error:
        return str(error)
    return None


def architecture() -> int:
    """Compute capability of the current device × 10."""
    return int(cupy().cuda.Device().compute_capability)


def multiprocessors() -> int:
    """Streaming multiprocessors of the current device."""
    return _multiprocessors(cupy().cuda.runtime.getDevice())


@functools.cache
def _multiprocessors(device: int) -> int:
    runtime = cupy().cuda.runtime  # `Device.attributes` asks the driver for every attribute that there is
    return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, device))


class NotEnoughMemory(BadInput):
    """Device memory does not suffice; smaller work may."""


def free_bytes() -> int:
    """Device memory that CuPy could hand out now: the device's and the pool's, within the pool's limit."""
    pool = cupy().get_default_memory_pool()
    free = cupy().cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    limit = pool.get_limit()
    return max(0, min(free, limit - pool.used_bytes())) if limit else free


def refusing_in_one_line(work: Callable[Given, Result]) -> Callable[Given, Result]:
    """Turn what the driver refuses (memory, a launch, a module) into BadInput of one line; the device stays usable.

    Memory that the pool holds back is returned first. Where a kernel's fault took the whole context along, the message
    says so: no process can go on from that.
    """

    @functools.wraps(work)
    def guarded(*given: Given.args, **named: Given.kwargs) -> Result:
        cuda = cupy().cuda
        try:
            return work(*given, **named)
        except cuda.memory.OutOfMemoryError as error:
            reason = str(error).split(" (", 1)[0].rstrip(".")
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            raise BadInput(f"CUDA: {_one_line(error)}; {_what_now(cuda)}") from None
        cupy().get_default_memory_pool().free_all_blocks()
        raise NotEnoughMemory(
            f"CUDA: {reason[:1].lower()}{reason[1:]}, {format_size(free_bytes())} are free; "
            "use a smaller size, free arrays, or use --backend host"
        )

    return guarded


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _what_now(cuda: Any) -> str:
    try:
        cuda.Device().synchronize()
    except cuda.runtime.CUDARuntimeError:
        return "a kernel's fault ended this process's use of the device: start it anew"
    return "the device can still be used"


@functools.lru_cache(maxsize=256)
def _loaded(path: str, device: int):
    return cupy().RawModule(path=path)


@functools.lru_cache(maxsize=256)
def _cubin(unit: Unit, device_architecture: int, kernels: Path | None) -> str:
    return str(compile_unit(unit, device_architecture, kernels).path)


_kernels: Path | None = None


def use_kernels(folder: Path | None) -> None:
    """Compile from another tree of sources from now on, or (None) from the package's own; rebuilds what changed."""
    global _kernels
    _kernels = folder
    _cubin.cache_clear()
    function.cache_clear()


_macros: Mapping[str, Mapping[str, int]] = {}


@contextlib.contextmanager
def macros(of_sources: Mapping[str, Mapping[str, int]]) -> Iterator[None]:
    """Compile with other macros inside the block, for instance ``{"accumulate.cu": {"THREADS": 64}}``."""
    global _macros
    before, _macros = _macros, of_sources
    try:
        yield
    finally:
        _macros = before


def in_force(unit: Unit) -> Unit:
    """A unit with the macros of the surrounding `macros` block."""
    own = _macros.get(unit.source)
    return Unit(unit.source, tuple((dict(unit.defines) | dict(own)).items())) if own else unit


@functools.lru_cache(maxsize=1024)
def function(unit: Unit, name: str, device: int):
    """A kernel of a unit, compiled for the given device if need be."""
    return _loaded(_cubin(unit, architecture(), _kernels), device).get_function(name)


@contextlib.contextmanager
def timed_launches() -> Iterator[dict[str, float]]:
    """Milliseconds of each kernel that this thread launches inside, by name, summed; known after the block."""
    times: dict[str, float] = {}
    with observe.observed(observe.Events(cupy().cuda)) as seen:
        yield times
    cupy().cuda.Device().synchronize()
    for kernel, before, end, _ in seen.kernels:
        took_ms = min(cupy().cuda.get_elapsed_time(start, end) for start in before)
        times[kernel] = times.get(kernel, 0.0) + took_ms


@functools.cache
def _named_range(kernel: str) -> nvtx.annotate:
    """A range that is entered for each launch of a kernel; making it anew costs several times what entering does."""
    return nvtx.annotate(kernel, domain=DOMAIN)


def launch(
    unit: Unit,
    kernel: str,
    grid: int | tuple[int, ...],
    block: int,
    arguments: Sequence[Any],
    shared_bytes: int = 0,
) -> None:
    """Put a kernel into CuPy's current stream.

    Parameters
    ----------
    arguments : sequence
        Arrays of the device, `numpy` scalars of the exact width, or None for a null pointer.
    """
    module = cupy()
    chosen = function(in_force(unit), kernel, module.cuda.runtime.getDevice())
    if shared_bytes > _PLAIN_SHARED_BYTES and chosen.max_dynamic_shared_size_bytes < shared_bytes:
        chosen.max_dynamic_shared_size_bytes = shared_bytes
    passed = tuple([_NULL if argument is None else argument for argument in arguments])
    cut = grid if isinstance(grid, tuple) else (grid,)
    if (seen := observe.watching()) is None:
        with _named_range(kernel):
            chosen(cut, (block,), passed, shared_mem=shared_bytes)
        return
    before = observe.before_kernel(seen)
    with _named_range(kernel):
        launched_ns = time.monotonic_ns()
        chosen(cut, (block,), passed, shared_mem=shared_bytes)
    observe.after_kernel(seen, kernel, before, launched_ns)


def blocks(threads: int, block: int, most: int | None = None) -> int:
    """Blocks for so many threads, at least one; at most `most` for kernels that stride."""
    wanted = max(1, -(-threads // block))
    return min(wanted, most) if most else wanted


def checked_array(name: str, array: Any, dtype: type, *shape: int | None) -> Any:
    """`array` of numpy or CuPy, if it has this type and shape and is C-contiguous; None stands for any length.

    Raises
    ------
    ValueError
        Another type, shape or layout.
    """
    if not isinstance(array, np.ndarray | cupy().ndarray) or array.dtype != dtype:
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"{name}: expected an array of {np.dtype(dtype)}, got {kind}")
    if array.ndim != len(shape) or any(want is not None and want != got for want, got in zip(shape, array.shape)):
        wanted = ", ".join("n" if want is None else str(want) for want in shape)
        raise ValueError(f"{name}: expected shape ({wanted}), got {array.shape}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: not C-contiguous; use ascontiguousarray")
    return array


def device_array(name: str, array: Any, dtype: type, *shape: int | None) -> Any:
    """`array` on the device, copied there if it is a numpy array; raises as `checked_array`."""
    return cupy().asarray(checked_array(name, array, dtype, *shape))


def like(source: Any, result: Any) -> Any:
    """`result` where `source` lives: a numpy array for a numpy array, else the device's."""
    return cupy().asnumpy(result) if isinstance(source, np.ndarray) else result
