"""How a simulation follows a schedule: every step waits for its turn, and takes the time that it takes.

A step may begin once the step before it has taken place and its actor has come to it. What lasts goes on beside the
steps that follow; where the schedule says when it ends, it does not end before.
"""

from dataclasses import dataclass

from cuzklab.policies.effects import Copy, Effect, PolicyFault
from cuzklab.policies.model import WaitFor
from cuzklab.policies.schedule import SCHEDULE, Order
from cuzklab.simulate.world import TURN, World


class ScheduleOver(Exception):
    """The last step of a schedule has failed as it was to: nothing that follows is of interest."""


@dataclass(frozen=True)
class Ended(Effect):
    """The step of a schedule at which a copy is over."""

    copy: Copy

    def __str__(self) -> str:
        return str(self.copy)


class Pacing:
    """Turns of a schedule; without one nothing is held up."""

    def __init__(self, order: Order | None) -> None:
        self.order = order

    def kind_of_wait(self, world: World, actor: str, effect: Effect) -> str:
        """What an actor waits for that cannot go on."""
        if self.order is not None and not self.order.may(actor):
            return SCHEDULE
        return effect.kind_of_wait(world)

    def check(self, actor: str, effect: Effect) -> None:
        """Refuse an effect that is not the one that the schedule says."""
        if self.order is not None:
            self.order.check(actor, effect)

    def passed(self, world: World, actor: str, effect: Effect, now_ns: int, fault: PolicyFault | None = None) -> None:
        """A step was made."""
        order = self.order
        if order is None:
            return
        was_over = order.over
        order.passed(actor, effect, fault)
        if order.over and not was_over:
            order.free = not order.concerned
            self._look_again(world, now_ns)
        world.write(TURN, order.position)

    def ends_by_turn(self, effect: Effect) -> bool:
        """Whether the end of an effect that has begun is a step of its own."""
        return self.order is not None and effect.two_steps

    def name_of_copy(self, issuer: str, copy: Copy) -> str:
        """The name of a copy in the schedule, or nothing."""
        return self.order.name_of_copy(issuer) if self.order is not None else ""

    def copied(self, name: str) -> None:
        self.order.copied(name)

    def ended(self, actor: str, fault: PolicyFault | None) -> None:
        """A program has ended."""
        if self.order is None or not self.order.over or actor not in self.order.concerned:
            return
        self.order.ended(actor, fault)
        if fault is not None:
            raise ScheduleOver

    def let_go(self, world: World, now_ns: int) -> bool:
        """Nothing more can happen: if that is because the others are held, let them go. Whether it did."""
        order = self.order
        if order is None or not order.over or order.free:
            return False
        order.reached = tuple(
            WaitFor(waiting.actor.name, waiting.kind, waiting.effect.on, tuple(filter(None, blockers)))
            for waiting in world.blocked()
            if waiting.actor.name in order.concerned
            for blockers in [waiting.effect.blockers(world)]
        )
        order.free = True
        self._look_again(world, now_ns)
        world.write(TURN, -1)
        return True

    def _look_again(self, world: World, now_ns: int) -> None:
        """Those who waited for their turn wait, from now on, for what they really wait for."""
        for waiting in world.blocked():
            if waiting.kind == SCHEDULE and not waiting.ends and self.order.may(waiting.actor.name):
                waiting.kind, waiting.since_ns = waiting.effect.kind_of_wait(world), now_ns
                waiting.holder = next((name for name in waiting.effect.blockers(world) if name), "")
