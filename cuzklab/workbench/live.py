"""The live view: a real run in a child process, as it goes on."""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from ipywidgets import VBox

from cuzklab.policies import name_of
from cuzklab.trace.metrics import KINDS
from cuzklab.trace.store import load_run, new_run_place
from cuzklab.units import METRIC_KINDS, format_value
from cuzklab.workbench import assets
from cuzklab.workbench.child import Child, End
from cuzklab.workbench.plan import LivePlan

_MOST_LOG = 30
_LEAST_INTERVAL_S = 0.1  # at most ten frames a second


class LiveView(anywidget.AnyWidget):
    """Workers, locks, device memory, queues and counters of a running engine; stops it; opens its run when it is done.

    The run is ``python -m cuzklab run`` in a child process, so the kernel stays responsive. A frame is sent only when
    the page has drawn the one before: a slow page sees fewer frames, not old ones. However a run ends, it is said:
    done, failed (with what it wrote), stopped, or killed.

    Attributes
    ----------
    state : {"idle", "running", "stopping", "done", "failed", "stopped"}
    frame : dict
        The last state sent: see `cuzklab.live.status.snapshot`.
    plan : str
        What is run, in a sentence: circuits, proofs, the device's memory.
    result : dict
        How it ended: outcome, explanation, metrics, and the path of the run.
    """

    _esm = assets.module("live")
    _css = assets.style()
    state = traitlets.Unicode("idle").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    plan = traitlets.Unicode("").tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)
    log = traitlets.List().tag(sync=True)

    def __init__(self) -> None:
        self.child: Child | None = None
        self._newest: dict[str, Any] | None = None
        self._waiting_for = 0
        self._sent = 0
        self._sent_at = float("-inf")
        self._lock = threading.RLock()
        super().__init__()
        self.opened = VBox()
        self.box = VBox([self, self.opened])
        self.on_msg(self._heard)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)

    def start(
        self, policy: str, *, place: Path | str = "runs", title: str = "", options: Sequence[str] = (), **knobs: Any
    ) -> None:
        """Start a run of a policy (a name or a file); one at a time.

        Parameters
        ----------
        policy : str
        place : Path
            Folder for the run.
        title : str
        options : sequence of str
            Further ones of `cuzklab run`.
        **knobs
            Those of `cuzklab.workbench.plan.LivePlan`: workers, proofs, partitions, vram_gib, …
        """
        plan = LivePlan(**knobs)
        with self._lock:
            if self.child and self.child.running:
                return
            self.opened.children = ()
            self.title, self.plan = title or policy, plan.words()
            self.result, self.log, self.frame = {}, [], {}
            self.state = "running"
            self._newest, self._waiting_for = None, 0
            target = new_run_place(Path(place), name_of(policy))
            self.child = Child(
                [
                    "cuzklab", "run", policy, *plan.arguments(), "--status-fd", "{status}", "-o", str(target), "--json",
                    *options,
                ],
                on_status=self._status, on_end=self._ended, on_error=self._noted,
            )  # fmt: skip

    def stop(self) -> None:
        """Stop the run, as Ctrl-C does; returns at once."""
        with self._lock:
            if self.child and self.child.running:
                self.state = "stopping"
                self.child.stop()

    def open_run(self) -> None:
        """Show the stored run below."""
        if self.result.get("run"):
            self.opened.children = (_explorer(Path(self.result["run"])),)

    def _status(self, state: dict[str, Any]) -> None:
        with self._lock:
            self._newest = state
            self._send_frame()

    def _send_frame(self) -> None:
        """Send the newest state, unless the page has yet to draw the last one, or has just got it."""
        now = time.monotonic()
        if self._newest is None or self._waiting_for or now - self._sent_at < _LEAST_INTERVAL_S * 0.9:
            return
        self._sent += 1
        self._waiting_for, self._sent_at = self._sent, now
        self.frame = {**self._newest, "number": self._sent}
        self._newest = None

    def _noted(self, line: str) -> None:
        with self._lock:
            self.log = [*self.log, line][-_MOST_LOG:]

    def _ended(self, end: End) -> None:
        with self._lock:
            said = _result(end) if not end.stopped else {"explanation": "Nothing half written was kept."}
            self.result = {**said, "status": end.status, "words": end.words}
            if end.stopped:
                self.state = "stopped"
            else:
                self.state = "done" if said.get("outcome") == "ok" and end.status == 0 else "failed"

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        if not isinstance(message, dict):
            return
        if message.get("stop"):
            self.stop()
        elif message.get("open"):
            self.open_run()
        elif "drawn" in message:
            with self._lock:
                if message["drawn"] in (self._waiting_for, "anew"):
                    self._waiting_for = 0
                    self._send_frame()


def _result(end: End) -> dict[str, Any]:
    """What the child said of its run; without words of its own, what it wrote last."""
    try:
        said = json.loads(end.out)
    except ValueError:
        return {"explanation": "\n".join(end.err.strip().splitlines()[-12:])}
    rows = []
    for name, value in said.get("metrics", {}).items():
        if kind := KINDS.get(name, ""):
            rows.append([kind.replace("_", " "), format_value(value, METRIC_KINDS[kind][0]), METRIC_KINDS[kind][1]])
    return {
        "run": said.get("run", ""), "outcome": said.get("outcome", ""), "explanation": said.get("explanation", ""),
        "proofs": said.get("proofs"), "verified": said.get("verified"), "metrics": rows,
    }  # fmt: skip


def _explorer(path: Path) -> Any:
    """The stored run as a view."""
    from cuzklab.workbench.explorer import TraceExplorer

    return TraceExplorer(load_run(path))
