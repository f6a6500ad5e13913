"""What to do with the candidate, by stated rules on the findings.

The rules look at a finding's aspect, role, subject and limit, never at the name of a policy or of a rule:

1. Something shows that the candidate cannot run on the device in question: **revert** if the baseline is known to work
   there, else **tune**.
2. It runs there, and some comparisons show a gain above the noise and none a loss: **keep**; **tune** if findings on
   its own mechanism speak against it. What other comparisons tell is named beside
   it: a difference below the noise, more host memory.
3. Some show a loss and none a gain: **revert**. Some show each: **tune**.
4. All are below the noise: **revert** if findings speak against it (a more complicated design for nothing), else
   **tune**.
5. Otherwise **undecided**, with what is missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cuzklab.analysis.case import Case, metrics_of
from cuzklab.analysis.model import Finding, Verdict
from cuzklab.analysis.phrases import listing, memory, merged, rows_of, sentence_case
from cuzklab.trace import Run
from cuzklab.units import format_size

FORMAT_VERSION = 1


def verdict(case: Case, findings: Sequence[Finding]) -> Verdict:
    """Decide by the rules of this module."""
    of_candidate = [found for found in findings if found.subject == case.candidate]
    here = [found for found in of_candidate if case.is_here(found.vram_bytes)]
    elsewhere = [found for found in of_candidate if found.vram_bytes and not case.is_here(found.vram_bytes)]
    infeasible = _pick(here, "feasibility", "against")
    against = [found for found in findings if found.aspect == "mechanism" and found.role == "against"]
    gains, losses = _pick(here, "performance", "supports"), _pick(here, "performance", "against")
    unresolved = _pick(here, "performance", "context")
    untold = [*unresolved, *(found for found in _pick(here, "coverage", "context") if found.figures)]
    where = memory(case.here_bytes)

    if infeasible:
        return _infeasible(case, findings, infeasible, against, elsewhere)
    if gains and not losses:
        hazards = [found for found in against if found.subject == case.candidate]
        if hazards:
            return _say(
                "tune", f"Tune {case.candidate} {where}", [*gains, *untold, *hazards], case, hazards[0].would_change
            )
        works = _pick(here, "feasibility", "supports")
        return _say("keep", f"Keep {case.candidate} {where}", [*gains, *untold, *works], case)
    if losses and not gains:
        return _say("revert", f"Revert {case.candidate} {where}", [*losses, *against], case)
    if gains and losses:
        return _say("tune", f"Tune {case.candidate} {where}: comparisons disagree", [*gains, *losses], case)
    if unresolved:
        if against:
            return _say("revert", f"Revert {case.candidate} {where}", [*unresolved, *against], case)
        return _say("tune", f"Tune {case.candidate} {where}", unresolved, case)
    return _undecided(case, findings, here)


def _infeasible(
    case: Case,
    findings: Sequence[Finding],
    infeasible: list[Finding],
    against: list[Finding],
    elsewhere: list[Finding],
) -> Verdict:
    of_baseline = [found for found in findings if found.subject == case.baseline and case.is_here(found.vram_bytes)]
    fails = _pick(of_baseline, "feasibility", "supports")
    works = _pick(of_baseline, "feasibility", "context")
    roomier = sorted(
        (found for found in elsewhere if found.aspect == "feasibility" and found.role != "against"),
        key=lambda found: found.vram_bytes or 0,
    )[:1]
    where = memory(case.here_bytes)
    change = "a device with more memory" + (f": it {roomier[0].gist}" if roomier else " on which it is shown to work")
    if works and not fails:
        because = [*infeasible, *works, *against, *roomier]
        return _say("revert", f"Revert {case.candidate} {where}", because, case, change)
    because = [*infeasible, *fails, *roomier]
    head = f"Tune {case.candidate} {where}: as it is it cannot stay, and " + (
        f"{case.baseline} fails there too" if fails else f"nothing shows that {case.baseline} works there"
    )
    return _say("tune", head, because, case, change)


def _undecided(case: Case, findings: Sequence[Finding], here: list[Finding]) -> Verdict:
    if not findings:
        reason = f"there is no finding about {case.candidate} or {case.baseline}"
        change = f"runs of {case.candidate} and {case.baseline} under the same conditions, or a check"
        return Verdict("undecided", f"Undecided: {reason}.", (), change)
    lacking = [found for found in here if found.aspect == "coverage"]
    if lacking:
        return _say("undecided", "Undecided", lacking, case, lacking[0].would_change)
    known = "; ".join(f"it {found.gist}" for found in here[:3]) or "nothing is known of it there"
    sentence = (
        f"Undecided: no figure compares {case.candidate} with {case.baseline} {memory(case.here_bytes)}; {known}."
    )
    change = f"a completed run of {case.candidate} {memory(case.here_bytes)} beside one of {case.baseline}"
    return Verdict("undecided", sentence, _ids(here), change)


def _pick(findings: Iterable[Finding], aspect: str, role: str) -> list[Finding]:
    """Findings of an aspect and role, proofs first, then measurements."""
    order = ("proved", "measured", "simulated")
    chosen = [found for found in findings if found.aspect == aspect and found.role == role]
    return sorted(chosen, key=lambda found: order.index(found.certainty))


def _say(decision: str, head: str, because: list[Finding], case: Case, would_change: str = "") -> Verdict:
    clauses = merged(f"{'it' if found.subject == case.candidate else found.subject} {found.gist}" for found in because)
    sentence = f"{head}: {'; '.join(clauses)}." if clauses else f"{head}."
    basis = grounds(case)
    return Verdict(
        decision, f"{sentence} {basis}".strip(), _ids(because), would_change or because[0].would_change, head,
        tuple(clauses), basis,
    )  # fmt: skip


def grounds(case: Case) -> str:
    """Cards, sizes and workers of the runs of both designs at the limit in question, as a sentence.

    ``Live: 2^20 rows on NVIDIA H200 that plays a card of 16.0 GiB, gw 2; simulated: porep-32g on rtx5070ti-7995wx,
    gw 2 and 3; checked: porep-32g, 2 workers.``
    """
    both = [
        run for run in case.runs
        if run.info.policy in (case.candidate, case.baseline) and case.is_here(case.limit_bytes(run))
    ]  # fmt: skip
    told: dict[str, dict[str, set[int]]] = {}
    for run in both:
        word, setting = _setting(case, run)
        workers = run.info.conditions.get("workers") or run.info.conditions.get("gw")
        told.setdefault(word, {}).setdefault(setting, set()).update([int(workers)] if workers else [])
    parts = []
    for word in dict.fromkeys(_BY_ORIGIN.values()):
        for setting, counts in told.get(word, {}).items():
            numbers = listing(map(str, sorted(counts)))
            gw = f"{numbers} workers" if word == "checked" else f"gw {numbers}"
            parts.append(f"{word}: {', '.join(filter(None, (setting, gw if counts else '')))}")
    return f"{sentence_case('; '.join(parts))}." if parts else ""


_BY_ORIGIN = {
    "live": "live", "imported": "captured", "simulated": "simulated", "check": "checked", "counterexample": "checked",
}  # fmt: skip


def _setting(case: Case, run: Run) -> tuple[str, str]:
    """How a run came about, and what ran on what."""
    conditions, word = run.info.conditions, _BY_ORIGIN[run.info.origin]
    size = rows_of(str(conditions.get("workload") or ""))
    names = listing(dict.fromkeys(str(one["name"]) for one in run.info.devices if one.get("name")))
    if word == "checked":
        return word, size
    if word == "simulated":
        return word, " on ".join(filter(None, (size, str(conditions.get("hardware") or ""))))
    if conditions.get("backend") == "host":
        names = "an emulated device"
    limits = {int(one["vram_limit_bytes"]) for one in run.info.devices if one.get("vram_limit_bytes")}
    here = case.limit_bytes(run)
    plays = f" that plays a card of {format_size(here)}" if names and here and limits != {here} else ""
    return word, " on ".join(filter(None, (size, names + plays)))


def _ids(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found.id for found in findings))


def verdict_json(
    case: Case, findings: Sequence[Finding], decided: Verdict, provenance: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Verdict, findings, figures, runs and their conditions as plain values.

    Parameters
    ----------
    provenance : mapping
        What the caller knows: the command, the versions, hashes of the notebook.

    Returns
    -------
    dict
        ``format_version, question, candidate, baseline, vram_bytes, verdict, findings, figures, runs, provenance``.
        `figures` lists every typed figure that a run was stored with, with the run's name.
    """
    return {
        "format_version": FORMAT_VERSION,
        "question": case.question,
        "candidate": case.candidate,
        "baseline": case.baseline,
        "vram_bytes": case.here_bytes,
        "verdict": decided.to_json(),
        "findings": [found.to_json() for found in findings],
        "figures": [
            {"run": run.name, "policy": run.info.policy, **value.to_json()}
            for run in case.runs
            for value in metrics_of(run)
        ],
        "runs": [_run_json(case, run) for run in case.runs],
        "provenance": dict(provenance or {}),
    }


def _run_json(case: Case, run: Run) -> dict[str, Any]:
    info = run.info
    return {
        "name": run.name,
        "title": info.title,
        "origin": info.origin,
        "policy": info.policy,
        "outcome": info.outcome,
        "explanation": info.explanation,
        "vram_bytes": case.limit_bytes(run),
        "conditions": dict(info.conditions),
        "devices": [dict(device) for device in info.devices],
        "availability": {table: dict(state) for table, state in info.availability.items()},
        "inputs": dict(info.inputs),
        "created": info.created,
        "machine": dict(info.machine),
        "versions": dict(info.versions),
    }
