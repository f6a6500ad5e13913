"""One Groth16 proof, the stages strung together."""

import os
import secrets
from collections.abc import Callable

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.backend import HOST, Backend
from cuzklab.errors import BadInput
from cuzklab.prover import stages
from cuzklab.prover.constraints import check_witness, check_witness_form
from cuzklab.prover.model import ConstraintSystem, Proof, ProvingKey
from cuzklab.prover.stages import DenseKey, ScaledPoints
from cuzklab.prover.verify import verify


def prove(
    key: ProvingKey | DenseKey,
    witness: np.ndarray,
    *,
    system: ConstraintSystem | None = None,
    r: int | None = None,
    s: int | None = None,
    threads: int | None = None,
    on: Backend = HOST,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[Proof, np.ndarray]:
    """Prove that a witness satisfies the key's circuit.

    Parameters
    ----------
    key : ProvingKey or DenseKey
        `stages.dense_key` prepares a key once for many proofs.
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
    threads = threads or len(os.sched_getaffinity(0))
    check_witness_form(witness, key.wires)
    if system is not None:
        stages.check_same_circuit(system, key)
        check_witness(system, witness, threads=threads)
    r, s = _randomness("r", r), _randomness("s", s)
    if isinstance(key, ProvingKey):
        key = stages.dense_key(key)
    report = _Progress(progress)

    report("synthesis")
    evaluations = stages.synthesis(key.constraints, witness, threads=threads)
    report("prep_msm")
    split = stages.prep_msm(key, witness, threads=threads)
    report("ntt_h")
    d_a, d_bc = on.empty(key.domain, 4), on.empty(2, key.domain, 4)
    stages.load_evaluations(evaluations, d_a, d_bc, on=on)
    del evaluations
    stages.ntt_h(d_a, d_bc, threads=threads, on=on)
    del d_bc
    report("h_msm")
    h = stages.h_msm(ScaledPoints(key.h, d_a), threads=threads, on=on)
    report("batch_add")
    ones = {name: stages.batch_add(query.ones, threads=threads, on=on) for name, query in split.items() if query.ones}
    report("tail_msm")
    sums = {name: stages.tail_msm(split[name].tail, threads=threads, on=on) for name in ("l", "a", "b_g1")}
    report("b_g2_msm")
    sums["b_g2"] = stages.b_g2_msm(split["b_g2"].tail, threads=threads)
    report("epilogue")
    proof = stages.epilogue(key, stages.add_up(h, ones, sums), r, s)

    report("verification")
    public = witness[1 : 1 + key.public].copy()
    verdict = verify(key.vk, public, proof)
    if not verdict.valid:
        raise BadInput(
            f"witness: the proof made of it is not valid ({verdict.detail}), so it does not satisfy the key's circuit; "
            "give the circuit (.r1cs) as well to learn which constraint fails"
        )
    report("done")
    return proof, public


_STEPS = ("synthesis", "prep_msm", "ntt_h", "h_msm", "batch_add", "tail_msm", "b_g2_msm", "epilogue", "verification")


class _Progress:
    """Reports steps as shares of all of them."""

    def __init__(self, progress: Callable[[str, float], None] | None) -> None:
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
