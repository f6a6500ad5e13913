"""Queues: for each resource how work arrives, how long it waits, how long it is served.

Resources are the locks, the workers of each device (a call is served; its partition waited since its synthesis ended)
and the devices themselves (a launch waits until its kernel starts). Little's law ties the columns together: the mean
number in the queue is the arrival rate times the mean wait, over the same window, exactly.
"""

import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.frames import cpu_work, table, window
from cuzklab.analysis.intervals import total, union
from cuzklab.trace import Run

_ROWS = {"resource": "str", "arrived_ns": "int64", "started_ns": "int64", "ended_ns": "int64"}
SYNTHESIS = "synthesis"


def customers(run: Run) -> pd.DataFrame:
    """Everything that was served by something.

    Returns
    -------
    DataFrame
        `resource`, `arrived_ns`, `started_ns` (of the service), `ended_ns`.
    """
    used = locks.uses(run)
    used = used[~used["given_up"]]
    parts = [
        pd.DataFrame({"resource": "lock " + used["lock"], "arrived_ns": used["requested_ns"],
                      "started_ns": used["acquired_ns"], "ended_ns": used["released_ns"]}),
    ]  # fmt: skip
    synthesised = cpu_work(run)
    synthesised = synthesised[synthesised["stage"] == SYNTHESIS].groupby("partition")["end_ns"].max()
    served = calls(run).join(synthesised.rename("ready_ns"), on="partition")
    served = served[served["ready_ns"].notna() & (served["ready_ns"] <= served["start_ns"])]
    if len(served):
        parts.append(
            pd.DataFrame({"resource": "GPU workers", "arrived_ns": served["ready_ns"].astype("int64"),
                          "started_ns": served["start_ns"], "ended_ns": served["end_ns"]})
        )  # fmt: skip
    kernels = run.table("kernels")
    kernels = kernels[kernels["launch"].notna()]
    if len(kernels):
        parts.append(
            pd.DataFrame({"resource": "GPU " + kernels["device"].astype(str), "started_ns": kernels["start"],
                          "arrived_ns": kernels["launch"].astype("int64"), "ended_ns": kernels["end"]})
        )  # fmt: skip
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True)[list(_ROWS)] if filled else table((), _ROWS)


def queueing(run: Run) -> pd.DataFrame:
    """Arrivals, waits and services of each resource, over the whole run.

    Returns
    -------
    DataFrame
        `resource`, `arrivals`, `per_second`, `waited` (arrivals that did wait), `wait_mean_ns`, `wait_p90_ns`,
        `wait_max_ns`, `service_mean_ns`, `busy_share` (some service under way), `mean_queue` (number waiting, on
        average over the run), `mean_in_service`; the longest queue first.
    """
    start, end = window(run)
    whole = max(end - start, 1)
    rows = []
    for resource, part in customers(run).groupby("resource"):
        wait, service = part["started_ns"] - part["arrived_ns"], part["ended_ns"] - part["started_ns"]
        busy = total(union(part["started_ns"], part["ended_ns"]))
        rows.append(
            (resource, len(part), len(part) / (whole * 1e-9), int((wait > 0).sum()), wait.mean(), wait.quantile(0.9),
             wait.max(), service.mean(), busy / whole, wait.sum() / whole, service.sum() / whole)
        )  # fmt: skip
    columns = {
        "resource": "str", "arrivals": "int64", "per_second": "float64", "waited": "int64", "wait_mean_ns": "float64",
        "wait_p90_ns": "float64", "wait_max_ns": "int64", "service_mean_ns": "float64", "busy_share": "float64",
        "mean_queue": "float64", "mean_in_service": "float64",
    }  # fmt: skip
    found = table(rows, columns)
    return found.sort_values(["mean_queue", "resource"], ascending=[False, True], ignore_index=True)
