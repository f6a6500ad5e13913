"""A machine and a circuit with round numbers, so that virtual times can be worked out by hand."""

from types import SimpleNamespace

import pytest
import simpy

from cuzklab.policies.model import Gpu, Partition, program
from cuzklab.profiles import Device, Engine, Hardware, Host, StageNumbers, TransferRates
from cuzklab.simulate.costs import Machine
from cuzklab.simulate.interpreter import Interpreter
from cuzklab.stages import CircuitShape, PartitionSizes

SHAPE = CircuitShape("toy", 60, 50, 4, 50, 20, 100, 0.5)  # domain 64; a, b, c take 5760 B, the H query 6144 B
S = 1_000_000_000


def toy_hardware(memory_share=None, spread=None, pin_excludes_kernels=False, kernels_on_host=False, **host) -> Hardware:
    """Stages alone: synthesis 1 s, prep_msm 2 s, ntt_h 1 s, h_msm 2 s of kernels and 1 s of streaming, the G2 MSM 1 s
    on 4 threads, epilogue 0.5 s. a, b, c: pin 1 s, unpin 0.5 s, pinned copy 0.9375 s, pageable copy 2 s."""
    return Hardware(
        name="toy", title="toy", source="by hand",
        host=Host(**{
            "cores": 4, "threads_per_core": 1, "smt_yield": 1.0, "llc_bytes": 10**9, "memory_bytes": 10**9,
            "reserved_bytes": 0, "memory_bandwidth_bytes_per_s": 1e15, "memory_efficiency": 1.0,
            "overload_exponent": 1.0, "cache_pressure": 0.0, "first_touch_s_per_byte": 0.0, "dealloc_s_per_byte": 0.0,
            "source": "by hand",
        } | host),
        device=Device(1000, 10, 1, 0.25, 0.5, 0.0, 0.125, 0.0625, "by hand", kernels_on_host),
        transfer=TransferRates(6144.0, 2880.0, 1 / 5760, 0.5 / 5760, "by hand", pin_excludes_kernels),
        engine=Engine(1.0, "by hand"),
        rates=StageNumbers(
            {
                "synthesis": 100.0, "prep_msm": 60.0, "ntt_h": 1344.0, "h_msm": 32.0, "batch_add": 1e9,
                "tail_msm": 1e9, "b_g2_msm": 10.0, "epilogue": 2.0,
            },
            "by hand",
        ),
        threads=StageNumbers({"b_g2_msm": 4}, "by hand"),
        spread=StageNumbers(spread, "by hand") if spread else None,
        memory_share=StageNumbers(memory_share, "by hand") if memory_share else None,
    )  # fmt: skip


class Toy(SimpleNamespace):
    """Runs programs given as generator functions without arguments, and keeps what there was."""

    gpu = Gpu(0, 1000, 10)
    shape = SHAPE

    def partition(self, index: int = 0, **scratch: int) -> Partition:
        sizes = {(stage, ""): size_bytes for stage, size_bytes in scratch.items()}
        return Partition(0, index, PartitionSizes(5760, 300, 600, sizes))

    def run(self, hardware: Hardware | None = None, **functions):
        machine = Machine(simpy.Environment(), hardware or toy_hardware(), SHAPE)
        self.interpreter = Interpreter(machine)
        self.ending = self.interpreter.run({name: program(function)() for name, function in functions.items()})
        self.rows = self.interpreter.tracer.recorder.rows
        return self.ending

    def spans(self) -> list[tuple[str, str, float, float]]:
        return [(row.thread, row.name, row.start / S, row.end / S) for row in self.rows["spans"]]

    def waits(self) -> list[tuple[str, str, str, str, float, float]]:
        return [(row.worker, row.kind, row.on, row.holder, row.start / S, row.end / S) for row in self.rows["waits"]]


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def hardware_with():
    """`toy_hardware` with other numbers of the host."""
    return toy_hardware
