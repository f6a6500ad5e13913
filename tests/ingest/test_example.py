"""The documented C++ engine: compiles against the published headers, runs, and what it says becomes a post-mortem."""

import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from cuzklab import ingest
from cuzklab.analysis import calls, capture, locks
from tests.ingest import synthetic

EXAMPLE = Path(ingest.__file__).parent / "example" / "engine.cpp"
LISTENER = Path(__file__).with_name("listener.c")
PROCESS = 77


def headers() -> Path:
    """The folder of headers that the wheel nvidia-nvtx installs."""
    found = [file for file in metadata.files("nvidia-nvtx") if file.name == "nvtx3.hpp"]
    return Path(found[0].locate()).resolve().parents[1]


def compiler(name: str) -> list[str]:
    if shutil.which(name):
        return [name]
    import sys

    return [sys.executable, "-m", "ziglang", "c++" if name == "g++" else "cc"]


def build(folder: Path, source: Path, name: str, *options: str) -> Path:
    tool = compiler("g++" if source.suffix == ".cpp" else "gcc")
    target = folder / name
    command = [*tool, "-O1", "-pthread", f"-I{headers()}", *options, str(source), "-ldl", "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=110)
    return target


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    return build(folder, EXAMPLE, "engine", "-std=c++17", "-Wall", "-Wextra", "-Werror")


def as_export(log: Path, target: Path) -> Path:
    """What the listener wrote as an export of Nsight Systems."""
    rows, stacks = [], {}
    for text in log.read_text().splitlines():
        kind, thread, at, domain, category, payload, words = text.split("\t")
        where = {"globalTid": synthetic.tid(PROCESS, int(thread)), "domainId": int(domain), "start": int(at)}
        if kind in ("domain", "category"):
            event = synthetic.DOMAIN if kind == "domain" else synthetic.CATEGORY
            rows.append({**where, "eventType": event, "text": words, "category": int(category) or None})
        elif kind == "push":
            row = {**where, "text": words, "category": int(category) or None}
            row["int64Value"] = None if payload == "-" else int(payload)
            rows.append(row)
            stacks.setdefault((thread, domain), []).append(row)
        else:
            stacks[thread, domain].pop()["end"] = int(at)
    assert not any(stacks.values())
    return synthetic.write(target, {"NVTX_EVENTS": synthetic.ranges(rows)})


def test_it_runs_without_a_profiler(engine):
    done = subprocess.run([engine], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "12 partitions, 1080000 steps\n"


def test_its_ranges_become_locks_stages_and_calls(engine, tmp_path, imported):
    listener = build(tmp_path, LISTENER, "listener.so", "-shared", "-fPIC")
    log = tmp_path / "log"
    subprocess.run(
        [engine], check=True, capture_output=True, timeout=60,
        env={**os.environ, "NVTX_INJECTION64_PATH": str(listener), "NVTX_LISTENER_OUT": str(log)},
    )  # fmt: skip
    run = imported(as_export(log, tmp_path / "engine.sqlite"))
    uses = locks.uses(run)
    assert len(uses) == 12
    assert set(uses["lock"]) == {"gpu"}
    assert not uses["given_up"].any() and not uses["held_to_end"].any()
    partitions = {f"p{proof}.{part}" for proof in range(3) for part in range(4)}
    assert set(uses["partition"]) == partitions
    # One lock: holds do not overlap, but for the time between the end of a range and the call of unlock.
    spans = run.table("spans")
    work = spans[spans["name"] == "ntt_h"].sort_values("start")
    assert (work["start"].to_numpy()[1:] >= work["end"].to_numpy()[:-1]).all()
    assert set(work["category"]) == {"gpu"}
    assert set(spans.loc[spans["name"].isin(("prep_msm", "b_g2_msm")), "category"]) == {"cpu"}
    called = calls.calls(run)
    assert set(called["partition"]) == partitions
    assert called["lock_wait_ns"].sum() == uses["wait_ns"].sum()
    assert capture.findings(run)[0].id == "lock_waits"


def test_the_page_shows_code_that_is_in_the_example():
    page = (EXAMPLE.parents[1] / "README.md").read_text()
    shown = re.search(r"```cpp\n(.*?)```", page, re.DOTALL)[1]
    assert "lock:gpu wait" in shown
    for line in ("struct cuzk", "#include <nvtx3/nvtx3.hpp>"):
        assert line in shown and line in EXAMPLE.read_text()


@pytest.mark.slow
def test_the_code_of_the_page_compiles(tmp_path):
    page = (EXAMPLE.parents[1] / "README.md").read_text()
    shown = re.search(r"```cpp\n(.*?)```", page, re.DOTALL)[1]
    source = tmp_path / "page.cpp"
    source.write_text(shown + "\nint main() { std::mutex m; { gpu_lock held{m}; } return 0; }\n")
    program = build(tmp_path, source, "page", "-std=c++17", "-Wall", "-Werror")
    subprocess.run([program], check=True, timeout=60)
