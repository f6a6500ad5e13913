"""Python integers to arrays of 64-bit limbs and back, and the checks that every array passes."""

from collections.abc import Iterable

import numpy as np

from cuzklab.backends.bls12_381 import FP_MODULUS, FP_R


def ints_to_limbs(values: Iterable[int], limbs: int) -> np.ndarray:
    """Little-endian limbs of non-negative integers.

    Parameters
    ----------
    values : iterable of int
        Each in 0 … 2^(64·limbs) − 1.
    limbs : int
        4 for Fr and scalars, 6 for Fp.

    Returns
    -------
    (n, limbs) uint64

    Raises
    ------
    OverflowError
        A value is negative or too large.
    """
    data = b"".join(int(value).to_bytes(8 * limbs, "little") for value in values)
    return np.frombuffer(bytearray(data), dtype=np.uint64).reshape(-1, limbs)


def limbs_to_ints(array: np.ndarray) -> list[int]:
    """The integers of an array of limbs; the inverse of `ints_to_limbs`.

    Parameters
    ----------
    array : (…, limbs) uint64
        Leading axes are flattened.
    """
    array = np.ascontiguousarray(array, dtype=np.uint64)
    width = 8 * array.shape[-1]
    data = array.tobytes()
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]


def coordinates_to_limbs(coordinates: Iterable[int]) -> np.ndarray:
    """Plain coordinates of one point as its limbs in Montgomery form: (12,) for G1, (24,) for G2."""
    return ints_to_limbs((x * FP_R % FP_MODULUS for x in coordinates), 6).reshape(-1)


def limbs_to_coordinates(point: np.ndarray) -> tuple[int, ...]:
    """Plain coordinates of one point in Montgomery form: (x, y), or (x.c0, x.c1, y.c0, y.c1)."""
    back = pow(FP_R, -1, FP_MODULUS)
    return tuple(x * back % FP_MODULUS for x in limbs_to_ints(point.reshape(-1, 6)))


def checked(name: str, array: np.ndarray, dtype: type, *shape: int | None) -> np.ndarray:
    """`array`, if native code may read it as C-contiguous `dtype` of this shape; None stands for any length.

    Raises
    ------
    ValueError
        Another type, shape or layout. Nothing is converted silently: a copy of a proving key would double memory.
    """
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name}: expected a numpy array of {np.dtype(dtype)}, got {kind}")
    if array.ndim != len(shape) or any(want is not None and want != got for want, got in zip(shape, array.shape)):
        wanted = ", ".join("n" if want is None else str(want) for want in shape)
        raise ValueError(f"{name}: expected shape ({wanted}), got {array.shape}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: not C-contiguous; use numpy.ascontiguousarray")
    return array


def aligned_bytes(count: int) -> np.ndarray:
    """Memory of so many bytes that begins at a cache line, as vector loads need it."""
    memory = np.empty(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count]
