"""The designs beside phases 8 to 10, run: for real on small circuits, and in virtual time at production scale."""

from functools import cache
from itertools import pairwise

import pytest

from cuzklab import policies
from cuzklab.live import run_live
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.simulate import simulate
from cuzklab.simulate.host_memory import call_bytes
from cuzklab.stages import POREP_32G, PartitionSizes, partition_sizes
from cuzklab.trace.metrics import CALL, HOST_MEMORY
from cuzklab.units import GiB
from tests.live.programs import GPU, SmallWorkload, run_small

SIZES = partition_sizes(POREP_32G)

# --- real proofs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "workers"),
    [
        ("phase7", {}, 1),
        ("phase10_handoff", {"leave": "after_kernels"}, 2),
        ("phase10_reservation", {}, 3),
        ("phase10_ticket", {}, 3),
        ("phase11", {}, 2),
        ("phase11", {"serial_dealloc": False, "g2_threads": 0, "throttle": False}, 2),
        ("phase12", {}, 2),
        ("resident", {}, 2),
    ],
)
def test_proofs_are_verified(policy, options, workers):
    result = run_live(
        policies.load(policy, **options), 10, proofs=2, partitions=3, gpu_workers=workers, synthesis_workers=2,
        vram_bytes=100 * GiB, deadline_s=60,
    )  # fmt: skip
    assert (result.outcome, result.explanation) == ("ok", "")
    assert result.verified == (0, 1) and result.leaks == ()
    assert len([row for row in result.recorder.rows["spans"] if row.category == "call"]) == 6


@pytest.mark.parametrize("policy", ["phase11", "phase12", "resident", "phase10_ticket"])
@pytest.mark.parametrize("stage", ["synthesis", "prep_msm", "h_msm", "b_g2_msm", "epilogue"])
def test_a_stage_that_fails_fails_its_own_partition_wherever_it_runs(policy, stage):
    # The G2 MSM and the epilogue of a split call fail while the worker is at another partition.
    config = EngineConfig(2, 2, (GPU,), 2, 1, 2, 2)
    workload = SmallWorkload(fails=f"p0.1 {stage}")
    ran = run_small(
        engine_programs(policies.load(policy), config, PartitionSizes(960, 320, 640, {})), workload, 2000, deadline_s=60
    )
    assert (ran.ended.outcome, ran.ended.leaks) == ("ok", ())
    outcomes = {outcome.partition.name: outcome for outcome in ran.ended.results["collector"]}
    assert {name: outcome.ok for name, outcome in outcomes.items()} == {
        "p0.0": True, "p0.1": False, "p1.0": True, "p1.1": True,
    }  # fmt: skip
    assert f"stage {stage} of partition p0.1 failed" in str(outcomes["p0.1"].fault)


def test_a_b_c_are_freed_before_the_g2_msm_is_joined():
    config = EngineConfig(1, 1, (GPU,), 1, 1, 1, 1)
    ran = run_small(engine_programs(policies.load("phase12"), config, PartitionSizes(960, 320, 640, {})))
    order = ran.workload.ran
    assert order.index("p0.0 tail_msm.b_g1") < order.index("p0.0 free p0.0.abc") < order.index("p0.0 epilogue")


def test_resident_memory_is_allocated_once_and_pinned_never():
    result = run_live("resident", 10, proofs=1, partitions=4, gpu_workers=2, vram_bytes=100 * GiB, deadline_s=60)
    vram = result.recorder.rows["vram"]
    assert [row.op for row in vram if row.buffer == "d_a"] == ["alloc"]
    assert [row.op for row in vram if row.buffer == "d_bc"] == 4 * ["alloc", "free"]
    assert vram[-1].live == next(row.bytes for row in vram if row.buffer == "d_a")
    names = {row.name for row in result.recorder.rows["spans"]}
    assert not names & {"pin", "unpin", "trim_pool", "device_sync"}
    assert {row.pinned for row in result.recorder.rows["transfers"]} == {True}


# --- virtual time ----------------------------------------------------------------------------------------------------


@cache
def simulated(policy, vram_gib=16, workers=2, proofs=3, **options):
    return simulate(
        policies.load(policy, **options), "rtx5070ti-7995wx", "porep-32g", proofs=proofs, in_flight=proofs,
        gpu_workers=workers, synthesis_workers=10, vram_bytes=vram_gib * GiB,
    )  # fmt: skip


@pytest.mark.parametrize("vram_gib", [16, 24, 48])
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("policy", ["phase7", "phase10_reservation", "phase11", "phase12", "resident"])
def test_safe_designs_prove_everything(policy, vram_gib, workers):
    found = simulated(policy, vram_gib, workers)
    assert (found.outcome, found.proofs_completed, found.explanation) == ("ok", 3, "")


@pytest.mark.parametrize(
    ("policy", "options", "outcomes"),
    [
        ("phase10_ticket", {}, ("device_oom", "ok", "ok")),
        ("phase10_handoff", {}, ("fault", "fault", "fault")),
        ("phase10_handoff", {"leave": "after_kernels"}, ("device_oom", "device_oom", "ok")),
    ],
)
def test_outcomes_of_the_others_with_three_workers(policy, options, outcomes):
    found = [simulated(policy, vram_gib, 3, **options) for vram_gib in (16, 24, 48)]
    assert tuple(one.outcome for one in found) == outcomes
    if policy == "phase10_handoff" and not options:
        assert all("use_after_free" in one.explanation for one in found)


def test_peaks_of_device_memory():
    def peak(policy, **options):
        return simulated(policy, **options).metrics["peak_vram_bytes"].value

    staged = SIZES.d_a + SIZES.d_bc
    assert peak("phase7") == peak("phase10_reservation") == peak("resident") == staged
    assert peak("phase11") == peak("phase12") == staged + SIZES.scratch["h_msm", ""]


def spans(simulation, name):
    return [row for row in simulation.recorder.rows["spans"] if row.name == name]


def test_a_worker_whose_call_is_split_goes_on_before_the_g2_msm_has_ended():
    def early(simulation):
        """Calls that their worker takes up while its G2 MSM of another partition is still under way."""
        calls = [row for row in simulation.recorder.rows["spans"] if row.category == CALL]
        return sum(
            msm.worker == call.worker and msm.partition != call.partition and msm.start < call.start < msm.end
            for msm in spans(simulation, "b_g2_msm") for call in calls
        )  # fmt: skip

    # So few threads that the G2 MSM lasts longer than the call that started it.
    assert early(simulated("phase11", workers=1, g2_threads=8)) == 0
    assert early(simulated("phase12", workers=1, g2_threads=8)) > 0
    # Threads that have ended lend their names to the next.
    assert {row.thread for row in spans(simulated("phase12", workers=1), "epilogue")} <= {
        f"gpu0.w0/finaliser{number}" for number in ("", "#2", "#3")
    }


def test_a_smaller_pool_takes_longer_and_synthesis_waits_for_the_flag():
    def longest(name, **options):
        found = simulated("phase11", **options)
        return max(row.end - row.start for row in spans(found, name))

    assert longest("b_g2_msm", throttle=False) > longest("b_g2_msm", g2_threads=0, throttle=False)
    waits = [row.on for row in simulated("phase11").recorder.rows["waits"] if row.worker.startswith("synth")]
    assert "throttle" in waits
    waits = simulated("phase11", throttle=False).recorder.rows["waits"]
    assert "throttle" not in [row.on for row in waits]


def test_host_memory_of_a_b_c_is_given_back_before_the_partition_is_done():
    found = simulated("phase12")
    values = [row.value for row in found.recorder.rows["counters"] if row.name == HOST_MEMORY]
    changes = [after - before for before, after in pairwise(values)]
    assert changes.count(-SIZES.abc) == 30
    assert changes.count(-POREP_32G.aux_bytes - call_bytes(POREP_32G)) == 30
    assert values[0] == values[-1]


def test_one_worker_of_phase_7_leaves_the_device_idle_while_the_cpu_works():
    # The lock spans prep_msm, the G2 MSM and the epilogue: kernels run for less of the time than in phase 8.
    def share(policy):
        return simulated(policy, workers=1, proofs=5).metrics["kernel_occupancy"].value

    held = simulated("phase7", workers=1).recorder.rows["locks"]
    epilogues = {row.partition: row for row in spans(simulated("phase7", workers=1), "epilogue")}
    assert all(row.acquired <= epilogues[row.partition].start < row.released for row in held)
    assert share("phase7") <= share("phase8")
