"""What runs are called in a report: by their design and what they were run on, not by where they are stored."""

import re
from collections.abc import Sequence

from cuzklab.analysis.designs import design, design_name, options_in
from cuzklab.analysis.history import SeriesJudgement
from cuzklab.trace import Run
from cuzklab.units import format_size


def label(run: Run) -> str:
    """A run's design, device memory and workers: ``phase9, 16 GiB, 2 workers``; its title where it has no design.

    The device memory is that of the device which a scaled-down run stands for.
    """
    if not run.info.policy:
        return run.info.title or run.name
    conditions = run.info.conditions
    limits = [int(device["vram_limit_bytes"]) for device in run.info.devices if device.get("vram_limit_bytes")]
    limit_bytes = conditions.get("vram_equivalent_bytes") or min(limits, default=None)
    workers = conditions.get("gw") or conditions.get("workers")
    parts = [design(run)]
    if limit_bytes:
        parts.append(short_size(int(limit_bytes)))
    if workers:
        parts.append(f"{workers} worker{'s' if workers != 1 else ''}")
    return ", ".join(parts)


def figure_name(series: SeriesJudgement) -> str:
    """A figure over many runs: ``phase9, 16 GiB, 2 workers, live: batch average``."""
    conditions = series.conditions
    workers = conditions.get("gw") or conditions.get("workers")
    limits = [limit for _, limit in conditions.get("devices", ()) if limit]
    limit_bytes = conditions.get("vram_equivalent_bytes") or min(limits, default=None)
    parts = [
        design_name(series.policy, options_in(conditions)), short_size(int(limit_bytes)) if limit_bytes else "",
        f"{workers} worker{'s' if workers != 1 else ''}" if workers else "", str(conditions.get("origin", "")),
    ]  # fmt: skip
    return f"{', '.join(filter(None, parts))}: {series.label or kind_name(series.kind)}"


def kind_name(kind: str) -> str:
    """A kind of figure as people call it: ``batch average``, ``peak VRAM``."""
    return {"peak_vram": "peak VRAM", "peak_host": "peak host memory"}.get(kind, kind.replace("_", " "))


def natural_order(text: str) -> tuple[object, ...]:
    """A key that sorts numbers in names by their value: phase9 before phase10."""
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", text))


def labels(runs: Sequence[Run]) -> list[str]:
    """A label for each of some runs; those that would be equal are numbered."""
    plain = [label(run) for run in runs]
    return [
        text if plain.count(text) == 1 else f"{text}, no. {plain[: place + 1].count(text)}"
        for place, text in enumerate(plain)
    ]


def short_size(size_bytes: float) -> str:
    """A size without decimals that say nothing: ``16 GiB``."""
    return format_size(size_bytes).replace(".00 ", " ").replace(".0 ", " ")


def sentence(words: str) -> str:
    """Words as a sentence: a full stop at the end."""
    return words if not words or words[-1] in ".!?" else f"{words}."
