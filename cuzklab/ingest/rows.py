"""Rows of a table as they are found, kept as columns: a million of them take tens of megabytes."""

import dataclasses
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cuzklab.trace.columns import NULL, table
from cuzklab.trace.schema import TABLES, arrow_schema

_KINDS = {pa.int64(): "q", pa.float64(): "d", pa.bool_(): "b", pa.string(): "i"}


class Rows:
    """Rows of one table of the schema; text is kept once, however often it occurs.

    Parameters
    ----------
    of : str
        Name of the table.
    """

    def __init__(self, of: str) -> None:
        self.of = of
        self._schema = arrow_schema(of)
        self._defaults = {one.name: one.default for one in dataclasses.fields(TABLES[of])}
        self._columns = [(one.name, one.type, array(_KINDS[one.type])) for one in self._schema]
        self._texts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._columns[0][2])

    def add(self, **values: Any) -> None:
        """Keep a row; columns that are not named have their default, None stands for null."""
        for name, kind, column in self._columns:
            value = values.get(name, self._defaults[name])
            if kind == pa.string():
                value = self._texts.setdefault(value, len(self._texts))
            column.append(NULL if value is None else value)

    def words(self) -> list[str]:
        """Every text that occurs."""
        return list(self._texts)

    def table(self, called: Mapping[str, str] | None = None) -> pa.Table:
        """The rows in order of time; `called` has other words for some of the texts."""
        found = [(called or {}).get(word, word) for word in self._texts] or [""]
        places = {word: place for place, word in enumerate(dict.fromkeys(found))}
        place_of = np.array([places[word] for word in found], np.int32)
        words = pa.array(list(places), pa.string())
        columns: dict[str, Any] = {}
        for name, kind, column in self._columns:
            values = np.frombuffer(column, column.typecode) if len(column) else np.empty(0, column.typecode)
            if kind == pa.string():
                columns[name] = pa.DictionaryArray.from_arrays(pa.array(place_of[values]), words)
            elif kind == pa.bool_():
                columns[name] = pa.array(values.astype(bool))
            else:
                columns[name] = values
        return table(self.of, len(self), **columns)
