"""A whole export as a run."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from cuzklab import __version__
from cuzklab.errors import BadInput
from cuzklab.ingest.model import Availability, Imported, Options, facts
from cuzklab.ingest.nsys import calls as api
from cuzklab.ingest.nsys import capture as facts_of
from cuzklab.ingest.nsys import device, locks, memory, ranges
from cuzklab.ingest.nsys.columns import merged
from cuzklab.ingest.nsys.export import Export
from cuzklab.ingest.nsys.names import Names
from cuzklab.ingest.nsys.parquet import ParquetSource
from cuzklab.ingest.nsys.sqlite import HEADER, SqliteSource
from cuzklab.ingest.nsys.threads import Threads
from cuzklab.ingest.privacy import Texts
from cuzklab.trace import RunInfo
from cuzklab.units import Metric

# One of these is in every export; without any it is somebody else's database.
_MARKS = (
    "StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "ANALYSIS_DETAILS", "TARGET_INFO_SYSTEM_ENV", "NVTX_EVENTS",
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "OSRT_API",
)  # fmt: skip
_CUDA = (
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)  # fmt: skip
_REPORTS = (".nsys-rep", ".qdrep", ".qdstrm")
# The profiler's own time, so that it can be subtracted.
_OVERHEAD = ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")


def recognises(path: Path) -> bool:
    """Whether a path looks like an export: a SQLite file, or a folder of Parquet files that is not one of our runs."""
    if path.suffix in _REPORTS:
        return True  # so that reading it can say what to do
    try:
        if path.is_dir():
            return any(path.glob("*.parquet")) and not (path / "run.json").exists()
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError:
        return False


def read(path: Path, options: Options) -> Imported:
    """Read an export.

    Raises
    ------
    BadInput
        The file is damaged, or nothing in it comes from Nsight Systems.
    """
    if path.suffix in _REPORTS:
        raise BadInput(f"{path}: a report, not an export; export it first: nsys export --type sqlite {path.name}")
    if not path.is_dir() and not recognises(path):
        raise BadInput(f"{path}: not a SQLite file")
    with Export(ParquetSource(path) if path.is_dir() else SqliteSource(path)) as export:
        if not export.has(*_MARKS):
            raise BadInput(f"{path}: holds no table of an Nsight Systems export (no StringIds, no NVTX_EVENTS, …)")
        return _Reading(export, options).run()


class _Reading:
    """An export that is being read: what all tables need, then one table after the other."""

    def __init__(self, export: Export, options: Options) -> None:
        self.export, self.options = export, options
        self.texts = Texts({*facts_of.secrets_of(export), *options.secrets}, options.keep_private)
        self.capture = facts_of.read_capture(export, self.texts)
        self.names = Names(export, self.texts)
        self.threads = Threads(export, self.names, self.texts)
        self.notes: list[str] = []

    def run(self) -> Imported:
        report, export = self.options.report, self.export
        report(0.05, "API calls")
        cuda, libc = api.read_calls(export), api.read_calls(export, "OSRT_API")
        overhead = [api.read_calls(export, source) for source in _OVERHEAD]
        report(0.35, "kernels and copies")
        work = device.read_device(export, cuda)
        report(0.55, "ranges")
        last_ns = max(self.capture.duration_ns or 0, work.end_ns, cuda.end_ns, libc.end_ns)
        spans = ranges.read_ranges(export, self.names, self.texts, last_ns)
        used = locks.uses(spans, self.options.locks)
        holders = locks.Holders(used)
        report(0.65, "launches")
        streams = device.Streams(export)
        devices = device.devices_of(export, self.texts)
        kernels = device.kernel_table(work, cuda, spans, self.names, self.threads, streams)
        transfers = device.transfer_table(export, work, cuda, spans, self.threads, streams)
        report(0.8, "memory, locks, waits")
        limits = {int(one["index"]): int(one["vram_limit_bytes"]) for one in devices}
        held = memory.read_memory(export, cuda, spans, holders, self.threads, self.texts, limits)
        tables = {
            "spans": ranges.span_table(spans, self.threads),
            "locks": locks.lock_table(used, holders, self.threads),
            "vram": held.vram,
            "transfers": transfers,
            "kernels": kernels,
            "api_calls": api.api_table(cuda, libc, overhead, self.names, self.threads),
            "waits": merged(
                "waits",
                [api.waits(cuda, libc, self.names, self.threads), locks.wait_table(used, holders, self.threads)],
            ),
            "counters": held.counters,
        }
        self.notes += held.notes
        self._note(cuda.dropped + libc.dropped + spans.dropped + work.dropped,
                   "rows whose end is before their start, or whose times cannot be, were left out")  # fmt: skip
        self._note(int(spans.open.sum()), "ranges had not ended when the capture did; they last until then here")
        self._note(_unmatched(kernels), "kernels have no API call in the capture: what launched them is not known")
        return Imported(self._info(tables, spans, devices), tables, self._availability(tables, held))

    def _note(self, count: int, words: str) -> None:
        if count:
            self.notes.append(f"{count:,} {words}.")

    def _info(self, tables: Mapping[str, pa.Table], spans: ranges.Ranges, devices: tuple) -> RunInfo:
        capture, path = self.capture, self.export.path
        renamed = [f"{actual} for {name}" for name, actual in sorted(self.export.renamed().items())]
        self.notes += [
            text
            for text in (
                facts_of.newer_than_tested(capture.schema),
                f"Read under versioned names: {', '.join(renamed[:20])}." if renamed else "",
                *(f"Nsight Systems says: {loss}" for loss in capture.losses),
                f"Secrets were taken out of {self.texts.redacted} texts." if self.texts.redacted else "",
            )
            if text
        ]
        gpus = ", ".join(dict.fromkeys(str(one["name"]) for one in devices))
        conditions = facts(
            hardware=gpus, program=facts_of.command_of(capture, self.texts, self.options.keep_private),
            format="parquetdir" if path.is_dir() else "sqlite", schema=capture.schema, duration_ns=capture.duration_ns,
            processes=self.threads.named(self._workers(tables)), nvtx_domains=ranges.domains_of(spans),
        )  # fmt: skip
        title = self.texts(path.name.removesuffix(".sqlite"))
        return RunInfo(
            "imported", title, conditions=conditions, devices=devices, metrics=_metrics(tables, conditions),
            notes=tuple(self.notes), machine={**({"gpus": gpus} if gpus else {}), **capture.machine},
            versions=facts(cuzklab=__version__, nsys=capture.product, schema=capture.schema),
        )  # fmt: skip

    def _workers(self, tables: Mapping[str, pa.Table]) -> set[str]:
        """Threads that did something."""
        return {
            word
            for name, column in (("spans", "thread"), ("api_calls", "thread"))
            for word in tables[name].column(column).unique().to_pylist()
        }

    def _availability(self, tables: Mapping[str, pa.Table], held: memory.Memory) -> dict[str, Availability]:
        capture, export = self.capture, self.export
        cuda, nvtx, libc = export.has(*_CUDA), export.has("NVTX_EVENTS"), export.has("OSRT_API")
        rows = {name: len(content) for name, content in tables.items()}
        found = {
            "spans": capture.availability("NVTX", "ranges", rows["spans"], nvtx),
            "kernels": capture.availability("CUDA", "kernels", rows["kernels"], cuda),
            "transfers": capture.availability("CUDA", "copies", rows["transfers"], cuda),
            "api_calls": capture.availability("CUDA", "API calls", rows["api_calls"], cuda or libc),
            "vram": capture.availability("GPU memory", "memory events", rows["vram"], held.events > 0),
            "waits": capture.availability("OS runtime", "calls that wait", rows["waits"], libc),
            "locks": Availability("present") if rows["locks"] else Availability(
                "not captured", "no range says who holds a lock: name ranges `lock:NAME wait` and `lock:NAME hold` in"
                f" the NVTX domain `{ranges.DOMAIN}`, or say what they are called with --lock",
            ),
            "counters": Availability("present") if rows["counters"] else Availability(
                "empty" if held.events else "not captured",
                "no event tells pinned host memory or a memory pool's size" if held.events
                else "pinned host memory and memory pools are known from memory events only",
            ),
        }  # fmt: skip
        waits = found["waits"]
        if waits.state == "present" and not libc:
            found["waits"] = Availability(
                "present", "waits for the device only; waits in libc were not captured (-t osrt adds them)"
            )
        elif waits.state == "present":
            found["waits"] = Availability(
                "present", waits.reason or "libc waits tell neither which lock nor who held it; calls below the"
                " capture's threshold are not in it",
            )  # fmt: skip
        return found


def _unmatched(kernels: pa.Table) -> int:
    return kernels.column("launch").null_count


def _metrics(tables: Mapping[str, pa.Table], conditions: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
    """Figures whose definition a capture meets: device memory at its peak."""
    vram = tables["vram"]
    if not len(vram):
        return ()
    peak = int(vram.column("live").to_numpy().max())
    kept = {name: value for name, value in conditions.items() if isinstance(value, str | int)}
    return (Metric("peak_vram", peak, "measured", kept).to_json(),)
