"""The verb that verifies proofs: one, or a file of many."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.cost import Cost
from cuzklab.cli.help import PROOFS
from cuzklab.cli.options import Json, Threads, app, emit, print_table
from cuzklab.errors import BadInput
from cuzklab.progress import Report, progress

_LINES = (".jsonl", ".ndjson")
_SHOWN = 20


@app.command(rich_help_panel=PROOFS)
def verify(
    key: Annotated[Path, typer.Option(help="Proving key (.zkey, .params) or verification key (JSON, .vk).")],
    proof: Annotated[
        Path,
        typer.Option(help="Proof (JSON); or many: FILE.jsonl, one a line with its public values, or 192 bytes each."),
    ],
    public: Annotated[
        Path | None,
        typer.Option(help="Public values (JSON): a list, of lists for several proofs. FILE.jsonl holds its own."),
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Verify proofs, many of them in batches: exit status 0 all valid, 1 not, with the reason for each that is not.

    cuzklab verify --key vk.json --public public.json --proof proof.json
    """
    from cuzklab.prover.files import read_key_or_vk, read_proof, read_public
    from cuzklab.prover.verify import verify as check

    cost = Cost()
    if proof.suffix in _LINES or _is_compressed(proof):
        _verify_file(key, proof, public, threads, as_json, cost)
    if public is None:
        raise BadInput("--public: needed for a proof in a file of its own")
    verdict = check(read_key_or_vk(key), read_public(public), read_proof(proof))
    if as_json:
        emit({"valid": verdict.valid, "why": verdict.why, "detail": verdict.detail} | cost.to_json())
    else:
        print(f"valid; {cost}" if verdict.valid else f"not valid ({verdict.why}): {verdict.detail}")
    raise typer.Exit(0 if verdict.valid else 1)


def _is_compressed(path: Path) -> bool:
    """Whether a file begins like a compressed point, or says by its name that it does."""
    from cuzklab.prover.files.container import open_regular

    with open_regular(path) as file:
        first = file.read(1)
    return path.suffix == ".bin" or first >= b"\x80"


def _verify_file(key: Path, proof: Path, public: Path | None, threads: int | None, as_json: bool, cost: Cost) -> None:
    from cuzklab.prover.files import read_key_or_vk
    from cuzklab.prover.verify import prepare
    from cuzklab.prover.verify_many import verify_many

    prepared = prepare(read_key_or_vk(key))
    with progress("verify", quiet=as_json) as report:
        report(0.0, "reading")
        places, publics, proofs, verdicts = _read_many(proof, public)
        proper = [i for i in range(len(places)) if i not in verdicts]
        found = verify_many(
            prepared, [publics[i] for i in proper], [proofs[i] for i in proper], threads=threads,
            progress=_in_steps(report),
        )  # fmt: skip
        verdicts |= zip(proper, found, strict=True)
    invalid = [
        {"proof": i + 1, "at": places[i], "why": verdicts[i].why, "detail": verdicts[i].detail}
        for i in range(len(places))
        if not verdicts[i].valid
    ]
    if as_json:
        emit({"valid": not invalid, "proofs": len(places), "invalid": invalid} | cost.to_json())
    elif not invalid:
        print(f"valid; {cost}" if len(places) == 1 else f"valid: all {len(places):,} proofs; {cost}")
    else:
        print(f"not valid: {len(invalid):,} of {len(places):,} proofs")
        # The equation's own sentence says nothing more, and would break the lines of a terminal.
        print_table([it | {"detail": "" if it["why"] == "equation" else it["detail"]} for it in invalid[:_SHOWN]])
        if len(invalid) > _SHOWN:
            print(f"and {len(invalid) - _SHOWN:,} more; --json lists all")
    raise typer.Exit(1 if invalid else 0)


def _in_steps(report: Report) -> Callable[[int, int], None]:
    """Tell every block's share, but new words only for each twentieth: a log shall stay short."""
    words, told = "", -1

    def show(done: int, of: int) -> None:
        nonlocal words, told
        if 20 * done // of > told:
            words, told = f"{done:,} of {of:,} proofs", 20 * done // of
        report(done / of, words)

    return show


def _read_many(proof: Path, public: Path | None) -> tuple[list[str], list[Any], list[Any], dict[int, Any]]:
    """Where each proof stands, its public values, the proofs, and verdicts on those that are no proof at all."""
    from cuzklab.prover.files import NoProof, proof_from_bytes, read_proof_bytes, read_proof_lines, read_publics
    from cuzklab.prover.verify import Verdict

    if proof.suffix in _LINES:
        if public is not None:
            raise BadInput(f"--public: {proof} holds the public values of its proofs; leave the option out")
        lines = list(read_proof_lines(proof))
        return [f"line {number}" for number, _, _ in lines], [it[2] for it in lines], [it[1] for it in lines], {}
    if public is None:
        raise BadInput("--public: compressed proofs do not hold their public values; give them")
    raw, publics = read_proof_bytes(proof), read_publics(public)
    if len(raw) != len(publics):
        raise BadInput(f"{public}: public values of {len(publics)} proofs, {proof} has {len(raw)}")
    proofs, refused = [], {}
    for number, piece in enumerate(raw):
        try:
            proofs.append(proof_from_bytes(piece))
        except NoProof as error:
            proofs.append(None)
            refused[number] = Verdict(False, "encoding", str(error))
    return [f"byte {len(piece) * number}" for number, piece in enumerate(raw)], publics, proofs, refused
