"""Every kind of device keeps the promises of a device; a real GPU is tested where there is one."""

import threading

import pytest

from cuzklab.backends import cuda
from cuzklab.backends.cuda.device import CudaDevice
from cuzklab.backends.emulated import EmulatedDevice
from tests.backends.device_contract import CONTRACT, LIMIT_BYTES
from tests.cuda_live import software_cupy
from tests.live.programs import RATES, FakeClock


def emulated():
    return EmulatedDevice(0, LIMIT_BYTES, RATES, FakeClock()), lambda memory: memory.array


def software():
    return CudaDevice(0, LIMIT_BYTES, software_cupy), lambda memory: memory.array


def real():
    if (reason := cuda.available()) is not None:
        pytest.skip(reason)
    return CudaDevice(0, LIMIT_BYTES), lambda memory: memory.array.get()


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("make", [emulated, software, pytest.param(real, marks=pytest.mark.gpu)])
def test_promise(make, promise):
    device, words = make()
    try:
        promise(device, words)
    finally:
        device.close()


def test_a_real_device_leaves_nothing_behind():
    locked = dict(software_cupy.runtime.locked)  # keys of other tests
    before = threading.active_count(), software_cupy.cuda.Memory.live
    for promise in CONTRACT:
        device, words = software()
        promise(device, words)
        device.close()
    assert (threading.active_count(), software_cupy.cuda.Memory.live) == before
    assert software_cupy.runtime.locked == locked
