"""A run of as many spans as one likes, whose numbers are known: workers that take turns at a lock and a device.

Each of `workers` proves partition after partition: a call that holds `stages` stages, their kernels on a stream of its
own, and every so often a wait for the lock.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from cuzklab.trace import Run, RunInfo, write_run
from cuzklab.trace.columns import Columns, table
from cuzklab.units import GiB

STAGES = ("ntt_h", "h_msm", "batch_add.l", "batch_add.a", "tail_msm.l", "tail_msm.a", "b_g2_msm")
STAGE_NS = np.array([8_000, 12_000, 5_000, 5_000, 2_000, 2_000, 6_000])


def large_run(place: Path, spans: int, workers: int = 8) -> Run:
    """A run with about `spans` rows in all: half are spans, the rest kernels, waits and uses of the lock."""
    per_partition = 2 * len(STAGES) + 3
    partitions = max(spans // per_partition // workers, 1)
    generator = np.random.default_rng(0)
    call = int(STAGE_NS.sum()) + 10_000
    number = np.tile(np.arange(partitions), workers)
    worker = np.repeat(np.arange(workers), partitions)
    begins = number * (call + 1_000) + worker * call // workers
    names = np.array([f"gpu0.w{index}" for index in range(workers)], dtype=object)
    partition = np.array([f"p{n // 16}.{n % 16}" for n in range(partitions)], dtype=object)[number]
    offsets = np.concatenate(([0], np.cumsum(STAGE_NS)[:-1])) + 8_000
    starts = (begins[:, None] + offsets).ravel()
    ends = starts + np.rint(np.tile(STAGE_NS, len(begins)) * generator.uniform(0.3, 1, len(starts))).astype(np.int64)
    stage = np.tile(np.array(STAGES, dtype=object), len(begins))
    whose, which = np.repeat(names[worker], len(STAGES)), np.repeat(partition, len(STAGES))
    tables = {
        "spans": _columns(
            start=np.concatenate((begins, starts)), end=np.concatenate((begins + call, ends)),
            name=np.concatenate((np.full(len(begins), "prove_partition", dtype=object), stage)),
            category=np.repeat(np.array(["call", "gpu"], dtype=object), [len(begins), len(starts)]),
            worker=np.concatenate((names[worker], whose)), thread=np.concatenate((names[worker], whose)),
            partition=np.concatenate((partition, which)),
        ),
        "kernels": _columns(start=starts, end=ends - 200, name=stage, span=stage, stream=whose, worker=whose,
                           partition=which),
        "waits": _columns(start=begins, end=begins + 7_000, kind="lock", on="gpu0.lock", worker=names[worker],
                         holder=names[(worker + 1) % workers], partition=partition),
        "locks": _columns(lock="gpu0.lock", requested=begins, acquired=begins + 7_000,
                         released=begins + 7_000 + call // workers, worker=names[worker], partition=partition),
    }  # fmt: skip
    vram = np.arange(0, len(begins), max(len(begins) // 4_000, 1))
    tables["vram"] = _memory(begins[vram], names[worker[vram]], call)
    info = RunInfo("live", f"{spans:,} spans", devices=({"index": 0, "name": "made", "vram_limit_bytes": 16 * GiB},))
    return write_run(
        place, info, Columns({name: table(name, rows, **columns) for name, (rows, columns) in tables.items()})
    )


def _columns(**columns: object) -> tuple[int, dict[str, object]]:
    rows = max(len(values) for values in columns.values() if isinstance(values, np.ndarray))
    return rows, {name: _column(values) for name, values in columns.items()}


def _column(values: object) -> object:
    return pa.array(values, pa.string()) if isinstance(values, np.ndarray) and values.dtype == object else values


def _memory(begins: np.ndarray, worker: np.ndarray, call: int) -> tuple[int, dict[str, object]]:
    time = np.concatenate((begins, begins + call - 1))
    change = np.repeat([GiB, -GiB], len(begins))
    order = np.argsort(time, kind="stable")
    op = np.where(change > 0, "alloc", "free").astype(object)[order]
    return len(time), {
        "time": time[order], "op": _column(op), "buffer": "d_bc", "bytes": GiB, "device": 0,
        "live": np.cumsum(change[order]), "limit": 16 * GiB, "worker": _column(np.tile(worker, 2)[order]),
        "partition": _column(np.tile(np.arange(len(begins)).astype(str).astype(object), 2)[order]),
    }  # fmt: skip
