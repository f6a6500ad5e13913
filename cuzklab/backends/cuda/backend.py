"""The stages' arithmetic on the current CUDA device: see `backend.Backend`.

Points come from host memory, in parts: while the kernels work on one, the next crosses the link. That takes
page-locked memory; from other memory the result is the same and the copies are in the open.
"""

from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.cuda import buckets, msm, observe, quotient, workspace
from cuzklab.backends.cuda.launch import DOMAIN, checked_array, cupy, refusing_in_one_line

# Parts that the points of a masked sum come in, as in the modelled engine: smaller ones take longer than their copies,
# larger ones leave more of the first copy in the open. Measured on an H200.
_SLICES, _LEAST_SLICE, _MOST_SLICE = 8, 1 << 18, 1 << 20
# Parts of an MSM: more leave less of the copying in the open, and cost more of the sorting. Measured on an H200.
_BATCHES, _LEAST_BATCH, _MOST_BATCH = 4, 1 << 18, 1 << 22
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
    def msm_g1(self, points: Any, scalars: Any, *, threads: int | None = None) -> np.ndarray:
        n = len(points)
        if not isinstance(points, np.ndarray) or n <= _LEAST_BATCH:
            points, scalars = _on_device("points", points, 12), _on_device("scalars", scalars, 4)
            return msm.msm_g1(points, scalars)
        checked_array("points", points, np.uint64, None, 12)
        checked_array("scalars", scalars, np.uint64, n, 4)
        streamed_bytes = sum(row * isinstance(it, np.ndarray) for it, row in ((points, 96), (scalars, 32)))
        bits, size = batch_within(workspace.left_bytes(), n, streamed_bytes)
        with nvtx.annotate("msm_g1", domain=DOMAIN):
            cut = buckets.shape(n, bits, size)
            return buckets.joined("g1", *buckets.terms_of("g1", cut, size, buckets.batches(size, points, scalars)))

    @refusing_in_one_line
    def masked_sum_g1(self, points: Any, bitmap: Any, *, threads: int | None = None) -> np.ndarray:
        return _masked_sum("g1", 12, points, bitmap)

    @refusing_in_one_line
    def masked_sum_g2(self, points: Any, bitmap: Any, *, threads: int | None = None) -> np.ndarray:
        return _masked_sum("g2", 24, points, bitmap)

    def warm(self, domain: int) -> None:
        """Compile and load what the stages of a circuit of that domain need, and build the tables of its transforms."""
        zeros = [cupy().zeros((domain, 4), np.uint64) for _ in range(3)]
        self.h_polynomial(*zeros)
        nothing = np.zeros(1, np.uint64)
        self.msm_g1(np.zeros((1, 12), np.uint64), np.zeros((1, 4), np.uint64))
        self.masked_sum_g1(np.zeros((1, 12), np.uint64), nothing)
        self.masked_sum_g2(np.zeros((1, 24), np.uint64), nothing)
        cupy().cuda.get_current_stream().synchronize()


def batch_within(most_bytes: int | None, points: int, streamed_bytes: int) -> tuple[int, int]:
    """Bits of a window and points of a batch for a sum in G1 whose scratch takes `most_bytes` at most; None: any.

    Batches become smaller, down to a sixteenth of the usual, before windows do, whose buckets cost as much however few
    the points. What does not fit even so is left to the allocation to refuse.
    """
    bits, size = msm.window_bits(points), min(max(_LEAST_BATCH, -(-points // _BATCHES)), _MOST_BATCH)

    def fits(bits: int, size: int) -> bool:
        cut = buckets.shape(points, bits, size)
        return most_bytes is None or buckets.scratch_bytes("g1", cut, size, streamed_bytes) <= most_bytes

    least = max(size // 16, 1 << 16)
    while bits > _FEWEST_BITS and not fits(bits, least):
        bits -= 1
    while size > least and not fits(bits, size):
        size = max(size // 2, least)
    return bits, size


def _copy(target: Any, source: np.ndarray) -> None:
    cuda = cupy().cuda
    with observe.copy(source.nbytes, cuda):
        target.set(source, stream=cuda.get_current_stream())


def _on_device(name: str, array: Any, width: int) -> Any:
    """An array on the device, queued to be copied there if it is numpy's."""
    checked_array(name, array, np.uint64, None, width)
    if not isinstance(array, np.ndarray):
        return array
    target = cupy().empty(array.shape, np.uint64)
    if len(array):
        _copy(target, array)
    return target


def _masked_sum(group: str, width: int, points: Any, bitmap: Any) -> np.ndarray:
    if not isinstance(points, np.ndarray):
        return (msm.masked_sum_g1 if group == "g1" else msm.masked_sum_g2)(points, bitmap)
    n = len(checked_array("points", points, np.uint64, None, width))
    checked_array("bitmap", bitmap, np.uint64, -(-n // 64))
    if n == 0:
        return np.zeros(width, np.uint64)
    size = min(max(_LEAST_SLICE, 1024 * -(-n // (1024 * _SLICES))), _MOST_SLICE)
    with nvtx.annotate(f"masked_sum_{group}", domain=DOMAIN):
        bits = bitmap
        if isinstance(bitmap, np.ndarray):
            bits, used_bytes = cupy().empty(bitmap.shape, np.uint64), -(-n // 8)
            _copy(bits.view(np.uint8)[:used_bytes], bitmap.view(np.uint8)[:used_bytes])
        terms = [
            msm.masked_sum_term(group, part, bits[begin // 64 : -(-(begin + len(part)) // 64)])
            for begin, part in buckets.batches(min(size, n), points)
        ]
        joined = cupy().asnumpy(cupy().concatenate(terms))
    return buckets.host_sum(group, joined, np.zeros(len(joined), np.uint32))
