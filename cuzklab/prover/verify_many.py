"""Verification of many proofs for one key at once.

The equation of proof i is e(A_i, B_i) = e(α, β) · e(I_i, γ) · e(C_i, δ), with I_i = IC_0 + Σ_j x_ij·IC_j. For random
z_i, all of them are raised to z_i and multiplied:

    Π e(z_i·A_i, B_i) = e(Σz_i·α, β) · e(Σz_i·I_i, γ) · e(Σz_i·C_i, δ).

So n proofs need n + 3 Miller loops and one final exponentiation instead of 4n and n.

Soundness. Every point has been checked to lie in its subgroup of order r, so each equation is one between elements of a
group of the prime order r: with a generator g, its left side over its right is g^(e_i), and proof i is valid exactly if
e_i = 0 mod r. The product says Σ z_i·e_i = 0 mod r. Let some e_k be other than 0, and fix all z_i but z_k: at most one
value of z_k modulo r satisfies it. z_k is uniform among 2^128 values, fewer than r, and drawn from the operating system
after the proofs are known. So a batch that holds an invalid proof passes with probability at most 2^−128, whoever made
it. Without the check for subgroups this argument fails: an e_k of small order would vanish for one z_k in a few.

(The technique is Bellare, Garay and Rabin's small exponents test, EUROCRYPT 1998.)
"""

import secrets
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from py_arkworks_bls12381 import GT

from cuzklab.backends import host
from cuzklab.backends.host.parallel import ranges, run, thread_count
from cuzklab.prover.model import Proof, VerifyingKey
from cuzklab.prover.pairing import library_points
from cuzklab.prover.verify import VALID, WRONG_EQUATION, PreparedKey, Verdict, check_inputs, prepare, verify

_EXPONENT_BYTES = 16
_BLOCK_PROOFS = 256
# Below this, halving a batch that failed costs more than looking at each proof.
_ONE_BY_ONE = 3
# And where one proof in so many has been found wrong already, halving on is a waste.
_MANY_WRONG = 16


def verify_many(
    vk: VerifyingKey | PreparedKey,
    publics: Sequence[np.ndarray],
    proofs: Sequence[Proof],
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """The verdict on each of many proofs, the same as `verify` gives one by one.

    Proofs are taken a block at a time. Where a block's equation does not hold, it is halved until the proofs at fault
    stand alone, so a few invalid ones among many cost little.

    Parameters
    ----------
    vk : VerifyingKey or PreparedKey
    publics : sequence of (n, 4) uint64
        Public values of each proof.
    proofs : sequence of Proof
    threads : int, optional
        All cores unless given; each takes blocks of its own.
    progress : callable, optional
        Called with the number of proofs that are decided and of all.

    Raises
    ------
    BadInput
        The key is unusable, as `prepare` says.
    ValueError
        As many sets of public values as proofs are needed.
    """
    if len(publics) != len(proofs):
        raise ValueError(f"{len(proofs)} proofs and {len(publics)} sets of public values")
    key = vk if isinstance(vk, PreparedKey) else prepare(vk)
    verdicts: list[Verdict | None] = [None] * len(proofs)
    done, lock = 0, Lock()

    def work(begin: int, end: int, _: object) -> None:
        nonlocal done
        part = slice(begin, end)
        verdicts[part] = _block(key, publics[part], proofs[part])
        if progress:
            with lock:
                done += end - begin
                progress(done, len(proofs))

    threads = thread_count(threads)
    blocks = max(-(-len(proofs) // _BLOCK_PROOFS), min(threads, -(-len(proofs) // 16)))
    run(work, ranges(len(proofs), blocks), threads, lambda: None)
    return verdicts


def _block(key: PreparedKey, publics: Sequence[np.ndarray], proofs: Sequence[Proof]) -> list[Verdict]:
    verdicts: list[Verdict | None] = [check_inputs(key, public) for public in publics]
    left = [i for i, verdict in enumerate(verdicts) if verdict is None]
    if not left:
        return verdicts
    if not _all_in_subgroups([proofs[i] for i in left]):
        # Seldom: `verify` says of each what is wrong, or that its points are right.
        for i in left:
            verdicts[i] = verify(key, publics[i], proofs[i])
        return verdicts
    equations = _Equations(key, [publics[i] for i in left], [proofs[i] for i in left])
    for place, i in enumerate(left):
        verdicts[i] = VALID if equations.holds[place] else WRONG_EQUATION
    return verdicts


def _all_in_subgroups(proofs: Sequence[Proof]) -> bool:
    g1 = np.stack([point for proof in proofs for point in (proof.a, proof.c)])
    g2 = np.stack([proof.b for proof in proofs])
    return (
        max(host.on_curve_g1(g1, threads=1), host.on_curve_g2(g2, threads=1)) < 0
        and max(host.in_subgroup_g1(g1, threads=1), host.in_subgroup_g2(g2, threads=1)) < 0
    )


class _Equations:
    """Which of some proofs, all of points in their subgroups, satisfy the equation: `holds`."""

    def __init__(self, key: PreparedKey, publics: Sequence[np.ndarray], proofs: Sequence[Proof]) -> None:
        self._key, self._publics, self._proofs = key, publics, proofs
        self._a, self._c = np.stack([it.a for it in proofs]), np.stack([it.c for it in proofs])
        self._b = library_points(np.stack([it.b for it in proofs]))
        self.holds = [True] * len(proofs)
        self._wrong = 0
        self._look_at(range(len(proofs)))

    def _look_at(self, which: range) -> None:
        if len(which) <= _ONE_BY_ONE or self._wrong > len(self._proofs) // _MANY_WRONG:
            for i in which:
                self.holds[i] = verify(self._key, self._publics[i], self._proofs[i]).valid
                self._wrong += not self.holds[i]
        elif not self._all_hold(which):
            self._look_at(which[: len(which) // 2])
            self._look_at(which[len(which) // 2 :])

    def _all_hold(self, which: range) -> bool:
        raw = secrets.token_bytes(_EXPONENT_BYTES * len(which))
        z = np.frombuffer(raw, np.uint64).reshape(-1, 2)
        begin, end = which.start, which.stop
        wide = np.zeros((len(z), 4), np.uint64)
        wide[:, :2] = z
        exponents = host.limbs_to_ints(z)
        # Sum over the proofs of z_i times the public values, the constant one in front.
        sums = [sum(exponents)]
        values = [host.limbs_to_ints(public) for public in self._publics[begin:end]]
        sums += [sum(z_i * x[j] for z_i, x in zip(exponents, values)) for j in range(self._key.public)]
        scalars = host.ints_to_limbs([it % host.FR_MODULUS for it in sums], 4)
        left = host.multiply_each_g1(self._a[begin:end], z, threads=1)
        alpha, inputs, c = (
            host.neg_g1(point)
            for point in (
                host.mul_g1(_native(self._key.alpha), sums[0]),
                host.msm_g1(self._key.ic_points, scalars, threads=1),
                host.msm_g1(self._c[begin:end], wide, threads=1),
            )
        )
        g1 = [*library_points(left), *library_points(np.stack((alpha, inputs, c)))]
        return GT.pairing_check(g1, [*self._b[begin:end], self._key.beta, self._key.gamma, self._key.delta])


def _native(point) -> np.ndarray:
    raw = bytes(point.to_xy_bytes_le())
    return host.coordinates_to_limbs(int.from_bytes(raw[at : at + 48], "little") for at in (0, 48))
