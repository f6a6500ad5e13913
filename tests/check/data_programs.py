"""Random small systems of programs that hand data on to one another by every means there is; the same for a seed."""

import random
from types import MappingProxyType

from cuzklab.policies import effects as e
from cuzklab.policies.model import Datum, Flag, Gpu, Lock, Partition, Program, Queue, Semaphore, Slot, program
from cuzklab.stages import DataFlow, PartitionSizes

# x is made on the CPU; a copy takes it to the device as u, a kernel makes y of that, which is used at the end.
READS = {"take": ("x",), "upload": ("x",), "kernel": ("u",), "end": ("y", "x")}
WRITES = {"make": ("x",), "upload": ("u",), "kernel": ("y",), "end": ("z",)}
SIZES = PartitionSizes(
    6, 4, 2, {},
    DataFlow(*(MappingProxyType({(stage, ""): what for stage, what in one.items()}) for one in (READS, WRITES))),
)  # fmt: skip
GPU = Gpu(0, vram_bytes=10, margin_bytes=0)
PARTITION = Partition(0, 0, SIZES)
DATA = tuple(Datum(PARTITION, what) for written in WRITES.values() for what in written)
BELL, GIVEN, FLAG, BOX, SLOT = Semaphore("bell"), Semaphore("given", 1), Flag("flag"), Queue("box", 2), Slot("kept")
LOCK, UPLOAD, COMPUTE = Lock("red"), PARTITION.stream(GPU, "upload"), PARTITION.stream(GPU, "compute")


@program
def script(*steps):
    """Steps by name; events and tasks are remembered, newest last. What there is none of is left out."""
    events, tasks = [], []
    for name, *arguments in steps:
        match name:
            case "compute":
                yield e.Compute(arguments[0], PARTITION)
            case "upload":
                yield e.Upload(PARTITION.abc, (), arguments[0], PARTITION)
            case "kernel":
                yield e.Launch(GPU, "kernel", PARTITION)
            case "record":
                events.append((yield e.RecordEvent(UPLOAD)))
            case "wait_event" if events:
                yield e.WaitEvent(events[-1], COMPUTE if arguments[0] else None)
            case "look":
                if (yield e.ReadFlag(FLAG)):
                    yield e.Compute(arguments[0], PARTITION)
            case "leave":
                yield e.Exchange(SLOT, 1)
            case "find":
                if (yield e.Exchange(SLOT)) is not None:
                    yield e.Compute(arguments[0], PARTITION)
            case "fork":
                tasks.append((yield e.Fork(script(*arguments[0]), "child")))
            case "join" if tasks:
                yield e.Join(tasks.pop())
            case _ if name in _PLAIN:
                yield _PLAIN[name]


_PLAIN = {
    "pin": e.Pin(PARTITION.abc), "unpin": e.Unpin(PARTITION.abc), "sync": e.DeviceSync(GPU), "trim": e.TrimPool(GPU),
    "notify": e.Notify(BELL), "wait": e.Wait(BELL), "give": e.Notify(GIVEN), "take": e.Wait(GIVEN),
    "set": e.SetFlag(FLAG), "clear": e.ClearFlag(FLAG), "put": e.Put(BOX, "item"), "get": e.Get(BOX),
    "acquire": e.Acquire(LOCK), "release": e.Release(LOCK),
}  # fmt: skip
_CHAIN = (
    (("compute", "make"),), (("pin",), ("upload", UPLOAD), ("record",), ("wait_event", True), ("kernel",)),
    (("upload", COMPUTE), ("kernel",)), (("pin",), ("upload", UPLOAD), ("sync",), ("kernel",)),
    (("pin",), ("upload", UPLOAD), ("record",), ("wait_event", False), ("kernel",)), (("compute", "take"),),
    (("compute", "end"),),
)  # fmt: skip
_TOLD = (
    (("notify",), ("wait",)), (("give",), ("take",)), (("put",), ("get",)), (("set",), ("look", "take")),
    (("leave",), ("find", "take")), (("acquire",), ("release",)), (("trim",), ("unpin",)),
)  # fmt: skip


def _steps(draw: random.Random, told: tuple, teller: bool) -> list:
    """Pieces of the chain in or out of order, with what tells another actor somewhere among them."""
    make, *pieces = _CHAIN
    pieces = [list(piece) for piece in draw.sample(pieces, draw.randrange(1, 3))]
    if draw.random() < 0.7 and teller:
        pieces.insert(0, list(make))
    if draw.random() < 0.4:
        child = tuple(pieces.pop(draw.randrange(len(pieces))))
        pieces.insert(draw.randrange(len(pieces) + 1), [("fork", child)])
        if draw.random() < 0.7:
            pieces.append([("join",)])
            pieces.append([("compute", draw.choice(("take", "end")))])
    pieces.insert(draw.randrange(len(pieces) + 1) if draw.random() < 0.5 else teller, [told[0 if teller else 1]])
    steps = [step for piece in pieces for step in piece]
    if draw.random() < 0.2:
        steps.pop(draw.randrange(len(steps)))
    return steps[:9]


def _in_order(draw: random.Random) -> list[list]:
    """The whole chain by two actors that wait for one another, one step of it sometimes missing or out of its place."""
    make, *copies, _, end = (list(piece) for piece in _CHAIN)
    tell, hear = draw.choice(_TOLD[:3])
    copied = draw.choice(copies[:4])
    first, second = [*make, tell], [hear, *copied, *end]
    if draw.random() < 0.4:
        second = [("fork", (hear, *copied)), ("join",), *end]
    if draw.random() < 0.5:
        steps = draw.choice((first, second))
        step = steps.pop(draw.randrange(len(steps)))
        if draw.random() < 0.5:
            steps.insert(draw.randrange(len(steps) + 1), step)
    return [first, second]


def system(seed: int) -> dict[str, tuple[Program, ...]]:
    """Two or three actors on one partition, of which the first tells the others."""
    draw = random.Random(seed)
    told = draw.choice(_TOLD)
    scripts = [_steps(draw, told, not number) for number in range(draw.choice((2, 2, 3)))]
    if draw.random() < 0.5:
        scripts = _in_order(draw)
    return {f"w{number}": (script(*steps),) for number, steps in enumerate(scripts)}
