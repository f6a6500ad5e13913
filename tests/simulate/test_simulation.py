"""Whole engines at PoRep scale: outcomes, what must be conserved, determinism, storage, refusals."""

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.policies.model import Partition
from cuzklab.profiles import StageNumbers, load_hardware, load_workload, scaled_workload
from cuzklab.simulate import simulate
from cuzklab.simulate.host_memory import HostMemory, call_bytes
from cuzklab.simulate.interpreter import Interpreter
from cuzklab.stages import POREP_32G, STAGES
from cuzklab.trace.metrics import CALL, HOST_MEMORY, figures
from cuzklab.units import GiB

HARDWARE, WORKLOAD = "rtx5070ti-7995wx", "porep-32g"


@cache
def run(policy, vram_gib=16, workers=2, proofs=3, seed=1, record=True, **options):
    return simulate(
        policies.load(policy, **options), HARDWARE, WORKLOAD, proofs=proofs, in_flight=proofs, gpu_workers=workers,
        synthesis_workers=10, vram_bytes=vram_gib * GiB, seed=seed, record=record,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "vram_gib", "workers", "options", "outcome"),
    [
        ("phase8", 16, 2, {}, "ok"),
        ("phase8", 16, 4, {}, "ok"),
        ("phase9", 16, 2, {}, "ok"),
        ("phase9", 16, 4, {}, "ok"),
        ("phase10_ordered", 16, 3, {}, "device_oom"),
        ("phase10_ordered", 48, 3, {}, "ok"),
        ("phase10_nested", 16, 3, {"on_full": "wait"}, "deadlock"),
        ("phase10_nested", 48, 3, {"on_full": "wait"}, "ok"),
        ("phase9", 12, 2, {}, "ok"),  # without room for the margin it falls back to a pageable copy under the lock
        ("phase9", 11, 1, {}, "device_oom"),
    ],
)
def test_outcomes_of_the_phases(policy, vram_gib, workers, options, outcome):
    simulation = run(policy, vram_gib, workers, **options)
    assert simulation.outcome == outcome, simulation.explanation
    assert (simulation.explanation == "") == (outcome == "ok")
    assert simulation.metrics["peak_vram_bytes"].value <= vram_gib * GiB


def test_a_failed_partition_fails_its_proof_and_the_rest_goes_on():
    simulation = run("phase10_ordered", 16, 3)
    assert 0 < simulation.partitions_failed < 30
    calls = [row for row in simulation.recorder.rows["spans"] if row.category == CALL]
    assert len(calls) == 30
    failed = {row.proof for row in calls if row.name == "failed_partition"}
    assert simulation.proofs_completed == 3 - len(failed)
    assert (
        "fails for want" not in simulation.explanation and "failed for want of device memory" in simulation.explanation
    )
    assert [row.live for row in simulation.recorder.rows["vram"]][-1] == 0


def test_the_capacity_deadlock_is_explained_by_its_two_holders():
    simulation = run("phase10_nested", 16, 3, on_full="wait")
    assert "waits for lock gpu0.mem (held by" in simulation.explanation
    assert "waits for memory gpu0 d_" in simulation.explanation
    assert simulation.metrics.get("batch_average_s") is None
    assert simulation.reasons["batch_average_s"] == "no proof was completed"


def test_the_phases_peaks_of_device_memory():
    # Phase 8 frees d_bc before the H-MSM: d_a and d_bc are the peak. Phase 9 keeps both through it.
    assert run("phase8").metrics["peak_vram_bytes"].value == 12 * GiB
    scratch = STAGES["h_msm"].scratch_bytes(POREP_32G, "", load_hardware(HARDWARE).device.model)
    assert run("phase9").metrics["peak_vram_bytes"].value == 12 * GiB + scratch


def test_what_phase_9_gains_is_kernel_time_not_throughput():
    def time_under_lock(simulation):
        return np.mean([row.released - row.acquired for row in simulation.recorder.rows["locks"]])

    alone_before, alone_after = run("phase8", workers=1), run("phase9", workers=1)
    assert time_under_lock(alone_after) < 0.55 * time_under_lock(alone_before)
    before, after = run("phase8", proofs=5), run("phase9", proofs=5)
    gain = after.metrics["batch_average_s"].ratio(before.metrics["batch_average_s"])
    assert 0.9 < gain < 1


@pytest.mark.parametrize("policy", ["phase8", "phase9", "phase10_ordered"])
def test_conservation(policy):
    simulation = run(policy, 48, 3)
    rows = simulation.recorder.rows
    # Every partition goes through every stage and part exactly once.
    stages = Counter((row.partition, row.name) for row in rows["spans"] if row.category in ("cpu", "gpu"))
    labels = {f"{name}.{part}" if part else name for name, stage in STAGES.items() for part in stage.parts}
    partitions = {f"p{proof}.{index}" for proof in range(3) for index in range(10)}
    assert stages == {(partition, label): 1 for partition in partitions for label in labels}
    # A lock has one holder at a time, so its holds add up to no more than the wall time; waits end where holds begin.
    holds = defaultdict(list)
    for row in rows["locks"]:
        assert row.requested <= row.acquired <= row.released
        holds[row.lock].append((row.acquired, row.released))
    for intervals in holds.values():
        intervals.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(intervals))
    lock_waits = sum(row.end - row.start for row in rows["waits"] if row.kind == "lock")
    assert lock_waits == sum(row.acquired - row.requested for row in rows["locks"])
    # Device memory: what was allocated was freed, and the running sum is the one that is recorded.
    live = 0
    for row in rows["vram"]:
        live += {"alloc": row.bytes, "free": -row.bytes}[row.op]
        assert row.live == live
        assert 0 <= live <= row.limit
    assert live == 0
    # Bytes that crossed the bus are those of the stages and of a, b, c.
    streamed = sum(stage.streamed_bytes(POREP_32G, part) for stage in STAGES.values() for part in stage.parts)
    assert sum(row.bytes for row in rows["transfers"]) == 30 * (POREP_32G.abc_bytes + streamed)
    # A kernel lies within the span of its stage, which lies within its call.
    calls = {row.partition: row for row in rows["spans"] if row.category == CALL}
    assert all(
        calls[row.partition].start <= row.start <= row.end <= calls[row.partition].end for row in rows["kernels"]
    )


def test_host_memory_grows_with_synthesis_and_is_given_back_late():
    simulation = simulate("phase9", HARDWARE, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1)
    values = [row.value for row in simulation.recorder.rows["counters"] if row.name == HOST_MEMORY]
    fixed, partition = POREP_32G.key_bytes + POREP_32G.constraint_bytes, POREP_32G.synthesised_bytes
    assert values[0] == values[-1] == fixed
    early = load_hardware(HARDWARE).engine.early_memory_share
    assert values[1] == pytest.approx(fixed + early * partition, abs=1)  # the first synthesis begins
    assert values[2] == pytest.approx(fixed + partition, abs=1)  # it ends
    # The next has begun while the first is in its call; one that is done is still there while it is deallocated.
    peak = simulation.metrics["peak_host_bytes"].value
    assert fixed + (1 + early) * partition + call_bytes(POREP_32G) < peak < fixed + 2 * partition


def test_memory_of_a_finished_partition_is_in_use_until_it_is_deallocated():
    hardware = load_hardware(HARDWARE)
    slow = replace(hardware, host=replace(hardware.host, dealloc_s_per_byte=3.45e-9))
    common = dict(proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=2)
    before, after = (simulate("phase9", machine, WORKLOAD, **common) for machine in (hardware, slow))
    assert after.metrics["peak_host_bytes"].value > before.metrics["peak_host_bytes"].value + 15 * GiB


def test_a_host_with_too_little_memory_ends_the_engine():
    hardware = load_hardware(HARDWARE)
    small = replace(hardware, host=replace(hardware.host, memory_bytes=100 * GiB, reserved_bytes=0))
    simulation = simulate(
        "phase9", small, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=2, lookahead=1
    )
    assert simulation.outcome == "host_oom"
    assert simulation.explanation == (
        "host memory: 69.8 GiB of key and constraints and 2 partitions of up to 15.5 GiB exceed 100 GiB"
    )
    assert simulation.metrics["peak_host_bytes"].value >= 100 * GiB


def test_the_same_seed_gives_the_same_trace_and_another_seed_another():
    def again(seed):
        return simulate(
            "phase9", HARDWARE, WORKLOAD, proofs=2, in_flight=2, gpu_workers=2, synthesis_workers=3, seed=seed
        )

    first, second, other = again(1), again(1), again(2)
    assert first.recorder.rows == second.recorder.rows
    assert first.to_json() == second.to_json()
    assert first.metrics["wall_s"].value != other.metrics["wall_s"].value


def test_policies_are_compared_on_the_same_synthesis_times():
    def alone(policy):
        rows = simulate(policy, HARDWARE, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1).recorder
        return [row.end - row.start for row in rows.rows["spans"] if row.name == "synthesis"]

    before, after = alone("phase8"), alone("phase9")
    assert np.corrcoef(before, after)[0, 1] > 0.99
    assert np.std(np.log(np.array(before) / 29e9)) == pytest.approx(
        load_hardware(HARDWARE).stage_spread("synthesis"), rel=0.5
    )


def test_without_a_full_record_the_figures_are_the_same():
    short = run("phase9", record=False)
    assert short.metrics == run("phase9").metrics
    assert not short.recorder.rows["waits"] and not short.recorder.rows["locks"]


def test_metrics_are_typed_and_carry_their_conditions():
    simulation = run("phase9", proofs=5)
    metric = simulation.metrics["steady_interval_s"]
    assert (metric.kind, metric.obtained) == ("steady_interval", "simulated")
    conditions = {"c": 5, "j": 5, "pw": 10, "gw": 2, "policy": "phase9", "workload": WORKLOAD, "hardware": HARDWARE}
    assert conditions.items() <= metric.conditions.items()
    assert not any("not calibrated" in note for note in simulation.notes)
    other = simulate("phase9", "emulated", scaled_workload(12, 2), proofs=1, in_flight=1, gpu_workers=1,
                     synthesis_workers=1, vram_bytes=32 << 30)  # fmt: skip
    assert any("not calibrated" in note for note in other.notes)


def test_json_has_the_shape_that_other_programs_rely_on():
    found = run("phase9").to_json()
    assert found["outcome"] == "ok"
    assert {
        "batch_average_s", "steady_interval_s", "prove_time_s", "peak_host_bytes", "peak_vram_bytes", "call_occupancy",
        "kernel_occupancy",
    } <= set(found["metrics"])  # fmt: skip
    assert found["metrics"]["steady_interval_s"] is None
    assert found["reasons"] == {"steady_interval_s": "3 completed proofs; a steady interval needs 4"}


def test_a_stored_run_says_that_it_is_simulated_and_gives_the_same_figures(tmp_path):
    simulation = run("phase10_ordered", 16, 3)
    stored = simulation.to_run(tmp_path / "run", {"step": "abc"})
    assert (stored.info.origin, stored.info.outcome) == ("simulated", "device_oom")
    assert stored.info.inputs["step"] == "abc"
    assert len(stored.info.inputs[f"hardware {HARDWARE}"]) == 64
    assert stored.info.inputs["policy phase10_ordered"] == policies.load("phase10_ordered").digest
    assert stored.info.devices[0]["vram_limit_bytes"] == 16 * GiB
    assert all(stored.availability[table]["state"] == "present" for table in ("locks", "waits", "vram", "kernels"))
    assert figures(stored, 10) == figures(simulation.recorder, 10)
    short = run("phase9", record=False).to_run(tmp_path / "short")
    assert short.availability["locks"]["state"] == "not captured"


def test_the_world_does_not_grow_with_the_number_of_proofs(monkeypatch):
    sizes = []

    class Watched(Interpreter):
        def run(self, programs):
            ending = super().run(programs)
            sizes.append((len(self.world), len(self.machine.processor)))
            return ending

    monkeypatch.setattr("cuzklab.simulate.simulation.Interpreter", Watched)
    for proofs in (1, 12):
        simulate(
            "phase9", HARDWARE, scaled_workload(12, 3), proofs=proofs, in_flight=2, gpu_workers=2, synthesis_workers=2,
            vram_bytes=10 * GiB,
        )  # fmt: skip
    assert sizes[0] == sizes[1]


def test_several_devices_share_one_queue():
    simulation = simulate(
        "phase9", HARDWARE, WORKLOAD, proofs=2, in_flight=2, gpu_workers=1, synthesis_workers=10, gpus=2
    )
    assert simulation.outcome == "ok"
    assert {row.device for row in simulation.recorder.rows["kernels"]} == {0, 1}
    assert {row.lock for row in simulation.recorder.rows["locks"]} == {"gpu0.lock", "gpu1.lock"}


def test_a_policy_of_the_users_with_a_defect_ends_as_a_fault(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        '"""Mine."""\nfrom cuzklab.policies.effects import Release\nfrom cuzklab.policies.model import program\n\n'
        "@program\ndef prove_partition(p, gpu):\n    yield Release(gpu.lock)\n"
    )
    simulation = simulate(
        policies.load(file), HARDWARE, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1
    )
    assert simulation.outcome == "fault"
    assert simulation.explanation.startswith(
        "proof 0, partition 0, at Release gpu0.lock, by gpu0.w0: release_by_non_owner: gpu0.w0 releases gpu0.lock"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proofs": 0}, "proofs must be at least 1"),
        ({"gpu_workers": -1}, "gpu_workers must be at least 1"),
        ({"lookahead": 0}, "lookahead must be at least 1"),
        ({"gpus": 0}, "gpus is 0"),
        ({"vram_bytes": 1 << 20}, "the engine leaves 512 MiB free"),
        ({"proofs": 10**6}, "more than 1000000 partitions"),
        ({"hardware": "nothing"}, "no hardware profile"),
        ({"workload": "nothing"}, "no workload"),
    ],
)
def test_impossible_conditions_are_refused_by_name(changes, message):
    values = dict(hardware=HARDWARE, workload=WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1)
    with pytest.raises(BadInput, match=message):
        simulate("phase9", **(values | changes))


def test_a_profile_without_rates_is_refused():
    with pytest.raises(BadInput, match="it has no"):
        simulate(
            "phase9", replace(load_hardware(HARDWARE), rates=None), load_workload(WORKLOAD), proofs=1, in_flight=1,
            gpu_workers=1, synthesis_workers=1,
        )  # fmt: skip


@pytest.mark.parametrize("rate", [1e-3, 1e-300])
def test_a_profile_of_a_machine_that_never_ends_is_refused(rate):
    hardware = load_hardware(HARDWARE)
    slow = replace(hardware, rates=replace(hardware.rates, values={**hardware.rates.values, "prep_msm": rate}))
    with pytest.raises(BadInput, match="longer than 292 years"):
        simulate("phase9", slow, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1)


def test_a_circuit_without_tails_has_stages_that_take_no_time():
    workload = scaled_workload(12, 2)
    workload = replace(workload, shape=replace(workload.shape, tail_share=0.0))
    found = simulate(
        "phase9", "emulated", workload, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1, vram_bytes=48 * GiB
    )
    assert found.outcome == "ok"
    assert {span.end - span.start for span in found.recorder.rows["spans"] if span.name == "b_g2_msm"} == {0}


def test_a_rate_that_is_nothing_for_the_circuit_is_refused():
    machine = replace(
        load_hardware("emulated"), size_exponent=StageNumbers({"log2_domain": 64.0, "ntt_h": 64.0}, "by hand")
    )
    with pytest.raises(
        BadInput, match=r"emulated: size_exponent\.ntt_h makes the rate of a circuit of 2\^12 rows nothing"
    ):
        simulate("phase9", machine, "porep-shaped-12", proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1)


def test_a_memory_so_slow_that_nothing_goes_on_is_refused():
    slow = load_hardware(HARDWARE).with_constants({"host.memory_bandwidth_bytes_per_s": 1e-300})
    with pytest.raises(BadInput, match="longer than 292 years"):
        simulate("phase9", slow, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=2)


def test_fewer_than_no_threads_are_refused():
    with pytest.raises(BadInput, match="-1 threads for b_g2_msm"):
        simulate(
            policies.load("phase12", g2_threads=-1), HARDWARE, WORKLOAD, proofs=1, in_flight=1, gpu_workers=1,
            synthesis_workers=1,
        )  # fmt: skip


def test_a_stored_deadlock_keeps_the_locks_that_were_never_released(tmp_path):
    stored = run("phase10_nested", 16, 3, on_full="wait").to_run(tmp_path / "run")
    uses = stored.table("locks")
    held, wanted = uses[uses["released"].isna() & uses["acquired"].notna()], uses[uses["acquired"].isna()]
    assert sorted(held["lock"]) == ["gpu0.compute", "gpu0.mem"]
    assert list(wanted["lock"]) == ["gpu0.mem", "gpu0.mem"]
    assert stored.info.outcome == "deadlock"


def test_host_memory_counts_a_partition_once_and_gives_back_what_it_holds():
    memory, partition = HostMemory(200 * GiB, POREP_32G, early_share=0.25), Partition(0, 0, None)
    before = memory.in_use_bytes
    done = [0.0]
    for _ in range(2):
        memory.begin(partition, lambda: done[0])
    assert memory.in_use_bytes == before + round(0.25 * POREP_32G.synthesised_bytes)
    done[0] = 0.5
    assert memory.in_use_bytes == before + POREP_32G.synthesised_bytes - round(0.375 * POREP_32G.synthesised_bytes)
    memory.synthesised(partition)
    memory.call(partition)
    held = POREP_32G.synthesised_bytes + call_bytes(POREP_32G)
    assert memory.in_use_bytes == before + held
    assert memory.claim(partition, POREP_32G.abc_bytes) == POREP_32G.abc_bytes
    assert memory.in_use_bytes == before + held
    # Whoever gives back all does not give back what another is already at.
    assert memory.claim(partition) == held - POREP_32G.abc_bytes and memory.claim(partition) == 0
    memory.given_back(POREP_32G.abc_bytes)
    assert (memory.in_use_bytes, memory.partitions) == (before + held - POREP_32G.abc_bytes, 0)
    memory.given_back(held - POREP_32G.abc_bytes)
    assert memory.in_use_bytes == before


def test_a_mixed_workload_brings_its_arrivals():
    mixed = simulate("phase9", HARDWARE, "mixed", proofs=2, in_flight=2, gpu_workers=2, synthesis_workers=5)
    by_hand = simulate(
        "phase9", HARDWARE, "porep-32g", proofs=2, in_flight=2, gpu_workers=2, synthesis_workers=5,
        urgent=[("winningpost", 4), ("windowpost", 8), ("winningpost", 12), ("winningpost", 16)],
    )  # fmt: skip
    assert mixed.latency_s == by_hand.latency_s and len(mixed.latency_s) == 6
    assert "urgent" not in mixed.conditions and mixed.conditions["workload"] == "mixed"
    # The arrival goes before what waits: a WinningPoSt is done long before a proof of the batch.
    assert max(mixed.latency_s[number] for number in (2, 4, 5)) < min(mixed.latency_s[0], mixed.latency_s[1])
