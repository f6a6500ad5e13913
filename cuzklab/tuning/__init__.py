"""The best configuration for a workload and machines: policies and knobs are searched by simulation.

`space` says what is searched and refuses what contradicts itself; `trial` holds one simulation and one check, each a
function that workers elsewhere can call; `search` goes from many short simulations to a few long ones; `ranking` orders
what was confirmed, by throughput and by cost, calls ties ties, and finds the Pareto front against memory; `crossover`
asks from which device memory each design pays. `tables` turns what was found into rows for people.
"""

from cuzklab.tuning.crossover import Crossover, crossover
from cuzklab.tuning.search import Tuning, tune
from cuzklab.tuning.space import Configuration, Machine, Space, space_of

__all__ = ["Configuration", "Crossover", "Machine", "Space", "Tuning", "crossover", "space_of", "tune"]
