"""What a partition costs the device and what it waits for: one row a run, for runs side by side.

Three times that are called "GPU time" are kept apart: `device_ms`, in which its copy or one of its stages is under way;
`gpu_total_ms`, from the first allocation to the end of the last stage, the wait for prep_msm included, which is what
the modelled engine logs under that name; and `kernels_ms`.
"""

import numpy as np
import pandas as pd

from cuzklab.analysis import overlap
from cuzklab.analysis.intervals import total, union
from cuzklab.trace import Run

_MS = 1e-6
STAGES = ("ntt_h", "h_msm", "batch_add", "tail_msm")
_COLUMNS = (
    "copy_ms", *(f"{stage}_ms" for stage in STAGES), "h_ms", "device_ms", "gpu_total_ms", "kernels_ms",
    "barrier_wait_ms", "prep_msm_ms", "b_g2_msm_ms", "synthesis_ms", "pin_ms", "unpin_ms",
)  # fmt: skip


def of_partitions(run: Run) -> pd.DataFrame:
    """Times of each partition that has stages on a device.

    Returns
    -------
    DataFrame
        One row a partition: `partition`; `copy_ms` (a, b and c over the link); the stages, their parts added;
        `h_ms` (copy, ntt_h and h_msm without what they overlap); `device_ms`, `gpu_total_ms`, `kernels_ms` as above;
        `barrier_wait_ms`; and of CPU stages `prep_msm_ms`, `b_g2_msm_ms`, `synthesis_ms`, `pin_ms`, `unpin_ms`.
    """
    spans, copies, kernels, waits = (run.table(name) for name in ("spans", "transfers", "kernels", "waits"))
    on_device = spans[spans["category"] == "gpu"].assign(stage=lambda rows: rows["name"].str.partition(".")[0])
    rows = []
    for partition, stages in on_device.groupby("partition", sort=True):
        own = spans[spans["partition"] == partition]
        copy = _uploads(copies[copies["partition"] == partition], stages)
        head = stages[stages["stage"].isin(("ntt_h", "h_msm"))]
        allocated = own[own["name"] == "alloc"]["start"]
        first = min(int(allocated.min()) if len(allocated) else int(stages["start"].min()), int(stages["start"].min()))
        barrier = waits[(waits["partition"] == partition) & (waits["kind"] == "barrier")]
        row = {"partition": partition, "copy_ms": total(union(copy["start"], copy["end"])) * _MS}
        row |= {f"{stage}_ms": _sum(stages[stages["stage"] == stage]) for stage in STAGES}
        row |= {
            "h_ms": _union(copy, head),
            "device_ms": _union(copy, stages),
            "gpu_total_ms": (int(stages["end"].max()) - first) * _MS,
            "kernels_ms": _union(kernels[kernels["partition"] == partition]),
            "barrier_wait_ms": _sum(barrier),
        }
        for name in ("prep_msm", "b_g2_msm", "synthesis", "pin", "unpin"):
            row[f"{name}_ms"] = _sum(own[own["name"] == name])
        rows.append(row)
    return pd.DataFrame(rows, columns=["partition", *_COLUMNS])


def of_run(run: Run) -> dict[str, float]:
    """Medians over a run's partitions, and means of what few partitions decide.

    Returns
    -------
    dict
        The columns of `of_partitions`; `lock_wait_ms` and `lock_held_ms`, means over uses of locks of a device;
        `b_g2_msm_hidden`, the share of its time in which some kernel runs; `peak_vram_share` of the limit.
    """
    times = of_partitions(run)
    row = {name: float(times[name].median()) for name in _COLUMNS} if len(times) else {}
    uses = run.table("locks")
    uses = uses[uses["lock"].str.startswith("gpu") & uses["acquired"].notna() & uses["released"].notna()]
    if len(uses):
        row["lock_wait_ms"] = float((uses["acquired"] - uses["requested"]).mean()) * _MS
        row["lock_held_ms"] = float((uses["released"] - uses["acquired"]).mean()) * _MS
    hidden = overlap.hidden(run, ("b_g2_msm",))
    if len(hidden):
        row["b_g2_msm_hidden"] = float(hidden["hidden_fraction"].iloc[0])
    vram = run.table("vram")
    if len(vram) and run.info.devices:
        row["peak_vram_share"] = float(vram["live"].max()) / float(run.info.devices[0]["vram_limit_bytes"])
    return row


def _uploads(copies: pd.DataFrame, stages: pd.DataFrame) -> pd.DataFrame:
    """Copies of a, b and c: those that no stage issued, since stages stream their points on their own."""
    issued = copies["issue"].to_numpy()
    inside = np.zeros(len(copies), bool)
    for start, end in zip(stages["start"], stages["end"]):
        inside |= (issued >= start) & (issued <= end)
    return copies[~inside]


def _sum(rows: pd.DataFrame) -> float:
    return float((rows["end"] - rows["start"]).sum()) * _MS


def _union(*tables: pd.DataFrame) -> float:
    rows = pd.concat([table[["start", "end"]] for table in tables])
    return total(union(rows["start"], rows["end"])) * _MS
