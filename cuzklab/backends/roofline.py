"""What the kernels reach of what the machine can do: its multiplier, and its memory.

A kernel's arithmetic intensity is the multiplications that its floor counts over the bytes that its design must move.
At low intensity memory limits its rate of multiplications, at high intensity the multiplier does. Both limits are
measured in the same run: on a GPU by micro-kernels, on the host by loops of independent products and by a copy.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends import bench as host_bench
from cuzklab.backends.native import load

Report = Callable[[float, str], None]

# 64-bit multiplications of a Montgomery product: n² for the product, n² + n for the reduction, n limbs.
_WORD_PRODUCTS = {"fp": 2 * 36 + 6, "fr": 2 * 16 + 4}
_HOST_KERNELS = tuple(name for name in host_bench.KERNELS if not name.endswith("_mul"))  # products move nothing
_LIMBS, _FACTORS = {"fp_mul": 6, "fr_mul": 4}, 9
_POINT_BYTES = {"g1": 96, "g2": 192}
_COPY_BYTES = 1 << 26


@dataclass(frozen=True)
class Roofline:
    """Kernels under the roof of one machine.

    Attributes
    ----------
    backend, device : str
    conditions : str
        How it was measured.
    unit : str
        What is multiplied: "wide multiply-adds" on a GPU, "64-bit multiplications" on the host.
    operations_per_s, bytes_per_s : float
        The two limits.
    rows : list of dict
        kernel, log2n, median_ms, floor_ms, operations, bytes, intensity (operations a byte), operations_per_s, and
        roof_share, the part of what the lower of the two limits allows.
    """

    backend: str
    device: str
    conditions: str
    unit: str
    operations_per_s: float
    bytes_per_s: float
    rows: list[dict[str, Any]]


def measure(
    backend: str,
    *,
    kernels: Sequence[str] | None = None,
    log2_sizes: Sequence[int] | None = None,
    repeats: int = 5,
    progress: Report = lambda share, words: None,
) -> Roofline:
    """Bench the kernels of a backend and place them under its roof.

    Parameters
    ----------
    backend : {"cuda", "host"}
        The host's kernels run on one thread.
    kernels, log2_sizes, repeats, progress
        As in the backend's bench.

    Raises
    ------
    BadInput
        `cuda` without a usable GPU, or an unknown kernel.
    """
    if backend == "cuda":
        return _of_cuda(kernels, log2_sizes, repeats, progress)
    return _of_host(kernels, log2_sizes, repeats, progress)


def _row(kernel: str, log_n: int, median_ms: float, floor_ms: float, operations: float, moved: float) -> dict[str, Any]:
    return {
        "kernel": kernel, "log2n": log_n, "median_ms": median_ms, "floor_ms": floor_ms, "operations": operations,
        "bytes": moved, "intensity": operations / moved, "operations_per_s": operations / median_ms * 1e3,
    }  # fmt: skip


def _under(roof: Callable[[float], float], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"roof_share": row["operations_per_s"] / roof(row["intensity"])} for row in rows]


def _of_cuda(
    kernels: Sequence[str] | None, log2_sizes: Sequence[int] | None, repeats: int, progress: Report
) -> Roofline:
    from cuzklab.backends.cuda import bench

    found = bench.bench_kernels(
        kernels=kernels or bench.KERNELS, log2_sizes=log2_sizes, repeats=repeats, progress=progress
    )
    most, copied = found["ceilings"]["wide_multiply_adds"], found["ceilings"]["bytes_copied"]
    rows = [
        _row(
            row["kernel"], row["log2n"], row["median_ms"], row["floor_ms"], row["wide_multiply_adds"],
            row["bytes_moved"],
        )
        for row in found["rows"]
    ]  # fmt: skip
    versions = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["versions"].items())
    rows = _under(lambda intensity: min(most, intensity * copied), rows)
    return Roofline(
        "cuda", found["device"], f"{versions}; medians of {repeats}", "wide multiply-adds", most, copied, rows
    )


def _of_host(
    kernels: Sequence[str] | None, log2_sizes: Sequence[int] | None, repeats: int, progress: Report
) -> Roofline:
    from cuzklab.backends.host.msm import window_bits

    found = host_bench.bench_kernels(
        kernels=kernels or _HOST_KERNELS, log2_sizes=log2_sizes, threads=1, repeats=repeats, progress=progress
    )
    rows, rates = [], []
    for row in found:
        n, group = 1 << row["log2n"], row["kernel"][-2:]
        operations = row["field_products"] * _WORD_PRODUCTS["fr" if row["kernel"] in ("ntt", "fr_mul") else "fp"]
        if row["kernel"].startswith("msm"):
            moved = -(-255 // window_bits(n)) * n * (_POINT_BYTES[group] + 8) + 32 * n
        elif row["kernel"].startswith("masked"):
            moved = n / 2 * _POINT_BYTES[group] + n / 8
        elif row["kernel"].endswith("_mul"):
            moved = 16 * _LIMBS[row["kernel"]] * _FACTORS  # a few elements, which stay in registers and cache
        else:
            moved = 2 * 64 * n  # two sweeps over the data
        rates.append(operations / row["floor_ms"] * 1e3)
        rows.append(_row(row["kernel"], row["log2n"], row["median_ms"], row["floor_ms"], operations, moved))
    most, copied = max(rates), _copy_rate()
    native = load()
    conditions = f"one thread, multiply path {native.field_path}, {native.compiler}; medians of {repeats}"
    rows = _under(lambda intensity: min(most, intensity * copied), rows)
    return Roofline("host", _processor(), conditions, "64-bit multiplications", most, copied, rows)


def _copy_rate() -> float:
    """Bytes read and written a second by one thread that copies more than its caches hold."""
    source = np.ones(_COPY_BYTES // 8, np.uint64)
    target = np.empty_like(source)
    times = []
    for _ in range(5):
        start = time.perf_counter_ns()
        np.copyto(target, source)
        times.append(time.perf_counter_ns() - start)
    return 2 * _COPY_BYTES / statistics.median(times[1:]) * 1e9


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return "this CPU"
