"""Element-wise arithmetic of Fr and Fp on the GPU.

Arrays may be numpy's or CuPy's; a result lives where the first operand lives. Elements must be below the modulus.
"""

from typing import Any

import numpy as np

from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import blocks, cupy, device_array, launch, like, refusing_in_one_line

UNIT = Unit("vectors.cu")
_LIMBS = {"fr": 4, "fp": 6}
_BLOCK = 128


@refusing_in_one_line
def _binary(field: str, operation: str, a: Any, b: Any) -> Any:
    sides = [x[None] if x.ndim == 1 else x for x in (a, b)]
    on_device = [device_array(name, x, np.uint64, None, _LIMBS[field]) for name, x in zip("ab", sides)]
    rows = 0 if any(len(x) == 0 for x in on_device) else max(len(x) for x in on_device)
    for name, x in zip("ab", on_device):
        if len(x) not in (1, rows):
            raise ValueError(f"{name}: {len(x)} elements against {rows}")
    out = cupy().empty((rows, _LIMBS[field]), np.uint64)
    if rows:
        steps = [np.uint64(len(x) == rows and rows > 1) for x in on_device]
        arguments = (on_device[0], steps[0], on_device[1], steps[1], out, np.uint64(rows))
        launch(UNIT, f"{field}_{operation}", blocks(rows, _BLOCK), _BLOCK, arguments)
    return like(a, out)


@refusing_in_one_line
def _unary(field: str, operation: str, x: Any) -> Any:
    on_device = device_array("x", x, np.uint64, None, _LIMBS[field])
    out = cupy().empty_like(on_device)
    if len(on_device):
        arguments = (on_device, out, np.uint64(len(on_device)))
        launch(UNIT, f"{field}_{operation}", blocks(len(on_device), _BLOCK), _BLOCK, arguments)
    return like(x, out)


def fr_add(a: Any, b: Any) -> Any:
    """a + b of elements (n, 4); either may be a single element, (4,) or (1, 4), that goes with all of the other."""
    return _binary("fr", "add", a, b)


def fr_sub(a: Any, b: Any) -> Any:
    """a − b; shapes as in `fr_add`."""
    return _binary("fr", "sub", a, b)


def fr_mul(a: Any, b: Any) -> Any:
    """Montgomery product a · b · 2^−256; shapes as in `fr_add`."""
    return _binary("fr", "mul", a, b)


def fr_to_montgomery(x: Any) -> Any:
    """x · 2^256 of plain elements (n, 4)."""
    return _unary("fr", "to_montgomery", x)


def fr_from_montgomery(x: Any) -> Any:
    """x · 2^−256: plain elements (n, 4) of Montgomery ones."""
    return _unary("fr", "from_montgomery", x)


def fp_add(a: Any, b: Any) -> Any:
    """a + b of elements (n, 6); either may be a single one."""
    return _binary("fp", "add", a, b)


def fp_sub(a: Any, b: Any) -> Any:
    """a − b; shapes as in `fp_add`."""
    return _binary("fp", "sub", a, b)


def fp_mul(a: Any, b: Any) -> Any:
    """Montgomery product a · b · 2^−384; shapes as in `fp_add`."""
    return _binary("fp", "mul", a, b)


def fp_to_montgomery(x: Any) -> Any:
    """x · 2^384 of plain elements (n, 6)."""
    return _unary("fp", "to_montgomery", x)


def fp_from_montgomery(x: Any) -> Any:
    """x · 2^−384: plain elements (n, 6) of Montgomery ones."""
    return _unary("fp", "from_montgomery", x)
