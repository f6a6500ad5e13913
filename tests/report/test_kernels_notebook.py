"""The kernels' notebook on a machine of any kind, from its parameters to its record."""

import json

import nbformat
import pytest

from cuzklab.report import write_report


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_notebook_measures_draws_and_tries_a_change(tmp_path):
    given = {"backend": "host", "sizes": "6,8", "kernels": "ntt,msm_g1", "repeats": "1", "trial_log2_size": "8"}
    report = write_report("kernels", tmp_path / "out", given)
    record = json.loads(report.verdict_file.read_text())
    assert record["verdict"]["decision"] == "measured"
    assert [finding["claim"].split(" of ")[0] for finding in record["findings"]] == ["ntt", "msm_g1"]
    assert len(record["roofline"]["rows"]) == 4
    assert all(row["roof_share"] > 0 for row in record["roofline"]["rows"])
    cells = [cell for cell in nbformat.read(report.notebook, as_version=4).cells if cell.cell_type == "code"]
    kinds = [set(output.get("data", {})) for cell in cells for output in cell.outputs]
    assert any("application/vnd.plotly.v1+json" in kind for kind in kinds)
    text = report.html.read_text()
    assert "Same result; the change is" in text and "as shipped" in text
