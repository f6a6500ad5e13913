"""check, simulate and run from the command line: exit status, JSON shapes, one line for bad input."""

import shutil
from pathlib import Path

import pytest

from cuzklab import policies
from cuzklab.backends import cuda
from cuzklab.report.comparison import compared
from cuzklab.trace import load_run
from tests.cli.command import cuzklab


def test_an_unsafe_design_exits_1_and_names_the_schedule():
    done = cuzklab("check", "phase10_ordered", "--workers", 3, "--partitions", 2, "--vram", "16GiB", "--json")
    assert done.status == 1
    assert done.json["verdict"] == "unsafe"
    assert done.json["complete"] is True
    finding = done.json["findings"][0]
    assert finding["kind"] == "oom"
    assert [step["step"] for step in finding["schedule"]] == list(range(1, len(finding["schedule"]) + 1))
    assert finding["schedule"][-1]["effect"].startswith("Alloc gpu0 d_bc")
    assert {"step", "actor", "effect"} <= set(finding["schedule"][0])


def test_a_safe_design_exits_0(tmp_path):
    done = cuzklab("check", "phase9", "--workers", 3, "--partitions", 2, "--vram", "16GiB", "-o", tmp_path / "run")
    assert done.status == 0
    assert "phase9 is safe with 3 workers × 2 partitions on 16.0 GiB" in done.out
    assert load_run(tmp_path / "run").info.origin == "check"


def test_waiting_allocation_under_nested_locks_is_a_capacity_deadlock(tmp_path):
    done = cuzklab("check", "phase10_nested", "-p", "on_full=wait", "--json", "-o", tmp_path / "run")
    assert done.status == 1
    assert "capacity_deadlock" in {finding["kind"] for finding in done.json["findings"]}
    assert load_run(tmp_path / "run").info.outcome == "deadlock"


def test_a_simulation_prints_the_agreed_fields(tmp_path):
    arguments = ("simulate", "phase9", "-c", 4, "-j", 4, "-p", "gw=2", "-p", "pw=4", "--json", "-o", tmp_path / "run")
    done = cuzklab(*arguments)
    assert done.status == 0
    assert done.json["outcome"] == "ok"
    assert {
        "batch_average_s", "steady_interval_s", "prove_time_s", "peak_host_bytes", "peak_vram_bytes", "call_occupancy",
        "kernel_occupancy",
    } <= set(done.json["metrics"])  # fmt: skip
    assert done.json["conditions"]["gw"] == 2
    assert load_run(tmp_path / "run").info.origin == "simulated"


def test_a_live_run_verifies_its_proofs_and_stores_a_run(tmp_path):
    done = cuzklab(
        "run", "phase9", "--workload", "porep-shaped-14", "--partitions", 2, "-o", tmp_path / "run", "--json"
    )
    assert done.status == 0, done.err
    assert (done.json["proofs"], done.json["verified"]) == (1, 1)
    assert "TEST KEY" in " ".join(load_run(done.json["run"]).info.notes)


def test_a_simulation_that_ends_badly_is_a_failure():
    """What was asked is whether the design gets through."""
    asked = ("simulate", "phase10_nested", "-c", 1, "-p", "gw=3", "-p", "on_full=fail", "--vram", "16GiB", "--seeds", 1)
    done = cuzklab(*asked, "--json")
    assert (done.status, done.json["outcome"]) == (1, "device_oom")
    done = cuzklab(*asked)
    assert done.status == 1 and "device_oom" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "phase99"), "no policy 'phase99'"),
        (("check", "phase9", "--workers", 0), "workers must be at least 1"),
        (("check", "phase9", "--workers", -1), "workers must be at least 1"),
        (("check", "phase9", "--partitions", 0), "partitions must be at least 1"),
        (("check", "phase9", "--devices", 0), "devices must be at least 1"),
        (("check", "nowhere.py"), "no such policy file: nowhere.py"),
        (("check", "phase9", "--vram", "lots"), "--vram: 'lots' is not a size"),
        (("check", "phase9", "--vram", "0"), "--vram: must be more than nothing"),
        (("check", "phase9", "-p", "depth"), "write it NAME=VALUE"),
        (("check", "phase9", "-p", "depth=2"), "has no option 'depth'"),
        (("simulate", "phase9", "-p", "gw=0"), "-p gw=0: write a whole number from 1 on"),
        (("simulate", "phase9", "--hardware", "abacus"), "abacus"),
        (("simulate", "phase9", "-c", 0), "proofs must be at least 1"),
        (("run", "phase9", "--workload", "novel"), "novel"),
        (("run", "phase9", "--backend", "abacus"), "--backend abacus: no such backend; use auto, cuda, host, sim"),
        (("run", "phase9", "--devices", "0"), "gpus is 0"),
        (("bench", "kernels", "--backend", "sim"), "--backend sim: makes no sense here"),
        (("bench", "kernels", "--sizes", "three"), "--sizes 'three'"),
        (("report", "phase99"), "phase99"),
        (("runs", "show", "nowhere"), "not a run"),
        (("runs", "query", "SELEC"), "query:"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cuzklab(*arguments)
    assert done.status == 2
    assert message in done.err
    assert done.err.startswith("cuzklab: ")
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(cuda.available() is None, reason="there is a GPU")
@pytest.mark.parametrize("verb", ["run phase9", "report phase10", "bench kernels", "prove --key k --witness w -o p"])
def test_the_gpu_is_asked_for_where_there_is_none(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cuzklab(*verb.split(), "--backend", "cuda")
    assert done.status == 2 and done.out == ""
    assert done.err.startswith("cuzklab: --backend cuda: CUDA: ") and done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_in_virtual_time_says_that_it_proves_nothing(tmp_path):
    options = ("--workload", "porep-shaped-20", "--partitions", 2, "--workers", 2, "--backend", "sim")
    done = cuzklab("run", "phase9", *options, "-o", tmp_path / "run")
    assert done.status == 0
    assert done.out.startswith("SIMULATION, no proofs: ok")
    shown = cuzklab("runs", "show", tmp_path / "run", "--json").json
    assert shown["origin"] == "simulated"
    # 16 GiB of a domain of 2^27 are 128 MiB of one of 2^20.
    assert shown["conditions"]["vram_bytes"] == 128 << 20
    # Two partitions' buffers do not fit in 16 GiB, whatever the circuit's size.
    full = cuzklab("run", "phase10_ordered", *options, "-o", tmp_path / "full", "--json")
    assert full.json["conditions"]["backend"] == "sim"


@pytest.mark.parametrize(
    "verb",
    ["check", "simulate", "run", "report", "setup", "prove", "verify", "circuit make", "circuit stats", "bench kernels",
     "runs list", "runs show", "runs compare", "runs query"],
)  # fmt: skip
def test_every_verb_explains_itself(verb):
    done = cuzklab(*verb.split(), "--help")
    assert done.status == 0
    assert "Usage: cuzklab" in done.out
    assert "--json" in done.out


def test_stored_runs_are_listed_shown_and_queried(tmp_path):
    assert "no runs in" in cuzklab("runs", "list", "--store", tmp_path).out
    cuzklab("check", "phase9", "-o", tmp_path / "first")
    cuzklab("simulate", "phase9", "-c", 1, "-o", tmp_path / "second")
    listed = cuzklab("runs", "list", "--store", tmp_path, "--json").json
    assert {run["origin"] for run in listed} == {"check", "simulated"}
    assert "phase9" in cuzklab("runs", "list", "--store", tmp_path).out
    assert "prove_time" in cuzklab("runs", "show", tmp_path / "second").out
    answer = cuzklab("runs", "query", "SELECT count(DISTINCT run) AS n FROM locks", "--store", tmp_path, "--json").json
    assert answer == [{"n": 1}]


def test_two_runs_are_compared_kind_by_kind_unless_they_are_different_experiments(tmp_path, monkeypatch):
    for name, policy, proofs in (("a", "phase9", 2), ("b", "phase8", 2), ("c", "phase8", 3)):
        cuzklab("simulate", policy, "-c", proofs, "-o", tmp_path / name)
    done = cuzklab("runs", "compare", tmp_path / "a", tmp_path / "b", "--json")
    figures = {row["kind"]: row for row in done.json["figures"]}
    assert figures["prove_time"]["ratio"] == figures["prove_time"]["candidate"] / figures["prove_time"]["baseline"] < 1
    assert "batch average" in cuzklab("runs", "compare", tmp_path / "a", tmp_path / "b").out
    shutil.copytree(tmp_path / "b", tmp_path / "elsewhere" / "a")
    monkeypatch.chdir(tmp_path)
    out = cuzklab("runs", "compare", "a", "elsewhere/a").out
    (header,) = (line.split() for line in out.splitlines() if line.startswith("figure"))
    assert header == ["figure", "a", "elsewhere/a", "ratio", "obtained"]
    itself = cuzklab("runs", "compare", "a", "./a")
    assert itself.status == 2 and "both are this run" in itself.err
    refused = cuzklab("runs", "compare", tmp_path / "a", tmp_path / "c")
    assert refused.status == 2
    assert "they differ in c (2 and 3)" in refused.err


def test_runs_of_a_file_called_as_a_shipped_policy_are_told_from_those_of_the_shipped_one(tmp_path, monkeypatch):
    (tmp_path / "phase9.py").write_text(Path(policies.load("phase9").module.__file__).read_text())
    monkeypatch.chdir(tmp_path)
    for name, policy in (("mine", "./phase9.py"), ("shipped", "phase9")):
        cuzklab("simulate", policy, "-c", 1, "-o", name)
    listed = cuzklab("runs", "list", "--store", ".", "--json").json
    assert {run["run"]: run["policy"] for run in listed} == {"mine": "phase9 (phase9.py)", "shipped": "phase9"}
    assert cuzklab("runs", "compare", "mine", "shipped", "--json").json["designs"] == ["phase9 (phase9.py)", "phase9"]
    lines = [line.split(maxsplit=1) for line in cuzklab("runs", "compare", "mine", "shipped").out.splitlines()]
    assert [[run, rest.rstrip()] for run, rest in lines[1:3]] == [["mine", "phase9 (phase9.py)"], ["shipped", "phase9"]]
    post = compared("mine", "shipped")
    assert (post.case.candidate, post.case.baseline) == ("phase9 (phase9.py)", "phase9")
    explained = cuzklab("simulate", "mine", "--explain")
    assert explained.status == 2 and "phase9 (phase9.py)" in explained.err


def test_a_live_run_of_a_file_called_as_a_shipped_policy_is_not_simulated_as_that(tmp_path, monkeypatch):
    (tmp_path / "phase9.py").write_text(Path(policies.load("phase9").module.__file__).read_text())
    monkeypatch.chdir(tmp_path)
    made = cuzklab("run", "./phase9.py", "--workload", "porep-shaped-8", "--partitions", 1, "--vram", "20000GiB",
                   "--backend", "host", "--json")  # fmt: skip
    place = made.json["run"]
    assert made.status == 0 and Path(place).name.endswith("-phase9-phase9.py")
    for asked in (("validate", place), ("simulate", "--calibrate", place)):
        refused = cuzklab(*asked, "--hardware", "emulated")
        assert refused.status == 2
        assert "policy phase9 (phase9.py) does not come with cuzklab, so its runs are not simulated" in refused.err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    yield 5", "the program of w0 yields 5, which is no effect of cuzklab.policies.effects"),
        ("    yield 'Acquire'", "yields 'Acquire', which is no effect"),
        ("    yield Acquire", "which is no effect"),
        (
            "    while True:\n        yield Compute('mine', p)",
            "can go on for ever (Compute mine); does it end?",
        ),
        ("    yield Compute('epilogue', p)\n    while True:\n        pass", "runs on without yielding an effect"),
        ("    yield Compute('epilogue', p)\n    1 / 0", "raised ZeroDivisionError: division by zero"),
        ("    return Compute('epilogue', p)", "not a generator function; it must yield effects"),
    ],
)
def test_a_policy_that_cannot_be_explored_is_refused_in_one_line(body, message, tmp_path):
    head = "from cuzklab.policies.effects import Acquire, Compute\nfrom cuzklab.policies.model import program\n"
    (tmp_path / "mine.py").write_text(f"{head}\n@program\ndef prove_partition(p, gpu):\n{body}\n")
    done = cuzklab("check", tmp_path / "mine.py")
    assert (done.status, done.out) == (2, "")
    assert message in done.err and len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(("rows", "fits"), [(13, False), (14, True)])
def test_a_circuit_too_small_for_its_share_of_a_card_is_told_so(rows, fits, tmp_path):
    workload = f"porep-shaped-{rows}"
    done = cuzklab(
        *("run", "phase9", "--workload", workload, "--partitions", 1, "--backend", "host", "-o", tmp_path / "run")
    )
    assert done.status == (0 if fits else 1)
    assert ("scratch of an MSM does not shrink with the circuit; from porep-shaped-14" in done.out) is not fits
