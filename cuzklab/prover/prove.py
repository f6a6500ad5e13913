"""Groth16 proofs, the stages strung together: one, or several of one circuit."""

import os
import secrets
from collections.abc import Callable, Iterable

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.backend import HOST, Backend
from cuzklab.errors import BadInput
from cuzklab.prover import stages
from cuzklab.prover.constraints import check_witness, check_witness_form
from cuzklab.prover.model import ConstraintSystem, Proof, ProvingKey
from cuzklab.prover.roots import check_snarkjs_root
from cuzklab.prover.stages import DenseKey, ScaledPoints
from cuzklab.prover.verify import Verdict, verify
from cuzklab.prover.verify_many import verify_many

Progress = Callable[[str, float], None]


def prove(
    key: ProvingKey | DenseKey,
    witness: np.ndarray,
    *,
    system: ConstraintSystem | None = None,
    r: int | None = None,
    s: int | None = None,
    threads: int | None = None,
    on: Backend = HOST,
    progress: Progress | None = None,
) -> tuple[Proof, np.ndarray]:
    """Prove that a witness satisfies the key's circuit.

    Parameters
    ----------
    key : ProvingKey or DenseKey
        `keys.open_key` maps one from a file, of either dialect; `stages.dense_key` prepares one in memory.
    witness : (wires, 4) uint64, plain
    system : ConstraintSystem, optional
        A key does not tell which constraint fails; with the system, an unsatisfied witness is found before any work.
    r, s : int, optional
        The proof's randomness, from the operating system unless given. With both given, the proof is the same bit for
        bit whatever the number of threads. Whoever knows them learns about the witness: give them in tests only.
    threads : int, optional
        All processors unless given.
    on : Backend, optional
        Where the GPU stages execute; the CPU unless given. The proof does not depend on it.
    progress : callable, optional
        Called with a stage's name before it starts and the share of stages that are done, 0 to 1.

    Returns
    -------
    proof : Proof
    public : (public, 4) uint64, plain
        The public inputs it is about: outputs first, without the constant one.

    Raises
    ------
    BadInput
        The witness or the system belongs to another circuit, the witness does not satisfy this one, r or s is no
        scalar. Every proof is verified before it is returned, so a wrong one never leaves.
    """
    r, s = _randomness("r", r), _randomness("s", s)
    threads = threads or len(os.sched_getaffinity(0))
    key = _ready(key)
    report = _Progress(progress)
    proof, public = _unverified(key, witness, system, r, s, threads, on, report)
    report("verification")
    _require_valid([verify(key.vk, public, proof)], several=False)
    report("done")
    return proof, public


def prove_many(
    key: ProvingKey | DenseKey,
    witnesses: Iterable[np.ndarray],
    *,
    system: ConstraintSystem | None = None,
    threads: int | None = None,
    on: Backend = HOST,
    progress: Callable[[int, str, float], None] | None = None,
) -> list[tuple[Proof, np.ndarray]]:
    """Prove several witnesses of one circuit: the key is prepared once, and the proofs are verified as a batch.

    Parameters
    ----------
    key, system, threads, on
        As for `prove`.
    witnesses : iterable of (wires, 4) uint64, plain
        Taken one at a time, so an iterator that reads them keeps only one in memory.
    progress : callable, optional
        Called with the number of proofs that are done, the stage, and the share of stages done for the proof at work.

    Returns
    -------
    list of (Proof, public values)

    Raises
    ------
    BadInput
        As `prove`; the message names the witness, counted from 1. No proof is returned then.
    """
    threads = threads or len(os.sched_getaffinity(0))
    key = _ready(key)
    made: list[tuple[Proof, np.ndarray]] = []
    for witness in witnesses:
        number = len(made)
        report = _Progress((lambda step, share, n=number: progress(n, step, share)) if progress else None)
        r, s = _randomness("r", None), _randomness("s", None)
        try:
            made.append(_unverified(key, witness, system, r, s, threads, on, report))
        except BadInput as error:
            raise BadInput(f"witness {number + 1}: {str(error).removeprefix('witness: ')}") from None
    if progress:
        progress(len(made), "verification", 0.0)
    proofs, publics = [proof for proof, _ in made], [public for _, public in made]
    _require_valid(verify_many(key.vk, publics, proofs, threads=threads), several=True)
    return made


def _ready(key: ProvingKey | DenseKey) -> DenseKey:
    if isinstance(key, DenseKey):
        return key
    key = stages.dense_key(key)
    check_snarkjs_root(key, "key")
    return key


def _require_valid(verdicts: list[Verdict], *, several: bool) -> None:
    for number, verdict in enumerate(verdicts, 1):
        if not verdict.valid:
            raise BadInput(
                f"witness{f' {number}' if several else ''}: the proof made of it is not valid ({verdict.detail}), "
                "so it does not satisfy the key's circuit; give the circuit (.r1cs) as well to learn which constraint "
                "fails"
            )


def _unverified(
    key: DenseKey,
    witness: np.ndarray,
    system: ConstraintSystem | None,
    r: int,
    s: int,
    threads: int,
    on: Backend,
    report: "_Progress",
) -> tuple[Proof, np.ndarray]:
    """A proof that nobody has looked at yet.

    Memory peaks in `ntt_h`, at the witness, three vectors of the domain and a spare one. All else comes after those
    are freed, or before they are there.
    """
    check_witness_form(witness, key.wires)
    if system is not None:
        stages.check_same_circuit(system, key)
        check_witness(system, witness, threads=threads)
    report("synthesis")
    d_a, d_bc = on.empty(key.domain, 4), on.empty(2, key.domain, 4)
    if on is HOST:
        stages.synthesis(key.constraints, witness, out=(d_a, *d_bc), threads=threads)
    else:
        stages.load_evaluations(stages.synthesis(key.constraints, witness, threads=threads), d_a, d_bc, on=on)
    report("ntt_h")
    stages.ntt_h(d_a, d_bc, dialect=key.dialect, threads=threads, on=on)
    del d_bc
    report("h_msm")
    h = stages.h_msm(ScaledPoints(key.h, d_a), threads=threads, on=on)
    del d_a
    report("prep_msm")
    split = stages.prep_msm(key, witness, threads=threads)
    report("batch_add")
    ones = {name: stages.batch_add(query.ones, threads=threads, on=on) for name, query in split.items() if query.ones}
    report("tail_msm")
    sums = {name: stages.tail_msm(split[name].tail, threads=threads, on=on) for name in ("l", "a", "b_g1")}
    report("b_g2_msm")
    sums["b_g2"] = stages.b_g2_msm(split["b_g2"].tail, threads=threads)
    report("epilogue")
    proof = stages.epilogue(key, stages.add_up(h, ones, sums), r, s)
    return proof, witness[1 : 1 + key.public].copy()


_STEPS = ("synthesis", "ntt_h", "h_msm", "prep_msm", "batch_add", "tail_msm", "b_g2_msm", "epilogue", "verification")


class _Progress:
    """Reports steps as shares of all of them."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def __call__(self, step: str) -> None:
        if self._progress:
            self._progress(step, 1.0 if step == "done" else _STEPS.index(step) / len(_STEPS))


def _randomness(name: str, given: int | None) -> int:
    if given is None:
        return secrets.randbelow(host.FR_MODULUS)
    if not 0 <= given < host.FR_MODULUS:
        raise BadInput(f"{name} = {given} is no scalar: it must be at least 0 and below the scalar field's prime")
    return given
