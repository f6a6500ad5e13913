"""What a search found, as rows for people; the same for a terminal and for a notebook."""

from collections.abc import Sequence
from typing import Any

from cuzklab.tuning.ranking import Confirmed, Place
from cuzklab.tuning.search import Tuning
from cuzklab.units import format_size, percent

ANY = "–"


def ranking_rows(places: Sequence[Place], several_machines: bool = False) -> list[dict[str, Any]]:
    """One row a place: what it is, its figure with interval, how far behind, what it needs."""
    priced = any(place.found.cost_per_proof is not None for place in places)
    return [
        {
            "": f"{place.rank}{'' if place.rank == 1 else ' tie' if place.tie else ' near' if place.near else ''}",
            **knob_columns(place.found, several_machines),
            "s/proof": f"{place.found.batch_average_s:.2f}",
            "90 % of runs": _interval(place.found),
            "behind": ANY if place.rank == 1 else percent(place.behind, 1),
            "proofs/h": f"{place.found.proofs_per_hour:.1f}",
            **({"cost/proof": cost_words(place.found)} if priced else {}),
            "host peak": format_size(place.found.figures["peak_host_bytes"]),
            "VRAM peak": format_size(place.found.figures["peak_vram_bytes"]),
            "checked": _checked(place.found),
        }
        for place in places
    ]  # fmt: skip


def front_rows(front: Sequence[Confirmed], several_machines: bool = False) -> list[dict[str, Any]]:
    """One row a point of a Pareto front, from the least memory upwards."""
    return [
        {
            **knob_columns(one, several_machines), "s/proof": f"{one.batch_average_s:.2f}",
            "90 % of runs": _interval(one), "host peak": format_size(one.figures["peak_host_bytes"]),
            "VRAM peak": format_size(one.figures["peak_vram_bytes"]),
        }
        for one in front
    ]  # fmt: skip


def knob_columns(found: Confirmed, several_machines: bool) -> dict[str, str]:
    one = found.configuration
    machine = {"machine": one.machine} if several_machines else {}
    return {
        **machine, "design": one.design, "gw": str(one.gw), "pw": str(one.pw), "gt": str(one.gt or ANY),
        "lookahead": str(one.lookahead or "auto"), "VRAM": format_size(one.vram_bytes),
    }  # fmt: skip


def refusal_rows(found: Tuning) -> list[dict[str, Any]]:
    """How many configurations of each design were refused, and why."""
    counts: dict[tuple[str, str], list[str]] = {}
    for one, why in sorted(found.refused.items(), key=lambda item: item[0].label):
        counts.setdefault((one.design, why.partition(":")[0]), []).append(why)
    return [
        {"design": design, "why": reason, "configurations": len(each), "for instance": _cut(each[0].partition(": ")[2])}
        for (design, reason), each in counts.items()
    ]


def _cut(text: str) -> str:
    return text if len(text) <= 110 else f"{text[:109]}…"


def sentence(found: Tuning) -> str:
    """The answer in words."""
    if not found.throughput:
        return "No configuration can run: all were refused."
    best = found.throughput[0].found
    ties = [place for place in found.throughput[1:] if place.tie]
    words = (
        f"Best of {len(found.space.configurations):,}: {best.configuration.label}, simulated "
        f"{best.batch_average_s:.2f} s/proof (batch average, c={found.space.proofs}, j={found.space.in_flight})."
    )
    if ties:
        designs = dict.fromkeys(place.found.configuration.design for place in ties)
        others = "1 other" if len(ties) == 1 else f"{len(ties)} others"
        words += f" {others} cannot be told from it ({', '.join(designs)})."
    return words


def conditions_words(found: Tuning) -> str:
    fits = f" and {found.fits} near-equal fits" if found.fits else ""
    return (
        f"Simulated: batch average of c={found.space.proofs}, j={found.space.in_flight}, {found.space.workload.name}, "
        f"{found.seeds} seeds{fits}, the same for every configuration"
    )


def cost_words(one: Confirmed) -> str:
    return ANY if one.cost_per_proof is None else f"{one.cost_per_proof:.5f}"


def _interval(one: Confirmed) -> str:
    return ANY if one.interval_s is None else f"{one.interval_s[0]:.1f} to {one.interval_s[1]:.1f}"


def _checked(one: Confirmed) -> str:
    return {"safe": "safe", "unknown": "not to the end", "not asked": "no"}[one.verdict]


def points(found: Tuning, memory: str) -> list[dict[str, Any]]:
    """What was simulated at full length, for a figure: design, label, figure, and a kind of memory."""
    return [
        {
            "design": one.design, "label": one.label, "batch_average_s": result["batch_average_s"],
            "memory_bytes": result[memory],
        }
        for one, result in found.screened.items() if one not in found.refused
    ]  # fmt: skip


def front_points(front: Sequence[Confirmed], memory: str) -> list[dict[str, Any]]:
    """A Pareto front, for a figure."""
    return [
        {
            "design": one.configuration.design, "label": one.configuration.label, "interval_s": one.interval_s,
            "batch_average_s": one.batch_average_s, "memory_bytes": one.figures[memory],
        }
        for one in front
    ]  # fmt: skip


def tiles(found: Tuning) -> list[tuple[str, str]]:
    """The figures that carry the answer, with what they are."""
    if not found.throughput:
        return []
    best = found.throughput[0].found
    shown = [
        (f"{best.batch_average_s:.1f} s/proof", f"best: {best.configuration.label}"),
        (format_size(best.figures["peak_host_bytes"]), "peak of host memory of the best"),
    ]
    if found.cost:
        cheapest = found.cost[0].found
        shown.append((cost_words(cheapest), f"cost of a proof, cheapest: {cheapest.configuration.label}"))
    if len(found.designs) > 1:
        second = found.designs[1]
        label = second.found.configuration.label
        shown.append((percent(second.behind, 1), f"longer takes a proof with the next best design: {label}"))
    return shown


def claims(found: Tuning) -> list[dict[str, Any]]:
    """Findings of a search, for its record."""
    each = [
        {
            "claim": f"The best configuration of {place.found.configuration.design} takes "
            f"{place.found.batch_average_s:.2f} s/proof: {place.found.configuration.label}.",
            "sure": "simulated", "evidence": place.to_json(),
        }
        for place in found.designs
    ]  # fmt: skip
    refusals = [
        {
            "claim": f"{row['configurations']} configurations of {row['design']} are refused: {row['why']}.",
            "sure": "proved" if row["why"].startswith("checker") else "simulated", "evidence": row,
        }
        for row in refusal_rows(found)
    ]  # fmt: skip
    return each + refusals
