"""Sizes, times, and figures that know their kind.

Three different things are called "seconds per proof" in this field and two are called "GPU utilisation". A `Metric`
therefore carries its kind and the conditions under which it was obtained; comparing two kinds raises.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

KiB, MiB, GiB, TiB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_SIZE_SUFFIXES = {
    "": 1, "B": 1, "KIB": KiB, "MIB": MiB, "GIB": GiB, "TIB": TiB, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip

METRIC_KINDS: Mapping[str, tuple[str, str]] = {
    "batch_average": ("s/proof", "batch wall time divided by proofs completed, ramp included"),
    "steady_interval": ("s/proof", "interval between completed proofs once the pipeline is full"),
    "prove_time": ("s", "sum over a proof's partitions of the GPU call's duration, lock wait included"),
    "call_occupancy": ("1", "share of the time in which some GPU call is under way, lock wait included"),
    "kernel_occupancy": ("1", "share of the time in which some kernel runs on the device"),
    "peak_vram": ("B", "largest sum of live device allocations"),
    "peak_host": ("B", "largest host memory in use"),
    "wall": ("s", "start of the first step to the end of the last"),
    "duration": ("s", "duration of one stage or wait"),
    "count": ("1", "number of things counted"),
    "share": ("1", "part of a whole"),
    "size": ("B", "an amount of memory or data"),
}


class MetricKindError(TypeError):
    """Two figures of different kinds were compared."""


@dataclass(frozen=True)
class Metric:
    """One figure: what it measures, its value, and the conditions it was obtained under.

    Attributes
    ----------
    kind : str
        One of `METRIC_KINDS`.
    value : float
        In the unit of the kind.
    obtained : {"measured", "simulated", "published", "computed"}
    conditions : mapping
        What the figure depends on: c, j, pw, gw, gt, workload, hardware, backend, policy.
    label : str
        What it is a figure of, where the kind alone does not say ("wait for gpu0.lock").
    """

    kind: str
    value: float
    obtained: str
    conditions: Mapping[str, object] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        if self.kind not in METRIC_KINDS:
            raise ValueError(f"unknown kind of metric {self.kind!r}; known: {', '.join(METRIC_KINDS)}")
        if self.obtained not in ("measured", "simulated", "published", "computed"):
            raise ValueError(f"a metric is measured, simulated, published or computed, not {self.obtained!r}")

    @property
    def unit(self) -> str:
        return METRIC_KINDS[self.kind][0]

    def ratio(self, other: "Metric") -> float:
        """This figure divided by another of the same kind.

        Raises
        ------
        MetricKindError
            The kinds differ, so the quotient would mean nothing.
        """
        if self.kind != other.kind:
            raise MetricKindError(f"{self.kind} and {other.kind} are different things; they cannot be compared")
        return self.value / other.value

    def __lt__(self, other: "Metric") -> bool:
        return self.ratio(other) < 1 if other.value else self.value < 0

    def __str__(self) -> str:
        return f"{self.label or self.kind} {format_value(self.value, self.unit)}"

    def to_json(self) -> dict[str, object]:
        return {
            "kind": self.kind, "value": self.value, "unit": self.unit, "obtained": self.obtained,
            "label": self.label, "conditions": dict(self.conditions),
        }  # fmt: skip


def parse_size(text: str | int) -> int:
    """Bytes of a size such as ``16GiB``, ``512 MiB``, ``1.5e9`` or ``4096``.

    Raises
    ------
    ValueError
        Not a size, negative, or not a whole number of bytes.
    """
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in _SIZE_SUFFIXES:
        raise ValueError(f"{text!r} is not a size; write it like 16GiB, 512MiB or 4096")
    value = float(match[1]) * _SIZE_SUFFIXES[match[2].upper()]
    if value >= 2**62:
        raise ValueError(f"{text!r} is larger than any memory")
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(value)


def format_size(size_bytes: float) -> str:
    """A size for people, in binary units with three digits: ``13.8 GiB``."""
    magnitude = abs(size_bytes)
    for name, unit in (("TiB", TiB), ("GiB", GiB), ("MiB", MiB), ("KiB", KiB)):
        if magnitude >= unit:
            return f"{_three_digits(size_bytes / unit)} {name}"
    return f"{size_bytes:.0f} B"


def sizes_in_words(text: str) -> str:
    """A text in which bytes (``8589934592 B``) stand as people write them (``8.00 GiB``)."""
    return re.sub(r"\b(\d+) B\b", lambda match: format_size(int(match[1])), text)


def format_seconds(seconds: float) -> str:
    """A duration for people: ``37.4 s``, ``551 ms``, ``12.0 µs``."""
    magnitude = abs(seconds)
    if magnitude == 0 or magnitude >= 1:
        return f"{_three_digits(seconds)} s"
    for name, unit in (("ms", 1e-3), ("µs", 1e-6)):
        if magnitude >= unit:
            return f"{_three_digits(seconds / unit)} {name}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def percent(share: float, decimals: int | None = None, *, signed: bool = False) -> str:
    """A share as people read it: ``63 %``, ``4.2 %``, ``under 0.1 %``; `signed`: a change, ``+4.2 %``, ``−63 %``.

    Without `decimals` it has one below 10 %, and none where there would be a zero. A space stands before the sign, as
    before any unit.
    """
    value = 100 * share
    if decimals is None:
        if value and abs(value) < 0.1:
            return f"{'under' if value > 0 else 'over'} {_sign(value, signed)}0.1 %"
        decimals = 0 if abs(value) >= 9.95 or float(value).is_integer() else 1
    rounded = round(value, decimals)
    return f"{_sign(rounded, signed)}{abs(rounded):.{decimals}f} %"


def percent_range(low: float, high: float) -> str:
    """From where to where a change lies: ``−3.0 % to +8.6 %``."""
    return f"{percent(low, 1, signed=True)} to {percent(high, 1, signed=True)}"


def _sign(value: float, signed: bool) -> str:
    if value < 0:
        return "−"
    return ("+" if value > 0 else "±") if signed else ""


def format_value(value: float, unit: str) -> str:
    """A figure with its unit, as people write it."""
    match unit:
        case "B":
            return format_size(value)
        case "s":
            return format_seconds(value)
        case "s/proof":
            return f"{format_seconds(value)}/proof"
        case "1" if value == int(value):
            return f"{int(value):,}"
        case "1":
            return f"{value:.3f}"
    return f"{_three_digits(value)} {unit}"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    return f"{value:.0f}" if magnitude >= 100 else f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"
