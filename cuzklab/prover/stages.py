"""The proving stages, each a plain function of what it reads; `cuzklab.stages` is the table of their sizes and costs.

Whoever strings them together decides on threads, locks and buffers: `prove` runs one after the other, a live policy
runs each where and when it says. Inputs that stream to a device know how many bytes that takes (`streamed_bytes`).

A key serves many proofs, so what depends on it alone is done once, by `dense_key`: queries lose their points at
infinity, whose wires occur in no row, and remember which wires are left (the densities of bellperson's keys).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.backend import HOST, Backend, Sum, settled
from cuzklab.backends.limbs import checked
from cuzklab.errors import BadInput
from cuzklab.prover.constraints import Constraints, Evaluations, compiled, evaluate
from cuzklab.prover.density import Density
from cuzklab.prover.model import ConstraintSystem, Dialect, Proof, ProvingKey, VerifyingKey
from cuzklab.prover.streaming import AnyPoints, chosen, masked_sum, msm, point_bytes


@dataclass(frozen=True)
class DenseQuery:
    """Points of a query that are not at infinity, and the wires whose values multiply them.

    Attributes
    ----------
    points : (n, 12) or (n, 24) uint64, or points of a mapped file
    density : Density
        Of n wires.
    """

    points: AnyPoints
    density: Density

    @property
    def wires(self) -> np.ndarray:
        """(n,) uint32, ascending; made anew each time."""
        return self.density.wires


@dataclass(frozen=True)
class DenseKey:
    """A proving key as the stages take it: dense queries and matrices ready for evaluation.

    `b_g1` and `b_g2` are over the same wires.
    """

    wires: int
    public: int
    domain: int
    constraints: Constraints
    beta_g1: np.ndarray
    delta_g1: np.ndarray
    vk: VerifyingKey
    h: AnyPoints
    l: DenseQuery
    a: DenseQuery
    b_g1: DenseQuery
    b_g2: DenseQuery
    dialect: Dialect = "snarkjs"
    test_only: bool = False

    @property
    def query_bytes(self) -> int:
        """Bytes of all five queries' points, in the form that kernels take."""
        return point_bytes(self.h) + sum(point_bytes(it.points) for it in (self.l, self.a, self.b_g1, self.b_g2))

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> "DenseKey":
        """The same key with the points of all queries elsewhere: `move` gives the copy of an array."""
        queries = {name: getattr(self, name) for name in ("l", "a", "b_g1", "b_g2")}
        elsewhere = {name: replace(query, points=move(query.points)) for name, query in queries.items()}
        return replace(self, h=move(self.h), **elsewhere)


def check_same_circuit(system: ConstraintSystem, key: ProvingKey | DenseKey) -> None:
    """Refuse a constraint system that cannot be the one a key was made for.

    Raises
    ------
    BadInput
        Their numbers of wires or public values, or their domains, differ.
    """
    mine, theirs = ((it.wires, it.public, it.domain) for it in (system, key))
    if mine != theirs:
        described = ("{} wires, {} public values, domain {}".format(*numbers) for numbers in (mine, theirs))
        raise BadInput("circuit ({}) and key ({}) do not belong together".format(*described))


def dense_key(key: ProvingKey, system: ConstraintSystem | None = None) -> DenseKey:
    """Prepare a key for proving; copies queries that have points at infinity or lie unaligned in a mapped file.

    With the constraint system, c is evaluated from its C matrix instead of being taken as a ∘ b.

    Raises
    ------
    BadInput
        The constraint system is not the key's.
    """
    if system is not None:
        check_same_circuit(system, key)
    b_wires = np.flatnonzero(key.b_g2_query.any(axis=1))
    return DenseKey(
        wires=key.wires,
        public=key.public,
        domain=key.domain,
        constraints=compiled(system if system is not None else key),
        beta_g1=key.beta_g1,
        delta_g1=key.delta_g1,
        vk=key.vk,
        h=np.require(key.h_query, requirements=["ALIGNED", "C_CONTIGUOUS"]),
        l=_dense(key, key.l_query, np.flatnonzero(key.l_query.any(axis=1)), first_wire=1 + key.public),
        a=_dense(key, key.a_query, np.flatnonzero(key.a_query.any(axis=1))),
        b_g1=_dense(key, key.b_g1_query, b_wires),
        b_g2=_dense(key, key.b_g2_query, b_wires),
        test_only=key.test_only,
    )


def _dense(key: ProvingKey, points: np.ndarray, finite: np.ndarray, first_wire: int = 0) -> DenseQuery:
    if len(finite) < len(points):
        points = host.gather(points, finite)
    # A mapped file's sections lie at multiples of 4, which native code may not read 64-bit limbs from.
    kept = np.require(points, requirements=["ALIGNED", "C_CONTIGUOUS"])
    return DenseQuery(kept, Density.of(first_wire + finite, key.wires))


@dataclass(frozen=True)
class MaskedPoints:
    """Points to be summed where a bit is set: what `batch_add` streams.

    Attributes
    ----------
    points : (n, 12) or (n, 24) uint64
    ones : (⌈n / 64⌉,) uint64
        Bit i set where the scalar of point i is 1.
    """

    points: AnyPoints
    ones: np.ndarray

    @property
    def streamed_bytes(self) -> int:
        return point_bytes(self.points) + -(-len(self.points) // 8)


@dataclass(frozen=True)
class ScaledPoints:
    """Points and their scalars, (n, 4) uint64, plain: what a tail's or H's MSM takes."""

    points: AnyPoints
    scalars: np.ndarray

    @property
    def streamed_bytes(self) -> int:
        return point_bytes(self.points) + self.scalars.nbytes


@dataclass(frozen=True)
class SplitMsm:
    """One query's MSM in two parts: Σ scalar·point = Σ over ones of the point + Σ over the tail.

    `ones` is None where splitting does not pay, because more than half of the scalars are neither 0 nor 1; the tail
    then has all that are not 0.
    """

    ones: MaskedPoints | None
    tail: ScaledPoints


Empty = Callable[..., np.ndarray]
"""Makes an array of uint64 of a shape, undefined, in memory that a device can use."""


def synthesis(
    constraints: Constraints,
    witness: np.ndarray,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    empty: Empty | None = None,
    threads: int | None = None,
) -> Evaluations:
    """Evaluate the constraints on a witness, shape (wires, 4), plain; `out`, `empty` as in `constraints.evaluate`."""
    return evaluate(constraints, witness, out=out, empty=empty, threads=threads)


def prep_msm(
    key: DenseKey, witness: np.ndarray, *, threads: int | None = None, empty: Empty | None = None
) -> dict[str, SplitMsm]:
    """Class the scalars of L, A and B as 0, 1 or other; make bitmaps of the ones and gather the tails.

    The witness is read once, for all queries; then only what is in a tail is. Of points in a mapped file the tails are
    remembered only, and read when they are added up.

    Parameters
    ----------
    key : DenseKey
    witness : (wires, 4) uint64, plain
    threads : int, optional
        The modelled engine has one for it.
    empty : callable, optional
        Makes the arrays of the tails.

    Returns
    -------
    dict
        Keyed by query: l, a, b_g1, b_g2.

    Raises
    ------
    ValueError
        The witness has another number of wires than the key.
    """
    checked("witness", witness, np.uint64, key.wires, 4)
    classes = host.classify(witness, threads=threads)
    split: dict[str, SplitMsm] = {}
    for names in (("b_g1", "b_g2"), ("l",), ("a",)):  # those of one tuple are over the same wires
        queries = [getattr(key, name) for name in names]
        split |= zip(names, _split(classes, witness, queries, threads, empty or _empty), strict=True)
    return split


def split_pays(tail: int, scalars: int) -> bool:
    """Whether an MSM is worth splitting: unless more than half of its scalars are neither 0 nor 1."""
    return 2 * tail <= scalars


def _split(
    classes: host.Classes, witness: np.ndarray, queries: list[DenseQuery], threads: int | None, empty: Empty
) -> list[SplitMsm]:
    """The split of queries over the same wires."""
    density = queries[0].density
    found = host.classes_of_query(classes, density.bits, density.count)
    worthwhile = split_pays(len(found.points), density.count)
    if not worthwhile:
        found = host.classes_of_query(classes, density.bits, density.count, ones_in_tail=True)

    def gathered(rows: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return host.gather_rows(rows, indices, empty(len(indices), rows.shape[1]), threads=threads)

    scalars = gathered(witness, found.wires)
    return [
        SplitMsm(
            ones=MaskedPoints(query.points, found.ones) if worthwhile else None,
            tail=ScaledPoints(
                gathered(query.points, found.points)
                if isinstance(query.points, np.ndarray)
                else chosen(query.points, found.points),
                scalars,
            ),
        )
        for query in queries
    ]


def _empty(*shape: int) -> np.ndarray:
    return np.empty(shape, np.uint64)


def load_evaluations(evaluations: Evaluations, d_a: Any, d_bc: Any, *, on: Backend = HOST) -> None:
    """Copy a to d_a, b and c to the halves of d_bc, and fill up with zeros: the upload before `ntt_h`.

    Parameters
    ----------
    d_a : (domain, 4) uint64
    d_bc : (2, domain, 4) uint64
    on : Backend
        Whose arrays they are; so in the stages below.
    """
    for source, target in zip((evaluations.a, evaluations.b, evaluations.c), (d_a, *d_bc), strict=True):
        on.fill(target, source)


def ntt_h(d_a: Any, d_bc: Any, *, dialect: Dialect = "snarkjs", threads: int | None = None, on: Backend = HOST) -> None:
    """Turn the evaluations a, b, c into the scalars of the H query, in place.

    snarkjs: the query is a Lagrange basis on the odd powers of the doubled domain's root w, so these scalars are
    a·b − c there, and nothing is divided: six transforms. bellman: the query is monomial; seven transforms.

    Parameters
    ----------
    d_a : (domain, 4) uint64
        Holds a in Montgomery form; afterwards the scalars, plain.
    d_bc : (2, domain, 4) uint64
        Holds b and c in Montgomery form; afterwards nothing of use.
    """
    (on.h_polynomial if dialect == "snarkjs" else on.h_coefficients)(d_a, *d_bc, threads=threads)


def h_msm(inputs: ScaledPoints, *, threads: int | None = None, on: Backend = HOST, later: bool = False) -> Sum:
    """Σ scalar·point over the H query: a G1 point. The scalars are on the device already, so only points stream.

    There may be more scalars than points: bellman's query has one point fewer than the domain. `later` as `Backend`
    has it, here and in the stages below: `add_up` does what was left.
    """
    return msm(inputs.points, inputs.scalars[: len(inputs.points)], threads=threads, on=on, later=later)


def batch_add(inputs: MaskedPoints, *, threads: int | None = None, on: Backend = HOST, later: bool = False) -> Sum:
    """The sum of the points whose scalar is 1, in the group that they are of."""
    return masked_sum(inputs.points, inputs.ones, threads=threads, on=on, later=later)


def tail_msm(inputs: ScaledPoints, *, threads: int | None = None, on: Backend = HOST, later: bool = False) -> Sum:
    """Σ scalar·point over a tail in G1."""
    return msm(inputs.points, inputs.scalars, threads=threads, on=on, later=later)


def b_g2_msm(inputs: ScaledPoints, *, threads: int | None = None) -> np.ndarray:
    """Σ scalar·point over B's tail in G2."""
    return msm(inputs.points, inputs.scalars, threads=threads)


@dataclass(frozen=True)
class QuerySums:
    """The value of each query's MSM, both parts of a split added: four points of G1, one of G2."""

    h: np.ndarray
    l: np.ndarray
    a: np.ndarray
    b_g1: np.ndarray
    b_g2: np.ndarray


def add_up(h: Sum, ones: Mapping[str, Sum], tails: Mapping[str, Sum]) -> QuerySums:
    """Join the sums of ones, where a query was split, with those of the tails; keyed by query."""
    sums = {query: settled(point) for query, point in tails.items()}
    for query, point in ones.items():
        sums[query] = (host.add_g2 if query == "b_g2" else host.add_g1)(sums[query], settled(point))
    return QuerySums(h=settled(h), **sums)


def epilogue(key: DenseKey, sums: QuerySums, r: int, s: int) -> Proof:
    """Assemble a proof.

    A = α + ΣA + r·δ, B = β + ΣB + s·δ, C = ΣL + ΣH + s·A + r·(β + ΣB + s·δ in G1) − r·s·δ.
    """
    add, multiply = host.add_g1, host.mul_g1
    a = add(add(key.vk.alpha_g1, sums.a), multiply(key.delta_g1, r))
    b_g1 = add(add(key.beta_g1, sums.b_g1), multiply(key.delta_g1, s))
    b = host.add_g2(host.add_g2(key.vk.beta_g2, sums.b_g2), host.mul_g2(key.vk.delta_g2, s))
    c = add(add(sums.l, sums.h), add(multiply(a, s), multiply(b_g1, r)))
    c = add(c, multiply(key.delta_g1, -r * s % host.FR_MODULUS))
    return Proof(a, b, c)
