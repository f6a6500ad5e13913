"""Measures the host kernels: time, rate, a floor, and blst beside them in the same run.

Ours and the peer's calls alternate, so that other load on the machine meets both. The floor is the number of field
products that a kernel cannot do without, times the time of one product (median over a loop of independent ones, run
before each call), over the threads:

* an affine addition in a batch costs 6 products (5M + 1S); an MSM does windows · (n + buckets) of them, a masked sum
  one for each set bit. In G2 a product over Fp2 counts as 3, a square as 2, so 17 an addition.
* a transform has (n/2)·log2 n − n + 1 products by roots other than one.

Additions, subtractions, inversions and memory are not in it: it is a bound, not a forecast.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from cuzklab.backends import host, peers, registry
from cuzklab.backends.host.msm import window_bits
from cuzklab.backends.host.parallel import thread_count
from cuzklab.backends.native import load

Report = Callable[[float, str], None]

KERNELS = tuple(registry.KERNELS["host"])
_ADDITION_PRODUCTS = {"g1": 6, "g2": 5 * 3 + 2}
_PRODUCTS_IN_LOOP = 8
_LOOP_LOG2 = 17
_LOOP_ROUNDS = (1 << _LOOP_LOG2) // _PRODUCTS_IN_LOOP


@dataclass(frozen=True)
class Row:
    """One kernel at one size on some threads. Times in ms; `rate` in `rate_unit` a second, from the median.

    `peer` is None, and its times too, where no peer is installed or none has this kernel.
    """

    kernel: str
    log2n: int
    threads: int
    median_ms: float
    min_ms: float
    floor_ms: float
    field_products: float
    rate: float
    rate_unit: str
    repeats: int
    peer: str | None = None
    peer_ms: float | None = None
    peer_min_ms: float | None = None


@dataclass(frozen=True)
class _Case:
    """Something to time: ours, the peer's form of it or None, and how many products and items it takes."""

    kernel: str
    log2n: int
    threads: int
    ours: Callable[[], object]
    peer: Callable[[], object] | None
    products: float
    items: int
    unit: str
    field: str


def bench_kernels(
    *,
    kernels: Sequence[str] = KERNELS,
    log2_sizes: Sequence[int] | None = None,
    threads: int | None = None,
    repeats: int = 5,
    seed: int = 1,
    progress: Report = lambda share, words: None,
) -> list[dict]:
    """Times the host kernels.

    Parameters
    ----------
    kernels : names out of `KERNELS`
    log2_sizes : powers of two; by default 16 and 18, for transforms 20 too. Products run in a loop of 2^17.
    threads : number of threads; by default each kernel runs on one, and then on all cores
    repeats : calls of each kernel and of its peer, alternating
    seed : of points and scalars, which are uniform
    progress : called with the share done and a few words

    Returns
    -------
    list of dict
        The fields of `Row`.

    Raises
    ------
    ValueError
        An unknown kernel.
    RuntimeError
        A kernel and its peer disagree on the result.
    """
    if unknown := set(kernels) - set(KERNELS):
        raise ValueError(f"kernels: unknown {', '.join(sorted(unknown))}; known are {', '.join(KERNELS)}")
    progress(0.0, "compiling")
    load()
    counts = sorted({1, thread_count(None)}) if threads is None else [thread_count(threads)]
    plan = [(kernel, size) for kernel in kernels for size in _sizes(kernel, log2_sizes)]
    rows = []
    for done, (kernel, size) in enumerate(plan):
        progress(done / len(plan), f"{kernel} 2^{size}")
        for case in _cases(kernel, size, counts, np.random.default_rng(seed)):
            rows.append(asdict(_measure(case, repeats)))
    progress(1.0, "done")
    return rows


def _sizes(kernel: str, log2_sizes: Sequence[int] | None) -> Sequence[int]:
    if kernel.endswith("_mul"):
        return (_LOOP_LOG2,)
    return log2_sizes or ((16, 18, 20) if kernel == "ntt" else (16, 18))


def _measure(case: _Case, repeats: int) -> Row:
    first = case.ours()  # also warms tables and memory
    if case.peer is not None and isinstance(first, np.ndarray) and not np.array_equal(first, case.peer()):
        raise RuntimeError(f"{case.kernel} 2^{case.log2n}: our result differs from blst's")
    ours, theirs, product_ns = [], [], []
    loop = _repeat_products(case.field, _LOOP_ROUNDS)
    for _ in range(repeats):
        product_ns.append(_milliseconds(loop) * 1e6 / (_LOOP_ROUNDS * _PRODUCTS_IN_LOOP))
        ours.append(_milliseconds(case.ours))
        if case.peer is not None:
            theirs.append(_milliseconds(case.peer))
    median = statistics.median(ours)
    floor_ms = case.products * statistics.median(product_ns) * 1e-6 / case.threads
    if case.kernel.endswith("_mul"):
        floor_ms = min(ours)  # the unit itself: its floor is its best run
    return Row(
        kernel=case.kernel,
        log2n=case.log2n,
        threads=case.threads,
        median_ms=median,
        min_ms=min(ours),
        floor_ms=floor_ms,
        field_products=case.products,
        rate=float(f"{case.items / median * 1e3:.4g}"),
        rate_unit=case.unit,
        repeats=repeats,
        peer="blst" if theirs else None,
        peer_ms=statistics.median(theirs) if theirs else None,
        peer_min_ms=min(theirs) if theirs else None,
    )


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) * 1e-6


def _repeat_products(field: str, rounds: int) -> Callable[[], None]:
    elements = _factors(field)
    function = getattr(load().library, f"{field}_repeat_products")
    return lambda: function(elements.ctypes.data, rounds)


def _factors(field: str) -> np.ndarray:
    return host.ints_to_limbs([3**k for k in range(_PRODUCTS_IN_LOOP + 1)], 6 if field == "fp" else 4)


def products(field: str, count: int) -> Callable[[], np.ndarray]:
    """Work of about `count` field products, always the same ones, by the kernels in force; it returns the last of them.

    Parameters
    ----------
    field : {"fp", "fr"}
    count : int
    """

    def multiplied() -> np.ndarray:
        elements = _factors(field)
        getattr(load().library, f"{field}_repeat_products")(elements.ctypes.data, -(-count // _PRODUCTS_IN_LOOP))
        return elements

    return multiplied


def _uniform_scalars(random: np.random.Generator, n: int) -> np.ndarray:
    scalars = np.frombuffer(random.bytes(32 * n), np.uint64).reshape(n, 4).copy()
    scalars[:, 3] %= np.uint64(host.FR_MODULUS >> 192)  # so that every one is below r
    return scalars


def _cases(kernel: str, size: int, threads: Sequence[int], random: np.random.Generator) -> list[_Case]:
    n = 1 << size
    if kernel.endswith("_mul"):
        field = kernel[:2]
        return [_Case(kernel, size, 1, _repeat_products(field, _LOOP_ROUNDS), None, n, n, "products", field)]
    if kernel == "ntt":
        values, products = _uniform_scalars(random, n), n / 2 * size - n + 1
        return [
            _Case(kernel, size, t, lambda t=t: host.ntt(values, threads=t), None, products, n, "elements", "fr")
            for t in threads
        ]
    group = kernel[-2:]
    points = (host.fixed_base_g1 if group == "g1" else host.fixed_base_g2)(_uniform_scalars(random, n))
    has_peer = peers.blst() is not None
    if kernel.startswith("msm"):
        scalars, msm = _uniform_scalars(random, n), host.msm_g1 if group == "g1" else host.msm_g2
        bits = window_bits(n)
        products = -(-255 // bits) * (n + (1 << (bits - 1))) * _ADDITION_PRODUCTS[group]
        ours = [lambda t=t: msm(points, scalars, threads=t) for t in threads]
        theirs = [(lambda t=t: peers.blst_msm(points, scalars, t)) if has_peer else None for t in threads]
    else:
        bitmap = np.frombuffer(random.bytes(8 * -(-n // 64)), np.uint64)
        masked_sum = host.masked_sum_g1 if group == "g1" else host.masked_sum_g2
        # blst adds lists: it is handed the chosen points, and the gathering is not charged to it.
        chosen = points[np.unpackbits(bitmap.view(np.uint8), bitorder="little")[:n].astype(bool)]
        products = len(chosen) * _ADDITION_PRODUCTS[group]
        ours = [lambda t=t: masked_sum(points, bitmap, threads=t) for t in threads]
        theirs = [(lambda t=t: peers.blst_sum(chosen, t)) if has_peer else None for t in threads]
    return [
        _Case(kernel, size, t, a, b, products, n, "points", "fp") for t, a, b in zip(threads, ours, theirs, strict=True)
    ]
