"""What is recorded, whoever ran it: one schema for live runs, simulations, counterexamples and imported captures.

`schema` holds a row class a table; `recorder` collects rows, `columns` holds tables that were never rows; `store`
writes a run as a directory of Parquet files and a `run.json`, and reads it back. `nesting` sorts out which range
encloses which.
"""

from cuzklab.trace.columns import Columns
from cuzklab.trace.recorder import Recorder
from cuzklab.trace.schema import (
    TABLES,
    ApiCall,
    Counter,
    Kernel,
    LockUse,
    Span,
    Transfer,
    VramEvent,
    WaitInterval,
)
from cuzklab.trace.store import Run, RunInfo, load_run, write_run

__all__ = [
    "TABLES",
    "ApiCall",
    "Columns",
    "Counter",
    "Kernel",
    "LockUse",
    "Recorder",
    "Run",
    "RunInfo",
    "Span",
    "Transfer",
    "VramEvent",
    "WaitInterval",
    "load_run",
    "write_run",
]
