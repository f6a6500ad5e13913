"""Explanations on machines with one bottleneck each, where the answer is known by hand."""

import json
from dataclasses import replace

import pytest

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Workload
from cuzklab.simulate.explain import explain, explain_run, mean_and_interval
from cuzklab.simulate.relaxed import relaxed
from cuzklab.simulate.setup import Setup, setup_of
from cuzklab.simulate.what_if import RESOURCES
from cuzklab.stages import POREP_32G
from cuzklab.units import GiB

WORKLOAD = Workload("porep-32g", "PoRep", "test", 4, POREP_32G)
# So fast that a stage, a copy or a call takes no time beside one that is slow.
FAST = {
    **{f"rates.{stage}": 1e15 for stage in ("synthesis", "prep_msm", "ntt_h", "h_msm", "batch_add", "tail_msm")},
    "rates.b_g2_msm": 1e15, "rates.epilogue": 1e9, "transfer.pinned_bytes_per_s": 1e15,
    "transfer.pageable_bytes_per_s": 1e15, "transfer.pin_s_per_byte": 0.0, "transfer.unpin_s_per_byte": 0.0,
    "device.alloc_s": 0.0, "device.free_s": 0.0, "device.trim_s": 0.0, "device.sync_s": 0.0,
    "device.vram_bytes": 64 * GiB, "device.margin_bytes": GiB // 2, "host.memory_bytes": 1 << 50, "host.cores": 64,
    "device.multiprocessors": 70,
}  # fmt: skip


@pytest.fixture
def machine(hardware_with):
    """A machine on which everything is instant but what is given."""
    return lambda **constants: hardware_with().with_constants(
        FAST | {name.replace("__", "."): value for name, value in constants.items()}
    )


def setup(hardware, policy="phase9", gw=1, pw=4, **more):
    return Setup(policies.load(policy), hardware, WORKLOAD, 8, 8, gw, pw, **more)


ONE_BOTTLENECK = {
    "pcie": ({"transfer__pinned_bytes_per_s": 1e10}, "phase9", 1),
    "gpu": ({"rates__h_msm": 1e7}, "phase9", 1),
    "synthesis": ({"rates__synthesis": 1e7}, "phase9", 1),
    "call_cpu": ({"rates__prep_msm": 1e7}, "phase9", 1),
    "pageable_copies": ({"transfer__pageable_bytes_per_s": 1e9}, "phase8", 1),
    "page_locking": ({"transfer__pin_s_per_byte": 1e-9}, "phase9", 1),
    "device_calls": ({"device__free_s": 5.0}, "phase9", 1),
}


@pytest.mark.parametrize("resource", ONE_BOTTLENECK)
def test_a_machine_with_one_bottleneck_is_explained_by_it_alone(machine, resource):
    constants, policy, gw = ONE_BOTTLENECK[resource]
    found = explain(setup(machine(**constants), policy, gw), seeds=1)
    assert [gain.resource for gain in found.limits] == [resource]
    # All the time is spent there, so a tenth more of it is a tenth more of throughput.
    assert found.limits[0].gain == pytest.approx(0.1, abs=1e-3)
    assert found.limits[0].title in found.sentence
    assert all(abs(gain.gain) < 1e-3 for gain in found.gains if gain.gain is not None and gain.resource != resource)


def test_work_under_the_lock_that_could_overlap_is_explained_by_the_lock(machine):
    # Phase 7 classifies scalars under the lock; phase 8 does not. With two workers the lock keeps them apart.
    found = explain(setup(machine(rates__prep_msm=1e7), "phase7", gw=2), seeds=1)
    by_name = {gain.resource: gain for gain in found.gains}
    assert [gain.resource for gain in found.limits] == ["lock", "call_cpu"]
    assert by_name["call_cpu"].gain == pytest.approx(0.1, abs=1e-3)
    # Three of 32 calls do without the lock, beside one that has it: 29 are left to be done one after another.
    assert by_name["lock"].gain == pytest.approx(32 / 29 - 1, abs=1e-3)
    assert by_name["lock"].change == "1 call in 11 without it"
    # Sharing the device is not the lock's doing: with kernels alone, no exclusion would gain nothing.
    kernels = explain(setup(machine(rates__h_msm=1e7), "phase9", gw=2), seeds=1)
    assert [gain.resource for gain in kernels.limits] == ["gpu"]


def test_cores_limit_syntheses_that_are_more_than_there_are_cores(machine):
    found = explain(setup(machine(rates__synthesis=1e7, host__cores=10), pw=20), seeds=1)
    by_name = {gain.resource: gain for gain in found.gains}
    assert by_name["cores"].change == "10 → 11"
    # 32 partitions on 10 cores: shared, so that 11 do a tenth more.
    assert by_name["cores"].gain == pytest.approx(0.1, abs=2e-3)
    assert by_name["synthesis"].gain == pytest.approx(0.1, abs=2e-3)
    assert {gain.resource for gain in found.limits} == {"cores", "synthesis"}


def test_memory_that_is_short_by_less_than_a_tenth_is_named(machine):
    # d_a and d_bc take 12 GiB and stay through the H-MSM in phase 9: 13.8 GiB.
    found = explain(setup(machine(rates__h_msm=1e7), vram_bytes=13 * GiB), seeds=1)
    assert found.outcome == "device_oom"
    assert "device memory (VRAM)" in found.sentence
    by_name = {gain.resource: gain for gain in found.gains}
    assert by_name["vram"].outcome == "ok" and by_name["vram"].gain is None
    assert by_name["pcie"].outcome == "device_oom"


def test_more_places_in_a_queue_that_never_fills_gain_nothing(machine):
    slow = machine(rates__synthesis=1e7)
    queue = [resource for resource in RESOURCES if resource.name == "queue"]
    (short,) = explain(setup(slow, lookahead=2), seeds=1, resources=queue).gains
    assert short.change == "2 → 3 places"
    assert not short.limits and short.gain == 0
    (long,) = explain(setup(slow), seeds=1, resources=queue).gains
    assert "in flight may wait" in long.why_not


def test_explanations_pair_seeds_and_are_the_same_again(machine):
    noisy = replace(machine(rates__synthesis=1e7), spread=type(machine().rates)({"synthesis": 0.2}, "test"))
    some = [resource for resource in RESOURCES if resource.name in ("synthesis", "gpu", "queue")]
    one, again = (explain(setup(noisy), seeds=3, resources=some) for _ in range(2))
    assert one == again
    synthesis = next(gain for gain in one.gains if gain.resource == "synthesis")
    # Times differ by a fifth between partitions; the gain of pairs is that of the rate, exactly.
    assert synthesis.low <= 0.1 <= synthesis.high + 1e-6
    assert synthesis.high - synthesis.low < 0.005
    record = json.loads(json.dumps(one.to_json()))
    assert record["limits"] == ["synthesis"]
    assert {gain["resource"] for gain in record["gains"]} == {resource.name for resource in some}


def test_a_relaxed_policy_leaves_out_the_locks_of_every_so_many_calls(machine):
    base = setup(machine(rates__h_msm=1e7), gw=2, vram_bytes=60 * GiB)
    found = replace(base, policy=relaxed(base.policy, 4, 4)).run(record=True)
    assert found.outcome == "ok"
    locked = {row.partition for row in found.recorder.rows["locks"]}
    exempt = {f"p{number // 4}.{number % 4}" for number in range(32) if number % 4 == 2}
    assert locked == {f"p{number // 4}.{number % 4}" for number in range(32)} - exempt
    assert len(base.run(record=True).recorder.rows["locks"]) == 32


def test_a_stored_simulation_is_explained_by_its_conditions(machine, tmp_path):
    one = Setup(policies.load("phase11", g2_threads=16), *_profiles(), 4, 3, 2, 6, vram_bytes=16 * GiB)
    run = one.run(seed=3).to_run(tmp_path / "run")
    again = setup_of(run.info.conditions, "run")
    assert again.policy.options == {"g2_threads": 16}
    assert again.run(seed=3).metrics == run_metrics(one)
    found = explain_run(run.path, seeds=1)
    assert found.of == "the stored simulation run"
    assert found.measured_s is None
    assert found.conditions["j"] == 3


def run_metrics(one):
    return one.run(seed=3).metrics


def _profiles():
    from cuzklab.profiles import load_hardware, load_workload

    return load_hardware("rtx5070ti-7995wx"), load_workload("porep-32g")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gw": "two"}, "condition gw is missing or is no number"),
        ({"policy": "../evil.py"}, "run: policy '../evil.py' does not come with cuzklab"),
        ({"policy": "evil.py"}, "run: policy 'evil.py' does not come with cuzklab"),
        ({"hardware": "no-such"}, "no hardware profile"),
        ({"urgent": "winningpost after 3"}, "urgent"),
    ],
)
def test_conditions_that_cannot_be_repeated_are_named(change, words, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    conditions = {
        "policy": "phase9", "c": 2, "j": 2, "gw": 1, "pw": 2, "partitions": 2, "lookahead": 2, "vram_bytes": 16 * GiB,
        "workload": "porep-32g", "hardware": "rtx5070ti-7995wx",
    }  # fmt: skip
    with pytest.raises(BadInput, match=words):
        setup_of(conditions | change, "run")


def test_students_interval_is_that_of_scipy():
    from scipy import stats

    values = [0.1, 0.12, 0.09, 0.11]
    low, high = stats.t.interval(0.9, 3, loc=sum(values) / 4, scale=stats.sem(values))
    assert mean_and_interval(values) == pytest.approx((0.105, low, high))
    assert mean_and_interval([0.2]) == (0.2, 0.2, 0.2)
