"""The lines of an engine's log, whatever version wrote them.

Standard output and standard error are interleaved, so an entry may begin in the middle of a line, and be torn by
another one. An entry is whole if every value that its kind must have is a number.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_MARKS = re.compile(r"TIMELINE,|CUZK_TIMING:|CUZK_NTT_H:")
MARKS = (b"TIMELINE,", b"CUZK_TIMING:", b"CUZK_NTT_H:")
_MILLISECONDS = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(?:ms)?")
_PAIR = re.compile(r"([A-Za-z_]\w{0,31})=([^\s,]{1,64})")
_WORD = re.compile(r"[a-z_]{1,32}")
_NS_PER_MS = 1_000_000
# A century. Larger numbers are damage.
LATEST_NS = 100 * 366 * 86_400 * 10**9

# Event → what it is called here, and what its detail must name.
EVENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "SYNTH_START": ("synth_start", ()),
    "SYNTH_END": ("synth_end", ()),
    "CHAN_SEND": ("queued", ()),
    "GPU_QUEUE": ("queued", ()),
    "GPU_PICKUP": ("pickup", ("worker",)),
    "GPU_START": ("gpu_start", ("worker",)),
    "GPU_END": ("gpu_end", ("worker",)),
}
# Kind of a line of durations → the keys that it must have, the one that tells the kind first.
TIMINGS: Mapping[str, tuple[str, ...]] = {
    "prep_msm": ("prep_msm_ms",),
    "b_g2_msm": ("b_g2_msm_ms",),
    "ntt_msm_h": ("ntt_msm_h_ms",),
    "batch_add": ("batch_add_ms",),
    "tail_msm": ("tail_msm_ms", "gpu_total_ms"),
    "barrier_wait": ("barrier_wait_ms",),
    "mutex_wait": ("mutex_wait_ms", "pre_lock_cpu_ms"),
    "mutex_held": ("mutex_held_ms", "total_start_fn_ms"),
    "split_vectors": ("split_vectors_ms", "setup_to_split_ms"),
    "async_dealloc": ("async_dealloc_ms",),
}
_PRESTAGE_MIB = ("free_mib", "usable_mib", "need_da_mib", "need_dbc_mib", "total_mib")
NTT_H = ("d_b_alloc", "ntt_kernels", "coset_intt_sync", "msm_init", "msm_invoke", "msm_dtor", "total")
# Lines without time and partition, by kind.
UNTIMED = (*TIMINGS, "prestage_setup", "prestage_vram", "ntt_h")


@dataclass(slots=True)
class Event:
    """An entry that carries its time: `time_ns` since the engine started, job, worker and partition (−1: not said)."""

    what: str
    time_ns: int
    job: str
    worker: int = -1
    partition: int = -1
    took_ns: int = -1


@dataclass(slots=True)
class Timing:
    """An entry that carries neither time nor partition: its kind, numbers (nanoseconds, MiB, counts) and a word."""

    what: str
    numbers: dict[str, int]
    word: str = ""


@dataclass(slots=True)
class Torn:
    """An entry that is not whole, or of a kind that nobody knows: why."""

    why: str


def entries(line: str) -> Iterator[Event | Timing | Torn]:
    """The entries of a line, in order; none where it has nothing of the vocabulary."""
    marks = list(_MARKS.finditer(line))
    for place, mark in enumerate(marks):
        text = line[mark.end() : marks[place + 1].start() if place + 1 < len(marks) else len(line)]
        if mark[0] == "TIMELINE,":
            yield _event(text)
        elif mark[0] == "CUZK_NTT_H:":
            yield _durations("ntt_h", text, NTT_H)
        else:
            yield _timing(text)


def _event(text: str) -> Event | Torn:
    fields = text.split(",", 3)
    if len(fields) < 3:
        return Torn("torn")
    time_ns = nanoseconds(fields[0].strip())
    word, job = fields[1].strip(), fields[2].strip()
    if time_ns is None:
        return Torn("torn" if not word.isupper() else "impossible time")
    if word not in EVENTS:
        # A word that begins like one was cut; another one belongs to a version that is not known.
        return Torn("torn" if not re.fullmatch(r"[A-Z][A-Z_]{2,31}", word) else "unknown event")
    what, needed = EVENTS[word]
    detail = dict(_PAIR.findall(fields[3] if len(fields) > 3 else ""))
    worker, partition = _whole(detail.get("worker")), _whole(detail.get("partition"))
    if partition is None and "kind" in detail:
        partition = 0  # a job of one circuit
    took = detail.get("gpu_ms") or detail.get("synth_ms")
    took_ns = nanoseconds(took) if took else -1
    named = {"worker": worker}
    if any(named[one] is None for one in needed) or took_ns is None or not job:
        return Torn("torn")
    if partition is None and ("partition" in detail or what in ("synth_start", "synth_end")):
        return Torn("torn")
    return Event(what, time_ns, job, -1 if worker is None else worker, -1 if partition is None else partition, took_ns)


def _timing(text: str) -> Timing | Torn:
    pairs = dict(_PAIR.findall(text))
    if "prestage_setup" in pairs:
        word = pairs["prestage_setup"]
        return Timing("prestage_setup", {}, word) if _WORD.fullmatch(word) else Torn("torn")
    if "prestage_vram" in text:
        sizes = {name: _whole(pairs.get(name)) for name in _PRESTAGE_MIB}
        known = {name: size for name, size in sizes.items() if size is not None}
        return Timing("prestage_vram", known) if {"free_mib", "total_mib"} <= set(known) else Torn("torn")
    for what, keys in TIMINGS.items():
        if keys[0] in pairs:
            return _durations(what, text, keys)
    return Torn("unknown timing" if pairs else "torn")


def _durations(what: str, text: str, keys: tuple[str, ...]) -> Timing | Torn:
    pairs = dict(_PAIR.findall(text))
    found: dict[str, int] = {}
    for key in keys:
        value = nanoseconds(pairs[key]) if key in pairs else None
        if value is None:
            return Torn("torn")
        found[key.removesuffix("_ms")] = value
    for key in ("gpu_tid", "num_circuits"):
        if key in pairs:
            number = _whole(pairs[key])
            if number is None:
                return Torn("torn")
            found[key] = number
    return Timing(what, found)


def nanoseconds(text: str) -> int | None:
    """A number of milliseconds, with or without its unit; None where it is none, or beyond a century."""
    match = _MILLISECONDS.fullmatch(text) if len(text) < 40 else None
    if match is None or not match[1].isascii():
        return None
    whole, _, fraction = match[1].partition(".")
    found = int(whole) * _NS_PER_MS + int(fraction.ljust(6, "0")[:6] or 0) if fraction else int(whole) * _NS_PER_MS
    return found if found <= LATEST_NS else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None
