"""Memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`): a pickle, which is read without running any of it.

`plain` unpickles numbers, texts, lists, tuples and dictionaries, and refuses everything else. `read` makes a trace of
what a snapshot holds: the allocator's events, and its segments with their blocks.
"""

from cuzklab.ingest.memory_snapshot.read import read, recognises

__all__ = ["read", "recognises"]
