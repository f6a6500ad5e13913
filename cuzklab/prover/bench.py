"""Measures whole proofs beside snarkjs, and verification in batches beside one by one.

Ours and the peer's calls alternate on the same cores, so that other load on the machine meets both; the first of each
is not counted. Ours starts from a mapped key and a witness in memory and ends with a verified proof; snarkjs's starts
from both in memory and ends with a proof that it does not verify. Keys are TEST KEYS, made for the measurement.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.host.parallel import thread_count
from cuzklab.errors import BadInput
from cuzklab.prover.files import write_params, write_witness, write_zkey
from cuzklab.prover.files.proof_json import proof_of, public_of
from cuzklab.prover.files.strict_json import Document
from cuzklab.prover.hash_circuit import sha256_circuit
from cuzklab.prover.keys import open_key
from cuzklab.prover.model import ConstraintSystem, Proof
from cuzklab.prover.porep_counts import porep_constraints
from cuzklab.prover.porep_shaped import porep_circuit, porep_shaped, porep_witness
from cuzklab.prover.prove import prove, prove_many
from cuzklab.prover.setup import bellman_setup, setup
from cuzklab.prover.snarkjs_peer import Absent, Snarkjs, snarkjs
from cuzklab.prover.verify import prepare, verify
from cuzklab.prover.verify_many import verify_many

Report = Callable[[float, str], None]
Circuit = Callable[[], tuple[ConstraintSystem, np.ndarray]]

CIRCUITS: dict[str, Circuit] = {
    "sha256-1-block": lambda: sha256_circuit(b"cuzklab"),
    "sha256-4-blocks": lambda: sha256_circuit(bytes(200)),
    "porep-shaped-17": lambda: porep_shaped(porep_constraints(17), 1),
}
BATCH = "verify"


@dataclass(frozen=True)
class Row:
    """One piece of work, ours and the peer's. Times are wall times in seconds; `ratio` is of the medians.

    `peer` is None where there is nothing to compare with, and the times then too.
    """

    work: str
    dialect: str
    constraints: int
    domain: int
    threads: int
    repeats: int
    median_s: float
    min_s: float
    peer: str | None = None
    peer_s: float | None = None
    peer_min_s: float | None = None
    ratio: float | None = None


def bench_prove(
    *,
    circuits: Sequence[str] | None = None,
    proofs: int = 1000,
    threads: int | None = None,
    repeats: int = 3,
    progress: Report = lambda share, words: None,
) -> tuple[list[dict[str, Any]], str]:
    """Time whole proofs and batches.

    Parameters
    ----------
    circuits : names out of `CIRCUITS`, and "verify" for batches; by default all
    proofs : proofs of a batch
    threads : ours; snarkjs always takes all cores, so a ratio is only given for all of them
    repeats : counted calls of each
    progress : called with the share done and a few words

    Returns
    -------
    rows : list of dict
        The fields of `Row`.
    peer : str
        The peer's version, or why it was not measured.

    Raises
    ------
    BadInput
        An unknown circuit.
    """
    names = list(circuits) if circuits else [*CIRCUITS, BATCH]
    if unknown := set(names) - {*CIRCUITS, BATCH}:
        raise BadInput(f"no work {', '.join(sorted(unknown))}; there are: {', '.join((*CIRCUITS, BATCH))}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="cuzklab-bench-") as folder, snarkjs() as peer:
        for done, name in enumerate(names):
            report = _scaled(progress, done / len(names), 1 / len(names), name)
            if name == BATCH:
                rows.append(_batch(proofs, threads, repeats, report))
            else:
                rows += _whole_proofs(name, Path(folder), peer, threads, repeats, report)
    progress(1.0, "done")
    words = peer.reason if isinstance(peer, Absent) else f"snarkjs {peer.version}, in process, warm, all cores"
    return [asdict(row) for row in rows], words


def _scaled(progress: Report, start: float, length: float, name: str) -> Report:
    return lambda share, words: progress(start + length * share, f"{name}: {words}")


def _whole_proofs(
    name: str, folder: Path, peer: Snarkjs | Absent, threads: int | None, repeats: int, report: Report
) -> list[Row]:
    report(0.0, "circuit and test keys")
    system, witness = CIRCUITS[name]()
    write_zkey(folder / "key.zkey", setup(system, 1))
    write_params(folder / "key.params", bellman_setup(system, 1))
    write_witness(folder / "w.wtns", witness)
    keys = {
        "snarkjs": open_key(folder / "key.zkey"),
        "bellman": open_key(folder / "key.params", system),
    }
    compared = isinstance(peer, Snarkjs) and thread_count(threads) == thread_count(None)
    if compared:
        peer.load(folder / "key.zkey", folder / "w.wtns")
    ours: dict[str, list[float]] = {dialect: [] for dialect in keys}
    theirs: list[float] = []
    for round_ in range(repeats + 1):
        report((round_ + 0.5) / (repeats + 1.5), f"round {round_} of {repeats}" if round_ else "warming up")
        for dialect, key in keys.items():
            ours[dialect].append(_seconds(lambda key=key: prove(key, witness, threads=threads)))
        if compared:
            milliseconds, proof, public = peer.prove()
            theirs.append(milliseconds / 1e3)
            if round_ == 0:
                _require_valid(keys["snarkjs"].vk, proof, public)
    rows = []
    for dialect, times in ours.items():
        facts = dict(
            work=name, dialect=dialect, constraints=system.constraints, domain=system.domain,
            threads=thread_count(threads), repeats=repeats,
        )  # fmt: skip
        rows.append(_row(facts, times[1:], "snarkjs" if dialect == "snarkjs" else None, theirs[1:]))
    return rows


def _require_valid(vk: Any, proof: Any, public: Any) -> None:
    """A peer whose proofs are not valid measures nothing."""
    document = Document.of_bytes("snarkjs", b"null").part({"proof": proof, "public": public}, "its proof")
    part = document.part(proof, "proof")
    verdict = verify(vk, public_of(document, public, "public"), proof_of(part))
    if not verdict.valid:
        raise RuntimeError(f"snarkjs's proof is not valid: {verdict.detail}")


def _batch(proofs: int, threads: int | None, repeats: int, report: Report) -> Row:
    report(0.0, f"{proofs} proofs")
    circuit = porep_circuit(994, seed=1)
    key = setup(circuit.system, 1)
    made = prove_many(key, (porep_witness(circuit, number) for number in range(4)))
    several = [rerandomised(*made[i % len(made)], 2 + i // len(made)) for i in range(proofs)]
    prepared = prepare(key.vk)
    publics, of_publics = [public for _, public in several], [proof for proof, _ in several]

    def one_by_one() -> None:
        assert all(verify(prepared, public, proof).valid for public, proof in zip(publics, of_publics, strict=True))

    def at_once() -> None:
        # One thread: one by one has no more.
        assert all(it.valid for it in verify_many(prepared, publics, of_publics, threads=1))

    ours: list[float] = []
    theirs: list[float] = []
    for round_ in range(repeats + 1):
        report((round_ + 0.5) / (repeats + 1.5), f"round {round_} of {repeats}" if round_ else "warming up")
        ours.append(_seconds(at_once))
        theirs.append(_seconds(one_by_one))
    facts = dict(
        work=f"verify {proofs} proofs", dialect="either", constraints=circuit.system.constraints,
        domain=circuit.system.domain, threads=1, repeats=repeats,
    )  # fmt: skip
    return _row(facts, ours[1:], "one by one", theirs[1:])


def rerandomised(proof: Proof, public: np.ndarray, factor: int) -> tuple[Proof, np.ndarray]:
    """Another valid proof of the same statement: A divided by a factor, B multiplied by it."""
    inverse = pow(factor, -1, host.FR_MODULUS)
    return Proof(host.mul_g1(proof.a, inverse), host.mul_g2(proof.b, factor), proof.c), public


def _row(facts: dict[str, Any], ours: list[float], peer: str | None, theirs: list[float]) -> Row:
    median = statistics.median(ours)
    if peer is None or not theirs:
        return Row(**facts, median_s=median, min_s=min(ours))
    peer_s = statistics.median(theirs)
    return Row(
        **facts, median_s=median, min_s=min(ours), peer=peer, peer_s=peer_s, peer_min_s=min(theirs),
        ratio=median / peer_s,
    )  # fmt: skip


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
