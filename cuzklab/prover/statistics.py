"""Sizes and densities of a circuit or key, as an operator wants to know them, and what splitting its MSMs saves."""

import math
from dataclasses import dataclass

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.host.msm import window_bits
from cuzklab.prover.constraints import densities
from cuzklab.prover.model import BellmanKey, ConstraintSystem
from cuzklab.prover.stages import DenseKey, split_pays
from cuzklab.stages import G1_BYTES, G2_BYTES, SCALAR_BITS

Facts = dict[str, int | float | str]
Queries = dict[str, np.ndarray]
"""Wires of each split query: l, a, b."""


@dataclass(frozen=True)
class QuerySplit:
    """How the scalars of one query are distributed for one witness.

    Attributes
    ----------
    query : {"l", "a", "b"}
        b stands for B in G1 and in G2, which have the same wires.
    points, zeros, ones, tail : int
        The tail is neither 0 nor 1.
    pays : bool
        Whether the prover splits: not where more than half of the scalars are in the tail.
    saved : float
        Share of the point additions that splitting saves: Pippenger over the tail and a plain sum of the ones, against
        Pippenger over all that are not 0. Counted, not measured.
    """

    query: str
    points: int
    zeros: int
    ones: int
    tail: int
    pays: bool
    saved: float


def statistics(system: ConstraintSystem, witness: np.ndarray | None = None) -> Facts:
    """What sizes and costs of a proof depend on.

    Parameters
    ----------
    system : ConstraintSystem
    witness : (wires, 4) uint64, optional
        Plain; with it the shares of zeros and ones are told.

    Returns
    -------
    dict
        Counts, and shares between 0 and 1. A density is the share of wires that occur in a matrix at all.
    """
    facts: Facts = {
        "constraints": system.constraints,
        "wires": system.wires,
        "public_outputs": system.public_outputs,
        "public_inputs": system.public_inputs,
        "domain": system.domain,
    }
    for name in ("a", "b", "c"):
        matrix = getattr(system, name)
        facts[f"nonzeros_{name}"] = matrix.nonzeros
    for name in ("a", "b"):
        facts[f"density_{name}"] = len(np.unique(getattr(system, name).wire)) / system.wires
    return facts | (_shares(witness) if witness is not None else {})


def key_statistics(key: DenseKey, witness: np.ndarray | None = None) -> Facts:
    """The same of a proving key; a density is the share of wires that a query has a point for."""
    facts: Facts = {"dialect": key.dialect, "wires": key.wires, "public": key.public, "domain": key.domain}
    facts["nonzeros"] = key.constraints.nonzeros
    points = {"h": len(key.h)} | {name: len(getattr(key, name).points) for name in ("l", "a", "b_g1", "b_g2")}
    facts |= _query_facts(points, key.wires)
    return facts | (_shares(witness) if witness is not None else {})


def params_statistics(key: BellmanKey) -> Facts:
    """The same of a `.params` file alone, which knows only the lengths of its arrays."""
    wires = len(key.vk.ic) + len(key.l)
    facts: Facts = {"dialect": "bellman", "wires": wires, "public": len(key.vk.ic) - 1, "domain": len(key.h) + 1}
    return facts | _query_facts({name: len(getattr(key, name)) for name in ("h", "l", "a", "b_g1", "b_g2")}, wires)


def _query_facts(points: dict[str, int], wires: int) -> Facts:
    return {
        **{f"points_{name}": count for name, count in points.items()},
        "query_bytes": sum((G2_BYTES if name == "b_g2" else G1_BYTES) * count for name, count in points.items()),
        "density_a": points["a"] / wires,
        "density_b": points["b_g1"] / wires,
    }


def _shares(witness: np.ndarray) -> Facts:
    classes = host.classify(witness)
    return {
        "share_of_zeros": classes.zero_count / len(witness),
        "share_of_ones": classes.one_count / len(witness),
        "share_of_tail": classes.other_count / len(witness),
    }


def queries_of(source: ConstraintSystem | DenseKey) -> Queries:
    """Wires of the queries that a prover may split."""
    if isinstance(source, DenseKey):
        return {"l": source.l.wires, "a": source.a.wires, "b": source.b_g1.wires}
    a, b = densities(source)
    return {"l": np.arange(1 + source.public, source.wires), "a": a, "b": b}


def query_splits(queries: Queries, witness: np.ndarray) -> list[QuerySplit]:
    """What splitting does to each query, for a witness (wires, 4), plain."""
    splits = []
    for name, wires in queries.items():
        classes = host.classify(host.gather(witness, wires))
        zeros, ones, tail = classes.zero_count, classes.one_count, classes.other_count
        whole, split = _additions(ones + tail), _additions(tail) + ones
        saved = 1 - split / whole if whole else 0.0
        splits.append(QuerySplit(name, len(wires), zeros, ones, tail, split_pays(tail, len(wires)), saved))
    return splits


def _additions(points: int) -> int:
    """Point additions of an MSM on one thread: one a point and window, two a bucket."""
    if points == 0:
        return 0
    bits = window_bits(points)
    return math.ceil(SCALAR_BITS / bits) * (points + (1 << bits))
