"""Exports of type `parquetdir`: a folder with a Parquet file a table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cuzklab.errors import BadInput
from cuzklab.ingest.nsys.export import MISSING

_ROWS_AT_ONCE = 100_000
# Repetition packs well, but no table of events packs better than this.
_MOST_ROWS_A_BYTE = 64


class ParquetSource:
    """A folder of Parquet files as a source of an export.

    Raises
    ------
    BadInput
        A file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, pq.ParquetFile] = {}
        for file in sorted(path.glob("*.parquet")):
            with self._damage(file.name):
                opened = pq.ParquetFile(file)
                if opened.metadata.num_rows > _MOST_ROWS_A_BYTE * file.stat().st_size:
                    raise BadInput(f"{file}: says that it has {opened.metadata.num_rows:,} rows, for which it is too"
                                   " small; export it again")  # fmt: skip
                self._files[file.stem] = opened
        self.tables = {name: tuple(file.schema_arrow.names) for name, file in self._files.items()}

    def integers(self, table: str, columns: Sequence[str]) -> Iterator[list[NDArray[np.int64]]]:
        with self._damage(f"{table}.parquet"):
            for batch in self._files[table].iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
                yield [_integers(batch.column(column)) for column in columns]

    def texts(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        with self._damage(f"{table}.parquet"):
            for batch in self._files[table].iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
                yield from zip(*(_raw(batch.column(column)) for column in columns), strict=True)

    @contextmanager
    def _damage(self, where: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
            raise BadInput(
                f"{self.path}: {where}: {' '.join(str(error).split())[:300]}; write it again with"
                " `nsys export --type parquetdir --force-overwrite true`"
            ) from error

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _integers(values: pa.Array) -> NDArray[np.int64]:
    """Numbers as int64, null as `MISSING`; what is no number is 0, as in SQLite."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        numbers = np.zeros(len(values), np.int64)
    elif pa.types.is_uint64(values.type):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False).view(np.int64)
    else:
        filled = values.fill_null(0).to_numpy(zero_copy_only=False)
        if filled.dtype.kind == "f":
            filled = np.nan_to_num(filled, nan=0.0, posinf=0.0, neginf=0.0).clip(-(2.0**62), 2.0**62)
        numbers = filled.astype(np.int64)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, MISSING, numbers)


def _raw(values: pa.Array) -> list[Any]:
    """Python values; text as bytes, so that text which is not UTF-8 passes."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
    return values.to_pylist()
