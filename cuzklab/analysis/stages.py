"""How long stages take, and how much longer when others compete."""

import numpy as np
import pandas as pd

from cuzklab.analysis.frames import cpu_work, device_work
from cuzklab.analysis.intervals import mean_depth
from cuzklab.trace import Run


def stage_times(run: Run) -> pd.DataFrame:
    """Durations by stage.

    Returns
    -------
    DataFrame
        `stage`, `processor` (cpu, gpu), `count`, `median_ns`, `p90_ns`, `max_ns` (float64), `total_ns` (int64);
        the largest total first.
    """
    work = _all_work(run)
    durations = (work["end_ns"] - work["start_ns"]).groupby([work["stage"], work["processor"]])
    table = pd.DataFrame(
        {
            "count": durations.size(),
            "median_ns": durations.median(),
            "p90_ns": durations.quantile(0.9),
            "max_ns": durations.max(),
            "total_ns": durations.sum(),
        }
    ).reset_index()
    return table.sort_values(["total_ns", "stage"], ascending=[False, True], ignore_index=True)


def stage_durations_ns(run: Run) -> dict[str, np.ndarray]:
    """Every duration of each stage, int64 nanoseconds, in the order of their starts."""
    work = _all_work(run).sort_values("start_ns", kind="stable")
    return {str(stage): (rows["end_ns"] - rows["start_ns"]).to_numpy(np.int64) for stage, rows in work.groupby("stage")}


def inflation(run: Run) -> pd.DataFrame:
    """Durations of CPU stages by how many CPU stages ran at the same time.

    Returns
    -------
    DataFrame
        `stage`, `competing` (mean number of other CPU stages during the execution, rounded), `count`, `median_ns`,
        `inflation` (median divided by that of the same stage at the least competition seen).
    """
    work = cpu_work(run)
    competing = np.rint(np.maximum(mean_depth(work["start_ns"], work["end_ns"]) - 1, 0)).astype(np.int64)
    durations = (work["end_ns"] - work["start_ns"]).groupby([work["stage"], pd.Series(competing, work.index)])
    table = pd.DataFrame({"count": durations.size(), "median_ns": durations.median()})
    table = table.rename_axis(["stage", "competing"]).reset_index()
    alone = table.groupby("stage")["median_ns"].transform("first")
    return table.assign(inflation=table["median_ns"] / alone)


def _all_work(run: Run) -> pd.DataFrame:
    frames = [cpu_work(run).assign(processor="cpu"), device_work(run).assign(processor="gpu")]
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
