"""Where the folders beside the package lie: `kernels/`, `lab/` and `notebooks/`.

In a checkout they are the top-level folders; in an installed wheel they travel inside the package.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Path of one of the shipped folders.

    Parameters
    ----------
    name : {"kernels", "lab", "notebooks"}

    Raises
    ------
    FileNotFoundError
        The installation is incomplete.
    """
    for candidate in (_PACKAGE / "_share" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"cuzklab: folder {name!r} is missing beside {_PACKAGE}; reinstall cuzklab")
