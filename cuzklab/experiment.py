"""Experiments: what to check, simulate and run, as a TOML file in `lab/experiments/`.

`execute` carries the steps out and stores a run for each. A run whose step, parameters and sources are those of
a stored one is not repeated, so an interrupted experiment goes on where it stopped.
"""

import hashlib
import json
import shutil
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cuzklab import __version__, resources
from cuzklab.backends.choose import choose
from cuzklab.errors import BadInput, no_such
from cuzklab.policies import name_of
from cuzklab.progress import Report, part
from cuzklab.trace.store import Run, RunError, as_folder, load_run
from cuzklab.units import parse_size

_STEP_FIELDS = {
    "do", "policy", "options", "workers", "partitions", "vram", "proofs", "in_flight", "synthesis_workers", "lookahead",
    "threads", "hardware", "workload", "log2_domain", "seed", "repeats", "devices",
}  # fmt: skip

_MODELLED = ("hardware", "workload")
"""Of a simulation; checks and live runs have neither, and are the same whatever they are."""
_WORDS = ("notebook", "candidate", "baseline", "question", "hypothesis")


@dataclass(frozen=True)
class Experiment:
    """An experiment as its file states it, with the parameters in force."""

    name: str
    title: str
    notebook: str
    candidate: str
    baseline: str
    question: str
    hypothesis: str
    parameters: Mapping[str, Any]
    steps: tuple[Mapping[str, Any], ...]


def names() -> tuple[str, ...]:
    """Experiments that are shipped."""
    return tuple(sorted(path.stem for path in (resources.folder("lab") / "experiments").glob("*.toml")))


def load(name: str, parameters: Mapping[str, Any] | None = None) -> Experiment:
    """Read an experiment by name, or from the path of a TOML file, and put the given parameters in force.

    Raises
    ------
    BadInput
        Unknown experiment, parameter or field, or a value of the wrong type; names the file.
    """
    path = Path(name) if str(name).endswith(".toml") else resources.folder("lab") / "experiments" / f"{name}.toml"
    if not path.is_file():
        raise BadInput(no_such("experiment", name, names(), "or give the path of a .toml file"))
    return read(path, parameters, _WORDS)


def read(path: Path, parameters: Mapping[str, Any] | None, words: Collection[str]) -> Experiment:
    """An experiment from its file, in which the given words stand; those that do not are empty.

    Raises
    ------
    BadInput
        As `load`.
    """
    try:
        content = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    missing = {"title", "parameters", "step", *words} - set(content)
    if missing:
        raise BadInput(f"{path}: {', '.join(sorted(missing))} is missing")
    for number, step in enumerate(content["step"], 1):
        unknown = set(step) - _STEP_FIELDS
        if unknown or step.get("do") not in _DO:
            what = f"unknown field {min(unknown)!r}" if unknown else f"`do` must be one of {', '.join(_DO)}"
            raise BadInput(f"{path}: step {number}: {what}")
    values = dict(content["parameters"])
    for key, value in (parameters or {}).items():
        if key not in values:
            raise BadInput(f"experiment {path.stem} has no parameter {key!r}; it has: {', '.join(values)}")
        values[key] = _convert(path.stem, key, value, values[key])
    said = {word: content.get(word, "").strip() for word in (*_WORDS, "title")}
    return Experiment(name=path.stem, parameters=values, steps=tuple(content["step"]), **said)


def _convert(experiment: str, key: str, value: Any, default: Any) -> Any:
    where = f"experiment {experiment}: parameter {key}"
    try:
        converted = type(default)(value)
    except (TypeError, ValueError):
        raise BadInput(f"{where} must be {type(default).__name__}, not {value!r}; the default is {default!r}") from None
    try:
        if isinstance(default, int) and converted < 1:
            raise ValueError("must be at least 1")
        if key.endswith("vram") and parse_size(converted) <= 0:
            raise ValueError("must be more than nothing")
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where} = {value!r}: {error}; the default is {default!r}") from error
    return converted


@dataclass(frozen=True)
class Step:
    """One thing to do: a check, a simulation or a live run, with all values known."""

    do: str
    values: Mapping[str, Any]
    repeat: int = 1
    name: str = ""

    @property
    def label(self) -> str:
        """Name of its run's directory, if it has no other."""
        if self.name:
            return self.name
        again = f"-{self.repeat}" if self.repeat > 1 else ""
        options = "".join(f"-{key}-{value}" for key, value in self.values.get("options", {}).items())
        policy, vram = as_folder(name_of(self.values["policy"])), str(self.values["vram"]).replace(" ", "")
        return as_folder(f"{self.do}-{policy}{options}-w{self.values['workers']}-{vram}{again}")

    @property
    def key(self) -> str:
        """Hash of what determines the result: the values, the files that they name, and cuzklab's own sources."""
        files = {
            name: hashlib.sha256(Path(value).read_bytes()).hexdigest()
            for name, value in self.values.items()
            if isinstance(value, str) and Path(value).is_file()
        }
        determines = [__version__, sources_digest(), self.do, self.values, files, self.repeat]
        return hashlib.sha256(json.dumps(determines, sort_keys=True, default=str).encode()).hexdigest()


@cache
def sources_digest() -> str:
    """Hash of the package's modules, kernels and profiles: an edited design or profile makes other results."""
    digest = hashlib.sha256()
    folders = (Path(__file__).parent, resources.folder("kernels"), resources.folder("lab"))
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".h", ".cpp", ".cu", ".cuh", ".toml") and path.is_file():
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def steps(experiment: Experiment, backend: str = "host") -> Iterator[Step]:
    """The steps of an experiment, one for each combination of listed values; `$name` stands for a parameter.

    Live runs execute on `backend`; "sim" leaves them out. Repetitions come in rounds, so that what is compared is
    measured at the same times of a machine that others use.
    """
    found = (
        replace(step, values={**step.values, "backend": backend}) if step.do == "live" else step
        for step in _expanded(experiment)
        if not (step.do == "live" and backend == "sim")
    )
    return iter(sorted(found, key=lambda step: step.repeat))


def _expanded(experiment: Experiment) -> Iterator[Step]:
    defaults = {
        key: experiment.parameters[key]
        for key in ("partitions", "proofs", "log2_domain", "seed", "hardware", "workload")
        if key in experiment.parameters
    }
    for stated in experiment.steps:
        own = {key: value for key, value in defaults.items() if stated["do"] == "simulate" or key not in _MODELLED}
        values = own | {key: _parameter(experiment, value) for key, value in stated.items() if key != "do"}
        several = {key: value for key, value in values.items() if isinstance(value, list)}
        repeats = values.pop("repeats", 1)
        for combination in product(*several.values()):
            for repeat in range(1, repeats + 1):
                yield Step(stated["do"], values | dict(zip(several, combination, strict=True)), repeat)


def _parameter(experiment: Experiment, value: Any) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in experiment.parameters:
            raise BadInput(f"experiment {experiment.name}: a step uses {value}, which is no parameter")
        return experiment.parameters[value[1:]]
    return value


def execute(
    name: str,
    out: Path,
    parameters: Mapping[str, Any] | None = None,
    report: Report = lambda share, words="": None,
) -> list[Run]:
    """Carry an experiment out. Its parameter `backend` says where live runs execute; "sim" leaves them out.

    Parameters
    ----------
    name : str
        Experiment, or path of a TOML file.
    out : Path
        Runs are stored in ``out/runs``; those that are there already are not repeated.
    parameters : mapping, optional
        Values that replace the experiment's.
    report : callable (share, words), optional

    Returns
    -------
    list of Run
        One for each step, in the order of the experiment.
    """
    experiment = load(name, parameters)
    wanted = experiment.parameters.get("backend", "auto")
    # Runs that were made on a GPU and stored are read where there is none; a step that is still to do asks for one.
    where = "cuda" if wanted == "cuda" else choose(wanted, offers=("cuda", "host", "sim")).name
    todo = list(steps(experiment, where))
    keys: dict[str, str] = {}
    for step in todo:
        if keys.setdefault(step.label, step.key) != step.key:
            raise BadInput(f"experiment {experiment.name}: two different steps would both be stored as {step.label}")
    known, runs = answers(Path(out)), []
    for number, step in enumerate(todo):
        of_step = part(report, number / len(todo), (number + 1) / len(todo), step.label + " ")
        runs.append(carry_out(step, Path(out), of_step, known))
    report(1.0, "done")
    return runs


def answers(out: Path) -> dict[str, Path]:
    """Runs that are stored in ``out/runs``, under whatever name, by the key of the step that each answers for."""
    found = {}
    for file in sorted((out / "runs").glob("*/run.json")):
        try:
            key = json.loads(file.read_text())["inputs"]["step"]
        except (OSError, ValueError, LookupError, TypeError):
            continue  # no run of a step; whoever needs its place says so
        found[str(key)] = file.parent
    return found


def carry_out(
    step: Step,
    out: Path,
    report: Report = lambda share, words="": None,
    known: Mapping[str, Path] = MappingProxyType({}),
) -> Run:
    """The run of a step: the stored one in ``out/runs`` if it answers for the step, else a new one.

    `known` says where there is one under another name (`answers`), which a grid or another experiment has made.
    """
    place = Path(out) / "runs" / step.label
    stored = _stored(place, step)
    if stored is None and step.key in known:
        stored = _stored(known[step.key], step)
    if stored is None:
        shutil.rmtree(place, ignore_errors=True)
        report(0.0, "")
        stored = _DO[step.do](step, place, report)
    return stored


def _stored(place: Path, step: Step) -> Run | None:
    try:
        run = load_run(place)
    except RunError:
        return None
    return run if run.info.inputs.get("step") == step.key else None


def _check(step: Step, place: Path, report: Report) -> Run:
    from cuzklab import check, policies

    values = step.values
    result = check.check(
        policies.load(values["policy"], **values.get("options", {})),
        workers=values["workers"],
        partitions=values["partitions"],
        vram_bytes=parse_size(values["vram"]),
        progress=lambda states, words="": report(0.5, f"{states:,} states"),
    )
    inputs = {"step": step.key}
    if not result.findings:
        return check.check_run(result, place, inputs)
    # The shortest schedule stands for the check; the run's conditions say how many findings there are.
    finding = min(result.findings, key=lambda finding: len(finding.schedule))
    return check.counterexample_run(result, finding, place, inputs)


def _simulate(step: Step, place: Path, report: Report) -> Run:
    from cuzklab import policies
    from cuzklab.simulate import simulate

    values = step.values
    simulation = simulate(
        policies.load(values["policy"], **values.get("options", {})),
        values["hardware"],
        values["workload"],
        proofs=values["proofs"],
        in_flight=values["in_flight"],
        gpu_workers=values["workers"],
        synthesis_workers=values["synthesis_workers"],
        lookahead=values.get("lookahead"),
        vram_bytes=parse_size(values["vram"]),
        seed=values["seed"] + step.repeat - 1,  # the model has no other chance than its seed
    )
    return simulation.to_run(place, {"step": step.key})


def _live(step: Step, place: Path, report: Report) -> Run:
    from cuzklab import policies
    from cuzklab.live import run_live

    values = step.values
    result = run_live(
        policies.load(values["policy"], **values.get("options", {})),
        values["log2_domain"],
        proofs=values["proofs"],
        partitions=values["partitions"],
        gpu_workers=values["workers"],
        synthesis_workers=values.get("synthesis_workers", 1),
        threads=values.get("threads", 1),
        gpus=values.get("devices", 1),
        vram_bytes=parse_size(values["vram"]),
        backend=values["backend"],
        seed=values["seed"],
        progress=lambda done, total: report(done / total, f"{done} of {total} partitions"),
    )
    return result.write(place, {"step": step.key})


_DO: Mapping[str, Callable[[Step, Path, Report], Run]] = {"check": _check, "simulate": _simulate, "live": _live}
