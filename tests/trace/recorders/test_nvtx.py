"""NVTX ranges as a profiler gets them: an injection library, compiled against NVIDIA's headers, writes them down."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuzklab.trace.recorders.spans import tool_attached
from tests.conftest import ROOT

PROGRAM = """
import threading
from cuzklab.trace.recorders import span, span_with_payload
from cuzklab.trace.recorders.spans import tool_attached
assert tool_attached()

@span("synthesis")
def synthesis():
    with span("ntt_h", "gpu", 0), span_with_payload("upload", 4096, "transfer"):
        pass

synthesis()
synthesis()
"""


@pytest.fixture(scope="module")
def profiler(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    spec = importlib.util.find_spec("nvidia")
    headers = (
        [path for place in spec.submodule_search_locations for path in Path(place).glob("*/include")] if spec else []
    )
    headers = [path for path in headers if (path / "nvtx3" / "nvToolsExt.h").is_file()]
    if not compiler or not headers:
        message = "needs a C compiler and the headers of the package nvidia-nvtx"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    library = tmp_path_factory.mktemp("nvtx") / "injection.so"
    source = Path(__file__).with_name("injection.c")
    subprocess.run([compiler, "-shared", "-fPIC", f"-I{headers[0]}", str(source), "-o", str(library)], check=True)
    return library


LOCKS = """
import threading
from cuzklab.trace.recorders import Lock, RLock
lock, reentrant = Lock("gpu0"), RLock("r")
with lock:
    waiting = threading.Thread(target=lambda: lock.acquire(timeout=0.01))
    waiting.start()
    waiting.join()
lock.acquire()
threading.Thread(target=lock.release).start()
lock.acquire()
lock.release()
with reentrant, reentrant:
    pass
"""


def seen_by(profiler, place, program):
    """Kinds and fields of what a profiler is told, and the names of categories."""
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(profiler), "NVTX_SEEN": str(place)}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, timeout=60)
    lines = place.read_text().splitlines()
    categories = {line.split()[2]: line.split()[3] for line in lines if line.startswith("category")}
    ranges = [line.partition(" ") for line in lines if line.split()[0] in ("push", "pop", "start", "end")]
    return lines[0], categories, [(what, rest.split("|")) for what, _, rest in ranges]


def test_a_profiler_sees_domain_category_and_payload(profiler, tmp_path):
    first, categories, ranges = seen_by(profiler, tmp_path / "seen", PROGRAM)
    assert first == "domain cuzk" and sorted(categories.values()) == ["cpu", "gpu", "transfer"]
    once = [("push", "synthesis", "cpu"), ("push", "ntt_h", "gpu"), ("push", "upload", "transfer", "4096"),
            ("pop",), ("pop",), ("pop",)]  # fmt: skip
    told = [(what, it[1], categories[it[2]], *it[3:]) if len(it) > 1 else (what,) for what, it in ranges]
    assert told == once + once


def test_a_profiler_sees_waits_and_holds_by_the_names_that_importers_know(profiler, tmp_path):
    _, categories, ranges = seen_by(profiler, tmp_path / "seen", LOCKS)
    assert set(categories.values()) == {"lock"}
    told = [(what, it[1]) for what, it in ranges if len(it) > 1]
    assert told[:3] == [("start", "lock:gpu0 hold"), ("push", "lock:gpu0 wait"), ("end", "1")]
    assert ("start", "lock:r hold") in told and told[-1] == ("end", "4")
    assert [it for it in told if it[0] == "end"] == [("end", str(number)) for number in range(1, 5)]


def test_without_a_profiler_nothing_is_attached():
    assert not tool_attached()
