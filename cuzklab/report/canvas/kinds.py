"""Kinds of spans: what has one colour, one pattern and one entry of the legend."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzklab.report import theme
from cuzklab.report.canvas.coded import Coded, together
from cuzklab.report.figures.axes import short_worker

MOST_NAMES = 16  # kinds of stages and ranges; a capture may have hundreds of names, of which the longest have a kind
_OTHERS = "others"
_COUNT = re.compile(r"\b\d+\b")
_WAITS = {"lock": ("waits for a lock", "/"), "queue": ("waits for work", ".")}
_OTHER_WAIT = ("waits otherwise", "x")


@dataclass(frozen=True)
class Kind:
    """How a kind of span looks.

    Attributes
    ----------
    name : str
        For the legend. It may come from a trace.
    role : {"work", "wait", "hold", "copy", "memory", "call"}
    colour : str
        ``#rrggbb``.
    pattern : str
        One of `theme.PATTERNS`, drawn over the colour; colour alone carries nothing.
    """

    name: str
    role: str
    colour: str
    pattern: str = ""


def kinds_of(
    names: Mapping[str, Coded], lengths: NDArray[np.float64], workers: list[str], foreign: bool = False
) -> tuple[tuple[Kind, ...], NDArray[np.int64]]:
    """The kinds of a timeline's bars in the order of the legend, and the kind of each bar.

    Parameters
    ----------
    names : mapping of str to Coded
        `category`, `label` and `worker` of `frames.timeline`.
    lengths : ndarray of float64, shape (n,)
        How long each bar is.
    workers : list of str
        Workers with a colour, which holds of locks take.
    foreign : bool
        A capture of another program: its names get colours that differ in this picture.
    """
    codes, triples = together(names["category"], names["label"], names["worker"])
    keys = [
        (category, worker if category == "hold" else label.partition(".")[0]) for category, label, worker in triples
    ]
    names_of_work = {text for category, text in keys if _is_work(category)} - theme.STAGE_COLOURS.keys()
    if len(names_of_work) > MOST_NAMES:  # names that only count are one
        keys = [(category, _COUNT.sub("…", text) if _is_work(category) else text) for category, text in keys]
    time: dict[str, float] = {}
    for (category, text), length in zip(keys, np.bincount(codes, lengths, minlength=len(keys)), strict=True):
        if _is_work(category) and text not in theme.STAGE_COLOURS:
            time[text] = time.get(text, 0.0) + float(length)
    kept = set(sorted(time, key=lambda text: (-time[text], text))[:MOST_NAMES])
    apart = theme.colours_apart(sorted(kept)) if foreign else {}
    found = [_kind(category, text, workers, time.keys() - kept, apart) for category, text in keys]
    kinds = tuple(sorted(dict.fromkeys(found), key=_rank))
    place = {kind: number for number, kind in enumerate(kinds)}
    places = np.array([place[kind] for kind in found], dtype=np.int64)
    return kinds, places[codes] if len(codes) else codes


def _is_work(category: str) -> bool:
    return category not in ("hold", "transfer", "memory", "call") and not category.startswith("wait:")


def _kind(category: str, text: str, workers: list[str], rare: Set[str], apart: dict[str, str]) -> Kind:
    if category.startswith("wait:"):
        words, pattern = _WAITS.get(category.removeprefix("wait:"), _OTHER_WAIT)
        return Kind(words, "wait", theme.WAIT, pattern)
    if category == "hold":
        place = workers.index(text) if text in workers else 0
        pattern = theme.PATTERNS[place % len(theme.PATTERNS)]
        return Kind(
            f"held by {short_worker(text) or 'nobody known'}", "hold", theme.colour_of_worker(text, workers), pattern
        )
    if category == "transfer":
        return Kind("copy", "copy", theme.STAGE_COLOURS["upload"])
    if category == "memory":
        return Kind("pin, allocate, free", "memory", theme.STAGE_COLOURS["pin"])
    if category == "call":
        return Kind("call (one partition)", "call", theme.WAIT)
    if text in rare:
        return Kind(_OTHERS, "work", theme.WAIT)
    return Kind(text, "work", apart.get(text) or theme.colour_of_stage(text))


def _rank(kind: Kind) -> tuple[object, ...]:
    roles = ("call", "wait", "work", "copy", "memory", "hold")
    order = theme.STAGE_ORDER
    stage = order.index(kind.name) if kind.name in order else len(order)
    return roles.index(kind.role), stage, kind.name == _OTHERS, kind.name
