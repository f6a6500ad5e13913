"""Real captures, imported once a session."""

from functools import cache
from pathlib import Path

import pytest

from cuzklab.ingest import Options, import_file
from cuzklab.trace import Run

# Locks of captures whose ranges were named before there was a convention.
LOCKS = {
    "local_pthread_locks.schema-3.0.0": {"mutex": ("wait", "hold")},
    "local_pthread_locks.schema-3.7.2": {"mutex": ("wait", "hold")},
}


@pytest.fixture(scope="session")
def captured(shared_data, tmp_path_factory):
    """Import a capture of the shared data by its name."""
    folder = tmp_path_factory.mktemp("captures")

    @cache
    def run(name: str) -> Run:
        options = Options(locks=LOCKS.get(name, {}))
        return import_file(shared_data / "nsys" / f"{name}.sqlite", folder / name, options)

    return run


@pytest.fixture
def imported(tmp_path):
    """Import a file into a folder of the test."""

    def run(path: Path, **options: object) -> Run:
        return import_file(path, tmp_path / "run", Options(**options))

    return run
