"""Verbs that make proofs: setup and prove."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.cost import Cost
from cuzklab.cli.help import PROOFS
from cuzklab.cli.options import Backend, Json, Threads, app, backend_in_force, cores, emit
from cuzklab.cli.places import checked_file, checked_files, output_file
from cuzklab.errors import BadInput
from cuzklab.progress import part, progress

_DIALECTS = {".zkey": "snarkjs", ".json": "snarkjs", ".params": "bellman", ".vk": "bellman"}


@app.command(rich_help_panel=PROOFS)
def setup(
    r1cs: Annotated[Path, typer.Option(help="Circuit, as circom writes it (.r1cs or .r1cs.xz).")],
    seed: Annotated[str, typer.Option(help="Whatever the secrets are drawn from.")],
    out: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            callback=checked_files,
            help="What to write; may be given several times. FILE.zkey and FILE.json are snarkjs's proving and "
            "verification key, FILE.params and FILE.vk bellman's.",
        ),
    ],
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a TEST KEY for a circuit, in one dialect or both. Whoever has the seed can forge proofs.

    cuzklab setup --r1cs circuit.r1cs --seed 1 -o key.zkey -o vk.json
    """
    from cuzklab.prover.files import read_r1cs
    from cuzklab.prover.setup import bellman_setup
    from cuzklab.prover.setup import setup as make_key

    if not seed:
        raise BadInput("--seed: is empty; give any text")
    for path in out:
        if path.suffix not in _DIALECTS:
            raise BadInput(f"-o {path}: end the name in one of {', '.join(_DIALECTS)}, which tells what to write")
    cost = Cost()
    system = read_r1cs(r1cs)
    makers = {"snarkjs": make_key, "bellman": bellman_setup}
    wanted = [name for name in makers if name in {_DIALECTS[path.suffix] for path in out}]
    with progress("setup") as report:
        for number, dialect in enumerate(wanted):
            show = part(report, number / len(wanted), (number + 1) / len(wanted), f"{dialect}: ")
            key = makers[dialect](
                system, seed, threads=threads or cores(), progress=lambda step, share, show=show: show(share, step)
            )
            for path in out:
                if _DIALECTS[path.suffix] == dialect:
                    _write_key(path, key)
    warning = "TEST KEY: whoever has the seed can forge proofs; never use it for anything of value"
    print(f"cuzklab: {warning}", file=sys.stderr)
    if as_json:
        files = [{"file": str(path), "dialect": _DIALECTS[path.suffix]} for path in out]
        facts = {"test_only": True, "constraints": system.constraints, "domain": system.domain}
        emit({"key": str(out[0]), "files": files, **facts, **cost.to_json()})
    else:
        for path in out:
            what = "verification key" if path.suffix in (".json", ".vk") else "test key"
            print(f"{path}: {what} for {system.constraints:,} constraints, domain {system.domain:,}")
        print(cost)


def _write_key(path: Path, key: Any) -> None:
    from cuzklab.prover.files import write_bellman_vk, write_params, write_vk, write_zkey
    from cuzklab.prover.keycheck import vouch_for

    match path.suffix:
        case ".zkey":
            write_zkey(path, key)
            vouch_for(path)
        case ".json":
            write_vk(path, key.vk)
        case ".params":
            write_params(path, key)
            vouch_for(path)
        case ".vk":
            write_bellman_vk(path, key)


@app.command(rich_help_panel=PROOFS)
def prove(
    key: Annotated[Path, typer.Option(help="Proving key (.zkey or .params), mapped and not copied.")],
    witness: Annotated[
        list[Path], typer.Option(help="Witness (.wtns or .wtns.xz); may be given several times: a proof for each.")
    ],
    out: Annotated[
        Path,
        output_file(
            "Proof to write: snarkjs's JSON; FILE.jsonl, one proof with its public values a line; FILE.bin, "
            "192 bytes a proof, as bellman and Filecoin write them."
        ),
    ],
    public: Annotated[Path | None, typer.Option(callback=checked_file, help="Public values to write (JSON).")] = None,
    r1cs: Annotated[
        Path | None, typer.Option(help="The circuit: needed by a .params key; tells which constraint fails.")
    ] = None,
    r: Annotated[str | None, typer.Option(help="Randomness, decimal; for tests only.")] = None,
    s: Annotated[str | None, typer.Option(help="Randomness, decimal; for tests only.")] = None,
    backend: Backend = "auto",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make Groth16 proofs over BLS12-381 and verify them before they are written.

    cuzklab prove --key key.zkey --witness circuit.wtns -o proof.json --public public.json
    """
    from cuzklab.prover.files import read_r1cs, read_witness
    from cuzklab.prover.files.container import open_regular
    from cuzklab.prover.keycheck import check_key
    from cuzklab.prover.keys import open_key
    from cuzklab.prover.prove import prove as make_proof
    from cuzklab.prover.prove import prove_many

    cost = Cost()
    if public is not None and public.absolute() == out.absolute():
        raise BadInput(f"--public {public}: is the file of the proof; name another")
    where = backend_in_force(backend)
    several = len(witness) > 1
    if several and out.suffix not in (".jsonl", ".bin"):
        raise BadInput(f"-o {out}: {len(witness)} proofs need FILE.jsonl or FILE.bin")
    if several and (r or s):
        raise BadInput("--r, --s: for one witness only; proofs that share randomness tell about their witnesses")
    randomness = {"r": _scalar(r, "--r"), "s": _scalar(s, "--s")}
    for path in witness:  # looking through a large key takes minutes; a slip is told before it
        open_regular(path).close()
    system = read_r1cs(r1cs) if r1cs else None
    proving_key = open_key(key, system)
    with progress("prove") as report:
        check_key(key, threads=threads, progress=lambda step, done, of: report(0.5 * done / max(of, 1), f"key: {step}"))
        if several:
            total = len(witness)
            made = prove_many(
                proving_key, map(read_witness, witness), system=system, threads=threads, on=_backend(where),
                progress=lambda done, step, share: report(
                    0.5 + (done + share) / total / 2, f"{done} of {total}, {step}"
                ),
            )  # fmt: skip
        else:
            one = make_proof(
                proving_key, read_witness(witness[0]), system=system, **randomness, threads=threads, on=_backend(where),
                progress=lambda step, share: report(0.5 + 0.5 * share, step),
            )  # fmt: skip
            made = [one]
    _write_proofs(out, public, made)
    if proving_key.test_only:
        print("cuzklab: the key is a TEST KEY; the proof proves nothing to anybody", file=sys.stderr)
    if as_json:
        facts = {"proof": str(out), "public": str(public) if public else None, "proofs": len(made), "verified": True}
        emit(facts | {"dialect": proving_key.dialect, "backend": where} | cost.to_json())
    else:
        print(f"{out}: {f'{len(made)} proofs' if several else 'proof'}, verified ({where} backend); {cost}")


def _write_proofs(out: Path, public: Path | None, made: list[tuple[Any, Any]]) -> None:
    from cuzklab.prover.files import write_proof, write_proof_bytes, write_proof_lines, write_public, write_publics

    if out.suffix == ".jsonl":
        write_proof_lines(out, made)
    elif out.suffix == ".bin":
        write_proof_bytes(out, [proof for proof, _ in made])
    else:
        write_proof(out, made[0][0])
    if public and len(made) == 1:
        write_public(public, made[0][1])
    elif public:
        write_publics(public, [values for _, values in made])


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
