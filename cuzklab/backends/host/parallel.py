"""Sharing work out over threads. Native calls drop the interpreter's lock, so Python threads are enough."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock

# Threads start when first needed and then wait for work. The caller always works too, so a call makes progress even
# when other callers have taken every thread, and nested calls cannot wait for each other.
_POOL_THREADS = 256
_pool: ThreadPoolExecutor | None = None
_pool_lock = Lock()


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=_POOL_THREADS, thread_name_prefix="cuzklab-host")
        return _pool


def _forget_pool() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)  # threads do not survive a fork


def thread_count(threads: int | None) -> int:
    """The number of threads that a call may use; None means all cores of this process.

    Raises
    ------
    ValueError
        Less than one.
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise ValueError(f"threads: expected at least 1, got {threads}")
    return int(threads)


def ranges(count: int, parts: int, multiple: int = 1) -> list[tuple[int, int]]:
    """0 … count cut into at most `parts` ranges of nearly equal length, cut at multiples of `multiple`."""
    blocks = -(-count // multiple)
    parts = max(1, min(parts, blocks))
    cuts = [min(count, blocks * i // parts * multiple) for i in range(parts + 1)]
    return [(a, b) for a, b in itertools.pairwise(cuts) if a < b]


def run(work: Callable[..., None], tasks: Sequence[tuple], threads: int, make_scratch: Callable[[], object]) -> None:
    """Calls `work(*task, scratch)` for every task, on up to `threads` threads, each with a scratch of its own.

    Threads take the next task as they come free, so uneven tasks even out. The first error is raised, after all
    threads have stopped.
    """
    threads = min(threads, len(tasks))
    if threads <= 1:
        scratch = make_scratch() if tasks else None
        for task in tasks:
            work(*task, scratch)
        return
    queue, lock = iter(tasks), Lock()

    def worker() -> None:
        scratch = make_scratch()
        while True:
            with lock:
                task = next(queue, None)
            if task is None:
                return
            work(*task, scratch)

    pool = _shared_pool()
    helpers = [pool.submit(worker) for _ in range(threads - 1)]
    try:
        worker()
    finally:
        # One that has not started by now would find nothing left to do.
        started = [helper for helper in helpers if not helper.cancel()]
        wait(started)
    for helper in started:
        helper.result()


def run_ranges(work: Callable[[int, int], None], pieces: Iterable[tuple[int, int]], threads: int) -> None:
    """`run` for work on index ranges that needs no scratch."""
    run(lambda begin, end, _: work(begin, end), list(pieces), threads, lambda: None)
