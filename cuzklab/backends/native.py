"""Compiles the CPU code of `kernels/` on first use and loads it.

The library lies in a folder of the user's own cache, under a name that hashes everything it depends on: all sources,
the compiler's identity, the options and the multiply path. So a changed kernel is rebuilt by itself, an unchanged one
never, and two processes that build at once do no harm (each writes its own file and renames it).
"""

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cuzklab.backends.entry_points import declare
from cuzklab.errors import BadInput
from cuzklab.resources import folder

_SOURCES = ("vectors.cpp", "split.cpp", "ntt.cpp", "g1.cpp", "g2.cpp")
# No -march=native: wide vectors make gcc slow to compile these sources and win nothing, assembly does the work.
_OPTIONS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fomit-frame-pointer",
)


@dataclass(frozen=True)
class FieldPath:
    """A way to multiply: its name, the options that build it, and the bits of `cpu_features` that it needs.

    `vector_sources` are built beside the others, with `vector_options` after `_OPTIONS` instead of `options`.
    """

    name: str
    options: tuple[str, ...]
    needs: int
    vector_sources: tuple[str, ...] = ()
    vector_options: tuple[str, ...] = ()

    def runs_on(self, features: int) -> bool:
        """Whether a CPU with these `cpu_features` has all the instructions."""
        return self.needs & features == self.needs


_ADX_OPTIONS = ("-DCUZKLAB_FIELD_ADX", "-mbmi2", "-madx")
# Best first.
FIELD_PATHS = (
    # Sums of many points and transforms go eight at a time, everything else as on ADX.
    FieldPath(
        "ifma",
        (*_ADX_OPTIONS, "-mgeneral-regs-only", "-DCUZKLAB_FIELD_IFMA"),
        1 | 2,
        ("g1_ifma.cpp", "g2_ifma.cpp", "ntt_ifma.cpp"),
        (*_ADX_OPTIONS, "-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512ifma", "-mprefer-vector-width=512"),
    ),
    FieldPath("adx", (*_ADX_OPTIONS, "-mgeneral-regs-only"), 1),
    # Its loops over limbs must be unrolled.
    FieldPath("portable", ("-O3", "-fno-tree-vectorize"), 0),
)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: the command that starts it, what tells it apart, and options of its own."""

    command: tuple[str, ...]
    identity: str
    options: tuple[str, ...] = ()


def cache_folder() -> Path:
    """The folder of compiled libraries, made if absent.

    Raises
    ------
    BadInput
        Another user owns it or may write to it: what it holds would be run as this user.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "cuzklab"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise BadInput(
            f"{path}: cannot make the cache of compiled kernels ({error.strerror}); set XDG_CACHE_HOME"
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise BadInput(f"{path}: the cache of compiled kernels is not a folder of its own; set XDG_CACHE_HOME")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise BadInput(f"{path}: the cache of compiled kernels belongs to another user; set XDG_CACHE_HOME")
    if found.st_mode & 0o022:
        raise BadInput(
            f"{path}: others may write to the cache of compiled kernels; chmod go-w it, or set XDG_CACHE_HOME"
        )
    return path


def find_compiler() -> Compiler:
    """The first of $CXX, g++, clang++ and the `ziglang` package that answers.

    Raises
    ------
    BadInput
        None does; the message names the extra that brings one.
    """
    wanted = os.environ.get("CXX")
    if wanted:
        compiler = _compiler(*shlex.split(wanted))
        if compiler is None:
            raise BadInput(f"CXX={wanted}: not a compiler that runs; unset CXX or correct it")
        return compiler
    zig = _zig()
    for command in (("g++",), ("clang++",), *([(str(zig), "c++")] if zig else [])):
        if (compiler := _compiler(*command)) is not None:
            return compiler
    raise BadInput(
        "no C++ compiler found for the CPU kernels (tried g++, clang++, ziglang): pip install 'cuzklab[cpu]'"
    )


def _compiler(*command: str) -> Compiler | None:
    """The compiler that this command starts, or None."""
    if not command or shutil.which(command[0]) is None:
        return None
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # zig links its own C++ library and turns on sanitizers unless told otherwise; the core needs neither.
    zig = Path(command[0]).stem == "zig"
    return Compiler(command, answer.stdout.strip(), ("-nostdlib++", "-fno-sanitize=undefined") if zig else ())


def _zig() -> Path | None:
    """The binary inside the `ziglang` package, called by path: its module form needs an interpreter on the way."""
    try:
        import ziglang
    except ImportError:
        return None
    path = Path(ziglang.__file__).parent / ("zig.exe" if os.name == "nt" else "zig")
    return path if path.is_file() else None


_kernels: Path | None = None


def use_kernels(root: Path | None) -> None:
    """Compile from another tree of sources from now on, or (None) from the package's own."""
    global _kernels
    _kernels = root


def _root() -> Path:
    return _kernels or folder("kernels")


def _sources_digest() -> bytes:
    digest = hashlib.sha256()
    root = _root()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".h", ".cpp"):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


def _compile(
    compiler: Compiler,
    sources: tuple[str, ...],
    options: tuple[str, ...],
    name: str,
    vector_sources: tuple[str, ...] = (),
    vector_options: tuple[str, ...] = (),
) -> Path:
    """Path of the shared library built from these sources with their options, from the cache where it is there."""
    common = (*_OPTIONS, *compiler.options)
    options, vector_options = (*common, *options), (*common, *vector_options)
    key = hashlib.sha256(_sources_digest())
    key.update(
        "\0".join(
            (
                compiler.identity,
                str(shutil.which(compiler.command[0])),
                *compiler.command,
                *sources,
                *options,
                *vector_sources,
                *vector_options,
                sys.platform,
            )
        ).encode()
    )
    cache = cache_folder()
    library = cache / f"{name}-{key.hexdigest()[:32]}.so"
    if library.is_file():
        return library
    host = _root() / "host"
    with tempfile.TemporaryDirectory(prefix="build-", dir=cache) as scratch:

        def build(source: str) -> str:
            target = str(Path(scratch) / f"{source}.o")
            own = vector_options if source in vector_sources else options
            _run([*compiler.command, *own, "-c", str(host / source), "-o", target])
            return target

        every = (*vector_sources, *sources)  # the slowest first
        with ThreadPoolExecutor(max_workers=len(every)) as pool:
            objects = list(pool.map(build, every))
        linked = Path(scratch) / library.name
        _run([*compiler.command, *options, "-shared", *objects, "-o", str(linked)])
        os.replace(linked, library)
    return library


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise BadInput(f"{command[0]}: the CPU kernels do not compile: {first}; set CXX to another compiler")


def cpu_features(compiler: Compiler) -> int:
    """Bits of what this CPU can do, as `kernels/host/cpu.cpp` numbers them."""
    probe = ctypes.CDLL(str(_compile(compiler, ("cpu.cpp",), (), "cpu")))
    probe.cpu_features.restype = ctypes.c_uint32
    return int(probe.cpu_features())


def choose_field_path(features: int) -> FieldPath:
    """The best multiply path for these CPU features, or the one that CUZKLAB_FIELD names.

    Raises
    ------
    BadInput
        CUZKLAB_FIELD names none, or one that this CPU cannot run.
    """
    usable = [path for path in FIELD_PATHS if path.runs_on(features)]
    wanted = os.environ.get("CUZKLAB_FIELD")
    if not wanted:
        return usable[0]
    for path in FIELD_PATHS:
        if path.name == wanted:
            if path not in usable:
                raise BadInput(f"CUZKLAB_FIELD={wanted}: this CPU lacks the instructions; leave it unset")
            return path
    names = ", ".join(path.name for path in FIELD_PATHS)
    raise BadInput(f"CUZKLAB_FIELD={wanted}: unknown; one of {names}")


def compile_path(compiler: Compiler, field: FieldPath) -> Path:
    """The library of a multiply path, compiled if need be."""
    return _compile(compiler, _SOURCES, field.options, f"host-{field.name}", field.vector_sources, field.vector_options)


@dataclass(frozen=True)
class Native:
    """A loaded library, and how it was made."""

    library: ctypes.CDLL
    path: Path
    field_path: str
    compiler: str


_loading = threading.Lock()  # the first callers wait for one build instead of each making its own


@functools.cache
def _load(wanted_field: str | None, wanted_compiler: str | None, cache: str | None, kernels: Path | None) -> Native:
    compiler = find_compiler()
    field = choose_field_path(cpu_features(compiler))
    path = compile_path(compiler, field)
    library = ctypes.CDLL(str(path))
    declare(library)
    return Native(library, path, field.name, compiler.identity.splitlines()[0])


def load() -> Native:
    """The native library for this machine, compiled if need be (some seconds, once).

    The environment is read at every call, so a test may set CUZKLAB_FIELD or CXX and get another build.

    Raises
    ------
    BadInput
        No compiler, or the cache is not safe to use.
    """
    with _loading:
        return _load(*(os.environ.get(name) for name in ("CUZKLAB_FIELD", "CXX", "XDG_CACHE_HOME")), _kernels)
