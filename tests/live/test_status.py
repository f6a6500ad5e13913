"""What a live run says of itself while it goes on, and the pipe that it says it to."""

import json
import os

import pytest

from cuzklab.cli.engine import status_to
from cuzklab.errors import BadInput
from cuzklab.live import run_live
from cuzklab.live.status import StatusPipe


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue  # closed by the test


def test_states_name_workers_locks_memory_and_queues():
    states = []
    result = run_live(
        "phase9", 14, proofs=1, partitions=3, gpu_workers=2, vram_bytes=24 << 30, status=states.append
    )  # fmt: skip
    assert result.outcome == "ok"
    assert states
    assert {state["total"] for state in states} == {3}
    names = {actor["name"] for state in states for actor in state["actors"]}
    assert {"gpu0.w0", "gpu0.w1", "collector"} <= names
    for state in states:
        holders = {lock["name"]: lock["holder"] for lock in state["locks"]}
        for actor in state["actors"]:
            assert (actor["state"] == "waiting") == bool(actor["kind"])
            if actor["kind"] == "lock":
                assert actor["holders"] in ([], [holders[actor["on"]]])
        for device in state["devices"]:
            assert device["live_bytes"] == sum(buffer["bytes"] for buffer in device["buffers"])
            assert device["live_bytes"] <= device["limit_bytes"]


def test_a_pipe_that_nobody_empties_is_not_waited_for_and_states_stay_whole(pipe):
    reading, writing = pipe
    told = StatusPipe(writing)
    for number in range(100):
        told.write({"number": number, "much": "x" * 10_000})
    with os.fdopen(os.dup(reading), "rb") as file:
        os.set_blocking(file.fileno(), False)
        read = bytearray()
        for number in range(100, 400):
            told.write({"number": number, "much": "x" * 10_000})
            read += file.read(1 << 20) or b""
    numbers = [json.loads(line)["number"] for line in read.splitlines() if line.endswith(b"}")]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0 and numbers[-1] > 300 and len(numbers) < 400


def test_a_reader_that_is_gone_is_told(pipe):
    reading, writing = pipe
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        StatusPipe(writing).write({})


@pytest.mark.parametrize("descriptor", [1, 999])
def test_a_descriptor_that_is_no_pipe_is_refused(descriptor):
    with pytest.raises(BadInput, match=f"--status-fd {descriptor}"):
        status_to(descriptor)
