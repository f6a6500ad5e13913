"""The native core under AddressSanitizer and UndefinedBehaviorSanitizer: the tests of arithmetic once more, in a
process of their own, on AVX-512 IFMA, where this CPU has it, and on portable code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuzklab.backends import native

ROOT = Path(__file__).resolve().parents[2]
# Checks as calls: inlined into wide vectors they take the compiler minutes.
SANITIZED = (
    "g++ -g1 -fsanitize=address,undefined -fno-sanitize-recover=all --param asan-instrumentation-with-call-threshold=0"
)
# The path `adx` is left out: its sums are the sources of `portable`, its multiply is assembly that is part of `ifma`.
PATHS = ("ifma", "portable")
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
    options = tuple("-O1" if option == "-O2" else option for option in native._OPTIONS)
    monkeypatch.setattr(native, "_OPTIONS", options)
    # Compiled here, and only loaded there: the compiler itself must not run under the sanitizer.
    compiler = native.find_compiler()
    native._compile(compiler, ("cpu.cpp",), (), "cpu")
    for path in (path for path in native.FIELD_PATHS if path.name in PATHS):
        native._compile(
            compiler, native._SOURCES, path.options, f"host-{path.name}", path.vector_sources, path.vector_options
        )
    environment = os.environ | {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    script = (
        "import sys, pytest; from cuzklab.backends import native; "
        f"native._OPTIONS = {options!r}; sys.exit(pytest.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "-p", "no:cacheprovider", "-x", "--timeout=600", "-k", "not adx", *TESTS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "runtime error" not in done.stdout + done.stderr
