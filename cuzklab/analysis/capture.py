"""What a single recording shows, and what it cannot show: for runs that nobody compares with anything.

`findings` are claims about one run, each from one table; `headline` puts the most telling into a sentence;
`blind_spots` says of everything that a post-mortem would tell whether this recording can tell it, and why not.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from cuzklab.analysis import locks, projection, vram
from cuzklab.analysis.case import figure
from cuzklab.analysis.frames import as_set, device_work, missing, records, table, window
from cuzklab.analysis.intervals import complement, total
from cuzklab.analysis.kernel_names import short_name
from cuzklab.analysis.model import MAX_EVIDENCE_ROWS, Finding, certainty_of
from cuzklab.trace import Run
from cuzklab.units import format_seconds, format_size, percent

# Table → what a post-mortem tells from it.
QUESTIONS: Mapping[str, str] = {
    "spans": "in which stage each thread was",
    "locks": "who held which lock, who waited for whom, and for how long",
    "kernels": "when the device worked, and at what",
    "transfers": "how much was copied, when, and whether from pinned memory",
    "vram": "how much device memory was in use, whose it was, and what was never freed",
    "api_calls": "what the threads asked of CUDA, and how long launches queued",
    "waits": "where threads waited in libc and for the device",
    "counters": "pinned host memory, and the size of memory pools",
}
# What no capture of Nsight Systems holds, whatever its options.
_NEVER = (
    ("which request for device memory failed", "a failed request leaves no event"),
    ("what CPU stages without a range did", "only ranges and calls are imported, not sampled stacks"),
)


def blind_spots(run: Run) -> pd.DataFrame:
    """What the run can tell and what it cannot, a row each.

    Returns
    -------
    DataFrame
        `question`, `answer` (yes; none: it did not happen; no; in part), `rows`, `why`; what it cannot tell is first.
    """
    words = {"present": "yes", "empty": "none", "not captured": "no", "lost": "in part"}
    rows = [
        (question, words.get(entry.get("state", ""), "no"), int(entry.get("rows", 0)), str(entry.get("reason", "")))
        for name, question in QUESTIONS.items()
        if (entry := run.availability.get(name, {})) is not None
    ]
    if run.info.origin == "imported":
        rows += [(question, "no", 0, why) for question, why in _NEVER]
    order = {"no": 0, "in part": 1, "none": 2, "yes": 3}
    columns = {"question": "str", "answer": "str", "rows": "int64", "why": "str"}
    found = table(rows, columns)
    return found.sort_values("answer", key=lambda answers: answers.map(order), kind="stable", ignore_index=True)


def placement(run: Run) -> pd.DataFrame:
    """Of an imported log: lines that carry neither time nor partition, by how sure it is whose they are.

    Returns
    -------
    DataFrame
        `line`, `lines`, `only_possible_call`, `fits_one_call`, `in_doubt`, `not_placed`, a row a kind of line; without
        rows where the run is of no log.
    """
    counts = ("lines", "only_possible_call", "fits_one_call", "in_doubt", "not_placed")
    stated = run.info.conditions.get("lines_placed")
    rows = [
        (str(row.get("line", "")), *(int(row[name]) for name in counts))
        for row in (stated if isinstance(stated, list) else ())
        if isinstance(row, dict) and all(type(row.get(name)) is int for name in counts)
    ]
    return table(rows, {"line": "str", **dict.fromkeys(counts, "int64")})


def findings(run: Run) -> tuple[Finding, ...]:
    """Claims about one run, the most telling first, what it cannot tell last."""
    parts = (_lock_waits, _device_use, _projection, _host_waits, _ranges, _copies, _memory, _coverage)
    return tuple(found for part in parts for found in part(run))


def headline(found: tuple[Finding, ...]) -> str:
    """The most telling clauses as one sentence."""
    clauses = [one.gist for one in found if one.gist and one.aspect != "coverage"][:3]
    if not clauses:
        return "This recording holds nothing that a post-mortem could be made of."
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}."


def wait_times(run: Run) -> pd.DataFrame:
    """Waits by kind and by what was waited for.

    Returns
    -------
    DataFrame
        `kind`, `on`, `waits`, `threads`, `total_ns`, `mean_ns`, `max_ns`; the longest total first.
    """
    rows = run.table("waits")
    lengths = rows.assign(length=rows["end"] - rows["start"]).groupby(["kind", "on"], as_index=False)
    found = lengths.agg(
        waits=("length", "size"), threads=("worker", "nunique"), total_ns=("length", "sum"), mean_ns=("length", "mean"),
        max_ns=("length", "max"),
    )  # fmt: skip
    return found.sort_values(["total_ns", "on"], ascending=[False, True], ignore_index=True)


def kernel_times(run: Run) -> pd.DataFrame:
    """Kernels by name.

    Returns
    -------
    DataFrame
        `kernel` (short), `count`, `total_ns`, `share` (of all kernels' time), `median_ns`, `max_ns`; longest first.
    """
    rows = run.table("kernels")
    lengths = rows.assign(length=rows["end"] - rows["start"]).groupby("name", as_index=False)
    found = lengths.agg(
        count=("length", "size"), total_ns=("length", "sum"), median_ns=("length", "median"), max_ns=("length", "max")
    )
    found.insert(0, "kernel", found.pop("name").map(short_name))
    found.insert(3, "share", found["total_ns"] / max(int(found["total_ns"].sum()), 1))
    return found.sort_values(["total_ns", "kernel"], ascending=[False, True], ignore_index=True)


def copy_rates(run: Run) -> pd.DataFrame:
    """Copies and fills by direction and kind of host memory.

    Returns
    -------
    DataFrame
        `direction`, `pinned`, `count`, `total_bytes`, `total_ns`, `bytes_per_s` (float64, of the time of the copies).
    """
    rows = run.table("transfers")
    lengths = rows.assign(length=rows["end"] - rows["start"]).groupby(["direction", "pinned"], as_index=False)
    found = lengths.agg(count=("length", "size"), total_bytes=("bytes", "sum"), total_ns=("length", "sum"))
    found["bytes_per_s"] = found["total_bytes"] / (found["total_ns"].clip(lower=1) * 1e-9)
    return found.sort_values("total_ns", ascending=False, ignore_index=True)


def _finding(run: Run, name: str, claim: str, gist: str, figures: tuple, evidence: tuple, change: str) -> Finding:
    return Finding(
        id=name, claim=claim, role="context", certainty=certainty_of(run), figures=figures,
        evidence=evidence[:MAX_EVIDENCE_ROWS], runs=(run.name,), would_change=change, subject=run.info.title, gist=gist,
    )  # fmt: skip


def _lock_waits(run: Run) -> Iterator[Finding]:
    held = locks.contention(run)
    if not len(held):
        return
    worst = records(held, 1)[0]
    pairs = locks.waited_for(run)
    pairs = pairs[(pairs["lock"] == worst["lock"]) & (pairs["holder"] != "")]
    waited = format_seconds(worst["wait_total_ns"] * 1e-9)
    claim = (
        f"{worst['contended']} of {worst['uses']} requests for the lock {worst['lock']} found it held; threads waited"
        f" {waited} for it altogether, and it was held {percent(worst['held_share'])} of the recording"
    )
    if len(pairs):
        top = records(pairs, 1)[0]
        claim += f"; most of it {top['victim']} for {top['holder']} ({format_seconds(top['time_ns'] * 1e-9)})"
    yield _finding(
        run, "lock_waits", f"{claim}.", f"threads waited {waited} for the lock {worst['lock']}",
        (
            figure(run, "duration", worst["wait_total_ns"] * 1e-9, f"waited for the lock {worst['lock']}"),
            figure(run, "share", worst["held_share"], f"of the recording {worst['lock']} is held"),
        ),
        records(held, 6) + records(pairs, 24), "fewer threads at the lock, or less work under it",
    )  # fmt: skip


def _device_use(run: Run) -> Iterator[Finding]:
    work = device_work(run)
    if not len(run.table("kernels")):
        return
    names = kernel_times(run)
    start, end = window(run)
    for device, rows in work.groupby("device"):
        busy = as_set(rows)
        if not len(busy):  # kernels without extent
            continue
        first, last = int(busy[0, 0]), int(busy[-1, 1])
        share = total(busy) / max(last - first, 1)
        gaps = complement(busy, first, last)
        longest = int((gaps[:, 1] - gaps[:, 0]).max()) if len(gaps) else 0
        top = records(names, 1)[0]
        claim = (
            f"Between its first and its last kernel GPU {device} ran kernels {percent(share)} of the time"
            f" ({format_seconds(total(busy) * 1e-9)} of {format_seconds((last - first) * 1e-9)}); its longest gap was"
            f" {format_seconds(longest * 1e-9)}. {percent(top['share'])} of all kernel time is {top['kernel']}."
        )
        yield _finding(
            run, "device_use", claim, f"GPU {device} was busy {percent(share)} between its first and last kernel",
            (
                figure(run, "share", share, f"of the time between its first and last kernel GPU {device} was busy"),
                figure(run, "kernel_occupancy", total(busy) / max(end - start, 1), "kernels of the whole recording"),
                figure(run, "duration", longest * 1e-9, f"longest gap between kernels of GPU {device}"),
            ),
            records(names, 12), "launches that do not wait for the host, or more of them in flight",
        )  # fmt: skip


def _projection(run: Run) -> Iterator[Finding]:
    ranges = projection.by_name(run)
    if not len(ranges):
        return
    # The outermost range says nothing; of the others the one with the longest gaps does.
    top = records(ranges.sort_values(["gap_total_ns", "span_total_ns"], ascending=False), 1)[0]
    claim = (
        f"On the GPU the ranges {top['range']} ({top['count']}) span {format_seconds(top['span_total_ns'] * 1e-9)}, in"
        f" which their own work ran {percent(top['busy_share'])} of the time; an operation waited"
        f" {format_seconds(top['queue_mean_ns'] * 1e-9)} on average from its launch to its start."
    )
    yield _finding(
        run, "range_on_gpu", claim,
        f"ranges {top['range']} keep the GPU busy {percent(top['busy_share'])} of their span",
        (figure(run, "share", top["busy_share"], f"of its span on the GPU {top['range']} keeps it busy"),),
        records(ranges, 24), "work inside the range that does not wait for the host between its launches",
    )  # fmt: skip


def _host_waits(run: Run) -> Iterator[Finding]:
    waits = wait_times(run)
    waits = waits[~waits["on"].isin(run.table("locks")["lock"])]  # told of by `_lock_waits`
    if not len(waits):
        return
    top = records(waits, 1)[0]
    waited = format_seconds(top["total_ns"] * 1e-9)
    claim = (
        f"The longest waits of threads are {top['waits']} in {top['on']} ({top['kind'].replace('_', ' ')}): {waited}"
        f" over {top['threads']} threads, {format_seconds(top['max_ns'] * 1e-9)} at most."
    )
    yield _finding(
        run, "host_waits", claim, f"threads waited {waited} in {top['on']}",
        (figure(run, "duration", top["total_ns"] * 1e-9, f"waited in {top['on']}, sum over threads"),),
        records(waits, 24), "what the threads wait for; a call of libc does not say what that is",
    )  # fmt: skip


def _ranges(run: Run) -> Iterator[Finding]:
    ranges = projection.range_times(run)
    if not len(ranges):
        return
    top = records(ranges, 1)[0]
    took = format_seconds(top["total_ns"] * 1e-9)
    claim = (
        f"Of {int(ranges['count'].sum()):,} ranges under {len(ranges):,} names, {top['range']} took most time on its"
        f" threads: {took} in {top['count']:,} ({format_seconds(top['median_ns'] * 1e-9)} in the median,"
        f" {format_seconds(top['max_ns'] * 1e-9)} at most)."
    )
    yield _finding(
        run, "range_times", claim, f"ranges {top['range']} took {took} altogether",
        (figure(run, "duration", top["total_ns"] * 1e-9, f"in ranges {top['range']}, sum over threads"),),
        records(ranges, 24), "another recording",
    )  # fmt: skip


def _copies(run: Run) -> Iterator[Finding]:
    copies = copy_rates(run)
    copies = copies[copies["direction"].isin(("h2d", "d2h"))]
    if not len(copies):
        return
    pageable = int(copies.loc[~copies["pinned"], "total_bytes"].sum())
    whole = int(copies["total_bytes"].sum())
    took = int(copies["total_ns"].sum()) * 1e-9
    claim = (
        f"Copies between host and device moved {format_size(whole)} in {format_seconds(took)}"
        f" ({format_size(whole / max(took, 1e-9))}/s); {percent(pageable / max(whole, 1))} of it was in pageable"
        " memory."
    )
    yield _finding(
        run, "copies", claim, f"{format_size(whole)} were copied, {percent(pageable / max(whole, 1))} of it pageable",
        (figure(run, "size", whole, "copied between host and device"),
         figure(run, "share", pageable / max(whole, 1), "of the bytes copied were in pageable memory")),
        records(copies, 8), "pinned buffers, or fewer bytes",
    )  # fmt: skip


def _memory(run: Run) -> Iterator[Finding]:
    for peak in records(vram.peaks(run)):
        kept = vram.leaks(run)
        kept = kept[kept["device"] == peak["device"]]
        limit = f" of {format_size(peak['limit_bytes'])}" if peak["limit_bytes"] else ""
        claim = (
            f"At its peak {format_size(peak['live_bytes'])}{limit} of GPU {peak['device']} were allocated;"
            f" {format_size(int(kept['bytes'].sum()))} in {len(kept)} allocations were not freed before the recording"
            " ended."
        )
        yield _finding(
            run, "memory_peak", claim, f"{format_size(peak['live_bytes'])} of device memory were in use at the peak",
            (figure(run, "peak_vram", peak["live_bytes"], f"device memory of GPU {peak['device']} at its peak"),),
            records(vram.peak_holdings(run), 24), "buffers that are freed earlier, or shared",
        )  # fmt: skip


def _coverage(run: Run) -> Iterator[Finding]:
    for name, question in QUESTIONS.items():
        entry = run.availability.get(name, {})
        if entry.get("state") not in ("not captured", "lost"):
            continue
        yield Finding(
            id=f"cannot_tell_{name}", claim=f"The recording does not tell {question}: {missing(run, name) or name}.",
            role="context", certainty=certainty_of(run), figures=(), evidence=(), runs=(run.name,), aspect="coverage",
            would_change="a recording that has it", subject=run.info.title, gist=f"does not tell {question}",
        )  # fmt: skip
