"""What can happen at a point of a program, when, and what it changes."""

from collections.abc import Callable
from dataclasses import dataclass

from cuzklab.check.causes import site
from cuzklab.check.promela.names import Names
from cuzklab.check.promela.points import Failure, Point

IMPOSSIBLE = Failure("unlisted", "")  # a value that `closure` did not think of


@dataclass(frozen=True)
class Option:
    """One thing that can happen at a point: when, what it changes, and what follows.

    Attributes
    ----------
    guards, changes : tuple of str
        Expressions, all of which must hold, and statements.
    target : int, Failure or None
        The point at which the actor stands then, or how it fails. None: its effect is under way and has yet to end.
    """

    guards: tuple[str, ...]
    changes: tuple[str, ...]
    target: int | Failure | None


def by_value(names: Names, point: Point, expression: str, value: Callable[..., int]) -> list[Option]:
    """A branch for each value of an expression; the last option is that it has none of these."""
    by_target: dict[int | Failure, list[str]] = {}
    for branch in point.branches:
        by_target.setdefault(branch.target, []).append(f"{expression} == {value(branch.received)}")
    options = [Option((f"({' || '.join(tests)})",), (), target) for target, tests in by_target.items()]
    listed = " || ".join(test for tests in by_target.values() for test in tests)
    return [*options, Option((f"!({listed})",), (), IMPOSSIBLE)]


def following(point: Point) -> int | Failure:
    """What follows an effect that has one result."""
    (branch,) = point.branches
    return branch.target


def failing(point: Point, kind: str) -> Failure:
    """The effect of the point fails, and no program catches that."""
    return Failure(kind, site(point.effect, point.where, point.actor))
