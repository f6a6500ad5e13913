"""Where the GPU stages of a proof execute: the few functions that they are made of, on one kind of arrays."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from cuzklab.backends import host

Sum = np.ndarray | Callable[[], np.ndarray]
"""A point, or what makes it on the CPU from the few sums that a device has left (`settled`)."""


def settled(point: Sum) -> np.ndarray:
    """The point itself."""
    return point() if callable(point) else point


class Backend(Protocol):
    """Arithmetic of the stages on arrays of a backend's own kind; results are the same bytes on every backend.

    `threads` concerns CPU threads alone. Points and bitmaps may always be numpy arrays, page-locked or not. `later`
    lets a sum of points leave its last additions, which are the CPU's, until somebody wants the point (`Sum`).

    Attributes
    ----------
    name : {"host", "cuda"}
    """

    name: str

    def empty(self, *shape: int) -> Any:
        """An array of uint64, undefined."""

    def fill(self, target: Any, source: np.ndarray) -> None:
        """Copy the rows of a numpy array to the first rows of an array; the others become zero."""

    def h_polynomial(self, a: Any, b: Any, c: Any, *, threads: int | None = None) -> Any:
        """As `host.h_polynomial`, in place."""

    def h_coefficients(self, a: Any, b: Any, c: Any, *, threads: int | None = None) -> Any:
        """As `host.h_coefficients`, in place."""

    def msm_g1(self, points: Any, scalars: Any, *, threads: int | None = None, later: bool = False) -> Sum:
        """As `host.msm_g1`."""

    def masked_sum_g1(self, points: Any, bitmap: Any, *, threads: int | None = None, later: bool = False) -> Sum:
        """As `host.masked_sum_g1`."""

    def masked_sum_g2(self, points: Any, bitmap: Any, *, threads: int | None = None, later: bool = False) -> Sum:
        """As `host.masked_sum_g2`."""


class HostBackend:
    """The CPU."""

    name = "host"
    h_polynomial = staticmethod(host.h_polynomial)
    h_coefficients = staticmethod(host.h_coefficients)

    def msm_g1(self, points: Any, scalars: Any, *, threads: int | None = None, later: bool = False) -> np.ndarray:
        return host.msm_g1(points, scalars, threads=threads)

    def masked_sum_g1(self, points: Any, bitmap: Any, *, threads: int | None = None, later: bool = False) -> np.ndarray:
        return host.masked_sum_g1(points, bitmap, threads=threads)

    def masked_sum_g2(self, points: Any, bitmap: Any, *, threads: int | None = None, later: bool = False) -> np.ndarray:
        return host.masked_sum_g2(points, bitmap, threads=threads)

    def empty(self, *shape: int) -> np.ndarray:
        return np.empty(shape, np.uint64)

    def fill(self, target: np.ndarray, source: np.ndarray) -> None:
        target[: len(source)] = source
        target[len(source) :] = 0


HOST: Backend = HostBackend()
