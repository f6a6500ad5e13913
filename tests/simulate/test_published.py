"""Published rows: read strictly, compared within their kind."""

import pytest

from cuzklab import resources
from cuzklab.errors import BadInput
from cuzklab.simulate import compare_with_published, load_published

FILE = resources.folder("lab") / "published" / "phases.toml"


def test_the_shipped_rows_carry_kind_and_conditions():
    rows = load_published()
    steady = [row for row in rows if row.metric and row.metric.kind == "steady_interval"]
    assert [(row.policy, row.metric.value, row.assumed) for row in steady] == [("phase8", 37.4, ("j",))]
    assert [row.outcome for row in rows if row.metric is None] == ["host_oom", "device_oom"]
    assert all(row.metric is None or row.metric.obtained == "published" for row in rows)


def test_comparison_is_within_a_kind_and_by_outcome():
    rows = [row for row in load_published() if row.conditions["c"] <= 5 and row.conditions["pw"] == 10]
    found = {
        (line["policy"], line["kind"]): line
        for line in map(lambda c: c.to_json(), compare_with_published(tuple(rows), (0, 1)))
    }
    assert set(found) == {
        ("phase8", "batch_average"), ("phase8", "steady_interval"), ("phase9", "batch_average"),
        ("phase10_ordered", "outcome"),
    }  # fmt: skip
    oom = found["phase10_ordered", "outcome"]
    assert (oom["published"], oom["simulated"], oom["same_outcome"], oom["error"]) == (
        "device_oom", "device_oom", True, None,
    )  # fmt: skip
    for line in found.values():
        if line["kind"] != "outcome":
            assert line["lowest"] <= line["simulated"] <= line["highest"]
            assert line["error"] == pytest.approx(line["simulated"] / line["published"] - 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('hardware = "rtx5070ti-7995wx"\n', "", "field hardware is missing"),
        ('title = "', 'colour = 1\ntitle = "', "unknown field colour"),
        ('outcome = "host_oom"', 'outcome = "ok"', "row 13: field outcome must be one of"),
        ('kind = "steady_interval"', 'kind = "seconds"', "row 5: field kind must be one of"),
        ("value = 37.4", 'value = "37.4"', "row 5: field value must be a number"),
        ("value = 37.4", "value = -1", "row 5: field value must be a number above 0"),
        ("c = 30, j = 20", "c = 30", "row 13: field conditions must state c, j, pw, gw"),
        ("c = 30, j = 20", "c = 30, j = 0", "row 13: field conditions.j must be"),
        ('assumed = ["j"]', 'assumed = ["x"]', "row 5: field assumed"),
        ('outcome = "device_oom"', 'outcome = "device_oom"\nextra = 1', "row 14: unknown field extra"),
        ('policy = "phase10_ordered"', 'policy = "phase99"', "row 14: field policy must be one of"),
    ],
)
def test_bad_rows_are_refused_by_file_row_and_field(tmp_path, old, new, message):
    text = FILE.read_text()
    assert text.count(old) == 1
    file = tmp_path / "rows.toml"
    file.write_text(text.replace(old, new))
    with pytest.raises(BadInput) as raised:
        load_published(file)
    assert str(file) in str(raised.value) and message in str(raised.value)
