"""A check on a terminal: the verdict, each finding with its schedule, who waits for whom at its end."""

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cuzklab.check.findings import CheckResult, Finding
from cuzklab.check.timeline import graph_lines, timeline_lines
from cuzklab.units import format_seconds, format_size, sizes_in_words

_STYLES = {"safe": "bold green", "unsafe": "bold red", "unknown": "bold yellow"}


def verdict_line(result: CheckResult) -> str:
    """The verdict in a sentence, with what it covers."""
    of = result.conditions
    devices = f" on each of {of['devices']} devices" if of["devices"] > 1 else ""
    where = (
        f"{_count(of['workers'], 'worker')}{devices} × {_count(of['partitions'], 'partition')} on "
        f"{format_size(of['vram_bytes'])}"
    )
    effort = (
        f"{_count(result.states, 'state')}, {_count(result.exploration.depth, 'step')} deep, "
        f"{format_seconds(result.seconds)}"
    )
    covered = f"every interleaving covered ({effort})"
    if not result.complete:
        covered = f"not every interleaving was covered: {result.exploration.stopped} ({effort})"
    match result.verdict:
        case "safe":
            return f"{result.policy} is safe with {where}: {covered}."
        case "unsafe":
            return f"{result.policy} is unsafe with {where}: {_count(len(result.findings), 'finding')}; {covered}."
    return f"{result.policy} with {where}: nothing found, but {covered}. That is no proof of safety."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def schedule_table(finding: Finding) -> Table:
    """The schedule of a finding, one row a step."""
    title = f"Schedule of {_count(len(finding.schedule), 'step')}" + (
        ", the shortest there is" if finding.shortest else ""
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("step", justify="right")
    for column in ("actor", "effect", "where"):
        table.add_column(column)
    for step in finding.schedule:
        effect = sizes_in_words(step.effect) + (f" ({step.phase})" if step.phase else "")
        if step.step == finding.loop_from:
            table.add_section()
        table.add_row(str(step.step), escape(step.actor), escape(effect), escape(step.where))
    return table


def _parts(result: CheckResult, schedules: int) -> Iterable[RenderableType]:
    yield Text(verdict_line(result), style=_STYLES[result.verdict])
    for number, finding in enumerate(result.findings, 1):
        length = _count(len(finding.schedule), "step")
        yield Text(f"\n{number}. {finding.kind} after {length}: {finding.message}")
        if number <= schedules:
            yield schedule_table(finding)
            yield from (Text(f" {line}", no_wrap=True, overflow="ignore") for line in timeline_lines(result, finding))
            if finding.loop_from:
                yield Text(f"From step {finding.loop_from} on it repeats itself for ever.")
            if finding.wait_for:
                yield Text("\nWho waits for whom at its end:")
                yield from (Text(f"  {line}") for line in graph_lines(finding.wait_for, finding.actors))


def render(result: CheckResult, schedules: int = 1) -> RenderableType:
    """The check as something that rich prints; `schedules` findings are shown step by step."""
    return Group(*_parts(result, schedules))


def render_text(result: CheckResult, schedules: int = 1, width: int = 120) -> str:
    """The check as plain text."""
    console = Console(width=width, no_color=True, highlight=False, force_terminal=False)
    with console.capture() as capture:
        console.print(render(result, schedules))
    return capture.get()
