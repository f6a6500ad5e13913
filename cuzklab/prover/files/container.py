"""The container that `.r1cs`, `.wtns` and `.zkey` files share.

Four bytes of magic, u32 version, u32 number of sections; each section is u32 type, u64 length, body. All integers are
little-endian. Sections may come in any order; types that a reader does not know are passed over.
"""

import lzma
import mmap
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from cuzklab.errors import BadInput
from cuzklab.prover.files.fields import field_name

COPY_AGAIN = "the file is cut short or damaged: copy it again"
MAXIMUM_UNPACKED_BYTES = 4 << 30
_XZ_MAGIC = b"\xfd7zXZ\x00"
_XZ_DECODER_BYTES = 256 << 20
_MAXIMUM_SECTIONS = 1000


@dataclass(frozen=True)
class Section:
    """The body of one section, a read-only view of the file.

    Attributes
    ----------
    file, type, name : str, int, str
        For messages.
    offset : int
        Where the body begins, in bytes from the beginning of the (unpacked) file.
    body : memoryview
    """

    file: str
    type: int
    name: str
    offset: int
    body: memoryview

    def __len__(self) -> int:
        return len(self.body)

    def bad(self, what: str, todo: str = COPY_AGAIN, at: int = 0) -> BadInput:
        """The error for something wrong `at` so many bytes into the body."""
        return BadInput(f"{self.file}: section {self.type} ({self.name}) at offset {self.offset + at}: {what}; {todo}")

    def require(self, length: int, what: str) -> None:
        """The body must be exactly `length` bytes long, because of `what`."""
        if len(self) != length:
            raise self.bad(f"{len(self)} bytes where {what} make {length}")

    def array(self, dtype, shape: int | tuple[int, ...], at: int = 0) -> np.ndarray:
        """A view of the body as an array; it shares the file's alignment (4 bytes, where limbs would like 8)."""
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else shape
        count = int(np.prod(shape, dtype=object))
        if at + count * dtype.itemsize > len(self):
            raise self.bad(f"{count * dtype.itemsize} bytes wanted, {len(self) - at} are left", at=at)
        # An array of no elements need not lie inside the buffer, which frombuffer would insist on.
        if count == 0:
            return np.empty(shape, dtype)
        return np.frombuffer(self.body, dtype, count, at).reshape(shape)

    def u32(self, at: int) -> int:
        if at + 4 > len(self):
            raise self.bad(f"{len(self)} bytes, too short for its header")
        return int.from_bytes(self.body[at : at + 4], "little")

    def require_prime(self, at: int, prime: int, width: int, todo: str) -> int:
        """Check the field modulus that stands `at`, u32 width then the number; return the offset behind it."""
        stated = self.u32(at)
        if stated > len(self) - at - 4:
            raise self.bad(f"a field modulus of {stated} bytes, {len(self) - at - 4} are left", at=at)
        if stated > 1024:
            raise self.bad(f"a field modulus of {stated} bytes", todo, at)
        found = int.from_bytes(self.body[at + 4 : at + 4 + stated], "little")
        if found != prime:
            raise self.bad(f"made for {field_name(found)}; this program needs {field_name(prime)}", todo, at)
        if stated != width:
            raise self.bad(f"elements of {stated} bytes, {width} expected", at=at)
        return at + 4 + width


def printable(path: str | os.PathLike) -> str:
    """A path for messages, on one line whatever characters it has."""
    text = os.fsdecode(path)
    return text if text.isprintable() else repr(text)


def open_regular(path: str | os.PathLike) -> IO[bytes]:
    """Open an existing regular file for reading; anything else is bad input."""
    try:
        # Not blocking, so that a named pipe nobody writes to is refused and not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{printable(path)}: cannot be read ({reason}); check the path") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadInput(f"{printable(path)}: not a regular file; name a file on disk")
    return open(descriptor, "rb")


def read_container(
    path: str | os.PathLike, magic: bytes, version: int, names: dict[int, str], *, packed: bool = False
) -> dict[int, Section]:
    """Map a container file and find its sections.

    Parameters
    ----------
    path : path
    magic, version : bytes, int
        What the file must begin with.
    names : dict of int to str
        Section types that the format has, with names for messages. Each may occur once; others are passed over.
    packed : bool
        Accept the file inside an ``.xz`` as well, up to 4 GiB unpacked, which is then held in memory.

    Returns
    -------
    dict of int to Section
        The known sections that are there. They keep the mapping alive.

    Raises
    ------
    BadInput
    """
    file = printable(path)
    with open_regular(path) as handle:
        if handle.peek(6)[:6] == _XZ_MAGIC:
            if not packed:
                raise BadInput(f"{file}: compressed with xz; unpack it first (xz -dk FILE), so that it can be mapped")
            data = memoryview(_unpack(handle, file, magic)).toreadonly()
        elif os.fstat(handle.fileno()).st_size:
            data = memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
        else:
            data = memoryview(b"")
    if data[:4] != magic:
        raise BadInput(f"{file}: not a .{magic.decode()} file (begins with {bytes(data[:4])!r}); check the path")
    if len(data) < 12:
        raise BadInput(f"{file}: {len(data)} bytes, too short for a header; {COPY_AGAIN}")
    found_version, count = struct.unpack_from("<II", data, 4)
    if found_version != version:
        raise BadInput(f"{file}: version {found_version} at offset 4, only {version} is known; convert the file")
    if count > min(_MAXIMUM_SECTIONS, len(data) // 12):
        raise BadInput(f"{file}: {count} sections announced at offset 8 in {len(data)} bytes; {COPY_AGAIN}")

    sections: dict[int, Section] = {}
    position = 12
    for index in range(count):
        if len(data) - position < 12:
            raise BadInput(f"{file}: section {index + 1} of {count} missing at offset {position}; {COPY_AGAIN}")
        kind, length = struct.unpack_from("<IQ", data, position)
        position += 12
        name = names.get(kind)
        section = Section(file, kind, name or "unknown", position, data[position : position + length])
        if length > len(data) - position:
            raise section.bad(f"announces {length} bytes, {len(data) - position} are left")
        if name and kind in sections:
            raise section.bad("occurs twice", "only one can be meant: make the file again")
        if name:
            sections[kind] = section
        position += length
    if position != len(data):
        raise BadInput(f"{file}: {len(data) - position} bytes behind the last section, offset {position}; {COPY_AGAIN}")
    return sections


def require_section(sections: dict[int, Section], kind: int, names: dict[int, str], path) -> Section:
    """The section of a type that must be there."""
    if kind not in sections:
        raise BadInput(f"{printable(path)}: section {kind} ({names[kind]}) is missing; make the file again")
    return sections[kind]


def _unpack(handle: IO[bytes], file: str, magic: bytes) -> bytearray:
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_DECODER_BYTES)
    unpacked = bytearray()
    try:
        while not decoder.eof:
            packed = handle.read(1 << 16) if decoder.needs_input else b""
            if decoder.needs_input and not packed:
                raise BadInput(f"{file}: the xz data end early; {COPY_AGAIN}")
            unpacked += decoder.decompress(packed, max_length=1 << 22)
            if unpacked[:4] != magic[: len(unpacked)]:
                raise BadInput(f"{file}: the xz data hold no .{magic.decode()} file; check the path")
            if len(unpacked) > MAXIMUM_UNPACKED_BYTES:
                raise BadInput(
                    f"{file}: more than {MAXIMUM_UNPACKED_BYTES} bytes unpacked; unpack it first (xz -dk FILE)"
                )
    except lzma.LZMAError as error:
        raise BadInput(f"{file}: xz: {error}; {COPY_AGAIN}") from None
    if decoder.unused_data or handle.read(1):
        raise BadInput(f"{file}: more data behind the xz stream; {COPY_AGAIN}")
    return unpacked


Body = tuple[int, int, Iterable[bytes | memoryview | np.ndarray]]


def write_container(file: IO[bytes], magic: bytes, version: int, sections: list[Body]) -> None:
    """Write a container: each section is its type, its length in bytes, and the pieces of its body."""
    file.write(magic + struct.pack("<II", version, len(sections)))
    for kind, length, pieces in sections:
        file.write(struct.pack("<IQ", kind, length))
        written = sum(file.write(piece) for piece in _as_bytes(pieces))
        if written != length:
            raise ValueError(f"section {kind}: {written} bytes where {length} were announced")


def _as_bytes(pieces) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        # A memoryview of an empty array cannot be cast.
        if isinstance(piece, np.ndarray):
            yield memoryview(np.ascontiguousarray(piece)).cast("B") if piece.size else b""
        else:
            yield piece
