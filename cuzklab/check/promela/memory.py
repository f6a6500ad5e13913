"""The rules of device memory in Promela."""

from cuzklab.check.promela.names import Names
from cuzklab.check.promela.options import IMPOSSIBLE, Option, by_value, failing, following
from cuzklab.check.promela.points import OUT_OF_MEMORY, Point
from cuzklab.policies.effects import (
    Alloc,
    Free,
    QueryFree,
    Reserve,
    TrimPool,
    Unreserve,
)
from cuzklab.policies.model import Gpu


def room_for(names: Names, gpu: Gpu, size_bytes: int, pooled: bool) -> str:
    """That an allocation fits."""
    kept = "" if pooled else f" - {names.of('pool', gpu)}"
    return f"{names.units(size_bytes)} <= {names.units(gpu.vram_bytes)} - {names.of('used', gpu)}{kept}"


def _alloc(names: Names, point: Point, effect: Alloc) -> list[Option]:
    gpu, units = effect.gpu, names.units(effect.size_bytes)
    if effect.on_full == "wait" and effect.size_bytes > gpu.vram_bytes:
        return [Option((), (), failing(point, "request_above_capacity"))]
    used, pool = names.of("used", gpu), names.of("pool", gpu)
    idle = (f"{names.of('busy', gpu)} == 0",) if effect.device_wide else ()
    fits = room_for(names, gpu, effect.size_bytes, effect.pooled)
    (taken,) = (branch for branch in point.branches if branch.received is not OUT_OF_MEMORY)
    changes = [f"{used} = {used} + {units}", f"{names.live(taken.received)}++"]
    if effect.pooled:
        changes.append(f"{pool} = ({pool} > {units} -> {pool} - {units} : 0)")
    options = [Option((*idle, fits), tuple(changes), taken.target)]
    options += [Option((*idle, f"!({fits})"), (), branch.target) for branch in point.branches if branch is not taken]
    return options


def _free(names: Names, point: Point, effect: Free) -> list[Option]:
    buffer = effect.buffer
    live, used, units = names.live(buffer), names.of("used", buffer.gpu), names.units(buffer.size_bytes)
    idle = (f"{names.of('busy', buffer.gpu)} == 0",) if effect.device_wide else ()
    changes = [f"{live}--", f"{used} = {used} - {units}"]
    if buffer.pooled:
        pool = names.of("pool", buffer.gpu)
        changes.append(f"{pool} = {pool} + {units}")
    used = names.on_buffer("used", buffer) if buffer in names.used else "0"
    return [
        Option((*idle, f"{live} > 0", f"{used} == 0"), tuple(changes), following(point)),
        Option((*idle, f"{live} > 0", f"{used} > 0"), (), failing(point, "use_after_free")),
        Option((*idle, f"{live} == 0"), (), failing(point, "double_free")),
    ]


def _reserve(names: Names, point: Point, effect: Reserve) -> list[Option]:
    if effect.size_bytes > effect.gpu.vram_bytes:
        return [Option((), (), failing(point, "request_above_capacity"))]
    units, total = names.units(effect.size_bytes), names.of("reserved", effect.gpu)
    return [
        Option(
            (f"{units} <= {names.units(effect.gpu.vram_bytes)} - {total}",),
            (f"{total} = {total} + {units}", f"{names.promised(point.actor, effect)}++"),
            following(point),
        )
    ]


def _unreserve(names: Names, point: Point, effect: Unreserve) -> list[Option]:
    total, promised = names.of("reserved", effect.gpu), names.promised(point.actor, effect)
    changes = (f"{total} = {total} - {names.units(effect.size_bytes)}", f"{promised}--")
    return [
        Option((f"{promised} > 0",), changes, following(point)),
        Option((f"{promised} == 0",), (), failing(point, "release_by_non_owner")),
    ]


def _query_free(names: Names, point: Point, effect: QueryFree) -> list[Option]:
    gpu = effect.gpu
    taken = f"({names.of('used', gpu)} + {names.of('pool', gpu)})"
    options = by_value(names, point, taken, lambda free_bytes: (gpu.vram_bytes - free_bytes) // names.system.unit_bytes)
    note = f'printf("unlisted amount on gpu{gpu.index}: %d\\n", {taken})'
    return [*options[:-1], Option(options[-1].guards, (note,), IMPOSSIBLE)]


def _trim_pool(names: Names, point: Point, effect: TrimPool) -> list[Option]:
    changes = (f"{names.of('pool', effect.gpu)} = 0",)
    return [Option((f"{names.of('busy', effect.gpu)} == 0",), changes, following(point))]


RULES = {
    Alloc: _alloc,
    Free: _free,
    Reserve: _reserve,
    Unreserve: _unreserve,
    TrimPool: _trim_pool,
    QueryFree: _query_free,
}
