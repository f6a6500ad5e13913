"""Each finding on runs where it holds and on runs where it does not."""

import dataclasses
import json

import pytest

from cuzklab.analysis import Case, find_all
from cuzklab.analysis.registry import rules
from cuzklab.trace import Kernel, LockUse, Recorder, Run, RunInfo, Span, VramEvent, WaitInterval, write_run
from cuzklab.units import GiB
from tests.analysis.example import (
    MS,
    conditions,
    device,
    example_case,
    phase9_like,
    phase10_out_of_memory,
    phase10_roomy,
    safe_check,
)

CANDIDATE, BASELINE = "phase10_ordered", "phase9"


def case_of(*runs, **more) -> Case:
    return Case(CANDIDATE, BASELINE, runs, **more)


def found_by(name, *runs, **more):
    return list(rules()[name](case_of(*runs, **more)))


def with_info(run: Run, **changes) -> Run:
    return Run(run.path, dataclasses.replace(run.info, **changes))


def run_of(folder, policy, *rows, vram_bytes=16 * GiB, origin="live", outcome="ok", **more):
    recorder = Recorder(clock=lambda: 0)
    for row in rows:
        recorder.add(row)
    info = RunInfo(origin, "test", outcome, "", policy, conditions(backend="host", **more), device(vram_bytes))
    return write_run(folder / f"{origin}-{policy}", info, recorder)


def test_every_rule_is_its_own_file_named_after_it():
    assert set(rules()) == {
        "ablation", "allocation_on_critical_path", "bandwidth_bound_stage", "baseline_completed", "baseline_safe",
        "bottleneck", "bottleneck_moved", "capture_incomplete", "design_infeasible_here", "device_wide_sync_under_lock",
        "feasible_at", "gain_over_baseline", "host_contended", "host_memory_saved", "lock_contention",
        "lock_held_without_need", "metrics_not_comparable", "overlap_already_achieved", "pageable_transfer",
        "ran_out_of_memory", "starvation_by_synthesis", "workers_beyond_use",
    }  # fmt: skip
    assert all(rule.__module__.endswith(f".{name}") for name, rule in rules().items())


def test_all_findings_of_the_example_are_plain_values_with_evidence(tmp_path):
    found = find_all(example_case(tmp_path))
    assert {one.id for one in found} >= {
        "baseline_completed", "baseline_safe", "bottleneck", "design_infeasible_here", "feasible_at",
        "gain_over_baseline", "lock_contention", "overlap_already_achieved", "ran_out_of_memory",
    }  # fmt: skip
    for one in found:
        json.dumps(one.to_json(), allow_nan=False)
        assert one.claim.endswith(".")
        assert one.claim[0].isupper() or one.claim.startswith(("phase9", "phase10"))
        assert one.runs
    order = ["against", "supports", "context"]
    roles = [order.index(one.role) for one in found]
    assert roles == sorted(roles)


# --- design_infeasible_here ------------------------------------------------------------------------------------------


def test_infeasible_by_counterexample_and_reproduced(tmp_path):
    runs = phase10_out_of_memory(tmp_path, "counterexample"), phase10_out_of_memory(tmp_path)
    (found,) = found_by("design_infeasible_here", *runs)
    assert (found.role, found.certainty, found.vram_bytes) == ("against", "proved", 16 * GiB)
    assert found.claim == (
        "phase10_ordered runs out of device memory on 16.0 GiB; the shortest schedule to it has 14 steps: w1's request"
        " for d_bc (8.00 GiB) under gpu0.compute failed in step 14: w0 held d_bc and d_a (12.0 GiB), w1 d_a (4.00 GiB);"
        " 16.0 GiB of 16.0 GiB were in use. The live run with gw 2 on 16.0 GiB ended the same way."
    )
    assert [figure.value for figure in found.figures] == [14, 8 * GiB, 16 * GiB, 8 * GiB]


def test_the_shortest_counterexample_is_told_and_others_at_the_limit(tmp_path):
    long, short = (phase10_out_of_memory(tmp_path / name, "counterexample") for name in ("a", "b"))
    short = with_info(short, conditions={**short.info.conditions, "steps": 9})
    completed = with_info(phase10_out_of_memory(tmp_path), outcome="ok")
    (found,) = found_by("design_infeasible_here", long, short, completed)
    assert "the shortest schedule to it has 9 steps" in found.claim
    assert found.claim.endswith("The live run with gw 2 on 16.0 GiB did not meet that schedule.")


def test_a_deadlock_names_who_waits_for_what(tmp_path):
    run = run_of(
        tmp_path, CANDIDATE,
        Span(0, 1, "Acquire gpu0.mem", "call", worker="gpu0.w0"), Span(1, 2, "Acquire gpu0.compute", "call",
                                                                     worker="gpu0.w1"),
        WaitInterval(2, 4, "memory", "gpu0 d_bc 8589934592 B", "gpu0.w0, gpu0.w1", "gpu0.w0"),
        WaitInterval(3, 4, "lock", "gpu0.mem", "gpu0.w0", "gpu0.w1"),
        WaitInterval(0, 1, "lock", "gpu0.mem", "gpu0.w0", "gpu0.w1"),
        origin="counterexample", outcome="deadlock",
    )  # fmt: skip
    (found,) = found_by("design_infeasible_here", run)
    assert "w0 waits for gpu0 d_bc 8.00 GiB (held by w1) and w1 waits for gpu0.mem (held by w0)." in found.claim
    assert [row["effect"] for row in found.evidence] == ["Acquire gpu0.mem", "Acquire gpu0.compute"]


def test_a_safe_check_makes_no_infeasibility(tmp_path):
    assert found_by("design_infeasible_here", safe_check(tmp_path, CANDIDATE), phase10_out_of_memory(tmp_path)) == []


# --- ran_out_of_memory -----------------------------------------------------------------------------------------------


def test_out_of_memory_names_the_request_and_the_holders(tmp_path):
    (found,) = found_by("ran_out_of_memory", phase10_out_of_memory(tmp_path), phase9_like(tmp_path))
    assert (found.role, found.certainty, found.subject) == ("against", "measured", CANDIDATE)
    assert "w1's request for d_bc (8.00 GiB) under gpu0.compute failed at 12.0 ms" not in found.claim
    assert "failed at 14.0 ms: w0 held d_bc and d_a (12.0 GiB), w1 d_a (4.00 GiB)" in found.claim
    assert [row["row"] for row in found.evidence] == ["failed request"] + ["live at that moment"] * 3


def test_out_of_memory_by_what_the_pool_keeps(tmp_path):
    row = VramEvent(5 * MS, "fail", "scratch", 9 * GiB, 0, 4 * GiB, 16 * GiB, "gpu0.w1", "p0.1", "gpu0.lock")
    run = run_of(tmp_path, BASELINE, Span(0, 9 * MS, "prep_msm", "cpu"), row, outcome="device_oom")
    (found,) = found_by("ran_out_of_memory", run)
    assert (
        "w1's request for scratch (9.00 GiB) under gpu0.lock failed at 5.00 ms although only 4.00 GiB of 16.0 GiB were"
        " live: more than 3.00 GiB must have been kept by the memory pool or lost to fragmentation."
    ) in found.claim
    assert found.figures[-1].value == 3 * GiB
    assert found.would_change.startswith("a trim of the memory pool")


def test_out_of_memory_without_its_table_says_so(tmp_path):
    run = run_of(tmp_path, BASELINE, outcome="device_oom")
    (found,) = found_by("ran_out_of_memory", run)
    assert found.role == "supports"
    assert "which request failed is not known, since the trace lacks vram (empty)" in found.claim


# --- baseline --------------------------------------------------------------------------------------------------------


def test_baseline_safe_only_if_the_check_was_complete(tmp_path):
    (safe,) = found_by("baseline_safe", safe_check(tmp_path))
    assert (safe.certainty, safe.aspect) == ("proved", "feasibility")
    assert "phase9 on 16.0 GiB is safe with 2 workers × 2 partitions (1,234 states): on no" in safe.claim
    three = safe_check(tmp_path)
    three = with_info(three, conditions={**three.info.conditions, "workers": 3, "states": 5})
    (both,) = found_by("baseline_safe", safe_check(tmp_path), three)
    assert both.gist == "is proved safe with 2 workers × 2 partitions and 3 workers × 2 partitions"
    (partial,) = found_by("baseline_safe", safe_check(tmp_path, complete=False))
    assert (partial.certainty, partial.aspect) == ("measured", "coverage")
    assert found_by("baseline_safe", safe_check(tmp_path, CANDIDATE)) == []


def test_baseline_completed(tmp_path):
    (found,) = found_by("baseline_completed", phase9_like(tmp_path), phase10_roomy(tmp_path))
    assert found.claim == (
        "The live run with gw 2 of phase9 on 16.0 GiB came to its end after 4 partitions, with at most 13.0 GiB of"
        " device memory in use."
    )
    assert found_by("baseline_completed", phase10_out_of_memory(tmp_path, policy=BASELINE)) == []


# --- overlap_already_achieved ----------------------------------------------------------------------------------------


def test_overlap_that_the_baseline_has_already(tmp_path):
    (found,) = found_by("overlap_already_achieved", phase9_like(tmp_path), phase10_roomy(tmp_path))
    assert (found.role, found.subject) == ("against", BASELINE)
    assert (
        "phase9 runs 95 % of b_g2_msm while the device computes (70 % behind another worker's kernels)" in found.claim
    )
    assert "the 2.00 ms exposed are 1.2 % of its wall time" in found.claim
    assert found.figures[0].value == 0.95


def test_overlap_that_the_baseline_lacks_and_the_candidate_has(tmp_path):
    bare = run_of(
        tmp_path, BASELINE,
        Kernel(0, 10 * MS, "ntt_h", worker="gpu0.w0"), Span(9 * MS, 19 * MS, "b_g2_msm", "cpu", worker="gpu0.w1"),
    )  # fmt: skip
    (alone,) = found_by("overlap_already_achieved", bare)
    assert (alone.role, alone.figures[0].value) == ("context", 0.1)
    (both,) = found_by("overlap_already_achieved", bare, phase10_roomy(tmp_path))
    assert both.role == "supports"


def test_overlap_that_cannot_be_told(tmp_path):
    run = run_of(tmp_path, BASELINE, Span(0, 10, "b_g2_msm", "cpu", worker="gpu0.w0"))
    (found,) = found_by("overlap_already_achieved", run)
    assert (found.role, found.aspect) == ("context", "coverage")
    assert "it lacks kernels (empty)" in found.claim


# --- gain_over_baseline ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gain_ms", "role", "words"),
    [(2, "supports", "it saves 4.7 %"), (-2, "against", "it costs 4.7 %"), (0, "context", "which is below the noise")],
)
def test_gain_is_for_or_against_only_above_the_noise(tmp_path, gain_ms, role, words):
    simulated = "simulated"
    runs = phase10_roomy(tmp_path, simulated, gain_ms=gain_ms), phase9_like(tmp_path, simulated, vram_bytes=40 * GiB)
    (found,) = found_by("gain_over_baseline", *runs)
    assert (found.role, found.aspect, found.vram_bytes) == (role, "performance", 40 * GiB)
    assert words in found.claim


def with_average(run, seconds):
    """A repetition of a measured run that took another time."""
    record = {"kind": "batch_average", "value": seconds, "obtained": "measured", "label": "", "conditions": {}}
    return with_info(run, metrics=(record,))


def test_one_measured_run_of_each_resolves_nothing(tmp_path):
    runs = phase10_roomy(tmp_path, gain_ms=2), phase9_like(tmp_path, vram_bytes=40 * GiB)
    (found,) = found_by("gain_over_baseline", *runs)
    assert found.role == "context"
    assert "one run does not tell how much the next would differ; it takes 3 of each" in found.claim


@pytest.mark.parametrize(
    ("mine", "theirs", "role", "words"),
    [
        ((1.0, 1.2, 1.1), (1.3, 1.6, 1.4), "supports", "it saves 21 % (medians of 3 and 3 runs; 7.7 % to 38 %"),
        ((1.3, 1.6, 1.4), (1.0, 1.2, 1.1), "against", "it costs 27 % (medians of 3 and 3 runs; 8.3 % to 60 %"),
        (
            (1.0, 1.2, 1.5),
            (1.3, 1.6, 1.4),
            "context",
            "which is below the noise (medians of 3 and 3 runs; −15 % to 38 %",
        ),
    ],
)
def test_repeated_runs_differ_where_all_of_one_side_are_better(tmp_path, mine, theirs, role, words):
    candidate, baseline = phase10_roomy(tmp_path), phase9_like(tmp_path, vram_bytes=40 * GiB)
    runs = [with_average(candidate, seconds) for seconds in mine] + [with_average(baseline, s) for s in theirs]
    (found,) = found_by("gain_over_baseline", *runs)
    assert found.role == role
    assert words in found.claim
    assert len(found.runs) == 6


def test_gain_names_what_differs_and_prefers_the_same_device(tmp_path):
    candidate = phase10_roomy(tmp_path)
    candidate = with_info(candidate, conditions={**candidate.info.conditions, "gw": 3})
    small, large = phase9_like(tmp_path), phase9_like(tmp_path, vram_bytes=40 * GiB)
    (found,) = found_by("gain_over_baseline", candidate, small, large)
    assert found.runs == (candidate.name, large.name)
    assert found.claim.endswith("They differ in gw 3 against 2.")
    (found,) = found_by("gain_over_baseline", candidate, small)
    assert "where phase9 on 16.0 GiB takes 172 ms/proof: it" in found.claim


def test_without_a_baseline_nothing_is_gained(tmp_path):
    (found,) = found_by("gain_over_baseline", phase10_roomy(tmp_path))
    assert (found.role, found.aspect) == ("context", "coverage")
    assert "there is no completed run of phase9 of the same origin" in found.claim


# --- metrics_not_comparable ------------------------------------------------------------------------------------------


def test_unlike_conditions_and_unlike_kinds_are_refused(tmp_path):
    candidate, baseline = phase10_roomy(tmp_path), phase9_like(tmp_path)
    other = with_info(baseline, conditions={**baseline.info.conditions, "workload": "larger"})
    (found,) = found_by("metrics_not_comparable", candidate, other)
    assert (found.role, found.aspect) == ("context", "coverage")
    assert "they differ in workload example against larger" in found.claim
    assert found.evidence == ({"condition": "workload", "candidate": "example", "baseline": "larger"},)
    record = {"kind": "prove_time", "value": 0.3, "obtained": "measured", "label": "", "conditions": {}}
    unlike = with_info(baseline, metrics=(record,))
    (found,) = found_by("metrics_not_comparable", candidate, unlike)
    assert "batch_average and prove_time are different things; they cannot be compared" in found.claim
    assert found_by("gain_over_baseline", candidate, other) == found_by("gain_over_baseline", candidate, unlike) == []


def test_alike_figures_are_not_refused(tmp_path):
    assert found_by("metrics_not_comparable", phase10_roomy(tmp_path), phase9_like(tmp_path)) == []
    assert found_by("metrics_not_comparable", phase10_roomy(tmp_path)) == []


# --- locks -----------------------------------------------------------------------------------------------------------


def test_lock_contention_names_victim_and_holder(tmp_path):
    (found,) = found_by("lock_contention", phase9_like(tmp_path))
    assert found.claim == (
        "In the live run with gw 2 of phase9 on 16.0 GiB, 3 of 4 requests for gpu0.lock (75 %) found it held and waited"
        " 113 ms altogether; it was held 93 % of the time; most of it w1 for w0 (76.0 ms); lock waits are 37 % of all"
        " call time."
    )


def test_no_contention_without_waits(tmp_path):
    run = run_of(tmp_path, BASELINE, LockUse("gpu0.lock", 0, 0, 9, worker="gpu0.w0"))
    assert found_by("lock_contention", run) == []


def test_device_wide_wait_under_a_wanted_lock(tmp_path):
    rows = (
        Span(0, 20 * MS, "prove_partition", "call", worker="gpu0.w0", partition="p0.0"),
        LockUse("gpu0.mem", 0, 0, 10 * MS, worker="gpu0.w0", partition="p0.0"),
        LockUse("gpu0.mem", 4 * MS, 10 * MS, 12 * MS, worker="gpu0.w1", partition="p0.1", holder_at_request="gpu0.w0"),
        WaitInterval(2 * MS, 7 * MS, "device_sync", "gpu0", "gpu0.w1", "gpu0.w0", "p0.0"),
        WaitInterval(14 * MS, 16 * MS, "device_sync", "gpu0", "", "gpu0.w0", "p0.0"),  # under no lock
    )
    (found,) = found_by("device_wide_sync_under_lock", run_of(tmp_path, CANDIDATE, *rows))
    assert found.role == "against"
    assert found.evidence[0]["stalled_ns"] == 3 * MS
    assert found.evidence[0]["waiting"] == "gpu0.w1"
    assert "waited for the whole device 1 time while holding gpu0.mem that another worker wanted" in found.claim
    (context,) = found_by("device_wide_sync_under_lock", run_of(tmp_path, BASELINE, *rows))
    assert context.role == "context"


def test_device_wide_wait_that_stalls_nobody(tmp_path):
    assert found_by("device_wide_sync_under_lock", phase10_roomy(tmp_path), phase9_like(tmp_path)) == []


# --- bottleneck ------------------------------------------------------------------------------------------------------


def test_bottleneck_is_the_device_or_what_it_waits_for(tmp_path):
    kernels = (Kernel(0, 49 * MS, "ntt_h", worker="gpu0.w0"), Kernel(50 * MS, 100 * MS, "h_msm", worker="gpu0.w0"))
    (busy,) = found_by("bottleneck", run_of(tmp_path, BASELINE, *kernels))
    assert busy.claim.endswith("the device is the bottleneck.")
    starved = (
        Kernel(0, 10 * MS, "ntt_h", worker="gpu0.w0"), Kernel(50 * MS, 60 * MS, "ntt_h", worker="gpu0.w0"),
        WaitInterval(15 * MS, 50 * MS, "queue", "ready", worker="gpu0.w0"),
    )  # fmt: skip
    (found,) = found_by("bottleneck", run_of(tmp_path, CANDIDATE, *starved))
    assert "the device idles 58 % with nothing queued (35.0 ms)" in found.claim
    assert "synthesis on the CPU" in found.claim
    (unknown,) = found_by("bottleneck", run_of(tmp_path, BASELINE))
    assert unknown.aspect == "coverage"


# --- feasible_at -----------------------------------------------------------------------------------------------------


def test_feasible_on_the_larger_device_with_what_it_gains(tmp_path):
    runs = phase10_roomy(tmp_path, gain_ms=2), phase9_like(tmp_path), safe_check(tmp_path, CANDIDATE, 40 * GiB)
    (found,) = found_by("feasible_at", *runs, vram_bytes=16 * GiB)
    assert (found.role, found.certainty, found.vram_bytes) == ("context", "proved", 40 * GiB)
    assert found.claim == (
        "phase10_ordered works on 40.0 GiB: the live run with gw 2 completed (at most 25.0 GiB of 40.0 GiB in use) and"
        " every interleaving of 2 workers is safe; there it was measured too few times to tell a gain in the live run"
        " with gw 2."
    )
    (here,) = found_by("feasible_at", *runs)
    assert here.role == "supports"


def test_not_feasible_where_anything_shows_the_contrary(tmp_path):
    counterexample = with_info(phase10_out_of_memory(tmp_path, "counterexample"), devices=device(40 * GiB))
    assert found_by("feasible_at", phase10_roomy(tmp_path), counterexample) == []
    assert found_by("feasible_at", safe_check(tmp_path, CANDIDATE, complete=False)) == []


# --- scaled devices --------------------------------------------------------------------------------------------------


def test_a_scaled_run_counts_for_the_device_that_it_stands_for(tmp_path):
    run = phase10_out_of_memory(tmp_path)
    scaled = with_info(
        run, devices=device(16 * GiB >> 12), conditions={**run.info.conditions, "vram_equivalent_bytes": 16 * GiB}
    )
    (found,) = found_by("ran_out_of_memory", scaled)
    assert found.vram_bytes == 16 * GiB
    assert "of phase10_ordered on 4.00 MiB (for 16.0 GiB) ran out" in found.claim


def test_a_shortage_on_a_scaled_device_is_told_at_both_scales(tmp_path):
    run = phase10_out_of_memory(tmp_path)
    (alone,) = found_by("ran_out_of_memory", run)
    assert alone.gist == "ran out of device memory in the live run with gw 2 (short by 8.00 GiB)"
    scaled = with_info(run, conditions={**run.info.conditions, "vram_equivalent_bytes": 64 * GiB})
    (found,) = found_by("ran_out_of_memory", scaled)
    assert found.gist.endswith("(short by 8.00 GiB, which stand for 32.0 GiB)")


def test_repeated_runs_are_told_once(tmp_path):
    (found,) = found_by("feasible_at", *[phase10_roomy(tmp_path)] * 3)
    assert found.claim.startswith(
        "phase10_ordered works on 40.0 GiB: the live run with gw 2 completed 3 times (at most 25.0 GiB of 40.0 GiB"
    )
