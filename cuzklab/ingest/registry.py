"""The formats that can be imported, and the import of a file into a stored run."""

import hashlib
import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path

from cuzklab.errors import BadInput, no_such
from cuzklab.ingest.model import Imported, Importer, Options
from cuzklab.trace import Columns, Run, write_run

_importers: dict[str, Importer] = {}
_CHUNK_BYTES = 1 << 20


def importer(added: Importer) -> Importer:
    """Make a format one of those that can be imported."""
    _importers[added.name] = added
    return added


def importers() -> dict[str, Importer]:
    """Every importer by its name."""
    from cuzklab.ingest import formats

    for module in pkgutil.iter_modules(formats.__path__):
        importlib.import_module(f"{formats.__name__}.{module.name}")
    return dict(sorted(_importers.items()))


def importer_for(path: Path, name: str = "") -> Importer:
    """The importer of a file: the one of that name, or the one that recognises the file.

    Raises
    ------
    BadInput
        There is no such file, no importer of that name, or none that recognises it.
    """
    known = importers()
    if name and name not in known:
        raise BadInput(no_such("importer", name, known))
    if not path.exists():
        raise BadInput(f"{path}: no such file")
    if name:
        return known[name]
    found = next((one for one in known.values() if one.recognises(path)), None)
    if found is None:
        reads = "; ".join(f"{one.name} ({one.reads})" for one in known.values())
        raise BadInput(f"{path}: nothing that can be imported. What can be: {reads}")
    return found


def import_file(path: Path | str, place: Path, options: Options | None = None, importer_name: str = "") -> Run:
    """Import a file and store it as a run.

    Parameters
    ----------
    path : Path or str
        A file, or a folder where the format is one.
    place : Path
        Where the run shall lie; a number is appended where something lies there already.
    options : Options, optional
    importer_name : str
        By default the importer that recognises the file.

    Raises
    ------
    BadInput
        No such file, of no known format, or damaged; nothing has been stored then.
    """
    path, options = Path(path), options or Options()
    read = importer_for(path, importer_name).read(path, options)
    options.report(0.9, "storing")
    return store(read, path, place)


def store(imported: Imported, source: Path, place: Path) -> Run:
    """Write what was read as a run, with the hash of its source."""
    info = replace(imported.info, inputs={**imported.info.inputs, "capture": digest(source)})
    states = imported.availability
    return write_run(
        place,
        info,
        Columns(imported.tables),
        tuple(name for name, one in states.items() if one.state == "not captured"),
        tuple(name for name, one in states.items() if one.state == "lost"),
        {name: one.reason for name, one in states.items()},
    )


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder with their names."""
    whole = hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.is_file():
            whole.update(f"{file.name}\0".encode(errors="replace") if path.is_dir() else b"")
            with file.open("rb") as content:
                while chunk := content.read(_CHUNK_BYTES):
                    whole.update(chunk)
    return whole.hexdigest()
