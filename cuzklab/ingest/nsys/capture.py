"""What a capture is: who made it, with which options, on which machine, and what it says of its own gaps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuzklab.ingest.model import Availability
from cuzklab.ingest.nsys.export import Export
from cuzklab.ingest.privacy import Texts, decode, secret_values

# The newest schema of a real file that the tests hold.
NEWEST_TESTED = (3, 20, 3)

# Of the machine: what a figure depends on. Names of hosts, users, folders and serial numbers stay out.
_MACHINE = {
    "CpuDescription": "processor", "CpuCores": "cores", "CpuArchitecture": "architecture", "OsDescription": "system",
    "NvDriverVersion": "gpu_driver", "CudaDriverVersion": "cuda_driver",
}  # fmt: skip

# Kind of event → (name in the capture's list of event types, option of the traced process, word in diagnostics)
_KINDS = {
    "CUDA": ("Cuda", "COLLECT_CUDA_TRACE", "CUDA"),
    "NVTX": ("NvtxEvents", "COLLECT_NVTX_TRACE", "NVTX"),
    "OS runtime": ("OSRuntime", "", "OS runtime libraries"),
    "GPU memory": ("", "COLLECT_GPU_MEMORY_USAGE", "CUDA"),
}
_HOW = {
    "CUDA": "-t cuda", "NVTX": "-t nvtx", "OS runtime": "-t osrt", "GPU memory": "--cuda-memory-usage=true",
}  # fmt: skip
_LOSS = re.compile(r"(?i)\b(lost|dropped|discarded|overflow\w*|exceeded|truncated|failed to (?:collect|flush))\b")


@dataclass
class Capture:
    """Facts of a capture.

    Attributes
    ----------
    product, schema : str
        Versions of Nsight Systems and of the export's schema; empty where the export does not say.
    options : mapping
        Options of the capture: name → values; empty where the export does not say.
    machine : mapping
    incomplete : frozenset of str
        Kinds of events of which Nsight Systems says that some might be missing.
    losses : tuple of str
        What it says was lost.
    duration_ns : int or None
    limits : str
        Tables or times to which the export was restricted.
    """

    product: str = ""
    schema: str = ""
    options: Mapping[str, list[str]] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()
    losses: tuple[str, ...] = ()
    duration_ns: int | None = None
    limits: str = ""

    def was_on(self, kind: str) -> bool | None:
        """Whether a kind of event was to be captured; None where the export does not say."""
        event_type, option, _ = _KINDS[kind]
        if not self.options:
            return None
        stated = [value for name, values in self.options.items() if option and name.endswith(f":{option}")
                  for value in values]  # fmt: skip
        if stated:
            return "true" in (value.lower() for value in stated)
        types = self.options.get("CAPTURE_EVENT_TYPE")
        return event_type in types if types and event_type else None

    def availability(self, kind: str, what: str, rows: int, seen: bool) -> Availability:
        """Whether a table of a kind of event has what happened.

        Parameters
        ----------
        kind : str
        what : str
            What a row is, in the plural.
        rows : int
        seen : bool
            Whether the export has any other rows of this kind, which show that it was captured.
        """
        some_missing = kind in self.incomplete or any(_KINDS[kind][2] in loss for loss in self.losses)
        warning = f"Nsight Systems warns that not all {_KINDS[kind][2]} events may have been collected"
        if rows:
            return Availability("present", warning if some_missing else "")
        if self.limits:
            return Availability("not captured", f"the export was restricted to {self.limits}")
        if self.was_on(kind) is False:
            return Availability("not captured", f"the capture ran without {kind} events ({_HOW[kind]} adds them)")
        if some_missing and not seen:
            return Availability("lost", warning)
        if self.was_on(kind) or seen:
            return Availability("empty", f"{kind} events were captured, and there were no {what}")
        return Availability(
            "not captured",
            f"the export has no {what} and does not say whether {kind} events were captured: off, failed, or none",
        )


def read_capture(export: Export, texts: Texts) -> Capture:
    """What an export says about its capture."""
    exported = _pairs(export, "META_DATA_EXPORT") or _pairs(export, "EXPORT_META_DATA")
    options = _pairs(export, "META_DATA_CAPTURE")
    machine: dict[str, Any] = {}
    for name, value in export.texts("TARGET_INFO_SYSTEM_ENV", "name", "value"):
        key = _MACHINE.get(decode(name))
        if key and key not in machine and decode(value) not in ("", "0") and "redacted" not in decode(value):
            text = texts(value)[:100]
            machine[key] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    incomplete, losses = _gaps(export, texts)
    limits = [
        what
        for name, what in (
            ("EXPORT_PARAM_TABLES_TO_EXPORT", "some tables"),
            ("EXPORT_PARAM_TIMES_TO_EXPORT", "some times"),
        )
        if any(exported.get(name, ()))
    ]
    return Capture(
        _version(exported, "EXPORT_PRODUCT_VERSION"), _version(exported, "EXPORT_SCHEMA_VERSION"), options, machine,
        incomplete, losses, _duration_ns(export), " and ".join(limits),
    )  # fmt: skip


def secrets_of(export: Export) -> set[str]:
    """Values of secret-looking variables in the captured environments."""
    found: set[str] = set()
    for name, value in export.texts("META_DATA_CAPTURE", "name", "value"):
        if "ENVIRONMENT" in decode(name).upper():
            found |= secret_values([decode(value)])
    for _, value in export.texts("TARGET_INFO_SYSTEM_ENV", "name", "value"):
        found |= secret_values([decode(value)])
    return found


def newer_than_tested(schema: str) -> str:
    """A warning for a schema that is newer than any that was tested; empty for others."""
    if not schema or _numbers(schema) <= NEWEST_TESTED:
        return ""
    tested = ".".join(map(str, NEWEST_TESTED))
    return (
        f"The export has schema {schema}, newer than {tested}, the newest that this importer was tested on: columns"
        " that were renamed read as absent. Compare a few figures with `nsys stats`."
    )


def command_of(capture: Capture, texts: Texts, whole: bool) -> str:
    """The program that was captured: its name, with its arguments only where private things are kept."""
    command = next((values[0] for name, values in capture.options.items() if name.endswith(":COMMAND") and values), "")
    if not whole:
        return texts(command.rpartition("/")[2])
    arguments = [value for name, values in capture.options.items() if re.search(r":ARGUMENT_\d+$", name)
                 for value in values]  # fmt: skip
    return texts(" ".join([command, *arguments]))


def _pairs(export: Export, table: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in export.texts(table, "name", "value"):
        found.setdefault(decode(name), []).append(decode(value))
    return found


def _gaps(export: Export, texts: Texts) -> tuple[frozenset[str], tuple[str, ...]]:
    """Kinds of which some might be missing, and sentences about losses; other texts hold paths and are not kept."""
    incomplete, losses = set(), []
    for (raw,) in export.texts("DIAGNOSTIC_EVENT", "text"):
        text = decode(raw)
        if text.startswith("Not all "):
            incomplete |= {kind for kind, (_, _, word) in _KINDS.items() if f"Not all {word} events" in text}
        elif _LOSS.search(text) and "/" not in text and len(losses) < 20:
            losses.append(texts(text)[:200])
    return frozenset(incomplete), tuple(losses)


def _duration_ns(export: Export) -> int | None:
    details = export.integers("ANALYSIS_DETAILS", "duration", "startTime", "stopTime")
    lengths = [length for length in details["duration"].tolist() if 0 < length < 1 << 61]
    return max(lengths, default=None)


def _version(exported: Mapping[str, list[str]], name: str) -> str:
    text = next(iter(exported.get(name, ())), "")
    match = re.fullmatch(r"\d{1,6}(\.\d{1,6}){0,5}", text.strip())
    return match[0] if match else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
