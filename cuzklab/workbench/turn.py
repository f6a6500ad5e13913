"""One turn of a knob: from knobs to the picture, soon.

A slider is answered with the whole picture where that is quick, and otherwise first with the part of the same run that
is simulated by then: a large batch or a busy machine makes the whole late, never the first picture. What was simulated
once is remembered: the same knobs always come to the same picture.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.policies import UnknownPolicy
from cuzklab.profiles import load_hardware
from cuzklab.trace import Recorder
from cuzklab.workbench.design import Design, simulated
from cuzklab.workbench.picture import chart, picture

FIRST_S = 0.06  # a simulation that takes longer is shown as far as it is
_MOST_KEPT = 64

Picture = dict[str, Any]


class Turns:
    """Answers turns of the knobs.

    Parameters
    ----------
    show : callable (dict)
        Told a first picture, with `partial` set, where the whole takes longer than `first_s`.
    first_s : float
    clock : callable returning float
        Seconds.
    """

    def __init__(
        self, show: Callable[[Picture], None], first_s: float = FIRST_S, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._show, self._first_s, self._clock = show, first_s, clock
        self._kept: OrderedDict[str, Picture] = OrderedDict()

    def turn(self, knobs: Mapping[str, Any], number: int) -> Picture:
        """The picture of some knobs, or what is wrong with them; `of` is the number of the turn."""
        known = {"of": number, "knobs": dict(knobs)}
        begun = self._clock()
        key = json.dumps(known["knobs"], sort_keys=True, default=str)
        if key in self._kept:
            self._kept.move_to_end(key)
            return {**self._kept[key], **known, "took_ms": {"remembered": self._since_ms(begun)}}
        try:
            drawn = self._drawn(Design.from_json(knobs), known, begun)
        except (BadInput, UnknownPolicy) as error:
            return {**known, "error": str(error)}
        self._kept[key] = drawn
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return {**drawn, **known}

    def _since_ms(self, begun: float) -> float:
        return round((self._clock() - begun) * 1e3, 2)

    def _drawn(self, design: Design, known: Mapping[str, Any], begun: float) -> Picture:
        shown = False

        def watch(recorder: Recorder, now_ns: int) -> None:
            nonlocal shown
            if shown or self._clock() - begun < self._first_s or not recorder.rows["spans"]:
                return
            shown = True
            device = {
                "index": 0, "vram_limit_bytes": design.vram_bytes,
                "margin_bytes": load_hardware(design.hardware).device.margin_bytes,
            }  # fmt: skip
            took_ms = {"simulate": self._since_ms(begun)}
            first = chart(recorder, [device])
            took_ms["analyse"] = round(self._since_ms(begun) - took_ms["simulate"], 2)
            self._show({**first, **known, "partial": True, "took_ms": took_ms})

        simulation = simulated(design, watch)
        took_ms = {"simulate": self._since_ms(begun)}
        whole = picture(simulation)
        took_ms["analyse"] = round(self._since_ms(begun) - took_ms["simulate"], 2)
        return {**whole, "partial": False, "took_ms": took_ms}
