"""Where a verb may write: tried before its work, so that nobody waits for a result that then cannot be stored."""

import stat
import tempfile
from pathlib import Path
from typing import Any

import typer

from cuzklab.errors import BadInput


def output_folder(help: str) -> Any:
    """The option ``-o`` of a verb that makes a run or a folder."""
    return typer.Option("-o", "--output", callback=checked_folder, help=help)


def output_file(help: str) -> Any:
    """The option ``-o`` of a verb that writes a file."""
    return typer.Option("-o", "--output", callback=checked_file, help=help)


def checked_folder(place: Path | None) -> Path | None:
    """Callback of an option that names a run or a folder to make, with the folders above it."""
    if place is not None:
        _try_to_write(place, place.absolute())
    return place


def checked_file(place: Path | None) -> Path | None:
    """Callback of an option that names a file to write; its folder must be there."""
    if place is not None and not _is_device(place):
        if place.is_dir():
            raise BadInput(f"{place}: is a folder; name a file")
        if not place.absolute().parent.is_dir():
            raise BadInput(f"{place}: its folder does not exist; make it first")
        _try_to_write(place, place.absolute().parent)
    return place


def checked_files(places: list[Path]) -> list[Path]:
    """The same for an option that may be given several times."""
    for place in places:
        checked_file(place)
    return places


def _is_device(place: Path) -> bool:
    try:
        mode = place.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _try_to_write(place: Path, wanted: Path) -> None:
    """Make a file in the nearest folder that there is, which says more than its permissions do."""
    try:
        while not wanted.exists():
            wanted = wanted.parent
        folder = wanted if wanted.is_dir() else wanted.parent
        if wanted is not folder and wanted != place.absolute():
            raise BadInput(f"{place}: {wanted} is a file, not a folder")
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".cuzklab-"):
            pass
    except OSError as error:
        raise BadInput(f"{place}: nothing can be written there ({error.strerror})") from None
