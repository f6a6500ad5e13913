"""What ran at the same time as what: stages of one worker against stages of the others."""

import numpy as np
import pandas as pd

from cuzklab.analysis.frames import as_set, cpu_work, device_work, table
from cuzklab.analysis.intervals import Intervals, covered, difference, intersection, merge, total
from cuzklab.trace import Run

_HIDDEN_NS = ("behind_others_ns", "behind_own_ns", "behind_unknown_ns", "exposed_ns")


def stage_overlap(run: Run) -> pd.DataFrame:
    """Stage × stage: for how long a stage of one worker ran while another worker ran a stage.

    Returns
    -------
    DataFrame
        One row a pair that overlaps: `stage`, `other_stage`, `time_ns` (sum over workers of the time in which the
        worker runs `stage` and some other worker runs `other_stage`), `fraction` (of the time of `stage`).
    """
    work = pd.concat([frame for frame in (cpu_work(run), device_work(run)) if len(frame)] or [cpu_work(run)])
    sets = {key: as_set(rows) for key, rows in work.groupby(["stage", "worker"])}
    stages = sorted({stage for stage, _ in sets})
    workers = sorted({worker for _, worker in sets})
    others: dict[tuple[str, str], Intervals] = {
        (stage, worker): merge(*(sets[stage, peer] for peer in workers if peer != worker and (stage, peer) in sets))
        for stage in stages
        for worker in workers
    }
    rows = []
    for stage in stages:
        own = {worker: sets[stage, worker] for worker in workers if (stage, worker) in sets}
        whole = sum(total(times) for times in own.values())
        for other in stages:
            time = sum(total(intersection(times, others[other, worker])) for worker, times in own.items())
            if time:
                rows.append((stage, other, time, time / whole))
    return table(rows, {"stage": "str", "other_stage": "str", "time_ns": "int64", "fraction": "float64"})


def hidden_calls(run: Run, stage: str) -> pd.DataFrame:
    """For each execution of a CPU stage, how much of it ran while a device computed.

    Returns
    -------
    DataFrame
        `worker`, `partition`, `start_ns`, `end_ns`, `behind_others_ns` (another worker's kernels ran),
        `behind_own_ns` (only the same worker's did), `behind_unknown_ns` (only kernels whose worker is not known),
        `exposed_ns` (no kernel ran). The four add up to the duration.
    """
    calls = cpu_work(run)
    calls = calls[calls["stage"] == stage][["worker", "partition", "start_ns", "end_ns"]].reset_index(drop=True)
    work = device_work(run)
    columns = {name: np.zeros(len(calls), dtype=np.int64) for name in _HIDDEN_NS}
    known = work[work["worker"] != ""]
    unknown = as_set(work[work["worker"] == ""])
    for worker in calls["worker"].unique():
        mine = (calls["worker"] == worker).to_numpy()
        starts, ends = calls.loc[mine, "start_ns"], calls.loc[mine, "end_ns"]
        others = as_set(known[known["worker"] != worker])
        own = difference(as_set(known[known["worker"] == worker]), others)
        rest = difference(unknown, merge(others, own))
        parts = [covered(starts, ends, times) for times in (others, own, rest)]
        for name, part in zip(_HIDDEN_NS, [*parts, ends.to_numpy() - starts.to_numpy() - sum(parts)], strict=True):
            columns[name][mine] = part
    return calls.assign(**columns)


def hidden(run: Run, stages: tuple[str, ...] = ("prep_msm", "b_g2_msm")) -> pd.DataFrame:
    """For each of some CPU stages, how much of its time is hidden behind kernels.

    Returns
    -------
    DataFrame
        One row a stage that ran: `stage`, `count`, `total_ns`, the four columns of `hidden_calls` summed, and
        `behind_others_fraction`, `hidden_fraction` (behind any kernel), `exposed_fraction`.
    """
    rows = []
    for stage in stages:
        calls = hidden_calls(run, stage)
        if not len(calls):
            continue
        sums = {name: int(calls[name].sum()) for name in _HIDDEN_NS}
        whole = sum(sums.values())
        shares = [part / whole if whole else 0.0 for part in
                  (sums["behind_others_ns"], whole - sums["exposed_ns"], sums["exposed_ns"])]  # fmt: skip
        rows.append((stage, len(calls), whole, *sums.values(), *shares))
    fractions = ("behind_others_fraction", "hidden_fraction", "exposed_fraction")
    times = ("count", "total_ns", *_HIDDEN_NS)
    return table(rows, {"stage": "str"} | dict.fromkeys(times, "int64") | dict.fromkeys(fractions, "float64"))
