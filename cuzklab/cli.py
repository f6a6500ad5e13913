"""The command line: one verb a command, thin. Heavy imports happen inside commands.

Exit status: 0 done, 1 the thing asked about failed (an unsafe design, an invalid proof), 2 bad usage or bad input.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.errors import BadInput
from cuzklab.progress import progress

app = typer.Typer(
    name="cuzklab",
    help=__doc__.partition("\n")[0].replace("The command line", "A performance lab for GPU Groth16 proving pipelines"),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
circuit = typer.Typer(help="Build the shipped circuits, or tell the sizes and densities of one.", no_args_is_help=True)
bench = typer.Typer(help="Benchmarks.", no_args_is_help=True)
runs = typer.Typer(help="Stored runs: list, show, query.", no_args_is_help=True)
app.add_typer(circuit, name="circuit")
app.add_typer(bench, name="bench")
app.add_typer(runs, name="runs")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", metavar="NAME=VALUE", help="A parameter; may be given several times.")
]
Vram = Annotated[str, typer.Option(help="Device memory, like 16GiB.")]
Backend = Annotated[str, typer.Option(help="Where stages run: auto or host.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default.")]


def main() -> None:
    """Entry point: bad input becomes one line on standard error and exit status 2."""
    from cuzklab.policies import UnknownPolicy
    from cuzklab.trace.store import RunError

    try:
        app()
    except (BadInput, UnknownPolicy, RunError) as error:
        print(f"cuzklab: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        print("cuzklab: interrupted; nothing half written was kept", file=sys.stderr)
        raise SystemExit(130) from None


def _emit(value: Any) -> None:
    print(json.dumps(value, indent=1, default=str))


def _parameters(pairs: list[str] | None) -> dict[str, str]:
    values = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadInput(f"-p {pair!r}: write it NAME=VALUE")
        values[name] = value
    return values


def _size(text: str, option: str) -> int:
    from cuzklab.units import parse_size

    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    if size_bytes <= 0:
        raise BadInput(f"{option}: must be more than nothing")
    return size_bytes


# --- proofs ----------------------------------------------------------------------------------------------------------

InputFile = Annotated[Path, typer.Option(exists=False, dir_okay=False)]


@app.command()
def setup(
    r1cs: Annotated[Path, typer.Option(help="Circuit, as circom writes it (.r1cs or .r1cs.xz).")],
    seed: Annotated[str, typer.Option(help="Whatever the secrets are drawn from.")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Key to write (.zkey).")],
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a TEST KEY for a circuit. Whoever has the seed can forge proofs."""
    from cuzklab.prover.files import read_r1cs, write_zkey
    from cuzklab.prover.setup import setup as make_key

    system = read_r1cs(r1cs)
    with progress("setup") as report:
        key = make_key(system, seed, threads=threads or _cores(), progress=lambda step, share: report(share, step))
        write_zkey(out, key)
    warning = "TEST KEY: whoever has the seed can forge proofs; never use it for anything of value"
    print(f"cuzklab: {warning}", file=sys.stderr)
    if as_json:
        _emit({"key": str(out), "test_only": True, "constraints": system.constraints, "domain": key.domain})
    else:
        print(f"{out}: test key for {system.constraints:,} constraints, domain {key.domain:,}")


@app.command()
def prove(
    key: Annotated[Path, typer.Option(help="Proving key (.zkey).")],
    witness: Annotated[Path, typer.Option(help="Witness (.wtns or .wtns.xz).")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Proof to write (JSON as snarkjs reads it).")],
    public: Annotated[Path | None, typer.Option(help="Also write the public values here (JSON).")] = None,
    r1cs: Annotated[Path | None, typer.Option(help="The circuit, to learn which constraint fails.")] = None,
    r: Annotated[str | None, typer.Option(help="Randomness, decimal; for tests only.")] = None,
    s: Annotated[str | None, typer.Option(help="Randomness, decimal; for tests only.")] = None,
    backend: Backend = "auto",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a Groth16 proof over BLS12-381 and verify it before it is written."""
    from cuzklab.prover.files import read_r1cs, read_witness, read_zkey, write_proof, write_public
    from cuzklab.prover.keycheck import check_key
    from cuzklab.prover.prove import prove as make_proof

    _host_only(backend)
    proving_key, values = read_zkey(key), read_witness(witness)
    system = read_r1cs(r1cs) if r1cs else None
    with progress("prove") as report:
        check_key(key, threads=threads, progress=lambda step, done, of: report(0.5 * done / max(of, 1), f"key: {step}"))
        proof, outputs = make_proof(
            proving_key, values, system=system, r=_scalar(r, "--r"), s=_scalar(s, "--s"), threads=threads,
            progress=lambda step, share: report(0.5 + 0.5 * share, step),
        )  # fmt: skip
    write_proof(out, proof)
    if public:
        write_public(public, outputs)
    if proving_key.test_only:
        print("cuzklab: the key is a TEST KEY; the proof proves nothing to anybody", file=sys.stderr)
    if as_json:
        _emit({"proof": str(out), "public": str(public) if public else None, "verified": True, "backend": "host"})
    else:
        print(f"{out}: proof, verified (host backend)")


@app.command()
def verify(
    key: Annotated[Path, typer.Option(help="Proving key (.zkey) or verification key (JSON).")],
    public: Annotated[Path, typer.Option(help="Public values (JSON).")],
    proof: Annotated[Path, typer.Option(help="Proof (JSON).")],
    as_json: Json = False,
) -> None:
    """Verify a proof: exit status 0 valid, 1 not valid, with the reason."""
    from cuzklab.prover.files import read_key_or_vk, read_proof, read_public
    from cuzklab.prover.verify import verify as check

    verdict = check(read_key_or_vk(key), read_public(public), read_proof(proof))
    if as_json:
        _emit({"valid": verdict.valid, "why": verdict.why, "detail": verdict.detail})
    else:
        print("valid" if verdict.valid else f"not valid ({verdict.why}): {verdict.detail}")
    raise typer.Exit(0 if verdict.valid else 1)


@circuit.command("make")
def circuit_make(
    kind: Annotated[str, typer.Argument(help="sha256 or porep-shaped.")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Folder for circuit.r1cs and circuit.wtns.")],
    message: Annotated[str, typer.Option(help="sha256: the message to hash.")] = "cuzklab",
    log2_domain: Annotated[int, typer.Option(min=9, max=24, help="porep-shaped: the domain is 2 to this.")] = 14,
    seed: Annotated[int, typer.Option(help="porep-shaped: of everything random.")] = 1,
    as_json: Json = False,
) -> None:
    """Build a shipped circuit and a witness, as circom writes them."""
    from cuzklab.prover.files import write_r1cs, write_witness

    if kind == "sha256":
        from cuzklab.prover.hash_circuit import sha256_circuit

        system, witness = sha256_circuit(message.encode())
    elif kind == "porep-shaped":
        from cuzklab.prover.porep_counts import porep_constraints
        from cuzklab.prover.porep_shaped import porep_shaped

        system, witness = porep_shaped(porep_constraints(log2_domain), seed)
    else:
        raise BadInput(f"no circuit {kind!r}; there are: sha256, porep-shaped")
    out.mkdir(parents=True, exist_ok=True)
    write_r1cs(out / "circuit.r1cs", system)
    write_witness(out / "circuit.wtns", witness)
    _circuit_stats(system, witness, as_json, {"r1cs": str(out / "circuit.r1cs"), "wtns": str(out / "circuit.wtns")})


@circuit.command("stats")
def circuit_stats(
    r1cs: Annotated[Path, typer.Argument(help="Circuit (.r1cs or .r1cs.xz).")],
    witness: Annotated[Path | None, typer.Option(help="Witness, for the share of zeros and ones.")] = None,
    as_json: Json = False,
) -> None:
    """Sizes, densities and, with a witness, the share of its values that are 0 or 1."""
    from cuzklab.prover.files import read_r1cs, read_witness

    _circuit_stats(read_r1cs(r1cs), read_witness(witness) if witness else None, as_json, {})


def _circuit_stats(system: Any, witness: Any, as_json: bool, files: dict[str, str]) -> None:
    from cuzklab.prover.statistics import statistics

    facts = files | statistics(system, witness)
    if as_json:
        _emit(facts)
    else:
        _print_facts(facts)


def _print_facts(facts: dict[str, Any]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else value
        print(f"{name.replace('_', ' '):{width}}  {text}")


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0))


def _host_only(backend: str) -> None:
    if backend not in ("auto", "host"):
        raise BadInput(f"--backend {backend}: not available in this version; use auto or host")


def _scalar(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 100):
        raise BadInput(f"{option} {text!r}: write a decimal number below the scalar field's prime")
    return int(text)


# --- stored runs -----------------------------------------------------------------------------------------------------

Store = Annotated[Path, typer.Option("--store", help="Folder that holds runs.")]
DEFAULT_STORE = Path("reports")


@runs.command("list")
def runs_list(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """The stored runs, newest first."""
    from cuzklab.trace.store import list_runs

    found = list_runs(store)
    rows = [
        {
            "run": str(run.path), "origin": run.info.origin, "policy": run.info.policy, "outcome": run.info.outcome,
            "created": run.info.created, "title": run.info.title,
        }
        for run in found
    ]  # fmt: skip
    if as_json:
        _emit(rows)
    elif not rows:
        print(f"no runs in {store}/; `cuzklab run` and `cuzklab report` store theirs there")
    else:
        _print_table(rows)


@runs.command("show")
def runs_show(run: Annotated[Path, typer.Argument(help="Directory of a run.")], as_json: Json = False) -> None:
    """What a run was, how it ended, its figures, and what was captured."""
    from cuzklab.trace.store import load_run
    from cuzklab.units import format_value

    info = load_run(run).info
    if as_json:
        from dataclasses import asdict

        _emit(asdict(info))
        return
    print(f"{info.title}\n{info.origin}, {info.outcome}, {info.created}")
    if info.explanation:
        print(info.explanation)
    for note in info.notes:
        print(f"note: {note}")
    _print_table([{"condition": key, "value": str(value)} for key, value in info.conditions.items()])
    _print_table(
        [
            {"figure": metric["label"] or metric["kind"], "value": format_value(metric["value"], metric["unit"]),
             "obtained": metric["obtained"]}
            for metric in info.metrics
        ]
    )  # fmt: skip
    _print_table([{"table": name, **facts} for name, facts in info.availability.items()])


@runs.command("query")
def runs_query(
    sql: Annotated[
        str, typer.Argument(help="A SELECT over spans, locks, vram, transfers, kernels, waits, counters, runs.")
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Answer an SQL query over the tables of all stored runs; each table has a first column `run`."""
    from cuzklab.trace.query import QueryError, query
    from cuzklab.trace.store import list_runs

    try:
        frame = query(list_runs(store), sql)
    except QueryError as error:
        raise BadInput(str(error)) from None
    if as_json:
        print(frame.to_json(orient="records", indent=1))
    else:
        print(frame.to_string(index=False))


def _print_table(rows: list[dict[str, Any]]) -> None:
    """A plain table on standard output; as wide as its content when it is not a terminal."""
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(f"{value:,}" if isinstance(value, int) else str(value)) for value in row.values()))
    console = Console(soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 200)
    console.print(table)
