"""The whole engine under one policy, everywhere: urgent proofs overtake, a failure costs its own proof and nothing."""

import simpy

from cuzklab.backends.emulated import EmulatedDevice
from cuzklab.check import explore
from cuzklab.live.run import Run
from cuzklab.policies import effects as e
from cuzklab.policies.engine import EngineConfig, Urgent, engine_programs, failure_of
from cuzklab.policies.model import Gpu, Priority, program
from cuzklab.simulate.costs import Machine
from cuzklab.simulate.forced import something_left
from cuzklab.simulate.interpreter import Interpreter
from cuzklab.stages import PartitionSizes
from cuzklab.trace.recorders import Recording
from tests.live.programs import RATES, FakeClock, SmallWorkload
from tests.simulate.conftest import SHAPE, toy_hardware

SIZES, LARGE = PartitionSizes(960, 320, 640, {}), PartitionSizes(960, 320, 900, {})


class TwoBuffers:
    """A policy of few steps, with a lock, a pinned buffer, a thread beside it, and two buffers that may not fit."""

    name = "two buffers"

    @staticmethod
    def has(hook):
        return False

    @staticmethod
    @program
    def prove_partition(p, gpu):
        yield e.Pin(p.abc)
        task = yield e.Fork(TwoBuffers.beside(p))
        yield e.Acquire(gpu.lock)
        d_a = yield e.Alloc(gpu, "d_a", p.sizes.d_a, p)
        d_bc = yield e.Alloc(gpu, "d_bc", p.sizes.d_bc, p)
        yield e.Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
        yield e.Free(d_bc)
        yield e.Free(d_a)
        yield e.Release(gpu.lock)
        yield e.Unpin(p.abc)
        yield e.Join(task)

    @staticmethod
    @program
    def beside(p):
        yield e.Compute("prep_msm", p)


def config(gpus=1, proofs=1, partitions=2, workers=1, urgent=()):
    devices = tuple(Gpu(index, 1000, 10) for index in range(gpus))
    return EngineConfig(proofs, partitions, devices, proofs, 1, workers, 1, urgent)


def live(engine):
    clock = FakeClock()
    devices = tuple(EmulatedDevice(gpu.index, gpu.vram_bytes, RATES, clock) for gpu in engine.gpus)
    ended = Run(devices, SmallWorkload(), Recording(clock.now_ns)).execute(programs(engine), deadline_s=60)
    assert (ended.outcome, ended.leaks) == ("ok", ())
    assert all(device.live == frozenset() for device in devices)
    return ended.results["collector"]


def simulated(engine):
    interpreter = Interpreter(Machine(simpy.Environment(), toy_hardware(), SHAPE))
    ending = interpreter.run(programs(engine))
    assert (ending.stuck, ending.faults) == ((), {})
    assert not something_left(interpreter.world)
    return ending.results["collector"]


def programs(engine):
    return engine_programs(TwoBuffers, engine, SIZES)


def checked(engine):
    """Every schedule: nobody waits for ever, nothing leaks, no fault goes unheard."""
    found = explore({name: (one,) for name, one in programs(engine).items()}, shortest=False)
    assert (found.verdict, found.complete, found.outcomes) == ("safe", True, {"ok"})
    return found


def test_a_failed_partition_fails_its_proof_and_nothing_else_everywhere():
    # The urgent proof's second buffer fits on no device; the batch goes on as if it had not been there.
    engine = config(urgent=(Urgent("large", LARGE),))
    for outcomes in (live(engine), simulated(engine)):
        assert {outcome.partition.name: outcome.ok for outcome in outcomes} == {
            "p0.0": True,
            "p0.1": True,
            "p1.0": False,
        }
        (failed,) = [failure_of(outcome) for outcome in outcomes if not outcome.ok]
        assert (failed.proof, failed.partition, failed.kind) == (1, "p1.0", "oom")
        assert (failed.effect, failed.worker) == ("Alloc gpu0 d_bc 900 B", "gpu0.w0")
        assert failed.message == (
            "large proof 1, partition 0, at Alloc gpu0 d_bc 900 B, by gpu0.w0: d_bc needs 900 B, but 320 B of 1000 B "
            "are in use"
        )
    assert any("d_bc 900 B" in line for line in checked(engine).caught)


def test_urgent_proofs_overtake_everywhere():
    # One worker of each kind and a queue of one: of six partitions some are queued when the first is done.
    urgent = (Urgent("window", SIZES, 1, Priority.HIGH, after=1), Urgent("winning", SIZES, 1, after=1))
    engine = config(proofs=2, partitions=3, urgent=urgent)
    order = [outcome.partition.name for outcome in simulated(engine)]
    assert sorted(order) == ["p0.0", "p0.1", "p0.2", "p1.0", "p1.1", "p1.2", "p2.0", "p3.0"]
    # What had begun is not interrupted: one is on the device and one was synthesised already.
    assert order.index("p3.0") < order.index("p2.0") <= 4
    real = [outcome.partition.name for outcome in live(engine)]
    assert sorted(real) == sorted(order)
    assert real.index("p3.0") > 0  # it arrives with the first outcome; how soon depends on when its thread runs
    checked(config(partitions=2, urgent=(Urgent("winning", SIZES, 1, after=1),)))


def test_every_device_has_its_own_lock_and_workers():
    engine = config(gpus=2, proofs=2, partitions=2)
    for outcomes in (live(engine), simulated(engine)):
        assert all(outcome.ok for outcome in outcomes) and len(outcomes) == 4
    checked(config(gpus=2, partitions=2))
