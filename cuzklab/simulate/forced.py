"""A schedule carried out in virtual time: each step at the earliest moment that its order and its costs allow."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import simpy

from cuzklab.policies.effects import OutOfDeviceMemory
from cuzklab.policies.model import Lock, Program, Slot, WaitFor
from cuzklab.policies.schedule import Diverged, Order, Turn, in_sequence
from cuzklab.profiles import Hardware
from cuzklab.simulate.costs import Machine
from cuzklab.simulate.interpreter import Ending, Interpreter
from cuzklab.simulate.world import World
from cuzklab.stages import CircuitShape
from cuzklab.trace import Counter, Recorder

STEP = "schedule step"


@dataclass(frozen=True)
class Followed:
    """What came of a schedule in virtual time; as `cuzklab.live.forced.Forced`."""

    outcome: str
    kind: str
    explanation: str
    followed: int
    diverged: str
    waits_for: tuple[WaitFor, ...]
    leaks: bool
    recorder: Recorder = field(repr=False)


def follow(
    programs: Mapping[str, Sequence[Program]],
    turns: Sequence[Turn],
    concerned: Collection[str],
    hardware: Hardware,
    shape: CircuitShape,
    seed: int = 0,
) -> Followed:
    """Run programs in virtual time, their effects in the order of a schedule.

    Parameters
    ----------
    programs : mapping
        The actors, and the programs that each runs one after another.
    turns : sequence of Turn
    concerned : collection of str
        Actors that go on first when the schedule is over.
    hardware, shape, seed
        What the costs depend on.
    """
    machine = Machine(simpy.Environment(), hardware, shape, seed)

    def made(number: int) -> None:
        interpreter.tracer.recorder.add(Counter(machine.env.now, STEP, number))

    order = Order(turns, frozenset(concerned), made)
    interpreter = Interpreter(machine, order=order)
    try:
        ending = interpreter.run(in_sequence(programs))
    except Diverged:
        ending = interpreter.ending
    diverged = order.diverged
    if not diverged and not order.over:
        diverged = _why_not(order, interpreter)
    leaks = not ending.stuck and not ending.faults and something_left(interpreter.world)
    outcome, kind, explanation = _judge(order, ending, leaks)
    return Followed(
        outcome, kind, explanation, order.position, diverged, order.reached or ending.stuck, leaks,
        interpreter.tracer.recorder,
    )  # fmt: skip


def _why_not(order: Order, interpreter: Interpreter) -> str:
    """Why the step that was to be made was not."""
    turn = order.turns[order.position]
    for waiting in interpreter.world.blocked():
        if waiting.actor.name == turn.actor:
            try:
                order.check(turn.actor, waiting.effect)
            except Diverged as error:
                return str(error)
    return f"{order.stopped_at()}, which cannot take place"


def something_left(world: World) -> bool:
    """Whether anything is held in a world whose programs have ended, but for buffers that are kept in slots."""
    kept = [value for key, value in world.items() if isinstance(key, Slot)]
    for key, value in world.items():
        match key:
            case Lock() | ("reserved", _) | ("pinned", _) if value:
                return True
            case ("live", _) if any(buffer not in kept for buffer in value):
                return True
    return False


def _judge(order: Order, ending: Ending, leaks: bool) -> tuple[str, str, str]:
    if order.reached and not order.went_on:
        return "deadlock", "", "; ".join(map(str, order.reached))
    if order.fault is not None:
        outcome = "device_oom" if isinstance(order.fault, OutOfDeviceMemory) else "fault"
        return outcome, order.fault.kind, f"{order.fault.actor} at {order.fault.effect}: {order.fault}"
    if ending.stuck:
        return "deadlock", "", "; ".join(map(str, ending.stuck))
    for name, fault in ending.faults.items():
        return "fault", fault.kind, f"{name}: {fault}"
    return ("fault", "leak", "something was never given back") if leaks else ("ok", "", "every program has ended")
