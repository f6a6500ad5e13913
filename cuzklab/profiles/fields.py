"""Reading profiles: one field, one section, one table of numbers at a time, each refused by file and field name.

Nothing that a file says is trusted: types, ranges, unknown and missing fields are checked before a dataclass is made.
"""

import dataclasses
import hashlib
import math
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzklab import resources
from cuzklab.errors import BadInput, no_such
from cuzklab.stages import STAGES
from cuzklab.units import parse_size

_MAX_FILE_BYTES = 1 << 20
_NOUNS = {"hardware": "hardware profile", "workloads": "workload"}


def bounds(least: float = 0, most: float = math.inf, *, above: bool = False, **options: Any) -> Any:
    """A field whose number must lie in [least, most], or above `least`."""
    return field(metadata={"least": least, "most": most, "above": above}, **options)


@dataclass(frozen=True)
class StageNumbers:
    """A number for each stage of `cuzklab.stages.STAGES`, and where the numbers come from."""

    values: Mapping[str, float]
    source: str


def profile_names(kind: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (resources.folder("lab") / kind).glob("*.toml")))


def find_profile(kind: str, name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if text.endswith(".toml"):
        return Path(text)
    if text not in profile_names(kind):
        raise BadInput(no_such(_NOUNS[kind], text, profile_names(kind), "or give the path of a .toml file"))
    return resources.folder("lab") / kind / f"{text}.toml"


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """A TOML document and the SHA-256 of its bytes.

    Raises
    ------
    BadInput
        The file cannot be read, is far too large, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise BadInput(f"{path}: larger than {_MAX_FILE_BYTES} bytes, which no profile is")
        return tomllib.loads(content.decode()), hashlib.sha256(content).hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, numbers of thousands of digits
        raise BadInput(f"{path}: not TOML: {' '.join(str(error).split())}") from error


def read_table(path: Path, key: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    if key not in document:
        raise BadInput(f"{path}: section [{key}] is missing")
    if not isinstance(document[key], dict):
        raise BadInput(f"{path}: {key} must be a section [{key}]")
    return document[key]


def refuse_unknown(path: Path, prefix: str, section: Mapping[str, Any], known: set[str]) -> None:
    for key in section:
        if key not in known:
            raise BadInput(f"{path}: unknown field {prefix}{key}; there are: {', '.join(sorted(known))}")


def read_value(path: Path, name: str, section: Mapping[str, Any], kind: type, limits: Mapping[str, Any]) -> Any:
    """One field, of the wanted type and in its range; sizes (names that end in _bytes) may be text."""
    key = name.rpartition(".")[2]
    if key not in section:
        raise BadInput(f"{path}: field {name} is missing")
    value = section[key]
    if kind is int and key.endswith("_bytes") and isinstance(value, str):
        try:
            value = parse_size(value)
        except ValueError as error:
            raise BadInput(f"{path}: field {name}: {error}") from error
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**62 else math.inf
    if type(value) is not kind:
        expected = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[kind]
        raise BadInput(f"{path}: field {name} must be {expected}, not {type(value).__name__}")
    if kind is str and not value.strip():
        raise BadInput(f"{path}: field {name} must not be empty")
    if kind in (int, float):
        least, most, above = limits.get("least", 0), limits.get("most", math.inf), limits.get("above", False)
        if not abs(value) < 2**62:  # not-a-number included
            raise BadInput(f"{path}: field {name} is too large or not a number")
        if value < least or value > most or (above and value <= least):
            wanted = f"{'above' if above else 'at least'} {least}" + ("" if most == math.inf else f", at most {most}")
            raise BadInput(f"{path}: field {name} is {value}; it must be {wanted}")
    return value


def read_section(path: Path, name: str, document: Mapping[str, Any], kind: type) -> Any:
    """A section as the dataclass that describes it."""
    section = read_table(path, name, document)
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    refuse_unknown(path, f"{name}.", section, {entry.name for entry in fields})
    return kind(
        **{
            entry.name: read_value(path, f"{name}.{entry.name}", section, hints[entry.name], entry.metadata)
            for entry in fields
            if entry.name in section or entry.default is dataclasses.MISSING
        }
    )


def read_stage_numbers(
    path: Path,
    name: str,
    document: Mapping[str, Any],
    allowed: set[str],
    required: set[str],
    kind: type,
    limits: Mapping[str, Any],
) -> StageNumbers | None:
    """An optional section with a number a stage."""
    if name not in document:
        return None
    section = read_table(path, name, document)
    refuse_unknown(path, f"{name}.", section, allowed | {"source"})
    source = read_value(path, f"{name}.source", section, str, {})
    wanted = [key for key in (*STAGES, *sorted(allowed - set(STAGES))) if key in required or key in section]
    return StageNumbers({stage: read_value(path, f"{name}.{stage}", section, kind, limits) for stage in wanted}, source)
