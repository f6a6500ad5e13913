"""Whole engines on the device of the CUDA backend, its CUDA played by software and its kernels by the CPU's."""

import dataclasses
import threading

import pytest

from cuzklab.backends.cuda.device import CudaDevice
from cuzklab.errors import BadInput
from cuzklab.live import circuit as circuits
from cuzklab.live import engine, run_live
from cuzklab.live.place import place
from cuzklab.live.stages import Groth16, Means
from cuzklab.stages import STAGES, DeviceModel
from cuzklab.units import GiB
from tests.cuda_live import software_cupy

LOG2_DOMAIN = 10


@pytest.fixture
def software(monkeypatch):
    """Live runs on "cuda" execute on a `CudaDevice` without a GPU; the devices that were made."""
    made = []

    def devices(count, limit_bytes):
        made.extend(CudaDevice(index, limit_bytes, software_cupy) for index in range(count))
        return tuple(made)

    def there(backend, hardware):
        assert backend == "cuda" and hardware is None
        return dataclasses.replace(
            place("host", None),
            backend="cuda",
            hardware="software",
            devices=devices,
            prepare=lambda key, shape, devices, partitions: key.moved(devices[0].pinned_copy),
            means=lambda threads, devices: Means(
                threads,
                abc=devices[0].host_array,
                tails=lambda *shape: devices[0].host_array(*shape, pinned=True),
            ),
        )

    monkeypatch.setattr(engine, "place", there)
    return made


@pytest.mark.parametrize("policy", ["phase8", "phase9", "phase10_ordered", "phase12", "resident"])
def test_proofs_and_traces_are_those_of_the_emulated_device(policy, software, monkeypatch):
    conditions = {"proofs": 1, "partitions": 3, "gpu_workers": 2, "vram_bytes": 100 * GiB, "deadline_s": 60}
    before = software_cupy.cuda.Memory.live
    result = run_live(policy, LOG2_DOMAIN, backend="cuda", **conditions)
    assert (result.outcome, result.explanation, result.leaks) == ("ok", "", ())
    assert result.verified == (0,) and result.conditions["backend"] == "cuda"
    rows = result.recorder.rows
    assert [row.pinned for row in rows["transfers"] if row.bytes == circuit_sizes().abc] == [policy != "phase8"] * 3
    assert len(rows["kernels"]) == 3 * 9
    assert all(row.launch <= row.start <= row.end for row in rows["kernels"])
    assert all(row.issue <= row.start <= row.end for row in rows["transfers"])
    kept = sum(row.bytes for row in rows["vram"] if row.op == "alloc" and row.buffer == "d_a")
    assert rows["vram"][-1].live == (kept if policy == "resident" else 0)
    pins = [row for row in rows["spans"] if row.name == "pin"]
    if policy == "resident":  # page-locked once, and used again
        assert 1 <= len(pins) <= 3
    else:
        assert len(pins) == (0 if policy == "phase8" else 3)
    assert software_cupy.cuda.Memory.live == before

    monkeypatch.undo()
    emulated = run_live(policy, LOG2_DOMAIN, **conditions)
    for name, proof in emulated.partition_proofs.items():
        other = result.partition_proofs[name]
        assert [point.tobytes() for point in (proof.a, proof.b, proof.c)] == [
            point.tobytes() for point in (other.a, other.b, other.c)
        ]


def circuit_sizes():
    return circuits.circuit_with_test_key(LOG2_DOMAIN, 1).sizes(DeviceModel(1))


def test_memory_is_limited_as_on_the_emulated_device(software):
    result = run_live("phase8", LOG2_DOMAIN, backend="cuda", proofs=1, partitions=2, gpu_workers=2,
                      vram_bytes=12 * GiB + (1 << 29), deadline_s=60)  # fmt: skip
    assert result.outcome == "device_oom" and result.leaks == ()
    assert {failure.kind for failure in result.failures} == {"oom"}


def test_two_devices_share_the_work(software):
    result = run_live("phase9", LOG2_DOMAIN, backend="cuda", gpus=2, proofs=1, partitions=4, gpu_workers=1,
                      vram_bytes=80 * GiB, deadline_s=60)  # fmt: skip
    assert result.outcome == "ok" and result.verified == (0,)
    assert result.conditions["gpus"] == 2 and len(result.devices) == len(software) == 2
    assert {row.device for row in result.recorder.rows["kernels"]} <= {0, 1}
    assert {row.lock for row in result.recorder.rows["locks"]} <= {"gpu0.lock", "gpu1.lock"}
    assert set(STAGES) >= {row.span.partition(".")[0] for row in result.recorder.rows["kernels"]}


class Fails(software_cupy.cuda.Event):
    """An event of a device that a kernel's fault has taken along."""

    def synchronize(self):
        raise software_cupy.CUDARuntimeError(700)


def test_a_device_that_fails_is_one_line_and_leaves_no_thread(software, monkeypatch):
    before = threading.active_count()
    launch = Groth16.launch

    def breaks(self, *arguments):
        monkeypatch.setattr(software_cupy.cuda, "Event", Fails)
        launch(self, *arguments)

    monkeypatch.setattr(Groth16, "launch", breaks)
    with pytest.raises(BadInput, match=r"^CUDA: status 700; this ended the process's use of gpu0: start it anew$"):
        run_live("phase9", LOG2_DOMAIN, backend="cuda", proofs=1, partitions=2, gpu_workers=2,
                 vram_bytes=100 * GiB, deadline_s=60)  # fmt: skip
    assert threading.active_count() == before


def test_a_copy_that_fails_is_a_fault_of_the_run(software, monkeypatch):
    def refuses(*arguments):
        raise software_cupy.CUDARuntimeError(1)

    monkeypatch.setattr(software_cupy.runtime, "memcpyAsync", refuses)
    result = run_live("phase9", LOG2_DOMAIN, backend="cuda", proofs=1, partitions=1, gpu_workers=1,
                      vram_bytes=100 * GiB, deadline_s=60)  # fmt: skip
    assert result.outcome == "fault" and "failed: CUDARuntimeError: status 1" in result.explanation
