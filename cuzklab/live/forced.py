"""A schedule carried out for real: threads, locks, device memory and kernels, in exactly its order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cuzklab.backends.device import Device
from cuzklab.live.run import Ended, Run
from cuzklab.live.work import Workload
from cuzklab.policies.effects import Effect, OutOfDeviceMemory
from cuzklab.policies.model import Program, WaitFor
from cuzklab.policies.schedule import Order, Turn, in_sequence
from cuzklab.trace import Counter
from cuzklab.trace.recorders import Recording

DEADLINE_S = 60.0
STEP = "schedule step"  # a counter of the run: which step of the schedule was made when


@dataclass(frozen=True)
class Forced:
    """What came of a schedule that threads were made to follow.

    Attributes
    ----------
    outcome : {"ok", "device_oom", "deadlock", "fault"}
        Of the run; "deadlock" also where those concerned were in one and the run ended otherwise for somebody else.
    kind : str
        Of the fault that ended the schedule, in the checker's words; empty where it ended without one.
    explanation : str
        One sentence.
    followed : int
        Steps of the schedule that were made.
    diverged : str
        Why not all of them were; empty if they were.
    waits_for : tuple of WaitFor
        Who waited for what at the end.
    leaks : tuple of str
        What was not given back.
    recorder : Recording
    """

    outcome: str
    kind: str
    explanation: str
    followed: int
    diverged: str
    waits_for: tuple[WaitFor, ...] = ()
    leaks: tuple[str, ...] = ()
    recorder: Recording | None = field(default=None, repr=False)


def force(
    programs: Mapping[str, Sequence[Program]],
    turns: Sequence[Turn],
    concerned: Collection[str],
    devices: tuple[Device, ...],
    workload: Workload,
    recorder: Recording,
    deadline_s: float = DEADLINE_S,
) -> Forced:
    """Run programs for real, one effect after the other as a schedule says.

    Parameters
    ----------
    programs : mapping
        The actors, and the programs that each runs one after another.
    turns : sequence of Turn
    concerned : collection of str
        Actors that go on first when the schedule is over: they fail, or wait for ever. Nobody if it ends with the
        programs.
    devices, workload, recorder
        As for a run.
    deadline_s : float
    """

    def made(number: int) -> None:
        recorder.add(Counter(recorder.clock(), STEP, number))

    order = Order(turns, frozenset(concerned), made)
    ended = Run(devices, workload, recorder, order).execute(in_sequence(programs), deadline_s)
    outcome, kind, explanation = _judge(order, ended)
    diverged = order.diverged
    if not diverged and not order.over:
        diverged = f"{order.stopped_at()}: {ended.explanation or 'the programs ended'}"
    return Forced(
        outcome, kind, explanation, order.position, diverged, order.reached or ended.waits_for, ended.leaks, recorder
    )


def _judge(order: Order, ended: Ended) -> tuple[str, str, str]:
    if order.reached and not order.went_on:
        return "deadlock", "", "; ".join(map(str, order.reached))
    if order.over and order.fault is not None:
        outcome = "device_oom" if isinstance(order.fault, OutOfDeviceMemory) else "fault"
        effect: Effect | None = order.fault.effect
        return outcome, order.fault.kind, f"{order.fault.actor} at {effect}: {order.fault}"
    kind = "leak" if order.over and ended.leaks and ended.fault is None and not ended.waits_for else ""
    return ended.outcome, kind, ended.explanation
