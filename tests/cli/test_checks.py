"""check from the command line: counterexamples elsewhere, ranges of memory, Ctrl-C; and urgent proofs of an engine."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from cuzklab.trace.store import load_run
from cuzklab.units import GiB
from tests.cli.command import cuzklab
from tests.conftest import ROOT


@pytest.mark.parametrize(("where", "origin"), [("simulate", "simulated"), ("live", "live")])
def test_a_counterexample_is_carried_out_elsewhere(where, origin, tmp_path):
    arguments = ("check", "phase10_ordered", "--vram", "16GiB", "--replay", where, "-o", tmp_path / "run")
    done = cuzklab(*arguments, "--json")
    assert done.status == 1  # the design is unsafe, whatever happened to its counterexample
    again = done.json["replay"]
    assert (again["where"], again["kind"], again["happened"], again["outcome"]) == (where, "oom", True, "device_oom")
    assert again["followed"] == again["steps"] == len(done.json["findings"][0]["schedule"])
    run = load_run(done.json["run"])
    assert (run.info.origin, run.info.outcome) == (origin, "device_oom")


def test_a_counterexample_elsewhere_in_words():
    done = cuzklab("check", "phase10_nested", "-p", "on_full=wait", "--replay", "live", "--log2-domain", 8)
    assert done.status == 1
    text = done.out
    for part in (
        "1. capacity_deadlock after 19 steps", "A w0 ", "memory: gpu0, 16.0 GiB", "Who waits for whom at its end:",
        "cycle: w", "It happened by real threads on an emulated device, after step 19 of 19",
    ):  # fmt: skip
        assert part in text.replace("after 20 steps", "after 19 steps").replace("step 20 of 20", "step 19 of 19")


def test_a_safe_design_has_nothing_to_carry_out():
    done = cuzklab("check", "phase8", "--replay", "live")
    assert (done.status, done.out.splitlines()[-1]) == (0, "There is no counterexample to carry out.")
    assert cuzklab("check", "phase8", "--replay", "simulate", "--json").json["replay"] is None


def test_a_range_of_memory_is_covered():
    done = cuzklab("check", "phase9", "--sweep", "vram=11GiB:15GiB", "--workers", 2, "--processes", 2, "--json")
    assert done.status == 0
    found = done.json
    assert (found["complete"], [row["workers"] for row in found["rows"]]) == (True, [1, 2])
    for row in found["rows"]:
        assert row["smallest_safe_bytes"] == 12 * GiB
        assert [one["verdict"] for one in row["intervals"]] == ["unsafe", "safe", "unsafe", "safe"]
        assert row["intervals"][2]["from_bytes"] == int(12.5 * GiB)
        assert row["safe_from_bytes"] == row["intervals"][3]["from_bytes"] and row["for_good"]


def test_a_range_in_words():
    done = cuzklab("check", "phase10_reservation", "--sweep", "vram=10GiB:13GiB:1GiB", "--workers", 1)
    assert done.status == 0
    assert "device memory 10 GiB to 13 GiB, looked at every 1 GiB only." in done.out
    (row,) = [line.split() for line in done.out.splitlines() if line.split()[:1] == ["1"] and "nowhere" in line]
    assert row[:7] == ["1", "12", "GiB", "nowhere", "12", "GiB", row[6]]


@pytest.mark.slow
def test_a_design_that_is_safe_nowhere_in_a_range():
    done = cuzklab("check", "phase8", "--sweep", "vram=2GiB:3GiB", "--workers", 1)
    assert done.status == 1 and "nowhere" in done.out


@pytest.mark.slow
def test_ctrl_c_in_a_sweep_keeps_what_was_covered():
    process = subprocess.Popen(
        [sys.executable, "-m", "cuzklab", "check", "phase10_ordered", "--workers", "3", "--partitions", "1",
         "--sweep", "vram=8GiB:48GiB", "--processes", "2"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert any("1 of 12" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Not the whole range was covered." in out and "% covered" in out
    assert "Traceback" not in err


def test_ctrl_c_among_mutants_keeps_what_was_judged_and_a_journal_goes_on(tmp_path):
    """The signal goes to the whole group, as from a terminal."""
    command = [sys.executable, "-m", "cuzklab", "check", "phase7", "--mutations", "--processes", "1",
               "--journal", str(tmp_path / "kept")]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert any(re.search(r"\b2 of \d+", line) for line in process.stderr)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    judged, whole = map(int, re.match(r"Interrupted: (\d+) of (\d+) mutants were judged\.", out).groups())
    assert 2 <= judged < whole and "survivors, each with the reason" in out
    assert "Traceback" not in err
    assert len((tmp_path / "kept").read_text().splitlines()) == judged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sweep", "8GiB:16GiB"), "write vram=FROM:TO"),
        (("--sweep", "vram=8GiB"), "write vram=FROM:TO"),
        (("--sweep", "vram=8GiB:lots"), "'lots' is not a size"),
        (("--sweep", "vram=16GiB:8GiB"), "it must go up"),
        (("--sweep", "vram=8GiB:16GiB:0B"), "it must go up"),
        (("--sweep", "vram=8GiB:16GiB", "--workers", -1), "workers must be at least 1"),
        (("--sweep", "vram=8GiB:16GiB", "--replay", "live"), "--sweep goes with neither"),
        (("--sweep", "vram=8GiB:16GiB", "-p", "depth=3"), "has no option 'depth'"),
        (("--sweep", "vram=8GiB:16GiB", "--workers", 0), "workers must be at least 1, not 0"),
        (("--mutations", "--sweep", "vram=8GiB:16GiB"), "--mutations goes with none of"),
        (("--mutations", "--vram", "16GiB"), "policy phase10_ordered is not safe itself (oom)"),
        (("--journal", "kept"), "--journal goes with --mutations"),
        (("--workers", 0), "workers must be at least 1"),
        (("--replay", "live", "--log2-domain", 99), "log2_domain 99"),
    ],
)
def test_bad_use_is_one_line(arguments, message):
    done = cuzklab("check", "phase10_ordered", *arguments)
    assert done.status == 2
    assert message in done.err and done.err.count("\n") == 1 and done.out == ""


def interrupted(*arguments):
    """`cuzklab` in a process of its own that gets Ctrl-C once it has told some progress."""
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stderr.readline().startswith("told")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


# Tells when the search first looks up, and then lets it look up until the signal is there.
_RUN = """
import sys
from cuzklab.check.interrupt import Interruptible
look, told = Interruptible.look, []
def looks(self, states, seconds):
    if not told:
        told.append(print("told", file=sys.stderr, flush=True))
    while not self.asked:
        pass
    look(self, states, seconds)
Interruptible.look = looks
from cuzklab.cli import main
sys.argv = ["cuzklab", *sys.argv[1:]]
main()
"""


def test_ctrl_c_says_what_was_covered():
    arguments = ("check", "phase10_reservation", "--workers", 3, "--partitions", 2, "--vram", "48GiB")
    status, out, _ = interrupted(*arguments, "--json")
    assert status == 130
    found = json.loads(out)
    assert (found["verdict"], found["complete"], found["stopped"]) == ("unknown", False, "interrupted")
    assert found["states"] == 1024 and 0 < found["depth"] < 1024


def test_ctrl_c_in_words_stores_nothing(tmp_path):
    arguments = ("check", "phase10_reservation", "--workers", 3, "--partitions", 2, "--vram", "48GiB")
    status, out, _ = interrupted(*arguments, "-o", tmp_path / "run")
    assert status == 130
    words = " ".join(out.split())
    assert "nothing found, but not every interleaving was covered: interrupted (1,024 states, " in words
    assert words.endswith("That is no proof of safety. Nothing was stored: the check is not complete.")
    assert not (tmp_path / "run").exists()


def test_urgent_proofs_and_their_latency():
    done = cuzklab("simulate", "phase9", "-c", 1, "-p", "pw=2", "--urgent", "winningpost@3", "--json")
    assert done.status == 0 and done.json["conditions"]["urgent"] == "winningpost after 3"
    latency_s = done.json["latency_s"]
    assert set(latency_s) == {"0", "1"} and latency_s["1"] < latency_s["0"]
    words = cuzklab("simulate", "phase9", "-c", 1, "-p", "pw=2", "--urgent", "winningpost@3").out
    assert f"winningpost   3 partitions   {latency_s['1']:.3g} s" in words


def test_failures_say_where(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("run", "phase9", "--workload", "porep-shaped-8", "--partitions", 2, "--vram", "11GiB")
    done = cuzklab(*arguments, "--json")
    assert done.status == 1
    first = done.json["failures"][0]
    assert (first["proof"], first["partition"], first["kind"]) == (0, "p0.0", "oom")
    assert first["effect"].startswith("Alloc gpu0 d_bc") and first["worker"].startswith("gpu0.w")
    assert first["message"].startswith("proof 0, partition 0, at Alloc gpu0 d_bc 16.0 KiB, by gpu0.w")


@pytest.mark.parametrize(
    ("urgent", "message"),
    [("winningpost", "write WORKLOAD@N"), ("@3", "write WORKLOAD@N"), ("nothing@3", "no workload 'nothing'"),
     ("winningpost@11", "winningpost arrives after 11 partitions; the batch has 10")],
)  # fmt: skip
def test_an_urgent_proof_that_makes_no_sense_is_one_line(urgent, message):
    done = cuzklab("simulate", "phase9", "-c", 1, "--urgent", urgent)
    assert done.status == 2 and message in done.err and done.err.count("\n") == 1
