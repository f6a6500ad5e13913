"""Sets a CUDA kernel up with inputs of its own, ready to be timed, and holds its result against the CPU path's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.backends.cuda import msm, multiples, quotient, transform
from cuzklab.backends.cuda.launch import cupy, refusing_in_one_line

_CHECKED_LOG2 = 10


def random_scalars(n: int, seed: int) -> Any:
    """Scalars below r on the device, (n, 4) uint64."""
    module = cupy()
    words = module.random.RandomState(seed).randint(0, 1 << 32, (n, 8), dtype=np.uint32)
    scalars = words.view(np.uint64)
    scalars[:, 3] %= np.uint64(FR_MODULUS >> 192)
    return scalars


class Inputs:
    """Points on the device, as many as asked for; beyond 2^18 in G1 and 2^16 in G2 they repeat."""

    def __init__(self) -> None:
        self._points: dict[str, Any] = {}

    def points(self, group: str, n: int) -> Any:
        have = self._points.get(group)
        if have is None or len(have) < n:
            distinct = min(n, 1 << (18 if group == "g1" else 16))
            make = host.fixed_base_g1 if group == "g1" else host.fixed_base_g2
            base = cupy().asarray(make(cupy().asnumpy(random_scalars(distinct, 7))))
            have = self._points[group] = cupy().tile(base, (n // distinct, 1))
        return have[:n]


def work_for(kernel: str, n: int, inputs: Inputs, **options: Any) -> tuple[Callable[[], Any], bool]:
    """What to time, and whether it ends on the host. `options`: `passes` of a transform, `bits` of an MSM's window."""
    module = cupy()
    group = kernel[-2:]
    if kernel == "ntt":
        values, spare = random_scalars(n, 1), module.empty((n, 4), np.uint64)
        chosen = transform.plan(n.bit_length() - 1, **options)
        return lambda: transform.run_plan(chosen, values, spare), False
    if kernel == "h_polynomial":
        a, b, c = (random_scalars(n, seed) for seed in (1, 2, 3))
        return lambda: quotient.h_polynomial(a, b, c), False
    points = inputs.points(group, n)
    if kernel.startswith("fixed"):
        base, scalars = multiples.store_multiples(points, **options), random_scalars(n, 1)
        return lambda: multiples.msm_of_multiples(base, scalars), True
    if "msm" in kernel:
        scalars = random_scalars(n, 1)
        if kernel.startswith("pinned"):
            points, scalars = _pinned(points), _pinned(scalars)
        run = msm.msm_g1 if group == "g1" else msm.msm_g2
        return lambda: run(points, scalars, **options), True
    bitmap = random_scalars(max(1, n // 256), 1).reshape(-1)[: -(-n // 64)].copy()
    bitmap = bitmap ^ (bitmap << np.uint64(1))  # the top words are below r's, so mix
    run = msm.masked_sum_g1 if group == "g1" else msm.masked_sum_g2
    return lambda: run(points, bitmap), True


def _pinned(array: Any) -> np.ndarray:
    """A copy in page-locked host memory."""
    import cupyx

    copy = cupyx.empty_pinned(array.shape, array.dtype)
    copy[...] = cupy().asnumpy(array)
    return copy


@refusing_in_one_line
def agrees_with_host(kernel: str, log_n: int = _CHECKED_LOG2, **options: Any) -> bool:
    """Whether a kernel's result at a small size is that of the CPU path.

    A transform in other `passes` is checked at the size that they make; beyond 2^18 points against the usual passes.
    """
    n, inputs, group = 1 << log_n, Inputs(), kernel[-2:]
    fetch = cupy().asnumpy
    if kernel == "ntt":
        passes = options.get("passes")
        return _transform_is_right(log_n, None) and (passes is None or _transform_is_right(sum(passes), passes))
    if kernel == "h_polynomial":
        parts = [random_scalars(n, seed) for seed in (3, 4, 5)]
        wanted = host.h_polynomial(*(fetch(part) for part in parts))
        return bool((fetch(quotient.h_polynomial(*parts)) == wanted).all())
    got, _ = work_for(kernel, n, inputs, **options)
    points = fetch(inputs.points(group, n))
    if "msm" in kernel:
        wanted = getattr(host, f"msm_{group}")(points, fetch(random_scalars(n, 1)))
    else:
        bitmap = fetch(random_scalars(max(1, n // 256), 1)).reshape(-1)[: -(-n // 64)].copy()
        wanted = getattr(host, f"masked_sum_{group}")(points, bitmap ^ (bitmap << np.uint64(1)))
    return bool((got() == wanted).all())


@refusing_in_one_line
def result_of(kernel: str, n: int, inputs: Inputs, **options: Any) -> Any:
    """What a kernel makes of the bench's inputs: an array of numpy, or of the device for transforms."""
    if kernel == "ntt":
        values = random_scalars(n, 1)
        transform.run_plan(transform.plan(n.bit_length() - 1, **options), values, cupy().empty_like(values))
        return values
    return work_for(kernel, n, inputs, **options)[0]()


def _transform_is_right(log_n: int, passes: tuple[int, ...] | None) -> bool:
    module = cupy()
    values = random_scalars(1 << log_n, 3)
    wanted, spare = values.copy(), module.empty_like(values)
    if log_n <= 18:
        on_host = module.asnumpy(wanted)
        host.ntt(on_host)
        wanted = module.asarray(on_host)
    else:
        transform.run_plan(transform.plan(log_n), wanted, spare)
    transform.run_plan(transform.plan(log_n, passes=passes), values, spare)
    return bool((values == wanted).all())
