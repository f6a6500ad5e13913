"""Verbs that measure: bench kernels."""

import sys
from typing import Annotated, Any

import typer

from cuzklab.cli.help import PROOFS, Verbs
from cuzklab.cli.options import Backend, Json, Threads, app, backend_in_force, emit, print_table
from cuzklab.errors import BadInput
from cuzklab.progress import progress

bench = typer.Typer(
    cls=Verbs, help="What kernels, whole proofs and recording cost on this machine, beside peers.", no_args_is_help=True
)
app.add_typer(bench, name="bench", rich_help_panel=PROOFS)

_HOST_REPEATS, _CUDA_REPEATS = 5, 9


@bench.command("kernels")
def bench_kernels(
    backend: Backend = "auto",
    sizes: Annotated[
        str, typer.Option(help="Powers of two: 16,18 or a range 16:18; each kernel has its own by default.")
    ] = "",
    kernels: Annotated[str, typer.Option(help="Names with commas between; all by default.")] = "",
    threads: Threads = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs of each, of which the median counts; 5 (host) or 9 (cuda).")
    ] = None,
    phases: Annotated[bool, typer.Option("--phases", help="cuda: the time of each CUDA kernel, too.")] = False,
    as_json: Json = False,
) -> None:
    """Time the kernels: median, minimum, rate, ratio to the floor of this machine, and peers where they are known.

    The floor is what the machine's multiplier, measured before, would take for the arithmetic alone. The host's peer
    (blst, extra `bench`) runs in the same run; a GPU's peers were measured once, on the card that is named.
    """
    names, powers = [name for name in kernels.split(",") if name], powers_of(sizes)
    if backend_in_force(backend) == "cuda":
        _cuda(names, powers, repeats or _CUDA_REPEATS, phases, as_json)
    else:
        if phases:
            raise BadInput("--phases: the host backend has no phases; it goes with --backend cuda")
        _host(names, powers, threads, repeats or _HOST_REPEATS, as_json)


def _host(names: list[str], powers: list[int] | None, threads: int | None, repeats: int, as_json: bool) -> None:
    from cuzklab.backends import peers
    from cuzklab.backends.bench import KERNELS
    from cuzklab.backends.bench import bench_kernels as run_bench
    from cuzklab.trace.store import machine_facts

    if unknown := set(names) - set(KERNELS):
        raise BadInput(f"--kernels: no host kernel {', '.join(sorted(unknown))}; there are: {', '.join(KERNELS)}")
    with progress("bench", quiet=as_json and not sys.stderr.isatty()) as show:
        rows = run_bench(
            kernels=names or KERNELS, log2_sizes=powers, threads=threads, repeats=repeats, progress=show
        )  # fmt: skip
    device = str(machine_facts()["processor"])
    if as_json:
        emit({"backend": "host", "device": device, "rows": rows})
        return
    missing = "no peer: blst is not installed (pip install 'cuzklab[bench]')"
    beside = missing if peers.blst() is None else "peers interleaved"
    print(f"host backend on {device}; medians of {repeats}, {beside}")
    print_table([_shown(row, threads=row["threads"]) for row in rows])


def _cuda(names: list[str], powers: list[int] | None, repeats: int, phases: bool, as_json: bool) -> None:
    from cuzklab.backends.cuda import bench as cuda_bench
    from cuzklab.units import format_size

    with progress("bench", quiet=as_json and not sys.stderr.isatty()) as show:
        found = cuda_bench.bench_kernels(
            kernels=names or cuda_bench.KERNELS, log2_sizes=powers, repeats=repeats, with_phases=phases, progress=show
        )
    if as_json:
        emit({"backend": "cuda", **found})
        return
    versions = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["versions"].items())
    print(f"cuda backend on {found['device']} ({versions}); medians of {repeats}, data on the device unless pinned")
    rates = found["ceilings"]
    print(
        f"measured before: {rates['wide_multiply_adds'] / 1e12:.2f} T wide multiply-adds/s, "
        f"{rates['fp_products'] / 1e9:.1f} G Fp products/s, {rates['fr_products'] / 1e9:.1f} G Fr products/s, "
        f"{rates['mixed_additions'] / 1e9:.2f} G mixed additions/s, copy {rates['bytes_copied'] / 1e12:.2f} TB/s"
    )
    print_table([_shown(row, minimum=row["min_ms"], vram=format_size(row["peak_vram_bytes"])) for row in found["rows"]])
    for row in found["rows"] if phases else ():
        times = "  ".join(f"{name} {ms:.3f}" for name, ms in row["phases"].items())
        print(f"{row['kernel']} 2^{row['log2n']}, ms: {times}")
    print(found["peers"])
    for left_out in found["skipped"]:
        print(f"left out: {left_out['kernel']} 2^{left_out['log2n']}: {left_out['why']}", file=sys.stderr)


def _shown(row: dict[str, Any], *, threads: int | None = None, minimum: float = 0, vram: str = "") -> dict[str, Any]:
    """A row for people."""
    from cuzklab.units import format_seconds

    shown: dict[str, Any] = {"kernel": row["kernel"], "size": f"2^{row['log2n']}"}
    if threads is not None:
        shown["threads"] = threads
    shown["median"] = format_seconds(row["median_ms"] / 1e3)
    if minimum:
        shown["minimum"] = format_seconds(minimum / 1e3)
    shown["rate"] = _rate(row["rate"], row["rate_unit"])
    shown["of floor"] = f"{row['median_ms'] / row['floor_ms']:.2f}" if row["floor_ms"] else ""
    shown["peer"] = row["peer"] or ""
    shown["peer time"] = format_seconds(row["peer_ms"] / 1e3) if row["peer_ms"] else ""
    shown["of peer"] = f"{row['median_ms'] / row['peer_ms']:.2f}" if row["peer_ms"] else ""
    if vram:
        shown["peak VRAM"] = vram
    return shown


def powers_of(text: str) -> list[int] | None:
    """Powers of two given by the user; None where none are."""
    if not text:
        return None
    first, colon, last = text.partition(":")
    values = range(int(first), int(last) + 1) if colon and first.isdigit() and last.isdigit() else None
    if values is None and all(part.isdigit() for part in text.split(",")):
        values = [int(part) for part in text.split(",")]
    if not values or not all(4 <= value <= 27 for value in values):
        raise BadInput(f"--sizes {text!r}: write powers of two between 4 and 27, like 16,18 or 16:18")
    return list(values)


def _rate(per_second: float, what: str) -> str:
    """A rate with three digits: ``104 k points/s``."""
    for name, unit in (("G ", 1e9), ("M ", 1e6), ("k ", 1e3)):
        if per_second >= unit:
            return f"{per_second / unit:.3g} {name}{what}/s"
    return f"{per_second:.3g} {what}/s"
