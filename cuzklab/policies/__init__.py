"""Designs as programs, and the language that they speak.

`model` names what is shared, `effects` says what each step means by a rule of the form in `effect`, `engine` is the
machinery around a design. Every other module that has a function `prove_partition(p, gpu)` is a design; its docstring
states the intent. `load` finds one by name, or in a file of the user's.

What a policy module defines, each a generator function decorated with `@program` unless it says otherwise:

``prove_partition(p, gpu, **options)``
    What a GPU worker does for one partition. Its parameters after the first two are the policy's options.
``finish_partition(p, task)``, optional
    Makes the call a split one: `prove_partition` returns the `Task` that is still under way when the kernels have
    ended, the worker takes its next partition, and a finaliser of the engine runs this. A fault of the task is then
    raised here.
``synthesise(p)``, optional
    What a synthesis worker does for one partition, if not just the stage.
``queue_capacity(lookahead, synthesis_workers)``, optional, a plain function
    Synthesised partitions that may wait for a GPU worker, if not just `lookahead`.

``claims``, optional, a sequence of `claims.Claim`
    What the author says of every state that the design can come to; the checker proves or refutes it.

The optional ones may have any of the policy's options as further parameters. Whoever runs a policy asks `engine`.
"""

import hashlib
import importlib
import importlib.util
import inspect
import linecache
import pkgutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from cuzklab.errors import no_such
from cuzklab.policies.model import Gpu, Partition, Program

_MACHINERY = {"model", "effect", "effects", "engine", "requests", "outcome", "schedule", "common", "claims"}


class UnknownPolicy(ValueError):
    """No policy of that name, or an option that it does not have. The message is one line."""


@dataclass(frozen=True)
class Policy:
    """A design that can be run: the program for one partition, with its options bound.

    Attributes
    ----------
    digest : str
        SHA-256 of its source, where it has one.
    """

    name: str
    intent: str
    module: ModuleType = field(repr=False, compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    digest: str = field(default="", repr=False, compare=False, kw_only=True)

    @property
    def inputs(self) -> dict[str, str]:
        """What a run of it is made from, by name: its source's digest."""
        return {f"policy {self.name}": self.digest} if self.digest else {}

    def prove_partition(self, partition: Partition, gpu: Gpu) -> Program:
        """The program that proves one partition on one device."""
        return self.module.prove_partition(partition, gpu, **self.options)

    def has(self, hook: str) -> bool:
        """Whether the module defines an optional function."""
        return hasattr(self.module, hook)

    def call(self, hook: str, *arguments: Any) -> Any:
        """Call an optional function of the module with those of the policy's options that it takes."""
        function = getattr(self.module, hook)
        taken = inspect.signature(function).parameters
        options = {**options_of(self.module), **self.options}
        return function(*arguments, **{name: value for name, value in options.items() if name in taken})

    @property
    def title(self) -> str:
        """First line of the intent."""
        return self.intent.partition("\n")[0]


def names() -> tuple[str, ...]:
    """Names of the policies that are shipped."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in found if name not in _MACHINERY))


def name_of(place: str | Path) -> str:
    """The name under which a policy's runs are stored, from its name or the path of its file.

    A file is called by its stem: ``./mine.py`` is ``mine``. One that is called as a shipped policy, without being that
    policy's own file, is another design and says so: ``./phase9.py`` is ``phase9 (phase9.py)``. A stored run can state
    any text as its policy: whoever reads one loads it only if it is among `names`, for a path would be executed.
    """
    path = Path(place)
    if path.suffix != ".py":
        return str(place)
    is_another = path.stem in names() and path.resolve() != Path(__file__).resolve().with_name(path.name)
    return f"{path.stem} ({path.name})" if is_another else path.stem


def options_of(module: ModuleType) -> dict[str, Any]:
    """Options of a policy, with their defaults: the parameters after the partition and the device."""
    parameters = list(inspect.signature(module.prove_partition).parameters.values())[2:]
    return {parameter.name: parameter.default for parameter in parameters}


def load(name: str | Path, **options: Any) -> Policy:
    """A policy by its name, or by the path of a Python file that defines `prove_partition`.

    Parameters
    ----------
    name : str or Path
    **options
        Options of the policy, converted to the type of their default. A switch may be given as a word; an option that
        is annotated as a `Literal` has one of its values.

    Raises
    ------
    UnknownPolicy
    """
    text = str(name)
    if text.endswith(".py"):
        module = _load_file(Path(text))
    elif text in names():
        module = importlib.import_module(f"{__name__}.{text}")
    else:
        raise UnknownPolicy(no_such("policy", text, names(), "or give the path of a .py file"))
    known, bound = options_of(module), {}
    parameters = inspect.signature(module.prove_partition).parameters
    for key, value in options.items():
        if key not in known:
            raise UnknownPolicy(f"policy {text} has no option {key!r}; it has: {', '.join(known) or 'none'}")
        bound[key] = _converted(f"policy {text}: option {key}", value, parameters[key])
    digest = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
    return Policy(name_of(text), inspect.cleandoc(module.__doc__ or ""), module, bound, digest=digest)


_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _converted(what: str, value: Any, parameter: inspect.Parameter) -> Any:
    kind, choices = type(parameter.default), get_args(parameter.annotation)
    try:
        converted = _SWITCH[str(value).lower()] if kind is bool else kind(value)
        if choices and converted not in choices:
            raise ValueError
    except (KeyError, ValueError, TypeError):
        wanted = " or ".join(map(str, choices)) or ("true or false" if kind is bool else f"of type {kind.__name__}")
        raise UnknownPolicy(f"{what} must be {wanted}, not {value!r}") from None
    return converted


def from_source(name: str, source: str, place: str) -> Policy:
    """A policy from its source text, as it stands in a cell of a notebook.

    Parameters
    ----------
    name : str
    source : str
    place : str
        What stands for the file's name where the policy's lines are named.

    Raises
    ------
    UnknownPolicy
        Also where a shipped policy has that name, since their runs could not be told apart.
    """
    if name in names():
        raise UnknownPolicy(f"{place}: a policy of that name is shipped; give yours another")
    module = ModuleType(f"cuzklab_policy_{name}")
    module.__file__ = place
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    _define(place, module, lambda: exec(compile(source, place, "exec"), module.__dict__))
    digest = hashlib.sha256(source.encode()).hexdigest()
    return Policy(name, inspect.cleandoc(module.__doc__ or ""), module, digest=digest)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UnknownPolicy(f"no such policy file: {path}")
    spec = importlib.util.spec_from_file_location(f"cuzklab_policy_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    _define(path, module, lambda: spec.loader.exec_module(module))
    return module


def _define(place: Path | str, module: ModuleType, execute: Callable[[], None]) -> None:
    """Run a policy's source; whatever is wrong with it is one line that says where."""
    try:
        execute()
    except SyntaxError as error:
        raise UnknownPolicy(f"{place}:{error.lineno}: SyntaxError: {error.msg}") from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(place)]
        where = f"{place}:{lines[-1]}" if lines else str(place)
        raise UnknownPolicy(f"{where}: {type(error).__name__}: {error}") from error
    if not callable(getattr(module, "prove_partition", None)):
        raise UnknownPolicy(f"{place}: defines no function prove_partition(p, gpu)")
