"""The engine's programs and the clean-up of a failed partition."""

import hashlib
from pathlib import Path

import pytest

import cuzklab.policies as policies
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Exchange,
    Fork,
    Free,
    Get,
    Join,
    OutOfDeviceMemory,
    Pin,
    Put,
    Release,
    Reserve,
)
from cuzklab.policies.engine import EngineConfig, Outcome, engine_programs, guarded
from cuzklab.policies.model import Buffer, Gpu, HostBuffer, Lock, Partition, Queue, Task, program
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


def test_buffers_that_were_put_into_a_slot_are_kept_and_those_taken_out_go_back():
    mine, theirs = (Buffer(name, 60, GPU, "w0", serial) for serial, name in enumerate(("mine", "theirs")))
    left, right = GPU.slot("left"), GPU.slot("right")

    @program
    def failing():
        buffer = yield Alloc(GPU, "mine", 60)
        yield Exchange(left, buffer)
        yield Exchange(right)
        yield Alloc(GPU, "x", 60)

    fault = OutOfDeviceMemory("x", 60, 90, 100)
    effects, outcome = drive(guarded(failing(), PARTITION), [mine, None, theirs, fault, None])
    assert effects[-2:] == [Alloc(GPU, "x", 60), Exchange(right, theirs)]
    assert outcome.fault is fault


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
    assert policies.names() == (
        "phase10_handoff", "phase10_nested", "phase10_ordered", "phase10_reservation", "phase10_ticket", "phase11",
        "phase12", "phase7", "phase8", "phase9", "resident", "sequential",
    )  # fmt: skip
    for name in policies.names():
        policy = policies.load(name)
        assert policy.title.startswith(("Phase", "Resident"))
        assert len(Path(policy.module.__file__).read_text().splitlines()) <= 80
    assert policies.load("phase10_nested", on_full="wait").options == {"on_full": "wait"}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("phase99", {}, "no policy 'phase99'; there are:"),
        ("effects", {}, "no policy 'effects'"),
        ("nowhere.py", {}, "no such policy file"),
        ("phase9", {"depth": 1}, "has no option 'depth'"),
        ("phase10_ordered", {"on_full": "maybe"}, "phase10_ordered: option on_full must be fail or wait, not 'maybe'"),
        ("phase10_handoff", {"leave": ""}, "option leave must be at_start or after_kernels"),
        ("phase11", {"throttle": "perhaps"}, "option throttle must be true or false, not 'perhaps'"),
        ("phase11", {"g2_threads": "many"}, "option g2_threads must be of type int, not 'many'"),
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


def test_a_file_that_is_called_as_a_shipped_policy_is_another_design(tmp_path):
    own = tmp_path / "phase9.py"
    own.write_text(Path(policies.load("phase9").module.__file__).read_text())
    assert policies.load(own).name == policies.name_of(str(own)) == "phase9 (phase9.py)"
    assert policies.load(own).digest == hashlib.sha256(own.read_bytes()).hexdigest() == policies.load("phase9").digest
    own.write_text(own.read_text() + "# edited\n")
    assert policies.load(own).digest != policies.load("phase9").digest
    with pytest.raises(policies.UnknownPolicy):  # what is stored in a run names no code that could be run
        policies.load(policies.load(own).name)


def test_the_file_of_a_shipped_policy_is_the_shipped_policy():
    shipped = policies.load("phase9")
    assert policies.load(shipped.module.__file__).name == "phase9"


def test_a_link_that_is_called_as_another_shipped_policy_than_it_leads_to_is_another_design(tmp_path):
    link = tmp_path / "phase9.py"
    link.symlink_to(policies.load("phase8").module.__file__)
    assert policies.load(link).name == "phase9 (phase9.py)"
    link.unlink()
    link.symlink_to(policies.load("phase9").module.__file__)
    assert policies.load(link).name == "phase9"


def test_a_text_that_is_called_as_a_shipped_policy_is_refused():
    with pytest.raises(policies.UnknownPolicy, match="cell phase9: a policy of that name is shipped"):
        policies.from_source("phase9", "", "cell phase9")


def test_a_policy_file_with_an_error_says_so_on_one_line(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("def prove_partition(:\n")
    with pytest.raises(policies.UnknownPolicy, match=r"broken\.py:1: SyntaxError: invalid syntax"):
        policies.load(file)
    file.write_text("x = 1\n")
    with pytest.raises(policies.UnknownPolicy, match="defines no function prove_partition"):
        policies.load(file)


# --- what a policy adds to the engine --------------------------------------------------------------------------------

CONFIG = EngineConfig(1, 2, (GPU,), 1, 3, 1, 2)


def effects_of(run, *answers):
    return drive(run, answers)[0]


def test_switches_are_given_as_words():
    for words, value in ((("true", "1", "on", True), True), (("False", "0", "no", False), False)):
        for word in words:
            assert policies.load("phase11", throttle=word).options == {"throttle": value}


def test_the_queue_is_as_long_as_the_policy_says():
    def capacity(name):
        (get,) = effects_of(engine_programs(policies.load(name), CONFIG, SIZES)["gpu0.w0"])
        assert isinstance(get, Get)
        return get.queue.capacity

    assert (capacity("phase11"), capacity("phase12"), capacity("resident")) == (2, 3, 3)


def test_synthesis_is_the_stage_or_what_the_policy_says():
    def synthesis(name, **options):
        run = engine_programs(policies.load(name, **options), CONFIG, SIZES)["synth0"]
        return [str(effect) for effect in effects_of(run, PARTITION, None, None)[1:]]

    assert synthesis("phase9")[0] == "Compute synthesis"
    assert synthesis("phase11")[:2] == ["WaitClear throttle", "Compute synthesis"]
    assert synthesis("phase11", throttle=False)[0] == "Compute synthesis"


def test_a_split_call_ends_in_a_finaliser_that_adopts_what_is_under_way(tmp_path):
    file = tmp_path / "split.py"
    file.write_text(
        '"""Split."""\nfrom cuzklab.policies.effects import Compute, Fork, Join\n'
        "from cuzklab.policies.common import prep\nfrom cuzklab.policies.model import program\n\n"
        "@program\ndef prove_partition(p, gpu, part='x'):\n    return (yield Fork(prep(p)))\n\n"
        "@program\ndef finish_partition(p, task, part):\n    yield Join(task)\n    yield Compute('epilogue', p, part)\n"
    )
    worker = engine_programs(policies.load(file, part="y"), CONFIG, SIZES)["gpu0.w0"]
    prep_thread, first, second = Task("w/prep"), Task("w/finaliser"), Task("w/finaliser#2")
    other = Partition(0, 1, SIZES)
    effects = effects_of(worker, PARTITION, prep_thread, first, other, prep_thread, second, None, None)
    # Nothing is put: the finalisers do that. The worker ends when the last finaliser has ended.
    assert [str(effect) for effect in effects] == [
        "Get synthesised", "Fork prep", "Fork finaliser", "Get synthesised", "Fork prep", "Fork finaliser",
        "Get synthesised", "Join w/finaliser#2",
    ]  # fmt: skip
    assert effects[2].adopts == effects[5].adopts == (prep_thread,)
    ends = effects_of(effects[5].program, None, None, None, None)
    assert [str(effect) for effect in ends] == ["Join w/prep", "Compute epilogue.y", "Put results", "Join w/finaliser"]
    assert ends[2] == Put(Queue("results"), Outcome(other))


def test_a_fault_before_the_finaliser_is_the_workers_to_report():
    worker = engine_programs(policies.load("phase12"), CONFIG, SIZES)["gpu0.w0"]
    fault = OutOfDeviceMemory("x", 60, 90, 100)
    effects = effects_of(worker, PARTITION, Task("w/prep"), None, fault, None, None, None)
    assert [str(effect) for effect in effects] == [
        "Get synthesised", "Fork prep", "Pin p0.0.abc", "Acquire gpu0.lock", "Unpin p0.0.abc", "Join w/prep",
        "Put results", "Get synthesised",
    ]  # fmt: skip
    assert effects[6].item.fault is fault
