"""Hostile files: no traceback but `BadInput`, no hang, nothing that escapes into a page."""

import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzklab.analysis import capture, frames, projection, vram
from cuzklab.errors import BadInput
from cuzklab.ingest import import_file
from cuzklab.trace import Run
from tests.ingest import synthetic
from tests.ingest.showing import notebook_shows
from tests.report.hostile import EVIL

TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "OSRT_API", "NVTX_EVENTS",
    "CUDA_GPU_MEMORY_USAGE_EVENTS", "META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV",
    "DIAGNOSTIC_EVENT", "PROCESSES", "ThreadNames", "TARGET_INFO_GPU", "ANALYSIS_DETAILS", "StringIds",
)  # fmt: skip
NUMBERS = st.one_of(
    st.none(), st.integers(0, 40), st.integers(-(2**63), 2**63 - 1), st.integers(2**60, 2**62), st.just(59),
    st.just(60), st.just(75), st.just(33), st.just(synthetic.tid(3, 4)), st.just(synthetic.pid(3)), st.just(27),
)  # fmt: skip
WORDS = st.sampled_from(
    [EVIL, "cuzk", "lock:gpu wait", "lock:gpu hold", "lock: wait", "prove_partition p9.9", "call", "a\0b", "", "</td>",
     "\u202e\x1b[31m", "x" * 5000, "EXPORT_SCHEMA_VERSION", "P:COLLECT_CUDA_TRACE", "=HYPERLINK(1)"]
)  # fmt: skip
VALUES = st.one_of(
    NUMBERS, NUMBERS, WORDS, WORDS.map(str.encode), st.binary(max_size=12), st.floats(), st.just(b"\xff\xfe<b>")
)


@st.composite
def exports(draw: st.DrawFn) -> tuple[dict[str, list[tuple]], dict[str, tuple[str, ...]]]:
    """Tables of an export with whatever values, and with whatever columns left out."""
    names = draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=6, unique=True))
    columns, tables = {}, {}
    for name in {*names, "StringIds"}:
        known = synthetic.COLUMNS[name]
        left_out = draw(st.sets(st.sampled_from(known), max_size=2)) if draw(st.booleans()) else set()
        columns[name] = tuple(column for column in known if column not in left_out) or known[:1]
        row = st.tuples(*(VALUES for _ in columns[name]))
        tables[name] = draw(st.lists(row, max_size=6))
    return tables, columns


def survives(run: Run) -> None:
    """Everything that a report computes of a run."""
    capture.findings(run)
    capture.blind_spots(run)
    frames.timeline(run)
    vram.peak_holdings(run)
    projected = projection.projected(run)
    assert (projected["busy_ns"] <= projected["span_ns"]).all()
    assert (projected["gap_ns"] >= 0).all()


def fuzz_values(content: tuple[dict, dict]) -> None:
    tables, columns = content
    with TemporaryDirectory() as folder:
        file = synthetic.write(Path(folder) / "x.sqlite", tables, columns)
        try:
            run = import_file(file, Path(folder) / "run")
        except BadInput as error:
            assert "\n" not in str(error)
            return
        survives(run)


def fuzz_bytes(original: bytes, changes: list[tuple[int, bytes]], cut: int | None) -> None:
    content = bytearray(original)
    for place, new in changes:
        place %= len(content)
        content[place : place + len(new)] = new
    with TemporaryDirectory() as folder:
        file = Path(folder) / "x.sqlite"
        file.write_bytes(content[:cut] if cut else content)
        try:
            run = import_file(file, Path(folder) / "run")
        except BadInput as error:
            assert "\n" not in str(error)
            return
        survives(run)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> bytes:
    """A small export with rows in most tables."""
    file = tmp_path_factory.mktemp("fuzz") / "small.sqlite"
    return synthetic.large(file, kernels=200).read_bytes()


CHANGES = st.lists(st.tuples(st.integers(0, 2**20), st.binary(min_size=1, max_size=9)), min_size=1, max_size=12)
FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=8, suppress_health_check=FIXTURES)
@given(content=exports())
def test_any_values(content):
    fuzz_values(content)


@settings(max_examples=12, suppress_health_check=FIXTURES)
@given(changes=CHANGES, cut=st.one_of(st.none(), st.integers(1, 40_000)))
def test_any_bytes(small, changes, cut):
    fuzz_bytes(small, changes, cut)


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=FIXTURES)
@given(content=exports())
def test_many_values(content):
    fuzz_values(content)


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=FIXTURES)
@given(changes=CHANGES, cut=st.one_of(st.none(), st.integers(1, 40_000)))
def test_many_bytes(small, changes, cut):
    fuzz_bytes(small, changes, cut)


def test_deep_and_crossing_ranges_take_no_quadratic_time(tmp_path, imported):
    count = 10_000
    who = {"globalTid": synthetic.tid(3, 4), "textId": 100}
    nested = [{**who, "start": number, "end": 10 * count - number} for number in range(count)]
    crossing = [{**who, "start": 20 * count + number, "end": 30 * count + number} for number in range(count)]
    launches = [(number, number + 1, 0, synthetic.tid(3, 4), number + 1, 1, 0) for number in range(count)]
    work = [(number, number + 5, 0, 1, 7, number + 1, synthetic.pid(3), 1, 1) for number in range(count)]
    run = imported(
        synthetic.write(
            tmp_path / "x.sqlite",
            {
                "StringIds": [(1, "k"), (100, "r")], "NVTX_EVENTS": synthetic.ranges([*nested, *crossing]),
                "CUPTI_ACTIVITY_KIND_RUNTIME": launches[:200], "CUPTI_ACTIVITY_KIND_KERNEL": work[:200],
            },
        )
    )  # fmt: skip
    assert len(run.table("spans")) == 2 * count
    assert len(projection.projected(run)) == 200


def test_many_threads_take_no_quadratic_time(tmp_path, imported):
    count = 5_000
    rows = [{"start": number, "end": number + 1, "globalTid": synthetic.tid(3, number), "textId": 1} for number in
            range(count)]  # fmt: skip
    calls = [(number, number + 1, 0, synthetic.tid(3, number), number + 1, 1, 0) for number in range(count)]
    tables = {"StringIds": [(1, "x")], "NVTX_EVENTS": synthetic.ranges(rows), "CUPTI_ACTIVITY_KIND_RUNTIME": calls}
    run = imported(synthetic.write(tmp_path / "x.sqlite", tables))
    assert run.table("spans")["thread"].nunique() == count


def test_a_table_that_says_it_has_more_rows_than_room_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "export"
    folder.mkdir()
    many = pa.table({"start": pa.DictionaryArray.from_arrays(pa.array([0] * 3_000_000, pa.int32()), pa.array([7]))})
    pq.write_table(many, folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    with pytest.raises(BadInput, match="too small"):
        import_file(folder, tmp_path / "run")


def test_hostile_names_stay_text_on_the_page(tmp_path, imported):
    who = {"globalTid": synthetic.tid(3, 4), "start": 0, "end": 90}
    names = [(1, EVIL), (2, f"void k<{EVIL}>()")]
    rows = [{**who, "text": EVIL}, {**who, "start": 1, "text": f"lock:{EVIL} wait", "domainId": 1},
            {**who, "start": 0, "eventType": synthetic.DOMAIN, "text": "cuzk", "domainId": 1}]  # fmt: skip
    tables = {
        "StringIds": names, "PROCESSES": [(synthetic.pid(3), 3, EVIL)], "ThreadNames": [(1, 1, synthetic.tid(3, 4))],
        "TARGET_INFO_GPU": [(0, EVIL, 1 << 30)], "NVTX_EVENTS": synthetic.ranges(rows),
        "META_DATA_CAPTURE": [("P:COMMAND", EVIL), ("CAPTURE_EVENT_TYPE", EVIL)],
        "META_DATA_EXPORT": [("EXPORT_PRODUCT_VERSION", EVIL), ("EXPORT_SCHEMA_VERSION", EVIL)],
        "TARGET_INFO_SYSTEM_ENV": [("CpuDescription", EVIL)], "DIAGNOSTIC_EVENT": [(0, f"lost {EVIL}")],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [(5, 6, 0, synthetic.tid(3, 4), 1, 1, 0)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [(20, 30, 0, 1, 7, 1, synthetic.pid(3), 2, 2)],
        "OSRT_API": [(7, 9, 27, synthetic.tid(3, 4), 1, 0)],
        "CUDA_GPU_MEMORY_USAGE_EVENTS": [(8, synthetic.pid(3), 0, 1, 64, 5, 0, EVIL, 1, None, None)],
    }  # fmt: skip
    run = imported(synthetic.write(tmp_path / f"{'x' * 20}<u>.sqlite", tables))
    shown = notebook_shows(run.path, tmp_path / "out")
    assert "evil.example" in shown  # it is shown, as text
    assert not re.search(r"<\s*(img|script|a href=.http|u>)", shown)
    shutil.rmtree(run.path)
