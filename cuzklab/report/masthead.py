"""What stands above and below a page's title: what kind of document it is, when it was made, and where its runs ran."""

from collections.abc import Mapping
from typing import Any

from cuzklab import __version__
from cuzklab.trace import Run

POST_MORTEM, SIMULATION, REPORT, INDEX = "post-mortem", "simulation", "report", "index"
# Of a record's runs, those in which something really happened.
HAPPENED = ("live", "imported")
# Two machines are told apart by these; a kernel's release may change on one.
_IDENTIFYING = ("processor", "cores", "memory_bytes")


def kind_of(record: Mapping[str, Any]) -> str:
    """What a report is, from its record: a post-mortem of real runs, a simulation, or another report."""
    origins = {run["origin"] for run in record["runs"]}
    return POST_MORTEM if origins.intersection(HAPPENED) else SIMULATION if "simulated" in origins else REPORT


def machine_of(run: Run) -> dict[str, Any]:
    """Where a run ran: facts of its machine, and its GPUs by name where it used any."""
    info = run.info
    if info.origin == "imported" or info.conditions.get("backend") == "cuda":
        names = ", ".join(dict.fromkeys(str(one["name"]) for one in info.devices if one.get("name")))
        return {**info.machine, **({"gpus": names} if names else {})}
    return dict(info.machine)


def note_of(record: Mapping[str, Any]) -> str:
    """The line under the title: when, by what and where a report was made, and where its runs ran if elsewhere."""
    here = record.get("machine", {})
    machines = [run.get("machine", {}) for run in record["runs"] if run["origin"] in HAPPENED]
    named = list(dict.fromkeys(_named(one) for one in machines))
    if any(_elsewhere(one, here) for one in machines):
        where = f"report made on {_named(here)} · runs from {'; '.join(named)}"
    else:
        where = "; ".join(named) or _named(here)
    remark = f" · {record['remark']}" if record.get("remark") else ""
    return f"{record['created'].replace('T', ' ').removesuffix('+00:00')} UTC · cuzklab {__version__} · {where}{remark}"


def _elsewhere(machine: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether a run's machine is another than the one that made the report, or is not known to be the same."""
    told = [name for name in _IDENTIFYING if name in machine]
    return not told or any(machine[name] != here.get(name) for name in told)


def _named(machine: Mapping[str, Any]) -> str:
    cores = machine.get("cores")
    parts = [machine.get("processor"), f"{cores} cores" if cores else "", machine.get("gpus")]
    return ", ".join(str(part) for part in parts if part) or "a machine that is not known"
