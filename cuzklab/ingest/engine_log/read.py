"""A whole log as a run."""

from collections import Counter
from pathlib import Path

from cuzklab import __version__
from cuzklab.errors import BadInput
from cuzklab.ingest.engine_log.clock import Clock
from cuzklab.ingest.engine_log.correlate import Correlator, lines_placed
from cuzklab.ingest.engine_log.tables import Writer
from cuzklab.ingest.engine_log.vocabulary import MARKS, UNTIMED, Event, Timing, Torn, entries
from cuzklab.ingest.files import Lines, beginning, open_bounded
from cuzklab.ingest.model import Availability, Imported, Options, facts
from cuzklab.ingest.privacy import Texts
from cuzklab.trace import RunInfo
from cuzklab.trace.columns import Columns
from cuzklab.trace.metrics import figures
from cuzklab.units import Metric

_LONGEST_LINE_BYTES = 1 << 16
_MOST_BYTES = 64 << 30
_LOOKED_AT_BYTES = 1 << 20
_REPORT_LINES = 20_000
_BINARY = (b"SQLite format 3\0", b"\x80", b"PAR1")


def recognises(path: Path) -> bool:
    """Whether a file's first megabyte has an entry of an engine's log.

    Captures hold what the program printed, so a database is none, whatever stands in it.
    """
    if not path.is_file():
        return False
    first = beginning(path, _LOOKED_AT_BYTES)
    return not first.startswith(_BINARY) and any(mark in first for mark in MARKS)


def read(path: Path, options: Options) -> Imported:
    """Read a log.

    Raises
    ------
    BadInput
        It cannot be read, or holds no entry with a time.
    """
    clock, correlator, writer = Clock(), Correlator(), Writer()
    torn: Counter[str] = Counter()
    events = 0
    size = max(path.stat().st_size, 1) if path.is_file() else 1
    with open_bounded(path, _MOST_BYTES) as content:
        lines = Lines(content, _LONGEST_LINE_BYTES)
        try:
            for line in lines:
                if lines.count % _REPORT_LINES == 0:
                    options.report(min(0.85, content.read_bytes / size), f"{lines.count:,} lines")
                for entry in entries(line):
                    if isinstance(entry, Torn):
                        torn[entry.why] += 1
                    elif isinstance(entry, Timing):
                        correlator.timing(entry)
                    else:
                        events += _events(clock, correlator, writer, entry)
        except BadInput as error:
            raise error if str(path) in str(error) else BadInput(f"{path}: line {lines.count:,}: {error}") from None
    clock.finish()
    for call in correlator.finish():
        writer.call(call, clock.latest_ns)
    if not events:
        raise BadInput(
            f"{path}: no line with a time (TIMELINE,<ms>,<EVENT>,<job>,…) among {lines.count:,}; is it an engine's log?"
        )
    tables = writer.finish(clock.latest_ns)
    placed = lines_placed(correlator.placed, UNTIMED)
    title = Texts(options.secrets, options.keep_private)(path.name.removesuffix(".gz").removesuffix(".log"))
    partitions = _usual(writer.partitions)
    conditions = facts(
        format="engine log", duration_ns=clock.latest_ns, c=writer.jobs, partitions=partitions,
        gw=len(writer.workers), lines_read=lines.count, lines_placed=placed,
        prestage=dict(writer.words), engine_starts=clock.restarts + 1,
    )  # fmt: skip
    info = RunInfo(
        "imported", f"{title} (engine log)", conditions=conditions,
        devices=tuple({"index": index, "name": f"GPU {index}", "vram_limit_bytes": writer.vram_limit_bytes[index]}
                      for index in sorted(writer.vram_limit_bytes)),
        metrics=_metrics(tables, partitions, conditions),
        notes=tuple(_notes(lines, clock, correlator, writer, torn, placed)),
        machine={"note": "a log does not say where it was written"}, versions={"cuzklab": __version__},
    )  # fmt: skip
    return Imported(info, tables, _availability(tables, placed, correlator))


def _events(clock: Clock, correlator: Correlator, writer: Writer, entry: Event) -> int:
    placed = clock.place(entry)
    for event, restarted in placed:
        if restarted:
            for call in correlator.finish():
                writer.call(call, clock.latest_ns)
            correlator.started_again(event.time_ns)
        writer.event(event)
        for call in correlator.event(event):
            writer.call(call, clock.latest_ns)
    return len(placed)


def _usual(partitions: Counter[int]) -> int:
    """Partitions of a proof: what most proofs have."""
    return Counter(partitions.values()).most_common(1)[0][0] if partitions else 1


def _metrics(tables: dict, partitions: int, conditions: dict) -> tuple[dict[str, object], ...]:
    found = figures(Columns(tables), partitions)
    kept = {name: value for name, value in conditions.items() if isinstance(value, str | int)}
    return tuple(Metric(kind, value, "measured", kept).to_json() for _, kind, value in found.known())


def _notes(
    lines: Lines, clock: Clock, correlator: Correlator, writer: Writer, torn: Counter, placed: list[dict]
) -> list[str]:
    counted = [
        (lines.cut, f"lines are longer than {_LONGEST_LINE_BYTES:,} bytes; their rest was not read"),
        (lines.invalid, "lines hold bytes that are no text"),
        (torn["torn"], "entries are torn, and were left out"),
        (torn["impossible time"], "entries have a time that cannot be, and were left out"),
        (torn["unknown event"] + torn["unknown timing"], "entries are of a kind that this version does not know"),
        (clock.unconfirmed, "entries have a time far from that of their neighbours, and were left out"),
        (clock.restarts, "times the engine started again; its times go on from where they were, without the pause"),
        (writer.unfinished_calls, "GPU calls have no end in the log; they last to its end here, and are marked open"),
        (
            writer.derived_ends,
            "calls and syntheses have no end in the log; it was taken from their last step or next event",
        ),
        (correlator.unmatched_ends, "ends of GPU calls have no beginning; their stated length gives it"),
        (writer.unfinished_syntheses, "syntheses have no end in the log, and are marked open"),
        (writer.unmatched_syntheses, "ends of syntheses have no beginning; their stated length gives it"),
        (writer.disagreeing, "stated lengths differ by more than 2 ms from the time between the two events"),
    ]
    found = [f"{count:,} {words}." for count, words in counted if count]
    total = {key: sum(row[key] for row in placed) for key in placed[0] if key != "line"} if placed else {}
    if total:
        found.append(
            f"{total['lines']:,} lines carry neither time nor partition: {total['only_possible_call']:,} had one"
            f" possible call, {total['fits_one_call']:,} fitted one call only, {total['in_doubt']:,} are in doubt,"
            f" {total['not_placed']:,} could not be placed."
        )
        lost = [f"{row['not_placed']:,} {row['line']}" for row in placed if row["not_placed"]]
        if lost:
            found.append(f"Not placed: {', '.join(lost)}.")
    found.append(
        "Times of syntheses and calls are the log's, to 1 ms; a stage's length is the log's, its place in the call"
        " follows from the protocol. Which thread synthesised is not in the log: lanes stand for threads."
    )
    return found


def _availability(tables: dict, placed: list[dict], correlator: Correlator) -> dict[str, Availability]:
    rows = {name: len(content) for name, content in tables.items()}
    read = {row["line"] for row in placed}
    doubt = sum(row["in_doubt"] + row["not_placed"] for row in placed)
    warning = f"{doubt:,} lines without a partition are in doubt or could not be placed" if doubt else ""
    stages = "a log tells of stages, not of single "

    def either(name: str, absent: Availability, reason: str = "") -> Availability:
        return Availability("present", reason) if rows[name] else absent

    return {
        "spans": either("spans", Availability("empty", "no synthesis and no GPU call in the log"), warning),
        "locks": either(
            "locks", Availability("not captured", "the log has no lines with mutex_wait_ms or mutex_held_ms"),
            "durations are the log's; where a use lies follows from its call's start",
        ),
        "waits": either(
            "waits", Availability("empty", "the log's lines show no wait") if {"mutex_wait", "barrier_wait"} & read
            else Availability("not captured", "the log has no lines with mutex_wait_ms or barrier_wait_ms"),
            "waits for the lock and for the barrier only",
        ),
        "counters": either(
            "counters", Availability("not captured", "the log has no CHAN_SEND, GPU_QUEUE, GPU_PICKUP, prestage_vram"),
            "the queue of synthesised partitions; free device memory where the log has prestage_vram",
        ),
        "vram": Availability("not captured", "the log does not tell of allocations, only of free memory"),
        "kernels": Availability("not captured", stages + "kernels"),
        "transfers": Availability("not captured", stages + "copies"),
        "api_calls": Availability("not captured", stages + "calls into CUDA"),
    }  # fmt: skip
