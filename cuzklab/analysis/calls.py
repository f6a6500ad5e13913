"""GPU calls: the proving of one partition by one worker, from its start to its end, waits included."""

import numpy as np
import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.frames import cpu_work, device_work, per_run, root, table
from cuzklab.trace import Run

FAILED_CALL = "failed_partition"  # the name of a call's span whose partition was not proved
CALL_COLUMNS = {
    "worker": "str", "partition": "str", "start_ns": "int64", "end_ns": "int64", "duration_ns": "int64",
    "lock_wait_ns": "int64", "kernel_ns": "int64", "proved": "bool",
}  # fmt: skip


@per_run
def calls(run: Run) -> pd.DataFrame:
    """The GPU calls of a run, in order of their ends.

    Taken from spans of the category ``call``. Where a trace has none, a call reaches from the first to the last row
    that a worker which uses a lock or the device for a partition has for it.

    Returns
    -------
    DataFrame
        `worker`, `partition`, `start_ns`, `end_ns`, `duration_ns`, `lock_wait_ns` (sum over its requests),
        `kernel_ns` (sum over its kernels), `proved` (False where the call is known to have failed).
    """
    spans = run.table("spans")
    spans = spans[(spans["category"] == "call") & (spans["partition"] != "")]
    uses, work = locks.uses(run), device_work(run)
    if len(spans):
        found = pd.DataFrame(
            {
                "worker": root(spans["worker"]),
                "partition": spans["partition"],
                "start_ns": spans["start"],
                "end_ns": spans["end"],
                "proved": spans["name"] != FAILED_CALL,
            }
        )
    else:
        found = _envelopes(run, uses, work)
    if not len(found):
        return table((), CALL_COLUMNS)
    keys = ["worker", "partition"]
    waits = uses.groupby(keys)["wait_ns"].sum().rename("lock_wait_ns")
    kernels = (work["end_ns"] - work["start_ns"]).groupby([work[key] for key in keys]).sum().rename("kernel_ns")
    found = found.join(waits, on=keys).join(kernels, on=keys).fillna({"lock_wait_ns": 0, "kernel_ns": 0})
    found = found.assign(duration_ns=found["end_ns"] - found["start_ns"])
    return found.sort_values(["end_ns", "worker"], ignore_index=True)[list(CALL_COLUMNS)].astype(CALL_COLUMNS)


def _envelopes(run: Run, uses: pd.DataFrame, work: pd.DataFrame) -> pd.DataFrame:
    ends = {"requested_ns": "start_ns", "released_ns": "end_ns"}
    frames = [frame for frame in (uses.rename(columns=ends), work, cpu_work(run)) if len(frame)]
    if not frames:
        return table((), {})
    rows = pd.concat([frame[["worker", "partition", "start_ns", "end_ns"]] for frame in frames])
    rows = rows[rows["partition"] != ""]
    on_device = pd.concat([frame[["worker", "partition"]] for frame in (uses, work)]).drop_duplicates()
    rows = rows.merge(on_device, on=["worker", "partition"])
    found = rows.groupby(["worker", "partition"], as_index=False)
    return found.agg(start_ns=("start_ns", "min"), end_ns=("end_ns", "max")).assign(proved=True)


def completion_intervals_ns(run: Run) -> np.ndarray:
    """Times between successive proved partitions, int64 nanoseconds, one fewer than those."""
    found = calls(run)
    return np.diff(found.loc[found["proved"], "end_ns"].to_numpy())
