"""The tables of a trace, one row class each.

Times are int64 nanoseconds of one monotonic clock (of virtual time in a simulation, of step numbers in a
counterexample); sizes are bytes. Empty text means "not known" or "does not apply"; so does −1 in a device.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(slots=True)
class Span:
    """Something that a thread did: a stage on the CPU or the GPU, a pin, an allocation, an NVTX range.

    `category` is cpu, gpu, transfer, memory or call (imported ranges may have others); `parent` is the name of the
    enclosing span. Of imported ranges `domain` is the NVTX domain, `style` push_pop, start_end or mark, `end_thread`
    the thread that ended it where that is another one; `open` where it had not ended when the recording did.
    """

    start: int
    end: int
    name: str
    category: str
    process: int = 0
    thread: str = ""
    worker: str = ""
    proof: int = -1
    partition: str = ""
    device: int = -1
    parent: str = ""
    domain: str = ""
    style: str = ""
    end_thread: str = ""
    open: bool = False


@dataclass(slots=True)
class LockUse:
    """One use of a lock or of permits: requested, acquired, released.

    `acquired` is null when the request was given up; `released` is then when, null if it was under way when the
    recording ended. Otherwise `released` is null when it was held to the end.
    """

    lock: str
    requested: int
    acquired: int | None
    released: int | None
    thread: str = ""
    worker: str = ""
    partition: str = ""
    holder_at_request: str = ""
    permits: int = 1


@dataclass(slots=True)
class VramEvent:
    """A change of device memory: op is alloc, free, reserve, unreserve or fail; `live` is the sum after it."""

    time: int
    op: str
    buffer: str
    bytes: int
    device: int
    live: int
    limit: int
    worker: str = ""
    partition: str = ""
    lock_held: str = ""
    stack: str = ""


@dataclass(slots=True)
class Transfer:
    """A copy between host and device: `issue` is when it was asked for, direction is h2d or d2h.

    Captures also hold d2d, h2h, p2p, array, unified, unknown and, for fills, set. `correlation` finds its API call
    within its process.
    """

    start: int
    end: int
    issue: int
    bytes: int
    direction: str
    pinned: bool
    stream: str = ""
    device: int = 0
    worker: str = ""
    partition: str = ""
    process: int = 0
    correlation: int = -1


@dataclass(slots=True)
class Kernel:
    """Work on the device: `launch` is the time of its API call, `span` the stage that it belongs to.

    `correlation` finds the API call in `api_calls`, within its process only.
    """

    start: int
    end: int
    name: str
    stream: str = ""
    device: int = 0
    launch: int | None = None
    span: str = ""
    worker: str = ""
    partition: str = ""
    process: int = 0
    correlation: int = -1


@dataclass(slots=True)
class ApiCall:
    """A call into a library, as a profiler saw it: `api` is runtime or driver (both CUDA), os (libc), or profiler.

    What the profiler did itself is among them, so that its time can be subtracted.

    `correlation` is the number that what it started on the device carries too; −1 where it has none.
    """

    start: int
    end: int
    name: str
    api: str
    process: int = 0
    thread: str = ""
    correlation: int = -1
    result: int = 0


@dataclass(slots=True)
class WaitInterval:
    """A time in which an actor could not go on.

    `kind` is lock, memory, barrier, queue, event, device_sync or join; of waits in libc whose reason the call does not
    tell also semaphore, condition or futex, with the function's name in `on`.
    """

    start: int
    end: int
    kind: str
    on: str
    holder: str = ""
    worker: str = ""
    partition: str = ""


@dataclass(slots=True)
class Counter:
    """A value at a moment: queue length, bytes of host memory."""

    time: int
    name: str
    value: float


TABLES: Mapping[str, type] = types.MappingProxyType(
    {
        "spans": Span,
        "locks": LockUse,
        "vram": VramEvent,
        "transfers": Transfer,
        "kernels": Kernel,
        "api_calls": ApiCall,
        "waits": WaitInterval,
        "counters": Counter,
    }
)
TABLE_OF_ROW: Mapping[type, str] = types.MappingProxyType({row: table for table, row in TABLES.items()})

_ARROW = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}


def arrow_schema(table: str) -> pa.Schema:
    """Columns of a table: names and types of its row class, in order; only optional fields are nullable."""
    hints = typing.get_type_hints(TABLES[table])
    fields = []
    for column in dataclasses.fields(TABLES[table]):
        alternatives = typing.get_args(hints[column.name]) or (hints[column.name],)
        (kind,) = (alternative for alternative in alternatives if alternative is not type(None))
        fields.append(pa.field(column.name, _ARROW[kind], nullable=type(None) in alternatives))
    return pa.schema(fields)


def conform(read: pa.Table, table: str) -> pa.Table:
    """A table as it was stored, with the columns that the schema has today.

    Columns that came later than the file have their default; columns that are gone are left out.

    Raises
    ------
    ValueError
        A column that has no default is missing, or one cannot be converted to its type.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(TABLES[table])}
    schema = arrow_schema(table)
    columns = []
    for column in schema:
        if column.name in read.schema.names:
            columns.append(read.column(column.name).cast(column.type))
        elif defaults[column.name] is dataclasses.MISSING:
            raise ValueError(f"column {column.name} is missing")
        else:
            columns.append(pa.repeat(pa.scalar(defaults[column.name], column.type), len(read)))
    return pa.Table.from_arrays(columns, schema=schema)
