"""Random small systems of programs, always the same for a seed: every effect, every failure, in a few steps each."""

import random
from types import SimpleNamespace
from typing import Any

from cuzklab.policies import effects as e
from cuzklab.policies.model import Buffer, Flag, Gpu, Lock, Partition, Program, Queue, Semaphore, Slot, program

GPUS = (Gpu(0, vram_bytes=10, margin_bytes=0), Gpu(1, vram_bytes=6, margin_bytes=0))
SIZES = SimpleNamespace(abc=6, d_a=4, d_bc=2, scratch={("work", "scratch"): 3})
PARTITION = Partition(0, 0, SIZES)
LOCKS = (Lock("red"), Lock("blue"))
BELL, FLAG, BOX, HEAP = Semaphore("bell", 1), Flag("flag"), Queue("box", 1), Queue("heap")
SLOT = Slot("kept")
COMPUTE = "compute"

Step = tuple[Any, ...]


@program
def script(*steps: Step, given: tuple[Buffer, ...] = ()):
    """Steps by name; buffers, events and tasks are remembered, newest last. What there is none of is left out.

    A forked script is given the buffers that there are: it may use and free what its parent frees.
    """
    buffers, events, tasks = list(given), [], []
    for name, *arguments in steps:
        match name:
            case "alloc":
                gpu, size, options, modest = arguments
                try:
                    buffers.append((yield e.Alloc(GPUS[gpu], f"b{size}", size, **dict(options))))
                except e.OutOfDeviceMemory:
                    if not modest:
                        raise
                    yield e.SetFlag(FLAG)
            case "free" if buffers:
                which, device_wide, forget = arguments
                yield e.Free(buffers.pop(which) if forget else buffers[which], device_wide)
            case "launch":
                gpu, part = arguments
                yield e.Launch(GPUS[gpu], "work", PARTITION, part, uses=tuple(buffers[-1:]))
            case "upload":
                yield e.Upload(PARTITION.abc, tuple(buffers[-1:]), PARTITION.stream(GPUS[0], arguments[0]), PARTITION)
            case "exchange":
                taken = yield e.Exchange(SLOT, buffers.pop() if buffers and arguments[0] else None)
                buffers += [taken] if taken else []
            case "record":
                events.append((yield e.RecordEvent(PARTITION.stream(GPUS[0], arguments[0]))))
            case "wait_event" if events:
                yield e.WaitEvent(events[-1], PARTITION.stream(GPUS[0], COMPUTE) if arguments[0] else None)
            case "query":
                if (yield e.QueryFree(GPUS[0])) >= arguments[0]:
                    yield e.Notify(BELL)
            case "careful":  # about memory that a launch has for its time
                how, size = arguments
                if (yield e.QueryFree(GPUS[0])) < GPUS[0].vram_bytes - size:
                    event = yield e.RecordEvent(PARTITION.stream(GPUS[0], COMPUTE))
                    match how:
                        case "sync":
                            yield e.DeviceSync(GPUS[0])
                        case "trim":
                            yield e.TrimPool(GPUS[0])
                        case "free" if buffers:
                            yield e.Free(buffers.pop(), device_wide=True)
                        case "event":
                            yield e.WaitEvent(event)
                        case "stream":
                            yield e.WaitEvent(event, PARTITION.stream(GPUS[0], COMPUTE))
                            yield e.Launch(GPUS[0], "work", PARTITION, "scratch")
                    device_wide = how == "alloc"
                    size = 8 - size if buffers or not size else 8
                    buffers.append((yield e.Alloc(GPUS[0], "careful", size, device_wide=device_wide)))
            case "wait_unless_set":
                if not (yield e.ReadFlag(FLAG)):
                    yield e.Wait(BELL)
            case "get":
                if (yield e.Get((BOX, HEAP)[arguments[0]])) == "acquire":
                    yield e.Acquire(LOCKS[0])
            case "fork":
                tasks.append((yield e.Fork(script(*arguments[0], given=tuple(buffers)), "child")))
            case "join" if tasks:
                yield e.Join(tasks.pop())
            case _ if name in _PLAIN:
                yield _PLAIN[name](*arguments)


_PLAIN = {
    "acquire": lambda which: e.Acquire(LOCKS[which]),
    "release": lambda which: e.Release(LOCKS[which]),
    "reserve": lambda size: e.Reserve(GPUS[0], size),
    "unreserve": lambda size: e.Unreserve(GPUS[0], size),
    "pin": lambda: e.Pin(PARTITION.abc),
    "unpin": lambda: e.Unpin(PARTITION.abc),
    "compute": lambda: e.Compute("prep_msm", PARTITION),
    "sync": lambda: e.DeviceSync(GPUS[0]),
    "trim": lambda: e.TrimPool(GPUS[0]),
    "notify": lambda: e.Notify(BELL),
    "wait": lambda: e.Wait(BELL),
    "set": lambda: e.SetFlag(FLAG),
    "clear": lambda: e.ClearFlag(FLAG),
    "wait_clear": lambda: e.WaitClear(FLAG),
    "free_host": lambda: e.FreeHost(PARTITION.abc, PARTITION),
    "put": lambda which, item: e.Put((BOX, HEAP)[which], item),
}


def _alloc(draw: random.Random) -> Step:
    options = {}
    if draw.random() < 0.4:
        options["on_full"] = "wait"
    for option in ("pooled", "device_wide"):
        if draw.random() < 0.3:
            options[option] = True
    gpu = int(draw.random() < 0.07)
    size = 11 if draw.random() < 0.03 else draw.randrange(2, 8)
    return "alloc", gpu, size, tuple(options.items()), draw.random() < 0.5


def _simple(draw: random.Random) -> Step:
    """One step of any kind; those that can only fail unless another came before are rare."""
    gpu = int(draw.random() < 0.07)
    return draw.choice(
        (
            lambda: draw.choice((("acquire", 0), ("acquire", 1), *[("compute",)] * 3, ("release", draw.randrange(2)))),
            lambda: draw.choice((("reserve", 4), *[("reserve", 6), ("pin",), ("unpin",)] * 3, ("unreserve", 6))),
            lambda: ("reserve", 11) if draw.random() < 0.1 else ("set",),
            lambda: _alloc(draw),
            lambda: _alloc(draw),
            lambda: ("free", draw.choice((0, -1)), draw.random() < 0.3, draw.random() < 0.8),
            lambda: ("launch", gpu, draw.choice(("", "scratch"))),
            lambda: ("launch", gpu, draw.choice(("", "scratch"))),
            lambda: ("upload", draw.choice(("upload", COMPUTE))),
            lambda: ("record", draw.choice(("upload", COMPUTE))),
            lambda: ("wait_event", draw.random() < 0.5),
            lambda: ("query", draw.randrange(2, 9)),
            lambda: ("put", draw.randrange(2), draw.choice(("nothing", "acquire"))),
            lambda: ("get", draw.randrange(2)),
            lambda: (draw.choice(("sync", "trim")),),
            lambda: (draw.choice(("notify", "wait")),),
            lambda: ("exchange", draw.random() < 0.6),
            lambda: ("wait_clear",) if draw.random() < 0.8 else ("free_host",),
            lambda: (draw.choice(("set", "clear", "wait_unless_set")),),
        )
    )()


def _piece(draw: random.Random) -> list[Step]:
    """A few steps that often make sense together."""
    inner = [_simple(draw) for _ in range(draw.randrange(3))]
    match draw.randrange(10):
        case 9:
            pooled = (("pooled", True),)
            size = draw.randrange(4, 7)
            trim = [("trim",)] if draw.random() < 0.7 else []
            large = ("alloc", 0, size + 1, draw.choice(((), pooled)), draw.random() < 0.5)
            return [
                ("alloc", 0, size, pooled, True),
                ("free", -1, False, True),
                *trim,
                large,
                ("free", -1, False, True),
            ]
        case 8:
            return [("pin",), *inner, ("unpin",)]
        case 0:
            which = draw.randrange(2)
            return [("acquire", which), *inner, ("release", which)]
        case 1 | 2:
            return [_alloc(draw), *inner, ("free", -1, draw.random() < 0.3, True)]
        case 3:
            size = draw.choice((4, 6))
            return [("reserve", size), *inner, ("unreserve", size)]
        case 4:
            child = tuple(_simple(draw) for _ in range(draw.randrange(3)))
            return [("fork", child), *inner, *([("join",)] if draw.random() < 0.7 else [])]
        case 5:
            use = draw.choice((("launch", 0, ""), ("upload", COMPUTE), ("free", -1, False, True)))
            joined = [("join",)] if draw.random() < 0.5 else []
            return [_alloc(draw), ("fork", (use,)), *joined, *inner[:1], ("free", -1, False, True)]
        case 6:
            stream = draw.choice(("upload", COMPUTE))
            return [("upload", stream), ("record", stream), ("wait_event", draw.random() < 0.7), *inner]
        case 7 if draw.random() < 0.3:
            return [("put", 1, "nothing"), *inner, ("put", 1, "acquire")]
    return [_simple(draw)]


def _careful(draw: random.Random) -> list[tuple[Program, ...]]:
    """One that works with scratch memory, and one that waits for the end of that before it takes more."""
    held = draw.choice((0, 2))
    how = draw.choice(("sync", "trim", "event", "stream", "alloc", *(["free"] if held else [])))
    taken = [("alloc", 0, held, (), False)] if held else []
    worker = [_simple(draw), ("launch", 0, "scratch")]
    careful = [*taken, ("careful", how, held), ("free", -1, False, True), ("free", -1, False, True)]
    return [(script(*worker),), (script(*careful),)]


def _flagged(draw: random.Random) -> tuple[Program, ...]:
    """One that takes the only permit and then needs the flag."""
    before = draw.choice(([], [("set",)], [("set",), ("clear",)]))
    return (script(*before, ("wait",), ("wait_unless_set",)),)


def _program(draw: random.Random, most: int) -> Program:
    steps = [step for _ in range(draw.randrange(1, 4)) for step in _piece(draw)]
    return script(("compute",), *steps[:most])


def system(seed: int) -> dict[str, tuple[Program, ...]]:
    """Two or three actors, sometimes alike, with one or two programs each."""
    draw = random.Random(seed)
    actors = draw.choice((2, 2, 3))
    most = 7 if actors == 2 else 5
    programs = [
        tuple(_program(draw, most) for _ in range(draw.choice((1, 1, 2)) if actors == 2 else 1)) for _ in range(actors)
    ]
    if draw.random() < 0.3:
        programs[-1] = programs[0]
    elif draw.random() < 0.4:
        programs[:2] = _careful(draw)
    elif draw.random() < 0.2:
        programs[0] = _flagged(draw)
    return {f"w{number}": sequence for number, sequence in enumerate(programs)}
