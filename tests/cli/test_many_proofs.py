"""Both dialects, many proofs and statistics of keys from the command line."""

import json
import os
import subprocess
import sys

import pytest

from cuzklab.prover import snarkjs_peer
from tests.cli.command import cuzklab
from tests.conftest import ROOT
from tests.prover import judges


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A circuit with two witnesses and its keys in both dialects."""
    folder = tmp_path_factory.mktemp("many")
    for seed in (1, 2):
        done = cuzklab("circuit", "make", "porep-shaped", "--log2-domain", 9, "--seed", 1, "-o", folder / f"c{seed}")
        assert done.status == 0
    outputs = [part for name in ("k.zkey", "vk.json", "k.params", "k.vk") for part in ("-o", folder / name)]
    done = cuzklab("setup", "--r1cs", folder / "c1" / "circuit.r1cs", "--seed", 7, *outputs)
    assert done.status == 0 and "TEST KEY" in done.err, done.err
    return folder


def prove(folder, key, out, *more, count=2):
    witnesses = [part for seed in range(1, count + 1) for part in ("--witness", folder / f"c{seed}" / "circuit.wtns")]
    return cuzklab("prove", "--key", folder / key, *witnesses, "-o", out, *more)


def test_one_setup_writes_both_dialects_and_each_proves_and_verifies(made, tmp_path):
    r1cs = ("--r1cs", made / "c1" / "circuit.r1cs")
    for key, vk, out, more in (("k.zkey", "vk.json", "p.json", ()), ("k.params", "k.vk", "p.bin", r1cs)):
        done = prove(made, key, tmp_path / out, "--public", tmp_path / "public.json", *more, "--json", count=1)
        assert done.status == 0, done.err
        assert done.json["dialect"] == ("snarkjs" if key == "k.zkey" else "bellman")
        for checked_with in (key, vk):
            arguments = ("--key", made / checked_with, "--public", tmp_path / "public.json", "--proof", tmp_path / out)
            assert cuzklab("verify", *arguments).status == 0
        # The other dialect's key is another key.
        other = "k.vk" if vk == "vk.json" else "vk.json"
        arguments = ("--key", made / other, "--public", tmp_path / "public.json", "--proof", tmp_path / out)
        assert cuzklab("verify", *arguments).status == 1
    assert (tmp_path / "p.bin").stat().st_size == 192


@pytest.fixture(scope="module")
def proofs(made, tmp_path_factory):
    """Two proofs as lines, two compressed, and one in a file of its own, with their public values."""
    folder = tmp_path_factory.mktemp("proofs")
    assert prove(made, "k.zkey", folder / "p.jsonl").status == 0
    assert prove(made, "k.zkey", folder / "p.bin", "--public", folder / "public.json").status == 0
    assert prove(made, "k.zkey", folder / "p.json", "--public", folder / "one.json", count=1).status == 0
    return folder


def test_several_witnesses_to_lines_and_to_compressed_proofs(made, proofs, tmp_path):
    lines, raw, public = proofs / "p.jsonl", tmp_path / "p.bin", tmp_path / "public.json"
    assert cuzklab("verify", "--key", made / "k.zkey", "--proof", lines).out.startswith("valid: all 2 proofs; ")
    vk = json.loads((made / "vk.json").read_text())
    for line in lines.read_text().splitlines():
        value = json.loads(line)
        assert judges.snarkjs_verify(vk, value["publicSignals"], value["proof"])
        assert judges.pymcl_verify(vk, value["publicSignals"], value["proof"])
    done = prove(made, "k.params", raw, "--public", public, "--r1cs", made / "c1" / "circuit.r1cs")
    assert done.status == 0 and "2 proofs, verified" in done.out
    assert raw.stat().st_size == 2 * 192
    arguments = ("verify", "--key", made / "k.params", "--proof", raw, "--public", public, "--json")
    found = cuzklab(*arguments).json
    assert {name: found[name] for name in ("valid", "proofs", "invalid")} == {"valid": True, "proofs": 2, "invalid": []}


def test_what_a_command_cost_is_told(made, proofs, tmp_path):
    """Of a process of its own: the kernel's figure for its life is what it says at the end, or hardly more."""
    arguments = ("verify", "--key", made / "vk.json", "--proof", proofs / "p.jsonl", "--json")
    code = f"import sys, os; sys.argv = {['cuzklab', *map(str, arguments)]}\nfrom cuzklab.cli import main\nmain()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    found = json.loads(out)
    assert process.returncode == 0 and 0 < found["seconds"] < 600
    assert 1 << 24 < found["peak_resident_bytes"] <= usage.ru_maxrss << 10
    assert " resident, mapped files included" in cuzklab(*arguments[:-1]).out


def test_the_invalid_ones_are_named(made, proofs, tmp_path):
    lines = tmp_path / "p.jsonl"
    good = (proofs / "p.jsonl").read_text().splitlines()[0]
    wrong = json.loads(good)
    wrong["publicSignals"][0] = str(int(wrong["publicSignals"][0]) + 1)
    lines.write_text("\n".join([good, json.dumps(wrong), "", good, good, json.dumps(wrong)]) + "\n")
    done = cuzklab("verify", "--key", made / "vk.json", "--proof", lines, "--json")
    assert done.status == 1
    assert [(it["proof"], it["at"], it["why"]) for it in done.json["invalid"]] == [
        (2, "line 2", "equation"),
        (5, "line 6", "equation"),
    ]
    text = cuzklab("verify", "--key", made / "vk.json", "--proof", lines)
    assert text.status == 1 and "not valid: 2 of 5 proofs" in text.out and "line 6" in text.out
    assert "5 of 5 proofs" in text.err, "progress"


def test_bytes_that_are_no_proof_are_invalid_and_named(made, proofs, tmp_path):
    raw, public = tmp_path / "p.bin", proofs / "public.json"
    data = bytearray((proofs / "p.bin").read_bytes())
    data[192] &= 0x7F
    raw.write_bytes(data)
    done = cuzklab("verify", "--key", made / "vk.json", "--proof", raw, "--public", public, "--json")
    assert done.status == 1
    assert [(it["proof"], it["at"], it["why"]) for it in done.json["invalid"]] == [(2, "byte 192", "encoding")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("verify", "--proof", "p.jsonl", "--public", "public.json"), "holds the public values"),
        (("verify", "--proof", "p.bin"), "do not hold their public values"),
        (("verify", "--proof", "p.bin", "--public", "one.json"), "public values of 1 proofs"),
        (("verify", "--proof", "p.json"), "--public: needed"),
    ],
)
def test_usage_that_cannot_be_meant(made, proofs, arguments, words):
    paths = [proofs / it if "." in it else it for it in arguments[1:]]
    done = cuzklab(arguments[0], "--key", made / "vk.json", *paths)
    assert done.status == 2 and words in done.err, done.err
    assert done.err.count("\n") <= 2


def test_what_prove_and_setup_refuse(made, tmp_path):
    assert "need FILE.jsonl or FILE.bin" in prove(made, "k.zkey", tmp_path / "p.json").err
    assert "for one witness only" in prove(made, "k.zkey", tmp_path / "p.bin", "--r", 1).err
    assert "give the circuit" in prove(made, "k.params", tmp_path / "p.bin").err
    done = cuzklab("setup", "--r1cs", made / "c1" / "circuit.r1cs", "--seed", 1, "-o", tmp_path / "key")
    assert done.status == 2 and ".params" in done.err
    assert list(tmp_path.iterdir()) == []


def test_statistics_of_a_circuit_and_of_its_keys_agree(made):
    circuit, witness = made / "c1" / "circuit.r1cs", made / "c1" / "circuit.wtns"
    of = {
        name: cuzklab("circuit", "stats", path, "--witness", witness, *more, "--json").json
        for name, path, more in (
            ("r1cs", circuit, ()), ("zkey", made / "k.zkey", ()), ("params", made / "k.params", ("--r1cs", circuit)),
        )
    }  # fmt: skip
    for name in ("wires", "domain", "share_of_zeros", "share_of_ones", "share_of_tail", "splits"):
        assert of["r1cs"][name] == of["zkey"][name] == of["params"][name], name
    assert of["zkey"]["points_a"] == of["params"]["points_a"]
    assert of["zkey"]["points_h"] == of["params"]["points_h"] + 1
    assert of["zkey"]["kind"].startswith("test key") and of["params"]["kind"].startswith("test key")
    rows = {row["query"]: row for row in of["r1cs"]["splits"]}
    assert set(rows) == {"l", "a", "b"}
    for row in rows.values():
        assert row["points"] == row["zeros"] + row["ones"] + row["tail"]
        assert row["pays"] == (2 * row["tail"] <= row["points"])
    assert rows["l"]["pays"] and rows["l"]["saved"] > 0.5
    alone = cuzklab("circuit", "stats", made / "k.params", "--json").json
    assert {name: alone[name] for name in ("wires", "domain", "points_b_g2", "query_bytes", "density_b")} == {
        name: of["params"][name] for name in ("wires", "domain", "points_b_g2", "query_bytes", "density_b")
    }
    assert "give the circuit" in cuzklab("circuit", "stats", made / "k.params", "--witness", witness).err
    text = cuzklab("circuit", "stats", made / "k.zkey", "--witness", witness).out
    assert "additions saved" in text and "pays" in text


def test_a_circuit_of_full_scalars_is_not_worth_splitting(shared_data):
    folder = shared_data / "groth16" / "poseidon2"
    found = cuzklab(
        "circuit", "stats", folder / "poseidon2.zkey", "--witness", folder / "poseidon2.wtns", "--json"
    ).json
    assert [row["pays"] for row in found["splits"]] == [False] * 3


def test_bench_prove_says_when_the_peer_is_absent(monkeypatch, tmp_path):
    from cuzklab.prover import bench
    from cuzklab.prover.porep_shaped import porep_shaped

    monkeypatch.setenv("CUZKLAB_NODE_MODULES", str(tmp_path))
    monkeypatch.setitem(bench.CIRCUITS, "porep-shaped-17", lambda: porep_shaped(248, 1))
    arguments = ("bench", "prove", "--work", "porep-shaped-17,verify", "--proofs", 8, "--repeats", 1)
    done = cuzklab(*arguments, "--json")
    assert done.status == 0, done.err
    assert "holds no snarkjs" in done.json["peer"]
    rows = done.json["rows"]
    assert [(row["dialect"], row["peer"]) for row in rows] == [
        ("snarkjs", None), ("bellman", None), ("either", "one by one"),
    ]  # fmt: skip
    assert rows[2]["ratio"] == rows[2]["median_s"] / rows[2]["peer_s"]
    assert cuzklab("bench", "prove", "--work", "nonsense").status == 2


@pytest.mark.slow
def test_bench_prove_measures_snarkjs_beside(monkeypatch):
    if isinstance(missing := snarkjs_peer.find_node_modules(), snarkjs_peer.Absent):
        pytest.skip(missing.reason)
    from cuzklab.prover import bench
    from cuzklab.prover.porep_shaped import porep_shaped

    monkeypatch.setitem(bench.CIRCUITS, "porep-shaped-17", lambda: porep_shaped(248, 1))
    done = cuzklab("bench", "prove", "--work", "porep-shaped-17", "--repeats", 1, "--json")
    row = done.json["rows"][0]
    assert row["peer"] == "snarkjs" and row["peer_s"] > 0
    assert row["ratio"] == row["median_s"] / row["peer_s"]
    assert "snarkjs 0." in done.json["peer"]
