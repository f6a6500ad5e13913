"""The interpreter in virtual time: a policy's engine on a described machine, at production scale, in under a second.

`simulation` is the way in for one simulation, `predict` for several with an interval. `interpreter` runs programs of
effects as SimPy processes over a `world` that knows who waits for what, and `activities` carries those that last to
their end; `costs` is the cost model, one function an effect, on `fluid` resources, the `host`'s processor and memory,
of which `demands` says what work asks, and the process's memory `mappings`; `host_memory` counts the host's memory;
`tracer` records. `published` reads what others have measured, `compare` puts simulations beside it, and `calibrate`
states the `problem` of fitting a profile's constants to it, which `fit` solves. In live runs they are measured:
`live_runs` says which runs, `measured` what is taken from them, `alone` what the host's stages take alone, `launching`
those on a device; `validate_runs` puts simulations beside such runs.
"""

from cuzklab.simulate.calibrate import calibrate
from cuzklab.simulate.compare import compare_with_published
from cuzklab.simulate.predict import Prediction, predict
from cuzklab.simulate.published import load_published
from cuzklab.simulate.simulation import Simulation, simulate

__all__ = [
    "Prediction",
    "Simulation",
    "calibrate",
    "compare_with_published",
    "load_published",
    "predict",
    "simulate",
]
