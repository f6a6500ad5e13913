"""Recorders for anybody's program: spans, locks, device memory, counters and sampled stacks, written as one run.

`recording` turns them on and off and stores what they saw; `spans`, `locks`, `permits`, `vram`, `counters` and
`profile` are what a program uses. Beneath them `log` gathers events as integers, `names` holds what these stand for,
`pairing` and `tables` make the trace's tables of them, and `spill` streams them to disk. README.md has examples.
"""

from cuzklab.trace.recorders.locks import Lock, LockEvents, RLock
from cuzklab.trace.recorders.permits import BoundedSemaphore, Condition, Semaphore
from cuzklab.trace.recorders.recording import Recording, record
from cuzklab.trace.recorders.recover import recover
from cuzklab.trace.recorders.spans import owner, span, span_with_payload
from cuzklab.trace.recorders.vram import VramTracer, traced_free, traced_malloc

__all__ = [
    "BoundedSemaphore",
    "Condition",
    "Lock",
    "LockEvents",
    "RLock",
    "Recording",
    "Semaphore",
    "VramTracer",
    "owner",
    "record",
    "recover",
    "span",
    "span_with_payload",
    "traced_free",
    "traced_malloc",
]
