"""Peak memory of a whole proof from a mapped key, measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cuzklab.prover.files import write_params, write_r1cs, write_witness, write_zkey
from cuzklab.prover.porep_counts import porep_constraints
from cuzklab.prover.porep_shaped import porep_shaped
from cuzklab.prover.setup import bellman_setup, setup

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import gc, json, sys
from cuzklab.prover.files import read_r1cs, read_witness
from cuzklab.prover.keys import open_key
from cuzklab.prover.prove import prove

def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) << 10

warm_key, warm_witness, key, witness, r1cs = sys.argv[1:]
# What any proof needs besides: the library's tables and the pairing library's pages, by a small proof first.
prove(open_key(warm_key), read_witness(warm_witness), threads=2)
# A .params file needs the circuit beside it, which is the caller's.
system = read_r1cs(r1cs) if key.endswith(".params") else None
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
values = read_witness(witness)
opened = open_key(key, system)
prove(opened, values, threads=2)
vectors = values.nbytes + 3 * 32 * opened.domain
print(json.dumps({"peak": status("VmHWM") - before, "vectors": vectors}))
"""


def write_circuit(folder: Path, constraints: int, name: str) -> None:
    system, witness = porep_shaped(constraints, seed=1)
    write_r1cs(folder / f"{name}.r1cs", system)
    write_witness(folder / f"{name}.wtns", witness)
    write_zkey(folder / f"{name}.zkey", setup(system, 1))
    write_params(folder / f"{name}.params", bellman_setup(system, 1))


@pytest.mark.slow
def test_peak_is_the_key_and_one_and_a_half_times_the_vectors(tmp_path):
    write_circuit(tmp_path, 994, "small")
    write_circuit(tmp_path, porep_constraints(18), "large")  # smaller ones are ruled by the buckets of an MSM
    for kind in ("zkey", "params"):
        key = tmp_path / f"large.{kind}"
        arguments = [tmp_path / "small.zkey", tmp_path / "small.wtns", key, tmp_path / "large.wtns"]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *map(str, arguments), str(tmp_path / "large.r1cs")],
            capture_output=True, text=True, cwd=ROOT, timeout=120, check=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
        print(kind, key.stat().st_size, found)
        assert found["peak"] <= key.stat().st_size + 1.5 * found["vectors"], (kind, key.stat().st_size, found)
