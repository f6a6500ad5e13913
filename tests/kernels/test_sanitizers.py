"""The native core under AddressSanitizer and UndefinedBehaviorSanitizer: the tests of arithmetic once more, in a
process of their own, on every multiply path that this CPU has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuzklab.backends import native

ROOT = Path(__file__).resolve().parents[2]
SANITIZED = "g++ -fsanitize=address,undefined -fno-sanitize-recover=all -g1"
# Hostile inputs of every entry point; the sizes at which threads and chunks begin are in them.
TESTS = (
    "tests/backends/test_msm.py",
    "tests/backends/test_points.py",
    "tests/backends/test_encoding.py",
    "tests/backends/test_transform.py",
    "tests/backends/test_field.py",
    "tests/prover/test_bellman.py::test_every_form_of_the_constraints_evaluates_to_the_same",
)


def runtime() -> str | None:
    """The sanitizer's own library, which must be loaded before Python; None where g++ or it is not installed."""
    try:
        said = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    path = said.stdout.strip()
    return path if os.path.isabs(path) else None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_arithmetic_is_clean(tmp_path, monkeypatch):
    if (library := runtime()) is None:
        pytest.skip("g++ with libasan is not installed")
    monkeypatch.setenv("CXX", SANITIZED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Compiled here, and only loaded there: the compiler itself must not run under the sanitizer.
    compiler = native.find_compiler()
    native._compile(compiler, ("cpu.cpp",), (), "cpu")
    for path in native.FIELD_PATHS:
        native._compile(
            compiler, native._SOURCES, path.options, f"host-{path.name}", path.vector_sources, path.vector_options
        )
    environment = os.environ | {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", "--timeout=600", *TESTS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "runtime error" not in done.stdout + done.stderr
