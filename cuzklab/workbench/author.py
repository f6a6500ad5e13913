"""The author's bench: a design as text, its errors at their lines, and the design bench beneath it, as one types."""

import inspect
import re
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from ipywidgets import VBox

from cuzklab import policies
from cuzklab.atomic import atomic_write
from cuzklab.errors import BadInput
from cuzklab.policies import UnknownPolicy
from cuzklab.workbench import assets
from cuzklab.workbench.bench import DesignBench
from cuzklab.workbench.patience import PATIENCE_S, within

_MOST_CHARACTERS = 100_000
START = '''"""One lock around everything that a partition does on the device: safe, and as slow as it looks."""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import *
from cuzklab.policies.model import program


@program
def prove_partition(p, gpu):
    prep_thread = yield Fork(prep(p))
    yield Acquire(gpu.lock)
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p)
    yield Upload(p.abc, (d_a, d_bc), p.stream(gpu, "compute"), p)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Release(gpu.lock)
    yield Join(prep_thread)
    yield Compute("epilogue", p)
'''


class AuthorBench(anywidget.AnyWidget):
    """Write a policy; it is simulated and checked as you type, and can be run for real.

    Parameters
    ----------
    name : str
        Of the policy.
    source : str
        Its text to begin with; templates are in the view.
    folder : path
        Where it is saved.
    **bench
        Knobs of the `DesignBench` beneath.

    Attributes
    ----------
    source : str
    marks : list of [line, words, kind]
        What is wrong, at which line; kind is error or finding.
    bench : DesignBench
    """

    _esm = assets.module("editor", "author")
    _css = assets.style()
    bench: DesignBench | None = None  # also of one that was never finished, which is closed like any other
    name = traitlets.Unicode().tag(sync=True)
    source = traitlets.Unicode().tag(sync=True)
    templates = traitlets.Dict().tag(sync=True)
    marks = traitlets.List().tag(sync=True)
    saved = traitlets.Unicode().tag(sync=True)

    def __init__(self, name: str = "mine", source: str = START, folder: Path | str = ".", **bench: Any) -> None:
        if not name.isidentifier() or name in policies.names():
            raise BadInput(f"{name!r}: give the policy a name that is a Python identifier and that none shipped has")
        self.folder = Path(folder)
        templates = {"one lock": START} | {
            shipped: inspect.getsource(policies.load(shipped).module) for shipped in policies.names()
        }
        super().__init__(name=name, source=source, templates=templates)
        self._errors: list[list[Any]] = []
        bench = {"policy": name, "source": source, **bench}
        self.bench = DesignBench({name: source}, **bench)
        self.box = VBox([self, self.bench.box])
        self.observe(lambda change: self._judge(), "source")
        self.bench.observe(lambda change: self._mark(), ["second", "picture"])
        self.on_msg(self._heard)
        self._judge()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)

    def close(self) -> None:
        """End what the bench has started."""
        if self.bench:
            self.bench.close()
        super().close()

    def save(self) -> Path:
        """Keep the policy as ``NAME.py`` in the folder, for ``cuzklab check ./NAME.py`` and the other verbs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}.py"
        with atomic_write(path, "w") as file:
            file.write(self.source)
        self.saved = str(path)
        return path

    def _judge(self) -> None:
        """Take the text, unless it is no policy; the bench keeps the last one that was."""
        self.saved = ""
        try:
            with within(PATIENCE_S, self.name):
                policies.from_source(self.name, self.source, f"cell {self.name}")
            self._errors = []
            self.bench.sources = {self.name: self.source}
            self.bench.knobs = {**self.bench.knobs, "policy": self.name, "source": self.source}
        except (BadInput, UnknownPolicy) as error:
            self._errors = [[line_of(str(error), self.name) or 1, str(error), "error"]]
        self._mark()

    def _mark(self) -> None:
        marks = list(self._errors)
        if not marks and (words := self.bench.picture.get("error")):
            marks.append([line_of(words, self.name) or 1, words, "error"])
        second = self.bench.second
        known = second.get("check", {}) if second.get("of") == self.bench.picture.get("of") else {}
        for finding in known.get("findings", ()):
            if not self._errors and (line := line_of(finding["where"], self.name)):
                marks.append([line, f"{finding['kind']}: {finding['message']}", "finding"])
        self.marks = marks

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        if not isinstance(message, dict):
            return
        if message.get("save"):
            try:
                self.save()
            except OSError as error:
                self.saved = f"not saved: {error.strerror or error}"
        elif isinstance(message.get("source"), str) and len(message["source"]) <= _MOST_CHARACTERS:
            self.source = message["source"]


def line_of(words: str, name: str) -> int | None:
    """The line of a policy's text that a message is about."""
    match = re.search(rf"cell {re.escape(name)}:(\d+)", words)
    return int(match[1]) if match else None
