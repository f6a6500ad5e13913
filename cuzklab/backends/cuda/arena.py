"""One allocation for many arrays: asking the pool for each takes as long as launching a kernel does."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuzklab.backends.cuda import observe
from cuzklab.backends.cuda.launch import cupy

_ALIGNED_BYTES = 512
"""As the pool aligns what it hands out."""

Wanted = tuple[tuple[int, ...], type]
"""Shape and type of an array."""


def rounded(size_bytes: int) -> int:
    """What an array of so many bytes takes."""
    return -(-size_bytes // _ALIGNED_BYTES) * _ALIGNED_BYTES


def _bytes_of(wanted: Wanted) -> int:
    shape, dtype = wanted
    return rounded(math.prod(shape) * np.dtype(dtype).itemsize)


def carved_bytes(wanted: Sequence[Wanted]) -> int:
    """What `carved` allocates."""
    return sum(map(_bytes_of, wanted))


def carved(wanted: Sequence[Wanted]) -> list[Any]:
    """Arrays of the device beside each other in one allocation, in order; their contents are undefined."""
    module = cupy()
    sizes = list(map(_bytes_of, wanted))
    begin, arrays, offset = module.cuda.alloc(max(1, sum(sizes))), [], 0
    for (shape, dtype), size in zip(wanted, sizes, strict=True):
        arrays.append(module.ndarray(shape, dtype, begin + offset))
        offset += size
    return arrays


def clear(first: Any, last: Any) -> None:
    """Zero what lies from one array to the end of another of the same allocation, in the current stream."""
    first.data.memset_async(0, last.data.ptr + last.nbytes - first.data.ptr)
    observe.interrupted()
