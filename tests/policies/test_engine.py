"""The engine's programs and the clean-up of a failed partition."""

import pytest

import cuzklab.policies as policies
from cuzklab.policies.effects import Acquire, Alloc, Fork, Free, Join, OutOfDeviceMemory, Pin, Release, Reserve
from cuzklab.policies.engine import EngineConfig, Outcome, engine_programs, guarded
from cuzklab.policies.model import Gpu, HostBuffer, Lock, Partition, Task, program
from cuzklab.stages import POREP_32G, partition_sizes

GPU = Gpu(0, 100)
SIZES = partition_sizes(POREP_32G)
PARTITION = Partition(0, 0, SIZES)


@program
def child():
    return
    yield


def drive(run, script):
    """Send results (or throw faults) into a program and list the effects that it yields."""
    running = run.start()
    effects = [next(running)]
    for answer in script:
        try:
            step = running.throw(answer) if isinstance(answer, Exception) else running.send(answer)
        except StopIteration as end:
            return effects, end.value
        effects.append(step)
    return effects, None


def test_a_failed_partition_gives_back_what_it_held_newest_first():
    @program
    def failing():
        yield Pin(HostBuffer("abc", 10))
        task = yield Fork(child())
        yield Acquire(Lock("mem"))
        yield Release(Lock("mem"))
        yield Reserve(GPU, 50)
        yield Alloc(GPU, "x", 60)
        yield Join(task)

    fault = OutOfDeviceMemory("x", 60, 90, 100)
    effects, outcome = drive(
        guarded(failing(), PARTITION), [None, Task("w0/child"), None, None, None, fault, None, None, None]
    )
    assert [type(effect).__name__ for effect in effects] == [
        "Pin", "Fork", "Acquire", "Release", "Reserve", "Alloc", "Unreserve", "Join", "Unpin",
    ]  # fmt: skip
    assert not outcome.ok
    assert outcome.fault is fault
    assert outcome.effect == Alloc(GPU, "x", 60)


def test_a_policy_may_catch_the_fault_and_go_on():
    @program
    def careful():
        try:
            yield Alloc(GPU, "x", 60)
        except OutOfDeviceMemory:
            buffer = yield Alloc(GPU, "x", 30)
            yield Free(buffer)

    effects, outcome = drive(guarded(careful(), PARTITION), [OutOfDeviceMemory("x", 60, 90, 100), "buffer", None])
    assert [type(effect).__name__ for effect in effects] == ["Alloc", "Alloc", "Free"]
    assert outcome == Outcome(PARTITION)


def test_the_engine_has_an_actor_for_each_worker():
    config = EngineConfig(2, 3, (Gpu(0, 100), Gpu(1, 100)), 2, 4, 2, 4)
    assert sorted(engine_programs(policies.load("phase9"), config, SIZES)) == [
        "collector", "gpu0.w0", "gpu0.w1", "gpu1.w0", "gpu1.w1", "source", "synth0", "synth1", "synth2", "synth3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "field", ["proofs", "partitions", "in_flight", "synthesis_workers", "gpu_workers", "lookahead"]
)
def test_an_engine_without_workers_or_work_is_refused(field):
    values = dict(proofs=1, partitions=1, gpus=(GPU,), in_flight=1, synthesis_workers=1, gpu_workers=1, lookahead=1)
    with pytest.raises(ValueError, match=field):
        EngineConfig(**(values | {field: 0}))


def test_policies_are_found_by_name_with_their_intent_and_options():
    assert {"phase8", "phase9", "phase10_nested", "phase10_ordered"} <= set(policies.names())
    for name in policies.names():
        policy = policies.load(name)
        assert policy.title.startswith(("Phase", "Resident"))
    assert policies.load("phase10_nested", on_full="wait").options == {"on_full": "wait"}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("phase99", {}, "no policy 'phase99'; there are:"),
        ("effects", {}, "no policy 'effects'"),
        ("nowhere.py", {}, "no such policy file"),
        ("phase9", {"depth": 1}, "has no option 'depth'"),
    ],
)
def test_unknown_policies_and_options_are_named(name, options, message):
    with pytest.raises(policies.UnknownPolicy, match=message):
        policies.load(name, **options)


def test_a_policy_of_the_users_is_loaded_from_its_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        '"""Mine: does nothing."""\nfrom cuzklab.policies.model import program\n\n'
        "@program\ndef prove_partition(p, gpu, depth: int = 1):\n    return\n    yield\n"
    )
    policy = policies.load(file, depth="3")
    assert (policy.name, policy.title, policy.options) == ("mine", "Mine: does nothing.", {"depth": 3})
    assert list(policy.prove_partition(PARTITION, GPU)) == []


def test_a_policy_file_with_an_error_says_so_on_one_line(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("def prove_partition(:\n")
    with pytest.raises(policies.UnknownPolicy, match=r"broken\.py: SyntaxError"):
        policies.load(file)
    file.write_text("x = 1\n")
    with pytest.raises(policies.UnknownPolicy, match="defines no function prove_partition"):
        policies.load(file)
