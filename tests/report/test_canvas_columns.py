"""The timeline's binary: what is written is what Python and the browser read, and damage is told."""

import base64

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.errors import BadInput
from cuzklab.report.canvas.columns import decode, encode
from tests.workbench.browser import in_node

INTEGERS = st.lists(st.integers(0, 2**53), max_size=40)
FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20)


@st.composite
def segmented(draw):
    """Values that do not decrease inside segments, and the segments, some of them empty."""
    parts = draw(st.lists(st.lists(st.integers(0, 2**45), max_size=8).map(sorted), max_size=5))
    counts = np.array([len(part) for part in parts], dtype=np.int64)
    values = np.array([value for part in parts for value in part], dtype=np.int64)
    return {"time": values, "part_first": np.cumsum(counts) - counts, "part_count": counts}


@given(INTEGERS, FLOATS, segmented(), st.text(max_size=30))
@settings(max_examples=60)
def test_what_is_written_is_read(integers, floats, parts, text):
    columns = {"whole": np.array(integers, dtype=np.int64), "real": np.array(floats, dtype=float), **parts}
    header, read = decode(encode({"title": text}, columns, {"time": "part"}))
    assert header["title"] == text
    assert list(read) == list(columns)
    for name, values in columns.items():
        assert read[name].tolist() == values.tolist()


def test_the_browser_reads_the_same():
    columns = {
        "small": np.array([0, 255]), "middle": np.array([65535, 1, 2]), "large": np.array([2**32 - 1]),
        "huge": np.array([2**53, 2**32]), "real": np.array([0.5, -1e300]), "none": np.zeros(0, dtype=np.int64),
        "time": np.array([5, 2**40, 3, 3]), "part_first": np.array([0, 2, 2]), "part_count": np.array([2, 0, 2]),
    }  # fmt: skip
    packed = base64.b64encode(encode({"title": "</script>\u202eß"}, columns, {"time": "part"})).decode()
    script = """
    const bytes = await inflate(Uint8Array.from(atob(given), (letter) => letter.charCodeAt(0)));
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);  // as a view into a larger message, which is not aligned
    return [bytes, shifted.subarray(3)].map((one) => {
      const { header, columns } = decode(one);
      return [header.title, Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, [...values]]))];
    });
    """
    for title, read in in_node(("inflate", "decode"), script, packed):
        assert title == "</script>\u202eß"
        assert read == {name: values.tolist() for name, values in columns.items()}


@pytest.mark.parametrize("values", [[-1], [2**53 + 1], [float("nan")], [float("inf")]])
def test_what_cannot_be_read_exactly_is_not_written(values):
    with pytest.raises(ValueError, match="column x"):
        encode({}, {"x": np.array(values)}, {})


def test_a_column_that_goes_back_is_not_written():
    columns = {"x": np.array([3, 2]), "row_first": np.array([0]), "row_count": np.array([2])}
    with pytest.raises(ValueError, match="decreases"):
        encode({}, columns, {"x": "row"})


@given(st.data())
@settings(max_examples=60)
def test_damage_is_one_line(data):
    packed = bytearray(encode({"title": "x"}, {"a": np.arange(300)}, {}))
    if data.draw(st.booleans()):
        packed = packed[: data.draw(st.integers(0, len(packed) - 1))]
    else:
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        _, columns = decode(bytes(packed))
    except BadInput as error:
        assert "\n" not in str(error)
    else:  # what gzip does not check: its own header
        assert columns["a"].tolist() == list(range(300))
