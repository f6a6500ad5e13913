"""What NumPy and CuPy do differently, for array operations that either may do."""

from typing import Any

import numpy as np


def repeated(arrays: Any, values: Any, lengths: Any) -> Any:
    """Each of the values as often as `lengths` says; CuPy's `repeat` knows one length for all only."""
    if arrays is np:
        return np.repeat(values, lengths)
    ends = arrays.cumsum(lengths)
    return values[arrays.searchsorted(ends, arrays.arange(int(ends[-1])), side="right")]


def on_host(array: Any) -> np.ndarray:
    """An array of NumPy's, copied from the device if need be."""
    return array if isinstance(array, np.ndarray) else array.get()
