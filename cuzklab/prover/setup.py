"""TEST-ONLY setup: a proving key whose trapdoor comes from a seed.

WHOEVER HAS THE SEED CAN FORGE PROOFS. A key made here proves nothing to anybody but the person who made it; it is for
measurements and tests, where a ceremony would take hours. The key says so (`ProvingKey.test_only`).

The key is in snarkjs's dialect. With the domain's n-th root ω and the 2n-th root w (w² = ω), L_i the Lagrange basis on
the powers of ω and M_i that on the powers of w, both at τ:

* u_j = Σ_i A_ij·L_i, v_j and t_j likewise from B and C; A's rows are followed by one for each public wire;
* A query u_j·G1; B queries v_j·G1 and v_j·G2;
* IC and L queries (β·u_j + α·v_j + t_j)·G1, for private wires divided by δ (γ = 1);
* H query M_{2i+1} / δ·G1.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuzklab.backends import host
from cuzklab.prover.constraints import compiled, with_public_rows
from cuzklab.prover.model import ConstraintSystem, ProvingKey, SparseMatrix, VerifyingKey


@dataclass(frozen=True)
class Trapdoor:
    """The secrets of a setup; whoever knows them can forge."""

    tau: int
    alpha: int
    beta: int
    delta: int


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
    )


def setup(
    system: ConstraintSystem,
    seed: str | int,
    *,
    threads: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> ProvingKey:
    """A TEST KEY for a circuit. WHOEVER HAS THE SEED CAN FORGE PROOFS; never use it for anything of value.

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
    report = progress or (lambda step, share: None)

    report("evaluating the circuit's polynomials", 0.0)
    basis = lagrange_basis(secrets.tau, domain, threads=threads)
    u = column_sums(with_public_rows(system), system.wires, basis, threads=threads)
    v = column_sums(system.b, system.wires, basis, threads=threads)
    t = column_sums(system.c, system.wires, basis, threads=threads)
    combined = host.fr_add(host.fr_add(_scale(u, secrets.beta), _scale(v, secrets.alpha)), t)
    by_delta = pow(secrets.delta, -1, host.FR_MODULUS)
    odd_basis = np.ascontiguousarray(lagrange_basis(secrets.tau, 2 * domain, threads=threads)[1::2])

    # Shares of the work are those of the points to compute; one in G2 costs about three in G1.
    total = 6 * system.wires + domain
    done = 0

    def g1(step: str, scalars: np.ndarray) -> np.ndarray:
        nonlocal done
        report(step, done / total)
        done += len(scalars)
        return host.fixed_base_g1(scalars, threads=threads)

    a_query = g1("A query", u)
    b_g1_query = g1("B query in G1", v)
    ic = g1("public inputs", combined[:first_private])
    l_query = g1("L query", _scale(combined[first_private:], by_delta))
    h_query = g1("H query", _scale(odd_basis, by_delta))
    report("B query in G2", done / total)
    b_g2_query = host.fixed_base_g2(v, threads=threads)
    singles = host.ints_to_limbs([secrets.alpha, secrets.beta, secrets.delta, 1], limbs=4)
    alpha_g1, beta_g1, delta_g1, _ = host.fixed_base_g1(singles, threads=1)
    _, beta_g2, delta_g2, gamma_g2 = host.fixed_base_g2(singles, threads=1)
    report("done", 1.0)

    matrices = compiled(system)
    return ProvingKey(
        wires=system.wires,
        public=system.public,
        domain=domain,
        beta_g1=beta_g1,
        delta_g1=delta_g1,
        vk=VerifyingKey(alpha_g1=alpha_g1, beta_g2=beta_g2, gamma_g2=gamma_g2, delta_g2=delta_g2, ic=ic),
        a=matrices.a,
        b=matrices.b,
        a_query=a_query,
        b_g1_query=b_g1_query,
        b_g2_query=b_g2_query,
        l_query=l_query,
        h_query=h_query,
        test_only=True,
    )


def lagrange_basis(tau: int, domain: int, *, threads: int | None = None) -> np.ndarray:
    """L_i(τ) for the powers of the domain's root of unity, (domain, 4) uint64, plain.

    L_i(τ) = 1/n · Σ_j τ^j · ω^(−ij), so the basis is the inverse transform of the powers of τ.
    """
    powers = host.fr_powers(tau, domain)
    host.ntt(powers, inverse=True, threads=threads)
    return host.fr_from_montgomery(powers)


def column_sums(matrix: SparseMatrix, wires: int, weights: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """Σ_i weights[i] · matrix[i, j] for each wire j, (wires, 4) uint64; all plain."""
    order = np.argsort(matrix.wire, kind="stable")
    column_start = np.concatenate(([0], np.cumsum(np.bincount(matrix.wire, minlength=wires))))
    row = np.repeat(np.arange(matrix.rows, dtype=np.uint32), np.diff(matrix.row_start))[order]
    value = host.fr_to_montgomery(matrix.value[order])
    return host.spmv(column_start, row, value, weights, threads=threads)


def _scale(values: np.ndarray, factor: int) -> np.ndarray:
    """All values times a factor; plain."""
    return host.fr_mul(values, host.fr_to_montgomery(host.ints_to_limbs([factor], limbs=4)))
