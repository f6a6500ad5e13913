"""Measures the CUDA kernels: median and minimum, beside the floor of this card and public provers' times.

The floor is an ideal that runs at the card's measured rate of wide multiply-adds and does nothing else: no sorting, no
memory traffic, no tails. Its operation counts: Fp product 294 wide multiply-adds, square 231; Fp2 product 720, square
588; Fr product by a known factor 93 (86 wide ones, and 14 low ones that take half as long); mixed addition 8 products
and 2 squares, full one 12 and 2. An MSM is n additions a window and two full ones a bucket, at the best window, with a
set of buckets for each window or, where multiples are stored, one in all; a transform n·(log2 n / 2 − 1) products.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cuzklab.backends import host, registry
from cuzklab.backends.cuda import quotient, transform
from cuzklab.backends.cuda.compile import Unit, compiler_version
from cuzklab.backends.cuda.harness import Inputs, agrees_with_host, work_for
from cuzklab.backends.cuda.launch import (
    NotEnoughMemory,
    cupy,
    launch,
    multiprocessors,
    refusing_in_one_line,
    timed_launches,
)
from cuzklab.backends.limbs import ints_to_limbs
from cuzklab.errors import BadInput

Report = Callable[[float, str], None]

KERNELS = tuple(registry.KERNELS["cuda"])

LOG2_SIZES = (16, 18, 20, 22, 24)

PEERS_MS = {
    ("msm_g1", "sppark"): {16: 7.13, 18: 19.6, 20: 20.9, 22: 53.5, 24: 154.9, 26: 557.5},
    ("pinned_msm_g1", "sppark"): {16: 7.09, 18: 19.6, 20: 21.2, 22: 54.6, 24: 160.9, 26: 582.5},
    ("fixed_msm_g1", "Yrrid"): {22: 25.8, 24: 89.7},
    ("msm_g2", "sppark"): {16: 10.0, 18: 27.5, 20: 48.1, 22: 138.1, 24: 446.4},
    ("ntt", "sppark"): {16: 0.0255, 18: 0.0725, 20: 0.274, 22: 1.12, 24: 4.73, 25: 10.0, 26: 23.8, 27: 44.4},
    ("h_polynomial", "sppark"): {20: 2.11, 22: 8.45, 24: 35.5, 25: 74.8, 26: 170.8, 27: 330.7},
    ("masked_sum_g1", "sppark"): {20: 1.47, 22: 2.37, 24: 5.35, 26: 18.3},
    ("masked_sum_g2", "sppark"): {20: 3.14, 22: 5.34, 24: 14.6},
}
"""Milliseconds of public provers on one H200, CUDA 13.0, 2026-11-29, measured by this project."""
PEERS_CONDITIONS = "peers: H200, CUDA 13.0, 2026-11-29, measured by this project"

_CEILINGS = Unit("ceilings.cu")
_WIDE = {"g1": (294, 231), "g2": (720, 588)}
_FR_WIDE = 93
_POINT_BYTES = {"g1": 96, "g2": 192}


@dataclass(frozen=True)
class Row:
    """One kernel at one size. Times in milliseconds, data on the device unless the name says pinned.

    `wide_multiply_adds` are those of the floor, `bytes_moved` what the design must move through the device's memory,
    `rate` items a second from the median, `peak_vram_bytes` what CuPy held in all, inputs and tables included.
    """

    kernel: str
    log2n: int
    median_ms: float
    min_ms: float
    repeats: int
    rate: float
    rate_unit: str
    floor_ms: float
    ratio_to_floor: float
    wide_multiply_adds: float
    bytes_moved: float
    peak_vram_bytes: int
    peer: str | None
    peer_ms: float | None


def event_ms(work: Callable[[], Any], repeats: int) -> list[float]:
    """Milliseconds between two events of the device, `repeats` times after warming up."""
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


def wall_ms(work: Callable[[], Any], repeats: int) -> list[float]:
    """The same by the host's clock, for work that ends on the host and synchronizes by itself."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        work()
        times.append(1e-6 * (time.perf_counter_ns() - start))
    return times


@refusing_in_one_line
def ceilings() -> dict[str, float]:
    """Rates of this card, each per second: wide multiply-adds, field products, mixed additions, bytes copied."""
    module, sms = cupy(), multiprocessors()
    rates = {}
    out = module.empty(sms * 16 * 128, np.uint32)
    rounds = 2000
    arguments = (out, np.uint32(0x9E3779B1), np.uint32(rounds))
    best = min(event_ms(lambda: launch(_CEILINGS, "wide_multiply_adds", sms * 16, 128, arguments), 5))
    rates["wide_multiply_adds"] = sms * 16 * 128 * 64 * rounds / best * 1e3
    base = module.asarray(host.fixed_base_g1(ints_to_limbs(range(3, 67), 4)))
    for kernel, words, per_round in (
        ("fp_products", 6, 4), ("fp_squares", 6, 4), ("fr_products", 4, 4), ("mixed_additions", 24, 1),
    ):  # fmt: skip
        threads, rounds = sms * 16 * 128, 500
        sink = module.empty((threads, words), np.uint64)
        arguments = (sink, base, np.uint32(rounds))
        best = min(event_ms(lambda k=kernel, a=arguments: launch(_CEILINGS, k, sms * 16, 128, a), 5))
        rates[kernel] = threads * rounds * per_round / best * 1e3
    source = module.ones(1 << 28, np.uint64)
    target = module.empty_like(source)
    rates["bytes_copied"] = 2 * source.nbytes / min(event_ms(lambda: module.copyto(target, source), 5)) * 1e3
    return rates


def _additions(group: str) -> tuple[int, int]:
    product, square = _WIDE[group]
    return 8 * product + 2 * square, 12 * product + 2 * square


def _cheapest(kernel: str, n: int) -> tuple[float, int]:
    """Wide multiply-adds of an MSM at its best window, and how many windows that makes."""
    mixed, full = _additions(kernel[-2:])

    def cost(bits: int) -> tuple[float, int]:
        windows = -(-255 // bits)
        return windows * n * mixed + (1 if kernel.startswith("fixed") else windows) * (1 << bits) * full, windows

    return min(cost(bits) for bits in range(4, 26))


def work_of(kernel: str, log_n: int) -> tuple[float, float]:
    """Wide multiply-adds of the ideal described above, and bytes that cannot but move through the device's memory.

    Bytes: an MSM gathers a point and writes and reads three words for each addition; a transform reads and writes all
    data a pass and reads a factor an element before each pass but the first.
    """
    n, group = 1 << log_n, kernel[-2:]
    if "msm" in kernel:
        wide, windows = _cheapest(kernel, n)
        return wide, windows * n * (_POINT_BYTES[group] + 24) + 32 * n
    if kernel.startswith("masked"):
        return n // 2 * _additions(group)[0], n / 2 * (_POINT_BYTES[group] + 8) + n / 8
    products, passes = max(1.0, n * (log_n / 2 - 1)), len(transform.pass_sizes(log_n))
    moved = (64 * passes + 32 * (passes - 1)) * n
    if kernel == "ntt":
        return _FR_WIDE * products, moved
    return _FR_WIDE * (6 * products + 3 * n), 6 * moved + 128 * n


def floor_ms(kernel: str, log_n: int, wide_per_s: float) -> float:
    """Milliseconds of the ideal described above."""
    return work_of(kernel, log_n)[0] / wide_per_s * 1e3


@refusing_in_one_line
def measure(kernel: str, log_n: int, wide_per_s: float, inputs: Inputs, repeats: int = 9, **options: Any) -> Row:
    """One row; `repeats` timed runs after one untimed."""
    pool = cupy().get_default_memory_pool()
    pool.free_all_blocks()
    work, on_host = work_for(kernel, 1 << log_n, inputs, **options)
    times = (wall_ms if on_host else event_ms)(work, repeats)
    median = statistics.median(times)
    wide, moved = work_of(kernel, log_n)
    floor = wide / wide_per_s * 1e3
    peer, peer_ms = next(
        ((who, known[log_n]) for (name, who), known in PEERS_MS.items() if name == kernel and log_n in known),
        (None, None),
    )
    unit = "elements" if kernel in ("ntt", "h_polynomial") else "points"
    rate = float(f"{(1 << log_n) / median * 1e3:.4g}")
    return Row(
        kernel, log_n, median, min(times), repeats, rate, unit, floor, median / floor, wide, moved,
        pool.total_bytes(), peer, peer_ms,
    )  # fmt: skip


def phases(kernel: str, log_n: int, inputs: Inputs, **options: Any) -> dict[str, float]:
    """Milliseconds by CUDA kernel, in one run after one untimed."""
    work, _ = work_for(kernel, 1 << log_n, inputs, **options)
    work()
    with timed_launches() as times:
        work()
    return times


def device_facts() -> dict[str, str]:
    """The card and the versions that a measurement depends on."""
    module = cupy()
    runtime = module.cuda.runtime
    properties = runtime.getDeviceProperties(module.cuda.Device().id)

    def dotted(version: int) -> str:
        return f"{version // 1000}.{version % 1000 // 10}"

    return {
        "device": properties["name"].decode(),
        "multiprocessors": str(properties["multiProcessorCount"]),
        "cuda_driver": dotted(runtime.driverGetVersion()),
        "cuda_runtime": dotted(runtime.runtimeGetVersion()),
        "nvrtc": ".".join(map(str, compiler_version())),
        "cupy": module.__version__,
    }


def bench_kernels(
    *,
    kernels: Sequence[str] = KERNELS,
    log2_sizes: Sequence[int] | None = None,
    repeats: int = 9,
    with_phases: bool = False,
    progress: Report = lambda share, words: None,
) -> dict[str, Any]:
    """Times the CUDA kernels, each checked once against the CPU path before.

    Parameters
    ----------
    kernels : names out of `KERNELS`
    log2_sizes : powers of two; `LOG2_SIZES` by default
    repeats : timed calls of each
    with_phases : also the milliseconds of each CUDA kernel
    progress : called with the share done and a few words

    Returns
    -------
    dict
        `device`, `versions`, `ceilings` (each per second), `rows` (fields of `Row`; `phases` where asked for) and
        `skipped`: kernel, size and the reason, for instance too little memory.

    Raises
    ------
    BadInput
        No usable GPU, or an unknown kernel.
    RuntimeError
        A kernel's result is not the CPU path's.
    """
    if unknown := set(kernels) - set(KERNELS):
        raise BadInput(f"no CUDA kernel {', '.join(sorted(unknown))}; there are: {', '.join(KERNELS)}")
    sizes = list(log2_sizes or LOG2_SIZES)
    facts = device_facts()
    progress(0.0, "ceilings of this card")
    rates = ceilings()
    rows: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    for number, kernel in enumerate(kernels):
        progress(number / len(kernels), f"{kernel}: checking against the host")
        if not agrees_with_host(kernel):
            raise RuntimeError(f"{kernel}: the result is not the CPU path's; not measured")
        inputs = Inputs()  # anew, so that a row's peak holds its own inputs only
        for place, log_n in enumerate(sizes):
            progress((number + place / len(sizes)) / len(kernels), f"{kernel} 2^{log_n}")
            try:
                row = asdict(measure(kernel, log_n, rates["wide_multiply_adds"], inputs, repeats))
                if with_phases:
                    row["phases"] = phases(kernel, log_n, inputs)
                rows.append(row)
            except NotEnoughMemory as error:
                skipped.append({"kernel": kernel, "log2n": log_n, "why": str(error)})
        del inputs
        quotient.release_tables()
    progress(1.0, "done")
    return {
        "device": facts.pop("device"), "versions": facts, "ceilings": rates, "rows": rows, "skipped": skipped,
        "peers": PEERS_CONDITIONS,
    }  # fmt: skip
