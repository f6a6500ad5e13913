"""The binary of a timeline: named columns of numbers behind a JSON header, for a reader that has little time.

A million spans as JSON are 80 MB that a browser parses for seconds; as columns they are views on one buffer. The
layout, all little-endian: 8 bytes `MAGIC`; the header's length as uint32 and four zero bytes; the header as UTF-8 JSON,
filled with spaces to a multiple of 8; the columns, each at a multiple of 8 bytes. The header's `columns` lists name,
type, offset (from the header's end) and count of each; `segments` of a column says that it holds differences which
begin anew at each place in the column ``SEGMENTS_first``. Integers have the smallest type that holds them all. The
whole is compressed with gzip, which every browser undoes by itself.
"""

import gzip
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzklab.errors import BadInput

MAGIC = b"CZTL0001"
MOST_BYTES = 1 << 30
_EXACT = 1 << 53  # integers up to here are exact as float64, which is what JavaScript counts in
_UNSIGNED = (("u1", np.uint8), ("u2", np.uint16), ("u4", np.uint32))
_TYPES = {name: np.dtype(kind).newbyteorder("<") for name, kind in (*_UNSIGNED, ("f8", np.float64))}


def encode(header: Mapping[str, Any], columns: Mapping[str, NDArray[Any]], segments: Mapping[str, str]) -> bytes:
    """Header and columns as compressed bytes.

    Parameters
    ----------
    header : mapping
        Anything that JSON holds; `columns` is added.
    columns : mapping of str to ndarray, shape (n,)
        Integers from 0 to 2^53, or float64.
    segments : mapping of str to str
        For columns that are stored as differences: the prefix of the columns ``…_first`` and ``…_count`` that say
        where its segments are. Values must not decrease inside a segment.

    Raises
    ------
    ValueError
        A value is out of range, or decreases where it must not.
    """
    described, blocks, offset = [], [], 0
    for name, values in columns.items():
        stored = _differences(name, values, columns[f"{segments[name]}_first"]) if name in segments else values
        kind, packed = _packed(name, stored)
        described.append({"name": name, "type": kind, "offset": offset, "count": len(packed)})
        if name in segments:
            described[-1]["segments"] = segments[name]
        block = packed.tobytes()
        blocks.append(block + bytes(-len(block) % 8))
        offset += len(blocks[-1])
    text = json.dumps({**header, "columns": described}, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    prefix = MAGIC + struct.pack("<II", len(text), 0) + text
    return gzip.compress(b"".join((prefix, *blocks)), 5, mtime=0)


def _differences(name: str, values: NDArray[Any], firsts: NDArray[Any]) -> NDArray[Any]:
    whole = np.asarray(values, dtype=np.int64)
    differences = np.diff(whole, prepend=np.int64(0))
    starts = np.asarray(firsts, dtype=np.int64)
    starts = starts[starts < len(whole)]
    differences[starts] = whole[starts]
    if len(differences) and differences.min() < 0:
        raise ValueError(f"column {name}: decreases inside a segment")
    return differences


def _packed(name: str, values: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    values = np.asarray(values)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise ValueError(f"column {name}: not finite")
        return "f8", values.astype(_TYPES["f8"])
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if lowest < 0 or highest > _EXACT:
        raise ValueError(f"column {name}: {lowest} to {highest} is outside 0 to 2^53")
    kind = next((name for name, kind in _UNSIGNED if highest <= np.iinfo(kind).max), "f8")
    return kind, values.astype(_TYPES[kind])


def decode(packed: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and columns out of what `encode` made; columns of differences are summed up again.

    Raises
    ------
    BadInput
        The bytes are something else, or damaged.
    """
    try:
        reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
        data = reader.decompress(packed, MOST_BYTES)
        if reader.unconsumed_tail or not reader.eof:
            raise ValueError("cut off, or larger than 1 GiB")
        if data[:8] != MAGIC:
            raise ValueError("not a timeline of this version")
        (length,) = struct.unpack_from("<I", data, 8)
        header, base = json.loads(data[16 : 16 + length]), 16 + length
        columns = {}
        for column in header["columns"]:
            kind, count = _TYPES[column["type"]], int(column["count"])
            offset = base + int(column["offset"])
            if offset < base or count < 0 or offset + count * kind.itemsize > len(data):
                raise ValueError(f"column {column['name']} reaches beyond the end")
            columns[column["name"]] = np.frombuffer(data, kind, count, offset)
        for column in header["columns"]:
            if segments := column.get("segments"):
                name = column["name"]
                columns[name] = _summed(columns[name], columns[f"{segments}_first"])
    except (ValueError, KeyError, TypeError, IndexError, struct.error, zlib.error) as error:
        raise BadInput(f"timeline: damaged ({error})") from None
    return header, columns


def _summed(differences: NDArray[Any], firsts: NDArray[Any]) -> NDArray[np.int64]:
    sums = np.cumsum(differences.astype(np.int64))
    before = np.zeros(len(sums), dtype=np.int64)
    starts = np.unique(firsts[firsts < len(sums)].astype(np.int64))
    if len(starts):
        bases = np.where(starts > 0, sums[starts - 1], 0)
        before[starts[0] :] = np.repeat(bases, np.diff(np.append(starts, len(sums))))
    return sums - before
