"""Programs that are being written: what they raise is told with its line, and one that never ends is ended."""

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cuzklab.errors import BadInput
from cuzklab.policies import UnknownPolicy

PATIENCE_S = 5.0


@contextmanager
def within(seconds: float, name: str) -> Iterator[None]:
    """End a program that never yields, as one may be while it is being written; at the line where it is.

    Only the main thread can be interrupted so; elsewhere it does nothing.

    Raises
    ------
    BadInput
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename != f"cell {name}":
            frame = frame.f_back
        where = f"cell {name}:{frame.f_lineno}: " if frame else ""
        raise BadInput(f"{where}{name} has not come to an end within {seconds:g} s; does a loop never end?")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def faults_at_lines(name: str) -> Iterator[None]:
    """Have what a policy written in a notebook raises told with its line; anything else is not the author's.

    Raises
    ------
    BadInput
    """
    try:
        yield
    except (BadInput, UnknownPolicy):
        raise
    except Exception as error:
        raised: BaseException | None = error
        while raised is not None:
            frames = traceback.extract_tb(raised.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == f"cell {name}"]
            if lines:
                raise BadInput(f"cell {name}:{lines[-1]}: {type(raised).__name__}: {raised}") from error
            raised = raised.__cause__
        raise


@contextmanager
def as_written(name: str, source: str, seconds: float = PATIENCE_S) -> Iterator[None]:
    """Both of these around work on a policy, where it has a source; a shipped one is trusted."""
    if not source:
        yield
        return
    with faults_at_lines(name), within(seconds, name):
        yield
