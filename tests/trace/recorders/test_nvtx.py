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


def test_a_profiler_sees_domain_category_and_payload(profiler, tmp_path):
    seen = tmp_path / "seen"
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(profiler), "NVTX_SEEN": str(seen)}
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, check=True, timeout=60)
    lines = seen.read_text().splitlines()
    categories = {line.split()[2]: line.split()[3] for line in lines if line.startswith("category")}
    assert lines[0] == "domain cuzk" and sorted(categories.values()) == ["cpu", "gpu", "transfer"]
    ranges = [line.split() for line in lines if line.split()[0] in ("push", "pop")]
    once = [["push", "synthesis", "cpu"], ["push", "ntt_h", "gpu"], ["push", "upload", "transfer", "4096"],
            ["pop"], ["pop"], ["pop"]]  # fmt: skip
    told = [[what, name[0], categories[name[1]], *name[2:]] if name else [what] for what, _, *name in ranges]
    assert told == once + once


def test_without_a_profiler_nothing_is_attached():
    assert not tool_attached()
