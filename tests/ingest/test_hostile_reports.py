"""Names in logs, traces and snapshots that try to become markup: none gets into a page."""

import json
import pickle

import pytest

from cuzklab.ingest import import_file
from cuzklab.trace.perfetto import export_perfetto
from tests.ingest.showing import notebook_shows
from tests.report.hostile import EVIL, hostile_run


def trace_events(folder):
    events = [
        {"ph": "X", "name": EVIL, "cat": category, "pid": EVIL, "tid": EVIL, "ts": 10 * place, "dur": 5,
         "args": {"stream": EVIL, "correlation": 1, "bytes": 5}}
        for place, category in enumerate((EVIL, "kernel", "gpu_memcpy", "cuda_runtime", "cpu_op"))
    ]  # fmt: skip
    events += [
        {"ph": "M", "name": "thread_name", "pid": EVIL, "tid": EVIL, "args": {"name": EVIL}},
        {"ph": "C", "name": EVIL, "pid": 1, "ts": 3, "args": {EVIL: 1, "b": 2}},
        {"ph": EVIL, "ts": 4},
    ]
    path = folder / "evil.json"
    path.write_text(json.dumps(events))
    return path


def exported(folder):
    run = hostile_run(folder)
    path = folder / "ours.json"
    export_perfetto(run, path)
    return path


def snapshot(folder):
    event = {"action": "alloc", "addr": 1, "size": 5, "stream": EVIL, "time_us": 1,
             "frames": [{"name": EVIL, "filename": EVIL, "line": 1}]}  # fmt: skip
    path = folder / "evil.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[event, {**event, "action": EVIL}]]}, 4))
    return path


def log(folder):
    path = folder / "evil.log"
    job = EVIL.replace(",", "")
    path.write_text(
        f"TIMELINE,1,GPU_START,{job},worker=0,partition=0\n{EVIL}\nCUZK_TIMING: prestage_setup={EVIL}\n"
        f"CUZK_TIMING: {EVIL}=1\nTIMELINE,9,GPU_END,{job},worker=0,partition=0,gpu_ms=8\n"
    )
    return path


@pytest.mark.slow
@pytest.mark.parametrize("make", [trace_events, exported, snapshot, log])
def test_hostile_names_stay_text_in_the_report(tmp_path, make):
    run = import_file(make(tmp_path), tmp_path / "run")
    shown = notebook_shows(run.path, tmp_path / "out")
    # Figures are JSON here; the page's writer escapes that. Everything else is markup already.
    markup = "\n".join(line for line in shown.split("\n") if not line.lstrip().startswith("{"))
    assert "<img" not in markup
    assert 'href="http://evil' not in markup.replace("&lt;a href", "")
    assert shown.count("cz-verdict") >= 1
