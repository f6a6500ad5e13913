"""Asks a child process for the second look at a design: after the sliders have rested, never blocking them.

Answers come in parts and in a thread. What was answered once is remembered; an answer to a design that is no longer the
one asked about is dropped.
"""

import json
import threading
from collections.abc import Callable
from typing import Any

from cuzklab.workbench.child import Child, End
from cuzklab.workbench.design import Design

PARTS = ("limits", "check", "intervals")
_REST_S = 0.25
_MOST_KEPT = 200

Answer = Callable[[dict[str, Any]], None]


class Consultant:
    """The child, started with the first question, and what it has said.

    Parameters
    ----------
    on_answer : callable (dict)
        Told all parts known so far of the newest question: `of` is its number, `pending` what is yet to come.
    rest_s : float
        How long no newer question must come before one is asked.
    """

    def __init__(self, on_answer: Answer, rest_s: float = _REST_S) -> None:
        self._on_answer = on_answer
        self._rest_s = rest_s
        self._known: dict[str, dict[str, Any]] = {}
        self._lock = threading.RLock()
        self._child: Child | None = None
        self._timer: threading.Timer | None = None
        self._number = -1
        self._key = ""

    def ask(self, number: int, design: Design) -> None:
        """Have a design looked at; an earlier one is forgotten."""
        key = json.dumps(design.to_json(), sort_keys=True)
        with self._lock:
            self._number, self._key = number, key
            if self._timer:
                self._timer.cancel()
            known = self._known.get(key, {})
            if set(known) == set(PARTS):
                self._tell()
                return
            self._timer = threading.Timer(self._rest_s, self._send, (number, design))
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """End the child."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            if self._child:
                self._child.kill()

    def _send(self, number: int, design: Design) -> None:
        with self._lock:
            if number != self._number:
                return
            if self._child is None or not self._child.running:
                self._child = Child(["cuzklab.workbench.second_look"], on_line=self._hear, on_end=self._ended)
            self._child.say({"number": number, "design": design.to_json()})
            self._tell()

    def _hear(self, said: dict[str, Any]) -> None:
        with self._lock:
            if said.get("number") != self._number or said.get("part") not in PARTS:
                return
            while len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            self._known.setdefault(self._key, {})[said["part"]] = said["answer"]
            self._tell()

    def _tell(self) -> None:
        known = self._known.get(self._key, {})
        self._on_answer({"of": self._number, **known, "pending": [part for part in PARTS if part not in known]})

    def _ended(self, end: End) -> None:
        """A child that was not asked to end has failed: say so, once, instead of waiting for ever."""
        if end.stopped:
            return
        reason = (end.err.strip().splitlines() or [end.words])[-1]
        with self._lock:
            known = self._known.pop(self._key, {})
            missing = {part: {"error": f"the second look {end.words}: {reason}"} for part in PARTS if part not in known}
            self._on_answer({"of": self._number, **known, **missing, "pending": []})
