"""Verbs on circuits: build the shipped ones, tell the sizes and densities of one, or of a key."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.help import PROOFS, Verbs
from cuzklab.cli.options import Json, app, emit, print_facts, print_table
from cuzklab.cli.places import output_folder
from cuzklab.errors import BadInput, no_such

circuit = typer.Typer(
    cls=Verbs, help="Build the shipped circuits, or tell the sizes and densities of one.", no_args_is_help=True
)
app.add_typer(circuit, name="circuit", rich_help_panel=PROOFS)

_XZ = b"\xfd7zXZ\x00"


@circuit.command("make")
def circuit_make(
    kind: Annotated[str, typer.Argument(help="sha256 or porep-shaped.")],
    out: Annotated[Path, output_folder("Folder for circuit.r1cs and circuit.wtns.")],
    message: Annotated[
        str | None, typer.Option(help="sha256: the message to hash; cuzklab unless given.", show_default=False)
    ] = None,
    log2_domain: Annotated[
        int | None, typer.Option(min=9, max=24, help="porep-shaped: the domain is 2 to this; 14 unless given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="porep-shaped: of everything random; 1 unless given.")] = None,
    as_json: Json = False,
) -> None:
    """Build a shipped circuit and a witness, as circom writes them."""
    from cuzklab.prover.files import write_r1cs, write_witness

    if kind == "sha256":
        if log2_domain is not None or seed is not None:
            raise BadInput("--log2-domain and --seed are of porep-shaped; sha256 takes --message")
        from cuzklab.prover.hash_circuit import sha256_circuit

        system, witness = sha256_circuit(("cuzklab" if message is None else message).encode())
    elif kind == "porep-shaped":
        if message is not None:
            raise BadInput("--message is of sha256; porep-shaped takes --log2-domain and --seed")
        from cuzklab.prover.porep_counts import porep_constraints
        from cuzklab.prover.porep_shaped import porep_shaped

        system, witness = porep_shaped(
            porep_constraints(14 if log2_domain is None else log2_domain), 1 if seed is None else seed
        )
    else:
        raise BadInput(no_such("circuit", kind, ("sha256", "porep-shaped")))
    out.mkdir(parents=True, exist_ok=True)
    write_r1cs(out / "circuit.r1cs", system)
    write_witness(out / "circuit.wtns", witness)
    files = {"r1cs": str(out / "circuit.r1cs"), "wtns": str(out / "circuit.wtns")}
    _show(files | _of_system(system, witness), as_json)


@circuit.command("stats")
def circuit_stats(
    file: Annotated[Path, typer.Argument(help="Circuit (.r1cs, .r1cs.xz) or proving key (.zkey, .params).")],
    witness: Annotated[
        Path | None, typer.Option(help="Witness: the share of zeros and ones, and which MSMs are worth splitting.")
    ] = None,
    r1cs: Annotated[Path | None, typer.Option(help="The circuit of a .params key, which the split needs.")] = None,
    as_json: Json = False,
) -> None:
    """Sizes and densities of a circuit or a key; with a witness, the 0/1 share and which split MSM pays."""
    from cuzklab.prover.files import read_params, read_r1cs, read_witness
    from cuzklab.prover.files.container import open_regular
    from cuzklab.prover.keys import open_key, refuse_other_kinds
    from cuzklab.prover.statistics import key_statistics, params_statistics

    values = read_witness(witness) if witness else None
    with open_regular(file) as handle:
        start = handle.read(len(_XZ))
    if start[:4] == b"r1cs" or start == _XZ or file.suffix == ".r1cs":
        facts = _of_system(read_r1cs(file), values)
    elif start[:4] == b"zkey" or r1cs is not None:
        key = open_key(file, read_r1cs(r1cs) if r1cs else None)
        facts = _of_file(file, key) | key_statistics(key, values) | _splits(key, values)
    elif witness is not None:
        raise BadInput(f"{file}: its points do not say which wires they belong to; give the circuit with --r1cs")
    else:
        refuse_other_kinds(file)
        params = read_params(file)
        facts = _of_file(file, params) | params_statistics(params)
    _show(facts, as_json)


def _of_system(system: Any, witness: Any) -> dict[str, Any]:
    from cuzklab.prover.statistics import statistics

    return statistics(system, witness) | _splits(system, witness)


def _of_file(file: Path, key: Any) -> dict[str, Any]:
    kind = "test key: its maker can forge proofs" if key.test_only else "key"
    return {"key": str(file), "kind": kind, "file_bytes": file.stat().st_size}


def _splits(source: Any, witness: Any) -> dict[str, Any]:
    if witness is None:
        return {}
    from dataclasses import asdict

    from cuzklab.prover.constraints import check_witness_form
    from cuzklab.prover.statistics import queries_of, query_splits

    check_witness_form(witness, source.wires)
    return {"splits": [asdict(split) for split in query_splits(queries_of(source), witness)]}


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit(facts)
        return
    splits = facts.pop("splits", [])
    print_facts(facts)
    if splits:
        print("\nsplit MSMs: the ones are summed, the tail goes through Pippenger (additions counted, not timed)")
        print_table(
            [
                {
                    "query": row["query"], "points": row["points"], "zeros": row["zeros"], "ones": row["ones"],
                    "tail": row["tail"], "split": "pays" if row["pays"] else "does not pay",
                    "additions saved": f"{100 * row['saved']:.0f} %",
                }
                for row in splits
            ]
        )  # fmt: skip
