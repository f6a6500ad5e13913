"""A run out of what a program that crashed had written down."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cuzklab.errors import BadInput
from cuzklab.trace.recorder import Recorder
from cuzklab.trace.recorders.log import BEGIN, END, HOLDER, OP_BITS, OWNER, STREAMS, Columns
from cuzklab.trace.recorders.pairing import OP_MASK
from cuzklab.trace.recorders.spill import HEADER_FILE, NAMES_FILE, read_batches, read_names
from cuzklab.trace.recorders.tables import VRAM_OPS, Assembled, assemble
from cuzklab.trace.store import Run, RunInfo, write_run

_FROM_EVENTS = ("spans", "locks", "waits", "vram")


def recover(folder: Path | str, place: Path | str) -> Run:
    """Make a run of the folder that a recording was spilled to.

    All batches that were complete are in it. Rows that recorders add whole (counters, kernels, transfers) were not on
    disk; the run says that they are lost.

    Parameters
    ----------
    folder : path
        What `Recording` was given as `spill`; it is left as it is.
    place : path
        Directory of the run to make.

    Raises
    ------
    BadInput
        It is no such folder, or it is damaged.
    """
    folder, place = Path(folder), Path(place)
    try:
        header = json.loads((folder / HEADER_FILE).read_text(encoding="utf-8"))
        process = int(header["process"])
        values = read_names(folder)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{folder}: not the folder of a recording ({type(error).__name__}: {error})") from None
    streams = {name: _Stored(folder, name, values) for name in STREAMS}
    end = max((int(chunk["time"].max()) for chunk in streams["events"].times()), default=0)
    found = _Recovered(assemble(streams, values, end, process))
    notes = (f"Recovered from {folder.name}: the program ended before its recording did.",)
    info = RunInfo(origin="live", title=f"recovered {folder.name}", outcome="fault", notes=notes,
                   explanation="the program ended before its recording did")  # fmt: skip
    return write_run(place, info, found, lost=("transfers", "kernels", "counters"))


@dataclass
class _Stored:
    """One stream on disk; every number that it mentions has a name."""

    folder: Path
    name: str
    values: dict[str, list[Any]]

    def chunks(self) -> Iterator[Columns]:
        for chunk in read_batches(self.folder / f"{self.name}.arrows"):
            if set(chunk) != set(STREAMS[self.name]):
                raise BadInput(f"{self.folder / self.name}.arrows: columns {', '.join(chunk)}")
            self._check(chunk)
            yield chunk

    def times(self) -> Iterator[Columns]:
        """The events whose time is one, less those that say who held a lock."""
        for chunk in self.chunks():
            some = (chunk["code"] & OP_MASK) != HOLDER
            if some.any():
                yield {name: column[some] for name, column in chunk.items()}

    def _check(self, chunk: Columns) -> None:
        used = {"threads": chunk["thread"]}
        if self.name == "vram":
            used |= {"buffers": chunk["buffer"], "owners": chunk["owner"], "stacks": chunk["stack"]}
            if len(chunk["op"]) and not 0 <= chunk["op"].min() <= chunk["op"].max() < len(VRAM_OPS):
                raise BadInput(f"{self.folder}: vram.arrows has operations that there are not")
        else:
            op, number = chunk["code"] & OP_MASK, chunk["code"] >> OP_BITS
            used["spans"] = number[(op >= BEGIN) & (op <= END)]
            used["owners"] = number[op == OWNER]
            used["locks"] = number[(op > END) & (op != OWNER)]
            used["threads"] = np.concatenate([chunk["thread"], chunk["time"][op == HOLDER]])
        for table, numbers in used.items():
            if len(numbers) and not -1 <= numbers.min() <= numbers.max() < len(self.values[table]):
                raise BadInput(f"{self.folder / NAMES_FILE}: lacks {table} that {self.name}.arrows mentions")


class _Recovered(Recorder):
    """Assembled tables as `write_run` takes them."""

    def __init__(self, assembled: Assembled) -> None:
        super().__init__(lambda: 0)
        self._assembled = assembled

    @property
    def notes(self) -> tuple[str, ...]:
        count = self._assembled.open_spans
        return (f"recording: {count} spans had not ended",) if count else ()

    def batches(self, name: str) -> Iterator[pa.Table]:
        return self._assembled.slices(name) if name in _FROM_EVENTS else iter(())
