"""What an export holds, by name: the same for SQLite files and for folders of Parquet files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuzklab.errors import BadInput
from cuzklab.trace.columns import NULL

MISSING = NULL
# Of tables that are read as Python values. More rows than this are no table of names.
MOST_RECORDS = 20_000_000
# Times beyond this (73 years) are damage; sums of two of them still fit 64 bits.
LATEST_NS = 1 << 61


class Source(Protocol):
    """A kind of export.

    `tables` has the columns of each table. `integers` yields the rows in pieces, an int64 array a column, null as
    `MISSING`; whatever cannot be an integer is 0. `texts` yields rows as raw values. Both raise `BadInput` on damage.
    """

    path: Any
    tables: Mapping[str, tuple[str, ...]]

    def integers(self, table: str, columns: Sequence[str]) -> Iterator[list[NDArray[np.int64]]]: ...

    def texts(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]: ...

    def close(self) -> None: ...


class Export:
    """An export, read by the names that tables and columns have in the documentation.

    A later version may call a table ``NAME_V2``: the highest version that is there is read. Columns that are not there
    are null in every row, columns that nobody knows are not looked at.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._actual = _latest_versions(source.tables)

    @property
    def path(self) -> Any:
        return self._source.path

    def has(self, *tables: str) -> bool:
        """Whether any of some tables is there."""
        return any(name.upper() in self._actual for name in tables)

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none where it is absent."""
        return frozenset(self._source.tables[self._actual[table.upper()]]) if self.has(table) else frozenset()

    def renamed(self) -> dict[str, str]:
        """Tables that are read under a versioned name."""
        return {name: actual for name, actual in self._actual.items() if actual.upper() != name}

    def integers(self, table: str, *columns: str) -> dict[str, NDArray[np.int64]]:
        """Columns of a table as int64, null as `MISSING`; empty where there is no such table.

        Raises
        ------
        BadInput
            The table is damaged.
        """
        there = self.columns(table)
        known = [column for column in columns if column in there]
        pieces: list[list[NDArray[np.int64]]] = []
        if known:
            pieces = list(self._source.integers(self._actual[table.upper()], known))
        found = {
            column: np.concatenate([piece[place] for piece in pieces] or [np.empty(0, np.int64)])
            for place, column in enumerate(known)
        }
        rows = len(found[known[0]]) if known else 0
        return {column: found.get(column, _nulls(rows)) for column in columns}

    def texts(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a table as raw values (int, float, str, bytes or None), null where a column is absent.

        Raises
        ------
        BadInput
            The table is damaged, or larger than any table of that kind.
        """
        there = self.columns(table)
        known = [column for column in columns if column in there]
        if not known:
            return
        places = [known.index(column) if column in there else None for column in columns]
        for number, row in enumerate(self._source.texts(self._actual[table.upper()], known)):
            if number >= MOST_RECORDS:
                raise BadInput(f"{self.path}: table {table}: more than {MOST_RECORDS:,} rows, which no export has")
            yield tuple(None if place is None else row[place] for place in places)

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> "Export":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _latest_versions(tables: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Documented name, in capitals → name in the file."""
    versions: dict[str, tuple[int, str]] = {}
    for name in tables:
        match = re.fullmatch(r"(.+?)_V(\d{1,4})", name, re.IGNORECASE)
        plain, version = (match[1].upper(), int(match[2])) if match else (name.upper(), 1)
        if version > versions.get(plain, (0, ""))[0]:
            versions[plain] = (version, name)
    return {plain: name for plain, (_, name) in versions.items()}


def _nulls(rows: int) -> NDArray[np.int64]:
    return np.full(rows, MISSING, np.int64)
