"""Logs of proving engines: lines that say when, and lines that say only how long.

`vocabulary` turns a line into an entry, or says that it was torn. `clock` puts the entries that carry a time in order,
across restarts of the engine. `calls` holds what is known of each synthesis and each GPU call; `correlate` finds the
call of a line that names none. `tables` makes a trace of them, `read` a run, which says what could not be placed.
"""

from cuzklab.ingest.engine_log.read import read, recognises

__all__ = ["read", "recognises"]
