"""Trace events in JSON: there and back without a loss, anybody's as they are documented, and nothing beyond bounds."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.ingest import import_file
from cuzklab.simulate import simulate
from cuzklab.trace import TABLES, ApiCall, Counter, LockUse, Recorder, Run, RunInfo, Span, VramEvent, write_run
from cuzklab.trace.perfetto import export_perfetto
from tests.cli.command import cuzklab

HOSTILE = "</script><img src=x onerror=alert(1)>\"'\\\n\0\u2028"
REAL = Path(__file__).parent / "data" / "h200_phase9"


@pytest.fixture
def trace(tmp_path):
    """Import events, or text, as a trace."""
    numbers = iter(range(10**6))

    def read(content: object) -> Run:
        number = next(numbers)
        path = tmp_path / f"trace{number}.json"
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(raw)
        return import_file(path, tmp_path / f"run{number}")

    return read


def same_rows(one: Run, other: Run) -> None:
    for name in TABLES:
        left, right = one.table(name), other.table(name)
        pd.testing.assert_frame_equal(
            *(rows.sort_values(list(rows.columns), ignore_index=True) for rows in (left, right)), obj=name
        )


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Run:
    result = simulate(policies.load("phase9"), "rtx5070ti-7995wx", "porep-32g", proofs=1, in_flight=1, gpu_workers=2,
                      synthesis_workers=4, seed=1)  # fmt: skip
    return result.to_run(tmp_path_factory.mktemp("own") / "run")


@pytest.fixture
def odd(tmp_path) -> Run:
    """Rows at the edges: open ends, requests given up, ranges that cross, names that hurt, times near the limit."""
    recorder = Recorder()
    late = (1 << 60) + 7
    for row in (
        Span(late, late + 10, HOSTILE, "cpu", thread="a/prep", worker="a", proof=3, partition="p3.1"),
        Span(late + 5, late + 20, "crosses", "gpu", thread="a/prep", device=2, open=True, style="push_pop", domain="d"),
        Span(late, late, "mark", "cpu", style="mark"),
        LockUse("lock", late, late + 1, None, "t", "w", "p0.0", "other", 2),
        LockUse("lock", late + 2, None, late + 9, "t2", "w2"),
        LockUse("lock", late + 3, None, None),
        VramEvent(late, "fail", "d_a", 1 << 49, 1, 5, 1 << 40, stack="f < g"),
        ApiCall(late, late + 1, "cudaMalloc", "runtime", 7, "t", 12, 2),
        Counter(late, "rate", 0.1 + 0.2),
        Counter(late + 1, "rate", 1e300),
    ):
        recorder.add(row)
    return write_run(tmp_path / "odd", RunInfo("live", "odd", conditions={"c": 3}), recorder)


@pytest.mark.parametrize(
    ("which", "name"), [("simulated", "trace.json"), ("odd", "trace.json"), ("real", "trace.json.gz")]
)
def test_there_and_back(request, tmp_path, which, name):
    from cuzklab.trace import load_run

    run = load_run(REAL / "capture") if which == "real" else request.getfixturevalue(which)
    events = export_perfetto(run, tmp_path / name)
    again = import_file(tmp_path / name, tmp_path / "again")
    if which == "odd":
        from cuzklab.ingest.privacy import Texts

        spans = run.table("spans")
        run.table("spans")["name"] = spans["name"].map(Texts())  # control characters are none of a name
    same_rows(run, again)
    assert again.info.origin == "imported"
    assert {key: again.info.conditions[key] for key in run.info.conditions} == json.loads(
        json.dumps(dict(run.info.conditions))
    )
    assert [one["value"] for one in again.info.metrics] == [one["value"] for one in run.info.metrics]
    assert {name: one["state"] for name, one in again.availability.items()} == {
        name: one["state"] for name, one in run.availability.items()
    }
    assert events > sum(len(run.table(name)) for name in TABLES)


def test_the_file_is_what_the_format_s_description_asks_for(simulated, odd, tmp_path):
    """Fields and their types by phase; what shares a lane lies in each other; every lane and process has a name."""
    for run in (simulated, odd):
        export_perfetto(run, tmp_path / "trace.json")
        content = json.loads((tmp_path / "trace.json").read_text(encoding="ascii"))
        assert content["displayTimeUnit"] == "ns"
        named: dict[str, set] = defaultdict(set)
        lanes: dict[tuple, list] = defaultdict(list)
        for event in content["traceEvents"]:
            assert isinstance(event["name"], str) and event["name"]
            assert type(event["pid"]) is type(event["tid"]) is int
            if event["ph"] == "M":
                named[event["name"]].add((event["pid"], event["tid"]))
                assert set(event["args"]) == {"sort_index" if event["name"].endswith("index") else "name"}
                continue
            assert event["ts"] >= 0 and isinstance(event["cat"], str)
            if event["ph"] == "X":
                assert event["dur"] >= 0
                lanes[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
            elif event["ph"] == "C":
                assert all(isinstance(value, int | float) for value in event["args"].values())
            else:
                assert (event["ph"], event["s"]) == ("i", "t")
                lanes[event["pid"], event["tid"]] = lanes[event["pid"], event["tid"]]
        assert set(lanes) <= named["thread_name"]
        assert {pid for pid, _ in lanes} <= {pid for pid, _ in named["process_name"]}
        for slices in lanes.values():
            stack: list[int] = []
            for ts, dur in sorted(((round(ts * 1000), round(dur * 1000)) for ts, dur in slices),
                                  key=lambda one: (one[0], -one[1])):  # fmt: skip
                while stack and stack[-1] <= ts:
                    stack.pop()
                assert not stack or ts + dur <= stack[-1]
                stack.append(ts + dur)


def test_export_on_the_command_line(simulated, tmp_path):
    done = cuzklab("runs", "export", simulated.path, "-o", tmp_path / "t.json.gz", "--json")
    assert done.json["events"] == len(json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"])
    assert cuzklab("runs", "export", simulated.path, "-o", tmp_path / "t.txt").status == 2
    assert cuzklab("runs", "export", simulated.path, "-o", "/nowhere/t.json").status == 2
    assert cuzklab("runs", "export", tmp_path, "-o", tmp_path / "u.json").status == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.json.gz"]


EVENTS = [
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
    {"ph": "X", "name": "outer", "cat": "cpu_op", "pid": 1, "tid": 2, "ts": 1.5, "dur": 100.001},
    {"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": "10"},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 20.25},
    {"ph": "b", "cat": "net", "id": "0x1", "name": "request", "pid": 1, "tid": 2, "ts": 3},
    {"ph": "e", "cat": "net", "id": "0x1", "name": "request", "pid": 1, "tid": 9, "ts": 30},
    {"ph": "i", "name": "here", "pid": 1, "tid": 2, "ts": 5, "s": "t"},
    {"ph": "C", "name": "queue", "pid": 1, "ts": 6, "args": {"length": 3}},
    {"ph": "C", "name": "memory", "pid": 1, "ts": 6, "args": {"a": 1, "b": 2.5}},
    {"ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "pid": 1, "tid": 2, "ts": 12, "dur": 2,
     "args": {"correlation": 5}},
    {"ph": "X", "name": "gemm", "cat": "kernel", "pid": 0, "tid": 7, "ts": 40, "dur": 3,
     "args": {"device": 0, "stream": 7, "correlation": 5}},
    {"ph": "X", "name": "Memcpy HtoD (Pinned -> Device)", "cat": "gpu_memcpy", "pid": 0, "tid": 7, "ts": 50, "dur": 4,
     "args": {"device": 0, "stream": 7, "bytes": 4096}},
    {"ph": "i", "name": "[memory]", "pid": 1, "tid": 2, "ts": 7,
     "args": {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Total Allocated": 512, "Addr": 255}},
    {"ph": "s", "id": 5, "name": "ac2g", "cat": "ac2g", "pid": 1, "tid": 2, "ts": 12},
    {"ph": "B", "name": "never ends", "pid": 1, "tid": 3, "ts": 60},
    {"ph": "E", "pid": 1, "tid": 4, "ts": 61},
    {"ph": "X", "name": "backwards", "pid": 1, "tid": 2, "ts": 1, "dur": -1},
    {"ph": "X", "name": "no time", "pid": 1, "tid": 2},
]  # fmt: skip


@pytest.mark.parametrize("form", [lambda events: events, lambda events: {"otherData": {}, "traceEvents": events}])
def test_anybody_s_events_as_they_are_documented(trace, form):
    run = trace(form(EVENTS))
    spans = run.table("spans").sort_values(["start", "end"])
    rows = spans[["name", "start", "end", "category", "thread", "style", "open"]].values.tolist()
    assert rows == [
        ["outer", 1500, 101501, "cpu_op", "main 2", "", False],
        ["request", 3000, 30000, "net", "thread 9", "start_end", False],
        ["here", 5000, 5000, "range", "main 2", "mark", False],
        ["inner", 10000, 20250, "range", "main 2", "", False],
        ["never ends", 60000, 101501, "range", "thread 3", "", True],
    ]
    (kernel,) = run.table("kernels").to_dict("records")
    assert (kernel["name"], kernel["start"], kernel["end"], kernel["launch"]) == ("gemm", 40_000, 43_000, 12_000)
    assert (kernel["span"], kernel["worker"], kernel["stream"]) == ("inner", "main 2", "7")
    (copy,) = run.table("transfers").to_dict("records")
    assert (copy["direction"], copy["pinned"], copy["bytes"], copy["issue"]) == ("h2d", True, 4096, 50_000)
    (memory,) = run.table("vram").to_dict("records")
    assert (memory["op"], memory["bytes"], memory["live"], memory["buffer"]) == (
        "alloc",
        512,
        512,
        "allocation at 0xff",
    )
    assert run.table("counters")[["name", "value"]].values.tolist() == [
        ["queue", 3],
        ["memory a", 1],
        ["memory b", 2.5],
    ]
    notes = " ".join(run.info.notes)
    assert "2 events have a time that cannot be" in notes
    assert "1 ends have no beginning" in notes
    assert "1 slices had not ended" in notes
    assert "'s' 1" in notes
    assert run.availability["locks"]["state"] == "not captured"


def test_a_file_that_was_cut_is_read_as_far_as_it_goes(trace):
    raw = json.dumps(EVENTS[:2])[:-1].encode() + b', {"ph": "X", "na'
    run = trace(raw)
    assert len(run.table("spans")) == 1
    assert "The file ends in the middle: what came after is lost." in run.info.notes


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"[" * 100_000, "nested deeper than 64 levels"),
        (b'[{"args":' * 50_000, "nested deeper than 64 levels"),
        (b'{"x":' * 50_000, "nested deeper than 64 levels"),
        (b'{"traceEvents":[{"ph":"X","args":[' + b"0," * 200_000 + b"0]}]}", "more than 100,000 values"),
        (b'[{"ph":"' + b"x" * (9 << 20) + b'"}]', "one value is longer than"),
        (b'{"a":1}', "an object without a list traceEvents"),
        (b'{"traceEvents":[]}', "holds no trace events"),
        (b'[{"a":1}]', "none of its 1 events is a trace event"),
        (b'["\xff"]', "not readable as JSON"),
        (b"[1,", "none of its 1 events"),
        (b"{]", "not readable as JSON"),
        (b'[{"ph":"X","ts":' + b"9" * 5000 + b"}]", ""),
        (b'[{"ph":"X","ts":1e999999999,"dur":1}]', "none of its 1 events"),
        (gzip.compress(b"[" + b" " * (40 << 20), 1, mtime=0), "refused"),
        (gzip.compress(b"[" + (b'{"ph":"' + b"x" * 50_000 + b'"},') * 600, mtime=0), "more than 200 times its size"),
        (gzip.compress(b"[{}]", mtime=0)[:-6], "ends early"),
    ],
)  # fmt: skip
def test_what_is_beyond_bounds_is_refused_in_one_line(tmp_path, raw, words):
    path = tmp_path / "trace.json"
    path.write_bytes(raw)
    with pytest.raises(BadInput) as refused:
        import_file(path, tmp_path / "run", importer_name="trace-events")
    assert not (tmp_path / "run").exists()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.integers(), st.floats(), st.text(max_size=4))
EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from(list("XBEbeniICMsSF")) | VALUES, "ts": NUMBERS},
    optional={
        "name": st.sampled_from(["a", "thread_name", "[memory]", HOSTILE]) | VALUES, "dur": NUMBERS, "pid": VALUES,
        "tid": VALUES, "id": VALUES, "cat": st.sampled_from(["kernel", "gpu_memcpy", "cuda_runtime"]) | VALUES,
        "args": VALUES | st.fixed_dictionaries({}, optional={
            "table": st.sampled_from(list(TABLES)), "correlation": NUMBERS, "bytes": NUMBERS, "Bytes": NUMBERS,
            "Total Allocated": NUMBERS, "Device Type": st.just(1), "start": NUMBERS, "end": NUMBERS, "value": NUMBERS,
            "name": VALUES, "category": st.text(max_size=3),
        }),
    },
)  # fmt: skip
OURS = {"producer": "cuzklab 1", "format": 1}


@given(st.lists(EVENT, max_size=12), st.booleans(), VALUES, VALUES)
@settings(max_examples=30)
def test_any_events_are_read_or_refused(tmp_path_factory, events, ours, base, facts):
    folder = tmp_path_factory.mktemp("fuzz")
    run = {
        "conditions": facts,
        "devices": facts,
        "metrics": [facts],
        "notes": facts,
        "availability": facts,
        "title": facts,
    }
    other = {**OURS, "base_ns": base, "run": run} if ours else {}
    (folder / "t.json").write_text(json.dumps({"otherData": other, "traceEvents": events}))
    try:
        read = import_file(folder / "t.json", folder / "run")
    except BadInput as error:
        assert "\n" not in str(error)
        return
    for name in ("spans", "kernels", "transfers", "api_calls", "waits"):
        assert (read.table(name)["end"] >= read.table(name)["start"]).all()


@given(st.binary(max_size=40), st.integers(0, 2000))
@settings(max_examples=30)
def test_damaged_bytes_are_read_or_refused(tmp_path_factory, damage, place):
    folder = tmp_path_factory.mktemp("bytes")
    raw = json.dumps({"otherData": {}, "traceEvents": EVENTS}).encode()
    (folder / "t.json").write_bytes(raw[:place] + damage + raw[place + len(damage) :])
    try:
        import_file(folder / "t.json", folder / "run", importer_name="trace-events")
    except BadInput as error:
        assert "\n" not in str(error)
