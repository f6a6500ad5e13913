"""What is fitted to what: constants of a profile, measured figures, and the simulations that go from one to the other.

Each constant has a scale of its own, z = log(value / starting value) / prior_sd: it starts at 0, and 1 is how far it
may plausibly be off. `cuzklab.simulate.fit` searches in z.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.profiles import Hardware


@dataclass(frozen=True)
class Constant:
    """A constant to be fitted.

    Attributes
    ----------
    name : str
        Dotted, as ``host.memory_efficiency``.
    prior_sd : float
        Standard deviation of log(true value / starting value), as one believes before the fit.
    least, most : float
        Bounds of the value.
    """

    name: str
    prior_sd: float
    least: float
    most: float


@dataclass(frozen=True)
class Target:
    """A measured figure to be met.

    Attributes
    ----------
    words : str
        What was measured, for people.
    measured : float
    sd : float
        Of log(another measurement / this one).
    at_least : bool
        Whether the figure was only seen to be so large, as a peak at which an engine was killed: more is no error.
    kind : str
        Kind of metric.
    """

    words: str
    measured: float
    sd: float
    at_least: bool = False
    kind: str = "batch_average"


@dataclass(frozen=True)
class Problem:
    """What is fitted to what.

    Attributes
    ----------
    hardware : Hardware
        The starting point.
    constants, targets : tuple
    simulate : callable (hardware, seed) -> sequence of float
        The targets' figures; not-a-number where a simulation gives none.
    identity : str
        Of the targets' conditions: stored evaluations are used again only for the same.
    measured : tuple of str
        Constants of the starting point that were not in its file but measured from the runs.
    runs : tuple of str
        Live runs that the targets are of.
    """

    hardware: Hardware
    constants: tuple[Constant, ...]
    targets: tuple[Target, ...]
    simulate: Callable[[Hardware, int], Sequence[float]]
    identity: str
    measured: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    def at(self, z: np.ndarray) -> Mapping[str, float]:
        """Values of the constants."""
        return {
            constant.name: float(
                np.clip(
                    self.hardware.constant(constant.name) * math.exp(constant.prior_sd * one),
                    constant.least,
                    constant.most,
                )
            )
            for constant, one in zip(self.constants, z, strict=True)
        }

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest z."""
        start = [self.hardware.constant(constant.name) for constant in self.constants]
        limits = [
            (math.log(constant.least / value) / constant.prior_sd, math.log(constant.most / value) / constant.prior_sd)
            for constant, value in zip(self.constants, start, strict=True)
        ]
        low, high = np.array(limits).T
        return np.minimum(low, -1e-6), np.maximum(high, 1e-6)


def identity_of(*parts: Any) -> str:
    """Hash of what evaluations depend on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
