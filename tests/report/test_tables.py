"""Tables: one unit a column, escaped, and Markdown without raw HTML."""

import pandas as pd
import pytest

from cuzklab.report import tables
from cuzklab.report.markdown import Contents, render_markdown
from cuzklab.report.naming import short_size
from tests.report.hostile import EVIL


def test_a_column_has_one_unit_in_its_heading():
    frame = pd.DataFrame(
        {"stage": ["ntt_h", "h_msm"], "total_ns": [8_000_000, 12_500_000], "peak_bytes": [2**30, 13 * 2**30],
         "held_share": [0.25, 1.0], "count": [4, 1234]}
    )  # fmt: skip
    shown = tables.table(frame, "A caption.")
    assert '<th scope="col" class="number">total <span class="unit">ms</span></th>' in shown
    assert '<td class="number">12.5</td>' in shown
    assert 'peak <span class="unit">GiB</span>' in shown
    assert '<td class="number">13</td>' in shown
    assert '<td class="number">25</td>' in shown
    assert '<td class="number">1,234</td>' in shown
    assert "<td>ntt_h</td>" in shown


def test_what_is_missing_is_a_dash_and_long_tables_say_so():
    frame = pd.DataFrame({"freed_ns": pd.array([5, None], dtype="Int64"), "ok": [True, False]})
    shown = tables.table(frame, rows=1)
    assert "The first 1 of 2 rows." in shown
    assert "<td>yes</td>" in shown
    assert '<td class="number">–</td>' in tables.table(frame)


def test_everything_is_escaped_but_what_is_named_markup():
    frame = pd.DataFrame({EVIL: [EVIL], "badge": ["<b>safe</b>"]})
    shown = tables.table(frame, EVIL, markup=("badge",)) + tables.facts([(EVIL, EVIL)]) + tables.folded(EVIL, "")
    assert "<img" not in shown
    assert "</script" not in shown
    assert "><b>safe</b></td>" in shown


def test_numbers_stay_with_their_units():
    assert tables.prose("saves 0.1 % of 16.0 GiB in 3 steps <") == "saves 0.1\u00a0% of 16.0\u00a0GiB in 3 steps &lt;"
    assert tables.prose("with gw 2 and pw 10") == "with gw\u00a02 and pw\u00a010"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567, "1,234,567"), (0.001234, "0.00123"), (-12.34, "−12.3"), (99.96, "100.0"), (3.0, "3")],
)
def test_numbers_have_three_digits(value, text):
    assert tables.number(value) == text


def test_markdown_gathers_headings_and_shows_html_as_text():
    contents = Contents()
    text = "# The title\n\n## One & two\n\n## One & two\n\n" + EVIL + " [x](javascript:alert(1))"
    shown = render_markdown(text, contents)
    assert contents.title == "The title"
    assert [(entry.level, entry.anchor, entry.text) for entry in contents.entries] == [
        (2, "one-two", "One & two"), (2, "one-two-2", "One & two"),
    ]  # fmt: skip
    assert "The title" not in shown
    assert "<img" not in shown
    assert '<a href="javascript' not in shown


def test_sizes_lose_decimals_that_say_nothing():
    assert [short_size(size) for size in (16 << 30, 4 << 20, 13 * 2**30 + 2**29)] == ["16 GiB", "4 MiB", "13.5 GiB"]


def test_a_table_with_sentences_names_its_columns_in_every_cell_for_phones():
    sentence = "It runs out of device memory within 21 steps, which a check of every schedule has proved."
    frame = pd.DataFrame({"design": ["phase10"], "what": [sentence], "took_s": [3.2]})
    shown = tables.table(frame, headings={"took": "took"})
    assert shown.startswith('<div class="cz-table wordy">')
    assert '<td data-label="design">phase10</td>' in shown
    assert f'<td class="sentence" data-label="what">{sentence[:2]}' in shown
    assert '<td class="number" data-label="took s">3.20</td>' in shown
    plain = tables.table(frame[["design", "took_s"]])
    assert plain.startswith('<div class="cz-table"><table>')
    assert "data-label" not in plain


def test_headings_of_a_hostile_trace_stay_text_in_labels():
    shown = tables.table(pd.DataFrame({EVIL: ["x" * 60]}))
    assert "<img" not in shown
    assert shown.count('"') % 2 == 0
