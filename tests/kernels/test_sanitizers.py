"""The native core under AddressSanitizer and UndefinedBehaviorSanitizer, in a process of its own."""

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


def runtime() -> str | None:
    """The sanitizer's own library, which must be loaded before Python; None where g++ or it is not installed."""
    try:
        said = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    path = said.stdout.strip()
    return path if os.path.isabs(path) else None


# The path `adx` is left out: its sums are the sources of `portable`, its multiply is assembly that is part of `ifma`.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["ifma", "portable"])
def test_every_entry_point_is_clean(tmp_path, monkeypatch, name):
    if (library := runtime()) is None:
        pytest.skip("g++ with libasan is not installed")
    path = next(path for path in native.FIELD_PATHS if path.name == name)
    if not path.runs_on(native.cpu_features(native.find_compiler())):
        pytest.skip(f"this CPU lacks what the path {name} needs")
    monkeypatch.setenv("CXX", SANITIZED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CUZKLAB_FIELD", name)
    options = tuple("-O0" if option == "-O2" else option for option in native._OPTIONS)
    monkeypatch.setattr(native, "_OPTIONS", options)
    # Compiled here, and only loaded there: the compiler itself must not run under the sanitizer.
    compiler = native.find_compiler()
    native._compile(compiler, ("cpu.cpp",), (), "cpu")
    native.compile_path(compiler, path)
    script = (
        f"from cuzklab.backends import native; native._OPTIONS = {options!r}; "
        f"import runpy; runpy.run_path({str(ROOT / 'tests' / 'kernels' / 'sanitized.py')!r})"
    )
    environment = os.environ | {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert done.stdout.strip() == f"clean on {name}"
