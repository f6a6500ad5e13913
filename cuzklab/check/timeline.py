"""A counterexample as lanes over its steps, for a terminal: who moves, who is blocked, who holds what; and at its end
the wait-for graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cuzklab.check.deadlock import Waiting
from cuzklab.check.findings import CheckResult, Finding
from cuzklab.check.replay import Replayed, replay
from cuzklab.policies.effects import Launch, live_bytes
from cuzklab.policies.model import Gpu, Lock
from cuzklab.units import format_size

MOVES, FAILS, RUNS, BLOCKED, CAN_GO, ABSENT = "●", "✗", "━", "░", "·", " "
_LEVELS = "▁▂▃▄▅▆▇█"
_WIDTH = 100  # steps in a row; longer schedules are broken


@dataclass(frozen=True)
class Lane:
    """One line of the timeline: a cell for each step."""

    title: str
    cells: str


def lanes(result: CheckResult, finding: Finding) -> list[Lane]:
    """The lanes of a schedule: actors, the locks that were taken with their holders, and the memory of each device."""
    steps = replay(result.exploration, finding)
    actors = list(dict.fromkeys([*result.exploration.programs, *(step.actor for step in steps)]))
    workers = list(dict.fromkeys(actor.partition("/")[0] for actor in actors))
    actors.sort(key=lambda actor: (workers.index(actor.partition("/")[0]), actor))
    short = _letters(actors)
    found = [Lane(f"{short[actor]} {actor}", _actor_cells(actor, steps)) for actor in actors]
    locks = dict.fromkeys(step.effect.lock for step in steps if isinstance(getattr(step.effect, "lock", None), Lock))
    for lock in locks:
        holders = [step.after.read(lock) for step in steps]
        found.append(
            Lane(f"held: {lock.name}", "".join(short.get(holder, "-") if holder else "-" for holder in holders))
        )
    for index in range(result.conditions["devices"]):
        found.append(_memory_lane(index, steps))
    return found


def _letters(actors: Sequence[str]) -> dict[str, str]:
    """A letter for each worker; whoever works for it has the same."""
    workers = list(dict.fromkeys(actor.partition("/")[0] for actor in actors))
    letters = {worker: chr(ord("A") + number % 26) for number, worker in enumerate(workers)}
    return {actor: letters[actor.partition("/")[0]] for actor in actors}


def _actor_cells(actor: str, steps: Sequence[Replayed]) -> str:
    cells = []
    for step in steps:
        if step.actor == actor:
            cells.append(FAILS if step.fault else MOVES)
        elif actor not in step.pending:
            cells.append(ABSENT)
        elif actor in step.blocked:
            cells.append(BLOCKED)
        else:
            cells.append(RUNS if _launched(actor, step, steps) else CAN_GO)
    return "".join(cells)


def _launched(actor: str, step: Replayed, steps: Sequence[Replayed]) -> bool:
    """Whether a launch of the actor is under way after a step."""
    own = [one for one in steps[: step.step] if one.actor == actor]
    return bool(own) and own[-1].phase == "start" and isinstance(own[-1].effect, Launch) and not own[-1].fault


def _memory_lane(index: int, steps: Sequence[Replayed]) -> Lane:
    gpu = next((gpu for step in steps if (gpu := _gpu_of(step)) is not None and gpu.index == index), None)
    if gpu is None:
        return Lane(f"memory: gpu{index}", "")
    cells = []
    for step in steps:
        live = live_bytes(step.after, gpu)
        cells.append(_LEVELS[min(7, live * 8 // gpu.vram_bytes)] if live else ABSENT)
    return Lane(f"memory: gpu{index}, {format_size(gpu.vram_bytes)}", "".join(cells))


def _gpu_of(step: Replayed) -> Gpu | None:
    for holder in (step.effect, getattr(step.effect, "buffer", None), getattr(step.effect, "stream", None)):
        gpu = getattr(holder, "gpu", None)
        if isinstance(gpu, Gpu):
            return gpu
    return None


def timeline_lines(result: CheckResult, finding: Finding) -> list[str]:
    """The timeline as text, broken after so many steps, with its legend."""
    found = lanes(result, finding)
    width = max(len(lane.title) for lane in found)
    count = len(finding.schedule)
    lines = []
    for first in range(0, count, _WIDTH):
        last = min(first + _WIDTH, count)
        lines.append(f"{'step':{width}}  {_ruler(first, last)}")
        lines += [f"{lane.title:{width}}  {lane.cells[first:last]}".rstrip() for lane in found]
        lines.append("")
    lines.append(
        f"{MOVES} its step  {FAILS} fails  {RUNS} its kernel runs  {BLOCKED} blocked  {CAN_GO} could go on; "
        "a lock's letter is its holder's"
    )
    return lines


def _ruler(first: int, last: int) -> str:
    """Numbers of steps above every fifth."""
    ruler = [" "] * (last - first + 4)
    for step in range(first + 1, last + 1):
        if step == first + 1 or step % 5 == 0:
            for offset, digit in enumerate(str(step)):
                ruler[step - first - 1 + offset] = digit
    return "".join(ruler).rstrip()


def graph_lines(waits: Sequence[Waiting], concerned: Sequence[str]) -> list[str]:
    """The wait-for graph at the end, an arrow a line, those concerned first; a cycle is spelt out."""
    lines = []
    for wait in waits:
        what = f"lock {wait.on}" if wait.kind == "lock" else f"{wait.kind} {wait.on}"
        if wait.kind == "memory":
            what = f"{format_size(wait.wanted_bytes)} of memory, {format_size(wait.free_bytes)} are free"
        for holder in wait.holders:
            has = f"  (has {format_size(holder.held_bytes)}: {holder.held})" if holder.held_bytes is not None else ""
            lines.append(f"{wait.actor} ──▶ {holder.actor}  {what}{has}")
        if not wait.holders:
            lines.append(f"{wait.actor} ──▶ nobody  {what}")
    if (cycle := _cycle(waits, concerned)) is not None:
        lines.append("cycle: " + " → ".join([*cycle, cycle[0]]))
    return lines


def _cycle(waits: Sequence[Waiting], concerned: Sequence[str]) -> list[str] | None:
    """Actors that wait for one another in a circle, if there are any among those concerned."""
    edges = {wait.actor: [holder.actor for holder in wait.holders if holder.actor in concerned] for wait in waits}
    for start in concerned:
        path, seen = [start], {start}
        while True:
            following = next((actor for actor in edges.get(path[-1], ()) if actor != path[-1]), None)
            if following is None:
                break
            if following in seen:
                return path[path.index(following) :]
            path.append(following)
            seen.add(following)
    return None
