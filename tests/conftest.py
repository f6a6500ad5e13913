"""What several test modules share: the path of the real data, and where the package lies."""

import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Machines are shared and noisy: how long one example takes says nothing about the code.
settings.register_profile("cuzklab", deadline=None)
settings.load_profile("cuzklab")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it puts into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def find_shared_data() -> Path | None:
    """The folder `shared/data` beside the checkout or any folder above it, or None."""
    for parent in ROOT.parents:
        if (parent / "shared" / "data").is_dir():
            return parent / "shared" / "data"
    return None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real circuits, keys and captures. Absent: the test skips and says so; in CI it fails."""
    folder = find_shared_data()
    if folder is None:
        message = "real data not found: no folder shared/data beside the checkout"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


NATIVE = {"backends", "cli", "kernels", "live", "prover"}  # folders of tests that use the native core


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile the native core before any test's time runs: on a loaded machine that takes minutes, once.

    Of several processes of pytest one compiles, and the others wait for it.
    """
    items = [item for item in session.items if item.path.parent.name in NATIVE]
    if not items or session.config.option.collectonly:
        return
    from cuzklab.backends import native

    with open(native.cache_folder() / "tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        native.load()
        if any("field_path" in getattr(item, "fixturenames", ()) for item in items):
            compiler = native.find_compiler()
            for path in native.FIELD_PATHS:
                if path.runs_on(native.cpu_features(compiler)):
                    native.compile_path(compiler, path)
