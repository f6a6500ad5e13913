"""What an effect is: the world that it changes, what can go wrong with it, and the rules that its class states.

Interpreters that model time or schedules use

``ready(world, actor)``
    whether it can take place now; an effect that is not ready blocks its actor;
``start(world, actor)``
    the change of state as it takes place, and the result that the policy receives; it may raise a `PolicyFault`;
``finish(world, actor)``
    the change at the end of an effect that lasts (`lasts` is True);
``asynchronous(world)``, ``beside(world)``
    whether the actor goes on at once while the device is still at the effect; then, asked once after `start`, the
    program of what the device has yet to do (a copy), which ends by itself;
``undo(result)``
    the effect that gives back what this one took, for the clean-up of a failed partition; an effect with an equal
    `settles` has given it back already;
``blockers(world)``
    the actors that could make it ready, for the wait-for graph.

The live interpreter calls ``perform(live)``, where `live` offers the real thing under the same names. A `World` is a
map from keys to values; which keys an effect reads and writes is therefore known, and nothing else is shared.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from cuzklab.policies.model import Datum


class World(Protocol):
    """Shared state of a model: a map from keys to hashable values; what was never written reads as None."""

    def read(self, key: Hashable) -> Any: ...

    def write(self, key: Hashable, value: Any) -> None: ...


class PolicyFault(Exception):
    """Something that a policy did wrong or that went wrong under it; `kind` is the checker's name of the defect.

    `actor` and `effect` tell who met it and at what; the interpreter that raises it into a program fills them in.
    """

    kind: ClassVar[str] = "fault"
    actor: str = ""
    effect: "Effect | None" = None

    def at(self, actor: str, effect: "Effect") -> "PolicyFault":
        """The fault with its place; where it passes on from one actor to another, the first place stays."""
        if not self.actor:
            self.actor, self.effect = actor, effect
        return self


class OutOfDeviceMemory(PolicyFault):
    """An allocation did not fit. It is thrown into the policy, which may catch it and do something else."""

    kind = "oom"

    def __init__(self, name: str, size_bytes: int, live_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{name} needs {size_bytes} B, but {live_bytes} B of {limit_bytes} B are in use")
        self.name, self.size_bytes, self.live_bytes, self.limit_bytes = name, size_bytes, live_bytes, limit_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.size_bytes, self.live_bytes, self.limit_bytes)


class UseAfterFree(PolicyFault):
    """Work was given a buffer that had been freed."""

    kind = "use_after_free"


class DoubleFree(PolicyFault):
    """A buffer was freed that was not live."""

    kind = "double_free"


class ReleaseByNonOwner(PolicyFault):
    """A lock was released by an actor that did not hold it."""

    kind = "release_by_non_owner"


class WrongDevice(PolicyFault):
    """Work on one device was given memory of another."""

    kind = "wrong_device"


class ReadBeforeWrite(PolicyFault):
    """A step reads data that nothing has written yet."""

    kind = "read_before_write"


@dataclass(frozen=True)
class Effect:
    """What a policy can yield. Unless a subclass says otherwise it never blocks, never fails and takes no time."""

    lasts: ClassVar[bool] = False
    local: ClassVar[bool] = False  # touches nothing that another actor can see, so its order does not matter
    two_steps: ClassVar[bool] = False  # others can notice that it is under way: start and end are separate steps,
    # unless it is asynchronous
    gives: ClassVar[bool] = False  # only ever enables others: never blocks, and commutes with all that they can do
    tells: ClassVar[bool] = False  # what comes of it depends on what others do; a loop without one never ends
    wait_kind: ClassVar[str] = ""  # what an actor that it blocks waits for, in the words of the trace's waits

    def ready(self, world: World, actor: str) -> bool:
        return True

    def start(self, world: World, actor: str) -> Any:
        return None

    def finish(self, world: World, actor: str) -> None:
        return None

    def asynchronous(self, world: World) -> bool:
        return False

    def beside(self, world: World) -> Any:
        return None

    def kind_of_wait(self, world: World) -> str:
        """What an effect that is not ready waits for: lock, memory, barrier, queue, event, device_sync or join."""
        return self.wait_kind

    def undo(self, result: Any) -> "Effect | None":
        return None

    @property
    def settles(self) -> Hashable | None:
        return None

    def blockers(self, world: World) -> tuple[str, ...]:
        return ()

    @property
    def reads(self) -> tuple[Datum, ...]:
        """Data that must be there when it begins."""
        return ()

    @property
    def writes(self) -> tuple[Datum, ...]:
        """Data that are there once it has ended."""
        return ()

    @property
    def above_capacity(self) -> bool:
        """It asks for more than there is at all, so it would wait for ever."""
        return False

    def perform(self, live: Any) -> Any:
        raise NotImplementedError

    @property
    def on(self) -> str:
        """Name of the resource that the effect is about, for traces and counterexamples."""
        return ""

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.on}".rstrip()
