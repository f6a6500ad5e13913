"""Workloads: the circuit of a partition, and how many partitions make a proof: `lab/workloads/NAME.toml`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.profiles.fields import (
    find_profile,
    profile_names,
    read_table,
    read_toml,
    read_value,
    refuse_unknown,
)
from cuzklab.stages import POREP_32G, CircuitShape

_SCALED_NAME = re.compile(r"porep-shaped-([0-9]{1,2})")
MIN_LOG2_DOMAIN, MAX_LOG2_DOMAIN = 6, 32
_MAX_ARRIVALS = 1000
PRIORITIES = ("normal", "high", "critical")


@dataclass(frozen=True)
class Arrival:
    """A proof of another kind that arrives when a share of the batch's partitions, 0 to 1, have an outcome."""

    workload: "Workload"
    after_share: float


@dataclass(frozen=True)
class Workload:
    """What is proved: the circuit of a partition, and how many partitions make a proof.

    `priority` is normal, high or critical: which goes first where proofs of several kinds wait. `arrivals` are proofs
    of other kinds that come while a batch of this one is under way.
    """

    name: str
    title: str
    source: str
    partitions_per_proof: int
    shape: CircuitShape
    digest: str = ""
    priority: str = "normal"
    arrivals: tuple[Arrival, ...] = ()

    def arriving(self, partitions: int) -> tuple[tuple["Workload", int], ...]:
        """The arrivals of a batch of so many partitions: each kind, and after how many outcomes it comes."""
        return tuple((one.workload, int(one.after_share * partitions)) for one in self.arrivals)


def workload_names() -> tuple[str, ...]:
    """Names of the workloads that are shipped; `porep-shaped-N` is one for every N too."""
    return profile_names("workloads")


def load_workload(name_or_path: str | Path) -> Workload:
    """A workload by name, from a TOML file, or `porep-shaped-N` for a small one with a domain of 2^N rows.

    A file has either a section [circuit] with every number of the shape, or a section [scaled] with `log2_domain` or
    `constraints`: then the other numbers are in the ratios of the 32 GiB PoRep partition. Or it names another workload
    as its `batch`, and in sections [[arrival]] proofs of other kinds that come in between.

    Raises
    ------
    BadInput
        As `load_hardware`.
    """
    if (match := _SCALED_NAME.fullmatch(str(name_or_path))) and name_or_path not in workload_names():
        return scaled_workload(int(match[1]))
    path = find_profile("workloads", name_or_path)
    document, digest = read_toml(path)
    if "batch" in document:
        return _mixed(path, document, digest)
    refuse_unknown(path, "", document, {"title", "source", "partitions_per_proof", "priority", "circuit", "scaled"})
    if ("circuit" in document) == ("scaled" in document):
        raise BadInput(f"{path}: write one of the sections [circuit] and [scaled], or a batch with arrivals")
    title, source = (read_value(path, key, document, str, {}) for key in ("title", "source"))
    partitions = read_value(path, "partitions_per_proof", document, int, {"least": 1, "most": 10_000})
    priority = read_value(path, "priority", {"priority": PRIORITIES[0], **document}, str, {})
    if priority not in PRIORITIES:
        raise BadInput(f"{path}: field priority is {priority!r}; write one of {', '.join(PRIORITIES)}")
    if "scaled" in document:
        section = read_table(path, "scaled", document)
        shape = _scaled(path, section)
    else:
        shape = _circuit(path, read_table(path, "circuit", document))
    return Workload(path.stem, title, source, partitions, shape, digest, priority)


def _mixed(path: Path, document: Mapping[str, Any], digest: str) -> Workload:
    """A batch of one workload with arrivals of others."""
    refuse_unknown(path, "", document, {"title", "source", "batch", "arrival"})
    title, source, name = (read_value(path, key, document, str, {}) for key in ("title", "source", "batch"))
    entries = document.get("arrival")
    if not isinstance(entries, list) or not 1 <= len(entries) <= _MAX_ARRIVALS:
        raise BadInput(f"{path}: a batch needs 1 to {_MAX_ARRIVALS} sections [[arrival]]")
    batch, arrivals = _unmixed(path, "batch", name), []
    for number, entry in enumerate(entries, 1):
        prefix = f"arrival {number}."
        if not isinstance(entry, dict):
            raise BadInput(f"{path}: arrival must be sections [[arrival]]")
        refuse_unknown(path, prefix, entry, {"workload", "after_share"})
        kind = _unmixed(path, f"{prefix}workload", read_value(path, f"{prefix}workload", entry, str, {}))
        arrivals.append(Arrival(kind, read_value(path, f"{prefix}after_share", entry, float, {"most": 1})))
    return replace(batch, name=path.stem, title=title, source=source, digest=digest, arrivals=tuple(arrivals))


def _unmixed(path: Path, field: str, name: str) -> Workload:
    """A shipped workload that another file names; a mixed one is refused, so files cannot name each other in a ring."""
    if name.endswith(".toml"):
        raise BadInput(f"{path}: field {field} is {name!r}; write the name of a workload that is shipped")
    if not _SCALED_NAME.fullmatch(name) and "batch" in read_toml(find_profile("workloads", name))[0]:
        raise BadInput(f"{path}: field {field}: {name} has arrivals itself")
    return load_workload(name)


def scaled_shape(log2_domain: int, name: str = "") -> CircuitShape:
    """A circuit with the ratios of the 32 GiB PoRep partition and a domain of 2^`log2_domain` rows.

    Raises
    ------
    BadInput
        The domain is outside 2^6 … 2^32.
    """
    if not MIN_LOG2_DOMAIN <= log2_domain <= MAX_LOG2_DOMAIN:
        raise BadInput(f"log2_domain {log2_domain}: a PoRep-shaped circuit has {MIN_LOG2_DOMAIN} to {MAX_LOG2_DOMAIN}")
    return _in_ratio(2.0 ** (log2_domain - POREP_32G.domain.bit_length() + 1), name or f"porep-shaped-{log2_domain}")


def _in_ratio(ratio: float, name: str) -> CircuitShape:
    """The 32 GiB PoRep partition's circuit with all its counts multiplied."""
    counts = {
        key: max(1, round(getattr(POREP_32G, key) * ratio))
        for key in ("constraints", "aux", "a_density", "b_density", "nonzeros")
    }
    inputs = max(2, round(POREP_32G.inputs * ratio))
    return CircuitShape(name=name, inputs=inputs, tail_share=POREP_32G.tail_share, **counts)


def _scaled(path: Path, section: Mapping[str, Any]) -> CircuitShape:
    """The section [scaled]."""
    refuse_unknown(path, "scaled.", section, {"log2_domain", "constraints"})
    if ("log2_domain" in section) == ("constraints" in section):
        raise BadInput(f"{path}: write one of the fields scaled.log2_domain and scaled.constraints")
    if "log2_domain" in section:
        limits = {"least": MIN_LOG2_DOMAIN, "most": MAX_LOG2_DOMAIN}
        return scaled_shape(read_value(path, "scaled.log2_domain", section, int, limits), path.stem)
    limits = {"least": 1 << MIN_LOG2_DOMAIN, "most": (1 << MAX_LOG2_DOMAIN) - (1 << 16)}
    constraints = read_value(path, "scaled.constraints", section, int, limits)
    shape = _in_ratio(constraints / POREP_32G.constraints, path.stem)
    return replace(shape, constraints=constraints)


def scaled_workload(log2_domain: int, partitions_per_proof: int = 10) -> Workload:
    """A PoRep-shaped workload of any size, for live runs on small machines."""
    shape = scaled_shape(log2_domain)
    title = f"PoRep-shaped, domain 2^{log2_domain}"
    return Workload(shape.name, title, "the ratios of the 32 GiB PoRep partition", partitions_per_proof, shape)


def _circuit(path: Path, section: Mapping[str, Any]) -> CircuitShape:
    limits = dict.fromkeys(("constraints", "aux", "inputs", "a_density", "b_density"), 1 << MAX_LOG2_DOMAIN)
    limits["nonzeros"] = 1 << 40
    refuse_unknown(path, "circuit.", section, {*limits, "tail_share"})
    values = {
        key: read_value(path, f"circuit.{key}", section, int, {"least": 1, "most": most})
        for key, most in limits.items()
    }
    tail_share = read_value(path, "circuit.tail_share", section, float, {"most": 1})
    variables = values["aux"] + values["inputs"]
    for key in ("a_density", "b_density"):
        if values[key] > variables:
            raise BadInput(f"{path}: field circuit.{key} is {values[key]}, but there are {variables} variables")
    if values["constraints"] + values["inputs"] > 1 << MAX_LOG2_DOMAIN:
        raise BadInput(f"{path}: field circuit.constraints: the field has no domain above 2^{MAX_LOG2_DOMAIN} rows")
    return CircuitShape(name=path.stem, tail_share=tail_share, **values)
