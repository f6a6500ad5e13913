"""Verification of Groth16 proofs with an existing pairing library.

A proof (A, B, C) for public values x_1 … x_n is valid when e(A, B) = e(α, β) · e(IC_0 + Σ x_i·IC_i, γ) · e(C, δ)
(Groth 2016, section 3.2, in the type III form). That equation alone is not enough: points outside the subgroup of order
r can satisfy it, so each point is checked first, which snarkjs does not do.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.backends.limbs import limbs_to_coordinates
from cuzklab.errors import BadInput
from cuzklab.prover.files.fields import FP_BYTES, FR_BYTES, first_not_below
from cuzklab.prover.model import Proof, VerifyingKey

Why = Literal["", "inputs", "encoding", "curve", "subgroup", "equation"]


@dataclass(frozen=True)
class Verdict:
    """Whether a proof is valid.

    Attributes
    ----------
    valid : bool
    why : {"", "inputs", "encoding", "curve", "subgroup", "equation"}
        What it fails on: the public values (a wrong number of them, or one that is not below r), bytes that are no
        compressed proof, a point that is not on its curve, a point outside the subgroup of order r, the pairing
        equation. Empty for a valid proof.
    detail : str
        The same in a sentence.
    """

    valid: bool
    why: Why
    detail: str


class _Refused(Exception):
    def __init__(self, why: Why, detail: str):
        super().__init__(detail)
        self.why, self.detail = why, detail


VALID = Verdict(True, "", "the proof is valid")
WRONG_EQUATION = Verdict(
    False, "equation", "the pairing equation does not hold for this key, these values and this proof"
)


@dataclass(frozen=True)
class PreparedKey:
    """A verification key whose points have been checked, as the pairing library takes them; for many proofs.

    Attributes
    ----------
    ic : list of G1Point
    ic_points : (public + 1, 12) uint64
        The same, in Montgomery form.
    """

    alpha: G1Point
    beta: G2Point
    gamma: G2Point
    delta: G2Point
    ic: list[G1Point]
    ic_points: np.ndarray

    @property
    def public(self) -> int:
        return len(self.ic) - 1


def prepare(vk: VerifyingKey) -> PreparedKey:
    """Check the points of a key.

    Raises
    ------
    BadInput
        The key itself is unusable: a point off the curve, outside the subgroup, or at infinity where that would let
        anybody forge.
    """
    alpha = _key_point(vk.alpha_g1, "alpha")
    beta, gamma, delta = (
        _key_point(point, name)
        for point, name in ((vk.beta_g2, "beta"), (vk.gamma_g2, "gamma"), (vk.delta_g2, "delta"))
    )
    ic = [_key_point(point, f"IC[{i}]", may_be_infinity=True) for i, point in enumerate(vk.ic)]
    return PreparedKey(alpha, beta, gamma, delta, ic, np.ascontiguousarray(vk.ic))


def verify(vk: VerifyingKey | PreparedKey, public: np.ndarray, proof: Proof) -> Verdict:
    """Verify one proof.

    Parameters
    ----------
    vk : VerifyingKey or PreparedKey
        `prepare` checks a key once for many proofs.
    public : (n, 4) uint64
        Public values, plain, the constant one left out.
    proof : Proof

    Raises
    ------
    BadInput
        As `prepare`.
    """
    key = vk if isinstance(vk, PreparedKey) else prepare(vk)
    if (problem := check_inputs(key, public)) is not None:
        return problem
    try:
        a, b, c = (_checked(point, name) for point, name in ((proof.a, "A"), (proof.b, "B"), (proof.c, "C")))
    except _Refused as refused:
        return Verdict(False, refused.why, f"point {refused.detail} of the proof")

    raw = public.tobytes()
    scalars = [Scalar.from_le_bytes(raw[at : at + FR_BYTES]) for at in range(0, len(raw), FR_BYTES)]
    inputs = G1Point.multiexp_unchecked(key.ic, [Scalar(1), *scalars])
    holds = GT.pairing_check([-a, key.alpha, inputs, c], [b, key.beta, key.gamma, key.delta])
    return VALID if holds else WRONG_EQUATION


def check_inputs(key: PreparedKey, public: np.ndarray) -> Verdict | None:
    """What is wrong with public values, (n, 4) uint64, for this key; None where nothing is."""
    if public.ndim != 2 or public.shape[1] != 4:
        raise ValueError(f"public values have shape (n, 4), not {public.shape}")
    if len(public) != key.public:
        return Verdict(False, "inputs", f"{len(public)} public values, the key is for {key.public}")
    bad = first_not_below(public, FR_MODULUS)
    if bad >= 0:
        return Verdict(False, "inputs", f"public value {bad} is not below r")
    return None


def _checked(point: np.ndarray, name: str) -> G1Point | G2Point:
    """A point for the pairing library, (12,) or (24,) uint64 in Montgomery form; refused unless it is in its group."""
    kind = G1Point if len(point) == 12 else G2Point
    raw = b"".join(value.to_bytes(FP_BYTES, "little") for value in limbs_to_coordinates(point))
    try:
        # Not checked for the subgroup here, so that the two reasons can be told apart.
        found = kind.from_xy_bytes_unchecked_le(raw)
    except ValueError:
        raise _Refused("curve", f"{name} is not on the curve") from None
    if not found.is_in_subgroup():
        raise _Refused("subgroup", f"{name} is not in the subgroup of order r")
    return found


def _key_point(point: np.ndarray, name: str, *, may_be_infinity: bool = False) -> G1Point | G2Point:
    todo = "get the verification key again from its source"
    if not may_be_infinity and not point.any():
        raise BadInput(f"verification key: {name} is the point at infinity, anybody could forge proofs; {todo}")
    try:
        return _checked(point, name)
    except _Refused as refused:
        raise BadInput(f"verification key: {refused.detail}; {todo}") from None
