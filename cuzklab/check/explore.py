"""From programs to findings: survey, causes, shortest schedules."""

from collections.abc import Iterable, Mapping, Sequence

from cuzklab.check.automaton import ENDED
from cuzklab.check.causes import (
    Cause,
    Found,
    causes_of,
    claim_of,
    core_at,
    fault_cause,
    leak_cause,
    overdue_cause,
    site,
)
from cuzklab.check.claims import Watched, watched
from cuzklab.check.dataflow import unordered
from cuzklab.check.deadlock import Futures, blocked_slots, waiting_of
from cuzklab.check.endings import Due, leaks, overdue, place_over
from cuzklab.check.findings import Exploration, Finding, Step
from cuzklab.check.model import Model
from cuzklab.check.moves import Fault, State
from cuzklab.check.search import LARGE, Budget, LimitReached, Progress, Survey, real_schedule, survey
from cuzklab.check.shortest import Goal, Quest, all_ended, shorten, shows, tidy
from cuzklab.check.starvation import starved
from cuzklab.check.symmetry import Symmetry
from cuzklab.check.words import (
    claim_message,
    deadlock_message,
    fault_message,
    leak_message,
    overdue_message,
    starvation_message,
)
from cuzklab.errors import BadInput
from cuzklab.policies.claims import Claim
from cuzklab.policies.effects import ReadBeforeWrite
from cuzklab.policies.model import Program

MAX_STATES = 5_000_000
SECONDS = 600.0
QUEUE_BOUND = 16
_OUTCOMES = {"oom": "device_oom", "request_above_capacity": "deadlock"}  # of faults; the others are called so


def explore(
    programs: Mapping[str, Sequence[Program]],
    *,
    partial_order: bool = True,
    merge: bool = True,
    symmetric: bool = True,
    shortest: bool = True,
    queue_bound: int = QUEUE_BOUND,
    max_states: int = MAX_STATES,
    seconds: float = SECONDS,
    progress: Progress | None = None,
    claims: Sequence[Claim] = (),
    due: Sequence[Due] = (),
    large: int = LARGE,
) -> Exploration:
    """Explore every interleaving of some programs.

    Parameters
    ----------
    programs : mapping of str to sequence of Program
        The actors, and the programs that each runs one after another.
    partial_order, merge, symmetric : bool
        The reductions: leave out interleavings of moves that commute; let histories that left a program in the same
        state share a node; visit one of the states that differ only in which of several equal actors is which. None
        changes what is found.
    shortest : bool
        Look for the shortest schedule of each finding; otherwise the first one found is given.
    queue_bound : int
        Items at which a queue without a capacity counts as growing without bound.
    max_states : int
        States of any one search.
    seconds : float
        Wall time of all of them.
    progress : callable, optional
        Called now and then with the states of the search in hand and the seconds since the start.
    claims : sequence of Claim
        Assertions over states, to be judged in each.
    due : sequence of Due
        What programs must have written when they are over.
    large : int
        States from which on the survey goes on in compiled code; 0: from the start. It changes nothing else.

    Raises
    ------
    BadInput
        A program yields something unknown, raises an error of its own, depends on something but its inputs, or may go
        on for ever.
    """
    for name, value in (("queue_bound", queue_bound), ("max_states", max_states), ("seconds", seconds)):
        if not value > 0:
            raise BadInput(f"{name} must be positive, not {value}")
    budget = Budget(max_states, seconds, progress)
    model = Model(programs, queue_bound, merge)
    seen = survey(model, budget, partial_order, symmetric, claims, large)
    if not seen.stopped and (minded := unordered(model, due, seen.symmetry)):
        model = Model(programs, queue_bound, merge, minded)
        seen = survey(model, budget, partial_order, symmetric, claims, large)
    futures = Futures(model)
    judged = watched(model, claims)
    found = causes_of(model, futures, seen, judged, due)
    goals = [_goal(model, futures, item, judged, due, seen.symmetry) for item in found]
    quests = [Quest(goal, _shown(model, goal, seen, item)) for goal, item in zip(goals, found, strict=True)]
    if shortest and not seen.stopped:
        try:
            shorten(model, quests, budget, seen.reduction, seen.symmetry)
        except (LimitReached, KeyboardInterrupt):
            pass  # those that are not proved say so
    findings = [
        _finding(
            model, futures, due, item.cause,
            _under_true_names(model, item.cause, judged, tidy(model, quest.goal, quest.schedule), seen.symmetry),
            quest.proved,
        )
        for item, quest in zip(found, quests, strict=True)
    ]  # fmt: skip
    findings += _starvations(model, seen)
    findings.sort(key=lambda finding: (len(finding.schedule), finding.kind, finding.effect))
    outcomes = {_outcome(item) for item in found if not item.everyone}
    if seen.ended:
        outcomes.add("ok")
    return Exploration(
        tuple(findings), seen.states, budget.used_s, not seen.stopped, seen.stopped, frozenset(outcomes),
        tuple(f"{effect} @ {where}" for effect, where in sorted(model.caught)), programs, queue_bound,
        seen.depth,
    )  # fmt: skip


def _shown(model: Model, goal: Goal, seen: Survey, item: Found) -> list[int]:
    """A schedule that shows a cause.

    The states of a search that merges equal actors stand for others, too: what is waited for there may have another
    actor's name, so the schedule is tried under each exchange of them.
    """
    schedule = _first_schedule(seen, item)
    if seen.symmetry is None or item.cause.kind == "claim" or shows(model, goal, schedule):
        return schedule
    renamed = ([renaming.slot(slot) for slot in schedule] for renaming in seen.symmetry.all_renamings())
    return next((named for named in renamed if shows(model, goal, named)), schedule)


def _first_schedule(seen: Survey, item: Found) -> list[int]:
    paths = ([*seen.path(state), *([] if mover is None else [((mover,), None)])] for state, mover in item.states)
    return real_schedule(min(paths, key=len))


def _outcome(item: Found) -> str:
    """How a run ends in which somebody fails or waits for ever."""
    return _OUTCOMES.get(item.cause.kind, "fault") if item.is_fault else "deadlock"


# --- shortest schedules ----------------------------------------------------------------------------------------------


def _goal(
    model: Model, futures: Futures, item: Found, judged: Sequence[Watched], due: Sequence[Due],
    symmetry: Symmetry | None,
) -> Goal:  # fmt: skip
    cause = item.cause
    if cause.kind == "claim":
        claim = claim_of(cause, judged)
        return Goal(((),), state=lambda state: claim.broken(state, symmetry))
    if item.everyone:
        own = [one for one in due if overdue_cause(one) == cause]
        if own:
            return Goal(
                tuple(place_over(model, one) for one in own), state=lambda state: any(overdue(model, state, own))
            )
        return Goal(
            (all_ended(model),), state=lambda state: any(leak_cause(leak) == cause for leak in leaks(model, state))
        )
    places = tuple(
        tuple((slot, frozenset(targets)) for (slot, _), targets in zip(key, nodes, strict=True))
        for key, nodes in item.places.items()
    )
    if item.is_fault:
        return Goal(places, fault=lambda fault, actor: fault_cause(fault, actor) == cause)
    return Goal(places, state=lambda state: core_at(model, futures, state, cause) is not None)


def _under_true_names(
    model: Model, cause: Cause, judged: Sequence[Watched], schedule: list[int], symmetry: Symmetry | None
) -> list[int]:
    """The schedule to a broken claim by those actors under whose names it is broken."""
    if cause.kind != "claim" or symmetry is None:
        return schedule
    claim = Watched(model, claim_of(cause, judged).claim)
    for renaming in (None, *symmetry.all_renamings()):
        named = schedule if renaming is None else [renaming.slot(slot) for slot in schedule]
        state = model.initial()
        for slot in named:
            state = model.move(state, slot).apply(state)
        if claim.broken(state):
            return named
    raise AssertionError("a claim that is broken under some names is broken by those who have them")


# --- findings --------------------------------------------------------------------------------------------------------


def _steps(model: Model, schedule: Iterable[int]) -> tuple[list[Step], State, Fault | None]:
    """A schedule in words, the state after it, and the fault of its last step."""
    steps, state, fault = [], model.initial(), None
    for slot in schedule:
        node = model.node(state, slot)
        move = model.move(state, slot)
        phase = "end" if node.begun else "start" if model.begins(node, move) else ""
        steps.append(Step(len(steps) + 1, node.actor, str(node.effect), phase, node.where))
        if move.fault is not None:
            fault = move.fault
        else:
            state = move.apply(state)
    return steps, state, fault


def _starvations(model: Model, seen: Survey) -> list[Finding]:
    found: dict[tuple[str, ...], Finding] = {}
    for one in starved(model, model.initial(), seen.edges) if seen.edges else ():
        steps, *_ = _steps(model, (*one.prefix, *one.loop))
        nodes = {state[slot] for state in one.states for slot in one.slots if state[slot] > ENDED}
        concerned = [model.nodes[number] for number in sorted(nodes)]
        sites = tuple(sorted({site(node.effect, node.where, node.actor) for node in concerned}))
        actors = tuple(model.names[slot] for slot in one.slots)
        others = dict.fromkeys(model.names[slot] for slot in one.loop if slot not in one.slots)
        message = starvation_message(actors, [str(node.effect) for node in concerned], one.passed, tuple(others))
        node = concerned[0]
        finding = Finding(
            "starvation", message, tuple(steps), str(node.effect), node.where, actors, (), sites, False,
            len(one.prefix) + 1,
        )  # fmt: skip
        if sites not in found or len(steps) < len(found[sites].schedule):
            found[sites] = finding
    return list(found.values())


def _finding(
    model: Model, futures: Futures, due: Sequence[Due], cause: Cause, schedule: list[int], shortest: bool
) -> Finding:
    steps, state, fault = _steps(model, schedule)
    if cause.kind == "claim":
        last = steps[-1] if steps else None
        return Finding(
            "claim", claim_message(cause.sites[0], last and last.actor), tuple(steps), last.effect if last else "",
            last.where if last else "", (last.actor,) if last else (), (), cause.sites, shortest,
        )  # fmt: skip
    if fault is not None:
        actor = steps[-1].actor
        message = fault_message(actor, fault.fault, fault.effect, fault.where, model.view(state))
        return Finding(
            cause.kind, message, tuple(steps), str(fault.effect), fault.where, (actor,), (), cause.sites, shortest
        )
    core = core_at(model, futures, state, cause)
    if core is not None:
        waiting = {slot: waiting_of(model, futures, state, slot) for slot in blocked_slots(model, state)}
        order = [*core.slots, *(slot for slot in waiting if slot not in core.slots)]
        concerned = tuple(waiting[slot] for slot in core.slots)
        return Finding(
            cause.kind, deadlock_message(cause.kind, concerned), tuple(steps), concerned[0].effect, concerned[0].where,
            tuple(wait.actor for wait in concerned), tuple(waiting[slot] for slot in order), cause.sites,
            shortest,
        )  # fmt: skip
    if cause.kind == ReadBeforeWrite.kind:
        late = next(one for one in overdue(model, state, due) if overdue_cause(one) == cause)
        message, owner = overdue_message(late), late.actor
    else:
        thing, name, owner = next(leak for leak in leaks(model, state) if leak_cause(leak) == cause)
        message = leak_message(thing, name, owner)
    return Finding(cause.kind, message, tuple(steps), "", "", (owner,) if owner else (), (), cause.sites, shortest)
