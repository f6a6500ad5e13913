"""How long stages take, and how much longer when others compete."""

from dataclasses import asdict, dataclass

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


FEWEST_EXECUTIONS = 6  # of a stage, to see a trend in


@dataclass(frozen=True)
class Contention:
    """How a CPU stage's duration goes with the number of CPU stages that run beside it.

    Attributes
    ----------
    stage : str
    count : int
        Executions looked at: those beside which there was a core for every stage, where the cores are known.
    fewest, most : float
        Mean number of other stages, over the third of the executions with the fewest, and with the most.
    fewest_s, most_s : float
        Median duration in each of these thirds.
    inflation : float
        The second over the first, less one.
    correlation, p_value : float
        Spearman's, of durations and numbers; one-sided.
    """

    stage: str
    count: int
    fewest: float
    most: float
    fewest_s: float
    most_s: float
    inflation: float
    correlation: float
    p_value: float

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def contention_of(run: Run) -> list[Contention]:
    """For each CPU stage that ran often enough, whether competition for what they share stretches it.

    On a real machine, executions beside more stages than it has cores are left out: those wait for a core.
    """
    from scipy.stats import spearmanr

    work = cpu_work(run)
    beside = np.maximum(mean_depth(work["start_ns"], work["end_ns"]) - 1, 0)
    cores = int(run.info.machine.get("cores") or 0) if run.info.origin != "simulated" else 0
    work = work.assign(beside=beside, duration_s=(work["end_ns"] - work["start_ns"]) * 1e-9)
    work = work[work["beside"] + 1 <= cores] if cores else work
    found = []
    for stage, rows in work.groupby("stage"):
        if len(rows) < FEWEST_EXECUTIONS or rows["beside"].nunique() < 2 or rows["duration_s"].nunique() < 2:
            continue
        ordered = rows.sort_values("beside", kind="stable")
        third = max(len(ordered) // 3, 1)
        few, many = ordered.head(third), ordered.tail(third)
        test = spearmanr(rows["beside"], rows["duration_s"], alternative="greater")
        fewest_s, most_s = float(few["duration_s"].median()), float(many["duration_s"].median())
        found.append(
            Contention(
                str(stage), len(rows), float(few["beside"].mean()), float(many["beside"].mean()), fewest_s, most_s,
                most_s / fewest_s - 1, float(test.statistic), float(test.pvalue),
            )
        )  # fmt: skip
    return found


def _all_work(run: Run) -> pd.DataFrame:
    frames = [cpu_work(run).assign(processor="cpu"), device_work(run).assign(processor="gpu")]
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
