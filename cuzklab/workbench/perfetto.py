"""A stretch of a run for Perfetto: the rows that reach into it, written as every run is."""

from pathlib import Path

import pandas as pd

from cuzklab.trace import TABLES, Run
from cuzklab.trace.perfetto import export_perfetto

_FIRST, _LAST = ("start", "requested", "time"), ("end", "released", "acquired", "time")


def write_stretch(run: Run, start_ns: int, end_ns: int, target: Path) -> int:
    """Write the rows of a run that reach into a stretch of time, whole.

    Parameters
    ----------
    run : Run
    start_ns, end_ns : int
        Moments of the trace's clock.
    target : Path
        Appears whole or not at all; packed where it ends in ``.gz``.

    Returns
    -------
    int
        Number of events written.
    """
    rows = {name: _inside(run.table(name), start_ns, end_ns) for name in TABLES}
    return export_perfetto(Run(run.path, run.info, rows), target)


def _inside(rows: pd.DataFrame, start_ns: int, end_ns: int) -> pd.DataFrame:
    first = next(name for name in _FIRST if name in rows)
    # What was not released, or not got, reaches to the end of the recording.
    last = next(name for name in _LAST if name in rows)
    ended = rows[last].fillna(end_ns) if rows[last].hasnans else rows[last]
    return rows[(ended >= start_ns) & (rows[first] <= end_ns)].reset_index(drop=True)
