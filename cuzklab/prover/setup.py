"""TEST-ONLY setup: a proving key whose trapdoor comes from a seed.

WHOEVER HAS THE SEED CAN FORGE PROOFS. A key made here proves nothing to anybody but the person who made it; it is for
measurements and tests, where a ceremony would take hours. The key says so (`ProvingKey.test_only`).

One trapdoor serves both dialects. With the domain's n-th root ω, L_i the Lagrange basis on its powers at τ:

* u_j = Σ_i A_ij·L_i, v_j and t_j likewise from B and C; A's rows are followed by one for each public wire;
* A query u_j·G1; B queries v_j·G1 and v_j·G2;
* IC and L queries (β·u_j + α·v_j + t_j)·G1, for private wires divided by δ, for the others by γ.

snarkjs (`setup`) has ω = 5^…, γ = 1, a point for every wire, and the H query M_{2i+1} / δ·G1, M_i the Lagrange basis on
the powers of the 2n-th root w; M_{2i+1}(τ) = L_i(τ/w)·(τ^n − 1)/(−2). bellman (`bellman_setup`) has ω = 7^…, a γ of
its own, points only for wires that occur, and the H query τ^i·(τ^n − 1) / δ·G1 for i < n − 1.

`dense_setup` makes snarkjs's key at once in the form that the proving stages take, on the CPU or a GPU.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import TWO_ADICITY
from cuzklab.backends.keys import HOST_KEYS, KeyArithmetic
from cuzklab.errors import BadInput
from cuzklab.prover.constraints import compiled, densities, with_public_rows
from cuzklab.prover.density import Density
from cuzklab.prover.model import BellmanKey, ConstraintSystem, ProvingKey, VerifyingKey
from cuzklab.prover.stages import DenseKey, DenseQuery


@dataclass(frozen=True)
class Trapdoor:
    """The secrets of a setup; whoever knows them can forge."""

    tau: int
    alpha: int
    beta: int
    delta: int
    gamma: int


Progress = Callable[[str, float], None]
"""Told what is being made, and the share of the whole that is done, 0 to 1."""


def trapdoor_from_seed(seed: str | int, domain: int) -> Trapdoor:
    """Secrets drawn from SHAKE-256 of the seed: the first that are below r, not zero and, for τ, outside the domain."""

    def draw(name: str, usable: Callable[[int], bool]) -> int:
        stream = hashlib.shake_256(f"cuzklab test setup\0{name}\0{seed}".encode())
        draws = 64  # one is unusable with probability about 0.1
        data = stream.digest(32 * draws)
        for i in range(draws):
            value = int.from_bytes(data[32 * i : 32 * i + 32], "little") & ((1 << 255) - 1)
            if 0 < value < host.FR_MODULUS and usable(value):
                return value
        raise ArithmeticError(f"no usable value for {name} among {draws} draws")

    return Trapdoor(
        tau=draw("tau", lambda tau: pow(tau, 2 * domain, host.FR_MODULUS) != 1),
        alpha=draw("alpha", bool),
        beta=draw("beta", bool),
        delta=draw("delta", bool),
        gamma=draw("gamma", bool),
    )


def setup(
    system: ConstraintSystem,
    seed: str | int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ProvingKey:
    """A TEST KEY in snarkjs's dialect. WHOEVER HAS THE SEED CAN FORGE PROOFS; never use it for anything of value.

    Parameters
    ----------
    system : ConstraintSystem
    seed : str or int
        The same seed gives the same key, bit for bit, on every machine and for any number of threads.
    threads : int
    progress : callable, optional
        Called with the step's name and the share of the whole work that is done, 0 to 1.

    Returns
    -------
    ProvingKey
        With `test_only` set.
    """
    domain, first_private = system.domain, 1 + system.public
    secrets = trapdoor_from_seed(seed, domain)
    make = _Making(6 * system.wires + domain, threads, progress)
    make.report("evaluating the circuit's polynomials")
    u, v, combined = _columns(system, secrets, host.SNARKJS_ROOT, threads)
    by_delta = pow(secrets.delta, -1, host.FR_MODULUS)
    a_query = make.g1("A query", u)
    b_g1_query = make.g1("B query in G1", v)
    ic = make.g1("public inputs", combined[:first_private])
    l_query = make.g1("L query", HOST_KEYS.combination([(by_delta, combined[first_private:])]))
    h_query = make.g1("H query", _odd_basis(secrets, domain, by_delta, threads))
    b_g2_query = make.g2("B query in G2", v)
    beta_g1, delta_g1, vk = _single_points(replace(secrets, gamma=1), ic)
    make.report("done")
    matrices = compiled(system)
    return ProvingKey(
        wires=system.wires,
        public=system.public,
        domain=domain,
        beta_g1=beta_g1,
        delta_g1=delta_g1,
        vk=vk,
        a=matrices.a,
        b=matrices.b,
        a_query=a_query,
        b_g1_query=b_g1_query,
        b_g2_query=b_g2_query,
        l_query=l_query,
        h_query=h_query,
        test_only=True,
    )


def bellman_setup(
    system: ConstraintSystem,
    seed: str | int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> BellmanKey:
    """A TEST KEY in bellman's dialect: from the same secrets as `setup`, and gamma. WHOEVER HAS THE SEED CAN FORGE.

    Raises
    ------
    BadInput
        A private wire occurs in no constraint, which bellman's keys cannot express.
    """
    domain, inputs = system.domain, 1 + system.public
    secrets = trapdoor_from_seed(seed, domain)
    a_wires, b_wires = densities(system)
    make = _Making(system.wires + len(a_wires) + 4 * len(b_wires) + domain, threads, progress)
    make.report("evaluating the circuit's polynomials")
    u, v, combined = _columns(system, secrets, host.BELLMAN_ROOT, threads)
    unconstrained = np.flatnonzero(~combined[inputs:].any(axis=1))
    if len(unconstrained):
        raise BadInput(
            f"circuit: wire {inputs + unconstrained[0]} occurs in no constraint, and keys in bellman's form have no "
            "place for it; compile the circuit with optimisation (circom --O2), or make a .zkey"
        )
    by_delta, by_gamma = (pow(secret, -1, host.FR_MODULUS) for secret in (secrets.delta, secrets.gamma))
    vanishing = pow(secrets.tau, domain, host.FR_MODULUS) - 1
    powers = host.fr_mul(
        host.fr_powers(secrets.tau, domain - 1), host.ints_to_limbs([vanishing * by_delta % host.FR_MODULUS], 4)
    )
    h = make.g1("H query", powers)
    l = make.g1("L query", HOST_KEYS.combination([(by_delta, combined[inputs:])]))
    a = make.g1("A query", host.gather(u, a_wires))
    b_g1 = make.g1("B query in G1", host.gather(v, b_wires))
    ic = make.g1("public inputs", HOST_KEYS.combination([(by_gamma, combined[:inputs])]))
    b_g2 = make.g2("B query in G2", host.gather(v, b_wires))
    beta_g1, delta_g1, vk = _single_points(secrets, ic)
    make.report("done")
    return BellmanKey(beta_g1, delta_g1, vk, h, l, a, b_g1, b_g2, test_only=True)


def dense_setup(
    system: ConstraintSystem,
    seed: str | int,
    *,
    on: KeyArithmetic = HOST_KEYS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DenseKey:
    """A TEST KEY as `dense_key(setup(…), system)` gives it, array by array, but without points at infinity on the way.

    WHOEVER HAS THE SEED CAN FORGE PROOFS. What it takes of memory is the key and little else.

    Parameters
    ----------
    on : KeyArithmetic
        Where it is computed; the points come from there, page-locked where a GPU made them.
    """
    domain, first_private = system.domain, 1 + system.public
    secrets = trapdoor_from_seed(seed, domain)
    by_delta = pow(secrets.delta, -1, host.FR_MODULUS)
    make = _Making(6 * system.wires + domain, threads, progress, on)
    make.report("evaluating the circuit's polynomials")
    u, v, combined = _columns(system, secrets, host.SNARKJS_ROOT, threads, on)
    a_wires, b_wires = on.nonzero(u), on.nonzero(v)
    in_a, in_b = Density.of(a_wires, system.wires), Density.of(b_wires, system.wires)
    a = make.g1("A query", on.take(u, a_wires))
    del u, a_wires
    b_g1 = make.g1("B query in G1", on.take(v, b_wires))
    b_g2 = make.g2("B query in G2", on.take(v, b_wires))
    del v, b_wires
    ic = np.array(make.g1("public inputs", combined[:first_private]))
    private = combined[first_private:]
    l_wires = on.nonzero(private)
    in_l = Density.of(first_private + l_wires, system.wires)
    l = make.g1("L query", on.combination([(by_delta, on.take(private, l_wires))]))
    del combined, private, l_wires
    h = make.g1("H query", _odd_basis(secrets, domain, by_delta, threads, on))
    beta_g1, delta_g1, vk = _single_points(replace(secrets, gamma=1), ic)
    make.report("done")
    return DenseKey(
        wires=system.wires,
        public=system.public,
        domain=domain,
        constraints=compiled(system),
        beta_g1=beta_g1,
        delta_g1=delta_g1,
        vk=vk,
        h=h,
        l=DenseQuery(l, in_l),
        a=DenseQuery(a, in_a),
        b_g1=DenseQuery(b_g1, in_b),
        b_g2=DenseQuery(b_g2, in_b),
        test_only=True,
    )


class _Making:
    """Multiplies the generators, and reports shares of the points to compute; one in G2 costs about three in G1."""

    def __init__(
        self, total: int, threads: int | None, progress: Progress | None, on: KeyArithmetic = HOST_KEYS
    ) -> None:
        self._on = on
        self._done, self._total, self._threads, self._progress = 0, total, threads, progress

    def report(self, step: str) -> None:
        if self._progress:
            self._progress(step, min(self._done / self._total, 1.0) if step != "done" else 1.0)

    def g1(self, step: str, scalars: Any) -> np.ndarray:
        self.report(step)
        self._done += len(scalars)
        return self._on.multiples("g1", scalars, threads=self._threads)

    def g2(self, step: str, scalars: Any) -> np.ndarray:
        self.report(step)
        self._done += 3 * len(scalars)
        return self._on.multiples("g2", scalars, threads=self._threads)


def _columns(
    system: ConstraintSystem, secrets: Trapdoor, root: int, threads: int | None, on: KeyArithmetic = HOST_KEYS
) -> tuple[Any, Any, Any]:
    """u, v and β·u + α·v + t for every wire, plain."""
    basis = on.lagrange_basis(secrets.tau, system.domain, root=root, threads=threads)
    u, v, t = (
        on.column_sums(matrix, system.wires, basis, threads=threads)
        for matrix in (with_public_rows(system), system.b, system.c)
    )
    return u, v, on.combination([(secrets.beta, u), (secrets.alpha, v), (1, t)])


def _odd_basis(secrets: Trapdoor, domain: int, factor: int, threads: int | None, on: KeyArithmetic = HOST_KEYS) -> Any:
    """factor · M_{2i+1}(τ): the odd half of the Lagrange basis on the powers of snarkjs's 2n-th root."""
    double_root = pow(host.SNARKJS_ROOT, (1 << TWO_ADICITY) // (2 * domain), host.FR_MODULUS)
    shifted = secrets.tau * pow(double_root, -1, host.FR_MODULUS) % host.FR_MODULUS
    scale = factor * (pow(secrets.tau, domain, host.FR_MODULUS) - 1) * pow(-2, -1, host.FR_MODULUS)
    return on.lagrange_basis(shifted, domain, root=host.SNARKJS_ROOT, factor=scale, threads=threads)


def _single_points(secrets: Trapdoor, ic: np.ndarray) -> tuple[np.ndarray, np.ndarray, VerifyingKey]:
    singles = host.ints_to_limbs([secrets.alpha, secrets.beta, secrets.delta, secrets.gamma], limbs=4)
    alpha_g1, beta_g1, delta_g1, _ = host.fixed_base_g1(singles, threads=1)
    _, beta_g2, delta_g2, gamma_g2 = host.fixed_base_g2(singles, threads=1)
    return (
        beta_g1,
        delta_g1,
        VerifyingKey(alpha_g1=alpha_g1, beta_g2=beta_g2, gamma_g2=gamma_g2, delta_g2=delta_g2, ic=ic),
    )
