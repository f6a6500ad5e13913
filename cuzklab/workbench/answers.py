"""What the explorer answers: who is to blame for a wait, what a stretch of time went into."""

from typing import Any

import pandas as pd

from cuzklab.analysis import blocking, frames, stretch
from cuzklab.trace import Run
from cuzklab.workbench.texts import sentence_table, text_table, time_text

Table = dict[str, Any]
_WAITS_FOR = {
    "lock": "the lock", "memory": "device memory", "barrier": "the barrier", "queue": "the queue", "event": "an event",
    "device_sync": "the whole device", "join": "a thread to end", "": "",
}  # fmt: skip


def about_bar(run: Run, bar: pd.Series, time_ns: int) -> list[Table]:
    """What is known about a bar of `frames.timeline`.

    Parameters
    ----------
    run : Run
    bar : Series
        A row of it.
    time_ns : int
        The moment in the bar that is asked about.
    """
    category = str(bar["category"])
    if category.startswith("wait:"):
        return _about_wait(run, bar, time_ns)
    if category == "hold":
        return [_about_hold(run, bar)]
    return []


def _about_wait(run: Run, bar: pd.Series, time_ns: int) -> list[Table]:
    unit, origin = _clock(run)
    time_ns = min(max(time_ns, int(bar["start_ns"])), max(int(bar["end_ns"]) - 1, int(bar["start_ns"])))
    walk = blocking.walk_to_root(run, str(bar["worker"]), time_ns)
    at = time_text(time_ns - origin, unit)
    steps = pd.DataFrame(
        [
            {"who": link.worker, "waits for": f"{_WAITS_FOR.get(link.kind, link.kind)} {link.on}".strip(),
             "since_ns": link.since_ns - origin, "for_ns": time_ns - link.since_ns}
            for link in walk.links
        ],
        columns=["who", "waits for", "since_ns", "for_ns"],
    )  # fmt: skip
    tables = [text_table(steps, f"Who waits for whom at {at}: {_verdict(walk)}", unit=unit)]
    if bar["category"] != "wait:lock":
        return tables
    queue = blocking.would_have_run(run, str(bar["label"]), time_ns).sort_values(["place", "start_ns"])
    if not len(queue):
        return [*tables, sentence_table("Nobody that the trace knows held the lock: no other could have run.")]
    queue = queue.assign(since_ns=queue["start_ns"] - origin)
    columns = ["place", "worker", "partition", "since_ns", "wait_ns", "holder", "idle_ns", "work_ns", "fillable_ns"]
    headings = {
        "place": "place in the queue", "wait_ns": "whole wait", "holder": "behind", "idle_ns": "device idle meanwhile",
        "work_ns": "its device work", "fillable_ns": "idle time it would have filled",
    }  # fmt: skip
    caption = f"Who would have run: the queue for {bar['label']} at {at}. Only one of them fills the same idle time."
    return [*tables, text_table(queue[columns], caption, headings=headings, unit=unit)]


def _verdict(walk: blocking.Walk) -> str:
    if walk.cycle:
        return "a deadlock, for as long as nobody gives up."
    if not walk.root and len(walk.links) > 1:
        last = walk.links[-1]
        what = f"{_WAITS_FOR.get(last.kind, last.kind)} {last.on}".strip()
        return f"to blame is {last.worker}, which itself waits for {what}; the trace does not tell who holds that up."
    if not walk.root:
        return "the trace does not tell who holds it."
    if not walk.links:
        return f"{walk.root} does not wait."
    doing = f", which is in {walk.doing}" if walk.doing else ", of which the trace tells no stage then"
    return f"to blame is {walk.root}{doing}."


def _about_hold(run: Run, bar: pd.Series) -> Table:
    unit, origin = _clock(run)
    start, end = int(bar["start_ns"]), int(bar["end_ns"])
    waiting = stretch.waiting_during(run, str(bar["lane"]), start, end)
    if not len(waiting):
        return sentence_table(f"Nobody waited for {bar['lane']} while {bar['worker']} held it.")
    caption = (
        f"Delay that this hold of {bar['lane']} by {bar['worker']} caused: "
        f"{time_text(int(waiting['time_ns'].sum()), unit)} of waiting."
    )
    shown = waiting.assign(requested_ns=waiting["requested_ns"] - origin)
    return text_table(shown, caption, headings={"time_ns": "waited meanwhile"}, unit=unit)


def about_stretch(run: Run, start_ns: int, end_ns: int) -> list[Table]:
    """What a stretch of a run went into: device time by cause, stages, locks, memory at its peak.

    Parameters
    ----------
    run : Run
    start_ns, end_ns : int
        From the start of the run.
    """
    unit, origin = _clock(run)
    words = f"{time_text(start_ns, unit)} to {time_text(end_ns, unit)}"
    start, end = origin + start_ns, origin + end_ns
    memory = stretch.memory_at_peak(run, start, end)
    memory = memory.assign(time_ns=memory["time_ns"] - origin)
    found = [
        (stretch.device_time(run, start, end), f"Device time, {words}", {"share": "of the stretch"}),
        (stretch.stage_time(run, start, end), f"Stages, {words}", {"share": "part of the stretch"}),
        (stretch.lock_time(run, start, end), f"Locks, {words}",
         {"held_share": "held, of the stretch", "held_ns": "held", "waited_ns": "waited"}),
        (memory, f"Device memory at its highest, {words}", {"time_ns": "at"}),
    ]  # fmt: skip
    tables = [text_table(frame, caption, headings=names, unit=unit) for frame, caption, names in found if len(frame)]
    lacking = frames.missing(run, "spans", "locks", "kernels", "vram")
    if lacking:
        tables.append(sentence_table(f"Not in this trace: {lacking}."))
    return tables


def _clock(run: Run) -> tuple[str, int]:
    return ("ns", frames.window(run)[0]) if run.info.time_unit == "ns" else ("step", 0)
