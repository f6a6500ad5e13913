"""Which design a run is of: its policy and the policy's options.

A check has options together, under ``options``; live runs and simulations have them among their other conditions, of
which `OF_THE_ENGINE` are those that every design has.
"""

from collections.abc import Mapping
from typing import Any

from cuzklab.analysis.case import CHECKED
from cuzklab.trace import Run

OF_THE_ENGINE = frozenset({
    *("policy", "c", "j", "pw", "gw", "gt", "partitions", "lookahead", "gpus", "vram_bytes", "vram_equivalent_bytes"),
    *("workload", "hardware", "backend", "seed", "repeat", "urgent", "capture", "margin_bytes", "report", "origin"),
    *("devices", "processor", "cores"),
})  # fmt: skip


def options_in(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """A design's options among the conditions of a run."""
    if "options" in conditions:
        return dict(conditions["options"] or {})
    return {name: value for name, value in conditions.items() if name not in OF_THE_ENGINE}


def options_of(run: Run) -> dict[str, Any]:
    """A run's options of its design; none where it has no design (a capture of a foreign program)."""
    if not run.info.policy:
        return {}
    if run.info.origin in CHECKED:
        return dict(run.info.conditions.get("options") or {})
    return options_in(run.info.conditions)


def design_name(policy: str, options: Mapping[str, Any]) -> str:
    """A policy with its options: ``phase10_nested (on_full=wait)``, ``phase11 (g2_threads=1, throttle)``.

    Switches that are off are left out; where all are, it says so: ``phase11 (all options off)``.
    """
    words = options_words(options)
    return f"{policy} ({words})" if words else policy


def options_words(options: Mapping[str, Any]) -> str:
    """Options as words: ``g2_threads=1, throttle``; empty where a design has none."""
    on = [name if value is True else f"{name}={value}" for name, value in options.items() if value]
    return ", ".join(on) or ("all options off" if options else "")


def design(run: Run) -> str:
    """A run's policy with its options, as `design_name` writes them."""
    return design_name(run.info.policy, options_of(run))
