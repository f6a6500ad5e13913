"""Small systems of programs that every interpreter can run, and a scheduler that runs them on the model itself."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuzklab.policies import effects as e
from cuzklab.policies.model import Flag, Gpu, Lock, Partition, Program, Queue, Semaphore, program
from cuzklab.stages import PartitionSizes

GPU = Gpu(0, 1000, margin_bytes=10)
P = Partition(0, 0, PartitionSizes(960, 320, 640, {("h_msm", ""): 300}))
LOCKS = (Lock("red"), Lock("blue"))
BELL, BOX, FLAG, SLOT = Semaphore("bell"), Queue("box", 1), Flag("flag"), GPU.slot("kept")


@program
def script(*steps: tuple[Any, ...]):
    """Steps by name, their results; buffers and tasks are given back by `free` and `join`, newest first."""
    results, buffers, tasks = [], [], []
    for name, *arguments in steps:
        match name:
            case "alloc":
                size, options = arguments
                try:
                    buffers.append((yield e.Alloc(GPU, f"b{size}", size, **dict(options))))
                    results.append(buffers[-1])
                except e.OutOfDeviceMemory as full:
                    if size % 2:
                        raise
                    results.append(str(full))
            case "free":
                if buffers:
                    yield e.Free(buffers.pop(), device_wide=arguments[0])
            case "keep":
                if buffers and (before := (yield e.Exchange(SLOT, buffers.pop()))) is not None:
                    buffers.append(before)
            case "take":
                if (before := (yield e.Exchange(SLOT))) is not None:
                    buffers.append(before)
                results.append(before)
            case "launch":
                yield e.Launch(GPU, "h_msm", P, uses=tuple(buffers[:1]))
            case "upload":
                if buffers:
                    stream = P.stream(GPU, "upload")
                    yield e.Upload(P.abc, tuple(buffers[:1]), stream, P)
                    yield e.WaitEvent((yield e.RecordEvent(stream)), P.stream(GPU, "compute"))
            case "fork":
                tasks.append((yield e.Fork(script(*arguments[0]), "child")))
                results.append(tasks[-1])
            case "fork_adopting":
                tasks[-1:] = [(yield e.Fork(script(*arguments[0]), "heir", adopts=tuple(tasks[-1:])))]
            case "join":
                if tasks:
                    yield e.Join(tasks.pop())
            case "ring":
                yield e.Notify(BELL)
            case _:
                results.append((yield _SIMPLE[name](*arguments)))
    return results


_SIMPLE: Mapping[str, Callable[..., e.Effect]] = {
    "acquire": lambda which: e.Acquire(LOCKS[which]),
    "release": lambda which: e.Release(LOCKS[which]),
    "compute": lambda: e.Compute("prep_msm", P),
    "wait": lambda: e.Wait(BELL),
    "set": lambda: e.SetFlag(FLAG),
    "clear": lambda: e.ClearFlag(FLAG),
    "wait_clear": lambda: e.WaitClear(FLAG),
    "exchange": lambda value: e.Exchange(SLOT, value),
    "free_host": lambda: e.FreeHost(P.abc, P),
    "read": lambda: e.ReadFlag(FLAG),
    "put": lambda item: e.Put(BOX, item),
    "get": lambda: e.Get(BOX),
    "reserve": lambda size: e.Reserve(GPU, size),
    "unreserve": lambda size: e.Unreserve(GPU, size),
    "pin": lambda: e.Pin(P.abc),
    "unpin": lambda: e.Unpin(P.abc),
    "sync": lambda: e.DeviceSync(GPU),
    "trim": lambda: e.TrimPool(GPU),
    "query": lambda: e.QueryFree(GPU),
}


class World(dict):
    """The simplest world: a dictionary."""

    def read(self, key):
        return self.get(key)

    def write(self, key, value):
        self[key] = value


@dataclass
class ModelRun:
    """What the model itself came to under one schedule; `outcome` in the words of a run, or "leak"."""

    outcome: str
    results: dict[str, Any]
    fault: e.PolicyFault | None = None
    world: World = field(default_factory=World)


@dataclass
class _Actor:
    name: str
    generator: Any
    effect: e.Effect | None = None
    running: bool = False  # its effect has started and lasts


def run_on_model(programs: Mapping[str, Program], choose: random.Random) -> ModelRun:
    """One step of a random actor after the other, by the rules of `effects` alone, until a fault or the end."""
    world, results = World(), {}
    actors: dict[str, _Actor] = {}
    copies: list[e.Copy] = []

    def advance(actor: _Actor, step: Callable[[], e.Effect]) -> None:
        try:
            actor.effect, actor.running = step(), False
        except StopIteration as end:
            results[actor.name] = end.value
            world.write(("task", actor.name), "ended")
            del actors[actor.name]

    def add(name: str, one: Program) -> None:
        actor = actors[name] = _Actor(name, one.start())
        advance(actor, lambda: next(actor.generator))

    def begin(actor: _Actor) -> None:
        effect = actor.effect
        try:
            result = effect.start(world, actor.name)
        except e.PolicyFault as fault:
            raised = fault
            advance(actor, lambda: actor.generator.throw(raised))
            return
        if isinstance(effect, e.Fork):
            add(result.actor, effect.program)
        if (beside := effect.beside(world)) is not None:
            copies.extend(beside.arguments)
        elif effect.lasts:
            actor.running, actor.result = True, result
            return
        advance(actor, lambda: actor.generator.send(result))

    def end(actor: _Actor) -> None:
        actor.effect.finish(world, actor.name)
        advance(actor, lambda: actor.generator.send(actor.result))

    def finish_copy(copy: e.Copy) -> None:
        copies.remove(copy)
        copy.finish(world, "device")

    try:
        for name, one in programs.items():
            add(name, one)
        while True:
            moves = [(finish_copy, copy) for copy in copies if copy.ready(world, "device")]
            moves += [(end, actor) for actor in actors.values() if actor.running]
            moves += [
                (begin, actor)
                for actor in actors.values()
                if not actor.running and actor.effect.ready(world, actor.name)
            ]
            if not moves:
                break
            move, subject = choose.choice(moves)
            move(subject)
    except e.PolicyFault as fault:
        return ModelRun("device_oom" if isinstance(fault, e.OutOfDeviceMemory) else "fault", results, fault, world)
    return ModelRun("deadlock" if actors else "leak" if leaks(world) else "ok", results, None, world)


def leaks(world: e.World) -> bool:
    """Whether something was not given back, but for a buffer that is kept."""
    held = any(world.read(lock) for lock in LOCKS)
    lost = set(e.live_buffers(world, GPU)) - {world.read(SLOT)}
    return bool(held or lost or world.read(("reserved", GPU)) or world.read(("pinned", P.abc)))
