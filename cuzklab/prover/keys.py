"""Keys made ready for the stages: from a mapped file, so that its points are read while they are added up.

A `.zkey` has a point for every wire, at infinity where the wire does not occur, and its own constraint matrices. A
`.params` has points only for wires that occur and no matrices, so it needs the circuit. Either is told from the other
by its bytes, and refused where its rows are ordered by the other dialect's root of unity (`roots`).
"""

import os

import numpy as np

from cuzklab.errors import BadInput
from cuzklab.prover.constraints import CircuitConstraints, MappedConstraints, densities
from cuzklab.prover.density import Density
from cuzklab.prover.files.container import open_regular, printable
from cuzklab.prover.files.params import read_params
from cuzklab.prover.files.zkey import KeyFile, is_zkey, matrix_records, open_zkey, verifying_key
from cuzklab.prover.model import BellmanKey, ConstraintSystem, Points
from cuzklab.prover.roots import check_bellman_root, check_snarkjs_root
from cuzklab.prover.stages import DenseKey, DenseQuery, check_same_circuit
from cuzklab.prover.streaming import chosen

_BLOCK_POINTS = 1 << 16


def open_key(path: str | os.PathLike, system: ConstraintSystem | None = None) -> DenseKey:
    """Map a proving key of either dialect.

    Parameters
    ----------
    path : path
        `.zkey` or `.params`. The file must stay as it is while the key is in use.
    system : ConstraintSystem, optional
        The circuit; a `.params` file needs it, with a `.zkey` it is compared.

    Raises
    ------
    BadInput
        Not a usable key, a key of another circuit, one made with the other dialect's root of unity, or no circuit
        where one is needed.
    """
    if is_zkey(path):
        return _dense_zkey(open_zkey(path), system, printable(path))
    refuse_other_kinds(path)
    if system is None:
        raise BadInput(
            f"{printable(path)}: no .zkey, and a key in bellman's form (.params) does not hold its circuit; give the "
            "circuit (.r1cs) as well"
        )
    return dense_bellman_key(read_params(path), system, where=printable(path))


def refuse_other_kinds(path: str | os.PathLike) -> None:
    """Refuse a circuit or a witness where a key is expected; a key in bellman's form has no mark of its own.

    Raises
    ------
    BadInput
    """
    with open_regular(path) as file:
        kind = {b"r1cs": "a circuit (.r1cs)", b"wtns": "a witness (.wtns)"}.get(file.read(4))
    if kind:
        raise BadInput(f"{printable(path)}: is {kind}, not a key")


def _dense_zkey(file: KeyFile, system: ConstraintSystem | None, where: str) -> DenseKey:
    if system is not None:
        check_same_circuit(system, file)
    points = file.points
    records, ascending = matrix_records(file)
    b_wires = _finite(points["b_g2"])

    def query(name: str, finite: np.ndarray, first_wire: int = 0) -> DenseQuery:
        return DenseQuery(chosen(points[name], finite), Density.of(finite + np.uint32(first_wire), file.wires))

    key = DenseKey(
        wires=file.wires,
        public=file.public,
        domain=file.domain,
        constraints=MappedConstraints(records, file.domain, ascending),
        beta_g1=points["beta_g1"].points[0].copy(),
        delta_g1=points["delta_g1"].points[0].copy(),
        vk=verifying_key(file),
        h=points["h"],
        l=query("l", _finite(points["l"]), 1 + file.public),
        a=query("a", _finite(points["a"])),
        b_g1=query("b_g1", b_wires),
        b_g2=query("b_g2", b_wires),
        test_only=file.test_only,
    )
    check_snarkjs_root(key, where)
    return key


def _finite(points: Points) -> np.ndarray:
    """Indices, uint32, of the points of a mapped section that are not at infinity."""
    array = points.points
    found = [
        begin + np.flatnonzero(array[begin : begin + _BLOCK_POINTS].any(axis=1))
        for begin in range(0, len(array), _BLOCK_POINTS)
    ]
    return np.concatenate(found).astype(np.uint32) if found else np.zeros(0, np.uint32)


def dense_bellman_key(key: BellmanKey, system: ConstraintSystem, *, where: str = "key") -> DenseKey:
    """Give the points of a bellman key their wires.

    Raises
    ------
    BadInput
        The key was made for another circuit, or with the other dialect's root of unity.
    """
    inputs = 1 + system.public
    a_wires, b_wires = densities(system)
    for name, points, wanted, what in (
        ("ic", key.vk.ic, inputs, "public wires, the constant one counted"),
        ("h", key.h, system.domain - 1, "points below its domain"),
        ("l", key.l, system.wires - inputs, "private wires"),
        ("a", key.a, len(a_wires), "wires in A"),
        ("b_g1", key.b_g1, len(b_wires), "wires in B"),
    ):
        if len(points) != wanted:
            raise BadInput(
                f"{where}: {len(points)} points of {name}, but the circuit has {wanted} {what}; "
                "they do not belong together"
            )
    in_b = Density.of(b_wires, system.wires)
    dense = DenseKey(
        wires=system.wires,
        public=system.public,
        domain=system.domain,
        constraints=CircuitConstraints(system),
        beta_g1=key.beta_g1,
        delta_g1=key.delta_g1,
        vk=key.vk,
        h=key.h,
        l=DenseQuery(key.l, Density.of(np.arange(inputs, system.wires, dtype=np.uint32), system.wires)),
        a=DenseQuery(key.a, Density.of(a_wires, system.wires)),
        b_g1=DenseQuery(key.b_g1, in_b),
        b_g2=DenseQuery(key.b_g2, in_b),
        dialect="bellman",
        test_only=key.test_only,
    )
    check_bellman_root(dense, where)
    return dense
