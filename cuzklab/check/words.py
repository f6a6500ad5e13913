"""Findings in sentences."""

from collections.abc import Sequence

from cuzklab.check.deadlock import Holder, Waiting
from cuzklab.check.endings import Due
from cuzklab.policies.effects import Effect, OutOfDeviceMemory, PolicyFault, World, live_buffers
from cuzklab.policies.effects.data import in_words
from cuzklab.policies.model import Gpu
from cuzklab.units import format_size, sizes_in_words


def memory_in_words(world: World, gpu: Gpu) -> str:
    """Who holds what of a device: ``w0 12.0 GiB (d_a, d_bc)``."""
    owners: dict[str, list] = {}
    for buffer in live_buffers(world, gpu):
        owners.setdefault(buffer.owner, []).append(buffer)
    shares = (
        f"{owner} {format_size(sum(b.size_bytes for b in buffers))} ({', '.join(b.name for b in buffers)})"
        for owner, buffers in owners.items()
    )
    return ", ".join(shares) or "nobody"


def fault_message(actor: str, fault: PolicyFault, effect: Effect, where: str, world: World) -> str:
    """One sentence on a step that fails."""
    if isinstance(fault, OutOfDeviceMemory):
        gpu = effect.gpu
        return (
            f"{actor} runs out of device memory at {where}: {fault.name} needs {format_size(fault.size_bytes)}, but "
            f"{format_size(fault.live_bytes)} of {format_size(fault.limit_bytes)} on gpu{gpu.index} are in use by "
            f"{memory_in_words(world, gpu)}."
        )
    return f"{actor} fails at {where}: {sizes_in_words(str(fault))}."


def holder_in_words(wait: Waiting, holder: Holder) -> str:
    if wait.kind == "lock":
        return f"{holder.actor} holds it"
    if holder.held_bytes is not None:
        return f"{holder.actor} holds {format_size(holder.held_bytes)} ({holder.held})"
    if wait.kind == "join":
        return f"{holder.actor} has not ended"
    return f"only {holder.actor} could still end the wait"


def waiting_in_words(wait: Waiting) -> str:
    """One blocked actor: what it waits for, and who has it."""
    match wait.kind:
        case "lock":
            what = f"lock {wait.on}"
        case "memory":
            what = f"{format_size(wait.wanted_bytes)} of device memory, {format_size(wait.free_bytes)} are free"
        case "join":
            what = f"the end of {wait.on}"
        case "barrier":
            what = f"a permit of {wait.on}"
        case _:
            what = f"{wait.on} ({wait.kind})"
    who = "; ".join(holder_in_words(wait, holder) for holder in wait.holders) or "nobody who is left can end the wait"
    return f"{wait.actor} waits for {what}: {who}"


_OPENINGS = {
    "capacity_deadlock": "Deadlock over device memory",
    "lock_order_deadlock": "Deadlock",
    "lost_wakeup": "A wake-up is lost or never sent",
    "leak": "Something is held by an actor that has ended",
}


def deadlock_message(kind: str, concerned: Sequence[Waiting]) -> str:
    """One sentence on actors that wait for ever."""
    return f"{_OPENINGS[kind]}: {'; '.join(waiting_in_words(wait) for wait in concerned)}."


def leak_message(thing: str, name: str, owner: str) -> str:
    """One sentence on what is left at the end."""
    taken = f", taken by {owner}" if owner else ""
    return f"Every program has ended, but {thing} {name}{taken} was not given back."


def overdue_message(late: Due) -> str:
    """One sentence on what a program should have made and nobody has."""
    what = in_words([datum.what for datum in late.data])
    return f"{late.actor} has ended its work on {late.data[0].partition.name}, but nothing has written its {what}."


def claim_message(text: str, actor: str | None) -> str:
    """One sentence on a claim that does not hold."""
    return f"The claim “{text}” does not hold {f'after the last step, by {actor}' if actor else 'at the start'}."


def starvation_message(actors: Sequence[str], effects: Sequence[str], passed: bool, others: Sequence[str]) -> str:
    """One sentence on those who wait or go round for ever though the scheduling is fair."""
    who, what = " and ".join(actors), ", ".join(dict.fromkeys(effects))
    if passed:
        by = f" by {' and '.join(others)}" if others else ""
        return f"{who} can be passed for ever{by} at {what}: fair scheduling does not make the wait end."
    return f"{who} can go round for ever ({what}): what would end it never comes on this schedule."
