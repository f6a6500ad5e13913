"""Trace events in JSON: the format of Chrome's and Perfetto's windows, which PyTorch, viztracer and others write.

`events` reads them one at a time within bounds. `generic` makes a trace of anybody's; `ours` gives back a run that
`cuzklab runs export` wrote. `read` tells the two apart.
"""

from cuzklab.ingest.chrome.read import read, recognises

__all__ = ["read", "recognises"]
