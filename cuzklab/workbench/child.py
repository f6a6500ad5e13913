"""Child processes of the workbench: started beside the kernel, heard line by line, ended on request and with it.

Whatever may take long, crash or block runs in one, so the kernel stays responsive and nothing is swallowed: a child
that ends says with what status, and what it last wrote to its standard error.
"""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_PATIENCE_S = 5.0  # between asking a child to end and ending it
_MOST_LINE = 8 << 20
_TAIL_LINES = 40

Hear = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class End:
    """How a child ended.

    Attributes
    ----------
    status : int
        Its exit status; negative: the signal that killed it.
    stopped : bool
        It was asked to end.
    out, err : str
        Its standard output where nobody listened to it, and the last lines of its standard error.
    """

    status: int
    stopped: bool
    out: str
    err: str

    @property
    def words(self) -> str:
        """What happened, for a person."""
        if self.stopped:
            return "stopped"
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


class Child:
    """A ``python -m MODULE …`` beside the kernel.

    Parameters
    ----------
    arguments : sequence of str
        After ``python -m``.
    on_line : callable, optional
        Told each line of standard output that is a JSON object, in a thread of the child's.
    on_status : callable, optional
        The same for the pipe whose number replaces ``{status}`` in the arguments.
    on_end : callable (End), optional
        Told once, when it has ended and every line has been heard.
    on_error : callable (str), optional
        Told each line of standard error.
    folder : Path, optional
        Where it works.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        on_line: Hear | None = None,
        on_status: Hear | None = None,
        on_end: Callable[[End], None] | None = None,
        on_error: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._on_end = on_end
        self._stopped = False
        self._out: list[str] = []
        self._err: deque[str] = deque(maxlen=_TAIL_LINES)
        reading, writing = os.pipe() if on_status else (None, None)
        command = [sys.executable, "-m", *(text.replace("{status}", str(writing)) for text in arguments)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                encoding="utf-8", errors="replace", cwd=folder, pass_fds=[writing] if on_status else [],
                env={**os.environ, "PYTHONPATH": _python_path()}, start_new_session=True,
            )  # fmt: skip
        finally:
            if writing is not None:
                os.close(writing)
        keep = self._out.append if on_line is None else None
        self._threads = [
            self._listen(self._process.stdout, on_line, keep),
            self._listen(self._process.stderr, None, self._heard_error(on_error)),
        ]
        if on_status:
            self._threads.append(self._listen(os.fdopen(reading, encoding="utf-8"), on_status, None))
        self.ended = threading.Event()
        threading.Thread(target=self._wait, name="child ends", daemon=True).start()
        _CHILDREN.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def say(self, value: Any) -> None:
        """Write a line of JSON to its standard input; lost if it has ended."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()

    def stop(self) -> None:
        """Ask it to end as Ctrl-C does, and end it if it does not; returns at once."""
        if not self.running:
            return
        self._stopped = True
        self._signal(signal.SIGINT)
        timer = threading.Timer(_PATIENCE_S, lambda: self._signal(signal.SIGKILL))
        timer.daemon = True
        timer.start()

    def kill(self) -> None:
        """End it and what it has started, at once."""
        self._stopped = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _heard_error(self, on_error: Callable[[str], None] | None) -> Callable[[str], None]:
        def heard(line: str) -> None:
            self._err.append(line)
            if on_error:
                on_error(line.rstrip("\n"))

        return heard

    def _listen(self, stream: IO[str], hear: Hear | None, keep: Callable[[str], None] | None) -> threading.Thread:
        def listen() -> None:
            with stream:
                while line := stream.readline(_MOST_LINE):
                    if keep:
                        keep(line)
                    if hear and (value := _object(line)) is not None:
                        hear(value)

        thread = threading.Thread(target=listen, name="child speaks", daemon=True)
        thread.start()
        return thread

    def _wait(self) -> None:
        status = self._process.wait()
        for thread in self._threads:
            thread.join()
        end = End(status, self._stopped, "".join(self._out), "".join(self._err))
        self.ended.set()
        if self._on_end:
            self._on_end(end)


_CHILDREN: "weakref.WeakSet[Child]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """No child outlives the kernel that it belongs to."""
    for child in list(_CHILDREN):
        child.kill()


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _python_path() -> str:
    """Where a child finds this cuzklab, installed or not."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
