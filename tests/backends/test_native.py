"""Compiling on first use: the cache, the search for a compiler, the choice of a multiply path."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cuzklab.backends import host, native
from cuzklab.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def small_core(tmp_path, monkeypatch):
    """A cache of its own, and a core of two small sources in place of the real one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kernels = tmp_path / "kernels"
    (kernels / "host").mkdir(parents=True)
    (kernels / "host" / "one.cpp").write_text(
        '#include "two.h"\nextern "C" __attribute__((visibility("default"))) int one() { return TWO - 1; }\n'
    )
    (kernels / "host" / "two.h").write_text("#define TWO 2\n")
    monkeypatch.setattr(native, "folder", lambda name: tmp_path / name)
    return kernels


def build() -> Path:
    return native._compile(native.find_compiler(), ("one.cpp",), (), "small")


def test_cache_is_made_private_and_used_again(small_core, tmp_path):
    first = build()
    assert first.parent == tmp_path / "cache" / "cuzklab"
    assert (first.parent.stat().st_mode & 0o777) == 0o700
    stamp = first.stat().st_mtime_ns
    assert build() == first and first.stat().st_mtime_ns == stamp
    assert [path.name for path in first.parent.iterdir()] == [first.name]  # nothing half built is left


def test_a_changed_header_is_another_library(small_core):
    first = build()
    (small_core / "host" / "two.h").write_text("#define TWO 3\n")
    assert build() != first


def test_options_and_compiler_are_part_of_the_key(small_core):
    compiler = native.find_compiler()
    plain = native._compile(compiler, ("one.cpp",), (), "small")
    assert native._compile(compiler, ("one.cpp",), ("-DX",), "small") != plain
    other = native.Compiler(compiler.command, compiler.identity + " of another version", compiler.options)
    assert native._compile(other, ("one.cpp",), (), "small") != plain


def test_what_does_not_compile_is_one_line_and_leaves_nothing(small_core, tmp_path):
    (small_core / "host" / "one.cpp").write_text("int one() { return nonsense; }\n")
    with pytest.raises(BadInput, match="nonsense") as caught:
        build()
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache" / "cuzklab").iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_cache_that_others_may_write_is_refused(small_core, tmp_path, mode):
    cache = tmp_path / "cache" / "cuzklab"
    cache.mkdir(parents=True)
    cache.chmod(mode)
    with pytest.raises(BadInput, match="others may write"):
        build()


def test_a_cache_of_another_user_is_refused(small_core, tmp_path, monkeypatch):
    build()
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "cache" / "cuzklab").stat().st_uid + 1)
    with pytest.raises(BadInput, match="another user"):
        build()


def test_a_link_in_place_of_the_cache_is_refused(small_core, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "cuzklab").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="not a folder of its own"):
        build()


def test_no_compiler_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(native, "_zig", lambda: None)
    with pytest.raises(BadInput, match=r"pip install 'cuzklab\[cpu\]'"):
        native.find_compiler()


def test_compilers_are_tried_in_order(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    zig = native._zig()
    assert zig is not None and native.find_compiler().command == (str(zig), "c++")
    for name in ("clang++", "g++"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho {name} 1.0\n")
        path.chmod(0o755)
        found = native.find_compiler()
        assert found.command == (name,) and found.identity == f"{name} 1.0"
    monkeypatch.setenv("CXX", str(tmp_path / "clang++") + " --flag")
    assert native.find_compiler().command == (str(tmp_path / "clang++"), "--flag")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BadInput, match="CXX=no-such-compiler"):
        native.find_compiler()


def test_choice_of_the_multiply_path(monkeypatch):
    monkeypatch.delenv("CUZKLAB_FIELD", raising=False)
    assert native.choose_field_path(3).name == "ifma"
    assert native.choose_field_path(1).name == "adx"
    assert native.choose_field_path(2).name == "portable"  # the vector path leans on ADX for single products
    assert native.choose_field_path(0).name == "portable"
    monkeypatch.setenv("CUZKLAB_FIELD", "portable")
    assert native.choose_field_path(1).name == "portable"
    monkeypatch.setenv("CUZKLAB_FIELD", "adx")
    assert native.choose_field_path(3).name == "adx"
    with pytest.raises(BadInput, match="lacks the instructions"):
        native.choose_field_path(0)
    monkeypatch.setenv("CUZKLAB_FIELD", "ifma")
    with pytest.raises(BadInput, match="lacks the instructions"):
        native.choose_field_path(1)
    monkeypatch.setenv("CUZKLAB_FIELD", "abacus")
    with pytest.raises(BadInput, match="unknown; one of ifma, adx, portable"):
        native.choose_field_path(1)


def test_cpu_features_agree_with_the_system():
    info = Path("/proc/cpuinfo")
    if not info.exists():
        pytest.skip("no /proc/cpuinfo to compare with")
    flags = set(next((line for line in info.read_text().splitlines() if line.startswith("flags")), "").split())
    features = native.cpu_features(native.find_compiler())
    assert bool(features & 1) == ({"adx", "bmi2"} <= flags)
    assert bool(features & 2) == ({"avx512f", "avx512dq", "avx512ifma", "avx512vl"} <= flags)


def test_zig_builds_the_same_arithmetic(monkeypatch, field_path):
    zig = native._zig()
    assert zig is not None
    scalars = host.ints_to_limbs([pow(3, 200 + i, host.FR_MODULUS) for i in range(64)], 4)

    def results() -> list[np.ndarray]:
        points = host.fixed_base_g2(scalars)
        transformed = scalars.copy()
        host.ntt(transformed, coset=7)
        return [points, host.msm_g2(points, scalars), host.msm_g1(host.fixed_base_g1(scalars), scalars), transformed]

    monkeypatch.setenv("CUZKLAB_FIELD", "portable")
    expected = results()
    monkeypatch.setenv("CUZKLAB_FIELD", field_path)
    monkeypatch.setenv("CXX", f"{zig} c++")
    assert "zig" in str(native.load().compiler) or "clang" in native.load().compiler
    for ours, theirs in zip(results(), expected, strict=True):
        assert (ours == theirs).all()


def test_two_processes_may_build_at_once(small_core, tmp_path):
    code = (
        "from pathlib import Path; from cuzklab.backends import native; import ctypes\n"
        f"native.folder = lambda name: Path({str(tmp_path)!r}) / name\n"
        "library = native._compile(native.find_compiler(), ('one.cpp',), (), 'small')\n"
        "assert ctypes.CDLL(str(library)).one() == 1"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
