"""Runs on disk: a directory with `run.json` and one Parquet file a table, complete or absent.

A run is written under a temporary name beside its place and renamed when it is whole, so that an interrupted program
leaves either a complete run or none.
"""

import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cuzklab.trace.columns import Tables
from cuzklab.trace.schema import TABLES, arrow_schema, conform

FORMAT_VERSION = 1
ORIGINS = ("live", "simulated", "counterexample", "check", "imported")
OUTCOMES = ("ok", "device_oom", "host_oom", "deadlock", "fault")
_MAX_JSON_BYTES = 16 << 20
_DEEPEST = 6  # store/scheduled/NAME/DATE/runs/RUN


class RunError(ValueError):
    """A directory is not a readable run. The message is one line."""


@dataclass(frozen=True)
class RunInfo:
    """What `run.json` says: what ran, under which conditions, how it ended, what was captured.

    Attributes
    ----------
    origin : {"live", "simulated", "counterexample", "check", "imported"}
        A check without a counterexample has no rows; its conditions say what was covered.
    title : str
        What it is, for a heading.
    outcome : {"ok", "device_oom", "host_oom", "deadlock", "fault"}
    explanation : str
        One sentence on the outcome where it is not ok.
    policy : str
    conditions : mapping
        c, j, pw, gw, gt, partitions, workload, hardware, backend, policy options.
    devices : list of mapping
        For each device its index, name, vram_limit_bytes and margin_bytes.
    metrics : list of mapping
        `units.Metric.to_json` of each figure.
    inputs : mapping
        Hashes of keys, circuits and profiles by name.
    availability : mapping
        For each table its state (present, empty, not captured, lost) and its number of rows.
    """

    origin: str
    title: str
    outcome: str = "ok"
    explanation: str = ""
    policy: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    devices: tuple[Mapping[str, Any], ...] = ()
    metrics: tuple[Mapping[str, Any], ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    time_unit: str = "ns"
    availability: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    created: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise ValueError(f"origin must be one of {', '.join(ORIGINS)}, not {self.origin!r}")
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {', '.join(OUTCOMES)}, not {self.outcome!r}")


@dataclass(frozen=True)
class Run:
    """A stored run: what is known about it, and its tables, read when asked for."""

    path: Path
    info: RunInfo
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.path.name

    def table(self, name: str) -> pd.DataFrame:
        """A table as a frame; without rows, but with its columns, where the run has none.

        Raises
        ------
        RunError
            The file is damaged or lacks a column.
        """
        if name not in self._frames:
            file = self.path / f"{name}.parquet"
            schema = arrow_schema(name)
            if not file.exists():
                self._frames[name] = _to_frame(schema.empty_table())
            else:
                try:
                    self._frames[name] = _to_frame(read_table(file, name))
                except Exception as error:
                    raise RunError(f"{file}: not a readable table ({type(error).__name__}: {error})") from error
        return self._frames[name]

    @cached_property
    def availability(self) -> Mapping[str, Mapping[str, Any]]:
        return self.info.availability


def read_table(file: Path, name: str) -> pa.Table:
    """A table of a run from its file; columns that are younger than the file have their default."""
    return conform(pq.read_table(file), name)


def _to_frame(table: pa.Table) -> pd.DataFrame:
    """A frame whose nullable integers stay integers (nanoseconds do not survive a detour through floats)."""
    frame = table.to_pandas(integer_object_nulls=True)
    for column in table.schema:
        if column.nullable and column.type == pa.int64():
            frame[column.name] = frame[column.name].astype("Int64")
    return frame


def machine_facts() -> dict[str, Any]:
    """Where this runs: the processor's name and count, memory, system. No host or user names."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Versions of cuzklab, Python and the packages that results depend on."""
    from importlib import metadata

    found = {"python": platform.python_version()}
    for package in ("cuzklab", "numpy", "pyarrow", "pandas", "simpy", "py-arkworks-bls12381", "cupy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_run(
    place: Path,
    info: RunInfo,
    recorder: Tables,
    not_captured: tuple[str, ...] = (),
    lost: tuple[str, ...] = (),
    reasons: Mapping[str, str] | None = None,
    attachments: Mapping[str, str] | None = None,
) -> Run:
    """Write a run at `place`, whole or not at all.

    Parameters
    ----------
    place : Path
        The directory to make; where it exists already, a number is appended.
    info : RunInfo
        Creation time, machine (but of an import), versions and availability are filled in.
    recorder : Recorder or Columns
    not_captured, lost : tuple of str
        Tables that were switched off, and tables from which rows are missing.
    reasons : mapping, optional
        Why a table is in the state that it is in, a sentence each; kept in the availability record.
    attachments : mapping of str to str, optional
        Further files of the run, text by name.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        availability = {}
        for table in TABLES:
            rows = _write_table(recorder, table, temporary / f"{table}.parquet")
            if table in not_captured:
                state = "not captured"
            elif table in lost or table in recorder.lost:
                state = "lost"
            else:
                state = "present" if rows else "empty"
            availability[table] = {"state": state, "rows": rows}
            if reasons and reasons.get(table):
                availability[table]["reason"] = reasons[table]
            if table in recorder.lost:
                availability[table]["lost"] = recorder.lost[table]
        for name, text in (attachments or {}).items():
            (temporary / Path(name).name).write_text(text, encoding="utf-8")
        record = asdict(info) | {
            "availability": availability,
            "notes": (*info.notes, *recorder.notes),
            "created": info.created or datetime.now(UTC).isoformat(timespec="seconds"),
            # Where an import was made says nothing about where its run ran.
            "machine": info.machine or ({} if info.origin == "imported" else machine_facts()),
            "versions": info.versions or versions(),
        }
        (temporary / "run.json").write_text(json.dumps(record, indent=1, default=str) + "\n")
        temporary.chmod(0o755)
        place = _rename_to_free_place(temporary, place)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return load_run(place)


def _write_table(recorder: Tables, table: str, file: Path) -> int:
    """Write the rows of a table, a piece at a time, and tell how many there are; no file where there are none."""
    rows, writer = 0, None
    try:
        for batch in recorder.batches(table):
            if len(batch):
                # Without Arrow's own schema in the file, text is plain text to whoever reads it.
                writer = writer or pq.ParquetWriter(
                    file, batch.schema, compression="zstd", store_schema=False, use_dictionary=_text_columns(table)
                )
                writer.write_table(batch)
                rows += len(batch)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _text_columns(table: str) -> list[str]:
    """Columns whose values repeat; looking for repetitions among times and sizes takes long and finds few."""
    return [field.name for field in arrow_schema(table) if field.type == pa.string()]


def _rename_to_free_place(temporary: Path, place: Path) -> Path:
    candidate, number = place, 1
    while True:
        if not candidate.exists():
            try:
                temporary.rename(candidate)
                return candidate
            except OSError:
                if not candidate.exists():
                    raise
        number += 1
        candidate = place.with_name(f"{place.name}-{number}")


def load_run(path: Path | str) -> Run:
    """Open a run.

    Raises
    ------
    RunError
        There is no run, or its `run.json` is damaged, too large, or of a later format.
    """
    path = Path(path)
    file = path / "run.json"
    if not file.is_file():
        raise RunError(f"{path}: not a run (it has no run.json)")
    if file.stat().st_size > _MAX_JSON_BYTES:
        raise RunError(f"{file}: larger than {_MAX_JSON_BYTES} bytes, which no run.json is")
    try:
        record = json.loads(file.read_text())
        if not isinstance(record, dict):
            raise TypeError("not an object")
        if record.get("format_version", 0) > FORMAT_VERSION:
            raise RunError(
                f"{file}: written by a later cuzklab (format {record['format_version']}); upgrade to read it"
            )
        known = {name: record[name] for name in RunInfo.__dataclass_fields__ if name in record}
        for name in ("devices", "metrics", "notes"):
            known[name] = tuple(known.get(name, ()))
        info = RunInfo(**known)
    except RunError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise RunError(f"{file}: damaged ({error})") from error
    return Run(path, info)


def list_runs(folder: Path) -> list[Run]:
    """The readable runs in a folder, at most `_DEEPEST` levels below it, newest first.

    Hidden folders (runs being written or removed) are left out; a run holds no other run.
    """
    runs = []
    base = len(folder.parts)
    for place, folders, files in os.walk(folder):
        if "run.json" in files:
            folders.clear()
            try:
                runs.append(load_run(Path(place)))
            except RunError:
                continue
        elif len(Path(place).parts) - base >= _DEEPEST:
            folders.clear()
        else:
            folders[:] = sorted(name for name in folders if not name.startswith("."))
    return sorted(runs, key=lambda run: run.info.created, reverse=True)


def new_run_place(folder: Path, title: str) -> Path:
    """A place for a new run: folder/date-time-title, the title as one word."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return folder / f"{stamp}-{as_folder(title)}"


def as_folder(name: str) -> str:
    """A name as one word that a shell takes as it stands: ``phase9-phase9.py`` for ``phase9 (phase9.py)``."""
    return re.sub(r"[^\w.,=+-]+", "-", name).strip("-")
