"""The interpreter in virtual time: a policy's engine on a described machine, at production scale, in under a second.

`simulation` is the way in; `interpreter` runs programs of effects as SimPy processes over a `world` that knows who
waits for what; `costs` is the cost model, one function an effect, on `fluid` resources; `host_memory` counts the host's
memory; `tracer` records; `published` compares with what others have measured.
"""

from cuzklab.simulate.compare import compare_with_published
from cuzklab.simulate.published import load_published
from cuzklab.simulate.simulation import Simulation, simulate

__all__ = ["Simulation", "compare_with_published", "load_published", "simulate"]
