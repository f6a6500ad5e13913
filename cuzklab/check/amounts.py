"""An amount of memory that notes what it is compared with, so that one check tells up to where its result holds.

How a policy behaves depends on the memory of its devices only by comparisons: an allocation that fits or does not, a
query that shows enough or too little. An `Amount` is an integer that knows how it grows with the device's memory, and
writes down for each comparison the amount of memory at which its result would change. As long as no such threshold is
passed, every comparison comes out the same, so the whole exploration does.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

# Who compares amounts only to write them.
_WRITERS = {"cuzklab.units", "cuzklab.check.words", "cuzklab.check.render"}


@dataclass
class Log:
    """What the amounts that come from one device's memory were compared with.

    Attributes
    ----------
    vram_bytes : int
        The memory in force.
    thresholds : set of int
        Amounts of memory from which on some comparison comes out otherwise than below.
    opaque : str
        Where an amount was used in a way that cannot be followed, as in a division; empty if nowhere.
    """

    vram_bytes: int
    thresholds: set[int] = field(default_factory=set)
    opaque: str = ""

    def next_threshold(self) -> int | None:
        """The smallest amount of memory above that in force at which something changes; None if nothing ever does."""
        return min((threshold for threshold in self.thresholds if threshold > self.vram_bytes), default=None)


class Amount(int):
    """An integer that is `slope` bytes larger for each byte that the device has more."""

    log: Log
    slope: int

    def __new__(cls, value: int, log: Log, slope: int = 1) -> "Amount":
        made = super().__new__(cls, value)
        made.log, made.slope = log, slope
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)

    # --- arithmetic that stays linear ---

    def _made(self, value: Any, slope: int) -> Any:
        return value if value is NotImplemented or not slope else Amount(value, self.log, slope)

    def __add__(self, other: Any) -> Any:
        return self._made(int.__add__(self, other), self.slope + _slope(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._made(int.__sub__(self, other), self.slope - _slope(other))

    def __rsub__(self, other: Any) -> Any:
        return self._made(int.__rsub__(self, other), _slope(other) - self.slope)

    def __neg__(self) -> "Amount":
        return Amount(-int(self), self.log, -self.slope)

    def __pos__(self) -> "Amount":
        return self

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Amount):
            return self._opaque(int.__mul__(self, other))
        return self._made(int.__mul__(self, other), self.slope * other if isinstance(other, int) else 0)

    __rmul__ = __mul__

    # --- division, which is constant between multiples of the divisor ---

    def __floordiv__(self, other: Any) -> Any:
        quotient = int.__floordiv__(self, other)
        if not self._note_multiples(other, quotient):
            return self._opaque(quotient)
        return quotient

    def __mod__(self, other: Any) -> Any:
        quotient, rest = int.__divmod__(self, other)
        if not self._note_multiples(other, quotient):
            return self._opaque(rest)
        return Amount(rest, self.log, self.slope)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def _note_multiples(self, divisor: Any, quotient: Any) -> bool:
        """Note between which amounts a quotient stays what it is; whether that can be told."""
        if type(divisor) is not int or divisor <= 0 or self.slope <= 0:
            return False
        for multiple in (quotient * divisor, (quotient + 1) * divisor):
            self.log.thresholds.add(self.log.vram_bytes - (int(self) - multiple) // self.slope)
        return True

    # --- comparisons ---

    def __ge__(self, other: Any) -> bool:
        self._note(other, at_least=True)
        return int.__ge__(self, other)

    def __lt__(self, other: Any) -> bool:
        self._note(other, at_least=True)
        return int.__lt__(self, other)

    def __gt__(self, other: Any) -> bool:
        self._note(other, more=True)
        return int.__gt__(self, other)

    def __le__(self, other: Any) -> bool:
        self._note(other, more=True)
        return int.__le__(self, other)

    def __eq__(self, other: object) -> bool:
        self._note(other, at_least=True, more=True)
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._note(other, at_least=True, more=True)
        return int.__ne__(self, other)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return int.__hash__(self)

    def _note(self, other: object, at_least: bool = False, more: bool = False) -> None:
        """Note where ``self >= other`` (`at_least`) and ``self > other`` (`more`) change."""
        if not isinstance(other, int | float) or sys._getframe(2).f_globals.get("__name__") in _WRITERS:
            return
        slope = self.slope - _slope(other)
        if slope == 0:
            return
        if isinstance(other, float):
            self._opaque(None)
            return
        gap = int(other) - int(self)
        if slope < 0:  # self >= other says what -self <= -other does, which changes where -self > -other does
            slope, gap, at_least, more = -slope, -gap, more, at_least
        if at_least:
            self.log.thresholds.add(self.log.vram_bytes - (-gap // slope))
        if more:
            self.log.thresholds.add(self.log.vram_bytes + gap // slope + 1)

    # --- anything else ---

    def _opaque(self, result: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        if frame.f_globals.get("__name__") not in _WRITERS:
            self.log.opaque = self.log.opaque or f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        return result


def _slope(value: object) -> int:
    return value.slope if isinstance(value, Amount) else 0


def _follow_no_further(name: str) -> Any:
    plain = getattr(int, name)

    def method(self: Amount, *arguments: Any) -> Any:
        return self._opaque(plain(self, *arguments))

    method.__name__ = name
    return method


for _name in (
    "truediv", "rtruediv", "rfloordiv", "rmod", "rdivmod", "pow", "rpow", "lshift",
    "rlshift", "rshift", "rrshift", "and", "rand", "or", "ror", "xor", "rxor", "invert", "abs", "float", "round",
):  # fmt: skip
    setattr(Amount, f"__{_name}__", _follow_no_further(f"__{_name}__"))
for _name in ("bit_length", "bit_count", "to_bytes"):
    setattr(Amount, _name, _follow_no_further(_name))
