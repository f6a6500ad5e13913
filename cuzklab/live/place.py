"""Where a live run executes: an emulated device on the CPU, or a real GPU that plays a card of less memory."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cuzklab.backends.device import Device
from cuzklab.backends.emulated import EmulatedDevice
from cuzklab.errors import BadInput
from cuzklab.live.circuit import (
    GPU_FROM_LOG2_DOMAIN,
    Maker,
    TestCircuit,
    check_size,
    circuit_made_by,
    circuit_with_test_key,
    given_up_bytes,
    is_remembered,
)
from cuzklab.live.footprint import ROOM_FOR_TAILS, Batch
from cuzklab.live.machine_memory import Room, host_room
from cuzklab.live.stages import Means
from cuzklab.profiles import Hardware, load_hardware
from cuzklab.prover.setup import Progress
from cuzklab.prover.stages import DenseKey
from cuzklab.stages import CircuitShape, DeviceModel
from cuzklab.units import MiB, format_size

MARGIN_BYTES = 512 * MiB
"""What an engine leaves free of a 16 GiB card when it decides by the amount of free memory."""


@dataclass(frozen=True)
class Place:
    """A kind of device, and how stages are carried out there.

    Attributes
    ----------
    backend : {"host", "cuda"}
    hardware, title : str
        Short name for conditions, full name for people.
    vram_bytes, margin_bytes : int
        Memory of the card and what an engine leaves free of it; a run gets both in proportion to its circuit.
    card_bytes : int or None
        Memory that is really there; None where nothing but the host's memory limits it.
    model : DeviceModel
        What the formulas of the stages' sizes depend on.
    devices : (count, limit_bytes) -> tuple of Device
        Ready for a run, to be closed after it.
    prepare : (key, shape, devices, partitions) -> key
        Before the timed part: bring the key, the kernels and the memory of so many partitions at a time into the state
        that they are in while an engine runs.
    means : (threads, devices) -> Means
    circuit : (log2_domain, seed, progress) -> TestCircuit
        What is proved there; `progress` is told what is being made and the share that is done, or is None.
    maker : (log2_domain) -> Maker or None
        The device that makes circuits and keys of that size, if not the CPU.
    inputs : mapping
        Hashes of the files that it rests on.
    notes : (threads, devices) -> tuple of str
        What a reader of its figures must know.
    facts : (device) -> mapping
        What is known of a device after a run.
    """

    backend: str
    hardware: str
    title: str
    vram_bytes: int
    margin_bytes: int
    card_bytes: int | None
    model: DeviceModel
    devices: Callable[[int, int], tuple[Device, ...]]
    prepare: Callable[[DenseKey, CircuitShape, tuple[Device, ...], int], DenseKey]
    means: Callable[[int, tuple[Device, ...]], Means]
    notes: Callable[[int, tuple[Device, ...]], tuple[str, ...]]
    circuit: Callable[[int, int, Progress | None], TestCircuit]
    maker: Callable[[int], Maker | None] = lambda log2_domain: None
    inputs: Mapping[str, str] = field(default_factory=dict)
    facts: Callable[[Device], Mapping[str, Any]] = lambda device: {}


def place(backend: str, hardware: Hardware | str | None) -> Place:
    """The place for a backend; an emulated device has a hardware profile, a real one is its own.

    Raises
    ------
    BadInput
        Unknown backend or profile, no usable GPU, or a profile for a real card.
    """
    if backend == "host":
        profile = "emulated" if hardware is None else hardware
        return _emulated(load_hardware(profile) if isinstance(profile, str) else profile)
    if backend != "cuda":
        raise BadInput(f"backend {backend!r}: a live run executes on host or cuda")
    if hardware is not None:
        raise BadInput("hardware: on the GPU the card itself is the hardware; limit its memory with vram instead")
    return _real()


def batch_at(where: Place, log2_domain: int, partitions: int, seed: int) -> Batch:
    """So many partitions of a circuit of this size, as what they take of the host's memory depends on the place.

    Raises
    ------
    BadInput
        Circuits of this size are not made there.
    """
    maker = where.maker(log2_domain)
    check_size(log2_domain, maker)
    return Batch(log2_domain, partitions, maker is not None, is_remembered(log2_domain, seed, maker))


def room_at(where: Place, log2_domain: int, seed: int, given_bytes: int | None) -> Room:
    """What a run may take of the host's memory: what the user gives, or what there is, and what is forgotten for it."""
    if given_bytes is not None:
        return Room(given_bytes, f"{format_size(given_bytes)} were given", hard=True)
    room, maker = host_room(), where.maker(log2_domain)
    more_bytes = 0 if maker is None else given_up_bytes(log2_domain, seed, maker)
    return replace(room, free_bytes=room.free_bytes + more_bytes)


def _emulated(hardware: Hardware) -> Place:
    def notes(threads: int, devices: tuple[Device, ...]) -> tuple[str, ...]:
        return (
            f"The device is emulated ({hardware.name}): kernels are the host backend's on {threads} of this machine's "
            "CPU threads, which CPU stages compete for; transfers last as long as the profile's link takes; memory is "
            "limited in proportion to the circuit's domain.",
        )

    return Place(
        backend="host",
        hardware=hardware.name,
        title=hardware.title,
        vram_bytes=hardware.device.vram_bytes,
        margin_bytes=hardware.device.margin_bytes,
        card_bytes=None,
        model=hardware.device.model,
        devices=lambda count, limit: tuple(EmulatedDevice(i, limit, hardware.transfer) for i in range(count)),
        prepare=lambda key, shape, devices, partitions: key,
        means=lambda threads, devices: Means(threads),
        notes=notes,
        circuit=lambda log2_domain, seed, progress: circuit_with_test_key(log2_domain, seed),
        inputs={f"hardware {hardware.name}": hardware.digest},
    )


def _real() -> Place:
    from cuzklab.backends.cuda.backend import CudaBackend
    from cuzklab.backends.cuda.card import card
    from cuzklab.backends.cuda.device import CudaDevice
    from cuzklab.backends.cuda.keys import CUDA_KEYS, release
    from cuzklab.backends.cuda.latency import launch_ns
    from cuzklab.backends.cuda.launch import cupy
    from cuzklab.backends.cuda.workspace import FLOOR_BYTES

    found, gpu, the_card = card(), CudaBackend(), Maker(cupy(), CUDA_KEYS, release)

    def maker(log2_domain: int) -> Maker | None:
        return the_card if log2_domain >= GPU_FROM_LOG2_DOMAIN else None

    def circuit(log2_domain: int, seed: int, progress: Progress | None) -> TestCircuit:
        if (by := maker(log2_domain)) is None:
            return circuit_with_test_key(log2_domain, seed)
        return circuit_made_by(by, log2_domain, seed, progress)

    def devices(count: int, limit_bytes: int) -> tuple[Device, ...]:
        if count > found.count:
            raise BadInput(f"gpus is {count}, but this machine has {found.count}")
        return tuple(CudaDevice(index, limit_bytes) for index in range(count))

    def prepare(key: DenseKey, shape: CircuitShape, devices: tuple[Device, ...], partitions: int) -> DenseKey:
        for device in devices:
            device.stream("warm").run(lambda: gpu.warm(key.domain)).wait()
            device.launch_ns = launch_ns(device)
            device.forget_peaks()
        # Page-locked memory for tails: an engine has it from its start, and the driver stops for whoever asks for more.
        widths = {"l": (4, 12), "a": (4, 12), "b_g1": (4, 12), "b_g2": (24,)}
        rows = {query: round(ROOM_FOR_TAILS * shape.tail(query)) for query in widths}
        kept = [
            devices[0].host_array(rows[query], width, pinned=True)
            for query in widths
            for width in widths[query]
            for _ in range(partitions)
        ]
        for array in kept:
            array[...] = 0  # its pages exist from now on
        return key.moved(devices[0].pinned_copy)

    def means(threads: int, devices: tuple[Device, ...]) -> Means:
        host = devices[0]
        return Means(threads, gpu, host.host_array, lambda *shape: host.host_array(*shape, pinned=True))

    def notes(threads: int, devices: tuple[Device, ...]) -> tuple[str, ...]:
        workspace = max(device.workspace_bytes for device in devices)
        physical = max(device.physical_bytes for device in devices)
        uncertainty_us = max(device.clock_uncertainty_ns for device in devices) / 1e3
        return (
            f"{found.title}, driver {found.driver}, CUDA {found.runtime}, CuPy {found.cupy}: kernels, copies and "
            f"page-locking are real. Times of the device are those of CUDA events, brought to the machine's clock "
            f"within ± {uncertainty_us:.1f} µs. A CPU stage has {threads} of {len(os.sched_getaffinity(0))} cores.",
            "The card plays one of less memory: buffers are allocated under the limit; scratch memory of a stage is "
            "set aside by the formulas of the modelled engine. The kernels' own temporaries have what buffers really "
            f"leave of the limit, or {format_size(FLOOR_BYTES)} where that is less: they took "
            f"{format_size(workspace)} at most, and {format_size(physical)} of the card were really in use at the "
            f"peak, where the card played has {format_size(devices[0].limit_bytes)}.",
            "The key's points are page-locked before the timed part, and stream to the device in each partition.",
        )

    return Place(
        backend="cuda",
        hardware=found.name,
        title=found.title,
        vram_bytes=found.memory_bytes,
        margin_bytes=MARGIN_BYTES,
        card_bytes=found.memory_bytes,
        model=DeviceModel(found.multiprocessors),
        devices=devices,
        prepare=prepare,
        means=means,
        notes=notes,
        circuit=circuit,
        maker=maker,
        facts=lambda device: {
            **found.facts(),
            "workspace_bytes": device.workspace_bytes,
            "physical_peak_bytes": device.physical_bytes,
            "clock_uncertainty_ns": device.clock_uncertainty_ns,
            "launch_latency_ns": device.launch_ns,
            "events_recorded": device.events.recorded,
        },
    )
