"""Captures whose truth is known, and two exports of one capture."""

import shutil
import sqlite3

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cuzklab.analysis import capture, locks, projection, vram
from cuzklab.ingest import Options, import_file
from cuzklab.trace.schema import TABLES
from tests.ingest.test_oracle import CAPTURES

H200 = "h200_three_workers_one_lock_2025.3"


def total(rows: pd.DataFrame) -> int:
    return int((rows["end"] - rows["start"]).sum())


def test_three_workers_one_lock(captured):
    run = captured(H200)
    spans, uses = run.table("spans"), run.table("locks")
    waits, holds = (spans[spans["name"] == f"lock:gpu {what}"] for what in ("wait", "hold"))
    assert (len(waits), total(waits)) == (9, 182_825_881)
    assert (len(holds), total(holds)) == (9, 249_936_889)
    assert (len(uses), set(uses["lock"]), uses["thread"].nunique()) == (9, {"gpu"}, 3)
    # The table's waits are the ranges; its holds begin when the wait ends.
    assert int((uses["acquired"] - uses["requested"]).sum()) == total(waits)
    between = int(holds["start"].sum()) - int(uses["acquired"].sum())
    assert int((uses["released"] - uses["acquired"]).sum()) == total(holds) + between
    assert 0 < between < 9 * 20_000
    assert list(uses["released"].sort_values()) == list(holds["end"].sort_values())
    waited = run.table("waits")
    assert total(waited[(waited["kind"] == "lock") & (waited["on"] == "gpu")]) == total(waits)
    # Each of the nine stages lies inside the hold of its thread.
    stages = spans[spans["name"] == "ntt_h"]
    assert (len(stages), set(stages["parent"])) == (9, {"lock:gpu hold"})


def test_who_held_the_lock_when_it_was_asked_for(captured):
    uses = captured(H200).table("locks")
    found = uses[uses["holder_at_request"] != ""]
    assert list(zip(found["thread"], found["holder_at_request"], strict=True)) == [
        ("python3 507", "python3 506"),
        ("python3 505", "python3 506"),
    ]
    charged = locks.waited_for(captured(H200))
    assert charged.loc[0, ["victim", "holder"]].tolist() == ["python3 507", "python3 506"]


def test_kernels_belong_to_their_thread_stream_and_stage(captured):
    kernels = captured(H200).table("kernels")
    assert (len(kernels), set(kernels["stream"]), kernels["worker"].nunique()) == (12, {"13", "14", "15"}, 3)
    assert (kernels["span"] == "ntt_h").sum() == 9
    calls = captured(H200).table("api_calls")
    launched = calls[calls["correlation"].isin(kernels["correlation"])]
    assert sorted(launched["start"]) == sorted(kernels["launch"])


def test_memory_events_of_the_h200(captured):
    run = captured(H200)
    steps = vram.steps(run)
    assert (steps["op"] == "alloc").sum() == 24
    assert steps["limit_bytes"].unique().tolist() == [150_109_880_320]
    big = steps[steps["bytes"] == 4096]
    assert big["worker"].tolist() == ["python3 505", "python3 506", "python3 507"]
    # Seven static symbols appear again at the same addresses: their modules were unloaded unseen.
    assert (steps["op"] == "free").sum() == 7
    assert any("still live" in note for note in run.info.notes)
    single = captured("h200_cupy_vram_2025.3")
    assert vram.peaks(single)["live_bytes"].tolist() == [4_194_304 + 5 + 2 * 4]


@pytest.mark.parametrize("schema", ["3.0.0", "3.7.2"])
def test_pthread_locks(captured, schema):
    run = captured(f"local_pthread_locks.schema-{schema}")
    calls = run.table("api_calls")
    taken = calls[calls["name"] == "pthread_mutex_lock"]
    assert (len(taken), total(taken)) == (25, 228_244_488)
    uses = locks.uses(run)
    assert (len(uses), uses["wait_ns"].sum(), uses["worker"].nunique()) == (40, 232_365_101, 4)
    # Every hold is of 2 ms, and more on a busy machine; one thread holds at a time.
    assert (uses["hold_ns"] >= 2_000_000).all()
    found = capture.wait_times(run)
    assert found.loc[found["on"] == "pthread_mutex_lock", "total_ns"].tolist() == [228_244_488]


@pytest.mark.parametrize("schema", ["3.0.0", "3.7.2"])
def test_python_locks(captured, schema):
    run = captured(f"local_python_locks.schema-{schema}")
    spans = run.table("spans")
    assert spans.groupby("style").size().to_dict() == {"push_pop": 54, "start_end": 18, "mark": 7}
    assert set(spans["domain"]) == {"cuzk"}
    assert spans["thread"].nunique() == 3
    # Nothing follows the convention, so nothing is made a lock; the record says how to change that.
    assert run.availability["locks"]["state"] == "not captured"
    assert "lock:NAME wait" in run.availability["locks"]["reason"]


@pytest.mark.parametrize("capture_name", ["local_pthread_locks", "local_python_locks"])
def test_two_schemas_give_one_trace(captured, capture_name):
    old, new = (captured(f"{capture_name}.schema-{schema}") for schema in ("3.0.0", "3.7.2"))
    for table in TABLES:
        pd.testing.assert_frame_equal(old.table(table), new.table(table))
    assert old.info.notes == new.info.notes


@pytest.mark.parametrize("name", CAPTURES)
def test_parquet_gives_the_same_run(captured, shared_data, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    connection = sqlite3.connect(f"file:{shared_data}/nsys/{name}.sqlite?mode=ro&immutable=1", uri=True)
    connection.text_factory = bytes
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (raw,) in tables:
        table = raw.decode()
        cursor = connection.execute(f'SELECT * FROM "{table}"')
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        columns = {column: [row[place] for row in rows] for place, column in enumerate(names)}
        pq.write_table(pa.table({column: _array(values) for column, values in columns.items()}),
                       folder / f"{table}.parquet")  # fmt: skip
    connection.close()
    from tests.ingest.conftest import LOCKS

    run = import_file(folder, tmp_path / "run", Options(locks=LOCKS.get(name, {})))
    for table in TABLES:
        pd.testing.assert_frame_equal(run.table(table), captured(name).table(table))
    assert run.availability == captured(name).availability
    shutil.rmtree(folder)


def _array(values: list[object]) -> pa.Array:
    """Values of a column of SQLite, which may be of any type in any row, as a column of one type."""
    present = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in present):
        return pa.array(values, pa.int64())
    if all(isinstance(value, int | float) for value in present):
        return pa.array(values, pa.float64())
    return pa.array([value if value is None or isinstance(value, bytes) else str(value).encode() for value in values],
                    pa.binary())  # fmt: skip


@pytest.mark.parametrize("name", CAPTURES)
def test_nothing_is_written_beside_a_capture(captured, shared_data, name):
    captured(name)
    folder = shared_data / "nsys"
    assert not [file for file in folder.iterdir() if file.suffix in (".sqlite-wal", ".sqlite-shm", ".sqlite-journal")]


def test_the_order_of_projection_is_by_start(captured):
    ours = projection.projected(captured("2025.3_cupy_power_iteration_nvtx"))
    assert ours["start_ns"].is_monotonic_increasing
    assert (ours["busy_ns"] + ours["gap_ns"] == ours["span_ns"]).all()
    assert (ours["busy_ns"] <= ours["work_ns"]).all()
