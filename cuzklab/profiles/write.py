"""A profile's file with other constants: comments and everything else stay as a person wrote them."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from cuzklab.atomic import atomic_write
from cuzklab.errors import BadInput
from cuzklab.profiles.calibration import Calibration
from cuzklab.profiles.fields import find_profile
from cuzklab.profiles.hardware import Hardware, hardware_of, may_stand

_SECTION = re.compile(r"\s*\[([a-z_]+)\]\s*(?:#.*)?$")
_FIELD = re.compile(r"(\s*)([a-z0-9_]+)(\s*=\s*)([^#\s][^#]*?)(\s*(?:#.*)?)$")


def write_calibrated(
    base: str | Path, place: Path, values: Mapping[str, float], calibration: Calibration, source: str = ""
) -> Hardware:
    """Write the profile `base` with other values of its constants, and how they were found, to `place`.

    Parameters
    ----------
    base : str or Path
        Name or file of the profile to start from.
    values : mapping
        Constants by their dotted names; those that stand in the file do so on a line of their own.
    calibration : Calibration
        Replaces the section of that name.
    source : str
        Replaces the profile's, if given.

    Returns
    -------
    Hardware
        As it will be read from the new file.

    Raises
    ------
    BadInput
        A constant does not stand in the file, or the result is no valid profile; nothing is written then.
    """
    path = find_profile("hardware", base)
    try:
        text = path.read_text()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    text = with_calibration(with_values(text, values, str(path)), calibration)
    if source:
        text, count = re.subn(
            r'(?m)^source = (?:"""(?s:.*?)"""|"[^"\n]*")', f"source = {json.dumps(source)}", text, count=1
        )
        if not count:
            raise BadInput(f"{path}: field source is missing")
    hardware = hardware_of(place, tomllib.loads(text), hashlib.sha256(text.encode()).hexdigest())
    try:
        with atomic_write(place, "w") as file:
            file.write(text)
    except OSError as error:
        raise BadInput(f"{place}: {error.strerror or error}") from error
    return hardware


def with_values(text: str, values: Mapping[str, float], path: str) -> str:
    """A profile's text with other constants; a field that may be left out is added to its section.

    Raises
    ------
    BadInput
        There is no such field, or its section is not there.
    """
    left, section, lines = dict(values), "", []
    for line in text.splitlines():
        if match := _SECTION.match(line):
            section = match[1]
        elif (match := _FIELD.match(line)) and (name := f"{section}.{match[2]}") in left:
            line = f"{match[1]}{match[2]}{match[3]}{_number(left.pop(name))}{match[5]}"
        lines.append(line)
    for name, value in list(left.items()):
        section, _, key = name.partition(".")
        if may_stand(section, key) and (place := _end_of_section(lines, section)):
            lines.insert(place, f"{key} = {_number(value)}")
            del left[name]
    if left:
        raise BadInput(f"{path}: field {min(left)} does not stand there, so it cannot be set")
    return "\n".join(lines) + "\n"


def _end_of_section(lines: list[str], section: str) -> int:
    """Where a further field of a section goes: behind its last one; 0 if there is no such section."""
    headers = [number for number, line in enumerate(lines) if (match := _SECTION.match(line)) and match[1] == section]
    if not headers:
        return 0
    place = headers[0] + 1
    while place < len(lines) and not _SECTION.match(lines[place]):
        place += 1
    while not lines[place - 1].strip():
        place -= 1
    return place


def with_calibration(text: str, calibration: Calibration) -> str:
    """A profile's text with another section [calibration], at its end."""
    before = re.split(r"(?m)^\[calibration\]", text)[0].rstrip()
    members = ",\n".join("  [" + ", ".join(map(_number, member)) + "]" for member in calibration.members)
    runs = "runs = [\n" + "".join(f"  {json.dumps(run)},\n" for run in calibration.runs) + "]\n"
    return (
        f"{before}\n\n[calibration]\nsource = {json.dumps(calibration.source)}\n"
        f"constants = {json.dumps(list(calibration.constants))}\n"
        f"unidentified = {json.dumps(list(calibration.unidentified))}\n"
        f"scatter = {_number(calibration.scatter)}\nscatter_other = {_number(calibration.scatter_other)}\n"
        f"{runs if calibration.runs else ''}"
        f"# The first is the profile's own; the others fit nearly as well.\nmembers = [\n{members},\n]\n"
    )


def _number(value: float) -> str:
    text = f"{value:.4g}"
    return text if re.search(r"[.e]", text) else f"{text}.0"
