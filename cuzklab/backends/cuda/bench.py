"""Measures the CUDA kernels: median and minimum, beside the floor of this card and public provers' times.

`python -m cuzklab.backends.cuda.bench [--sizes 18:24] [--only ntt,msm_g1] [--json] [--phases]`

The floor is an ideal that runs at the card's measured rate of wide multiply-adds and does nothing else: no sorting, no
memory traffic, no tails. Its operation counts: Fp product 294 wide multiply-adds, square 231, Fr product 112 (special
form of r), Fp2 product 720, square 588; mixed addition 8 products and 2 squares, full one 12 and 2. An MSM is n
additions a window and two full ones a bucket, at the best window; a transform n·(log2 n / 2 − 1) products.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.backends.cuda import msm, transform
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import cupy, launch, multiprocessors, timed_launches
from cuzklab.backends.limbs import ints_to_limbs

_CEILINGS = Unit("ceilings.cu")
_WIDE = {"g1": (294, 231), "g2": (720, 588)}
_FR_WIDE = 112

PEERS_MS = {
    ("msm_g1", "sppark"): {16: 7.13, 18: 19.6, 20: 20.9, 22: 53.5, 24: 154.9, 26: 557.5},
    ("pinned_msm_g1", "sppark"): {16: 7.09, 18: 19.6, 20: 21.2, 22: 54.6, 24: 160.9, 26: 582.5},
    ("msm_g2", "sppark"): {16: 10.0, 18: 27.5, 20: 48.1, 22: 138.1, 24: 446.4},
    ("ntt", "sppark"): {16: 0.0255, 18: 0.0725, 20: 0.274, 22: 1.12, 24: 4.73, 25: 10.0, 26: 23.8, 27: 44.4},
    ("h_polynomial", "sppark"): {20: 2.11, 22: 8.45, 24: 35.5, 25: 74.8, 26: 170.8, 27: 330.7},
    ("masked_sum_g1", "sppark"): {20: 1.47, 22: 2.37, 24: 5.35, 26: 18.3},
    ("masked_sum_g2", "sppark"): {20: 3.14, 22: 5.34, 24: 14.6},
}
"""Milliseconds of sppark on one H200, CUDA 13.0, 2026-11-29, data on the device: measured by this project.
`pinned_` means points and scalars in page-locked host memory."""


@dataclass(frozen=True)
class Row:
    """One kernel at one size. Times in milliseconds, data on the device unless the name says pinned."""

    kernel: str
    log2n: int
    median_ms: float
    min_ms: float
    floor_ms: float
    ratio_to_floor: float
    peak_vram_bytes: int
    peer: str | None
    peer_ms: float | None


def _event_ms(work: Callable[[], Any], repeats: int) -> list[float]:
    module = cupy()

    def once(runs: int) -> float:
        start, end = module.cuda.Event(), module.cuda.Event()
        start.record()
        for _ in range(runs):
            work()
        end.record()
        end.synchronize()
        return module.cuda.get_elapsed_time(start, end) / runs

    once(1)
    # Short work several times between two events: the device must not wait for the next launch.
    runs = max(1, min(200, int(4 / max(once(1), 1e-3))))
    return [once(runs) for _ in range(repeats)]


def _wall_ms(work: Callable[[], Any], repeats: int) -> list[float]:
    """For work that ends on the host and synchronizes by itself."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def ceilings() -> dict[str, float]:
    """Rates of this card, each per second: wide multiply-adds, field products, mixed additions, bytes copied."""
    module, sms = cupy(), multiprocessors()
    rates = {}
    out = module.empty(sms * 16 * 128, np.uint32)
    rounds = 2000
    arguments = (out, np.uint32(0x9E3779B1), np.uint32(rounds))
    best = min(_event_ms(lambda: launch(_CEILINGS, "wide_multiply_adds", sms * 16, 128, arguments), 5))
    rates["wide_multiply_adds"] = sms * 16 * 128 * 64 * rounds / best * 1e3
    base = module.asarray(host.fixed_base_g1(ints_to_limbs(range(3, 67), 4)))
    for kernel, words, per_round in (
        ("fp_products", 6, 4), ("fp_squares", 6, 4), ("fr_products", 4, 4), ("mixed_additions", 24, 1),
    ):  # fmt: skip
        threads, rounds = sms * 16 * 128, 500
        sink = module.empty((threads, words), np.uint64)
        arguments = (sink, base, np.uint32(rounds))
        best = min(_event_ms(lambda k=kernel, a=arguments: launch(_CEILINGS, k, sms * 16, 128, a), 5))
        rates[kernel] = threads * rounds * per_round / best * 1e3
    source = module.ones(1 << 28, np.uint64)
    target = module.empty_like(source)
    rates["bytes_copied"] = 2 * source.nbytes / min(_event_ms(lambda: module.copyto(target, source), 5)) * 1e3
    return rates


def _additions(group: str) -> tuple[int, int]:
    product, square = _WIDE[group]
    return 8 * product + 2 * square, 12 * product + 2 * square


def floor_ms(kernel: str, log_n: int, wide_per_s: float) -> float:
    """Milliseconds of the ideal described above."""
    n = 1 << log_n
    if "msm" in kernel:
        mixed, full = _additions(kernel[-2:])
        wide = min(-(-255 // c) * (n * mixed + (1 << c) * full) for c in range(4, 26))
    elif kernel.startswith("masked"):
        wide = n // 2 * _additions(kernel[-2:])[0]
    else:
        products = max(1.0, n * (log_n / 2 - 1))
        wide = _FR_WIDE * (products if kernel == "ntt" else 6 * products + 3 * n)
    return wide / wide_per_s * 1e3


def _random_scalars(n: int, seed: int):
    module = cupy()
    words = module.random.RandomState(seed).randint(0, 1 << 32, (n, 8), dtype=np.uint32)
    scalars = words.view(np.uint64)
    scalars[:, 3] %= np.uint64(FR_MODULUS >> 192)
    return scalars


class _Inputs:
    """Points, scalars and elements on the device, as large as asked for."""

    def __init__(self) -> None:
        self._points: dict[str, Any] = {}

    def points(self, group: str, n: int):
        have = self._points.get(group)
        if have is None or len(have) < n:
            distinct = min(n, 1 << (18 if group == "g1" else 16))
            make = host.fixed_base_g1 if group == "g1" else host.fixed_base_g2
            base = cupy().asarray(make(cupy().asnumpy(_random_scalars(distinct, 7))))
            have = self._points[group] = cupy().tile(base, (n // distinct, 1))
        return have[:n]


def _work(kernel: str, n: int, inputs: _Inputs) -> tuple[Callable[[], Any], bool]:
    """What to time, and whether it ends on the host."""
    module = cupy()
    group = kernel[-2:]
    if kernel == "ntt":
        values, spare = _random_scalars(n, 1), module.empty((n, 4), np.uint64)
        chosen = transform.plan(n.bit_length() - 1)
        return lambda: transform.run_plan(chosen, values, spare), False
    if kernel == "h_polynomial":
        a, b, c = (_random_scalars(n, seed) for seed in (1, 2, 3))
        return lambda: transform.h_polynomial(a, b, c), False
    if "msm" in kernel:
        points, scalars = inputs.points(group, n), _random_scalars(n, 1)
        if kernel.startswith("pinned"):
            points, scalars = _pinned(points), _pinned(scalars)
        return lambda: msm._msm(group, points, scalars, None), True
    points = inputs.points(group, n)
    bitmap = _random_scalars(max(1, n // 256), 1).reshape(-1)[: -(-n // 64)].copy()
    bitmap = bitmap ^ (bitmap << np.uint64(1))  # the top words are below r's, so mix
    return lambda: msm._masked_sum(group, points, bitmap), True


def _pinned(array: Any) -> np.ndarray:
    """A copy in page-locked host memory."""
    import cupyx

    copy = cupyx.empty_pinned(array.shape, array.dtype)
    copy[...] = cupy().asnumpy(array)
    return copy


KERNELS = ("ntt", "h_polynomial", "msm_g1", "pinned_msm_g1", "msm_g2", "masked_sum_g1", "masked_sum_g2")


def measure(kernel: str, log_n: int, wide_per_s: float, inputs: _Inputs, repeats: int = 9) -> Row:
    """One row; `repeats` timed runs after one untimed."""
    module = cupy()
    pool = module.get_default_memory_pool()
    pool.free_all_blocks()
    work, on_host = _work(kernel, 1 << log_n, inputs)
    times = (_wall_ms if on_host else _event_ms)(work, repeats)
    median, floor = statistics.median(times), floor_ms(kernel, log_n, wide_per_s)
    peer_ms = PEERS_MS.get((kernel, "sppark"), {}).get(log_n)
    return Row(
        kernel,
        log_n,
        median,
        min(times),
        floor,
        median / floor,
        pool.total_bytes(),
        "sppark" if peer_ms else None,
        peer_ms,
    )


def phases(kernel: str, log_n: int, inputs: _Inputs) -> dict[str, float]:
    """Milliseconds by CUDA kernel, in one run after one untimed."""
    work, _ = _work(kernel, 1 << log_n, inputs)
    work()
    with timed_launches() as times:
        work()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="18:24", help="log2 of the sizes, FIRST:LAST (every second) or a list")
    parser.add_argument("--only", default=",".join(KERNELS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--phases", action="store_true", help="times of each CUDA kernel too")
    options = parser.parse_args()
    if ":" in options.sizes:
        first, last = (int(x) for x in options.sizes.split(":"))
        sizes = list(range(first, last + 1, 2))
    else:
        sizes = [int(x) for x in options.sizes.split(",")]
    module = cupy()
    device = module.cuda.runtime.getDeviceProperties(module.cuda.Device().id)["name"].decode()
    rates, rows = ceilings(), []
    if not options.json:
        print(device, " ".join(f"{name} {rate / 1e9:.1f} G/s" for name, rate in rates.items()))
        print(
            f"{'kernel':14} log2n {'median ms':>10} {'min ms':>9} {'floor ms':>9} "
            f"{'ratio':>6} {'sppark':>8} {'VRAM GB':>8}"
        )
    for kernel in options.only.split(","):
        inputs = _Inputs()  # anew, so that a row's peak holds its own inputs only
        for log_n in sizes:
            row = measure(kernel, log_n, rates["wide_multiply_adds"], inputs)
            rows.append(row)
            if not options.json:
                print(
                    f"{kernel:14} {log_n:5} {row.median_ms:10.4f} {row.min_ms:9.4f} {row.floor_ms:9.4f} "
                    f"{row.ratio_to_floor:6.2f} {row.peer_ms or float('nan'):8.3f} {row.peak_vram_bytes / 1e9:8.2f}",
                    flush=True,
                )
                if options.phases:
                    found = phases(kernel, log_n, inputs)
                    print("    " + "  ".join(f"{name} {ms:.3f}" for name, ms in found.items()), flush=True)
        transform.release_tables()
    if options.json:
        shown = {"backend": "cuda", "device": device, "ceilings": rates, "rows": [asdict(row) for row in rows]}
        print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
