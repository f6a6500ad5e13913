"""Published figures: strictly read rows of `lab/published/*.toml`, each with its kind and conditions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cuzklab.policies as policies
from cuzklab import resources
from cuzklab.errors import BadInput
from cuzklab.profiles import read_toml
from cuzklab.trace.metrics import KINDS
from cuzklab.units import METRIC_KINDS, Metric, parse_size

OUTCOMES = ("device_oom", "host_oom", "deadlock")
GPU_TOTAL, CALLS = "gpu_total", "calls"
_CONDITIONS = ("c", "j", "pw", "gw")
_FIELDS = ("policy", "kind", "as", "value", "outcome", "conditions", "options", "assumed", "fit", "not_simulated")


@dataclass(frozen=True)
class PublishedRow:
    """One published result: a figure of a kind, or an outcome, under stated conditions.

    Attributes
    ----------
    metric : Metric or None
        None where the result is an outcome.
    outcome : str
        ``ok`` where the result is a figure.
    assumed : tuple of str
        Conditions that were not published.
    options : mapping
        Of the policy.
    fit : bool
        Whether constants are fitted to it; otherwise it is a prediction.
    not_simulated : str
        Why it cannot be simulated; empty where it can.
    """

    policy: str
    hardware: str
    workload: str
    conditions: Mapping[str, int]
    metric: Metric | None
    outcome: str
    assumed: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    fit: bool = False
    not_simulated: str = ""

    @property
    def figure(self) -> str:
        """Name of the figure in a simulation's results."""
        if self.metric is None:
            return ""
        return _figure_of(self.metric.kind, self.metric.label)

    @property
    def words(self) -> str:
        """The row's conditions in a line."""
        conditions = " ".join(f"{name}{value}" for name, value in self.conditions.items())
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.policy} {conditions} {options}".strip()


def _figure_of(kind: str, label: str) -> str:
    if label:
        return f"{label}_{'s' if kind == 'duration' else kind}"
    return next((name for name, one in KINDS.items() if one == kind), "")


_KNOWN = {_figure_of(kind, ""): kind for kind in METRIC_KINDS if _figure_of(kind, "")}
_LABELLED = {("duration", GPU_TOTAL), ("share", GPU_TOTAL), ("share", CALLS)}


def load_published(path: Path | str | None = None) -> tuple[PublishedRow, ...]:
    """Published rows from a TOML file; the shipped `lab/published/phases.toml` unless another is given.

    Raises
    ------
    BadInput
        Unknown or missing field, unknown kind, impossible value; names file, row and field.
    """
    path = Path(path) if path else resources.folder("lab") / "published" / "phases.toml"
    document, _ = read_toml(path)
    unknown = set(document) - {"title", "source", "hardware", "workload", "row"}
    missing = {"title", "source", "hardware", "workload", "row"} - set(document)
    if unknown or missing:
        what = f"unknown field {min(unknown)}" if unknown else f"field {min(missing)} is missing"
        raise BadInput(f"{path}: {what}")
    if not isinstance(document["row"], list):
        raise BadInput(f"{path}: row must be a list of sections [[row]]")
    for key in ("hardware", "workload"):
        if not isinstance(document[key], str):
            raise BadInput(f"{path}: field {key} must be text")
    return tuple(
        row_of(f"{path}: row {number}", row, document["hardware"], document["workload"])
        for number, row in enumerate(document["row"], 1)
    )


def row_of(where: str, row: Any, hardware: str, workload: str) -> PublishedRow:
    """A row from its fields, for a machine and a workload; errors name `where` and the field."""
    if not isinstance(row, dict):
        raise BadInput(f"{where}: not a section")
    for key in row:
        if key not in _FIELDS:
            raise BadInput(f"{where}: unknown field {key}")
    not_simulated = row.get("not_simulated", "")
    if not isinstance(not_simulated, str):
        raise BadInput(f"{where}: field not_simulated must say why, in words")
    if not isinstance(row.get("policy"), str) or (row["policy"] not in policies.names() and not not_simulated):
        raise BadInput(f"{where}: field policy must be one of {', '.join(policies.names())}")
    conditions = row.get("conditions")
    if not isinstance(conditions, dict) or sorted(conditions) != sorted(_CONDITIONS):
        raise BadInput(f"{where}: field conditions must state {', '.join(_CONDITIONS)}")
    for key, value in conditions.items():
        if type(value) is not int or not 1 <= value <= 10_000:
            raise BadInput(f"{where}: field conditions.{key} must be a whole number from 1 to 10000")
    assumed = row.get("assumed", [])
    if not isinstance(assumed, list) or not all(key in _CONDITIONS for key in assumed):
        raise BadInput(f"{where}: field assumed must list some of {', '.join(_CONDITIONS)}")
    options = row.get("options", {})
    if not isinstance(options, dict):
        raise BadInput(f"{where}: field options must be a table of the policy's options")
    if options:
        if row["policy"] not in policies.names():  # a path would be executed
            raise BadInput(f"{where}: field options: policy {row['policy']} does not come with cuzklab")
        try:
            options = dict(policies.load(row["policy"], **options).options)
        except policies.UnknownPolicy as error:
            raise BadInput(f"{where}: field options: {error}") from None
    fit = row.get("fit", False)
    if not isinstance(fit, bool) or (fit and (row.get("outcome", "host_oom") != "host_oom" or not_simulated)):
        raise BadInput(f"{where}: field fit must be true or false; only a simulated figure, or host_oom, can be fitted")
    stated = {"policy": row["policy"], **options, **conditions, "hardware": hardware, "workload": workload}
    metric, outcome = _result(where, row, stated)
    return PublishedRow(
        row["policy"], hardware, workload, dict(conditions), metric, outcome, tuple(assumed), options, fit,
        not_simulated,
    )  # fmt: skip


def _result(where: str, row: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[Metric | None, str]:
    if "outcome" in row:
        if row["outcome"] not in OUTCOMES or "kind" in row or "value" in row or "as" in row:
            raise BadInput(f"{where}: field outcome must be one of {', '.join(OUTCOMES)}, without kind and value")
        return None, row["outcome"]
    kind, label = row.get("kind"), row.get("as", "")
    if label:
        if (kind, label) not in _LABELLED:
            raise BadInput(
                f"{where}: field as must be {GPU_TOTAL}, of kind duration or share, or {CALLS}, of kind share"
            )
    elif kind not in _KNOWN.values():
        raise BadInput(f"{where}: field kind must be one of {', '.join(_KNOWN.values())}")
    value = row.get("value")
    if isinstance(value, str) and kind in ("peak_host", "peak_vram"):
        try:
            value = parse_size(value)
        except ValueError as error:
            raise BadInput(f"{where}: field value: {error}") from None
    if type(value) not in (int, float) or not 0 < value < 2**62:
        raise BadInput(f"{where}: field value must be a number above 0")
    return Metric(kind, float(value), "published", stated, label), "ok"
