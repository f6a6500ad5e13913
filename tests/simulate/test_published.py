"""Published rows: read strictly, compared within their kind."""

import pytest

from cuzklab import resources
from cuzklab.errors import BadInput
from cuzklab.simulate import compare_with_published, load_published
from cuzklab.units import GiB

FILE = resources.folder("lab") / "published" / "phases.toml"


def test_the_shipped_rows_carry_kind_and_conditions():
    rows = load_published()
    steady = [row for row in rows if row.metric and row.metric.kind == "steady_interval"]
    assert [(row.policy, row.metric.value, row.assumed) for row in steady] == [("phase8", 37.4, ("j",))]
    assert [(row.policy, row.outcome) for row in rows if row.metric is None] == [
        ("phase9", "host_oom"), ("phase10_ordered", "device_oom"), ("phase11", "host_oom"),
    ]  # fmt: skip
    assert all(row.metric is None or row.metric.obtained == "published" for row in rows)
    peaks = {row.conditions["pw"]: row.metric.value / GiB for row in rows if row.figure == "peak_host_bytes"}
    assert peaks == {1: 104, 2: 110, 5: 170, 10: 321, 12: 400}
    assert [row.policy for row in rows if row.not_simulated] == ["phase0"]


def test_at_most_half_of_the_rows_are_fitted_and_whole_phases_are_left_out():
    rows = [row for row in load_published() if not row.not_simulated]
    fitted = [row for row in rows if row.fit]
    assert len(fitted) <= len(rows) / 2
    assert {row.policy for row in rows} - {row.policy for row in fitted} == {"phase7", "phase10_ordered"}


def test_comparison_is_within_a_kind_and_by_outcome():
    rows = [row for row in load_published() if row.conditions["c"] <= 5 and row.conditions["pw"] == 10]
    found = {
        (line["policy"], line["kind"], line["label"]): line
        for line in map(lambda c: c.to_json(), compare_with_published(tuple(rows), (0, 1)))
    }
    assert set(found) == {
        ("phase0", "batch_average", ""), ("phase8", "batch_average", ""), ("phase8", "steady_interval", ""),
        ("phase8", "duration", "gpu_total"), ("phase9", "batch_average", ""), ("phase9", "prove_time", ""),
        ("phase10_ordered", "outcome", ""),
    }  # fmt: skip
    oom = found["phase10_ordered", "outcome", ""]
    assert (oom["published"], oom["error"], oom["use"]) == ("device_oom", None, "prediction")
    phase0 = found.pop(("phase0", "batch_average", ""))
    assert (phase0["use"], phase0["simulated"], phase0["error"]) == ("not simulated", None, None)
    for line in found.values():
        if line["kind"] != "outcome":
            assert line["lowest"] <= line["simulated"] <= line["highest"]
            assert line["error"] == pytest.approx(line["simulated"] / line["published"] - 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('hardware = "rtx5070ti-7995wx"\n', "", "field hardware is missing"),
        ('title = "', 'colour = 1\ntitle = "', "unknown field colour"),
        ('kind = "steady_interval"', 'kind = "seconds"', "row 7: field kind must be one of"),
        (
            "value = 37.4\nconditions = { c = 5",
            'value = "37.4"\nconditions = { c = 5',
            "row 7: field value must be a number",
        ),
        (
            "value = 37.4\nconditions = { c = 5",
            "value = -1\nconditions = { c = 5",
            "row 7: field value must be a number above 0",
        ),
        ('value = "321GiB"', 'value = "321 gigs"', "field value: '321 gigs' is not a size"),
        ("c = 30, j = 20", "c = 30", "row 18: field conditions must state c, j, pw, gw"),
        ("c = 30, j = 20", "c = 30, j = 0", "row 18: field conditions.j must be"),
        ('assumed = ["j"]', 'assumed = ["x"]', "row 7: field assumed"),
        ('outcome = "device_oom"', 'outcome = "ok"', "row 19: field outcome must be one of"),
        ('outcome = "device_oom"', 'outcome = "device_oom"\nextra = 1', "row 19: unknown field extra"),
        ('outcome = "device_oom"', 'outcome = "device_oom"\nfit = true', "row 19: field fit"),
        ('policy = "phase10_ordered"', 'policy = "phase99"', "row 19: field policy must be one of"),
        ("value = 3.746", 'value = 3.746\nvalue2 = "x"', "row 8: unknown field value2"),
        ('kind = "share"\nas = "gpu_total"', 'kind = "share"\nas = "x"', "row 15: field as must be gpu_total"),
        (
            'g2_threads = 0, throttle = false }\n\n[[row]]\npolicy = "phase11"\nkind = "batch_average"\nvalue = 37.9',
            'colour = 0, throttle = false }\n\n[[row]]\npolicy = "phase11"\nkind = "batch_average"\nvalue = 37.9',
            "row 20: field options: policy phase11 has no option 'colour'",
        ),
        ('not_simulated = "', 'not_simulated = 1 # "', "row 1: field not_simulated must say why"),
        (
            'policy = "phase0"\n',
            'policy = "evil.py"\noptions = { x = 1 }\n',
            "row 1: field options: policy evil.py does not come with cuzklab",
        ),
    ],
)
def test_bad_rows_are_refused_by_file_row_and_field(tmp_path, monkeypatch, old, new, message):
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    text = FILE.read_text()
    assert text.count(old) == 1
    file = tmp_path / "rows.toml"
    file.write_text(text.replace(old, new))
    with pytest.raises(BadInput) as raised:
        load_published(file)
    assert str(file) in str(raised.value) and message in str(raised.value)
