"""A run that `cuzklab runs export` wrote: every row is the arguments of an event. Nothing in it is trusted."""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cuzklab import __version__
from cuzklab.ingest.chrome.events import nanoseconds
from cuzklab.ingest.model import STATES, Availability, Imported
from cuzklab.ingest.privacy import Texts
from cuzklab.ingest.rows import Rows
from cuzklab.trace import TABLES, RunInfo
from cuzklab.trace.perfetto import COUNTERS, FORMAT, PRODUCER
from cuzklab.units import Metric

_ORDERED = {"spans": ("start", "end"), "waits": ("start", "end"), "kernels": ("start", "end"),
            "transfers": ("start", "end"), "api_calls": ("start", "end")}  # fmt: skip
_MOST_FACTS = 10_000


def is_ours(header: Mapping[str, Any]) -> bool:
    """Whether a file says that this program wrote it, in a form that is known."""
    other = header.get("otherData")
    return (
        isinstance(other, dict)
        and str(other.get("producer", "")).startswith(f"{PRODUCER} ")
        and other.get("format") == FORMAT
        and isinstance(other.get("run"), dict)
    )


class Reader:
    """Takes the events of such a file."""

    def __init__(self, header: Mapping[str, Any], texts: Texts) -> None:
        self._texts = texts
        self._stated = header["otherData"]
        base = self._stated.get("base_ns")
        self._base_ns = base if type(base) is int and abs(base) < 1 << 62 else 0
        self._tables = {name: Rows(name) for name in TABLES}
        self._columns = {name: _columns(row) for name, row in TABLES.items()}
        self.damaged = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event; those that are only drawn are passed over."""
        arguments = event.get("args")
        if not isinstance(arguments, dict):
            return
        table = arguments.get("table")
        if event.get("ph") == "C" and event.get("pid") == COUNTERS:
            at, value = nanoseconds(event.get("ts")), arguments.get("value")
            row = {"time": None if at is None else at + self._base_ns, "name": event.get("name"), "value": value}
            self._row("counters", row)
        elif isinstance(table, str) and table in TABLES and table != "counters":
            self._row(table, arguments)

    def _row(self, table: str, given: Mapping[str, Any]) -> None:
        row = {}
        for name, kind, optional, required in self._columns[table]:
            if name not in given and not required:
                continue
            value = given.get(name)
            if value is None and optional:
                row[name] = None
                continue
            fits, row[name] = _as(kind, value, self._texts)
            if not fits:
                self.damaged += 1
                return
        first, last = _ORDERED.get(table, ("", ""))
        if first and row[first] > row[last]:
            self.damaged += 1
            return
        self._tables[table].add(**row)

    def imported(self) -> Imported:
        """The run."""
        tables = {name: rows.table() for name, rows in self._tables.items()}
        stated = self._stated["run"]
        notes = [self._texts(note) for note in _list(stated.get("notes"))[:1000]]
        if self.damaged:
            notes.append(f"{self.damaged:,} events are damaged and were left out.")
        unit = stated.get("time_unit")
        info = RunInfo(
            "imported", self._texts(stated.get("title")), policy=self._texts(stated.get("policy")),
            explanation=self._texts(stated.get("explanation")),
            conditions={
                "format": "trace events", **self._facts(stated.get("conditions")),
                "was": self._texts(stated.get("origin")),
            },
            devices=tuple(self._facts(one) for one in _list(stated.get("devices"))[:1024]),
            metrics=tuple(self._metrics(stated.get("metrics"))), notes=tuple(notes),
            time_unit=unit if unit in ("ns", "step") else "ns", machine=self._facts(stated.get("machine")),
            versions={"cuzklab": __version__},
        )  # fmt: skip
        return Imported(info, tables, {name: self._state(name, tables[name]) for name in TABLES})

    def _state(self, table: str, content: pa.Table) -> Availability:
        entries = self._stated["run"].get("availability")
        entry = entries.get(table) if isinstance(entries, dict) else None
        entry = entry if isinstance(entry, dict) else {}
        state, reason = entry.get("state"), self._texts(entry.get("reason"))
        if len(content):
            return Availability(state if state in ("present", "lost") else "present", reason)
        return Availability(state if state in STATES and state != "present" else "empty", reason)

    def _facts(self, given: Any, depth: int = 0) -> dict[str, Any]:
        found = {}
        for name, value in list(given.items())[:_MOST_FACTS] if isinstance(given, dict) else ():
            if isinstance(value, Decimal):
                value = float(value)
            elif isinstance(value, str):
                value = self._texts(value)
            elif isinstance(value, dict) and depth < 4:
                value = self._facts(value, depth + 1)
            elif isinstance(value, list) and depth < 4:
                value = [self._facts(one, depth + 1) if isinstance(one, dict) else self._texts(one)
                         for one in value[:_MOST_FACTS]]  # fmt: skip
            elif not isinstance(value, bool | int) or (type(value) is int and abs(value) >= 1 << 62):
                continue
            found[self._texts(name)] = value
        return found

    def _metrics(self, given: Any) -> Iterator[dict[str, object]]:
        for one in _list(given)[:1000]:
            try:
                yield Metric(
                    one["kind"], float(one["value"]), one["obtained"], self._facts(one.get("conditions")),
                    self._texts(one.get("label")),
                ).to_json()  # fmt: skip
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                self.damaged += 1


def _columns(row: type) -> list[tuple[str, type, bool, bool]]:
    """Name, type, whether it may be null, whether it must be there."""
    found = []
    hints = typing.get_type_hints(row)
    for column in dataclasses.fields(row):
        kinds = typing.get_args(hints[column.name]) or (hints[column.name],)
        kind = next(one for one in kinds if one is not type(None))
        found.append((column.name, kind, type(None) in kinds, column.default is dataclasses.MISSING))
    return found


def _as(kind: type, value: Any, texts: Texts) -> tuple[bool, Any]:
    """Whether a value fits a column, and the value as it is kept."""
    if kind is str:
        return isinstance(value, str), texts(value) if isinstance(value, str) else ""
    if kind is bool:
        return isinstance(value, bool), value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False, None
    if kind is float:
        fits = value.is_finite() if isinstance(value, Decimal) else abs(value) < 1 << 1000
        return fits, float(value) if fits else None
    return isinstance(value, int) and abs(value) < 1 << 62, value


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []
