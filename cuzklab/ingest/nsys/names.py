"""Numbers of an export as texts: its string table, its enumerations."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.export import Export
from cuzklab.ingest.privacy import Texts


class Names:
    """The string table of an export.

    Only the strings that something names are ever decoded: the table also holds what the program printed.
    """

    def __init__(self, export: Export, texts: Texts) -> None:
        self._raw = {number: value for number, value in export.texts("StringIds", "id", "value")}
        self._texts = texts
        self._known: dict[int, str] = {}

    def one(self, number: int) -> str:
        """A string by its number; empty where there is none."""
        if number not in self._known:
            self._known[number] = self._texts(self._raw.get(number))
        return self._known[number]

    def column(self, numbers: NDArray[np.int64], unknown: str = "") -> pa.DictionaryArray:
        """Strings of many numbers; `unknown` where there is none."""
        found, codes = np.unique(numbers, return_inverse=True)
        return coded(codes, [self.one(number) or unknown for number in found.tolist()])


def coded(codes: NDArray[np.int64], words: Sequence[str]) -> pa.DictionaryArray:
    """Words by their place in a list, as a column that keeps each once."""
    distinct = {word: place for place, word in reversed(list(enumerate(dict.fromkeys(words))))}
    places = np.array([distinct[word] for word in words] or [0], np.int32)
    values = pa.array(list(dict.fromkeys(words)) or [""], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places[codes], pa.int32()), values)


def enumeration(export: Export, table: str, fallback: Mapping[int, str]) -> dict[int, str]:
    """Names of an enumeration's values: as the export states them, else as they have been."""
    stated = {
        number: name.decode("utf-8", "replace")
        for number, name in export.texts(table, "id", "name")
        if isinstance(number, int) and isinstance(name, bytes)
    }
    return {**fallback, **stated}
