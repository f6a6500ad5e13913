"""Threads made to follow a schedule: every actor waits for its turn before each effect.

The waits are real ones, and the board knows of them, so a schedule that the threads cannot follow ends at once and not
after a timeout. Work that a schedule lets last (a launch, a copy) waits in its stream for an event that fires at the
step that ends it; until then the device is really busy. Nothing of this is in a run without a schedule.
"""

import threading
from typing import Any, Protocol

from cuzklab.backends.device import Stream, Work
from cuzklab.live.board import Blocked, Board, Stopped, Verdict, Waiter
from cuzklab.policies.effects import Effect, PolicyFault
from cuzklab.policies.schedule import SCHEDULE, Diverged, Order


class Pacing(Protocol):
    """When actors may go on; the default lets everybody go at once.

    Attributes
    ----------
    overlaps : bool
        Whether a stage may begin before copies that it waits for are done.
    """

    overlaps: bool

    def enter(self, actor: Waiter, effect: Effect) -> None:
        """Wait for one's turn."""

    def leave(self, actor: Waiter, effect: Effect, fault: PolicyFault | None) -> None:
        """The effect has taken place, or failed."""

    def before_work(self, actor: Waiter, stream: Stream) -> None:
        """Work is about to enter a stream."""

    def work_begun(self, actor: Waiter, effect: Effect, work: Work) -> None:
        """Work of an actor that waits for its end has entered a stream."""

    def copy_begun(self, actor: Waiter, work: Work) -> None:
        """Work that nobody waits for has entered a stream."""

    def ended(self, actor: Waiter, failure: BaseException | None) -> None:
        """An actor's program has ended; the board's mutex is held."""

    def let_go(self) -> None:
        """Nothing may hold work up any longer."""


class AtOnce:
    """The pacing of a run without a schedule."""

    overlaps = True

    def enter(self, actor: Waiter, effect: Effect) -> None:
        pass

    def leave(self, actor: Waiter, effect: Effect, fault: PolicyFault | None) -> None:
        pass

    def before_work(self, actor: Waiter, stream: Stream) -> None:
        pass

    def work_begun(self, actor: Waiter, effect: Effect, work: Work) -> None:
        pass

    def copy_begun(self, actor: Waiter, work: Work) -> None:
        pass

    def ended(self, actor: Waiter, failure: BaseException | None) -> None:
        pass

    def let_go(self) -> None:
        pass


class _Hold:
    """An event of a device that fires when it is told to."""

    def __init__(self) -> None:
        self._fired = threading.Event()

    @property
    def fired(self) -> bool:
        return self._fired.is_set()

    def wait(self) -> None:
        self._fired.wait()

    def fire(self) -> None:
        self._fired.set()


class InOrder:
    """The pacing of a schedule.

    Parameters
    ----------
    order : Order
    board : Board
    """

    overlaps = False

    def __init__(self, order: Order, board: Board) -> None:
        self.order = order
        self._board = board
        self._changed = board.condition()
        self._holds: list[_Hold] = []
        self._latest: dict[str, _Hold] = {}
        self._copies: dict[str, tuple[_Hold, Work]] = {}
        self._copied_by_schedule = any(turn.actor.rpartition("/")[2].startswith("copy") for turn in order.turns)
        board.on_stop(self.let_go)
        board.on_block(self._somebody_blocks)

    def enter(self, actor: Waiter, effect: Effect) -> None:
        with self._board.mutex:
            self._wait(actor, effect, ends=False)
            try:
                self.order.check(actor.name, effect)
            except Diverged as error:
                self._board.stop(Verdict("fault", str(error)))
                raise Stopped from error

    def leave(self, actor: Waiter, effect: Effect, fault: PolicyFault | None) -> None:
        with self._board.mutex:
            self._advance(actor, effect, fault)

    def before_work(self, actor: Waiter, stream: Stream) -> None:
        # Without the board's mutex, which may not be taken here. `let_go` comes after what it follows from was set, so
        # either it sees this hold or this sees that.
        hold = self._latest[actor.name] = _Hold()
        self._holds.append(hold)
        if self._board.verdict is not None or self.order.over:
            hold.fire()
        stream.wait(hold)

    def work_begun(self, actor: Waiter, effect: Effect, work: Work) -> None:
        hold = self._latest.pop(actor.name)
        try:
            with self._board.mutex:
                self._advance(actor, effect, None)
                self._wait(actor, effect, ends=True)
        finally:
            hold.fire()

    def copy_begun(self, actor: Waiter, work: Work) -> None:
        hold = self._latest.pop(actor.name)
        if not self._copied_by_schedule:
            hold.fire()
            return
        with self._board.mutex:
            self._copies[self.order.name_of_copy(actor.name)] = hold, work

    def ended(self, actor: Waiter, failure: BaseException | None) -> None:
        self.order.ended(actor.name, failure if isinstance(failure, PolicyFault) else None)
        self._changed.notify_all()

    def let_go(self) -> None:
        for hold in self._holds:
            hold.fire()

    def _wait(self, actor: Waiter, effect: Effect, ends: bool) -> None:
        blocked = Blocked(
            SCHEDULE, str(effect), lambda: self.order.may(actor.name, ends), condition=self._changed
        )  # fmt: skip
        self._board.wait(actor, blocked)

    def _advance(self, actor: Waiter, effect: Effect, fault: PolicyFault | None) -> None:
        self.order.passed(actor.name, effect, fault)
        self._carry_out_copies()
        if self.order.over and not self.order.concerned:
            self.order.free = True
        if self.order.over:
            self.let_go()
        self._changed.notify_all()

    def _carry_out_copies(self) -> None:
        """Steps of the device itself: let the copy take place, and wait for its end. It needs none of our locks."""
        while not self.order.over:
            turn = self.order.turns[self.order.position]
            if turn.actor not in self._copies:
                return
            hold, work = self._copies.pop(turn.actor)
            hold.fire()
            work.wait()
            self.order.copied(turn.actor)
            self.order.advance()

    def _somebody_blocks(self) -> None:
        """Once all that are concerned are really blocked, what the schedule was to show is there."""
        order = self.order
        if order.over and not order.free and order.concerned:
            edges = self._board.waits_of(order.concerned)
            if len(edges) == len(order.concerned):
                order.reached, order.free = edges, True
                self._changed.notify_all()


def pacing_of(order: Order | None, board: Board) -> Any:
    """The pacing of a run, with or without a schedule."""
    return InOrder(order, board) if order is not None else AtOnce()
