"""The search on small spaces whose best configuration is known by hand, and what it refuses."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.sweep import sweep
from cuzklab.tuning import Configuration, space_of, tune
from cuzklab.tuning.ranking import Confirmed, by_cost, by_throughput, compared, lowest, pareto
from cuzklab.tuning.search import MEMORIES
from cuzklab.tuning.trial import check_one, check_task, draws, simulate_one, simulation_task
from cuzklab.units import GiB

ROOT = Path(__file__).resolve().parents[2]
HARDWARE, WORKLOAD = "rtx5070ti-7995wx", "porep-32g"


def space(proofs=4, hardware=(HARDWARE,), prices=(), **knobs):
    return space_of(list(hardware), WORKLOAD, knobs=knobs, proofs=proofs, prices=prices)


SMALL = {
    "policy": "phase8,phase9,phase10_ordered",
    "gw": "1,2",
    "pw": "8",
    "lookahead": "auto",
    "vram": "11GiB,16GiB",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A search of 12 configurations, with its journal."""
    journal = tmp_path_factory.mktemp("tune") / "journal.jsonl"
    return tune(space(**SMALL), journal=journal, seeds=2, fits=1, confirm=2, processes=0), journal


def test_what_memory_and_the_checker_refuse_is_not_ranked(small):
    found, _ = small
    assert len(found.space.configurations) == 12
    # 11 GiB cannot hold d_a and d_bc of any design: six configurations.
    assert found.reasons["device_oom"] == 6
    # Two workers of phase 10 run out of memory on some schedule, though not in this simulation.
    unsafe = [one for one, why in found.refused.items() if why.startswith("checker, oom")]
    assert {(one.design, one.gw, one.vram_bytes) for one in unsafe} == {("phase10_ordered", 2, 16 * GiB)}
    assert len(unsafe) == 1 and sum(found.reasons.values()) == 7
    ranked = {place.found.configuration for place in found.throughput}
    assert not ranked & set(found.refused)
    assert {place.found.verdict for place in found.throughput} == {"safe"}


def test_the_best_is_the_best_of_all_by_exhaustion(small):
    found, _ = small
    best = found.throughput[0].found
    # Everything that may run, simulated with the draws that confirm.
    averages = {
        one: sum(simulate_one(**simulation_task(found.space, one, 4, draw).arguments)["batch_average_s"]
                 for draw in draws(0, 2, 0)) / 2
        for one in found.space.configurations if one not in found.refused
    }  # fmt: skip
    assert best.configuration == min(averages, key=averages.__getitem__)
    assert best.batch_average_s == pytest.approx(averages[best.configuration], rel=1e-12)
    assert found.designs[0].found.configuration.design == "phase9"
    assert len(found.designs) == 3


def test_a_journal_gives_the_same_result_in_another_order(small):
    found, journal = small
    reverse = replace(found.space, configurations=tuple(reversed(found.space.configurations)))
    again = tune(reverse, journal=journal, seeds=2, fits=1, confirm=2, processes=0)
    assert again.resumed == again.simulations + again.checks
    drop = ("seconds", "resumed", "examples_of_refusal")
    one, other = ({key: value for key, value in each.to_json().items() if key not in drop} for each in (found, again))
    assert json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_another_process_gives_the_same(small):
    found, _ = small
    one = next(one for one in found.space.configurations if one not in found.refused)
    task = simulation_task(found.space, one, 4, ("fit", 1, 7))
    here, there = (sweep(simulate_one, [task], processes=processes)[0] for processes in (0, 1))
    assert here.value["outcome"] == "ok"
    assert here == there


@pytest.mark.slow
def test_one_process_two_and_another_order_give_the_same():
    wide = space(**{**SMALL, "policy": "phase8,phase9", "vram": "16GiB"})
    reverse = replace(wide, configurations=tuple(reversed(wide.configurations)))
    counts = ((wide, 1), (wide, 2), (reverse, 2))
    each = [tune(one, seeds=2, fits=1, confirm=2, processes=count) for one, count in counts]
    drop = ("seconds", "resumed", "examples_of_refusal")
    texts = {
        json.dumps({key: value for key, value in one.to_json().items() if key not in drop}, sort_keys=True)
        for one in each
    }
    assert len(texts) == 1


@pytest.mark.slow
def test_a_cluster_gives_the_same_result():
    narrow = space(**{**SMALL, "policy": "phase9", "vram": "16GiB"})
    here, there = (
        tune(narrow, seeds=2, fits=1, confirm=2, **where) for where in ({"processes": 2}, {"cluster": "local"})
    )
    drop = ("seconds", "resumed")
    one, other = ({key: value for key, value in each.to_json().items() if key not in drop} for each in (here, there))
    assert one == other


@pytest.mark.slow
def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    command = [
        sys.executable, "-m", "cuzklab", "tune", "-p", "policy=phase9", "-p", "gw=1,2", "-p", "pw=5,8,10",
        "-p", "vram=16GiB", "--processes", "1", "--unchecked", "-c", "4", "--seeds", "2", "--fits", "0",
        "-o", str(tmp_path),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    # It tells whenever another tenth is done.
    assert any(" of " in line for line in running.stderr)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert errors.strip().splitlines()[-1].endswith("the same command goes on there")
    assert "Traceback" not in errors
    assert not (tmp_path / "tune.json").exists()
    subprocess.run(command, capture_output=True, env=environment, check=True)
    record = json.loads((tmp_path / "tune.json").read_text())
    assert record["resumed"] >= 1 and record["best"]


def confirmed(label, averages, host=1, vram=1, price=None):
    one = Configuration("machine", label, 1, 1, None, None, GiB)
    return Confirmed(one, averages, len(averages), None, {"peak_host_bytes": host, "peak_vram_bytes": vram}, price)


def test_ties_are_told_by_pairs_not_by_means():
    # Draws differ by a factor of two, configurations by exactly one per cent: no tie.
    base = (10.0, 20.0, 15.0, 12.0)
    slower = tuple(value * 1.01 for value in base)
    # A larger difference of the means, but now this and now that one is faster: a tie.
    noisy = tuple(value * factor for value, factor in zip(base, (1.2, 0.9, 1.1, 0.95), strict=True))
    places = by_throughput([confirmed("slower", slower), confirmed("base", base), confirmed("noisy", noisy)])
    told = {place.found.configuration.design: place for place in places}
    assert places[0].found.configuration.design == "base" and told["base"].tie
    assert not told["slower"].tie and told["slower"].behind == pytest.approx(0.01)
    assert told["slower"].near
    assert told["noisy"].tie
    assert compared(confirmed("a", base), confirmed("b", base)) == (0.0, True)


def test_the_cheapest_need_not_be_the_fastest():
    fast, cheap = confirmed("fast", (10.0, 10.0), price=3.6), confirmed("cheap", (20.0, 20.0), price=0.9)
    assert [place.found for place in by_throughput([cheap, fast])] == [fast, cheap]
    places = by_cost([fast, cheap])
    assert [place.found for place in places] == [cheap, fast]
    assert [place.found.cost_per_proof for place in places] == pytest.approx([0.005, 0.01])
    assert places[1].behind == pytest.approx(1.0)
    assert by_cost([confirmed("free", (1.0, 1.0))]) == []


def test_a_front_pays_memory_for_speed_only_beyond_noise():
    small_slow = confirmed("a", (20.0, 20.0), host=1)
    dominated = confirmed("b", (21.0, 21.0), host=2)
    noise = confirmed("c", (19.0, 20.9), host=3)
    fast = confirmed("d", (10.0, 10.0), host=4)
    assert pareto([fast, noise, dominated, small_slow], "peak_host_bytes") == [small_slow, fast]
    assert lowest([(1, 20), (2, 21), (3, 19), (4, 10), (4, 9)]) == [0, 2, 4]


def test_the_fronts_of_a_search_are_not_dominated(small):
    found, _ = small
    for memory in MEMORIES:
        front = found.fronts[memory]
        assert front
        for before, after in pairwise(front):
            assert before.figures[memory] <= after.figures[memory]
            assert before.batch_average_s > after.batch_average_s


def test_a_file_called_as_a_shipped_policy_is_ranked_as_another_design(tmp_path):
    own = tmp_path / "phase9.py"
    own.write_text(Path(policies.load("phase9").module.__file__).read_text())
    both = space(policy=f"phase9,{own}", gw="1", pw="8", lookahead="auto", vram="16GiB")
    assert [one.design for one in both.configurations] == ["phase9", "phase9 (phase9.py)"]


def test_lookaheads_that_come_to_the_same_are_searched_once():
    # Four proofs of ten partitions: 40 places are as good as any more. Phase 12 has one for each synthesis at least.
    knobs = {"gw": "1", "pw": "8", "vram": "16GiB"}
    assert len(space(policy="phase9", lookahead="auto,40,100,4", **knobs).configurations) == 2
    assert len(space(policy="phase12", lookahead="auto,2,8,9", gt="32", **knobs).configurations) == 2


IMPOSSIBLE = [
    ({"gw": "0"}, "-p gw=0: write whole numbers"),
    ({"pw": "ten"}, "-p pw=ten"),
    ({"pw": "5,5"}, "-p pw=5,5: a value stands there twice"),
    ({"gt": "500", "policy": "phase12"}, "-p gt=500: rtx5070ti-7995wx has 192 hardware threads"),
    ({"gt": "32", "policy": "phase9"}, "-p gt: none of the policies"),
    ({"vram": "32GiB"}, "-p vram=32GiB: rtx5070ti-7995wx has 16.0 GiB"),
    ({"vram": "512MiB"}, "-p vram=512MiB: nothing remains"),
    ({"vram": "lots"}, "-p vram: 'lots' is not a size"),
    ({"lookahead": "-1"}, "-p lookahead=-1"),
    ({"speed": "9"}, "tune has no knob 'speed'; it has: policy, gw"),
    ({"pw": ",".join(map(str, range(1, 2000)))}, "configurations are more than 50,000"),
]


@pytest.mark.parametrize(("knobs", "words"), IMPOSSIBLE)
def test_impossible_knobs_are_refused_by_name(knobs, words):
    with pytest.raises(BadInput) as refusal:
        space(**knobs)
    assert words in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"proofs": 4, "in_flight": 5}, "-j 5"),
        ({"proofs": 2}, "-c 2"),
        ({"prices": [1.0, 2.0]}, "--price: 2 prices for 1 machines"),
        ({"prices": [-1.0]}, "--price -1.0"),
        ({"prices": [float("nan")]}, "--price nan"),
        ({"hardware": []}, "--hardware"),
        ({"hardware": [HARDWARE, HARDWARE]}, "--hardware: rtx5070ti-7995wx stands there twice"),
    ],
)
def test_impossible_conditions_are_refused_by_name(arguments, words):
    with pytest.raises(BadInput) as refusal:
        space_of(**{"hardware": [HARDWARE], "workload": WORKLOAD} | arguments)
    assert words in str(refusal.value)


def test_a_profile_that_cannot_be_timed_is_refused(tmp_path):
    text = (ROOT / "lab" / "hardware" / f"{HARDWARE}.toml").read_text()
    text = re.sub(r"(?ms)^\[rates\].*?(?=^\[)", "", text)
    (tmp_path / "timeless.toml").write_text(re.sub(r"(?ms)^\[calibration\].*", "", text))
    with pytest.raises(BadInput, match=r"it has no \[rates\]"):
        space(hardware=[tmp_path / "timeless.toml"])


def test_a_profile_that_changed_meanwhile_is_refused():
    one = space(policy="phase9", gw="1", pw="5", lookahead="auto", vram="16GiB")
    arguments = dict(simulation_task(one, one.configurations[0], 4, ("seed", 0)).arguments)
    with pytest.raises(BadInput, match="its content here is another"):
        simulate_one(**arguments | {"digests": ["0" * 64, arguments["digests"][1]]})


def test_a_check_is_the_same_for_any_number_of_threads():
    one = space(policy="phase12", gw="2", pw="5", gt="16,32", lookahead="auto", vram="16GiB")
    tasks = {check_task(one, configuration).key("") for configuration in one.configurations}
    assert len(one.configurations) == 2 and len(tasks) == 1
    arguments = check_task(one, one.configurations[0]).arguments
    assert check_one(**arguments)["verdict"] == "safe"
    assert check_one(**arguments | {"policy": "phase10_ordered"})["kinds"] == ["oom"]
