"""The stages' arithmetic on the current CUDA device: see `backend.Backend`.

Points come from host memory, in parts: while the kernels work on one, the next crosses the link. That takes
page-locked memory; from other memory the result is the same and the copies are in the open.
"""

import functools
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.backend import Sum
from cuzklab.backends.cuda import buckets, msm, observe, quotient, workspace
from cuzklab.backends.cuda.launch import DOMAIN, checked_array, cupy, device_array, refusing_in_one_line
from cuzklab.backends.cuda.parts import batches, equal, growing, largest, shrinking

# Parts that the points of a masked sum come in, as in the modelled engine: smaller ones take longer than their copies,
# larger ones leave more of the last one's kernels in the open. Measured on an H200.
_SLICES, _LEAST_SLICE, _MOST_SLICE = 8, 1 << 18, 1 << 20
# The largest part of an MSM.
_LEAST_BATCH, _MOST_BATCH = 1 << 18, 1 << 22
_FEWEST_BITS = 10


class CudaBackend:
    """The GPU that is CuPy's current device."""

    name = "cuda"

    @refusing_in_one_line
    def empty(self, *shape: int) -> Any:
        return cupy().empty(shape, np.uint64)

    @refusing_in_one_line
    def fill(self, target: Any, source: np.ndarray) -> None:
        _copy(target[: len(source)], source)
        target[len(source) :] = 0

    @refusing_in_one_line
    def h_polynomial(self, a: Any, b: Any, c: Any, *, threads: int | None = None) -> Any:
        return quotient.h_polynomial(a, b, c)

    @refusing_in_one_line
    def h_coefficients(self, a: Any, b: Any, c: Any, *, threads: int | None = None) -> Any:
        return quotient.h_coefficients(a, b, c)

    @refusing_in_one_line
    def msm_g1(self, points: Any, scalars: Any, *, threads: int | None = None, later: bool = False) -> Sum:
        n = len(points)
        if not isinstance(points, np.ndarray) or n == 0:
            return msm.msm_g1(points, device_array("scalars", scalars, np.uint64, n, 4))
        checked_array("points", points, np.uint64, None, 12)
        checked_array("scalars", scalars, np.uint64, n, 4)
        streamed_bytes = sum(row * isinstance(it, np.ndarray) for it, row in ((points, 96), (scalars, 32)))
        bits, size = batch_within(workspace.left_bytes(), n, streamed_bytes)
        with nvtx.annotate("msm_g1", domain=DOMAIN):
            parts = batches(growing(n, size) if n > size else equal(n, size), points, scalars)
            left = buckets.to_join("g1", *buckets.terms_of("g1", buckets.shape(n, bits, size), size, parts))
        return left if later else left()

    @refusing_in_one_line
    def masked_sum_g1(self, points: Any, bitmap: Any, *, threads: int | None = None, later: bool = False) -> Sum:
        return _masked_sum("g1", 12, points, bitmap, later)

    @refusing_in_one_line
    def masked_sum_g2(self, points: Any, bitmap: Any, *, threads: int | None = None, later: bool = False) -> Sum:
        return _masked_sum("g2", 24, points, bitmap, later)

    def warm(self, domain: int) -> None:
        """Compile and load what the stages of a circuit of that domain need, and build the tables of its transforms."""
        zeros = cupy().zeros((domain, 4), np.uint64)  # one in place of three: beside the tables there may be no room
        self.h_polynomial(zeros, zeros, zeros)
        nothing = np.zeros(1, np.uint64)
        self.msm_g1(np.zeros((1, 12), np.uint64), np.zeros((1, 4), np.uint64))
        self.masked_sum_g1(np.zeros((1, 12), np.uint64), nothing)
        self.masked_sum_g2(np.zeros((1, 24), np.uint64), nothing)
        cupy().cuda.get_current_stream().synchronize()


@functools.lru_cache(maxsize=64)
def batch_within(most_bytes: int | None, points: int, streamed_bytes: int) -> tuple[int, int]:
    """Bits of a window and points of a batch for a sum in G1 whose scratch takes `most_bytes` at most; None: any.

    Batches become smaller, down to a sixteenth of the usual, before windows do, whose buckets cost as much however few
    the points. What does not fit even so is left to the allocation to refuse.
    """
    bits, size = msm.window_bits(points), min(points, max(_LEAST_BATCH, largest(points)), _MOST_BATCH)

    def fits(bits: int, size: int) -> bool:
        cut = buckets.shape(points, bits, size)
        return most_bytes is None or buckets.scratch_bytes("g1", cut, size, streamed_bytes) <= most_bytes

    least = min(size, max(size // 16, 1 << 16))
    while bits > _FEWEST_BITS and not fits(bits, least):
        bits -= 1
    while size > least and not fits(bits, size):
        size = max(size // 2, least)
    return bits, size


def _copy(target: Any, source: np.ndarray) -> None:
    """Queue a copy to the device in the current stream."""
    cuda = cupy().cuda
    stream = cuda.get_current_stream()
    begin = observe.begin_copy(stream)
    cuda.runtime.memcpyAsync(
        target.data.ptr, source.ctypes.data, source.nbytes, cuda.runtime.memcpyHostToDevice, stream.ptr
    )
    observe.end_copy(source.nbytes, stream, begin)


def _masked_sum(group: str, width: int, points: Any, bitmap: Any, later: bool) -> Sum:
    if not isinstance(points, np.ndarray):
        return (msm.masked_sum_g1 if group == "g1" else msm.masked_sum_g2)(points, bitmap)
    n = len(checked_array("points", points, np.uint64, None, width))
    checked_array("bitmap", bitmap, np.uint64, -(-n // 64))
    if n == 0:
        return np.zeros(width, np.uint64)

    def bits() -> Any:
        if not isinstance(bitmap, np.ndarray):
            return bitmap
        there, used_bytes = cupy().empty(bitmap.shape, np.uint64), -(-n // 8)
        _copy(there.view(np.uint8)[:used_bytes], bitmap.view(np.uint8)[:used_bytes])
        return there

    size = min(n, _MOST_SLICE, max(_LEAST_SLICE, 1024 * -(-n // (1024 * _SLICES))))
    with nvtx.annotate(f"masked_sum_{group}", domain=DOMAIN):
        edges = shrinking(n, size)
        parts = batches(edges, points)  # the first copy is under way from here on
        left = msm.to_add(group, msm.masked_sums(group, edges, parts, bits, streamed=True))
    return left if later else left()
