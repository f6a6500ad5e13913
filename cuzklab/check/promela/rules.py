"""The rule of each effect in Promela.

Written from the descriptions in `cuzklab.policies.effects` and not from the code there, whose judge this is.
"""

from collections.abc import Callable

from cuzklab.check.promela import coordination, memory, work
from cuzklab.check.promela.names import Names
from cuzklab.check.promela.options import Option
from cuzklab.check.promela.points import Point
from cuzklab.errors import BadInput
from cuzklab.policies.effects import Effect

RULES: dict[type[Effect], Callable[..., list[Option]]] = {**coordination.RULES, **memory.RULES, **work.RULES}


def options(names: Names, point: Point) -> list[Option]:
    """What can happen at a point."""
    rule = RULES.get(type(point.effect))
    if rule is None:
        raise BadInput(f"{point.where}: {type(point.effect).__name__} has no translation to Promela")
    return rule(names, point, point.effect)
