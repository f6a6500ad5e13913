"""Verbs that place kernels under the roof of their machine and try changes of them: bench roofline, bench trial."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.benches import bench, powers_of
from cuzklab.cli.options import Json, backend_in_force, emit, print_table
from cuzklab.errors import BadInput
from cuzklab.progress import progress
from cuzklab.units import percent

_MOST_BYTES = 4 << 20
_DEEPEST = 8
_FIELDS = {"edits": list, "macros": dict, "options": dict}


@bench.command("roofline")
def bench_roofline(
    backend: Annotated[str, typer.Option(help="cuda, host, or auto (cuda where there is a GPU).")] = "auto",
    sizes: Annotated[str, typer.Option(help="Powers of two: 10,12 or a range 10:14.")] = "",
    kernels: Annotated[str, typer.Option(help="Names with commas between; all by default.")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each, of which the median counts.")] = 5,
    as_json: Json = False,
) -> None:
    """Rate and arithmetic intensity of each kernel, under what this machine's multiplier and memory allow."""
    from cuzklab.backends import roofline

    where = backend_in_force(backend)
    powers = powers_of(sizes) or ([16, 20, 24] if where == "cuda" else [10, 12])
    names = [name for name in kernels.split(",") if name] or None
    with progress("roofline") as show:
        found = roofline.measure(where, kernels=names, log2_sizes=powers, repeats=repeats, progress=show)
    if as_json:
        emit(asdict(found))
        return
    print(f"{found.backend} backend on {found.device}, {found.conditions}; operations: {found.unit}")
    print_table(
        [
            {"kernel": row["kernel"], "size": f"2^{row['log2n']}", "median ms": f"{row['median_ms']:.3f}",
             "G operations/s": f"{row['operations_per_s'] / 1e9:.2f}", "of the roof": percent(row["roof_share"], 0)}
            for row in found.rows
        ]
    )  # fmt: skip


@bench.command("trial")
def bench_trial(
    kernel: Annotated[str, typer.Argument(help="A kernel of the backend's bench, like msm_g1.")],
    change: Annotated[
        Path,
        typer.Option(
            "--change", metavar="FILE", help='JSON: {"edits": [{"file", "old", "new"}], "macros": {}, "options": {}}.'
        ),
    ],
    size: Annotated[int, typer.Option("--log2-size", min=4, max=27, help="log2 of the size.")] = 12,
    backend: Annotated[str, typer.Option(help="cuda, host, or auto (cuda where there is a GPU).")] = "auto",
    repeats: Annotated[int, typer.Option(min=1, help="Timed calls of each, in turns.")] = 7,
    as_json: Json = False,
) -> None:
    """Build a changed kernel beside the shipped one, test it, and time both in turns: exit status 1 if it is wrong."""
    from cuzklab.backends import trial

    with progress(f"trial {kernel}") as show:
        try:
            rows = trial.compare(
                kernel, size, _change(change), backend=backend_in_force(backend), repeats=repeats, progress=show
            )  # fmt: skip
        except RuntimeError as error:
            print(f"cuzklab: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
    if as_json:
        emit({"kernel": kernel, "log2n": size, "rows": rows})
        return
    print_table(
        [
            {"variant": row["variant"], "median ms": f"{row['median_ms']:.3f}", "minimum ms": f"{row['min_ms']:.3f}",
             "time to shipped": f"{row['time_ratio']:.3f}"}
            for row in rows
        ]
    )  # fmt: skip


def _depth(content: bytes) -> int:
    """How deep brackets are nested outside of texts; asked before a parser that would recurse as deep."""
    deepest = depth = 0
    for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", content)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _change(path: Path) -> Any:
    """The change that a file describes."""
    from cuzklab.backends.trial import Change, Edit

    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise BadInput(f"{path}: larger than {_MOST_BYTES} bytes, which no change is")
        if _depth(content) > _DEEPEST:
            raise BadInput(f"{path}: not JSON of a change: it is nested more than {_DEEPEST} deep")
        document = json.loads(content)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict) or not set(document) <= set(_FIELDS):
        raise BadInput(f"{path}: write an object with the fields {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if not isinstance(document.get(name, kind()), kind):
            raise BadInput(f"{path}: field {name} must be {'a list' if kind is list else 'an object'}")
    edits = document.get("edits", [])
    for number, edit in enumerate(edits):
        if not isinstance(edit, dict) or set(edit) != {"file", "old", "new"}:
            raise BadInput(f"{path}: edits[{number}]: an edit has the fields file, old, new")
        if not all(isinstance(value, str) for value in edit.values()) or not edit["old"]:
            raise BadInput(f"{path}: edits[{number}]: file, old and new are text, and old is not empty")
    macros = document.get("macros", {})
    for source, values in macros.items():
        if not isinstance(values, dict) or not all(type(value) is int for value in values.values()):
            raise BadInput(f"{path}: macros.{source}: write whole numbers by name")
    return Change([Edit(**edit) for edit in edits], macros, document.get("options", {}))
