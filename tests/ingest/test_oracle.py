"""Every figure that NVIDIA's own `nsys stats` prints for the captures, to the nanosecond.

Where the definitions differ, the difference is one of `DIFFERENCES`, which `cuzklab/ingest/README.md` explains; a test
holds the two lists together.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

from cuzklab import ingest
from cuzklab.analysis import projection
from cuzklab.ingest.nsys.calls import plain_name
from cuzklab.ingest.privacy import Texts

CAPTURES = (
    "2021_mordred_futex_osrt", "2022.4_nvtx_startend_domains_no_cuda", "2025.3_cupy_power_iteration_nvtx",
    "h200_cupy_vram_2025.3", "h200_three_workers_one_lock_2025.3", "local_pthread_locks.schema-3.0.0",
    "local_pthread_locks.schema-3.7.2", "local_python_locks.schema-3.0.0", "local_python_locks.schema-3.7.2",
)  # fmt: skip
DIFFERENCES = (
    "names of API calls", "long names of kernels", "names of copies", "calls across a range's end",
    "work of start/end ranges", "locks",
)  # fmt: skip
_COPIES = {"Device-to-Host": "d2h", "Host-to-Device": "h2d", "Device-to-Device": "d2d"}


def oracle(shared_data: Path, capture: str, report: str) -> pd.DataFrame:
    """A report of `nsys stats`; skips where NVIDIA's tool printed none."""
    return pd.read_csv(shared_data / "nsys" / "oracle" / f"{capture}.{report}.csv")


def having(report: str) -> list[str]:
    """Captures for which the report exists (read from the folder, so that none is forgotten)."""
    from tests.conftest import find_shared_data

    folder = find_shared_data()
    if folder is None:
        return ["(no shared data)"]
    return sorted(file.name.removesuffix(f".{report}.csv") for file in (folder / "nsys/oracle").glob(f"*.{report}.csv"))


def sums(rows: pd.DataFrame, names: str, start: str = "start", end: str = "end") -> pd.DataFrame:
    """Total, count, extremes and median by name."""
    lengths = (rows[end] - rows[start]).groupby(rows[names])
    table = lengths.agg(["sum", "size", "min", "max", "median"])
    return table.sort_index()


def stated(table: pd.DataFrame, names: pd.Series, count: str) -> pd.DataFrame:
    """The same columns of a report; rows whose names become equal are refused."""
    assert names.is_unique
    columns = {"Total Time (ns)": "sum", count: "size", "Min (ns)": "min", "Max (ns)": "max", "Med (ns)": "median"}
    return table.set_axis(names).rename(columns=columns)[list(columns.values())].sort_index()


def equal(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    assert list(ours.index) == list(theirs.index)
    for column in ("sum", "size", "min", "max"):
        assert ours[column].tolist() == theirs[column].tolist(), column
    # A report prints medians to a tenth of a nanosecond.
    assert ours["median"].round(1).tolist() == theirs["median"].tolist()


@pytest.mark.parametrize("capture", having("cuda_api_sum"))
def test_api_calls(captured, shared_data, capture):
    theirs = oracle(shared_data, capture, "cuda_api_sum")
    rows = captured(capture).table("api_calls")
    equal(
        sums(rows[rows["api"].isin(("runtime", "driver"))], "name"),
        stated(theirs, theirs["Name"].map(plain_name), "Num Calls"),
    )


@pytest.mark.parametrize("capture", having("osrt_sum"))
def test_libc_calls(captured, shared_data, capture):
    theirs = oracle(shared_data, capture, "osrt_sum")
    rows = captured(capture).table("api_calls")
    equal(sums(rows[rows["api"] == "os"], "name"), stated(theirs, theirs["Name"], "Num Calls"))


@pytest.mark.parametrize("capture", having("cuda_gpu_kern_sum"))
def test_kernels(captured, shared_data, capture):
    theirs = oracle(shared_data, capture, "cuda_gpu_kern_sum")
    equal(sums(captured(capture).table("kernels"), "name"), stated(theirs, theirs["Name"].map(Texts()), "Instances"))


@pytest.mark.parametrize("capture", having("cuda_gpu_mem_time_sum"))
def test_copies(captured, shared_data, capture):
    theirs = oracle(shared_data, capture, "cuda_gpu_mem_time_sum")
    names = theirs["Operation"].map(lambda words: _COPIES[re.search(r"memcpy (\S+)\]", words)[1]])
    equal(sums(captured(capture).table("transfers"), "direction"), stated(theirs, names, "Count"))


@pytest.mark.parametrize("style", ["push_pop", "start_end"])
@pytest.mark.parametrize("capture", sorted({*having("nvtx_pushpop_sum"), *having("nvtx_startend_sum")}))
def test_ranges(captured, shared_data, capture, style):
    report = {"push_pop": "nvtx_pushpop_sum", "start_end": "nvtx_startend_sum"}[style]
    spans = captured(capture).table("spans")
    spans = spans[spans["style"] == style]
    if capture not in having(report):
        assert spans.empty
        return
    theirs = oracle(shared_data, capture, report)
    equal(
        sums(spans.assign(range=projection.qualified(spans["domain"], spans["name"])), "range"),
        stated(theirs, theirs["Range"], "Instances"),
    )


@pytest.mark.parametrize("capture", having("nvtx_gpu_proj_trace"))
def test_projection_of_every_range(captured, shared_data, capture):
    theirs = oracle(shared_data, capture, "nvtx_gpu_proj_trace")
    blank = theirs[theirs["Name"].isna()]
    theirs = theirs.dropna(subset=["Name"]).sort_values(["Orig Start (ns)", "Lvl"], ignore_index=True)
    ours = projection.projected(captured(capture))
    assert projection.qualified(ours["domain"], ours["range"]).tolist() == theirs["Name"].tolist()
    for mine, column in (
        ("gpu_start_ns", "Projected Start (ns)"), ("span_ns", "Projected Duration (ns)"),
        ("start_ns", "Orig Start (ns)"), ("duration_ns", "Orig Duration (ns)"), ("operations", "NumGPUOps"),
        ("depth", "Lvl"), ("children", "NumChild"), ("process", "PID"),
    ):  # fmt: skip
        assert ours[mine].tolist() == theirs[column].tolist(), column
    (left,) = projection.outside(captured(capture)).to_dict("records")
    (row,) = blank.to_dict("records")
    assert (left["gpu_start_ns"], left["span_ns"], left["operations"]) == (
        row["Projected Start (ns)"], row["Projected Duration (ns)"], row["NumGPUOps"],
    )  # fmt: skip


@pytest.mark.parametrize("capture", having("nvtx_gpu_proj_sum"))
def test_projection_by_name(captured, shared_data, capture):
    theirs = oracle(shared_data, capture, "nvtx_gpu_proj_sum").sort_values("Range", ignore_index=True)
    ours = projection.by_name(captured(capture)).sort_values("range", ignore_index=True)
    for mine, column in (
        ("range", "Range"), ("span_total_ns", "Total Proj Time (ns)"), ("duration_total_ns", "Total Range Time (ns)"),
        ("count", "Range Instances"), ("operations", "Total GPU Ops"),
    ):  # fmt: skip
        assert ours[mine].tolist() == theirs[column].tolist(), column


def test_every_report_of_the_oracle_is_compared(shared_data):
    compared = {
        "cuda_api_sum", "osrt_sum", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "nvtx_pushpop_sum",
        "nvtx_startend_sum", "nvtx_gpu_proj_trace", "nvtx_gpu_proj_sum",
    }  # fmt: skip
    reports = {file.name.split(".")[-2] for file in (shared_data / "nsys" / "oracle").glob("*.csv")}
    assert reports == compared
    assert {file.stem for file in (shared_data / "nsys").glob("*.sqlite")} == set(CAPTURES)


def test_every_difference_is_explained():
    page = (Path(ingest.__file__).parent / "README.md").read_text()
    section = page.split("## Where our figures differ from NVIDIA's")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE)) == DIFFERENCES
