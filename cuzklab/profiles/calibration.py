"""What a calibration leaves in a profile: the constants that were fitted, to what, and fits that are nearly as good."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.profiles.fields import read_table, read_value, refuse_unknown

MAX_MEMBERS, MAX_CONSTANTS, MAX_RUNS = 1000, 100, 10_000
THROUGHPUT_KINDS = ("batch_average", "steady_interval", "wall")
_SCATTERS = ("scatter", "scatter_other")


@dataclass(frozen=True)
class Calibration:
    """How the constants of a profile were fitted.

    Attributes
    ----------
    source : str
        To which rows or runs, when, and how.
    constants : tuple of str
        Dotted names of the fitted constants.
    members : tuple of tuple of float
        Near-equal fits: values of the constants, one member a row. Predictions are made with each of them.
    scatter, scatter_other : float
        Root mean square of log(measured / simulated) over the fitted figures of throughput, and over the others (peaks
        of memory, prove times, occupancies): what the model leaves unexplained, differences between runs of one
        configuration included.
    unidentified : tuple of str
        Fitted or assumed constants that the data cannot tell.
    runs : tuple of str
        Live runs that it was fitted to, by name and time, so that they can be told from those that it predicts.
    """

    source: str
    constants: tuple[str, ...]
    members: tuple[tuple[float, ...], ...]
    scatter: float
    scatter_other: float
    unidentified: tuple[str, ...]
    runs: tuple[str, ...] = ()

    def scatter_of(self, kind: str) -> float:
        """What is left unexplained of a figure of a kind."""
        return self.scatter if kind in THROUGHPUT_KINDS else self.scatter_other

    def member(self, index: int) -> Mapping[str, float]:
        """Constants of one near-equal fit, by name."""
        return dict(zip(self.constants, self.members[index], strict=True))


def read_calibration(path: Path, document: Mapping[str, Any], hardware: Any) -> Calibration:
    """The section [calibration] of a profile.

    Raises
    ------
    BadInput
        A field is missing, unknown or wrong; names file and field.
    """
    section = read_table(path, "calibration", document)
    refuse_unknown(
        path, "calibration.", section,
        {"source", "constants", "members", "scatter", "scatter_other", "unidentified", "runs"},
    )  # fmt: skip
    source = read_value(path, "calibration.source", section, str, {})
    scatters = [read_value(path, f"calibration.{key}", section, float, {"most": 1}) for key in _SCATTERS]
    constants = _names(path, "constants", section, hardware)
    unidentified = _names(path, "unidentified", section, hardware)
    members = section.get("members")
    if not isinstance(members, list) or not 1 <= len(members) <= MAX_MEMBERS:
        raise BadInput(f"{path}: field calibration.members must be a list of 1 to {MAX_MEMBERS} lists of numbers")
    for number, member in enumerate(members, 1):
        if (
            not isinstance(member, list)
            or len(member) != len(constants)
            or not all(type(value) in (int, float) and abs(value) < 2**62 for value in member)
        ):
            raise BadInput(f"{path}: field calibration.members: member {number} must have {len(constants)} numbers")
    values = tuple(tuple(float(value) for value in member) for member in members)
    runs = section.get("runs", [])
    if not isinstance(runs, list) or len(runs) > MAX_RUNS or not all(isinstance(run, str) for run in runs):
        raise BadInput(f"{path}: field calibration.runs must be a list of at most {MAX_RUNS} names of runs")
    return Calibration(source, constants, values, *scatters, unidentified, tuple(runs))


def _names(path: Path, key: str, section: Mapping[str, Any], hardware: Any) -> tuple[str, ...]:
    names = section.get(key)
    if not isinstance(names, list) or len(names) > MAX_CONSTANTS or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{path}: field calibration.{key} must be a list of names of constants")
    for name in names:
        try:
            known = isinstance(hardware.constant(name), int | float)
        except (AttributeError, TypeError):
            known = False
        if not known:
            raise BadInput(f"{path}: field calibration.{key}: {name!r} is no constant of this profile")
    return tuple(names)
