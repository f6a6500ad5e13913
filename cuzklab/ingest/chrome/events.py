"""Trace events from JSON, one at a time: however large the file, never more than one event in memory."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.ingest.files import Bounded

MOST_EVENTS = 50_000_000
_DEEPEST = 64
_MOST_VALUES = 100_000
_LONGEST_EVENT_BYTES = 8 << 20
_PIECE_BYTES = 1 << 16
_LATEST_US = Decimal(1 << 61) / 1000
# Facts of the whole file that somebody reads.
_HEADER = ("otherData", "displayTimeUnit", "deviceProperties")
_OPEN, _CLOSE = ("start_map", "start_array"), ("end_map", "end_array")


class _Watched:
    """A stream that refuses to go on when very much was read since anybody made use of it."""

    def __init__(self, path: Path, stream: Bounded) -> None:
        self._path, self._stream = path, stream
        self.since_bytes = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self.since_bytes += len(piece)
        if self.since_bytes > _LONGEST_EVENT_BYTES:
            raise BadInput(f"{self._path}: one value is longer than {_LONGEST_EVENT_BYTES:,} bytes: refused")
        return piece


class EventFile:
    """The events of a file.

    Attributes
    ----------
    header : dict
        What the file says beside its events, as far as it came before the last event read.
    count : int
        Events so far.
    cut : bool
        The file ends in the middle of its events, as that of an interrupted program does.
    """

    def __init__(self, path: Path, stream: Bounded) -> None:
        self._path, self._stream = path, _Watched(path, stream)
        self.header: dict[str, Any] = {}
        self.count = 0
        self.cut = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The events.

        Raises
        ------
        BadInput
            Not JSON, nested too deeply, too much of anything.
        """
        import ijson

        try:
            yield from self._events(ijson.basic_parse(self._stream, buf_size=_PIECE_BYTES))
        except ijson.IncompleteJSONError as error:
            if not self.count:
                raise self._bad(error) from None
            self.cut = True
        except (ijson.JSONError, ValueError, OverflowError) as error:
            raise error if isinstance(error, BadInput) else self._bad(error) from None

    def _bad(self, error: Exception) -> BadInput:
        words = " ".join(str(error).split())[:120]
        return BadInput(f"{self._path}: after event {self.count:,}: not readable as JSON: {words}")

    def _events(self, tokens: Iterator[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        kind, _ = next(tokens, ("", None))
        if kind == "start_array":
            yield from self._array(tokens)
            return
        if kind != "start_map":
            raise BadInput(f"{self._path}: neither a list of trace events nor an object with traceEvents")
        seen = False
        for kind, key in tokens:
            if kind != "map_key":
                break
            first = next(tokens)
            if key == "traceEvents" and first[0] == "start_array":
                seen = True
                yield from self._array(tokens)
            elif key in _HEADER:
                self.header[key] = self._value(first, tokens)
            else:
                self._skip(first, tokens)
        if not seen:
            raise BadInput(f"{self._path}: an object without a list traceEvents; is it a trace?")

    def _array(self, tokens: Iterator[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        for token in tokens:
            if token[0] == "end_array":
                return
            value = self._value(token, tokens)
            self._stream.since_bytes = 0
            self.count += 1
            if self.count > MOST_EVENTS:
                raise BadInput(f"{self._path}: more than {MOST_EVENTS:,} events; capture a shorter time")
            if isinstance(value, dict):
                yield value
            else:
                yield {}

    def _value(self, first: tuple[str, Any], tokens: Iterator[tuple[str, Any]]) -> Any:
        """A value with everything in it."""
        if first[0] not in _OPEN:
            return first[1]
        root: Any = {} if first[0] == "start_map" else []
        stack, keys, count = [root], [None], 0
        for kind, value in tokens:
            if kind == "map_key":
                keys[-1] = value
                continue
            if kind in _CLOSE:
                stack.pop()
                keys.pop()
                if not stack:
                    return root
                continue
            count += 1
            if count > _MOST_VALUES or len(stack) > _DEEPEST:
                self._refuse(count)
            made = {} if kind == "start_map" else [] if kind == "start_array" else value
            if isinstance(stack[-1], dict):
                stack[-1][keys[-1]] = made
            else:
                stack[-1].append(made)
            if kind in _OPEN:
                stack.append(made)
                keys.append(None)
        return root

    def _skip(self, first: tuple[str, Any], tokens: Iterator[tuple[str, Any]]) -> None:
        depth = int(first[0] in _OPEN)
        while depth:
            kind, _ = next(tokens)
            self._stream.since_bytes = 0
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth > _DEEPEST:
                self._refuse(0)

    def _refuse(self, count: int) -> None:
        what = f"more than {_MOST_VALUES:,} values" if count > _MOST_VALUES else f"nested deeper than {_DEEPEST} levels"
        raise BadInput(f"{self._path}: event {self.count + 1:,}: {what}: refused")


def nanoseconds(value: Any) -> int | None:
    """A number of microseconds in nanoseconds; None where it is none, or beyond 73 years."""
    if isinstance(value, str) and len(value) < 40:
        try:
            value = Decimal(value)
        except ArithmeticError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    if not -_LATEST_US < value < _LATEST_US:
        return None
    return value * 1000 if isinstance(value, int) else int((value * 1000).to_integral_value())


def whole(value: Any) -> int | None:
    """An integer that fits 63 bits; None for anything else. Texts are numbers where they are written as such."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, Decimal) and (not value.is_finite() or not -(1 << 62) < value < 1 << 62 or value % 1):
        return None
    return int(value) if -(1 << 62) < value < 1 << 62 else None
