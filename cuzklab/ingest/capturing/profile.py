"""A command under Nsight Systems, with the options that the importer needs, and what it left as an export.

Reports hold the environment of processes and what they printed. So everything that the profiler writes lies in a folder
that only its owner can read, and is gone with it; what is kept is the run, into which the importer reads neither.
"""

import os
import select
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuzklab.errors import BadInput
from cuzklab.ingest.capturing import tools

OPTIONS = ("-s", "none", "--cpuctxsw=none", "--cuda-memory-usage=true", "--cuda-graph-trace=node",
           "--force-overwrite=true")  # fmt: skip
TRACES = "cuda,nvtx,osrt"
_KEPT_BYTES = 1 << 16
_PIECE_BYTES = 1 << 14


@dataclass(frozen=True)
class Captured:
    """What a capture left: the export, the report, and how the command ended."""

    export: Path
    report: Path
    status: int


def capture(
    command: Sequence[str], folder: Path, output: Callable[[bytes], None], nsys: str = "", traces: str = TRACES
) -> Captured:  # fmt: skip
    """Run a command under nsys and export what it captured.

    Parameters
    ----------
    command : sequence of str
    folder : Path
        An empty folder of the caller's, for everything that the profiler writes.
    output : callable (bytes)
        Is handed what the command and the profiler print.
    nsys : str
        The profiler; by default the one on the PATH or in the usual places.
    traces : str
        What is traced, in nsys's words.

    Raises
    ------
    BadInput
        No profiler, no permission, no importer, or a library that it lacks: which of them, and what to do.
    """
    found = tools.find(nsys)
    base = folder / "capture"
    said, status = _run([str(found.nsys), "profile", "-t", traces, *OPTIONS, "-o", str(base), *command], folder, output)
    report = base.with_suffix(".nsys-rep")
    stream = next((place for place in (base.with_suffix(".qdstrm"),) if place.exists()), None)
    if not report.exists() and stream is not None:
        tools.convert(found, stream, report)
    if not report.exists():
        forbidden = tools.why_not_permitted(said)
        if forbidden:
            raise BadInput(
                f"nsys was not permitted to capture: {forbidden}; run as root, or lower kernel.perf_event_paranoid"
            )
        raise BadInput(f"nsys left no report (exit status {status}): {tools.last_line(said)}")
    export = base.with_suffix(".sqlite")
    tools.export(found, report, export)
    return Captured(export, report, status)


def _run(command: Sequence[str], folder: Path, output: Callable[[bytes], None]) -> tuple[str, int]:
    """Run a command, passing on what it prints; the end of that, and its exit status."""
    said: deque[bytes] = deque()
    kept = 0
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
    except OSError as error:
        raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
    with process:
        descriptor = process.stdout.fileno()
        try:
            while True:
                ready, _, _ = select.select([descriptor], [], [], 0.2)
                piece = os.read(descriptor, _PIECE_BYTES) if ready else b""
                if piece:
                    output(piece)
                    said.append(piece)
                    kept += len(piece)
                    while kept > _KEPT_BYTES and len(said) > 1:
                        kept -= len(said.popleft())
                elif ready or process.poll() is not None:  # what it left running may hold the pipe open
                    break
            process.wait()
        except BaseException:
            process.terminate()
            raise
    return b"".join(said).decode("utf-8", "replace"), process.returncode
