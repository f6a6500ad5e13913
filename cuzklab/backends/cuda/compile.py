"""Compiles the CUDA C++ of `kernels/` with NVRTC, which needs neither a GPU nor a driver.

A compiled unit (a cubin) lies in the same folder of the user's cache as the CPU library, under a name that hashes what
it depends on: every source and header of `kernels/`, the compiler's version, the architecture and the options. A
kernel edited in a notebook is rebuilt by itself, an unchanged one never.
"""

import functools
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cuzklab.backends.native import cache_folder
from cuzklab.errors import BadInput
from cuzklab.resources import folder

OLDEST_ARCHITECTURE = 80
"""Compute capability × 10: sm_80 is the oldest that the register table covers."""


@dataclass(frozen=True)
class Unit:
    """One source of `kernels/cuda/` and the macros that it is compiled with.

    Attributes
    ----------
    source : str
        File name inside `kernels/cuda/`.
    defines : tuple of (str, int)
        Macros, for instance the radix of a transform's pass.
    """

    source: str
    defines: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        return "-".join([self.source.removesuffix(".cu"), *(f"{key.lower()}{value}" for key, value in self.defines)])


@dataclass(frozen=True)
class Cubin:
    """A compiled unit: where it lies, and what ptxas said about registers and spills."""

    path: Path
    log: str


def _nvrtc():
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # finds the library, or says that there is none
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadInput(
            f"CUDA: no run-time compiler found ({reason}): pip install 'cuzklab[cu13]' or 'cuzklab[cu12]'"
        ) from None
    return nvrtc


@functools.cache
def compiler_version() -> tuple[int, int]:
    """Version of NVRTC.

    Raises
    ------
    BadInput
        NVRTC is not installed.
    """
    _, major, minor = _nvrtc().nvrtcVersion()
    return major, minor


def sources_digest(root: Path) -> str:
    """Hash of every source and header below `root`."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".h", ".cuh", ".cu"):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def compile_unit(unit: Unit, architecture: int, kernels: Path | None = None) -> Cubin:
    """The cubin of a unit, from the cache where it is there.

    Parameters
    ----------
    unit : Unit
    architecture : int
        Compute capability × 10, for instance 90.
    kernels : Path, optional
        Another tree of sources, for instance an edited copy. Default: the one that the package brings.

    Raises
    ------
    BadInput
        An architecture older than sm_80, no NVRTC, or a source that does not compile: the compiler's first error,
        with its file and line.
    """
    if architecture < OLDEST_ARCHITECTURE:
        raise BadInput(
            f"CUDA: sm_{architecture} is too old, kernels need sm_{OLDEST_ARCHITECTURE} or newer; use --backend host"
        )
    root = (kernels or folder("kernels")).resolve()
    options = [
        f"--gpu-architecture=sm_{architecture}",
        "--std=c++17",
        "--ptxas-options=-v",
        "--extra-device-vectorization",
        f"--include-path={root / 'cuda'}",
        *(f"--define-macro={key}={value}" for key, value in unit.defines),
    ]
    relevant = [*(option for option in options if "include-path" not in option), str(compiler_version()), unit.name]
    key = hashlib.sha256("\0".join([sources_digest(root), *relevant]).encode()).hexdigest()[:32]
    path = cache_folder() / f"cuda-{unit.name}-sm{architecture}-{key}.cubin"
    log = path.with_suffix(".log")
    if not (path.is_file() and log.is_file()):
        code, text = _compile(root / "cuda" / unit.source, options)
        _write(log, text.encode())
        _write(path, code)
    return Cubin(path, log.read_text())


def _compile(source: Path, options: list[str]) -> tuple[bytes, str]:
    nvrtc = _nvrtc()
    try:
        text = source.read_bytes()
    except OSError as error:
        raise BadInput(f"{source}: cannot read the kernel ({error.strerror})") from None
    status, program = nvrtc.nvrtcCreateProgram(text, str(source).encode(), 0, [], [])
    _check(nvrtc, status)
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        report = log.rstrip(b"\0 ").decode(errors="replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise BadInput(f"{source.name} does not compile: {_first_error(report)}")
        status, size = nvrtc.nvrtcGetCUBINSize(program)
        _check(nvrtc, status)
        code = b" " * size
        (status,) = nvrtc.nvrtcGetCUBIN(program, code)
        _check(nvrtc, status)
        return code, report
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check(nvrtc, status) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BadInput(f"CUDA: the run-time compiler failed: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")


def _first_error(report: str) -> str:
    lines = report.splitlines()
    return next((line.strip() for line in lines if "error" in line), report.strip()[:200] or "no message")


def _write(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="build-", delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


@dataclass(frozen=True)
class Usage:
    """What one kernel takes: registers a thread, bytes of stack, bytes spilled."""

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


def usage(log: str) -> dict[str, Usage]:
    """Registers and spills of each kernel, from ptxas' report."""
    found: dict[str, Usage] = {}
    kernel, spills = None, (0, 0, 0)
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = match[1]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills = tuple(int(x) for x in match.groups())
        elif kernel and (match := re.search(r"Used (\d+) registers", line)):
            found[kernel] = Usage(int(match[1]), *spills)
            kernel = None
    return found
