"""The kernel bench: edit a kernel, have it built, tested and timed beside the shipped one; see it under the roof."""

import json
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from cuzklab.backends import native
from cuzklab.backends.choose import choose
from cuzklab.backends.registry import KERNELS
from cuzklab.errors import BadInput
from cuzklab.resources import folder
from cuzklab.workbench import assets
from cuzklab.workbench.child import Child, End

_SOURCES = ("*.h", "*.cpp", "*.cu", "*.cuh")
_MOST_CHARACTERS = 400_000
# Where compilers say that an error is: FILE:LINE:COLUMN: error, or FILE(LINE): error.
_PLACE = re.compile(
    r"([\w./-]+\.(?:h|cuh|cu|cpp))(?::(\d+)(?::\d+)?|\((\d+)\)): (?:fatal |catastrophic )?error:? ?([^\n]*)"
)


class KernelBench(anywidget.AnyWidget):
    """A source of `kernels/`, or macros and options on a GPU, changed and tried.

    Trials are ``python -m cuzklab bench trial`` in a child process: the changed kernel is built in a copy, its result
    is compared, and both are timed in turns. The package's own sources are never touched. What the compiler says
    about a slip is shown at its line. The kernels are those of the benches' registry.

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
        What came of the last ones; of a slip, `places` in files and lines.
    backends : list of dict
        `name`, `words`, the `kernels` of each, whether it is `on_gpu`, and why it is `absent` (empty: it is there).
    """

    _esm = assets.module("editor", "kernels")
    _css = assets.style()
    child: Child | None = None
    files = traitlets.List().tag(sync=True)
    backends = traitlets.List().tag(sync=True)
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
        known = backends()
        if kernel not in next((one["kernels"] for one in known if one["name"] == backend), ()):
            raise BadInput(f"backend {backend!r} has no kernel {kernel!r}: see `cuzklab bench kernels --help`")
        super().__init__(
            files=files,
            backends=known,
            settings={
                "kernel": kernel, "log2_size": log2_size, "backend": backend, "repeats": 7, "macros": "", "options": "",
            },
        )  # fmt: skip
        self.observe(lambda change: self._open(), "file")
        self.on_msg(self._heard)
        self.observe(self._set, "settings")
        self.file = self._heart()

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

    def _heart(self) -> str:
        """The file that holds most of the chosen kernel."""
        of = next(one for one in self.backends if one["name"] == self.settings["backend"])
        return source_of("cuda" if of["on_gpu"] else "host", str(self.settings["kernel"]))

    def _set(self, change: Mapping[str, Any]) -> None:
        before, now = change["old"] or {}, change["new"]
        known = {one["name"]: one["kernels"] for one in self.backends}
        moved = any(before.get(name) != now.get(name) for name in ("kernel", "backend"))
        if moved and now.get("kernel") in known.get(now.get("backend"), ()):
            self.file = self._heart()

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
        if "error" in answer:
            answer["places"] = places_in(answer["error"], self.files)
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


def backends() -> list[dict[str, Any]]:
    """Where kernels can be tried, and which: what is not on this machine says why."""
    chosen, absent = choose("auto").name, ""
    try:
        choose("cuda")
    except BadInput as error:
        absent = str(error)
    return [
        {"name": name, "words": words, "kernels": list(KERNELS[where]), "on_gpu": where == "cuda", "absent": why}
        for name, words, where, why in (
            ("auto", f"auto: {chosen}", chosen, ""),
            ("host", "host", "host", ""),
            ("cuda", "cuda" if not absent else "cuda (not here)", "cuda", absent),
        )
    ]


def source_of(backend: str, kernel: str) -> str:
    """The file under `kernels/` to open for a kernel: on a CPU with wide vectors, the one that they run."""
    source = KERNELS[backend][kernel]
    if backend == "host" and _has_wide_vectors():
        root, stem = folder("kernels"), source.rpartition(".")[0]
        beside = {"field/field_adx": "field/lanes_ifma.h", "ntt/butterflies": "ntt/transform_ifma.h"}
        wide = beside.get(stem, f"{stem}_ifma.h")
        return wide if (root / wide).is_file() else source
    return source


def _has_wide_vectors() -> bool:
    try:
        return native.choose_field_path(native.cpu_features(native.find_compiler())).name == "ifma"
    except BadInput:  # no compiler: the trial says so
        return False


def places_in(words: str, files: Sequence[str]) -> list[dict[str, Any]]:
    """Where in which files of the kernels an error is, in a compiler's words."""
    found = []
    for path, line, line_of_nvrtc, said in _PLACE.findall(words):
        parts = path.split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        file = next((end for end in ends if end in files), None) or next(
            (name for name in files if name.rpartition("/")[2] == parts[-1]), None
        )
        if file:
            said = said.removesuffix("; set CXX to another compiler").strip()
            found.append({"file": file, "line": int(line or line_of_nvrtc), "words": said})
    return found
