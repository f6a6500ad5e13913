"""The shape of a circuit at hand, as the table of stages takes it: measured, not scaled from a model."""

import numpy as np

from cuzklab.prover.model import ConstraintSystem
from cuzklab.stages import CircuitShape


def circuit_shape(name: str, system: ConstraintSystem, witness: np.ndarray) -> CircuitShape:
    """Sizes and densities of a circuit, and the share of a witness's private values that are neither 0 nor 1.

    Parameters
    ----------
    name : str
        Of the shape.
    system : ConstraintSystem
    witness : (wires, 4) uint64, plain
    """
    inputs = 1 + system.public
    private = witness[inputs:]
    significant = private[:, 1:].any(axis=1) | (private[:, 0] > 1)
    occurs_in_a, occurs_in_b = np.zeros(system.wires, bool), np.zeros(system.wires, bool)
    occurs_in_a[system.a.wire], occurs_in_b[system.b.wire] = True, True
    occurs_in_a[:inputs] = True  # by a key's extra rows
    return CircuitShape(
        name=name,
        constraints=system.constraints,
        aux=system.wires - inputs,
        inputs=inputs,
        a_density=int(np.count_nonzero(occurs_in_a)),
        b_density=int(np.count_nonzero(occurs_in_b)),
        nonzeros=system.a.nonzeros + system.b.nonzeros + system.c.nonzeros,
        tail_share=float(np.count_nonzero(significant)) / max(len(private), 1),
    )
