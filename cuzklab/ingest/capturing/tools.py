"""The programs of Nsight Systems: where they lie, and what they lack."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuzklab.errors import BadInput

# Beside a standalone Nsight Systems, also Nsight Compute holds a whole one.
_USUAL_PLACES = (
    "/opt/nvidia/nsight-systems*/**/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
    "/usr/local/cuda*/nsight-compute*/host/target-linux-*/nsys",
)
_IMPORTERS = ("host-linux-*/QdstrmImporter", "linux-desktop-*/QdstrmImporter", "host/host-linux-*/QdstrmImporter")
# Library → Debian's package.
_PACKAGES = {
    "libdw.so.1": "libdw1", "libelf.so.1": "libelf1", "libssh.so": "libssh-4 (under the name libssh.so)",
    "libssh.so.4": "libssh-4", "libnss3.so": "libnss3", "libnspr4.so": "libnspr4", "libnssutil3.so": "libnss3",
    "libsmime3.so": "libnss3", "libplc4.so": "libnspr4", "libplds4.so": "libnspr4",
}  # fmt: skip
_MISSING = re.compile(r"(?m)^\s*(\S+) => not found|loading shared libraries: ([^\s:]+):")
_FORBIDDEN = re.compile(
    r"(?i)^.*(ERR_NVGPUCTRPERM|permission denied|operation not permitted|not permitted"
    r"|insufficient (?:privilege|permission)|perf_event_paranoid).*$",
    re.MULTILINE,
)
_QUICK_S = 60


@dataclass(frozen=True)
class Tools:
    """The profiler, and the program that makes a report of its raw stream (None where there is none)."""

    nsys: Path
    importer: Path | None


def find(nsys: str = "") -> Tools:
    """The programs: as told, on the PATH, or in the usual places.

    Raises
    ------
    BadInput
        There is no nsys.
    """
    if nsys:
        found = shutil.which(nsys)
        if found is None:
            raise BadInput(f"--nsys {nsys}: no such program")
    else:
        found = shutil.which("nsys") or next(_elsewhere(), None)
    if found is None:
        raise BadInput(
            "nsys is missing: it is neither on the PATH nor under /opt/nvidia or /usr/local/cuda; install Nsight"
            " Systems, or say where it is with --nsys"
        )
    program = Path(found).resolve()
    beside = (place for up in program.parents[1:4] for pattern in _IMPORTERS for place in sorted(up.glob(pattern)))
    return Tools(program, next((place for place in beside if os.access(place, os.X_OK)), None))


def _elsewhere() -> Iterable[str]:
    for pattern in _USUAL_PLACES:
        for place in sorted(Path("/").glob(pattern[1:]), reverse=True):
            if os.access(place, os.X_OK):
                yield str(place)


def convert(tools: Tools, stream: Path, report: Path) -> None:
    """Make a report of a raw stream.

    Raises
    ------
    BadInput
        There is no importer, it lacks a library, or it failed.
    """
    if tools.importer is None:
        raise BadInput(
            "nsys wrote a raw stream, and the program that makes a report of it (QdstrmImporter) is not beside"
            f" {tools.nsys}; install the whole of Nsight Systems"
        )
    lacking = missing_libraries(tools.importer)
    if lacking:
        raise BadInput(
            f"{tools.importer.name} lacks {', '.join(lacking)}: install Debian's"
            f" {', '.join(dict.fromkeys(_PACKAGES.get(name, name) for name in lacking))}, or set LD_LIBRARY_PATH"
        )
    done = _run([tools.importer, "-i", stream, "-o", report])
    if done.returncode or not report.exists():
        raise BadInput(f"{tools.importer.name} could not make a report: {last_line(done.stdout)}")


def export(tools: Tools, report: Path, target: Path) -> None:
    """Export a report as SQLite.

    Raises
    ------
    BadInput
        It failed.
    """
    done = _run([tools.nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "-o", target, report])
    if done.returncode or not target.exists():
        lacking = ", ".join(_names(done.stdout))
        why = f"it lacks the library {lacking}" if lacking else last_line(done.stdout)
        raise BadInput(f"nsys export failed: {why}")


def missing_libraries(program: Path) -> list[str]:
    """Libraries that a program asks for and that are not there."""
    ldd = shutil.which("ldd")
    return _names(_run([ldd, program]).stdout) if ldd else []


def why_not_permitted(output: str) -> str:
    """What a profiler said that it may not do; empty where it said nothing of the kind."""
    match = _FORBIDDEN.search(output)
    return " ".join(match[0].split())[:200] if match else ""


def last_line(output: str) -> str:
    """The last thing that a program said."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def _names(output: str) -> list[str]:
    return list(dict.fromkeys(first or second for first, second in _MISSING.findall(output)))


def _run(command: Sequence[object]) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=_QUICK_S * 10, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise BadInput(f"{command[0]}: had not ended after {_QUICK_S * 10} s") from None
    except OSError as error:
        raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
