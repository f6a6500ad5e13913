"""A counterexample: its steps as a table with device memory beside them, and who waits for whom where it ends."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from cuzklab.analysis.frames import window
from cuzklab.report import figures
from cuzklab.report.figures.axes import Absent, ordered, short_worker
from cuzklab.report.naming import label
from cuzklab.report.tables import escape
from cuzklab.trace import Run
from cuzklab.units import format_size

# Longer schedules are cut in the middle of the table; the last steps are those that matter.
MOST_STEPS = 60


@dataclass(frozen=True)
class Step:
    """One step: who did what, which locks were held after it and by whom, and how much device memory was live."""

    number: int
    actor: str
    effect: str
    held: tuple[tuple[str, str], ...]
    live_bytes: int
    failed_bytes: int = 0


def steps(run: Run) -> list[Step]:
    """The steps of a counterexample, from its spans; where it has none, what its locks and memory tell."""
    spans, locks, memory = run.table("spans"), run.table("locks"), run.table("vram")
    derived = _derived(locks, memory)
    of_steps = len(spans) >= len(derived)
    if of_steps:
        actors = spans["thread"].where(spans["thread"] != "", spans["worker"])
        acts = _of_spans(zip(spans["start"], spans["end"], actors, spans["name"], strict=True))
    else:
        acts = derived
    found = []
    for number, (time, actor, effect) in enumerate(acts):
        until = acts[number + 1][0] if number + 1 < len(acts) else max(time, window(run)[1])
        taken = locks[(locks["acquired"] <= time) & (locks["released"].isna() | (locks["released"] > time))]
        before = memory[memory["time"] < max(until, time + 1)] if number + 1 < len(acts) else memory
        failed = memory[(memory["op"] == "fail") & (memory["time"] == time)]
        found.append(
            Step(
                int(time) if of_steps else number + 1, str(actor), str(effect),
                tuple(zip(taken["lock"], taken["worker"], strict=True)),
                int(before["live"].iloc[-1]) if len(before) else 0,
                int(failed["bytes"].iloc[0]) if len(failed) else 0,
            )
        )  # fmt: skip
    return found


def _of_spans(spans: Iterable[tuple[int, int, str, str]]) -> list[tuple[int, str, str]]:
    """The step of each span; of one that lasts (a kernel) two, its beginning and its end.

    Each step is one actor's. So the last step of a span is its end where no other begins there; one that is still under
    way when the schedule stops has none.
    """
    spans = sorted(spans)
    begun = {start for start, *_ in spans}
    acts: list[tuple[int, str, str]] = []
    for start, end, actor, name in spans:
        ends = end - 1 > start and end - 1 not in begun
        begun.add(end - 1)
        acts.append((int(start), actor, f"{name} begins" if end - 1 > start else name))
        if ends:
            acts.append((int(end) - 1, actor, f"{name} ends"))
    return sorted(acts)


def _derived(locks: pd.DataFrame, memory: pd.DataFrame) -> list[tuple[int, str, str]]:
    acts = [(time, who, f"Acquire {lock}") for time, who, lock in
            zip(locks["acquired"], locks["worker"], locks["lock"], strict=True) if time is not pd.NA]  # fmt: skip
    acts += [(time, who, f"Release {lock}") for time, who, lock in
             zip(locks["released"], locks["worker"], locks["lock"], strict=True) if time is not pd.NA]  # fmt: skip
    names = {"alloc": "Alloc", "free": "Free", "fail": "Alloc", "reserve": "Reserve", "unreserve": "Unreserve"}
    acts += [(event.time, event.worker, f"{names[event.op]} {event.buffer} {event.bytes} B")
             for event in memory.itertuples()]  # fmt: skip
    return sorted(acts, key=lambda act: act[0])


def table(run: Run) -> str:
    """The schedule as an HTML table: a column an actor, time downwards, device memory as a bar against the limit."""
    found = steps(run)
    if not found:
        return '<p class="cz-absent">This counterexample has no steps.</p>'
    workers = ordered(step.actor.partition("/")[0] for step in found)
    memory = run.table("vram")
    limit = int(memory["limit"].max()) if len(memory) else 0
    most = max([limit, *(step.live_bytes + step.failed_bytes for step in found)])
    head = "".join(f'<th scope="col">{escape(short_worker(worker))}</th>' for worker in workers)
    rows = []
    for step in found[-MOST_STEPS:]:
        owner, _, thread = step.actor.partition("/")
        act = (f"<i>{escape(thread)}:</i> " if thread else "") + escape(readable(step.effect))
        cells = "".join(f"<td>{act if worker == owner else ''}</td>" for worker in workers)
        held = "<br>".join(f"{escape(short_worker(lock))}: {escape(short_worker(who))}" for lock, who in step.held)
        bar = _bar(step, limit, most) if most else ""
        kind = ' class="failed"' if step.failed_bytes else ""
        rows.append(f'<tr{kind}><td class="number">{step.number}</td>{cells}<td>{held}</td><td>{bar}</td></tr>')
    left_out = f" The first {len(found) - MOST_STEPS} steps are left out." if len(found) > MOST_STEPS else ""
    limit_text = f" The mark is the limit, {format_size(limit)}." if limit else ""
    number = run.info.conditions.get("steps", len(found))
    words = f"The shortest schedule, {number} steps; an actor a column.{limit_text}{left_out}"
    return (
        '<div class="cz-table cz-schedule"><table>'
        f"<caption><span>{words}</span></caption>"
        f'<thead><tr><th scope="col" class="number">step</th>{head}<th scope="col">locks held</th>'
        f'<th scope="col">device memory after it</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _bar(step: Step, limit: int, most: int) -> str:
    live, more, mark = (100 * size / most for size in (step.live_bytes, step.failed_bytes, limit))
    text = format_size(step.live_bytes) + (f" + {format_size(step.failed_bytes)}" if step.failed_bytes else "")
    lacking = f'<span class="lacking" style="left:{live:.1f}%;width:{more:.1f}%"></span>' if more else ""
    return (
        f'<span class="cz-bar"><span class="live" style="width:{live:.1f}%"></span>{lacking}'
        f'<span class="limit" style="left:{mark:.1f}%"></span></span> <span class="amount">{escape(text)}</span>'
    )


def readable(effect: str) -> str:
    """An effect for people: sizes in binary units, the device's number left out."""
    text = re.sub(r"\b(\d{4,}) B\b", lambda size: format_size(int(size[1])), effect)
    return re.sub(r"\bgpu\d+[ .](?=\S)", "", text)


def last_waits(run: Run) -> pd.DataFrame:
    """Waits that had not ended when the schedule did."""
    waits = run.table("waits")
    _, end = window(run)
    return waits[waits["end"] >= end]


def who_waits(run: Run) -> list[str]:
    """Sentences, as HTML: who waits for what, and who could give it."""
    found = []
    for wait in last_waits(run).itertuples():
        what = {"lock": "the lock ", "memory": "device memory for "}.get(wait.kind, f"{wait.kind} ") + readable(wait.on)
        holder = f", held by <b>{escape(_names(wait.holder))}</b>" if wait.holder else ""
        found.append(f"<b>{escape(_names(wait.worker))}</b> waits for {escape(what)}{holder}")
    return found


def _names(actors: str) -> str:
    return ", ".join(short_worker(actor.strip()) for actor in actors.split(","))


def wait_graph(run: Run) -> go.Figure | Absent:
    """The wait-for graph at the end: an arrow from each actor to those that it waits for."""
    edges = [
        (wait.worker, holder.strip(), readable(wait.on))
        for wait in last_waits(run).itertuples()
        for holder in wait.holder.split(",")
        if holder.strip() and holder.strip() != wait.worker
    ]
    if not edges:
        return Absent(f"No wait-for graph: in {label(run)} nobody waits for what another actor holds.")
    return figures.wait_graph(edges, "At the end of the schedule: a cycle is a deadlock.")
