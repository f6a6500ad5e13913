"""Verbs on proofs: setup, prove, verify, and circuits to prove."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.options import Backend, Json, Threads, app, backend_in_force, cores, emit, print_facts
from cuzklab.errors import BadInput
from cuzklab.progress import progress

circuit = typer.Typer(help="Build the shipped circuits, or tell the sizes and densities of one.", no_args_is_help=True)
app.add_typer(circuit, name="circuit")


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
    from cuzklab.prover.keycheck import vouch_for
    from cuzklab.prover.setup import setup as make_key

    system = read_r1cs(r1cs)
    with progress("setup") as report:
        key = make_key(system, seed, threads=threads or cores(), progress=lambda step, share: report(share, step))
        write_zkey(out, key)
        vouch_for(out)
    warning = "TEST KEY: whoever has the seed can forge proofs; never use it for anything of value"
    print(f"cuzklab: {warning}", file=sys.stderr)
    if as_json:
        emit({"key": str(out), "test_only": True, "constraints": system.constraints, "domain": key.domain})
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

    where = backend_in_force(backend)
    proving_key, values = read_zkey(key), read_witness(witness)
    system = read_r1cs(r1cs) if r1cs else None
    with progress("prove") as report:
        check_key(key, threads=threads, progress=lambda step, done, of: report(0.5 * done / max(of, 1), f"key: {step}"))
        proof, outputs = make_proof(
            proving_key, values, system=system, r=_scalar(r, "--r"), s=_scalar(s, "--s"), threads=threads,
            on=_backend(where), progress=lambda step, share: report(0.5 + 0.5 * share, step),
        )  # fmt: skip
    write_proof(out, proof)
    if public:
        write_public(public, outputs)
    if proving_key.test_only:
        print("cuzklab: the key is a TEST KEY; the proof proves nothing to anybody", file=sys.stderr)
    if as_json:
        emit({"proof": str(out), "public": str(public) if public else None, "verified": True, "backend": where})
    else:
        print(f"{out}: proof, verified ({where} backend)")


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
        emit({"valid": verdict.valid, "why": verdict.why, "detail": verdict.detail})
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
        emit(facts)
    else:
        print_facts(facts)


def _backend(name: str) -> Any:
    if name == "cuda":
        from cuzklab.backends.cuda.backend import CudaBackend

        return CudaBackend()
    from cuzklab.backends.backend import HOST

    return HOST


def _scalar(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 100):
        raise BadInput(f"{option} {text!r}: write a decimal number below the scalar field's prime")
    return int(text)
