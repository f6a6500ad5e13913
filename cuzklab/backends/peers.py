"""Other implementations that the benches and tests compare with.

blst comes inside the `ckzg` wheel, whose extension module exports blst's whole C interface. That is undocumented, so it
serves as a peer and a judge, and nothing in the product needs it. Affine points have the same bytes there as here.
"""

import ctypes
import functools
import threading

import numpy as np

from cuzklab.backends.host.parallel import ranges

_PREFIX = {12: "blst_p1", 24: "blst_p2"}


@functools.cache
def blst() -> ctypes.CDLL | None:
    """blst as ctypes reaches it, or None where the extra `bench` is not installed."""
    try:
        import ckzg
    except ImportError:
        return None
    library = ctypes.CDLL(ckzg.__file__)
    if not hasattr(library, "blst_p1s_mult_pippenger"):
        return None
    address, size = ctypes.c_void_p, ctypes.c_size_t
    for prefix in _PREFIX.values():
        _declare(library, f"{prefix}s_mult_pippenger_scratch_sizeof", size, size)
        _declare(library, f"{prefix}s_mult_pippenger", None, address, address, size, address, size, address)
        _declare(library, f"{prefix}s_add", None, address, address, size)
        _declare(library, f"{prefix}_add_or_double", None, address, address, address)
        _declare(library, f"{prefix}_to_affine", None, address, address)
        _declare(library, f"{prefix}_affine_on_curve", ctypes.c_bool, address)
    _declare(library, "blst_p1_affine_in_g1", ctypes.c_bool, address)
    _declare(library, "blst_p2_affine_in_g2", ctypes.c_bool, address)
    for field in ("blst_fp", "blst_fr"):
        _declare(library, f"{field}_mul", None, address, address, address)
    return library


def _declare(library: ctypes.CDLL, name: str, result: object, *arguments: object) -> None:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


def _needed() -> ctypes.CDLL:
    library = blst()
    if library is None:
        raise RuntimeError("blst is not here: pip install 'cuzklab[bench]'")
    return library


def _on_threads(points: np.ndarray, threads: int, part: object) -> np.ndarray:
    """Affine sum of what `part(begin, end, to)` leaves, as Jacobian points, for as many parts as threads."""
    library, width = _needed(), points.shape[1]
    prefix, pieces = _PREFIX[width], ranges(len(points), threads)
    sums = np.zeros((len(pieces), width // 2 * 3), np.uint64)
    workers = [
        threading.Thread(target=part, args=(begin, end, sums[i].ctypes.data)) for i, (begin, end) in enumerate(pieces)
    ]
    if len(workers) == 1:
        part(*pieces[0], sums[0].ctypes.data)
    else:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for other in sums[1:]:
        getattr(library, f"{prefix}_add_or_double")(sums[0].ctypes.data, sums[0].ctypes.data, other.ctypes.data)
    out = np.zeros(width, np.uint64)
    if len(sums):
        getattr(library, f"{prefix}_to_affine")(out.ctypes.data, sums[0].ctypes.data)
    return out


def _addresses(first: int) -> ctypes.Array:
    """blst takes a list of addresses that ends in null; what follows the first lies consecutively behind it."""
    return (ctypes.c_void_p * 2)(first, None)


def blst_msm(points: np.ndarray, scalars: np.ndarray, threads: int = 1) -> np.ndarray:
    """blst's Pippenger: points (n, 12) or (n, 24), scalars (n, 4), result affine.

    One call is single-threaded; more threads get a share of the points each. blst takes no point at infinity here.
    """
    library, width = _needed(), points.shape[1]
    prefix = _PREFIX[width]

    def part(begin: int, end: int, to: int) -> None:
        scratch = np.empty(getattr(library, f"{prefix}s_mult_pippenger_scratch_sizeof")(end - begin), np.uint8)
        getattr(library, f"{prefix}s_mult_pippenger")(
            to, _addresses(points.ctypes.data + 8 * width * begin), end - begin,
            _addresses(scalars.ctypes.data + 32 * begin), 255, scratch.ctypes.data,
        )  # fmt: skip

    return _on_threads(points, threads, part)


def blst_sum(points: np.ndarray, threads: int = 1) -> np.ndarray:
    """blst's sum of all points (its batched affine addition), affine."""
    library, width = _needed(), points.shape[1]
    add = getattr(library, f"{_PREFIX[width]}s_add")

    def part(begin: int, end: int, to: int) -> None:
        add(to, _addresses(points.ctypes.data + 8 * width * begin), end - begin)

    return _on_threads(points, threads, part)


def blst_in_subgroup(point: np.ndarray) -> bool:
    """Whether blst finds an affine point (12,) or (24,) in the subgroup of order r."""
    name = "blst_p1_affine_in_g1" if len(point) == 12 else "blst_p2_affine_in_g2"
    return bool(getattr(_needed(), name)(point.ctypes.data))


def blst_on_curve(point: np.ndarray) -> bool:
    """Whether blst finds an affine point (12,) or (24,) on its curve."""
    return bool(getattr(_needed(), f"{_PREFIX[len(point)]}_affine_on_curve")(point.ctypes.data))


def blst_product(field: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """blst's Montgomery product of one element each: field "fp" (6,) or "fr" (4,)."""
    out = np.empty_like(a)
    getattr(_needed(), f"blst_{field}_mul")(out.ctypes.data, a.ctypes.data, b.ctypes.data)
    return out
