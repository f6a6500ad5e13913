"""A schedule carried out again, step by step, with what each step changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from cuzklab.check.deadlock import blocked_slots
from cuzklab.check.findings import Exploration, Finding
from cuzklab.check.model import Model, StateTooNarrow, StateView
from cuzklab.check.moves import Fault
from cuzklab.errors import BadInput
from cuzklab.policies.effects import Effect
from cuzklab.policies.model import Partition


@dataclass(frozen=True)
class Replayed:
    """One step of a schedule.

    Attributes
    ----------
    phase : str
        start or end of an effect that takes two steps.
    partition : Partition or None
        What the actor's program is about.
    before, after : StateView
        Worlds; the same one if the step fails.
    fault : Fault or None
        Why it fails.
    pending : mapping of str to Effect
        What each living actor would do next, afterwards.
    blocked : frozenset of str
        Those of them that cannot.
    """

    step: int
    actor: str
    effect: Effect
    phase: str
    partition: Partition | None
    before: StateView
    after: StateView
    fault: Fault | None
    pending: Mapping[str, Effect]
    blocked: frozenset[str]


def replay(exploration: Exploration, finding: Finding) -> list[Replayed]:
    """Carry out the schedule of a finding.

    Raises
    ------
    BadInput
        The programs do not follow the schedule.
    """
    model = Model(exploration.programs, exploration.queue_bound)
    while True:
        try:
            return _replay(model, finding)
        except StateTooNarrow:
            continue


def _replay(model: Model, finding: Finding) -> list[Replayed]:
    steps, state = [], model.initial()
    for step in finding.schedule:
        slot = model.actor_slot(step.actor)
        node = model.node(state, slot)
        if str(node.effect) != step.effect:
            raise BadInput(f"step {step.step}: {step.actor} does {node.effect or 'nothing'}, not {step.effect}")
        move = model.move(state, slot)
        if move.blocked:
            raise BadInput(f"step {step.step}: {step.actor} is blocked at {step.effect}")
        following = state if move.fault else move.apply(state)
        arguments = node.programs[node.position].arguments if node.programs else ()
        steps.append(
            Replayed(
                step.step, step.actor, node.effect, step.phase,
                next((argument for argument in arguments if isinstance(argument, Partition)), None),
                model.view(state), model.view(following), move.fault,
                {model.names[other]: model.node(following, other).effect for other in model.living(following)},
                frozenset(model.names[other] for other in blocked_slots(model, following)),
            )
        )  # fmt: skip
        state = following
    return steps
