"""What an importer promises: schema found and not assumed, everything keyed by process, gaps named."""

import sqlite3

import pytest

from cuzklab.analysis import locks, projection
from cuzklab.errors import BadInput
from cuzklab.ingest import import_file, importers
from cuzklab.ingest.registry import importer_for
from tests.cli.command import cuzklab
from tests.ingest import synthetic
from tests.ingest.synthetic import DOMAIN, MARK, START_END, pid, ranges, tid, write

STRINGS = [(1, "cudaLaunchKernel_v7000"), (2, "kernel_a"), (3, "kernel_b"), (4, "registered"), (5, "worker")]
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"


def call(at: int, thread: int, correlation: int, process: int = 9) -> tuple[int | None, ...]:
    return at, at + 10, 0, tid(process, thread), correlation, 1, 0


def kernel(at: int, correlation: int, process: int = 9, device: int = 0, name: int = 2) -> tuple[int | None, ...]:
    return at, at + 50, device, 1, 7, correlation, pid(process), name, name


def test_correlations_of_two_processes_do_not_mix(tmp_path, imported):
    run = imported(
        write(
            tmp_path / "two.sqlite",
            {
                "StringIds": STRINGS,
                "PROCESSES": [(pid(9), 9, "/opt/a/prover"), (pid(8), 8, "/opt/b/prover")],
                CALLS: [call(0, 91, 5, 9), call(100, 81, 5, 8)],
                KERNEL: [kernel(300, 5, 8, 1, 3), kernel(200, 5, 9, 0, 2)],
                "NVTX_EVENTS": ranges([{"start": 90, "end": 150, "text": "stage", "globalTid": tid(8, 81)}]),
            },
        )
    )
    found = run.table("kernels")
    assert found["name"].tolist() == ["kernel_a", "kernel_b"]
    assert found["launch"].tolist() == [0, 100]
    assert found["worker"].tolist() == ["prover 91", "prover 81"]
    assert found["span"].tolist() == ["", "stage"]
    assert found["device"].tolist() == [0, 1]
    assert run.info.conditions["processes"] == {"8": "prover", "9": "prover"}
    owned = projection.projected(run)
    assert owned[["range", "operations", "gpu_start_ns", "queue_max_ns"]].to_dict("records") == [
        {"range": "stage", "operations": 1, "gpu_start_ns": 300, "queue_max_ns": 190}
    ]


def test_the_same_numbers_on_two_machines_are_two_threads(tmp_path, imported):
    here, there = tid(9, 91), (2 << 48) | 9 << 24 | 91
    rows = [(0, 5, 0, here, 1, 1, 0), (1, 6, 0, there, 1, 1, 0)]
    run = imported(write(tmp_path / "x.sqlite", {"StringIds": STRINGS, CALLS: rows}))
    assert run.table("api_calls")["thread"].nunique() == 2


def test_names_of_threads_streams_and_devices(tmp_path, imported):
    run = imported(
        write(
            tmp_path / "x.sqlite",
            {
                "StringIds": STRINGS,
                "ThreadNames": [(2, 20, tid(9, 91)), (5, 10, tid(9, 91))],
                "TARGET_INFO_GPU": [(0, "H200", 1 << 37), (1, "L4", 24 << 30)],
                "TARGET_INFO_CUDA_NULL_STREAM": [(7, 9, 1)],
                CALLS: [call(0, 91, 1)],
                KERNEL: [kernel(20, 1), (30, 40, 0, 2, 7, 1, pid(9), 2, 2)],
            },
            {"TARGET_INFO_CUDA_NULL_STREAM": ("streamId", "processId", "contextId")},
        )
    )
    assert run.table("kernels")["stream"].tolist() == ["7 (default) of context 1", "7 of context 2"]
    assert run.table("kernels")["worker"].tolist() == ["worker 91"] * 2
    assert [device["vram_limit_bytes"] for device in run.info.devices] == [1 << 37, 24 << 30]


def test_text_is_taken_from_either_column(tmp_path, imported):
    who = {"start": 0, "end": 5, "globalTid": tid(9, 91)}
    rows = [{**who, "text": "plain"}, {**who, "textId": 4}, {**who}]
    run = imported(write(tmp_path / "x.sqlite", {"StringIds": STRINGS, "NVTX_EVENTS": ranges(rows)}))
    assert sorted(run.table("spans")["name"]) == ["", "plain", "registered"]


def test_domains_and_categories_belong_to_their_process(tmp_path, imported):
    def rows(process: int, name: str) -> list[dict[str, object]]:
        who = {"globalTid": tid(process, process * 10), "domainId": 1}
        return [
            {**who, "start": 0, "eventType": DOMAIN, "text": name},
            {**who, "start": 1, "eventType": synthetic.CATEGORY, "category": 3, "text": f"{name} kind"},
            {**who, "start": 2, "end": 4, "text": "r", "category": 3},
        ]

    both = [*rows(8, "first"), *rows(9, "second")]
    run = imported(write(tmp_path / "x.sqlite", {"NVTX_EVENTS": ranges(both)}))
    spans = run.table("spans").sort_values("thread")
    assert spans["domain"].tolist() == ["first", "second"]
    assert spans["category"].tolist() == ["first kind", "second kind"]


def test_ranges_without_an_end_last_to_the_end_of_the_capture(tmp_path, imported):
    who = {"globalTid": tid(9, 91)}
    rows = [{**who, "start": 10, "text": "never ended"}, {**who, "start": 20, "end": 30, "text": "ended"},
            {**who, "start": 25, "eventType": MARK, "text": "mark"}]  # fmt: skip
    tables = {"NVTX_EVENTS": ranges(rows), "ANALYSIS_DETAILS": [(1000, 0, 1000)]}
    run = imported(write(tmp_path / "x.sqlite", tables))
    spans = run.table("spans")
    assert spans[["name", "end", "open", "style", "parent"]].values.tolist() == [
        ["never ended", 1000, True, "push_pop", ""], ["ended", 30, False, "push_pop", "never ended"],
        ["mark", 25, False, "mark", ""],
    ]  # fmt: skip
    assert any("had not ended" in note for note in run.info.notes)


def test_a_range_that_ends_on_another_thread_owns_what_its_first_thread_launched(tmp_path, imported):
    job = {"start": 0, "end": 100, "eventType": START_END, "rangeId": 1, "text": "job", "globalTid": tid(9, 91),
           "endGlobalTid": tid(9, 92)}  # fmt: skip
    tables = {
        "StringIds": STRINGS, "NVTX_EVENTS": ranges([job]), CALLS: [call(10, 91, 1), call(20, 92, 2)],
        KERNEL: [kernel(200, 1), kernel(300, 2)],
    }  # fmt: skip
    run = imported(write(tmp_path / "x.sqlite", tables))
    assert run.table("spans")["end_thread"].tolist() == ["thread 92"]
    assert projection.projected(run)[["operations", "gpu_start_ns"]].values.tolist() == [[1, 200]]
    left = projection.outside(run)
    assert left[["thread", "operations"]].values.tolist() == [["thread 92", 1]]


def test_versioned_tables_and_unknown_columns(tmp_path, imported):
    columns = {
        f"{KERNEL}_V3": (*synthetic.COLUMNS[KERNEL], "newColumn"),
        f"{KERNEL}_V2": synthetic.COLUMNS[KERNEL],
        CALLS.lower(): ("correlationId", "globalTid", "nameId", "end", "start"),
    }
    tables = {
        "StringIds": STRINGS, f"{KERNEL}_V2": [kernel(1, 1)], f"{KERNEL}_V3": [(*kernel(20, 1), 4)],
        CALLS.lower(): [(1, tid(9, 91), 1, 12, 2)],
    }  # fmt: skip
    run = imported(write(tmp_path / "x.sqlite", tables, columns))
    assert run.table("kernels")[["start", "launch"]].values.tolist() == [[20, 2]]
    assert any(f"{KERNEL}_V3 for {KERNEL}" in note for note in run.info.notes)


def test_a_newer_schema_is_warned_about_with_both_versions(tmp_path, imported):
    tables = {"StringIds": STRINGS, "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.99.1")]}
    (note,) = imported(write(tmp_path / "x.sqlite", tables)).info.notes
    assert "3.99.1" in note and "3.20.3" in note


@pytest.mark.parametrize("version", ["3.20.3", "2.9.1", "nonsense", "9" * 40, ""])
def test_no_other_schema_is(tmp_path, imported, version):
    tables = {"StringIds": STRINGS, "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", version)]}
    assert imported(write(tmp_path / "x.sqlite", tables)).info.notes == ()


@pytest.mark.parametrize(
    ("options", "diagnostics", "others", "state", "words"),
    [
        ([("P:COLLECT_CUDA_TRACE", "false")], [], {}, "not captured", "without CUDA events"),
        ([("P:COLLECT_CUDA_TRACE", "true")], [], {}, "empty", "there were no kernels"),
        ([("P:COLLECT_CUDA_TRACE", "true")], ["Not all CUDA events might have been collected."], {}, "lost", "not all"),
        ([("CAPTURE_EVENT_TYPE", "NvtxEvents")], [], {}, "not captured", "without CUDA events"),
        ([], [], {CALLS: [call(0, 91, 1)]}, "empty", "there were no kernels"),
        ([], [], {}, "not captured", "does not say"),
    ],
)
def test_an_absent_table_says_why(tmp_path, imported, options, diagnostics, others, state, words):
    tables = {
        "StringIds": STRINGS, "META_DATA_CAPTURE": options, "DIAGNOSTIC_EVENT": [(0, text) for text in diagnostics],
        **others,
    }  # fmt: skip
    record = imported(write(tmp_path / "x.sqlite", tables)).availability["kernels"]
    assert record["state"] == state
    assert words in record["reason"]


def test_a_restricted_export_is_not_an_empty_capture(tmp_path, imported):
    tables = {"StringIds": STRINGS, "META_DATA_EXPORT": [("EXPORT_PARAM_TABLES_TO_EXPORT", "StringIds")]}
    record = imported(write(tmp_path / "x.sqlite", tables)).availability["kernels"]
    assert (record["state"], record["reason"]) == ("not captured", "the export was restricted to some tables")


def test_memory_events(tmp_path, imported):
    source = "CUDA_GPU_MEMORY_USAGE_EVENTS"

    def event(at, address, size, kind, operation, correlation=0, pool=None, used=None):
        return at, pid(9), 0, address, size, kind, operation, None, correlation, pool, used

    hold = {"start": 0, "end": 100, "text": "lock:gpu hold", "globalTid": tid(9, 91), "domainId": 1}
    rows = [{**hold, "end": None, "eventType": DOMAIN, "text": "cuzk"}, hold,
            {**hold, "start": 10, "end": 60, "text": "upload"}]  # fmt: skip
    tables = {
        "StringIds": STRINGS, "TARGET_INFO_GPU": [(0, "x", 1000)], CALLS: [call(20, 91, 4)],
        "NVTX_EVENTS": ranges(rows),
        source: [
            event(30, 0xA0, 400, 2, 0, 4), event(40, 0xB0, 64, 1, 0), event(50, 0xC0, 100, 4, 0, 0, 512, 256),
            event(60, 0xA0, 400, 2, 1), event(70, 0xD0, 7, 2, 1), event(80, 0xC0, 30, 2, 0),
            event(90, 0xE0, 1 << 60, 2, 0),
        ],
    }  # fmt: skip
    run = imported(write(tmp_path / "x.sqlite", tables))
    steps = run.table("vram")
    assert steps[["time", "op", "bytes", "live", "limit"]].values.tolist() == [
        [30, "alloc", 400, 400, 1000], [50, "alloc", 100, 500, 1000], [60, "free", 400, 100, 1000],
        [80, "free", 100, 0, 1000], [80, "alloc", 30, 30, 1000],
    ]  # fmt: skip
    assert steps.loc[0, ["buffer", "worker", "lock_held"]].tolist() == ["upload at 0xa0", "thread 91", "gpu"]
    counters = run.table("counters")
    assert counters.values.tolist() == [
        [40, "pinned_host_bytes", 64.0], [50, "gpu0_memory_pool_size_bytes", 512.0],
        [50, "gpu0_memory_pool_used_bytes", 256.0],
    ]  # fmt: skip
    assert len(run.info.notes) == 3


def test_whole_graphs_and_copies(tmp_path, imported):
    graph = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    tables = {
        "StringIds": STRINGS,
        graph: [(0, 100, 0, 1, 7, 1, pid(9), 42, 1)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            (0, 10, 0, 1, 7, 2, pid(9), 64, 1, 1, 2), (20, 30, 0, 1, 7, 3, pid(9), 32, 2, 2, 0),
            (40, 50, 0, 1, 7, 4, pid(9), 16, 8, 2, 2), (60, 70, 0, 1, 7, 5, pid(9), 8, 77, 2, 2),
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [(80, 90, 0, 1, 7, 6, pid(9), 4)],
    }  # fmt: skip
    run = imported(write(tmp_path / "x.sqlite", tables))
    assert run.table("kernels")["name"].tolist() == ["CUDA graph 42"]
    assert run.table("transfers")[["direction", "bytes", "pinned"]].values.tolist() == [
        ["h2d", 64, True], ["d2h", 32, False], ["d2d", 16, False], ["unknown", 8, False], ["set", 4, False],
    ]  # fmt: skip


def test_locks_that_are_given_up_held_on_or_taken_without_a_wait(tmp_path, imported):
    who = {"globalTid": tid(9, 91), "domainId": 1}
    rows = [
        {**who, "start": 0, "eventType": DOMAIN, "text": "cuzk"},
        {**who, "start": 10, "end": 20, "text": "lock:a wait"},  # given up
        {**who, "start": 30, "end": 40, "text": "lock:a wait"},
        {**who, "start": 45, "end": 60, "text": "lock:a hold"},
        {**who, "start": 70, "text": "lock:b hold"},  # no wait, no end
        {**who, "start": 80, "end": 90, "text": "lock:a wait", "domainId": 0},  # not our domain
    ]
    run = imported(write(tmp_path / "x.sqlite", {"NVTX_EVENTS": ranges(rows)}))
    uses = run.table("locks")
    assert uses[["lock", "requested"]].values.tolist() == [["a", 10], ["a", 30], ["b", 70]]
    assert uses["acquired"].astype(object).fillna(0).tolist() == [0, 40, 70]
    assert uses["released"].astype(object).fillna(0).tolist() == [20, 60, 0]
    assert locks.uses(run)["given_up"].tolist() == [True, False, False]


def test_impossible_rows_are_left_out_and_counted(tmp_path, imported):
    bad = [kernel(2**62, 1), (50, 20, 0, 1, 7, 1, pid(9), 2, 2), (None, 5, 0, 1, 7, 1, pid(9), 2, 2)]
    run = imported(write(tmp_path / "x.sqlite", {"StringIds": STRINGS, KERNEL: [*bad, kernel(5, 1)]}))
    assert run.table("kernels")["start"].tolist() == [5]
    assert run.info.notes[0].startswith("3 rows whose end is before their start")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("report.nsys-rep", b"x", "nsys export --type sqlite"),
        ("a.sqlite", b"SQLite format 3\0" + b"\xff" * 4000, "nsys export"),
        ("empty.sqlite", b"", "nothing that can be imported"),
        ("text.txt", b"hello", "nothing that can be imported"),
    ],
)
def test_bad_files_are_one_line_and_exit_status_2(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    done = cuzklab("import", tmp_path / name, "-o", tmp_path / "run")
    assert done.status == 2
    message = done.err.strip().splitlines()[-1]
    assert words in message and name in message
    assert not (tmp_path / "run").exists()


def test_somebody_elses_database_is_refused(tmp_path):
    sqlite3.connect(tmp_path / "x.sqlite").executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1);").close()
    with pytest.raises(BadInput, match="holds no table of an Nsight Systems export"):
        import_file(tmp_path / "x.sqlite", tmp_path / "run")


def test_views_are_not_tables(tmp_path):
    endless = (
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS"
        " WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)"
        " SELECT start, start AS end FROM n; CREATE TABLE StringIds (id INTEGER, value TEXT);"
    )
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    connection.executescript(endless)
    connection.close()
    assert import_file(tmp_path / "x.sqlite", tmp_path / "run").table("kernels").empty


def test_the_verb(tmp_path, shared_data):
    file = shared_data / "nsys" / "local_pthread_locks.schema-3.7.2.sqlite"
    done = cuzklab("import", file, "-o", tmp_path / "run", "--lock", "mutex=wait,hold", "--json")
    assert done.status == 0
    assert done.json["run"] == str(tmp_path / "run")
    assert done.json["availability"]["locks"] == {"state": "present", "rows": 40}
    assert done.json["availability"]["kernels"]["state"] == "not captured"
    text = cuzklab("import", file, "-o", tmp_path / "run")
    assert f"cuzklab report capture -p run={tmp_path / 'run-2'}" in text.out
    shown = cuzklab("runs", "show", tmp_path / "run")
    assert shown.status == 0
    assert "the capture ran without CUDA events (-t cuda adds them)" in shown.out
    assert cuzklab("import", file, "--lock", "mutex=wait").status == 2
    assert cuzklab("import", file, "--format", "nothing").err.strip().endswith("nsys, trace-events")


def test_importers_are_found_and_told(tmp_path):
    assert "nsys" in importers()
    with pytest.raises(BadInput, match="no such file"):
        importer_for(tmp_path / "absent.sqlite")
