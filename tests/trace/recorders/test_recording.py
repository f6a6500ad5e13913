"""What a recording keeps, loses and says; streams on disk, crashes, forks; numbers at scale."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cuzklab.errors import BadInput
from cuzklab.trace import Counter, RunInfo, load_run
from cuzklab.trace.recorders import Lock, Recording, VramTracer, recover
from cuzklab.trace.recorders.spans import span_of
from tests.conftest import ROOT

CRASHES = """
import os, sys
from cuzklab.trace.recorders import Lock, owner, record, span
recording = record(spill=sys.argv[1])
lock = Lock("gpu0.lock")
with owner("w0", "p0.0"):
    for _ in range(1000):
        with span("ntt_h", "gpu", 0), lock:
            pass
span("never ends").__enter__()
recording.drain()
os._exit(9)
"""


@pytest.fixture(scope="module")
def crashed_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crashed") / "spill"
    done = subprocess.run([sys.executable, "-c", CRASHES, str(folder)], cwd=ROOT, timeout=60)
    assert done.returncode == 9
    return folder


@pytest.fixture
def crashed(crashed_once, tmp_path):
    """A folder of its own with what a crashed program left."""
    return Path(shutil.copytree(crashed_once, tmp_path / "spill"))


def test_a_run_is_written_with_what_was_recorded(tmp_path):
    with Recording() as recording:
        with span_of(recording)("it"), Lock("L", recording=recording):
            pass
        recording.add(Counter(1, "queue", 2.0))
        recording.note("something to know")
    run = recording.write(tmp_path / "run", RunInfo("live", "mine", notes=("first",)))
    states = {table: (facts["state"], facts["rows"]) for table, facts in run.availability.items()}
    assert states["spans"] == states["locks"] == states["counters"] == ("present", 1)
    assert states["vram"] == states["waits"] == ("empty", 0)
    assert run.info.notes == ("first", "something to know")
    assert run.table("spans").iloc[0]["name"] == "it"


def test_rows_added_whole_stand_in_order_beside_recorded_ones(clock):
    from cuzklab.trace import Span

    recording = Recording(clock)
    recording.add(Span(3, 900, "added", "cpu"))
    recording.add(Span(1000, 1001, "last", "cpu"))
    with recording, span_of(recording)("recorded"):
        clock.pass_by(10)
    assert [one.name for one in recording.rows["spans"]] == ["recorded", "added", "last"]


@pytest.mark.parametrize("spilled", [False, True])
def test_what_finds_no_room_is_counted(tmp_path, spilled):
    """Memory for 100 events; on disk there is room for all."""
    recording = Recording(max_bytes=100 * 16, spill=tmp_path / "spill" if spilled else None)
    span = span_of(recording)("it")
    with recording:
        for _ in range(80):
            with span:
                pass
    run = recording.write(tmp_path / "run")
    facts = run.availability["spans"]
    if spilled:
        assert facts == {"state": "present", "rows": 80}
        assert not (tmp_path / "spill").exists()
    else:
        assert facts == {"state": "lost", "rows": 50, "lost": 60}
        assert "recording: 60 rows or events of spans found no room and are lost" in run.info.notes


def test_a_full_disk_is_told_and_the_recording_goes_on_in_memory(tmp_path, monkeypatch):
    recording = Recording(spill=tmp_path / "spill")
    span = span_of(recording)("it")
    with recording:
        with span:
            pass
        recording.drain()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(recording._spill._names, "flush", full)
        with span:
            pass
    run = recording.write(tmp_path / "run")
    assert run.availability["spans"] == {"state": "present", "rows": 2}
    assert any("No space left on device" in note for note in run.info.notes)


def test_streamed_and_kept_recordings_make_the_same_tables(tmp_path):
    tables = []
    for spill in (None, tmp_path / "spill"):
        ticks = iter(range(10**6))
        recording = Recording(lambda ticks=ticks: next(ticks), spill=spill)
        span, lock = span_of(recording), Lock("L", recording=recording)
        with recording:
            for number in range(300):
                with span("outer"), lock, span("inner", "gpu", 0):
                    pass
                if number % 7 == 0:
                    recording.drain()
        tables.append([recording.table(name).to_pylist() for name in ("spans", "locks")])
    assert tables[0] == tables[1]
    assert len(tables[0][0]) == 600


def test_a_crash_loses_nothing_that_was_complete(crashed, tmp_path):
    run = recover(crashed, tmp_path / "run")
    assert (run.availability["spans"]["rows"], run.availability["locks"]["rows"]) == (1001, 1000)
    assert run.availability["counters"]["state"] == "lost"
    assert run.info.outcome == "fault"
    spans = run.table("spans")
    assert set(spans[spans["name"] == "ntt_h"]["worker"]) == {"w0"}
    assert load_run(run.path).info.notes[-1] == "recording: 1 spans had not ended"


def test_a_torn_file_gives_its_complete_batches(tmp_path):
    recording = Recording(spill=tmp_path / "spill")
    span = span_of(recording)("it")
    with recording:
        for _ in range(5):
            with span:
                pass
            recording.drain()
    file = tmp_path / "spill" / "events.arrows"
    content = file.read_bytes()
    rows = []
    for size in range(0, len(content), 97):
        file.write_bytes(content[:size])
        rows.append(recover(tmp_path / "spill", tmp_path / f"run{size}").availability["spans"]["rows"])
    assert rows == sorted(rows) and rows[0] == 0 and rows[-1] >= 4


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("recording.json", b"[]"),
        ("recording.json", b"\xff\xfe"),
        ("names.jsonl", b'["threads", 0, "t"]\n'),
        ("names.jsonl", b""),
        ("events.arrows", None),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(crashed, tmp_path, name, content):
    if content is None:
        import pyarrow as pa

        batch = pa.RecordBatch.from_arrays([pa.array([1])], ["time"])
        with pa.OSFile(str(crashed / name), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    else:
        (crashed / name).write_bytes(content)
    with pytest.raises(BadInput) as refused:
        recover(crashed, tmp_path / "run")
    assert "\n" not in str(refused.value) and not (tmp_path / "run").exists()


def test_a_forked_child_records_nothing_and_harms_nothing(tmp_path):
    recording = Recording(spill=tmp_path / "spill")
    span = span_of(recording)("it")
    with recording:
        with span:
            pass
        child = os.fork()
        if not child:
            with span:
                pass
            os._exit(0 if not recording.on else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert len(recording.rows["spans"]) == 1


def test_a_recording_leaves_no_thread(recording):
    recording.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "cuzklab recorder"]


def test_threads_of_one_name_and_reused_identifiers_stay_apart(recording):
    span = span_of(recording)("it")

    def enter():
        span.__enter__()  # never left: the next thread's end must not close it

    for _ in range(3):
        thread = threading.Thread(target=enter, name="same")
        thread.start()
        thread.join()
    thread = threading.Thread(target=lambda: span.__exit__(None, None, None), name="same")
    thread.start()
    thread.join()
    recording.stop()
    assert len(recording.rows["spans"]) == 3
    assert recording.notes[0].startswith("recording: 3 spans had not ended")


def test_a_million_events_are_all_there(tmp_path):
    recording = Recording()
    span, lock = span_of(recording)("ntt_h", "gpu", 0), Lock("L", recording=recording)
    tracer = VramTracer({0: 1000}, recording=recording)
    with recording:
        for number in range(100_000):
            with span, lock:
                pass
            if number % 10 == 0:
                tracer.allocated(number, 7)
                tracer.freed(number)
    run = recording.write(tmp_path / "run")
    spans, locks, vram = (run.table(name) for name in ("spans", "locks", "vram"))
    assert (len(spans), len(locks), len(vram)) == (100_000, 100_000, 20_000)
    assert (spans["start"] <= spans["end"]).all() and (np.diff(spans["start"]) >= 0).all()
    assert (locks["acquired"] <= locks["released"]).all()
    assert vram["live"].tolist() == [7, 0] * 10_000


def test_draining_keeps_up_with_threads_that_record(tmp_path):
    """Whatever is drained while threads record, nothing is lost, doubled or torn apart."""
    recording = Recording(spill=tmp_path / "spill")
    span = span_of(recording)("it")

    def work():
        for _ in range(20_000):
            with span:
                pass

    with recording:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            recording.drain()
        for thread in threads:
            thread.join()
    assert recording.count("spans") == 60_000
    assert recording.notes == ()


def test_the_clock_of_a_run_is_monotonic_time():
    before = time.monotonic_ns()
    with Recording() as recording, span_of(recording)("it"):
        pass
    (it,) = recording.rows["spans"]
    assert before < it.start < it.end < time.monotonic_ns()
