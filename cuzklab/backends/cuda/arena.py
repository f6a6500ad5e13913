"""One allocation for many arrays: asking the pool for each takes as long as launching a kernel does."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuzklab.backends.cuda.launch import cupy

_ALIGNED_BYTES = 512
"""As the pool aligns what it hands out."""

Wanted = tuple[tuple[int, ...], type]
"""Shape and type of an array."""


def rounded(size_bytes: int) -> int:
    """What an array of so many bytes takes."""
    return -(-size_bytes // _ALIGNED_BYTES) * _ALIGNED_BYTES


def carved_bytes(wanted: Sequence[Wanted]) -> int:
    """What `carved` allocates."""
    return sum(rounded(math.prod(shape) * np.dtype(dtype).itemsize) for shape, dtype in wanted)


def carved(wanted: Sequence[Wanted]) -> list[Any]:
    """Arrays of the device beside each other in one allocation, in order; their contents are undefined."""
    module = cupy()
    place = module.empty(max(1, carved_bytes(wanted)), np.uint8).data
    arrays = []
    for shape, dtype in wanted:
        arrays.append(module.ndarray(shape, dtype, memptr=place))
        place = place + rounded(arrays[-1].nbytes)
    return arrays


def clear(first: Any, last: Any) -> None:
    """Zero what lies from one array to the end of another of the same allocation, in the current stream."""
    first.data.memset_async(0, last.data.ptr + last.nbytes - first.data.ptr)
