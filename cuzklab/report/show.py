"""The sections of a post-mortem, each a call: what a notebook cell says is what it shows.

Every function displays something and returns nothing. They take runs, or a `PostMortem`; figures have their tables
with them. Nothing is computed here that is not shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cuzklab.analysis import Finding, locks, occupancy, overlap, stages, vram
from cuzklab.analysis.case import CHECKED, metric, metrics_of
from cuzklab.report import display, figures, schedule, tables
from cuzklab.report.display import badge
from cuzklab.report.naming import label, labels, sentence
from cuzklab.report.postmortem import PostMortem, anchor, large, tiles
from cuzklab.trace import Run
from cuzklab.units import METRIC_KINDS, GiB, Metric, format_size

_ORIGIN_WORDS = {
    "live": "measured", "imported": "measured", "simulated": "simulated", "counterexample": "proved", "check": "proved",
}  # fmt: skip
_OUTCOME_WORDS = {
    "ok": "complete", "device_oom": "out of device memory", "host_oom": "out of host memory", "deadlock": "deadlock",
    "fault": "fault",
}  # fmt: skip
_CONDITION_WORDS = {
    "c": "proofs", "j": "proofs in flight", "pw": "synthesis workers", "gw": "GPU workers",
    "gt": "threads of the G2 MSM",
}  # fmt: skip


_PUBLISHED_CARD_BYTES = 16 * GiB


# --- verdict and findings --------------------------------------------------------------------------------------------


def summary(post: PostMortem) -> None:
    """The verdict in a sentence, and the three figures that carry it."""
    decision = tables.escape(post.verdict.decision)
    shown = "".join(
        f'<div class="cz-tile"><div class="value">{tables.escape(tile.value)}</div>'
        f'<div class="what">{tables.escape(tile.what)}</div>{badge(tile.obtained)}'
        f' <a class="why" href="#{anchor(post, tile.finding)}">evidence</a></div>'
        for tile in tiles(post)
    )
    head, _, reasons = post.verdict.sentence.partition(": ")
    listed = "".join(f"<li>{tables.escape(clause.rstrip('.'))}</li>" for clause in reasons.split("; ") if clause)
    display.markup(
        f'<div class="cz-verdict {decision}"><p class="word">Verdict: {decision}</p>'
        f'<p class="sentence">{tables.escape(head)}</p>'
        + (f'<ul class="reasons">{listed}</ul>' if listed else "")
        + (f'<div class="cz-tiles">{shown}</div>' if shown else "")
        + "</div>"
    )


def findings(post: PostMortem) -> None:
    """Every finding: claim, how sure, its figures and evidence, and what would make it fall."""
    if not post.findings:
        display.text("These runs led to no finding.")
        return
    deciding = [one for one in post.findings if one.role != "context" or one.id in post.verdict.because]
    context = [one for one in post.findings if one not in deciding]
    display.markup(_finding_list(post, deciding))
    if context:
        display.markup(tables.folded(f"{len(context)} findings that give context", _finding_list(post, context)))


def _finding_list(post: PostMortem, chosen: Sequence[Finding]) -> str:
    items = "".join(f'<li class="cz-finding" id="{anchor(post, one)}">{_finding(one)}</li>' for one in chosen)
    return f'<ol class="cz-findings">{items}</ol>'


def _finding(one: Finding) -> str:
    words = {"against": "against it", "supports": "for it", "context": "context"}[one.role]
    content = ""
    if one.figures:
        content += tables.table(_metric_rows(one.figures), right=("value",), markup=("obtained",))
    if one.evidence:
        content += tables.table(pd.DataFrame([dict(row) for row in one.evidence]))
    rests = f"Figures and evidence ({len(one.figures) + len(one.evidence)} rows; runs: {', '.join(one.runs)})"
    return (
        f"{badge(words, one.role)} {badge(one.certainty)}"
        f'<p class="claim">{tables.escape(one.claim)}</p>'
        + (f'<p class="falls">What would change it: {tables.escape(one.would_change)}</p>' if one.would_change else "")
        + (tables.folded(rests, content) if content else "")
    )


def verdict(post: PostMortem) -> None:
    """The decision again, with the findings that made it, and what would change it."""
    by_id: dict[str, list[str]] = {}
    for one in post.findings:
        by_id.setdefault(one.id, []).append(one.claim)
    because = "".join(
        f"<li>{tables.escape(claim)}</li>" for name in post.verdict.because for claim in by_id.get(name, [])
    )
    display.markup(
        f'<div class="cz-text"><p>{badge(post.verdict.decision)} {tables.escape(post.verdict.sentence)}</p>'
        + (f"<p>Because:</p><ul>{because}</ul>" if because else "")
        + f"<p>What would change it: {tables.escape(post.verdict.would_change)}</p></div>"
    )


# --- design and setup ------------------------------------------------------------------------------------------------


def program(name: str, intent: str, source: str) -> None:
    """A design: what it is meant to do, and its program."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    paragraphs = "".join(f"<p>{tables.escape(part)}</p>" for part in intent.split("\n\n"))
    text = highlight(source, PythonLexer(), HtmlFormatter(cssclass="code"))
    display.markup(f'<div class="cz-text">{paragraphs}</div>{tables.folded(f"Its program: {name}", text)}')


def setup(post: PostMortem) -> None:
    """Conditions that all runs share, then each run with what differs, and the warnings that come with them."""
    runs = post.case.runs
    for note in dict.fromkeys(note for run in runs for note in run.info.notes):
        display.markup(f'<div class="cz-warning">{tables.escape(note)}</div>')
    conditions = [{**run.info.conditions} for run in runs]
    names = list(dict.fromkeys(name for one in conditions for name in one))
    shared = {
        name: conditions[0][name]
        for name in names
        if all(name in one and one[name] == conditions[0][name] for one in conditions)
    }
    if shared:
        display.facts({_CONDITION_WORDS.get(name, name): value for name, value in shared.items()})
    rows = [
        {
            "run": label(run),
            "kind": badge(_ORIGIN_WORDS[run.info.origin]),
            "outcome": _OUTCOME_WORDS[run.info.outcome],
            "device_memory_bytes": post.case.limit_bytes(run),
            "conditions": ", ".join(
                f"{_CONDITION_WORDS.get(name, name)} {_plainly(name, value)}"
                for name, value in run.info.conditions.items()
                if name not in shared
            ),
        }
        for run in runs
    ]
    display.table(
        pd.DataFrame(rows),
        "The runs that this report rests on. Device memory is that of the device which the run stands for.",
        markup=("kind",),
    )


def _plainly(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int | float):
        return format_size(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_plainly(key, part)}" for key, part in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# --- checks ----------------------------------------------------------------------------------------------------------


def checks(post: PostMortem) -> None:
    """What the checker covered and found, one row a design and device."""
    runs = [run for run in post.case.runs if run.info.origin in CHECKED]
    if not runs:
        display.markup('<p class="cz-absent">No design was checked.</p>')
        return
    rows = []
    for run in runs:
        conditions = run.info.conditions
        safe = run.info.outcome == "ok"
        rows.append(
            {
                "design": run.info.policy,
                "device_memory_bytes": post.case.limit_bytes(run),
                "workers": conditions.get("workers"),
                "partitions": conditions.get("partitions"),
                "states": conditions.get("states"),
                "all_interleavings": conditions.get("complete"),
                "verdict": badge("safe" if safe else "unsafe", "ok" if safe else "failed"),
                "what": "no defect found" if safe else run.info.explanation or _OUTCOME_WORDS[run.info.outcome],
            }
        )
    display.table(pd.DataFrame(rows).dropna(axis=1, how="all"), "Partitions are those that each worker proves.",
                  markup=("verdict",))  # fmt: skip


def counterexample(run: Run) -> None:
    """The shortest schedule that leads to a defect: as a table, with device memory by step, and who waits for whom."""
    display.heading(label(run), badge("proved"))
    if run.info.explanation:
        display.text(sentence(run.info.explanation))
    display.markup(schedule.table(run))
    waits = schedule.who_waits(run)
    if waits:
        display.markup(
            f'<div class="cz-text"><p>At the end:</p><ul>{"".join(f"<li>{w}</li>" for w in waits)}</ul></div>'
        )
        display.figure(schedule.wait_graph(run))
    if len(run.table("vram")):
        display.figure(figures.device_memory(run))


# --- runs ------------------------------------------------------------------------------------------------------------


def run(run: Run) -> None:
    """One run: how it ended, its figures, timeline, device memory and locks."""
    ok = run.info.outcome == "ok"
    ended = badge(_OUTCOME_WORDS[run.info.outcome], "ok" if ok else "failed")
    display.heading(label(run), f"{badge(_ORIGIN_WORDS[run.info.origin])} {ended}")
    if run.info.explanation:
        display.text(sentence(run.info.explanation))
    metrics = metrics_of(run)
    if metrics:
        display.markup(
            '<p class="cz-line">'
            + " · ".join(f"{tables.escape(_metric_name(one))} <b>{tables.escape(large(one))}</b>" for one in metrics)
            + "</p>"
        )
    timeline(run)
    memory(run)
    lock_table(run)


def timeline(run: Run, start_s: float | None = None, end_s: float | None = None) -> None:
    """What every worker, lock and device did over time, with the durations of the stages."""
    display.figure(figures.timeline(run, start_s, end_s))
    display.table(stages.stage_times(run), "All executions of each stage.", fold="Table: durations by stage")


def memory(run: Run) -> None:
    """Device memory over time, who holds what at the peak, and what failed to fit."""
    display.figure(figures.device_memory(run))
    failed = vram.failed_requests(run)
    display.table(
        failed.drop(columns=["event", "device"]).assign(time_ns=failed["time_ns"] - _start(run)).head(40),
        "Requests that did not fit. Short: how much more memory it would have taken.",
        headings={"lock_held": "lock held"},
    )
    held = vram.failed_holdings(run) if len(failed) else vram.peak_holdings(run)
    title = "Table: who held what when a request failed" if len(failed) else "Table: who holds what at the peak"
    display.table(held.drop(columns=["event"], errors="ignore"), fold=title)


def lock_table(run: Run) -> None:
    """Contention of each lock, and who waited for whom."""
    if not len(run.table("locks")):
        return
    columns = [
        "lock", "uses", "contended_share", "wait_total_ns", "wait_mean_ns", "wait_max_ns", "hold_mean_ns", "held_share",
        "handoffs",
    ]  # fmt: skip
    display.figure(figures.lock_waits(run))
    display.table(
        locks.contention(run)[columns],
        "Locks. Contended: requests that found it held. Held: part of the run's wall time. "
        "Hand-overs: acquisitions by another worker than the last.",
        headings={"handoffs": "hand-overs"},
    )
    display.table(locks.waited_for(run), fold="Table: who waited for whom")


def device_time(runs: Sequence[Run]) -> None:
    """Where the devices' time goes in each run, with the causes of idle time."""
    display.figure(figures.device_time(runs))
    idle = [occupancy.idle(run).assign(run=label(run)) for run in runs]
    idle = [frame for frame in idle if len(frame)]
    if idle:
        rows = pd.concat(idle, ignore_index=True)
        display.table(
            rows[["run", "device", "cause", "explanation", "pieces", "time_ns", "share"]],
            fold="Table: idle time by cause",
        )


def overlaps(run: Run) -> None:
    """Which CPU stages the device hides, and what runs at the same time as what."""
    hidden = overlap.hidden(run)
    for row in hidden[hidden["stage"] == "b_g2_msm"].itertuples():
        display.text(
            f"In {label(run)}, {_percent(row.hidden_fraction)} of the time of b_g2_msm is hidden behind kernels, "
            f"{_percent(row.behind_others_fraction)} behind those of another worker; "
            f"{_percent(row.exposed_fraction)} is exposed."
        )
    display.figure(figures.what_is_hidden(run))
    display.table(hidden, fold="Table: hidden CPU work")
    display.figure(figures.overlap_map(run))
    display.table(overlap.stage_overlap(run), fold="Table: overlap of stages")


# --- figures of simulations ------------------------------------------------------------------------------------------


def metrics(runs: Sequence[Run]) -> None:
    """Typed figures, a column a run; only figures of one row can be compared."""
    if not runs:
        display.markup('<p class="cz-absent">No such run was made.</p>')
        return
    kinds = list(dict.fromkeys(one.kind for run in runs for one in metrics_of(run)))
    rows = [
        {"run": name, "ended": _OUTCOME_WORDS[run.info.outcome]}
        | {_column(kind): found.value if (found := metric(run, kind)) else None for kind in kinds}
        for name, run in zip(labels(runs), runs, strict=True)
    ]
    headings = {_column(kind): kind.replace("_", " ") for kind in kinds}
    display.table(pd.DataFrame(rows), "Compare within a column only: each is a kind of its own.", headings=headings)
    meanings = pd.DataFrame([{"kind": kind.replace("_", " "), "what it is": METRIC_KINDS[kind][1]} for kind in kinds])
    display.table(meanings, fold="What each kind measures")


def _column(kind: str) -> str:
    """A kind of metric as the name of a column of a table, which ends in its unit."""
    return f"{kind}_{ {'s/proof': 's', 's': 's', 'B': 'bytes', '1': 'share'}[METRIC_KINDS[kind][0]] }"


def published(rows: Sequence[Any], runs: Sequence[Run]) -> None:
    """Published results of the designs that were run, beside the figure of the same kind and conditions, if any.

    Parameters
    ----------
    rows : sequence
        With `policy`, `metric` (None for an outcome), `outcome`, `conditions` and `assumed`, as
        `cuzklab.simulate.load_published` gives them.
    runs : sequence of Run
    """
    policies = {run.info.policy for run in runs}
    table: list[dict[str, Any]] = []
    for row in (row for row in rows if row.policy in policies):
        same = next((run for run in runs if run.info.policy == row.policy and _same(row.conditions, run)), None)
        ours = metric(same, row.metric.kind) if same and row.metric else None
        table.append(
            {
                "design": row.policy,
                "conditions": ", ".join(
                    f"{name} {value}{' (assumed)' if name in row.assumed else ''}"
                    for name, value in row.conditions.items()
                ),
                "kind": row.metric.kind.replace("_", " ") if row.metric else "outcome",
                "published": large(row.metric) if row.metric else _OUTCOME_WORDS[row.outcome],
                "simulated here": large(ours) if ours else _OUTCOME_WORDS[same.info.outcome] if same else None,
                "difference_share": ours.ratio(row.metric) - 1 if ours else None,
            }
        )
    words = "c: proofs, j: in flight, pw: synthesis workers, gw: GPU workers. Published by the engine's authors."
    met = [row for row in table if row["simulated here"]]
    right = ("published", "simulated here")
    display.table(
        pd.DataFrame(met), f"Published results and the simulation under the same conditions. {words}", right=right
    )
    every = pd.DataFrame(table)
    display.table(every, words, right=right, fold=f"Table: all {len(every)} published results of these designs")


def _same(conditions: Mapping[str, object], run: Run) -> bool:
    limits = {int(device["vram_limit_bytes"]) for device in run.info.devices if device.get("vram_limit_bytes")}
    return limits == {_PUBLISHED_CARD_BYTES} and all(
        run.info.conditions.get(name) == value for name, value in conditions.items()
    )


def _metric_rows(metrics: Sequence[Metric]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "figure": [_metric_name(one) for one in metrics],
            "value": [large(one) for one in metrics],
            "obtained": [badge(one.obtained) for one in metrics],
        }
    )


def _metric_name(one: Metric) -> str:
    return one.label or one.kind.replace("_", " ")


# --- provenance ------------------------------------------------------------------------------------------------------


def provenance(post: PostMortem, parameters: Mapping[str, object], commands: Sequence[str] = ()) -> None:
    """Where and with what it was made, hashes of what went in, and the commands that repeat each step."""
    first = next(iter(post.case.runs), None)
    if first is None:
        return
    machine, versions = first.info.machine, first.info.versions
    created = [run.info.created for run in post.case.runs]
    pairs = {
        "machine": ", ".join(
            f"{format_size(value) if name.endswith('_bytes') else value} {name.removesuffix('_bytes')}"
            if isinstance(value, int) else str(value)
            for name, value in machine.items()
        ),
        "made": f"{min(created)} to {max(created)}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "parameters": ", ".join(f"{name}={value}" for name, value in parameters.items()),
    }  # fmt: skip
    display.facts(pairs)
    if commands:
        display.markup(
            "<h3>To repeat it</h3><pre>" + "\n".join(tables.escape(command) for command in commands) + "</pre>"
        )
    inputs = {(name, digest) for run in post.case.runs for name, digest in run.info.inputs.items()}
    display.table(
        pd.DataFrame(sorted(inputs), columns=["input", "sha256"]), fold=f"Table: hashes of {len(inputs)} inputs"
    )
    kept = pd.DataFrame(
        [{"run": run.info.title, "stored as": run.name, "missing": _missing(run)} for run in post.case.runs]
    )
    display.table(kept, fold="Table: where the runs are stored, and what they lack")


def _missing(run: Run) -> str:
    lacking = [
        f"{table} {entry['state']}"
        for table, entry in run.availability.items()
        if entry["state"] in ("not captured", "lost")
    ]
    return ", ".join(lacking) or "nothing"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _start(run: Run) -> int:
    from cuzklab.analysis.frames import window

    return window(run)[0] if run.info.time_unit == "ns" else 0
