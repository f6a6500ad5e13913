"""Whether the points of a proving key lie on their curves and in the subgroups of order r.

A key of another origin may hold points outside the subgroup; a prover that uses them can leak its witness, and its
proofs may be refused. Checking costs tens of microseconds a point, so a key that passed is remembered in the user's
cache folder by the SHA-256 of its file: any change of the file makes it unknown again.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuzklab.atomic import atomic_write
from cuzklab.backends import host, native
from cuzklab.prover.files.container import open_regular
from cuzklab.prover.files.params import point_arrays
from cuzklab.prover.files.zkey import is_zkey, open_zkey
from cuzklab.prover.model import Points
from cuzklab.prover.streaming import read

_BLOCK_POINTS = 1 << 14
_BLOCK_BYTES = 16 << 20
# Raised when the check becomes stricter, so that what an older one passed is checked again.
_CHECK = 1

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class KeyCheck:
    """The outcome for a key that passed.

    Attributes
    ----------
    sha256 : str
        Of the file, hexadecimal.
    points : int
        Points of the key.
    remembered : bool
        An earlier check of the same bytes vouches for it; the points were not looked at again.
    """

    sha256: str
    points: int
    remembered: bool


def check_key(
    path: str | os.PathLike, *, threads: int | None = None, progress: Progress | None = None, remember: bool = True
) -> KeyCheck:
    """Check every point of a `.zkey` or `.params` file.

    Parameters
    ----------
    path : path
    threads : int, optional
        As `cuzklab.backends.host` takes it.
    progress : callable, optional
        Called with "hash" and bytes, then "points" and points: so many done, of so many.
    remember : bool
        Use the cache folder: trust an earlier check, and note this one.

    Raises
    ------
    BadInput
        Not a usable key file, a point off the curve, or one outside the subgroup: with section, index and offset.
    """
    arrays = _arrays(path)
    total = sum(map(len, arrays))
    report = progress or (lambda what, done, of: None)
    digest = _sha256(path, report)
    if remember and _is_known(digest, total):
        return KeyCheck(digest, total, remembered=True)
    done = 0
    for array in arrays:
        for start in range(0, len(array), _BLOCK_POINTS):
            report("points", done, total)
            count = min(_BLOCK_POINTS, len(array) - start)
            _check_block(array, start, count, threads)
            done += count
    report("points", total, total)
    if remember:
        _note(digest, total)
    return KeyCheck(digest, total, remembered=False)


def vouch_for(path: str | os.PathLike) -> None:
    """Remember a key that this program has just made: multiples of the generators need no check.

    The file's bytes are vouched for, so a key that is changed afterwards is checked like any other.
    """
    _note(_sha256(path, lambda what, done, of: None), sum(map(len, _arrays(path))))


def _arrays(path: str | os.PathLike) -> list[Points]:
    """All points of a key of either dialect."""
    return list((open_zkey(path).points if is_zkey(path) else point_arrays(path)[0]).values())


def _check_block(array: Points, start: int, count: int, threads: int | None) -> None:
    on_curve, in_subgroup = {
        "g1": (host.on_curve_g1, host.in_subgroup_g1),
        "g2": (host.on_curve_g2, host.in_subgroup_g2),
    }[array.group]
    block = read(array, start, start + count, threads=threads)
    # The subgroup test is only meaningful for points of the curve.
    bad = on_curve(block, threads=threads)
    if bad >= 0:
        raise array.bad(start + bad, "is not on the curve")
    bad = in_subgroup(block, threads=threads)
    if bad >= 0:
        raise array.bad(start + bad, "is not in the subgroup of order r")


def _sha256(path: str | os.PathLike, report: Progress) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as file:
        size, done = os.fstat(file.fileno()).st_size, 0
        while block := file.read(_BLOCK_BYTES):
            report("hash", done, size)
            digest.update(block)
            done += len(block)
    report("hash", done, size)
    return digest.hexdigest()


def records_folder() -> Path:
    """Where outcomes are kept: a folder that nobody else may write to, or nothing in it could be believed."""
    return native.cache_folder() / "checked-keys"


def _record(digest: str) -> Path:
    return records_folder() / f"{digest}.json"


def _content(digest: str, points: int) -> dict:
    return {"check": _CHECK, "sha256": digest, "points": points}


def _is_known(digest: str, points: int) -> bool:
    try:
        return json.loads(_record(digest).read_text()) == _content(digest, points)
    except (OSError, ValueError):
        return False


def _note(digest: str, points: int) -> None:
    path = _record(digest)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with atomic_write(path, "w") as file:
        json.dump(_content(digest, points), file)
