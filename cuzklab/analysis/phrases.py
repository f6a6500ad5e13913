"""Parts of sentences that several findings share: workers, what they hold, limits, conditions."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from cuzklab.analysis import vram
from cuzklab.analysis.case import CHECKED, Case
from cuzklab.analysis.designs import options_of, options_words
from cuzklab.analysis.frames import window
from cuzklab.trace import Run
from cuzklab.units import format_seconds, format_size


def worker(name: str, run: Run) -> str:
    """A worker's name without its device where the run has only one: ``w1``."""
    return re.sub(r"^gpu\d+\.(?=w\d)", "", name) if len(run.info.devices) <= 1 else name


def listing(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = list(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def merged(clauses: Iterable[str], common_words: int = 4) -> list[str]:
    """Clauses, said once, with neighbours joined that begin alike.

    ``is safe for at most 2 workers`` and ``is safe for at most 3 workers`` become
    ``is safe for at most 2 workers and 3 workers``: what they share is at least `common_words` words.
    """
    groups: list[list[list[str]]] = []
    for clause in dict.fromkeys(clauses):
        words = clause.split()
        if groups and _shared([*groups[-1], words]) >= common_words:
            groups[-1].append(words)
        else:
            groups.append([words])
    return [_joined(group) for group in groups]


def _shared(clauses: list[list[str]]) -> int:
    """Number of first words in which all agree; 0 where one clause would have no other words left."""
    columns = list(zip(*clauses))
    same = next((place for place, column in enumerate(columns) if len(set(column)) > 1), len(columns))
    return same if same < len(columns) else 0


def _joined(clauses: list[list[str]]) -> str:
    if len(clauses) == 1:
        return " ".join(clauses[0])
    same = _shared(clauses)
    return f"{' '.join(clauses[0][:same])} {listing(' '.join(words[same:]) for words in clauses)}"


def sentence_case(text: str) -> str:
    """A text with its first letter large."""
    return text[:1].upper() + text[1:]


def counted(number: int, noun: str) -> str:
    """``1 worker``, ``2 workers``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def held_by(holdings: pd.DataFrame, run: Run) -> str:
    """Who holds what, from rows of `vram.holdings`: ``w0 held d_bc and d_a (12.0 GiB), w1 d_a (4.00 GiB)``."""
    clauses = []
    for number, (owner, rows) in enumerate(holdings.groupby("worker", sort=False)):
        buffers = rows.groupby("buffer", sort=False).size()
        names = listing(name if count == 1 else f"{count} × {name}" for name, count in buffers.items())
        who = worker(owner, run) if owner else "nobody that the trace names"
        clauses.append(f"{who}{' held' if not number else ''} {names} ({format_size(rows['bytes'].sum())})")
    return ", ".join(clauses) or "nothing was held"


def failed_request(request: Mapping[str, Any], run: Run) -> str:
    """A request that did not fit, and why: a row of `vram.failed_requests` as a sentence without its full stop."""
    holdings = vram.holdings(run, request["event"])
    lock = f" under {request['lock_held']}" if request["lock_held"] else ""
    if request["short_bytes"] <= 0:
        return (
            f"{worker(request['worker'], run)}'s request for {request['buffer']}"
            f" ({format_size(request['requested_bytes'])}){lock} failed {moment(request['time_ns'], run)} although only"
            f" {format_size(request['live_bytes'])} of {format_size(request['limit_bytes'])} were live: more than"
            f" {format_size(-request['short_bytes'])} must have been kept by the memory pool or lost to fragmentation"
        )
    return (
        f"{worker(request['worker'], run)}'s request for {request['buffer']}"
        f" ({format_size(request['requested_bytes'])}){lock} failed {moment(request['time_ns'], run)}:"
        f" {held_by(holdings, run)}; {format_size(request['live_bytes'])} of {format_size(request['limit_bytes'])}"
        " were in use"
    )


def moment(time_ns: int, run: Run) -> str:
    """When, from the start of the run: ``at 14.0 ms``; in a counterexample ``in step 9``."""
    if run.info.time_unit == "step":
        return f"in step {time_ns}"
    return f"at {format_seconds((time_ns - window(run)[0]) * 1e-9)}"


def memory(limit_bytes: int | None) -> str:
    """A limit of device memory: ``on 16.0 GiB``."""
    return "on a device without a known limit" if limit_bytes is None else f"on {format_size(limit_bytes)}"


def device_of(run: Run, case: Case) -> str:
    """The device of a run, with what it stands for where it is scaled down: ``on 17.3 MiB (for 16.0 GiB)``."""
    stands_for = case.limit_bytes(run)
    limits = [int(device["vram_limit_bytes"]) for device in run.info.devices if device.get("vram_limit_bytes")]
    if not limits or min(limits) == stands_for:
        return memory(stands_for)
    return f"on {format_size(min(limits))} (for {format_size(stands_for)})"


def run_kind(run: Run, options: bool = True, more: str = "") -> str:
    """``the live run with gw 2``, ``the simulation with gw 3 (throttle)``, ``the check``.

    `more` stands with the options, so that no parenthesis follows another: ``with gw 3 (throttle; costs 0.9 %)``.
    """
    kind = {
        "live": "the live run", "imported": "the imported capture", "simulated": "the simulation",
        "counterexample": "the check", "check": "the check",
    }[run.info.origin]  # fmt: skip
    gpu_workers = run.info.conditions.get("gw")
    checked = gpu_workers is None or run.info.origin in CHECKED
    words = [options_words(options_of(run)) if options and not checked else "", more]
    inside = "; ".join(filter(None, words))
    return (kind if checked else f"{kind} with gw {gpu_workers}") + (f" ({inside})" if inside else "")


def in_run(run: Run, case: Case) -> str:
    """How a claim about one run begins: ``In the live run with gw 2 of phase9 on 16.0 GiB``."""
    return f"In {run_kind(run)} of {run.info.policy} {memory(case.limit_bytes(run))}"


def rows_of(workload: str) -> str:
    """The size of a circuit: ``2^20 rows`` of the shapes that are named by it, else the workload's name."""
    size = re.fullmatch(r"porep-shaped-(\d+)", workload)
    return f"2^{size[1]} rows" if size else workload


def differences(of: Mapping[str, tuple[object, object]]) -> str:
    """Conditions in which two runs differ: ``gw 3 against 2``."""
    return listing(f"{name} {mine} against {theirs}" for name, (mine, theirs) in of.items())
