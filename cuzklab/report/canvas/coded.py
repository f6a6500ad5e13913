"""Columns of text as numbers: a million names are compared once, not in every step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class Coded:
    """A column of text: `texts` once each, and the place of each row's.

    Attributes
    ----------
    codes : ndarray of int64, shape (n,)
    texts : list of str
    """

    codes: NDArray[np.int64]
    texts: list[str]


def coded(values: pd.Series) -> Coded:
    """A column of text as codes; a missing name is empty."""
    codes, texts = pd.factorize(values, use_na_sentinel=False)
    return Coded(codes.astype(np.int64), ["" if pd.isna(text) else str(text) for text in texts])


def together(*columns: Coded) -> tuple[NDArray[np.int64], list[tuple[str, ...]]]:
    """Which combination of texts each row has: its code, and the combinations in the order of their appearance."""
    keys = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        keys = keys * max(len(column.texts), 1) + column.codes
    codes, found = pd.factorize(keys)
    places, rest = [], found.astype(np.int64)
    for column in reversed(columns):
        places.append(rest % max(len(column.texts), 1))
        rest = rest // max(len(column.texts), 1)
    texts = [tuple(column.texts[place] for column, place in zip(columns, row, strict=True))
             for row in zip(*(part.tolist() for part in reversed(places)), strict=True)]  # fmt: skip
    return codes.astype(np.int64), texts


def shared(columns: Sequence[Coded]) -> tuple[list[str], list[NDArray[np.int64]]]:
    """The texts of some columns once, and the place of each row's among them."""
    texts = list(dict.fromkeys(text for column in columns for text in column.texts))
    place = {text: number for number, text in enumerate(texts)}
    recoded = [np.array([place[text] for text in column.texts], dtype=np.int64) for column in columns]
    return texts, [
        places[column.codes] if len(column.codes) else column.codes
        for places, column in zip(recoded, columns, strict=True)
    ]
