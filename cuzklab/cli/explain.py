"""What `simulate --explain` prints: the gain of a tenth more of each resource."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuzklab.cli.options import emit, print_table
from cuzklab.progress import progress

if TYPE_CHECKING:
    from cuzklab.simulate.explain import Explanation


def explain_policy(
    policy: Any, hardware: str, workload: str, proofs: int, in_flight: int | None, knobs: Mapping[str, int],
    vram_bytes: int | None, first_seed: int, seeds: int, as_json: bool,
) -> None:  # fmt: skip
    """Explain a simulation of a policy."""
    from cuzklab.profiles import load_hardware, load_workload
    from cuzklab.simulate.explain import explain
    from cuzklab.simulate.setup import Setup

    setup = Setup(
        policy, load_hardware(hardware), load_workload(workload), proofs, proofs if in_flight is None else in_flight,
        knobs.get("gw", 2), knobs.get("pw", 10), knobs.get("lookahead"), vram_bytes=vram_bytes,
    )  # fmt: skip
    with progress(f"explain {policy.name}", quiet=as_json) as report:
        found = explain(setup, seeds=seeds, first_seed=first_seed, report=report)
    _print(found, as_json)


def explain_stored(place: Path, hardware: str | None, seeds: int, as_json: bool) -> None:
    """Explain a stored run."""
    from cuzklab.simulate.explain import explain_run

    with progress(f"explain {place.name}", quiet=as_json) as report:
        found = explain_run(place, hardware=hardware, seeds=seeds, report=report)
    _print(found, as_json)


def _print(found: "Explanation", as_json: bool) -> None:
    from cuzklab.simulate.explain import twin_words

    if as_json:
        emit(found.to_json())
        return
    conditions = found.conditions
    knobs = ", ".join(f"{name}={conditions[name]}" for name in ("c", "j", "pw", "gw"))
    print(f"EXPLANATION of {found.of}: {conditions['policy']} on {conditions['hardware']}, {knobs}. {found.sentence}")
    print_table(found.rows())
    if words := twin_words(found):
        print(f"note: {words}; the gains are those of the twin")
    print(
        f"note: simulated; gains of throughput by the batch average, {found.seeds} seeds, the same draws with and "
        "without the change; 90 % intervals over seeds"
    )
