"""What a command cost, as it says at its end: seconds, and the most memory that it had resident."""

import resource
import sys
import time
from pathlib import Path


class Cost:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def to_json(self) -> dict[str, float | int]:
        return {"seconds": round(time.monotonic() - self._start, 3), "peak_resident_bytes": peak_resident_bytes()}

    def __str__(self) -> str:
        from cuzklab.units import format_seconds, format_size

        seconds = format_seconds(time.monotonic() - self._start)
        return f"{seconds}, at most {format_size(peak_resident_bytes())} resident, mapped files included"


def peak_resident_bytes() -> int:
    """The most memory that this process ever had resident, pages of mapped files included."""
    status = Path("/proc/self/status")
    if status.is_file():  # what `getrusage` tells may be of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)
