"""How much host memory this process can still have, as far as the system tells, and whether that is a hard bound.

Two things bound it. A control group (a container, a batch system's job) has a limit of its own. And there is what the
machine has: the memory that the kernel knows (`/sys/devices/system/memory`), less what is in use. `MemTotal` alone is
not that: a virtual machine whose memory is initialised lazily, or held by a balloon, shows less of it at first.

Memory that a hypervisor would add later is not counted, nor is swap: page-locked memory cannot go there, and times of
a run that swaps say nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuzklab.units import format_size

_UNLIMITED_BYTES = 1 << 60
_PAGE_SHARE = 1 / 64
"""Of all memory, what the kernel keeps to describe it: 64 bytes for each page of 4 KiB."""


@dataclass(frozen=True)
class Room:
    """What a process can still allocate.

    Attributes
    ----------
    free_bytes : float
        Infinite where nothing is known.
    source : str
        What says so, for people.
    hard : bool
        Whoever takes more is killed. Otherwise the machine may have more than it shows.
    """

    free_bytes: float
    source: str
    hard: bool


def host_room(root: Path = Path("/")) -> Room:
    """The tightest bound on this process's memory.

    Parameters
    ----------
    root : Path
        Of the file system that `/proc` and `/sys` lie in.
    """
    bounds = [*_control_groups(root), _machine(root)]
    return min(bounds, key=lambda room: room.free_bytes)


def _machine(root: Path) -> Room:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        facts = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        total_bytes, used_bytes = facts["MemTotal"], facts["MemTotal"] - facts["MemAvailable"]
    except (OSError, KeyError, ValueError, IndexError):
        return Room(math.inf, "nothing that tells", hard=False)
    blocks_bytes = _blocks_bytes(root)
    most_bytes = max(total_bytes, int((blocks_bytes or 0) * (1 - _PAGE_SHARE)))
    source = f"the machine has {format_size(most_bytes)}, of which {format_size(used_bytes)} are in use"
    return Room(most_bytes - used_bytes, source, hard=blocks_bytes is not None)


def _blocks_bytes(root: Path) -> int | None:
    """The memory that the kernel has online, initialised or not; None where it does not tell."""
    folder = root / "sys/devices/system/memory"
    try:
        size_bytes = int((folder / "block_size_bytes").read_text(), 16)
        states = [path.read_text().strip() for path in folder.glob("memory*/state")]
    except (OSError, ValueError):
        return None
    return size_bytes * sum(state == "online" for state in states) or None


def _control_groups(root: Path) -> Iterator[Room]:
    """A bound for each control group of this process that has a limit, up to the outermost."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        own = base / path.strip("/")
        if not own.is_relative_to(base) or ".." in own.parts or not own.is_dir():
            own = base  # a container sees its own group as the root
        for folder in (own, *own.parents):
            if not folder.is_relative_to(base):
                break
            if (room := _limit(folder, *names)) is not None:
                yield room


def _limit(folder: Path, limit: str, usage: str, reclaimable: str) -> Room | None:
    """The bound of one group: its limit, less what it uses and could not give up."""
    try:
        most_bytes = int((folder / limit).read_text())  # "max" is none
        used_bytes = int((folder / usage).read_text())
        facts = dict(line.split(maxsplit=1) for line in (folder / "memory.stat").read_text().splitlines())
        used_bytes -= int(facts.get(reclaimable, 0))
    except (OSError, ValueError):
        return None
    if most_bytes >= _UNLIMITED_BYTES:
        return None
    source = f"the control group's limit is {format_size(most_bytes)}, of which {format_size(used_bytes)} are in use"
    return Room(max(0, most_bytes - used_bytes), source, hard=True)
