"""Counters are sampled as rows; what cannot be read is said, with the reason."""

import mmap
import queue
import threading
import types

import pytest

from cuzklab.trace.recorders.counters import (
    Sampler,
    Unreadable,
    depth_source,
    gpu_sources,
    host_memory_source,
    memory_bandwidth_source,
)


def test_a_queue_is_as_deep_as_it_is(recording):
    works = queue.Queue()
    sampler = Sampler([depth_source("works", works.qsize)], recording=recording)
    for depth in range(3):
        sampler.sample()
        works.put(depth)
    rows = recording.rows["counters"]
    assert [(row.name, row.value) for row in rows] == [("queue works", 0.0), ("queue works", 1.0), ("queue works", 2.0)]


def test_a_full_sampler_counts_what_it_drops(recording, tmp_path):
    sampler = Sampler([lambda: {"a": 1, "b": 2}], max_samples=3, recording=recording)
    sampler.sample()
    sampler.sample()
    assert sampler.lost == 1
    run = recording.write(tmp_path / "run")
    assert run.availability["counters"] == {"state": "lost", "rows": 3, "lost": 1}


def test_a_source_that_fails_is_dropped_and_told(recording):
    def broken():
        raise RuntimeError("gone")

    sampler = Sampler([broken, lambda: {"a": 1}], recording=recording)
    sampler.sample()
    sampler.sample()
    recording.stop()
    assert len(recording.rows["counters"]) == 2
    assert recording.notes == ("broken: failed and is sampled no more (RuntimeError: gone)",)


def test_sampling_in_the_background_ends_with_the_recording(recording):
    seen = threading.Event()
    sampler = Sampler([lambda: seen.set() or {"a": 1}], interval_s=0.001, recording=recording).start()
    assert seen.wait(10)
    recording.stop()
    assert not sampler._thread.is_alive()
    with pytest.raises(ValueError, match="more than 0"):
        Sampler([], interval_s=0, recording=recording)


def test_host_memory_is_that_of_this_process():
    with mmap.mmap(-1, 64 << 20) as fresh:  # an allocator might hand out memory that the process has touched before
        before = host_memory_source()
        fresh.write(b"x" * len(fresh))
        after = host_memory_source()
    assert after["process_resident_bytes"] - before["process_resident_bytes"] > 50 << 20
    assert after["host_available_bytes"] > 0


def test_bandwidth_is_bytes_by_time_where_the_kernel_counts_them(tmp_path):
    times = iter([10.0, 12.0])
    file = tmp_path / "mon_L3_00" / "mbm_total_bytes"
    file.parent.mkdir()
    file.write_text("1000\n")
    source = memory_bandwidth_source(tmp_path, lambda: next(times))
    file.write_text("5000\n")
    assert source() == {"host_memory_bytes_per_s": 2000.0}


@pytest.mark.parametrize("content", [None, "Unavailable\n"])
def test_bandwidth_that_cannot_be_read_says_why(tmp_path, recording, content):
    if content:
        file = tmp_path / "mon_L3_00" / "mbm_total_bytes"
        file.parent.mkdir()
        file.write_text(content)
    source = memory_bandwidth_source(tmp_path)
    assert isinstance(source, Unreadable)
    Sampler([source], recording=recording)
    recording.stop()
    assert recording.notes[0].startswith("host memory bandwidth: not captured (")


class NvmlError(Exception):
    pass


def nvml(gpus=1, broken=(), absent=False):
    """NVML at its boundary: the functions that are called, with NVIDIA's units."""

    def call(name, value):
        def answer(*_):
            if name in broken:
                raise NvmlError("Not Supported")
            return value

        return answer

    def init():
        if absent:
            raise NvmlError("NVML Shared Library Not Found")

    values = {
        "nvmlDeviceGetCount": gpus, "nvmlDeviceGetHandleByIndex": "handle", "nvmlDeviceGetPowerUsage": 345_000,
        "nvmlDeviceGetUtilizationRates": types.SimpleNamespace(gpu=87, memory=12),
        "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(used=5 << 30, free=1 << 30), "nvmlDeviceGetTemperature": 61,
        "nvmlDeviceGetPcieThroughput": 2_000, "nvmlDeviceGetClockInfo": 1_980,
    }  # fmt: skip
    return types.SimpleNamespace(
        NVMLError=NvmlError, nvmlInit=init, NVML_PCIE_UTIL_RX_BYTES=1, NVML_PCIE_UTIL_TX_BYTES=0,
        NVML_TEMPERATURE_GPU=0, NVML_CLOCK_SM=1, **{name: call(name, value) for name, value in values.items()},
    )  # fmt: skip


def test_each_gpu_has_its_counters_in_base_units():
    first, second = gpu_sources(nvml(2))
    assert first() == {
        "gpu0 utilisation_percent": 87.0, "gpu0 memory_utilisation_percent": 12.0, "gpu0 used_bytes": 5 << 30,
        "gpu0 free_bytes": 1 << 30, "gpu0 pcie_receive_bytes_per_s": 2e6, "gpu0 pcie_send_bytes_per_s": 2e6,
        "gpu0 power_w": 345.0, "gpu0 temperature_c": 61, "gpu0 sm_clock_hz": 1.98e9,
    }  # fmt: skip
    assert set(second()) == {name.replace("gpu0", "gpu1") for name in first()}


def test_what_a_card_does_not_tell_is_told():
    source, unreadable = gpu_sources(nvml(broken=("nvmlDeviceGetPowerUsage",)))
    assert "gpu0 power_w" not in source() and len(source()) == 8
    assert unreadable == Unreadable("gpu0 power", "NVML: Not Supported")


@pytest.mark.parametrize("it", [nvml(absent=True), nvml(0)])
def test_without_a_gpu_the_reason_is_told(it):
    (unreadable,) = gpu_sources(it)
    assert isinstance(unreadable, Unreadable) and "NVML" in unreadable.reason


def test_this_machine_answers_one_way_or_the_other():
    for source in gpu_sources():
        assert isinstance(source, Unreadable) or any(name.endswith("used_bytes") for name in source())
