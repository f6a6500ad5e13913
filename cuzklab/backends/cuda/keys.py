"""Test keys made on the GPU: see `backends.keys`. Setups have the whole card; `release` gives it back.

Multiples of a generator take their scalars 16 bits at a time: sixteen additions of points from a table, which the CPU
makes in under a second. Points leave the card in parts, into page-locked memory, where they stay: a key of 2^27 rows
takes 44 GiB of it, once.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.backends.cuda import field, quotient, transform
from cuzklab.backends.cuda.buckets import ACCUMULATE, LIMBS, block_shape
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import DOMAIN, blocks, cupy, launch, multiprocessors, refusing_in_one_line
from cuzklab.backends.cuda.memory import pinned_array
from cuzklab.backends.cuda.multiples import MULTIPLES
from cuzklab.backends.keys import Entries

_COLUMNS = Unit("columns.cu")
_DIGIT_BITS = 16
_PART_POINTS = {"g1": 1 << 22, "g2": 1 << 21}
# Parts under way: one's points leave the card while another's are computed.
_QUEUES = 2


def units() -> list[Unit]:
    """Every unit that keys need beyond those of transforms and of sums."""
    return [_COLUMNS]


def release() -> None:
    """Give all device memory back that is in nobody's hands, and the page-locked memory that copies went through."""
    cupy().get_default_memory_pool().free_all_blocks()
    cupy().get_default_pinned_memory_pool().free_all_blocks()


class CudaKeyArithmetic:
    """The GPU that is CuPy's current device."""

    @refusing_in_one_line
    def lagrange_basis(self, tau: int, domain: int, *, root: int, factor: int = 1, threads: int | None = None) -> Any:
        log_n = domain.bit_length() - 1
        scale = transform.elements([factor % FR_MODULUS])
        powers = transform.factors_between(1, 0, log_n, scale, transform.two_level(tau, log_n))
        transform.ntt(powers, inverse=True, root=root)
        quotient.release_tables()  # as large as the basis
        return field.fr_from_montgomery(powers)

    @refusing_in_one_line
    def column_sums(self, matrix: Entries, wires: int, weights: Any, *, threads: int | None = None) -> Any:
        module = cupy()
        number = getattr(matrix, "number", None)
        values = matrix.value if number is None else matrix.values
        if len(matrix.wire) and int(matrix.wire.max()) >= wires:
            raise ValueError(f"wire: {int(matrix.wire.max())} is beyond the {wires} wires")
        arrays = [None if each is None else module.asarray(each) for each in (matrix.row_start, matrix.wire, number)]
        sums = module.zeros((wires, 8), np.uint64)
        coefficients = field.fr_to_montgomery(module.asarray(values))
        most = 32 * multiprocessors()
        arguments = (arrays[0], np.uint64(matrix.rows), *arrays[1:], coefficients, weights, sums)
        launch(_COLUMNS, "column_sums", blocks(matrix.rows, 256, most), 256, arguments)
        out = module.empty((wires, 4), np.uint64)
        launch(_COLUMNS, "reduce_columns", blocks(wires, 256, most), 256, (sums, np.uint64(wires), out))
        return out

    @refusing_in_one_line
    def combination(self, terms: Sequence[tuple[int, Any]]) -> Any:
        total = None
        for factor, elements in terms:
            scaled = elements if factor == 1 else field.fr_mul(elements, transform.elements([factor % FR_MODULUS]))
            total = scaled if total is None else field.fr_add(total, scaled)
        return total

    @refusing_in_one_line
    def nonzero(self, elements: Any) -> np.ndarray:
        return cupy().flatnonzero(elements.any(axis=1)).astype(np.uint32).get()

    @refusing_in_one_line
    def take(self, elements: Any, indices: np.ndarray) -> Any:
        return elements[cupy().asarray(indices)]

    @refusing_in_one_line
    def multiples(self, group: str, scalars: Any, *, threads: int | None = None) -> np.ndarray:
        """As `KeyArithmetic.multiples`, in page-locked memory."""
        module, limbs, n = cupy(), LIMBS[group], len(scalars)
        runtime = module.cuda.runtime
        out = pinned_array((n, limbs), runtime)
        size = min(n, _PART_POINTS[group])
        with nvtx.annotate(f"multiples_{group}", domain=DOMAIN):
            table = module.asarray(_table(group, threads))
            queues = [_Queue(module, group, size) for _ in range(min(_QUEUES, -(-n // size) if n else 0))]
            module.cuda.get_current_stream().synchronize()  # scalars and table are there for other streams
            for part, begin in enumerate(range(0, n, size or 1)):
                some = out[begin : begin + size]
                with queues[part % len(queues)] as queue:
                    queue.multiply(table, scalars[begin : begin + size])
                    runtime.memcpyAsync(
                        some.ctypes.data, queue.points.data.ptr, some.nbytes, runtime.memcpyDeviceToHost,
                        queue.stream.ptr,
                    )  # fmt: skip
            for queue in queues:
                queue.stream.synchronize()
        return out


class _Queue:
    """A stream with the memory of one part."""

    def __init__(self, module: Any, group: str, size: int) -> None:
        limbs = LIMBS[group]
        self.stream = module.cuda.Stream(non_blocking=True)
        self.points = module.empty((size, limbs), np.uint64)
        self._group = group
        self._sums = module.empty((size, 2 * limbs), np.uint64)
        self._products = module.empty((size, limbs // 2), np.uint64)

    def __enter__(self) -> "_Queue":
        self.stream.__enter__()
        return self

    def __exit__(self, *what: Any) -> None:
        self.stream.__exit__(*what)

    def multiply(self, table: Any, scalars: Any) -> None:
        """Multiples of the table's base to `points`."""
        n, (block, _) = np.uint32(len(scalars)), block_shape(self._group)
        launch(ACCUMULATE[self._group], "multiply_base", blocks(int(n), block), block, (table, scalars, n, self._sums))
        grid = blocks(int(n), 128, (2 if self._group == "g2" else 4) * multiprocessors())
        launch(MULTIPLES[self._group], "to_affine", grid, 128, (self._sums, n, self._products, self.points))


@functools.lru_cache(maxsize=2)
def _table(group: str, threads: int | None) -> np.ndarray:
    """d · 2^(16w) times the generator for each digit d of each window w, infinity for d = 0."""
    windows, digits = 256 // _DIGIT_BITS, 1 << _DIGIT_BITS
    scalars = np.zeros((windows, digits, 4), np.uint64)
    for window in range(windows):
        limb, shift = divmod(_DIGIT_BITS * window, 64)
        scalars[window, :, limb] = np.arange(digits, dtype=np.uint64) << np.uint64(shift)
    scalars[-1, (FR_MODULUS >> 256 - _DIGIT_BITS) + 1 :] = 0  # no scalar has these digits
    make = host.fixed_base_g1 if group == "g1" else host.fixed_base_g2
    return make(scalars.reshape(-1, 4), threads=threads)


CUDA_KEYS = CudaKeyArithmetic()
