"""The state of a live run at a moment, for whoever watches it: who does what, who waits, what memory is in use.

Nothing is gathered for it while a run goes on; a look takes the mutexes that guard the state for microseconds.
"""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cuzklab.live.primitives import Channel, Mutex
from cuzklab.policies.schedule import SCHEDULE
from cuzklab.units import sizes_in_words

if TYPE_CHECKING:
    from cuzklab.live.run import Run

_MOST_BUFFERS = 200

Tell = Callable[[Mapping[str, Any]], None]


def snapshot(run: "Run") -> dict[str, Any]:
    """What a run is at.

    Returns
    -------
    dict
        `time_s` (of the run's clock), `outcomes` (partitions that have one), `actors` (name, state running or waiting,
        what it does or waits for, holders, partition), `locks` (name, holder, waiters), `devices` (index, limit_bytes,
        live_bytes, buffers: name, owner, partition, bytes), `queues` (name, length).
    """
    board = run.board
    with board.mutex:
        waits = {wait.actor: wait for wait in board.waits_for() if wait.kind != SCHEDULE}
        actors = [
            {
                "name": actor.name,
                "partition": actor.partition,
                "state": "waiting" if actor.name in waits else "running",
                "doing": sizes_in_words(str(actor.effect)) if actor.effect is not None else "",
                "kind": waits[actor.name].kind if actor.name in waits else "",
                "on": waits[actor.name].on if actor.name in waits else "",
                "holders": list(waits[actor.name].holders) if actor.name in waits else [],
            }
            for actor in run.actors
            if not actor.ended
        ]
        things = run.things
        locks = [
            {
                "name": thing.name,
                "holder": thing.holder,
                "waiters": [name for name, wait in waits.items() if wait.kind == "lock" and wait.on == thing.name],
            }
            for thing in things
            if isinstance(thing, Mutex)
        ]
        queues = [{"name": thing.name, "length": thing.length} for thing in things if isinstance(thing, Channel)]
    devices = []
    for memory in run.memories:
        buffers = memory.holdings()
        devices.append(
            {
                "index": memory.device.index,
                "limit_bytes": memory.device.limit_bytes,
                "live_bytes": sum(buffer.size_bytes for buffer in buffers),
                "buffers": [
                    {
                        "name": buffer.name, "owner": buffer.owner, "partition": buffer.partition,
                        "bytes": buffer.size_bytes,
                    }
                    for buffer in buffers[:_MOST_BUFFERS]
                ],
            }
        )  # fmt: skip
    return {
        "time_s": run.now() * 1e-9, "outcomes": run.outcomes, "actors": actors, "locks": locks, "devices": devices,
        "queues": queues,
    }  # fmt: skip


class StatusPipe:
    """Writes states as lines of JSON to a pipe, and never waits for its reader: a state that finds no room is left out.

    Parameters
    ----------
    descriptor : int
        Of the pipe's writing end.

    Raises
    ------
    OSError
        There is no such descriptor.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._left = b""

    def write(self, state: Mapping[str, Any]) -> None:
        """Write a state, unless the one before has not been taken yet.

        Raises
        ------
        BrokenPipeError
            Nobody will read it: who started the run is gone.
        """
        self._push()
        if not self._left:
            self._left = json.dumps(state).encode() + b"\n"
            self._push()

    def _push(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._left:
                self._left = self._left[os.write(self._descriptor, self._left) :]
