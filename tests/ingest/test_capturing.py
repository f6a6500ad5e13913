"""Captures: taken with a stand-in for Nsight Systems at the boundary, and joined with the run that they are of."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.ingest import Options, import_file
from cuzklab.ingest.capturing import attach
from cuzklab.ingest.capturing import capture as take
from cuzklab.ingest.capturing.agreement import agreement
from cuzklab.ingest.capturing.alignment import Ranges, align
from cuzklab.simulate import simulate
from cuzklab.trace import Columns, Run, RunInfo, load_run, write_run
from cuzklab.trace.schema import arrow_schema
from tests.cli.command import cuzklab
from tests.ingest.standin import OFFSET_NS, anywhere_in, install, install_watching, without

SECRET = "tok_Plant3d5ecret77"
LOCKS = "h200_three_workers_one_lock_2025.3.sqlite"
OFFSET = -3_000_000_000


@pytest.fixture
def nsys(shared_data, tmp_path, monkeypatch):
    """Put a stand-in on the PATH."""

    def use(mode: str = "report", importer: bool = True) -> None:
        folder = install(tmp_path / f"nsight-{mode}-{importer}", shared_data / "nsys" / LOCKS, mode, importer)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return use


@pytest.mark.parametrize("mode", ["report", "stream"])
def test_a_capture_is_taken_imported_and_holds_no_secret(nsys, tmp_path, monkeypatch, mode):
    nsys(mode)
    monkeypatch.setenv("ENGINE_TOKEN", SECRET)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = ("sh", "-c", "echo printed $ENGINE_TOKEN")
    done = cuzklab("capture", "--json", "-o", tmp_path / "run", "--", *command)
    assert (done.status, f"printed {SECRET}" in done.err) == (0, True)
    assert done.json["availability"]["kernels"] == {"state": "present", "rows": 12}
    assert any("Secrets were taken out" in note for note in done.json["notes"])
    assert anywhere_in(tmp_path / "run", SECRET) == []
    assert [name.name for name in tmp_path.iterdir() if name.name.startswith("cuzklab-capture")] == []
    exported = cuzklab("runs", "export", tmp_path / "run", "-o", tmp_path / "run" / "trace.json")
    assert exported.status == 0
    assert anywhere_in(tmp_path / "run", SECRET) == []


@pytest.mark.slow
def test_a_secret_is_in_no_file_of_the_report(nsys, tmp_path, monkeypatch):
    from tests.ingest.showing import notebook_shows

    nsys()
    monkeypatch.setenv("ENGINE_TOKEN", SECRET)
    assert cuzklab("capture", "-o", tmp_path / "run", "--", "printenv").status == 0
    (tmp_path / "shown.html").write_text(notebook_shows(tmp_path / "run", tmp_path / "out"))
    shutil.rmtree(tmp_path / "nsight-report-True")
    assert anywhere_in(tmp_path, SECRET) == []


def test_the_report_is_kept_where_asked_and_the_command_s_failure_told(nsys, tmp_path):
    nsys()
    kept = tmp_path / "kept.nsys-rep"
    done = cuzklab("capture", "-o", tmp_path / "run", "--keep-report", kept, "--", "sh", "-c", "exit 3")
    assert done.status == 1
    assert "sh ended with status 3" in done.err
    assert "holds the environment" in done.err
    assert kept.stat().st_mode & 0o077 == 0
    assert (tmp_path / "run" / "run.json").exists()


def test_what_is_missing_is_said_in_one_line(nsys, tmp_path, monkeypatch):
    def refused(*arguments: object) -> str:
        done = cuzklab("capture", "-o", tmp_path / "run", *arguments, "--", "true")
        assert done.status == 2
        assert not (tmp_path / "run").exists()
        return done.err.strip().splitlines()[-1]

    bare = without(os.environ["PATH"], "nsys")
    monkeypatch.setenv("PATH", bare)
    assert "nsys is missing" in refused()
    assert "no such program" in refused("--nsys", "/nowhere/nsys")
    assert "its folder does not exist" in refused("--keep-report", "/nowhere/x.nsys-rep")
    nsys("forbidden")
    assert "not permitted to capture" in refused()
    nsys("nothing")
    assert "left no report (exit status 0): Failed to create a report" in refused()
    nsys("stream", importer=False)
    assert "QdstrmImporter" in refused()


def test_a_library_that_the_importer_lacks_is_named(nsys, tmp_path):
    """A program linked against a library that is then taken away, as the importer is on a bare machine."""
    nsys("stream")
    (tmp_path / "gone.c").write_text("int gone(void) { return 0; }\n")
    (tmp_path / "main.c").write_text("int gone(void); int main(void) { return gone(); }\n")
    library, importer = tmp_path / "libcuzkgone.so.1", tmp_path / "nsight-stream-True/host-linux-x64/QdstrmImporter"
    compiler = shutil.which("gcc") or shutil.which("cc")
    for command in (
        (compiler, "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", library, tmp_path / "gone.c"),
        (compiler, "-o", importer, tmp_path / "main.c", library),
    ):
        subprocess.run(command, check=True)
    library.unlink()
    done = cuzklab("capture", "-o", tmp_path / "run", "--", "true")
    assert done.status == 2
    assert f"QdstrmImporter lacks {library.name}: install Debian's" in done.err
    assert "LD_LIBRARY_PATH" in done.err


def test_a_program_that_leaves_another_behind_does_not_hang(nsys, tmp_path):
    nsys()
    said: list[bytes] = []
    done = take(["sh", "-c", "sleep 30 >&- 2>&- & echo done"], tmp_path, said.append)
    assert b"done\n" in b"".join(said)
    assert done.status == 0


@pytest.mark.slow
def test_run_with_capture_refuses_a_capture_of_something_else(nsys, tmp_path):
    nsys()  # its export is of another program
    done = cuzklab("run", "phase9", "--workload", "porep-shaped-11", "--partitions", "1", "--backend", "host",
                   "--capture", "-o", tmp_path / "run")  # fmt: skip
    assert done.status == 2
    assert "it is not of this run" in done.err
    assert not (tmp_path / "run").exists()
    assert cuzklab("run", "phase9", "--backend", "sim", "--capture").status == 2


@pytest.mark.slow
def test_run_with_capture_joins_what_the_profiler_saw(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{install_watching(tmp_path / 'nsight')}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    done = cuzklab(
        "run", "phase9", "--workload", "porep-shaped-11", "--partitions", "2", "--backend", "host", "--vram", "64GiB",
        "--capture", "--keep-report", tmp_path / "kept.nsys-rep", "-o", tmp_path / "run", "--json",
    )  # fmt: skip
    assert done.json["run"] == str(tmp_path / "run")
    assert done.json["capture"]["offset_ns"] == -OFFSET_NS
    assert done.json["capture"]["residual_max_ns"] == 0
    run = load_run(tmp_path / "run")
    stages = run.table("spans").query("category == 'gpu'")
    kernels = run.table("kernels")
    assert len(stages)
    assert kernels["name"].tolist() == ["seen"] * len(stages)
    assert (
        kernels[["span", "partition", "worker"]].values.tolist()
        == stages[["name", "partition", "worker"]].values.tolist()
    )
    assert (kernels["start"].to_numpy() - stages["start"].to_numpy() == 30).all()
    assert run.info.origin == "live"
    shown = cuzklab("report", "capture", "-p", f"run={tmp_path}/none", "--capture", tmp_path / "x.sqlite")
    assert shown.status == 2
    assert (tmp_path / "kept.nsys-rep").exists()


# Joining a capture with its run


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Run:
    """A run whose kernels are known, in the place of one on a GPU."""
    result = simulate(policies.load("phase9"), "rtx5070ti-7995wx", "porep-32g", proofs=1, in_flight=1, gpu_workers=2,
                      synthesis_workers=4, seed=1)  # fmt: skip
    return result.to_run(tmp_path_factory.mktemp("own") / "run")


def seen_by_a_profiler(run: Run, place, drift: float = 0.0, jitter_ns: int = 0, lost: float = 0.0) -> Run:
    """The capture of a run: its ranges, kernels, copies and memory on another clock, threads under other names."""
    rng = np.random.default_rng(3)

    def moved(times: pd.Series, jitter: bool = False) -> np.ndarray:
        values = times.to_numpy(np.int64)
        noise = rng.integers(-jitter_ns, jitter_ns + 1, len(values)) if jitter else 0
        return values + OFFSET + np.rint(drift * values).astype(np.int64) + noise

    label = {name: f"python3 {number}" for number, name in enumerate(sorted(run.table("spans")["thread"].unique()))}
    spans = run.table("spans").copy()
    spans = spans[rng.random(len(spans)) >= lost]
    start = moved(spans["start"], True)
    spans["end"] = np.maximum(moved(spans["end"], True), start)
    spans = spans.assign(start=start, thread=spans["thread"].map(label), worker="", partition="", proof=-1)
    spans = spans.assign(domain="cuzk", style="push_pop")
    alien = spans.head(12).assign(start=spans["start"].head(12) + 77_777_777, end=spans["end"].head(12) + 77_777_777)
    tables = {"spans": pd.concat([spans, alien])}
    for name in ("kernels", "transfers", "vram"):
        rows = run.table(name).copy()
        for column in ("start", "end", "launch", "issue", "time"):
            if column in rows.columns:
                rows[column] = moved(rows[column])
        rows = rows.assign(worker=rows["worker"].map(label), partition="")
        if name == "kernels":  # a simulated kernel is launched before its span begins, a real one in its range
            rows = rows.assign(span="", launch=rows["start"] + 10_000)
        tables[name] = rows
    made = {}
    for name, rows in tables.items():
        schema = arrow_schema(name)
        order = "time" if name == "vram" else "start"
        rows = rows.sort_values(order, kind="stable")
        made[name] = pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False)
    return write_run(place, RunInfo("imported", "capture", versions={"nsys": "2025.3"}), Columns(made))


def without_tables(run: Run, place, *names: str) -> Run:
    shutil.copytree(run.path, place)
    for name in names:
        (place / f"{name}.parquet").unlink()
    return load_run(place)


KERNEL = ["start", "end", "name", "stream", "worker", "partition", "span"]


def test_kernels_and_copies_join_the_run_s_spans_exactly(simulated, tmp_path):
    """With equal clocks but for an offset everything is back where it was."""
    own = without_tables(simulated, tmp_path / "own", "kernels", "transfers")
    joined = attach(own, seen_by_a_profiler(simulated, tmp_path / "cap"), tmp_path / "joined", "kept.nsys-rep")
    kernels = joined.table("kernels")
    pd.testing.assert_frame_equal(kernels[KERNEL], simulated.table("kernels")[KERNEL])
    assert (kernels["launch"] == kernels["start"] + 10_000).all()
    columns = ["start", "end", "issue", "bytes", "direction", "worker", "partition"]
    pd.testing.assert_frame_equal(joined.table("transfers")[columns], simulated.table("transfers")[columns])
    spans = joined.table("spans")
    assert set(spans["domain"]) == {"cuzk"}
    assert set(spans["style"]) == {"push_pop"}
    same = [name for name in spans.columns if name not in ("domain", "style")]
    pd.testing.assert_frame_equal(spans[same], simulated.table("spans")[same])
    pd.testing.assert_frame_equal(joined.table("vram"), simulated.table("vram"))
    told = joined.table("counters")
    told = told[told["name"] == "captured gpu0 live_bytes"]
    assert told["value"].tolist() == simulated.table("vram")["live"].astype(float).tolist()
    facts = joined.info.conditions["capture"]
    assert (facts["offset_ns"], facts["drift"], facts["residual_max_ns"]) == (OFFSET, 0.0, 0)
    assert facts["matched"] == facts["shared"] == len(simulated.table("spans"))
    assert facts["report"] == "kept.nsys-rep"
    assert joined.info.origin == simulated.info.origin
    assert joined.info.versions["nsys"] == "2025.3"


def test_memory_that_the_run_did_not_record_is_the_capture_s(simulated, tmp_path):
    own = without_tables(simulated, tmp_path / "own", "vram")
    joined = attach(own, seen_by_a_profiler(simulated, tmp_path / "cap"), tmp_path / "joined")
    columns = ["time", "op", "buffer", "bytes", "live", "worker", "partition"]
    pd.testing.assert_frame_equal(joined.table("vram")[columns], simulated.table("vram")[columns])


def test_drift_jitter_and_lost_ranges_are_survived_and_stated(simulated, tmp_path):
    drift, jitter = 40e-6, 1500
    captured = seen_by_a_profiler(simulated, tmp_path / "cap", drift, jitter, lost=0.3)
    joined = attach(simulated, captured, tmp_path / "joined")
    facts = joined.info.conditions["capture"]
    assert facts["drift"] == pytest.approx(drift, abs=0.05e-6)
    assert 0 < facts["residual_median_ns"] < jitter
    assert facts["residual_max_ns"] <= 2 * jitter
    assert 0.6 < facts["matched"] / facts["shared"] < 0.8
    apart = joined.table("kernels")["start"].to_numpy() - simulated.table("kernels")["start"].to_numpy()
    assert np.abs(apart).max() <= jitter
    assert joined.table("kernels")["span"].tolist() == simulated.table("kernels")["span"].tolist()
    assert any("residuals: median" in note for note in joined.info.notes)


def test_a_capture_of_another_run_is_refused(simulated, tmp_path):
    other = simulate(policies.load("phase8"), "rtx5070ti-7995wx", "porep-32g", proofs=1, in_flight=1, gpu_workers=1,
                     synthesis_workers=2, seed=9).to_run(tmp_path / "other")  # fmt: skip
    with pytest.raises(BadInput, match="it is not of this run"):
        attach(simulated, seen_by_a_profiler(other, tmp_path / "cap"), tmp_path / "joined")
    empty = write_run(tmp_path / "empty", RunInfo("imported", "nothing"), Columns())
    with pytest.raises(BadInput, match="ran without NVTX"):
        attach(simulated, empty, tmp_path / "joined")
    assert not (tmp_path / "joined").exists()


def test_agreement_is_told_stage_by_stage():
    spans = pd.DataFrame(
        [("h_msm", "gpu", 0, 100), ("h_msm", "gpu", 200, 320), ("prep_msm", "cpu", 0, 50), ("alloc", "memory", 0, 9)],
        columns=["name", "category", "start", "end"],
    )
    theirs = pd.DataFrame({"start": [1000, 1, 1200], "end": [1051, 102, 1321]})
    kernel = ["name", "span", "partition", "start", "end"]
    both = ("k", "h_msm", "p0", 20, 90)
    own = pd.DataFrame([("k", "h_msm", "p0", 10, 20), both, ("k", "h_msm", "p1", 1, 5)], columns=kernel)
    alone = ("fill", "h_msm", "p0", 0, 99)  # CuPy's own
    seen = pd.DataFrame([("k", "h_msm", "p0", 12, 20), both, ("k", "h_msm", "p1", 1, 4), alone], columns=kernel)
    rows = agreement(spans, theirs, np.array([[0, 1], [1, 2], [2, 0], [3, 0]]), own, seen)
    assert rows == [
        {"stage": "h_msm", "count": 2, "own_ns": 220, "capture_ns": 222, "kernels": [3, 3], "own_device_ns": 84,
         "capture_device_ns": 81},
        {"stage": "prep_msm", "count": 1, "own_ns": 50, "capture_ns": 51, "kernels": None, "own_device_ns": None,
         "capture_device_ns": None},
    ]  # fmt: skip


def test_ranges_that_repeat_too_regularly_are_refused():
    def regular(count: int) -> Ranges:
        start = np.arange(count, dtype=np.int64) * 10_000_000
        return Ranges(["tick"] * count, start, start + 1_000_000)

    assert align(regular(10), regular(10)).offset_ns == 0
    with pytest.raises(BadInput, match="two offsets of the clocks fit equally well"):
        align(regular(10), regular(20))


def test_attach_on_the_command_line(simulated, tmp_path):
    captured = seen_by_a_profiler(simulated, tmp_path / "cap")
    done = cuzklab("runs", "attach", simulated.path, captured.path, "-o", tmp_path / "joined", "--json")
    assert done.status == 0
    assert done.json["capture"]["matched"] == len(simulated.table("spans"))
    assert json.loads((tmp_path / "joined" / "run.json").read_text())["conditions"]["capture"]["offset_ns"] == OFFSET


def test_values_that_must_not_be_kept_are_given_to_the_importer(shared_data, tmp_path):
    file = shared_data / "nsys" / LOCKS
    run = import_file(file, tmp_path / "run", Options(secrets=("lock:gpu wait",)))
    assert "lock:gpu wait" not in set(run.table("spans")["name"])


# A live run of phase 9 on an H200, captured by the nsys inside Nsight Compute 2025.3; both runs as they were stored,
# without the API calls.
REAL = Path(__file__).parent / "data" / "h200_phase9"


def test_a_real_capture_joins_the_run_that_timed_its_kernels_itself(tmp_path):
    """The run's own times are those of CUDA events around each kernel, brought to its clock within 3.9 µs."""
    own, captured = load_run(REAL / "run"), load_run(REAL / "capture")
    joined = attach(own, captured, tmp_path / "joined")
    facts = joined.info.conditions["capture"]
    assert facts["matched"] == facts["shared"] == 36
    assert facts["residual_median_ns"] < 1_000
    assert facts["residual_max_ns"] < 5_000
    assert facts["drift"] == 0.0  # 64 ms are too short to tell
    kernels = joined.table("kernels")
    inside = kernels[kernels["partition"] != ""]
    timed = own.table("kernels")
    assert set(inside["span"]) == {"ntt_h"}
    assert len(inside) == len(timed) == 39
    for partition, mine in inside.groupby("partition"):
        theirs = timed[timed["partition"] == partition]
        assert mine["name"].tolist() == theirs["name"].tolist()
        assert mine["worker"].tolist() == theirs["worker"].tolist()
        assert (mine["start"].to_numpy() >= theirs["start"].to_numpy() - 3_900).all()
        assert (mine["end"].to_numpy() <= theirs["end"].to_numpy() + 3_900).all()
    # What the program ran before its workers began is no part of the run.
    assert len(kernels) == len(inside)
    assert len(captured.table("kernels")) == 72
    assert any("Of the capture 33 kernels, 31 transfers lie outside" in note for note in joined.info.notes)
