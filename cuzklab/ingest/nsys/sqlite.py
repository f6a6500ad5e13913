"""SQLite exports: opened read-only, trusted in nothing."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzklab.errors import BadInput
from cuzklab.ingest.nsys.export import MISSING

HEADER = b"SQLite format 3\0"
_ROWS_AT_ONCE = 100_000
# No value of an export is longer; longer ones in a damaged file are an error of SQLite, not an allocation.
_LONGEST_VALUE_BYTES = 64 << 20
_LEAST_ROW_BYTES = 2


class SqliteSource:
    """A SQLite file as a source of an export.

    Raises
    ------
    BadInput
        Not a SQLite file, or a damaged one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._damage("its schema"):
            # Immutable: no lock, no journal, nothing written beside a file that may lie in a read-only folder.
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE_BYTES)
            self._connection.text_factory = bytes
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
                self._connection.execute(f"PRAGMA {pragma}")
            self.tables = {name: self._columns(name) for name in self._ordinary_tables()}
        # A tree whose pages point at each other has endlessly many rows.
        self._most_rows = path.stat().st_size // _LEAST_ROW_BYTES

    def _ordinary_tables(self) -> list[str]:
        """Tables with pages of their own: a view or a virtual table could compute anything."""
        rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        return [name.decode("utf-8", "replace") for (name,) in rows.fetchall() if isinstance(name, bytes)]

    def _columns(self, table: str) -> tuple[str, ...]:
        """Stored columns; generated ones (hidden 2 and 3) are computed by the file."""
        rows = self._connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        return tuple(row[1].decode("utf-8", "replace") for row in rows if row[6] == 0)

    def integers(self, table: str, columns: Sequence[str]) -> Iterator[list[NDArray[np.int64]]]:
        names = ", ".join(f"ifnull(CAST({_quoted(column)} AS INTEGER), {MISSING})" for column in columns)
        with self._damage(f"table {table}"):
            cursor = self._connection.execute(f"SELECT {names} FROM {_quoted(table)}")
            for rows in self._pieces(cursor, table):
                whole = np.array(rows, dtype=np.int64).reshape(len(rows), len(columns))
                yield [np.ascontiguousarray(whole[:, place]) for place in range(len(columns))]

    def texts(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        names = ", ".join(map(_quoted, columns))
        with self._damage(f"table {table}"):
            for rows in self._pieces(self._connection.execute(f"SELECT {names} FROM {_quoted(table)}"), table):
                yield from rows

    def _pieces(self, cursor: sqlite3.Cursor, table: str) -> Iterator[list[tuple[Any, ...]]]:
        count = 0
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            count += len(rows)
            if count > self._most_rows:
                raise BadInput(f"{self.path}: table {table}: more rows than the file has room for; export it again")
            yield rows

    @contextmanager
    def _damage(self, where: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError) as error:
            raise BadInput(
                f"{self.path}: {where}: {' '.join(str(error).split())}; write it again with"
                " `nsys export --type sqlite --force-overwrite true`"
            ) from error

    def close(self) -> None:
        self._connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
