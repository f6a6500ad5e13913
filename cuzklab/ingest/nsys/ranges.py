"""NVTX: ranges of every domain with their category, parent, and the partition that they work for."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.columns import groups, possible
from cuzklab.ingest.nsys.export import MISSING, Export
from cuzklab.ingest.nsys.names import Names, coded, enumeration
from cuzklab.ingest.nsys.threads import Threads, pid_of, process_of
from cuzklab.ingest.privacy import Texts
from cuzklab.trace.columns import table
from cuzklab.trace.nesting import Nesting, nesting

# Our own domain, and what ranges in it mean.
DOMAIN = "cuzk"
CALL = "call"
# Ranges without a category: nothing says what they are.
NO_CATEGORY = "range"
_PARTITION = re.compile(r"p(\d{1,9})\.\d{1,9}")

_EVENT_TYPES = {
    33: "NvtxCategory", 34: "NvtxMark", 59: "NvtxPushPopRange", 60: "NvtxStartEndRange", 75: "NvtxDomainCreate",
    76: "NvtxDomainDestroy",
}  # fmt: skip
_STYLES = {"NvtxPushPopRange": "push_pop", "NvtxStartEndRange": "start_end", "NvtxMark": "mark"}


@dataclass
class Ranges:
    """NVTX ranges and marks in order of their starts; text as lists that rows point into.

    Attributes
    ----------
    start, end, thread, end_thread, process : ndarray of int64, shape (n,)
        Threads are global numbers.
    style : list of str
    name, domain, category : list of str
    partition : list of str
        What a range works for; empty where nothing says.
    open : ndarray of bool
        Had not ended when the capture did.
    parent : ndarray of int64
        The range that encloses a push/pop range on its thread; −1 where there is none.
    stacks : mapping
        Global thread → its push/pop ranges and how they lie in each other.
    dropped, open_count : int
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int64]
    end_thread: NDArray[np.int64]
    process: NDArray[np.int64]
    style: list[str]
    name: list[str]
    domain: list[str]
    category: list[str]
    partition: list[str]
    open: NDArray[np.bool_]
    parent: NDArray[np.int64]
    stacks: dict[int, tuple[NDArray[np.int64], Nesting]]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.start)

    def innermost(self, threads: NDArray[np.int64], moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """The innermost push/pop range on a thread at a moment; −1 where there is none."""
        found = np.full(len(moments), -1, np.int64)
        for thread, here in groups(threads) if self.stacks else ():
            if thread in self.stacks:
                rows, stack = self.stacks[thread]
                place = stack.innermost(moments[here])
                found[here] = np.where(place >= 0, rows[np.maximum(place, 0)], -1)
        return found

    def words(self, column: list[str], rows: NDArray[np.int64]) -> pa.DictionaryArray:
        """Texts of some ranges, empty for −1."""
        words = list(dict.fromkeys(["", *column]))
        place = {word: code for code, word in enumerate(words)}
        codes = np.fromiter((place[word] for word in column), np.int64, len(column))
        chosen = np.where(rows >= 0, codes[np.maximum(rows, 0)], 0) if len(codes) else np.zeros(len(rows), np.int64)
        return coded(chosen, words)


def read_ranges(export: Export, names: Names, texts: Texts, end_ns: int) -> Ranges:
    """Ranges of `NVTX_EVENTS`; those without an end last until `end_ns`, or until the last one ended."""
    source = "NVTX_EVENTS"
    read = export.integers(
        source, "start", "end", "eventType", "globalTid", "endGlobalTid", "textId", "domainId", "category",
        "uint64Value", "int64Value",
    )  # fmt: skip
    plain = [texts(text) if text else "" for (text,) in export.texts(source, "text")] if "text" in export.columns(
        source
    ) else [""] * len(read["start"])  # fmt: skip
    said = [text or (names.one(number) if number != MISSING else "") for text, number in
            zip(plain, read["textId"].tolist(), strict=True)]  # fmt: skip
    types = enumeration(export, "ENUM_NSYS_EVENT_TYPE", _EVENT_TYPES)
    kinds = [types.get(number, "") for number in read["eventType"].tolist()]
    process, domain = process_of(read["globalTid"]), np.where(read["domainId"] == MISSING, 0, read["domainId"])
    domains, categories = _declared(kinds, said, process.tolist(), domain.tolist(), read["category"].tolist())

    style = np.array([_STYLES.get(kind, "") for kind in kinds] or [""], object)[: len(kinds)]
    is_range = style != ""
    openly = is_range & (style != "mark") & (read["end"] == MISSING)
    ended = read["end"][is_range & possible(read)]
    last_ns = max(end_ns, int(ended.max()) if len(ended) else 0)
    read["end"] = np.where(openly, np.maximum(read["start"], last_ns), read["end"])
    read["end"] = np.where(style == "mark", read["start"], read["end"])
    good = possible(read)
    rows = np.flatnonzero(is_range & good)
    rows = rows[np.argsort(read["start"][rows], kind="stable")]
    chosen = {name: column[rows] for name, column in read.items()}
    places, process = rows.tolist(), process[rows]
    keys = list(zip(process.tolist(), domain[rows].tolist(), chosen["category"].tolist(), strict=True))
    found = Ranges(
        chosen["start"], chosen["end"], chosen["globalTid"], chosen["endGlobalTid"], process, style[rows].tolist(),
        [said[place] for place in places], [domains.get(key[:2], "") for key in keys],
        [categories.get(key, NO_CATEGORY) for key in keys], [""] * len(rows), openly[rows],
        np.full(len(rows), -1, np.int64), {}, int((is_range & ~good).sum()),
    )  # fmt: skip
    _nest(found)
    _set_partitions(found, np.where(chosen["uint64Value"] != MISSING, chosen["uint64Value"], chosen["int64Value"]))
    return found


def _declared(
    kinds: list[str], said: list[str], process: list[int], domain: list[int], category: list[int]
) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int, int], str]]:
    """Names of domains and of categories, which belong to a process."""
    domains = {(process[row], domain[row]): said[row] for row, kind in enumerate(kinds) if kind == "NvtxDomainCreate"}
    categories = {
        (process[row], domain[row], category[row]): said[row]
        for row, kind in enumerate(kinds)
        if kind == "NvtxCategory" and said[row]
    }
    return domains, categories


def _nest(ranges: Ranges) -> None:
    pushed = np.flatnonzero(np.array([style == "push_pop" for style in ranges.style], bool))
    for thread, places in groups(ranges.thread[pushed]):
        rows = pushed[places]
        stack = nesting(ranges.start[rows], ranges.end[rows])
        ranges.parent[rows] = np.where(stack.parent >= 0, rows[np.maximum(stack.parent, 0)], -1)
        ranges.stacks[thread] = (rows, stack)


def _set_partitions(ranges: Ranges, payload: NDArray[np.int64]) -> None:
    """Calls of our domain name the partition that they prove, in their text or as payload; what is inside inherits it.

    ``prove_partition p0.3`` is a call named ``prove_partition`` for the partition ``p0.3``; with a payload of 3 its
    text need only be ``prove_partition``.
    """
    for row, (domain, category) in enumerate(zip(ranges.domain, ranges.category, strict=True)):
        if domain == DOMAIN and category == CALL:
            name, _, partition = ranges.name[row].partition(" ")
            if not partition and payload[row] != MISSING:
                partition = f"p0.{payload[row]}"
            ranges.name[row], ranges.partition[row] = name, partition
    if not any(ranges.partition):
        return
    for rows, stack in ranges.stacks.values():
        for place in np.argsort(stack.depth, kind="stable").tolist():  # parents before what they enclose
            row = rows[place]
            if not ranges.partition[row] and ranges.parent[row] >= 0:
                ranges.partition[row] = ranges.partition[ranges.parent[row]]


def proof_of(partition: str) -> int:
    """The proof of a partition's name: 2 of ``p2.7``; −1 where it has none."""
    match = _PARTITION.fullmatch(partition)
    return int(match[1]) if match else -1


def span_table(ranges: Ranges, threads: Threads) -> pa.Table:
    """Ranges and marks as rows of `spans`."""
    every = np.arange(len(ranges))
    elsewhere = (ranges.end_thread != MISSING) & (ranges.end_thread != ranges.thread) & (ranges.end_thread > 0)
    thread = threads.column(ranges.thread)
    return table(
        "spans", len(ranges), start=ranges.start, end=ranges.end, name=ranges.words(ranges.name, every),
        category=ranges.words(ranges.category, every), process=pid_of(ranges.process), thread=thread, worker=thread,
        proof=np.array([proof_of(one) for one in ranges.partition], np.int64),
        partition=ranges.words(ranges.partition, every), parent=ranges.words(ranges.name, ranges.parent),
        domain=ranges.words(ranges.domain, every), style=ranges.words(ranges.style, every),
        end_thread=threads.column(np.where(elsewhere, ranges.end_thread, MISSING)), open=ranges.open,
    )  # fmt: skip


def domains_of(ranges: Ranges) -> dict[str, int]:
    """How many ranges each domain has; the default domain is called so."""
    return dict(Counter(domain or "(default domain)" for domain in ranges.domain))
