"""What several test modules share: the path of the real data, and where the package lies."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Machines are shared and noisy: how long one example takes says nothing about the code.
settings.register_profile("cuzklab", deadline=None)
settings.load_profile("cuzklab")


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
