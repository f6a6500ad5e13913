"""When two histories of a program lead to the same point: comparing suspended generators by what they hold.

A policy that received 4 GiB and one that received 5 GiB from a query are the same from there on when all that they
keep is "too little". Everything that the rest of a generator can depend on is in its frame: where it stands, its
variables, and what lies on its stack (the iterators of loops among it), which `gc.get_referents` lists. `frozen_state`
turns that into a hashable value, or says that it met something whose equality it cannot judge; then histories are kept
apart, which is always right and only makes more states.
"""

import gc
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any

_PLAIN = (int, float, complex, str, bytes, range, type(None), type(Ellipsis))
_BY_IDENTITY = (CodeType, FunctionType, BuiltinFunctionType, ModuleType, type)
_ITERATORS = (
    type(iter(())),
    type(iter([])),
    type(iter(range(0))),
    type(iter(range(1 << 70))),
    type(iter("")),
    enumerate,
    zip,
)


class _Same:
    """Equal only to itself by identity of what it stands for, which it keeps alive."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


class _Unknown(Exception):
    """Something whose equality cannot be judged."""


def frozen_state(generator: GeneratorType) -> Hashable | None:
    """All that the rest of a suspended generator depends on, as a hashable value; None if that cannot be told."""
    try:
        value = _freeze_generator(generator, {})
        hash(value)
    except (_Unknown, TypeError):
        return None
    return value


def _freeze_generator(generator: GeneratorType, seen: dict[int, int]) -> Hashable:
    frame = generator.gi_frame
    if frame is None:
        raise _Unknown
    variables = frame.f_locals
    held = tuple(
        _freeze(value, seen)
        for value in gc.get_referents(generator)
        if value is not variables and not isinstance(value, FrameType)
    )
    # Names tell which variables are bound: referents alone leave out the others.
    return "generator", _Same(frame.f_code), frame.f_lasti, tuple(sorted(variables)), held


def _freeze(value: Any, seen: dict[int, int]) -> Hashable:
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, _BY_IDENTITY):
        return _Same(value)
    if id(value) in seen:  # mutable things that are one and the same must stay so
        return "again", seen[id(value)]
    if type(value) is tuple:
        return "tuple", *(_freeze(item, seen) for item in value)
    if is_dataclass(value) and type(value).__dataclass_params__.frozen:
        # Fields that do not take part in comparison count too: they must be the very same things.
        hidden = tuple(_Same(getattr(value, field.name)) for field in fields(value) if not field.compare)
        return type(value), value, hidden
    seen[id(value)] = len(seen)
    if isinstance(value, GeneratorType):
        return _freeze_generator(value, seen)
    if type(value) is list:
        return "list", *(_freeze(item, seen) for item in value)
    if type(value) is dict:
        return "dict", *((_freeze(key, seen), _freeze(item, seen)) for key, item in value.items())
    if type(value) is CellType:
        try:
            return "cell", _freeze(value.cell_contents, seen)
        except ValueError:  # empty
            return ("cell",)
    if isinstance(value, _ITERATORS):
        return "iterator", type(value), _freeze(value.__reduce__()[1:], seen)
    raise _Unknown
