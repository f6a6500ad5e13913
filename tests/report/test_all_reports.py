"""Every shipped report made in small, and each page looked at in a real browser with the network cut.

All are made once, by two processes, and shown once, by one browser. The time limits are those of a heavily loaded
machine: what is judged is what the pages show.
"""

import html
import re

import pytest

from cuzklab.experiment import sources_digest
from cuzklab.report import many, notebooks
from tests.report.test_report import cut_on_paper, looked_at

LIMIT_S = 1500

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * LIMIT_S)]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("all")
    reports = many.make_all(out, quick=True, processes=2, deadline_s=LIMIT_S, salt=sources_digest())
    print("\n".join(f"{one.seconds:6.1f} s  {one.name}" for one in reports))
    return out, {one.name: one for one in reports}


@pytest.fixture(scope="session")
def seen(made):
    """The views of each page that was made."""
    out, reports = made
    pages = {str(out / one.html): name for name, one in reports.items() if one.html}
    views = {name: [] for name in reports} | {many.INDEX: []}
    for view in looked_at(*pages, out / many.INDEX, dark=False, timeout_s=LIMIT_S):
        views[pages.get(view["file"], many.INDEX)].append(view)
    return views


def test_every_report_is_made(made):
    out, reports = made
    assert set(reports) == set(notebooks())
    assert {name: one.sentence for name, one in reports.items() if one.failed} == {}
    assert reports["phase10"].decision == "revert"
    assert "runs out of device memory" in reports["phase10"].sentence
    page = (out / many.INDEX).read_text()
    assert all(f'href="{one.html}"' in page for one in reports.values())


@pytest.mark.parametrize("name", sorted(notebooks()))
def test_a_page_carries_everything_and_a_table_for_each_figure(made, name):
    out, reports = made
    text = (out / reports[name].html).read_text()
    assert len(text) < 6 << 20
    assert "default-src 'none'" in html.unescape(text)
    assert len(re.findall(r"<table", text)) >= text.count('class="plot"')


@pytest.mark.parametrize("name", [*sorted(notebooks()), many.INDEX])
def test_a_browser_shows_every_page_whole(seen, name):
    *screens, paper = seen[name]
    assert [view["view"] for view in (*screens, paper)] == ["desktop", "phone", "print"]
    assert cut_on_paper(paper) == []
    for view in screens:
        assert view["unreachable"] == []
        assert view["requests"] == []
        assert view["errors"] == []
        assert view["expected"] == len(view["figures"])
        assert [one for one in view["figures"] if not one["marks"] or one["width"] < 250 or one["cut"]] == []
        assert view["overflowing"] == []
        assert view["pageWidth"] <= view["viewWidth"]
