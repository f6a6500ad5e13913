"""Exports of Nsight Systems, whatever version wrote them: schema found, not assumed.

`export` is what the rest reads from: tables by name or versioned name, columns by name, absent ones as null; `sqlite`
and `parquet` are its two kinds. `capture` tells what was captured, with which options, and what was lost; `names`
turns numbers into texts; `threads` tells who is who. One module a kind of event: `device` (kernels, copies), `calls`
(CUDA API and libc), `ranges` (NVTX), `locks` (ranges that mean locks), `memory`. `read` puts a run together.
"""

from cuzklab.ingest.nsys.read import read, recognises

__all__ = ["read", "recognises"]
