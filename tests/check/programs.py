"""Small programs for tests of the checker: scripts, and a device with sizes that fit in the head."""

from types import SimpleNamespace

from cuzklab.check import explore
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    ClearFlag,
    Compute,
    Effect,
    Fork,
    Free,
    Get,
    Join,
    Launch,
    Notify,
    OutOfDeviceMemory,
    Put,
    QueryFree,
    ReadFlag,
    Release,
    Reserve,
    SetFlag,
    Unreserve,
    Wait,
)
from cuzklab.policies.model import Flag, Gpu, Lock, Partition, Queue, Semaphore, program

GPU = Gpu(0, vram_bytes=10, margin_bytes=0)
SIZES = SimpleNamespace(abc=6, d_a=4, d_bc=2, scratch={("stage", ""): 3})
PARTITION = Partition(0, 0, SIZES)
LOCKS = (Lock("red"), Lock("blue"))
SEMAPHORE, FLAG, QUEUE = Semaphore("bell"), Flag("flag"), Queue("box", 1)


@program
def plain(*effects: Effect):
    """The effects one after another, results ignored."""
    for effect in effects:  # noqa: UP028 (a tuple could not be sent results)
        yield effect


@program
def script(*steps: tuple):
    """Steps by name; buffers and tasks are remembered and given back by `free` and `join`, newest first."""
    buffers, tasks = [], []
    for name, *arguments in steps:
        match name:
            case "acquire":
                yield Acquire(LOCKS[arguments[0]])
            case "release":
                yield Release(LOCKS[arguments[0]])
            case "alloc":
                size, on_full = arguments
                try:
                    buffers.append((yield Alloc(GPU, f"{size}", size, on_full=on_full)))
                except OutOfDeviceMemory:
                    if size % 2:
                        raise
            case "free":
                if buffers:
                    yield Free(buffers.pop(), device_wide=arguments[0])
            case "launch":
                yield Launch(GPU, "stage", PARTITION, uses=tuple(buffers[:1]))
            case "query":
                if (yield QueryFree(GPU)) >= 5:
                    yield Compute("roomy", PARTITION)
                    yield SetFlag(FLAG)
            case "compute":
                yield Compute("stage", PARTITION)
            case "notify":
                yield Notify(SEMAPHORE)
            case "wait":
                yield Wait(SEMAPHORE)
            case "set":
                yield SetFlag(FLAG)
            case "clear":
                yield ClearFlag(FLAG)
            case "wait_unless_set":
                if not (yield ReadFlag(FLAG)):
                    yield Wait(SEMAPHORE)
            case "put":
                yield Put(QUEUE, arguments[0])
            case "get":
                yield Get(QUEUE)
            case "reserve":
                yield Reserve(GPU, arguments[0])
            case "unreserve":
                yield Unreserve(GPU, arguments[0])
            case "fork":
                tasks.append((yield Fork(script(*arguments[0]), "child")))
            case "join":
                if tasks:
                    yield Join(tasks.pop())


def run(**programs):
    """Explore actors that run one program each."""
    return explore({name: (only,) for name, only in programs.items()})


def kinds(exploration):
    return sorted({finding.kind for finding in exploration.findings})


def steps(finding):
    """A schedule as text, one line a step."""
    return [f"{step.actor}: {step.effect}{' ' + step.phase if step.phase else ''}" for step in finding.schedule]
