"""Figures of a report: one function a figure, from a run (or a table) to a plotly figure.

A figure that has nothing to show is not drawn: the function returns an `Absent` with a sentence that says why.
`axes` holds what they share: units of time, order and names of workers. `cuzklab.report.show` displays them with their
tables.
"""

from cuzklab.report.figures.axes import Absent
from cuzklab.report.figures.contention import lock_waits
from cuzklab.report.figures.critical import critical_paths
from cuzklab.report.figures.fitting import feasibility
from cuzklab.report.figures.idle import device_time
from cuzklab.report.figures.lanes import timeline
from cuzklab.report.figures.memory import device_memory
from cuzklab.report.figures.overlap import overlap_map, what_is_hidden
from cuzklab.report.figures.roofline import roofline
from cuzklab.report.figures.trend import FEWEST_OCCASIONS, trend
from cuzklab.report.figures.waits import wait_graph

__all__ = [
    "FEWEST_OCCASIONS",
    "Absent",
    "critical_paths",
    "device_memory",
    "device_time",
    "feasibility",
    "lock_waits",
    "overlap_map",
    "roofline",
    "timeline",
    "trend",
    "wait_graph",
    "what_is_hidden",
]  # fmt: skip
