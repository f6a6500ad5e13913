"""Every shipped report made in small, and each page looked at in a real browser with the network cut. Minutes."""

import html
import re

import pytest

from cuzklab.experiment import sources_digest
from cuzklab.report import many, notebooks
from tests.report.test_report import looked_at

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("all")
    reports = many.make_all(out, quick=True, salt=sources_digest())
    return out, {one.name: one for one in reports}


def test_every_report_is_made(made):
    out, reports = made
    assert set(reports) == set(notebooks())
    assert {name: one.sentence for name, one in reports.items() if one.failed} == {}
    assert reports["phase10"].decision == "revert"
    assert "runs out of device memory" in reports["phase10"].sentence
    page = (out / many.INDEX).read_text()
    assert all(f'href="{one.html}"' in page for one in reports.values())


@pytest.mark.parametrize("name", sorted(notebooks()))
def test_a_browser_shows_every_page_whole(made, name):
    out, reports = made
    page = out / reports[name].html
    text = page.read_text()
    assert len(text) < 6 << 20
    assert "default-src 'none'" in html.unescape(text)
    assert len(re.findall(r"<table", text)) >= text.count('class="plot"')
    for view in looked_at(page):
        assert view["requests"] == []
        assert view["errors"] == []
        assert view["expected"] == len(view["figures"])
        assert [one for one in view["figures"] if not one["marks"] or one["width"] < 250 or one["cut"]] == []
        assert view["overflowing"] == []
        assert view["pageWidth"] <= view["viewWidth"]
