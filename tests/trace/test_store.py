"""Runs are written whole or not at all, and read back as they were."""

import json

import pytest

from cuzklab.trace import LockUse, Recorder, RunInfo, Span, VramEvent, load_run, write_run
from cuzklab.trace.schema import TABLES, arrow_schema
from cuzklab.trace.store import RunError, list_runs


@pytest.fixture
def recorder():
    recorder = Recorder(clock=lambda: 0)
    recorder.add(Span(20, 30, "ntt_h", "gpu", worker="w1"))
    recorder.add(Span(10, 2**62 + 1, "prep_msm", "cpu", worker="w0"))
    recorder.add(LockUse("gpu0.lock", 5, None, None))
    recorder.add(LockUse("gpu0.lock", 1, 2**62 + 1, 2**62 + 3))
    return recorder


def test_a_run_is_read_back_in_order_of_time(tmp_path, recorder):
    run = write_run(tmp_path / "run", RunInfo("live", "a test", policy="phase9"), recorder, not_captured=("kernels",))
    again = load_run(run.path)
    assert again.info.policy == "phase9"
    assert list(again.table("spans")["name"]) == ["prep_msm", "ntt_h"]
    assert again.table("spans")["end"].iloc[0] == 2**62 + 1
    # Nullable nanoseconds do not pass through floats.
    assert list(again.table("locks")["acquired"].dropna()) == [2**62 + 1]
    assert again.info.availability["spans"] == {"state": "present", "rows": 2}
    assert again.info.availability["vram"] == {"state": "empty", "rows": 0}
    assert again.info.availability["kernels"] == {"state": "not captured", "rows": 0}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_rows_has_its_columns(tmp_path, name):
    run = write_run(tmp_path / "run", RunInfo("live", "empty"), Recorder())
    assert list(run.table(name).columns) == arrow_schema(name).names
    assert run.table(name).empty


def test_an_interrupted_write_leaves_nothing(tmp_path, recorder, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("cuzklab.trace.store.json.dumps", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_run(tmp_path / "run", RunInfo("live", "a test"), recorder)
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_of_the_same_name_gets_a_number(tmp_path, recorder):
    info = RunInfo("live", "a test")
    assert [write_run(tmp_path / "run", info, recorder).name for _ in range(3)] == ["run", "run-2", "run-3"]
    assert {run.name for run in list_runs(tmp_path)} == {"run", "run-2", "run-3"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"origin": "live"}', "damaged"),
        ('{"origin": "dreamt", "title": "x"}', "damaged"),
        ('{"origin": "live", "title": "x", "format_version": 99}', "later cuzklab"),
    ],
)
def test_a_damaged_description_is_refused_on_one_line(tmp_path, text, message):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=message):
        load_run(tmp_path)


def test_a_damaged_table_is_refused_by_name(tmp_path, recorder):
    run = write_run(tmp_path / "run", RunInfo("live", "a test"), recorder)
    (run.path / "spans.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(RunError, match=r"spans\.parquet: not a readable table"):
        load_run(run.path).table("spans")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="not a run"):
        load_run(tmp_path)


def test_what_is_written_says_where_and_with_what(tmp_path, recorder):
    run = write_run(tmp_path / "run", RunInfo("live", "a test"), recorder)
    record = json.loads((run.path / "run.json").read_text())
    assert record["versions"]["python"]
    assert record["machine"]["cores"] >= 1
    assert record["created"].endswith("+00:00")


def test_rows_know_their_table():
    recorder = Recorder()
    recorder.add(VramEvent(1, "alloc", "d_a", 4, 0, 4, 16))
    assert recorder.table("vram").to_pylist()[0]["buffer"] == "d_a"


def test_a_run_of_before_a_column_came_has_its_default(tmp_path, recorder):
    import pyarrow.parquet as pq

    run = write_run(tmp_path / "run", RunInfo("live", "older"), recorder)
    file = run.path / "spans.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["domain", "style", "open"]), file)
    spans = load_run(run.path).table("spans")
    assert list(spans.columns) == arrow_schema("spans").names
    assert spans[["domain", "open"]].values.tolist() == [["", False]] * 2
    pq.write_table(pq.read_table(file).drop_columns(["name"]), file)
    with pytest.raises(RunError, match="column name is missing"):
        load_run(run.path).table("spans")


def test_columns_are_stored_like_rows(tmp_path, recorder):
    from cuzklab.trace import Columns

    tables = {name: recorder.table(name) for name in ("spans", "locks")}
    run = write_run(tmp_path / "run", RunInfo("imported", "columns"), Columns(tables), reasons={"vram": "it was off"})
    assert run.table("spans").equals(write_run(tmp_path / "rows", RunInfo("live", "x"), recorder).table("spans"))
    assert run.availability["vram"] == {"state": "empty", "rows": 0, "reason": "it was off"}
