"""A stand-in for the programs of Nsight Systems, at the boundary where a command meets them.

`install` lays out `nsys` and `QdstrmImporter` as Nsight Systems does. They take the real command lines: `profile` runs
the command and leaves what the real one does, `export` writes a real export, into which it puts the environment and
what the command printed, as the real one does.
"""

import shutil
import sys
from pathlib import Path

_NSYS = """\
#!{python}
import os, pathlib, shutil, sqlite3, subprocess, sys

MODE, EXPORT = {mode!r}, {export!r}
arguments = sys.argv[1:]
if arguments[0] == "profile":
    if MODE == "forbidden":
        sys.exit("The target application terminated. ptrace: Operation not permitted")
    place = arguments.index("-o")
    base, command = arguments[place + 1], arguments[place + 2:]
    assert "--cuda-memory-usage=true" in arguments and "none" in arguments
    done = subprocess.run(command, stdout=subprocess.PIPE)
    sys.stdout.buffer.write(done.stdout)
    if MODE == "nothing":
        print("Failed to create a report")
        sys.exit(done.returncode)
    content = repr(dict(os.environ)).encode() + done.stdout
    pathlib.Path(base + (".qdstrm" if MODE == "stream" else ".nsys-rep")).write_bytes(content)
    print("Generating", base)
    sys.exit(done.returncode)
assert arguments[:3] == ["export", "--type", "sqlite"]
target, report = arguments[arguments.index("-o") + 1], arguments[-1]
said = pathlib.Path(report).read_bytes().decode()
shutil.copy(EXPORT, target)
os.chmod(target, 0o600)
with sqlite3.connect(target) as export:
    for name, value in os.environ.items():
        export.execute("INSERT INTO META_DATA_CAPTURE VALUES (?, ?)", ("PROCESS_ENVIRONMENT", name + "=" + value))
    last = export.execute("SELECT max(id) FROM StringIds").fetchone()[0]
    export.execute("INSERT INTO StringIds VALUES (?, ?)", (last + 1, said))
    secret = os.environ.get("ENGINE_TOKEN")
    if secret:
        export.execute("UPDATE StringIds SET value = value || ? WHERE value LIKE 'lock:%'", (" " + secret,))
export.close()
"""
_IMPORTER = """\
#!{python}
import pathlib, shutil, sys
stream, report = (sys.argv[sys.argv.index(option) + 1] for option in ("-i", "-o"))
shutil.copy(stream, report)
"""


# A profiler that sees the ranges of the very run, on a clock of its own, and a kernel in each stage of the device.
_WATCHING = """\
#!{python}
import pathlib, subprocess, sys
sys.path.insert(0, {root!r})
import pyarrow.parquet as pq
from tests.ingest import synthetic

arguments = sys.argv[1:]
if arguments[0] == "profile":
    place = arguments.index("-o")
    base, command = arguments[place + 1], arguments[place + 2:]
    done = subprocess.run(command)
    spans = pq.read_table(pathlib.Path(command[-1]) / "spans.parquet").to_pylist()
    threads = {{name: number + 1 for number, name in enumerate(sorted({{row["thread"] for row in spans}}))}}
    ranges, calls, kernels = [], [], []
    for number, row in enumerate(spans):
        who, at = synthetic.tid(5, threads[row["thread"]]), row["start"] - {offset}
        ranges.append({{"start": at - 700, "end": row["end"] - {offset} + 700, "globalTid": who, "text": row["name"],
                       "domainId": 1}})
        if row["category"] == "gpu":
            calls.append((at + 10, at + 20, 0, who, number + 1, 1, 0))
            kernels.append((at + 30, at + 90, 0, 1, 7, number + 1, synthetic.pid(5), 2, 2))
    domain = {{"start": 0, "eventType": synthetic.DOMAIN, "text": "cuzk", "domainId": 1,
              "globalTid": synthetic.tid(5, 1)}}
    synthetic.write(pathlib.Path(base + ".nsys-rep"), {{
        "StringIds": [(1, "cudaLaunchKernel"), (2, "seen")], "NVTX_EVENTS": synthetic.ranges([domain, *ranges]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls, "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
    }})
    sys.exit(done.returncode)
pathlib.Path(arguments[arguments.index("-o") + 1]).write_bytes(pathlib.Path(arguments[-1]).read_bytes())
"""
OFFSET_NS = 1_000_000_000


def install_watching(folder: Path) -> Path:
    """Lay out a profiler that captures the run of `cuzklab run --capture`; the folder to put on the PATH."""
    place = folder / "target-linux-x64" / "nsys"
    place.parent.mkdir(parents=True)
    root = str(Path(__file__).resolve().parents[2])
    place.write_text(_WATCHING.format(python=sys.executable, root=root, offset=OFFSET_NS))
    place.chmod(0o755)
    return place.parent


def install(folder: Path, export: Path, mode: str = "report", importer: bool = True) -> Path:
    """Lay the programs out in a folder.

    Parameters
    ----------
    export : Path
        What `nsys export` shall write, before it adds the environment.
    mode : {"report", "stream", "forbidden", "nothing"}
        What `nsys profile` leaves.

    Returns
    -------
    Path
        The folder to put on the PATH.
    """
    programs = [("target-linux-x64/nsys", _NSYS)]
    if importer:
        programs.append(("host-linux-x64/QdstrmImporter", _IMPORTER))
    for name, text in programs:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.format(python=sys.executable, mode=mode, export=str(export)))
        place.chmod(0o755)
    return folder / "target-linux-x64"


def anywhere_in(folder: Path, secret: str) -> list[str]:
    """Files of a folder, at any depth, that hold a text, in UTF-8 or UTF-16, also inside Parquet's pages."""
    import pyarrow.parquet as pq

    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            raw = file.read_bytes()
            inside = str(pq.read_table(file).to_pylist()).encode() if file.suffix == ".parquet" else b""
            if any(text in raw + inside for text in (secret.encode(), secret.encode("utf-16-le"))):
                found.append(str(file))
    return found


def without(path: str, program: str) -> str:
    """A PATH without the folders that hold a program."""
    return ":".join(part for part in path.split(":") if not shutil.which(program, path=part))
