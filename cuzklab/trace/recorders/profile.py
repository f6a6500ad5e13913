"""Sampled stacks of CPU stages, by pyinstrument: where the time of a stage goes within it.

One profile gathers the stages of all threads; each is sampled on its own thread, and stages of one name are put
together. What comes of it is kept with the run and shown in its report.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuzklab.trace.recorders.recording import DEFAULT, Recording

PROFILE_FILE = "profile.json"
INTERVAL_S = 0.001


class StackProfile:
    """The sampled stages of a recording, by name; made after the recording began.

    Parameters
    ----------
    interval_s : float
        Time between samples. At a millisecond a Python program that does nothing but call functions runs a few
        percent slower; native code between samples is not slowed.
    recording : Recording
        With which it is stored.

    Examples
    --------
    >>> profile = StackProfile()
    >>> with profile.of("synthesis"):
    ...     pass
    """

    def __init__(self, interval_s: float = INTERVAL_S, *, recording: Recording = DEFAULT) -> None:
        self._interval_s = interval_s
        self._sessions: dict[str, Any] = {}
        self._mutex = threading.Lock()
        recording.profile = self
        recording.at_end(lambda: self._attach(recording))

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Sample what the calling thread does inside. Inside another stage that is sampled, nothing more is done."""
        from pyinstrument import Profiler

        if getattr(_SAMPLED, "now", False):
            yield
            return
        profiler = Profiler(interval=self._interval_s, async_mode="disabled")
        _SAMPLED.now = True
        profiler.start()
        try:
            yield
        finally:
            session = _below(profiler.stop())
            _SAMPLED.now = False
            with self._mutex:
                before = self._sessions.get(stage)
                self._sessions[stage] = session if before is None else session.combine(before, session)

    @property
    def sessions(self) -> dict[str, Any]:
        """pyinstrument's session of each stage."""
        with self._mutex:
            return dict(self._sessions)

    def _attach(self, recording: Recording) -> None:
        if self._sessions:
            recording.attachments[PROFILE_FILE] = json.dumps(
                {stage: _without_places(session.to_json()) for stage, session in self.sessions.items()}
            )


_SAMPLED = threading.local()
_NOWHERE = "(stage)\x00\x000"


def _below(session: Any) -> Any:
    """A session whose stacks begin where the stage does, so that those of several threads are alike."""
    start = [_function(frame) for frame in session.start_call_stack]

    def cut(stack: list[str]) -> list[str]:
        same = 0
        while same < min(len(start), len(stack)) and start[same] == _function(stack[same]):
            same += 1
        return stack[max(0, same - 1) :]

    session.frame_records = [(cut(stack), duration) for stack, duration in session.frame_records]
    session.start_call_stack = [_NOWHERE]  # pyinstrument would cut a stem that matches
    return session


def _function(frame: str) -> str:
    """A frame without its attributes, the current line for one."""
    return frame.partition("\x01")[0]


def _without_places(session: dict[str, Any]) -> dict[str, Any]:
    """A session without what tells of the machine: paths above the packages, the command line."""
    roots = sorted((path for path in sys.path if path), key=len, reverse=True)

    def relative(frame: str) -> str:
        function, *rest = frame.split("\x00")
        if rest:
            root = next((root for root in roots if rest[0].startswith(root.rstrip("/") + "/")), None)
            rest[0] = rest[0][len(root.rstrip("/")) + 1 :] if root else rest[0].rpartition("/")[2]
        return "\x00".join((function, *rest))

    return session | {
        "sys_path": [],
        "sys_prefixes": [],
        "target_description": "",
        "start_call_stack": [relative(frame) for frame in session["start_call_stack"]],
        "frame_records": [
            ([relative(frame) for frame in stack], duration) for stack, duration in session["frame_records"]
        ],
    }
