"""What host and GPU share: the constants, and headers that compile for both."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.resources import folder

KERNELS = folder("kernels")


def constants() -> dict[str, int]:
    """The macros of bls12_381.h as integers."""
    text = (KERNELS / "field" / "bls12_381.h").read_text().replace("\\\n", " ")
    found = {}
    for name, words in re.findall(r"#define (F[PR]_\w+) \{([^}]*)\}", text):
        found[name] = sum(int(word, 16) << (64 * i) for i, word in enumerate(re.findall(r"0x[0-9a-f]+", words)))
    for name, word in re.findall(r"#define (F[PR]_\w+) (0x[0-9a-f]+)ull", text):
        found[name] = int(word, 16)
    return found


def test_constants_follow_from_the_moduli():
    expected = {}
    for name, modulus, limbs in (("FP", FP_MODULUS, 6), ("FR", FR_MODULUS, 4)):
        r = 1 << (64 * limbs)
        expected |= {
            f"{name}_MODULUS": modulus,
            f"{name}_ONE": r % modulus,
            f"{name}_R2": r**2 % modulus,
            f"{name}_R3": r**3 % modulus,
            f"{name}_INVERSE64": -pow(modulus, -1, 1 << 64) % (1 << 64),
        }
    assert constants() == expected


def test_top_digit_bound_uses_the_modulus():
    text = (KERNELS / "msm" / "digits.h").read_text()
    assert int(re.search(r"top = (0x[0-9a-f]+)ull", text)[1], 16) == FR_MODULUS >> 192


def test_shared_headers_compile_for_a_gpu(tmp_path):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    source = Path(__file__).with_name("shared_headers.cu")
    target = tmp_path / "shared.ptx"
    command = [nvcc, "-std=c++17", "-arch=compute_80", "-ptx", "-I", str(KERNELS), str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(f".entry {name}(" in target.read_text() for name in ("g1", "g2", "ntt"))


def test_core_is_freestanding():
    # What the host sources may include: their own headers, the compiler's cpuid and its vector instructions.
    for path in KERNELS.rglob("*"):
        if path.suffix in (".h", ".cpp"):
            assert set(re.findall(r"#include <(.*)>", path.read_text())) <= {"cpuid.h", "immintrin.h"}, path
