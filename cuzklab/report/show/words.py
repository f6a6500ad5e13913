"""Words of a report: how a run is sure, how it ended, what a condition is called."""

from cuzklab.report.naming import kind_name
from cuzklab.units import Metric

SURE_BY_ORIGIN = {
    "live": "measured", "imported": "measured", "simulated": "simulated", "counterexample": "proved", "check": "proved",
}  # fmt: skip
OUTCOMES = {
    "ok": "complete", "device_oom": "out of device memory", "host_oom": "out of host memory", "deadlock": "deadlock",
    "fault": "fault",
}  # fmt: skip
CONDITIONS = {
    "c": "proofs", "j": "proofs in flight", "pw": "synthesis workers", "gw": "GPU workers",
    "gt": "threads of the G2 MSM", "workers": "GPU workers",
}  # fmt: skip


def metric_name(metric: Metric) -> str:
    """What a figure is of."""
    return metric.label or kind_name(metric.kind)
