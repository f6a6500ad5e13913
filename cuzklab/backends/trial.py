"""Tries a change of a kernel: builds it beside the shipped one, checks it, and times both in turns.

A change is an edit of a file under `kernels/` or, on a GPU, a macro that a source is compiled with, the bits of an
MSM's window, or the passes of a transform. The package's own sources are never touched: edits go into a copy.
"""

import contextlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cuzklab.backends import bench, host, native, registry
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.errors import BadInput
from cuzklab.resources import folder

Report = Callable[[float, str], None]
HOST_KERNELS = tuple(registry.KERNELS["host"])


@dataclass(frozen=True)
class Edit:
    """Text of one file under `kernels/` that becomes another text, everywhere in it."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """What to try.

    Attributes
    ----------
    edits : sequence of Edit
    macros : mapping
        cuda only: macros by source, for instance ``{"accumulate.cu": {"THREADS": 64, "BLOCKS_PER_SM": 8}}``.
    options : mapping
        cuda only: ``bits`` of an MSM's window, ``passes`` of a transform (log2 of their points).
    """

    edits: Sequence[Edit] = ()
    macros: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def compare(
    kernel: str,
    log_n: int,
    change: Change,
    *,
    backend: str,
    repeats: int = 7,
    progress: Report = lambda share, words: None,
) -> list[dict[str, Any]]:
    """Times a kernel as shipped and changed, in turns, once the changed one's result is found right.

    Parameters
    ----------
    kernel : str
        A name of the backend's bench.
    log_n : int
        log2 of the size.
    change : Change
    backend : {"cuda", "host"}
        On the host, one thread, judged by the shipped build; on a GPU, judged by the CPU path at a small size and by
        the shipped kernel at this one.
    repeats : int
        Timed calls of each.

    Returns
    -------
    list of dict
        For `as shipped` and `changed`: median_ms, min_ms, calls, and of the ratios of neighbouring calls, changed to
        shipped, the median (time_ratio), ratio_least and ratio_most. Where these two lie on both sides of 1, calls
        disagree on which is faster.

    Raises
    ------
    BadInput
        An edit that does not apply or does not compile (the compiler's own message, with file and line), or a change
        that this backend does not know. The shipped kernels are in force again.
    RuntimeError
        The changed kernel's result is wrong; nothing was timed.
    """
    progress(0.0, "building")
    with _copy_with(change.edits) as root:
        variants = _cuda_variants if backend == "cuda" else _host_variants
        shipped, changed = variants(kernel, log_n, change, root)
        ours: list[float] = []
        theirs: list[float] = []
        for turn in range(repeats):
            progress(turn / repeats, "timing in turns")
            ours.append(shipped())
            theirs.append(changed())
    progress(1.0, "done")
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return [
        _row("as shipped", ours, [1.0]),
        _row("changed", theirs, ratios),
    ]


def _row(variant: str, times_ms: Sequence[float], ratios: Sequence[float]) -> dict[str, Any]:
    return {
        "variant": variant, "median_ms": statistics.median(times_ms), "min_ms": min(times_ms),
        "calls": len(times_ms), "time_ratio": statistics.median(ratios), "ratio_least": min(ratios),
        "ratio_most": max(ratios),
    }  # fmt: skip


@contextlib.contextmanager
def _copy_with(edits: Sequence[Edit]) -> Iterator[Path | None]:
    """A copy of the kernels with these edits; None where there are none."""
    if not edits:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="cuzklab-kernels-") as scratch:
        root = Path(scratch).resolve() / "kernels"
        shutil.copytree(folder("kernels"), root)
        for edit in edits:
            path = (root / edit.file).resolve()
            if not path.is_relative_to(root) or not path.is_file():
                raise BadInput(f"kernels/{edit.file}: no such file")
            text = path.read_text()
            if edit.old not in text:
                raise BadInput(f"kernels/{edit.file}: does not hold {edit.old!r}")
            path.write_text(text.replace(edit.old, edit.new))
        yield root


def _wrong(kernel: str, log_n: int) -> RuntimeError:
    return RuntimeError(f"{kernel} 2^{log_n}: the changed kernel's result is wrong; nothing was timed")


def _host_variants(kernel: str, log_n: int, change: Change, root: Path | None) -> list[Callable[[], float]]:
    if kernel not in HOST_KERNELS:
        raise BadInput(f"no host kernel {kernel!r} to try; there are: {', '.join(HOST_KERNELS)}")
    if change.macros or change.options:
        raise BadInput("the host's kernels have neither macros nor options to try: give edits")
    work = _host_work(kernel, 1 << log_n)

    def timed(tree: Path | None) -> float:
        with _host_kernels(tree):
            work()
            start = time.perf_counter_ns()
            work()
            return (time.perf_counter_ns() - start) * 1e-6

    wanted = work()
    with _host_kernels(root):
        if not np.array_equal(work(), wanted):
            raise _wrong(kernel, log_n)
    return [lambda: timed(None), lambda: timed(root)]


@contextlib.contextmanager
def _host_kernels(tree: Path | None) -> Iterator[None]:
    native.use_kernels(tree)
    try:
        yield
    finally:
        native.use_kernels(None)


def _host_work(kernel: str, n: int) -> Callable[[], np.ndarray]:
    if kernel.endswith("_mul"):
        return bench.products(kernel.removesuffix("_mul"), n)
    words = np.random.default_rng(1).integers(0, 1 << 64, (n, 4), dtype=np.uint64)
    words[:, 3] %= np.uint64(FR_MODULUS >> 192)
    if kernel == "ntt":

        def transformed() -> np.ndarray:
            values = words.copy()
            host.ntt(values, threads=1)
            return values

        return transformed
    group = kernel[-2:]
    points, run = getattr(host, f"fixed_base_{group}")(words), getattr(host, kernel)
    second = words if kernel.startswith("msm") else words.reshape(-1)[: -(-n // 64)].copy()
    return lambda: run(points, second, threads=1)


def _cuda_variants(kernel: str, log_n: int, change: Change, root: Path | None) -> list[Callable[[], float]]:
    from cuzklab.backends.cuda import bench as cuda_bench
    from cuzklab.backends.cuda import harness, launch, quotient

    if kernel not in cuda_bench.KERNELS:
        raise BadInput(f"no CUDA kernel {kernel!r} to try; there are: {', '.join(cuda_bench.KERNELS)}")
    inputs = harness.Inputs()

    @contextlib.contextmanager
    def in_force(tree: Path | None, macros: Mapping[str, Mapping[str, int]]) -> Iterator[None]:
        launch.use_kernels(tree)
        try:
            with launch.macros(macros):
                yield
        finally:
            launch.use_kernels(None)

    with in_force(None, {}):
        wanted = harness.result_of(kernel, 1 << log_n, inputs)

    def variant(tree: Path | None, tried: Change) -> Callable[[], float]:
        with in_force(tree, tried.macros):
            quotient.release_tables()
            right = harness.agrees_with_host(kernel, **tried.options)
            if not right or not (harness.result_of(kernel, 1 << log_n, inputs, **tried.options) == wanted).all():
                raise _wrong(kernel, log_n)
            work, on_host = harness.work_for(kernel, 1 << log_n, inputs, **tried.options)

        def timed() -> float:
            with in_force(tree, tried.macros):
                (one,) = (cuda_bench.wall_ms if on_host else cuda_bench.event_ms)(work, 1)
            return one

        return timed

    return [variant(None, Change()), variant(root, change)]
