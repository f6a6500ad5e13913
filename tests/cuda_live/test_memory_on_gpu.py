"""Host memory of a live run on a real GPU, against what was told before it began. Needs a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cuzklab.backends import cuda

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import gc, json, sys
from cuzklab import policies
from cuzklab.live import run_live
from cuzklab.live.footprint import Batch, Engine, host_footprint, most_under_way

log2_domain, partitions, workers = map(int, sys.argv[1:])

def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) << 10

def run():
    return run_live(
        "phase9", log2_domain, proofs=1, partitions=partitions, gpu_workers=workers, backend="cuda", threads=4,
        vram_bytes=16 << 30,
    )

before = status("VmRSS")  # Python and its libraries; the driver is yet to come
outcomes = [run().outcome]
peaks = [status("VmHWM") - before]
outcomes.append(run().outcome)  # circuit and key are remembered
peaks.append(status("VmHWM") - before)
under_way = most_under_way(policies.load("phase9"), partitions, workers, 1, 1)
parts = host_footprint([Batch(log2_domain, partitions, made_on_gpu=True)], Engine(under_way, workers, 4, None))
print(json.dumps({"outcomes": outcomes, "peaks": peaks, "parts": parts}))
"""


def test_what_is_resident_is_what_was_told_and_a_second_run_takes_no_more():
    if (reason := cuda.available()) is not None:
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "22", "2", "1"], capture_output=True, text=True, cwd=ROOT, timeout=240,
        check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    print(found)
    assert found["outcomes"] == ["ok", "ok"]
    # These are there at the same time, whatever else is.
    certain = sum(found["parts"][name] for name in ("key", "circuit", "witnesses", "tails"))
    assert certain <= found["peaks"][0] <= sum(found["parts"].values())
    # Nothing of the first run is left: not its a, b and c, nor its tails.
    assert found["peaks"][1] - found["peaks"][0] < found["parts"]["a, b, c"] / 2
