"""The kernel bench: edit a kernel, have it built, tested and timed beside the shipped one; see it under the roof."""

import json
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from cuzklab.errors import BadInput
from cuzklab.resources import folder
from cuzklab.workbench import assets
from cuzklab.workbench.child import Child, End

KERNELS = ("msm_g1", "msm_g2", "ntt", "masked_sum_g1", "masked_sum_g2")
_SOURCES = ("*.h", "*.cpp", "*.cu", "*.cuh")
_MOST_CHARACTERS = 400_000


class KernelBench(anywidget.AnyWidget):
    """A source of `kernels/`, or macros and options on a GPU, changed and tried.

    Trials are ``python -m cuzklab bench trial`` in a child process: the changed kernel is built in a copy, its result
    is compared, and both are timed in turns. The package's own sources are never touched. What the compiler says
    about a slip is shown with its line.

    Parameters
    ----------
    kernel : str
    log2_size : int
    backend : {"auto", "host", "cuda"}

    Attributes
    ----------
    edits : dict of str to str
        New texts by file under `kernels/`.
    trial, roofline : dict
        What came of the last ones.
    """

    _esm = assets.module("kernels")
    _css = assets.style()
    child: Child | None = None
    files = traitlets.List().tag(sync=True)
    kernels = traitlets.List(list(KERNELS)).tag(sync=True)
    file = traitlets.Unicode("").tag(sync=True)
    text = traitlets.Unicode("").tag(sync=True)
    edits = traitlets.Dict().tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    state = traitlets.Unicode("idle").tag(sync=True)
    progress = traitlets.Unicode("").tag(sync=True)
    trial = traitlets.Dict().tag(sync=True)
    roofline = traitlets.Dict().tag(sync=True)

    def __init__(self, kernel: str = "msm_g1", log2_size: int = 12, backend: str = "auto") -> None:
        self._root = folder("kernels")
        self._lock = threading.RLock()
        files = sorted(str(path.relative_to(self._root)) for ending in _SOURCES for path in self._root.rglob(ending))
        super().__init__(
            files=files,
            settings={
                "kernel": kernel, "log2_size": log2_size, "backend": backend, "repeats": 7, "macros": "", "options": "",
            },
        )  # fmt: skip
        self.observe(lambda change: self._open(), "file")
        self.on_msg(self._heard)
        self.file = "msm/batch_affine.h" if "msm/batch_affine.h" in files else files[0]

    def close(self) -> None:
        """End a trial that is under way."""
        if self.child:
            self.child.kill()
        super().close()

    def try_change(self) -> None:
        """Build, test and time the change; returns at once."""
        try:
            change = self._change()
        except BadInput as error:
            self.trial = {"error": str(error)}
            return
        path = Path(tempfile.mkdtemp(prefix="cuzklab-change-")) / "change.json"
        path.write_text(json.dumps(change), encoding="utf-8")
        of = {name: str(value) for name, value in self.settings.items()}
        options = ["--change", str(path), "--log2-size", of["log2_size"], "--repeats", of["repeats"]]
        self._start("trial", [of["kernel"], *options])

    def measure(self) -> None:
        """Place the kernel under the roof of this machine; returns at once."""
        of = self.settings
        self._start("roofline", ["--kernels", str(of["kernel"]), "--sizes", str(of["log2_size"])])

    def stop(self) -> None:
        """Stop what is under way."""
        if self.child:
            self.child.stop()

    def _change(self) -> dict[str, Any]:
        edits = []
        for name, text in self.edits.items():
            before = self._read(name)
            if text != before:
                edits.append({"file": name, "old": before, "new": text})
        return {"edits": edits, **{name: self._object(name) for name in ("macros", "options")}}

    def _object(self, name: str) -> dict[str, Any]:
        text = str(self.settings.get(name, "")).strip()
        try:
            value = json.loads(text or "{}")
        except ValueError as error:
            raise BadInput(f"{name}: not JSON: {error}") from None
        if not isinstance(value, dict):
            raise BadInput(f'{name}: write an object, like {{"bits": 16}}')
        return value

    def _read(self, name: str) -> str:
        if name not in self.files:
            raise BadInput(f"kernels/{name}: no such file")
        return (self._root / name).read_text(encoding="utf-8")

    def _open(self) -> None:
        try:
            self.text = self._read(self.file)
        except BadInput as error:
            self.trial = {"error": str(error)}

    def _start(self, what: str, arguments: Sequence[str]) -> None:
        with self._lock:
            if self.child and self.child.running:
                return
            self.state, self.progress = what, "starting"
            setattr(self, what, {})
            backend = ["--backend", str(self.settings["backend"])]
            self.child = Child(
                ["cuzklab", "bench", what, *arguments, *backend, "--json"],
                on_end=lambda end: self._ended(what, end), on_error=self._told,
            )  # fmt: skip

    def _told(self, line: str) -> None:
        self.progress = line.strip()[:200]

    def _ended(self, what: str, end: End) -> None:
        try:
            answer = json.loads(end.out) if end.status == 0 else {}
        except ValueError:
            answer = {}
        if not answer:
            said = [line for line in end.err.splitlines() if f"{what}" not in line.partition(":")[0]]
            answer = {"error": "Stopped." if end.stopped else "\n".join(said) or f"The {what} {end.words}."}
        with self._lock:
            setattr(self, what, answer)
            self.state, self.progress = "idle", ""

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        if not isinstance(message, dict):
            return
        act = {"try": self.try_change, "measure": self.measure, "stop": self.stop}.get(str(message.get("act")))
        if act:
            act()
        elif isinstance(message.get("edit"), str) and len(message["edit"]) <= _MOST_CHARACTERS:
            self.edits = {**self.edits, self.file: message["edit"]}
