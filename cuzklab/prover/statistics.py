"""Sizes and densities of a circuit, as an operator wants to know them."""

import numpy as np

from cuzklab.prover.model import ConstraintSystem


def statistics(system: ConstraintSystem, witness: np.ndarray | None = None) -> dict[str, int | float]:
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
    facts: dict[str, int | float] = {
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
    if witness is not None:
        small = ~witness[:, 1:].any(axis=1)
        zeros = int((small & (witness[:, 0] == 0)).sum())
        ones = int((small & (witness[:, 0] == 1)).sum())
        facts |= {
            "share_of_zeros": zeros / len(witness),
            "share_of_ones": ones / len(witness),
            "share_of_tail": 1 - (zeros + ones) / len(witness),
        }
    return facts
