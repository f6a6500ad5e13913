"""Which of a circuit's wires a query has points for: a bitmap, as bellperson's keys have it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Density:
    """Wires, ascending, of which there are points.

    Attributes
    ----------
    bits : (⌈wires of the circuit / 64⌉,) uint64
        Bit i of word i // 64 is set where wire i has a point; none beyond the last wire.
    count : int
        How many bits are set.
    """

    bits: np.ndarray
    count: int

    @classmethod
    def of(cls, wires: np.ndarray, circuit_wires: int) -> "Density":
        """The density of these wires in a circuit of so many.

        Raises
        ------
        IndexError
            A wire is not one of the circuit's.
        """
        if len(wires) and wires.min() < 0:
            raise IndexError(f"wires: {wires.min()} is none")
        occurs = np.zeros(-(-circuit_wires // 64) * 64, bool)
        occurs[:circuit_wires][wires] = True
        return cls(np.packbits(occurs, bitorder="little").view(np.uint64), int(np.count_nonzero(occurs)))

    @property
    def wires(self) -> np.ndarray:
        """(count,) uint32, ascending; made anew each time."""
        return np.flatnonzero(np.unpackbits(self.bits.view(np.uint8), bitorder="little")).astype(np.uint32)
