"""The design bench: turn the knobs of an engine and see what each turn comes to."""

import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from ipywidgets import VBox

from cuzklab.workbench import assets
from cuzklab.workbench.consult import Consultant
from cuzklab.workbench.design import Design, choices, policy_argument
from cuzklab.workbench.live import LiveView
from cuzklab.workbench.plan import plan_of, plan_rows
from cuzklab.workbench.turn import Turns

_MOST_TIMINGS = 200


class DesignBench(anywidget.AnyWidget):
    """Choose policy, hardware and workload, move sliders, see timeline, memory, waits, figures and verdicts.

    Each move re-simulates in the kernel (see `turn`); the checker, the limiting resource and the intervals follow
    from a child process once the sliders rest. A configuration can be pinned as the baseline of all that come after
    it, and run for real in a child process. The state is saved with the notebook and shown without a kernel.

    Parameters
    ----------
    policies : mapping of str to str, optional
        Further policies by name: their source text, as an `AuthorBench` has it.
    runs : Path, optional
        Folder for runs made for real; ``runs`` in the notebook's folder unless given.
    **knobs
        Those of `cuzklab.workbench.design.Design`.

    Attributes
    ----------
    design : Design
        What is shown; may be set.
    live : LiveView
        The run that was made for real last; it is shown below the bench.
    timings : deque of dict
        Of the last turns: `of`, and milliseconds to `simulate`, to `analyse` and to `encode` and send.
    """

    _esm = assets.module("packed", "chart", "design")
    _css = assets.style()
    _consultant: Consultant | None = None  # also of one that was never finished, which is closed like any other
    live: LiveView | None = None
    choices = traitlets.Dict().tag(sync=True)
    sources = traitlets.Dict().tag(sync=True)
    knobs = traitlets.Dict().tag(sync=True)
    picture = traitlets.Dict().tag(sync=True)
    second = traitlets.Dict().tag(sync=True)
    baseline = traitlets.Dict().tag(sync=True)
    plan = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        policies: Mapping[str, str] | None = None,
        runs: Path | str = "runs",
        *,
        consult: bool = True,
        **knobs: Any,
    ) -> None:
        own = dict(policies or {})
        if own and "policy" not in knobs:
            knobs["policy"] = next(iter(own))
        knobs.setdefault("source", own.get(knobs.get("policy", ""), ""))
        design = Design(**knobs)
        self._drawing = threading.Lock()
        self._turns = Turns(self._put_up)
        self._number = 0
        self.timings: deque[dict[str, float]] = deque(maxlen=_MOST_TIMINGS)
        self._consultant = Consultant(self._looked) if consult else None
        self.runs = Path(runs)
        self.live = LiveView()
        super().__init__(choices=choices(own), sources=own, knobs=design.to_json())
        self._turn()
        self.box = VBox([self, self.live.box])
        self.observe(lambda change: self._turn(), "knobs")
        self.on_msg(self._heard)

    @property
    def design(self) -> Design:
        return Design.from_json(self.knobs)

    @design.setter
    def design(self, design: Design) -> None:
        self.knobs = design.to_json()

    def close(self) -> None:
        """End what the bench has started."""
        if self._consultant:
            self._consultant.close()
        if self.live:
            self.live.stop()
        super().close()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)

    def _turn(self) -> None:
        with self._drawing:
            self._number += 1
            drawn = self._turns.turn(self.knobs, self._number)
            self._put_up(drawn)
            if "error" not in drawn:
                self.plan = plan_rows(self.design)
                if self._consultant:
                    self._consultant.ask(self._number, self.design)

    def _put_up(self, drawn: dict[str, Any]) -> None:
        begun = time.perf_counter()
        self.picture = drawn
        encode_ms = round((time.perf_counter() - begun) * 1e3, 2)
        self.timings.append(
            {"of": drawn["of"], "partial": drawn.get("partial", False), **drawn.get("took_ms", {}), "encode": encode_ms}
        )

    def _looked(self, answer: dict[str, Any]) -> None:
        self.second = answer

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and message.get("run"):
            self.run_for_real()

    def run_for_real(self) -> LiveView:
        """Start a live run of the design in a child process, on circuits that fit this machine.

        Returns
        -------
        LiveView
            Which shows it.
        """
        design = self.design
        scratch = Path(tempfile.mkdtemp(prefix="cuzklab-design-"))
        self.live.start(
            policy_argument(design, scratch), place=self.runs, title=design.policy, **asdict(plan_of(design))
        )
        return self.live
