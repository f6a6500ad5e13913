"""Files of unknown size and content, read within bounds: plain or gzip, by pieces or by lines."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cuzklab.errors import BadInput

_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 18
# Traces and logs shrink to a tenth or a fiftieth. What shrinks further than this, beyond a harmless size, is made to.
_HARMLESS_BYTES = 16 << 20
_MOST_RATIO = 200


class Bounded(io.RawIOBase):
    """A stream that refuses to yield more than a number of bytes, or far more than its file has.

    Raises
    ------
    BadInput
        From `read`: a bound was passed, or the compression is damaged.
    """

    def __init__(self, path: Path, stream: BinaryIO, most_bytes: int, file_bytes: int) -> None:
        self._path, self._stream, self._most_bytes = path, stream, most_bytes
        self._file_bytes = max(file_bytes, 1)
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = _PIECE_BYTES if size < 0 else min(size, _PIECE_BYTES)
        try:
            piece = self._stream.read(size)
        except EOFError:
            raise BadInput(f"{self._path}: its compressed content ends early; copy it again") from None
        except (OSError, zlib.error) as error:
            raise BadInput(f"{self._path}: not readable: {' '.join(str(error).split())}") from None
        self.read_bytes += len(piece)
        if self.read_bytes > self._most_bytes:
            raise BadInput(
                f"{self._path}: more than {self._most_bytes:,} bytes of content, which is the most that is read; "
                "capture a shorter time"
            )
        if self.read_bytes > _HARMLESS_BYTES and self.read_bytes > _MOST_RATIO * self._file_bytes:
            raise BadInput(f"{self._path}: grows to more than {_MOST_RATIO} times its size when unpacked: refused")
        return piece

    def readinto(self, target: bytearray) -> int:
        piece = self.read(len(target))
        target[: len(piece)] = piece
        return len(piece)


@contextmanager
def open_bounded(path: Path, most_bytes: int) -> Iterator[Bounded]:
    """The content of a file, unpacked where it is gzip.

    Raises
    ------
    BadInput
        It cannot be opened; from reading: see `Bounded`.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            size = path.stat().st_size
            with gzip.GzipFile(fileobj=file) if packed else file as stream:
                yield Bounded(path, stream, most_bytes, size)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None


def beginning(path: Path, length: int) -> bytes:
    """The first bytes of a file, unpacked where it is gzip; nothing where it cannot be read."""
    try:
        with open_bounded(path, _HARMLESS_BYTES) as content:
            found = b""
            while len(found) < length and (piece := content.read(length - len(found))):
                found += piece
            return found
    except (BadInput, OSError):
        return b""


@dataclass
class Lines:
    """The lines of a stream as text, however long they are and whatever they hold.

    Attributes
    ----------
    longest_bytes : int
        The rest of a longer line is left out.
    count, cut, invalid : int
        Lines so far; of them those that were cut, and those that are not UTF-8 or hold NUL.
    """

    stream: Bounded
    longest_bytes: int
    count: int = 0
    cut: int = 0
    invalid: int = field(default=0)

    def __iter__(self) -> Iterator[str]:
        kept, over = b"", False
        while piece := self.stream.read(_PIECE_BYTES):
            *whole, rest = piece.split(b"\n")
            for part in whole:
                yield self._text(kept + part, over)
                kept, over = b"", False
            kept += rest
            if len(kept) > self.longest_bytes:
                kept, over = kept[: self.longest_bytes], True
        if kept or over:
            yield self._text(kept, over)

    def _text(self, raw: bytes, over: bool) -> str:
        self.count += 1
        if over or len(raw) > self.longest_bytes:
            self.cut += 1
            raw = raw[: self.longest_bytes]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "replace")
            self.invalid += 1
        else:
            self.invalid += "\0" in text
        return text
