"""Independent software that judges our files and proofs: snarkjs (JavaScript), mcl (C++), py_ecc (Python).

None of them shares code with the library under test. snarkjs does not check subgroups, so it is never asked alone.
"""

import atexit
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def find_node_modules() -> Path | None:
    """The folder with snarkjs: CUZKLAB_NODE_MODULES, or `node_modules` in the checkout or any folder above it."""
    named = os.environ.get("CUZKLAB_NODE_MODULES")
    candidates = [Path(named)] if named else [folder / "node_modules" for folder in (ROOT, *ROOT.parents)]
    return next((folder for folder in candidates if (folder / "snarkjs").is_dir()), None)


@functools.cache
def _snarkjs_process() -> subprocess.Popen:
    modules, node = find_node_modules(), shutil.which("node")
    if modules is None or node is None:
        message = "snarkjs not found: install node, run `npm install snarkjs`, or set CUZKLAB_NODE_MODULES"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    process = subprocess.Popen(
        [node, str(ROOT / "tests" / "js" / "verify.mjs"), str(modules)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen) -> None:
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


def snarkjs(action: str, **arguments):
    """Ask snarkjs (one node process for all tests); what it may be asked stands in `tests/js/verify.mjs`."""
    process = _snarkjs_process()
    print(json.dumps({"do": action, **{k: _plain(v) for k, v in arguments.items()}}), file=process.stdin, flush=True)
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise RuntimeError(f"snarkjs: {answer['error']}")
    return answer["value"]


def _plain(value):
    return str(value) if isinstance(value, Path) else value


def snarkjs_verify(vk: dict, public: list[str], proof: dict) -> bool:
    """Verdict of snarkjs on parsed JSON documents. It checks the curve equation, not the subgroup."""
    return snarkjs("verify", vk=vk, public=public, proof=proof)


def pymcl_verify(vk: dict, public: list[str], proof: dict) -> bool:
    """Verdict of mcl; a point that it refuses to load (off the curve or outside the subgroup) is a refusal."""
    import pymcl

    def g1(point):
        return pymcl.G1("0" if point[2] == "0" else f"1 {point[0]} {point[1]}")

    def g2(point):
        (x0, x1), (y0, y1), z = point
        return pymcl.G2("0" if z == ["0", "0"] else f"1 {x0} {x1} {y0} {y1}")

    if len(public) != len(vk["IC"]) - 1:
        return False
    try:
        a, b, c = g1(proof["pi_a"]), g2(proof["pi_b"]), g1(proof["pi_c"])
    except RuntimeError:
        return False
    inputs = g1(vk["IC"][0])
    for value, point in zip(public, vk["IC"][1:]):
        inputs = inputs + g1(point) * pymcl.Fr(value)
    right = (
        pymcl.pairing(g1(vk["vk_alpha_1"]), g2(vk["vk_beta_2"]))
        * pymcl.pairing(inputs, g2(vk["vk_gamma_2"]))
        * pymcl.pairing(c, g2(vk["vk_delta_2"]))
    )
    return pymcl.pairing(a, b) == right


def py_ecc_verify(vk: dict, public: list[str], proof: dict) -> bool:
    """Verdict of py_ecc: the equation alone, in plain Python; about two seconds."""
    from py_ecc import optimized_bls12_381 as curve

    def g1(point):
        return tuple(curve.FQ(int(n)) for n in point)

    def g2(point):
        return tuple(curve.FQ2([int(n) for n in pair]) for pair in point)

    inputs = g1(vk["IC"][0])
    for value, point in zip(public, vk["IC"][1:]):
        inputs = curve.add(inputs, curve.multiply(g1(point), int(value)))
    product = curve.FQ12.one()
    for p, q in (
        (curve.neg(g1(proof["pi_a"])), g2(proof["pi_b"])),
        (g1(vk["vk_alpha_1"]), g2(vk["vk_beta_2"])),
        (inputs, g2(vk["vk_gamma_2"])),
        (g1(proof["pi_c"]), g2(vk["vk_delta_2"])),
    ):
        product *= curve.pairing(q, p, final_exponentiate=False)
    return curve.final_exponentiate(product) == curve.FQ12.one()


def load(folder: Path) -> tuple[dict, list[str], dict]:
    """Verification key, public values and proof of a folder of real data, as parsed JSON."""
    return tuple(json.loads((folder / f"{name}.json").read_text()) for name in ("verification_key", "public", "proof"))
