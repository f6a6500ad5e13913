"""Files that appear whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "wb") -> Iterator[IO]:
    """Open a temporary file beside `path` and rename it to `path` when the block ends without an exception.

    The data are on the disk (fsync) before the rename, so `path` holds either what it held before or all of the new
    content, whatever happens. If the block raises, the temporary file is removed and `path` is untouched.

    Parameters
    ----------
    path : path
        Where the file shall appear. A symbolic link is followed. A device or pipe (``/dev/stdout``, ``/dev/null``)
        cannot be renamed over; it is written directly.
    mode : {"wb", "w", "w+b"}
        Bytes, text (UTF-8, line ends as given), or bytes that are read back as well.

    Yields
    ------
    file
        Open for writing. A library that wants a path may write to ``file.name`` instead.

    Raises
    ------
    OSError
        The folder does not exist, no permission, disk full; `path` names a folder.
    """
    if mode not in ("wb", "w", "w+b"):
        raise ValueError(f"mode {mode!r}: atomic_write writes a new file, with 'wb', 'w' or 'w+b'")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    # Asked of the path as given: what /dev/stdout leads to may have no name of its own.
    existing = os.stat(path).st_mode if os.path.exists(path) else None
    if existing is not None and stat.S_ISDIR(existing):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))
    if existing is not None and not stat.S_ISREG(existing):
        with open(path, mode, **text) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "folder does not exist", str(target.parent))

    # Hidden and ending in .tmp, so that nobody who lists a folder's *.json or *.parquet meets it. Not tempfile: that
    # would leave the file readable by its owner only, where a new file should obey the umask.
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        # Reopened by name, not through the descriptor, so that file.name is a path.
        with open(temporary, mode, **text) as file:
            yield file
            file.flush()
        os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Put the rename itself on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
