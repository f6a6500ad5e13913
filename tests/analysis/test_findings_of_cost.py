"""Findings about what a design costs and what limits it: each on a run where it is true and on one where it is not."""

import dataclasses

import pytest

from cuzklab.trace import Kernel, LockUse, Run, Span, Transfer, WaitInterval
from cuzklab.units import GiB
from tests.analysis.example import MS, phase9_like, phase10_roomy
from tests.analysis.test_findings import BASELINE, CANDIDATE, found_by, run_of, with_info

W0, W1 = "gpu0.w0", "gpu0.w1"


def call(start, end, worker=W0, partition="p0.0"):
    return Span(start * MS, end * MS, "prove_partition", "call", 0, worker, worker, 0, partition)


def cpu(start, end, name, worker=W0, partition="p0.0", thread=""):
    return Span(start * MS, end * MS, name, "cpu", 0, thread or worker, worker, 0, partition)


def memory_call(start, end, name, worker=W0, partition="p0.0"):
    return Span(start * MS, end * MS, name, "memory", 0, worker, worker, 0, partition)


def kernel(start, end, name="ntt_h", worker=W0, partition="p0.0"):
    return Kernel(start * MS, end * MS, name, "s", 0, None, name, worker, partition)


def wait(start, end, kind, on="", worker=W0, partition="p0.0", holder=""):
    return WaitInterval(start * MS, end * MS, kind, on, holder, worker, partition)


def with_figures(run: Run, name: str = "", **values: float) -> Run:
    """The run with these figures, under another name where one is given."""
    obtained = "simulated" if run.info.origin == "simulated" else "measured"
    records = [{"kind": kind, "value": value, "obtained": obtained, "label": "", "conditions": {}}
               for kind, value in values.items()]  # fmt: skip
    changed = with_info(run, metrics=tuple(records))
    return dataclasses.replace(changed, path=run.path.with_name(name)) if name else changed


# --- bottleneck_moved ------------------------------------------------------------------------------------------------


def busy(folder, policy):
    return run_of(folder, policy, call(0, 100), kernel(0, 96), kernel(97, 100, "h_msm"), origin="simulated")


def starved(folder, policy):
    rows = call(0, 20), call(70, 90), kernel(0, 20), kernel(70, 90), wait(20, 70, "queue", "ready", partition="")
    return run_of(folder, policy, *rows, origin="simulated")


def test_the_bottleneck_moved_from_the_device_to_synthesis(tmp_path):
    (found,) = found_by("bottleneck_moved", busy(tmp_path, BASELINE), starved(tmp_path, CANDIDATE))
    assert "phase9 is limited by the device, phase10_ordered by synthesis on the CPU" in found.claim
    assert "Kernel time a partition went from 99.0 ms to 20.0 ms (−80 %)." in found.claim
    assert [row["limited_by"] for row in found.evidence] == ["device", "queue"]


def test_the_bottleneck_stayed_where_it_was(tmp_path):
    assert found_by("bottleneck_moved", busy(tmp_path, BASELINE), busy(tmp_path, CANDIDATE)) == []
    other = with_info(starved(tmp_path, CANDIDATE), conditions={"workload": "another"})
    assert found_by("bottleneck_moved", busy(tmp_path, BASELINE), other) == []


# --- workers_beyond_use ----------------------------------------------------------------------------------------------


def with_workers(run, workers, seconds):
    conditions = {**run.info.conditions, "gw": workers}
    return with_figures(with_info(run, conditions=conditions), f"gw{workers}", batch_average=seconds)


def test_a_third_worker_of_no_use(tmp_path):
    run = phase9_like(tmp_path, origin="simulated")
    (found,) = found_by("workers_beyond_use", with_workers(run, 2, 0.172), with_workers(run, 3, 0.171))
    assert "with 3 workers a device takes 171 ms/proof" in found.claim
    assert "with 2 it takes 172 ms/proof: 0.6 % shorter with more workers" in found.claim
    assert found.gist.startswith("has no use for more than 2 workers")


def test_a_third_worker_that_helps_or_differs_otherwise(tmp_path):
    run = phase9_like(tmp_path, origin="simulated")
    assert found_by("workers_beyond_use", with_workers(run, 2, 0.172), with_workers(run, 3, 0.15)) == []
    other = with_workers(run, 3, 0.172)
    other = with_info(other, conditions={**other.info.conditions, "pw": 20})
    assert found_by("workers_beyond_use", with_workers(run, 2, 0.172), other) == []


# --- lock_held_without_need ------------------------------------------------------------------------------------------


def locked(folder, policy, *rows):
    return run_of(
        folder, policy, call(0, 40), call(0, 60, W1, "p0.1"), kernel(0, 10), kernel(30, 40),
        LockUse("gpu0.lock", 0, 0, 40 * MS, W0, W0, "p0.0"),
        LockUse("gpu0.lock", 5 * MS, 40 * MS, 60 * MS, W1, W1, "p0.1", W0), kernel(40, 60, worker=W1, partition="p0.1"),
        *rows,
    )  # fmt: skip


def test_a_lock_held_over_work_on_the_cpu(tmp_path):
    rows = cpu(12, 22, "b_g2_msm"), memory_call(26, 30, "alloc d_a")
    (found,) = found_by("lock_held_without_need", locked(tmp_path, CANDIDATE, *rows))
    # Of 10 to 30 ms, the holder allocates for 4 and computes on the CPU for 10; of 6 nothing is known.
    assert "was held and wanted for 16.0 ms (16 % of all call time)" in found.claim
    assert found.evidence[0] == {"lock": "gpu0.lock", "holder": W0, "doing": "b_g2_msm", "time_ns": 10 * MS}
    assert found.evidence[1]["doing"] == ""
    assert found.role == "against"


def test_no_worse_than_the_baseline_is_no_reproach(tmp_path):
    both = found_by("lock_held_without_need", locked(tmp_path, CANDIDATE), locked(tmp_path, BASELINE))
    assert [(one.subject, one.role) for one in both] == [(BASELINE, "context"), (CANDIDATE, "context")]


def test_a_lock_held_over_work_of_the_device(tmp_path):
    waiting = wait(10, 30, "device_sync", "gpu0")
    assert found_by("lock_held_without_need", locked(tmp_path, CANDIDATE, waiting)) == []
    alone = run_of(tmp_path, BASELINE, call(0, 40), kernel(0, 1), LockUse("gpu0.lock", 0, 0, 40 * MS, W0, W0, "p0.0"))
    assert found_by("lock_held_without_need", alone) == []


# --- allocation_on_critical_path -------------------------------------------------------------------------------------


def test_memory_calls_on_the_critical_path(tmp_path):
    rows = call(0, 50), memory_call(0, 10, "alloc d_a"), cpu(10, 50, "epilogue")
    (found,) = found_by("allocation_on_critical_path", run_of(tmp_path, CANDIDATE, *rows))
    assert "calls for memory are 20 % of the critical paths of the proofs (10.0 ms): alloc d_a 10.0 ms." in found.claim


def test_memory_calls_beside_the_critical_path(tmp_path):
    aside = memory_call(0, 10, "alloc d_a", W1, "p0.1")
    run = run_of(tmp_path, CANDIDATE, call(0, 50), cpu(0, 50, "epilogue"), aside)
    assert found_by("allocation_on_critical_path", run) == []


# --- pageable_transfer -----------------------------------------------------------------------------------------------


def copying(folder, policy, pinned):
    copy = Transfer(0, 30 * MS, 0, 3 * GiB, "h2d", pinned, "s", 0, W0, "p0.0")
    return run_of(folder, policy, call(0, 100), copy, kernel(20, 100))


def test_pageable_copies_and_how_long_the_device_idles_on_them(tmp_path):
    (found,) = found_by("pageable_transfer", copying(tmp_path, CANDIDATE, False))
    assert "3.00 GiB of 3.00 GiB (100 %) were copied from or to pageable memory, at 100.0 GiB/s" in found.claim
    assert "no kernel ran during 20.0 ms of it (20 % of the wall time)" in found.claim
    assert found.role == "against"
    both = found_by("pageable_transfer", copying(tmp_path, CANDIDATE, False), copying(tmp_path, BASELINE, False))
    assert {one.role for one in both} == {"context"}


def test_pinned_copies(tmp_path):
    assert found_by("pageable_transfer", copying(tmp_path, CANDIDATE, True)) == []


# --- starvation_by_synthesis -----------------------------------------------------------------------------------------


def test_the_device_starves(tmp_path):
    rows = [cpu(0, 20, "synthesis", "synth0", "p0.1"), cpu(20, 70, "synthesis", "synth0", "p0.2")]
    rows += [call(0, 20), call(70, 90, partition="p0.1"), kernel(0, 20), kernel(70, 90, partition="p0.1")]
    run = run_of(tmp_path, BASELINE, wait(20, 70, "queue", "ready", partition=""), *rows)
    (found,) = found_by("starvation_by_synthesis", run)
    assert "GPU 0 idles 56 % of the time between its first and its last kernel (50.0 ms)" in found.claim
    assert "Synthesis delivers 28.6 partitions a second, each of 35.0 ms (median)." in found.claim


def test_the_device_idles_for_another_reason(tmp_path):
    run = run_of(tmp_path, BASELINE, kernel(0, 20), kernel(70, 90), wait(20, 70, "barrier", "p0.0.barrier"))
    assert found_by("starvation_by_synthesis", run) == []


# --- bandwidth_bound_stage -------------------------------------------------------------------------------------------


def syntheses(folder, longer, cores=8, origin="live"):
    """Six one at a time, then six at once, each of these `longer` ms longer."""
    rows = [cpu(20 * place, 20 * place + 10, "synthesis", f"synth{place}", f"p0.{place}") for place in range(6)]
    rows += [cpu(200 + place, 210 + place + longer, "synthesis", f"synth{place}", f"p1.{place}") for place in range(6)]
    return with_info(run_of(folder, BASELINE, *rows, origin=origin), machine={"cores": cores})


def test_stages_that_competition_stretches(tmp_path):
    (found,) = found_by("bandwidth_bound_stage", syntheses(tmp_path, 10))
    assert "synthesis by 100 % (10.0 ms beside 0.0 others, 20.0 ms beside 4.5)" in found.claim
    assert "no counter of the host's bandwidth" in found.claim
    assert found.figures[0].value == pytest.approx(1.0)


def test_stages_that_run_as_fast_beside_others_or_wait_for_a_core(tmp_path):
    assert found_by("bandwidth_bound_stage", syntheses(tmp_path, 0)) == []
    assert found_by("bandwidth_bound_stage", syntheses(tmp_path, 10, cores=2)) == []


# --- capture_incomplete ----------------------------------------------------------------------------------------------


def test_what_was_not_recorded_is_named(tmp_path):
    run = phase9_like(tmp_path)
    availability = {**run.info.availability, "locks": {"state": "lost", "rows": 3, "reason": "the buffer was full"}}
    lossy = with_info(run, availability=availability)
    (found,) = found_by("capture_incomplete", lossy)
    assert (
        found.claim
        == "1 run of phase9 lacks locks (lost): who held which lock and who waited for it cannot be told from it."
    )
    assert found.evidence[0]["reason"] == "the buffer was full"
    assert found.aspect == "coverage"


def test_a_whole_recording(tmp_path):
    assert found_by("capture_incomplete", phase9_like(tmp_path), phase10_roomy(tmp_path)) == []


# --- host_contended --------------------------------------------------------------------------------------------------


def test_cpu_time_given_to_others_is_told_from_two_percent_on(tmp_path):
    run = phase9_like(tmp_path)
    (found,) = found_by("host_contended", with_info(run, machine={"cpu_stolen_share": 0.071}))
    assert found.claim == (
        "In 1 run of phase9 the machine's host gave 7 % of the CPU time that it wanted to others: CPU stages and "
        "launches took longer than on a machine left alone."
    )
    assert (found.role, found.aspect, found.figures[0].value) == ("context", "coverage", 0.071)
    for machine in ({"cpu_stolen_share": 0.019}, {"cpu_stolen_share": "much"}, {}):
        assert found_by("host_contended", with_info(run, machine=machine)) == []


# --- host_memory_saved -----------------------------------------------------------------------------------------------


def test_host_memory_saved_and_not(tmp_path):
    theirs = with_figures(phase9_like(tmp_path, origin="simulated", vram_bytes=40 * GiB), peak_host=400.0 * GiB)
    mine = phase10_roomy(tmp_path, origin="simulated")
    (found,) = found_by("host_memory_saved", with_figures(mine, peak_host=300.0 * GiB), theirs)
    assert (found.role, found.aspect) == ("supports", "performance")
    assert "needs 300 GiB of host memory at its peak" in found.claim
    assert "phase9 400 GiB: 25 % less." in found.claim
    (more,) = found_by("host_memory_saved", with_figures(mine, peak_host=500.0 * GiB), theirs)
    assert more.role == "context"
    assert found_by("host_memory_saved", with_figures(mine, peak_host=395.0 * GiB), theirs) == []


# --- ablation --------------------------------------------------------------------------------------------------------


def optional(run, seconds, **options):
    changed = with_info(run, conditions={**run.info.conditions, "options": options})
    return with_figures(changed, "-".join(map(str, options.values())), batch_average=seconds)


def test_which_option_did_anything(tmp_path):
    run = phase10_roomy(tmp_path, origin="simulated")
    runs = (
        optional(run, 0.200, threads=0, throttle=False), optional(run, 0.190, threads=32, throttle=False),
        optional(run, 0.200, threads=0, throttle=True),
    )  # fmt: skip
    (found,) = found_by("ablation", *runs)
    assert found.claim == (
        "Each option of phase10_ordered switched on alone, in the simulation with gw 2 on 40.0 GiB: threads=32 saves"
        " 5.0 % of the batch average; throttle makes no difference that can be told from noise."
    )
    assert found.gist == "gains by threads=32 alone in the simulation with gw 2"
    assert (found.figures[0].kind, round(found.figures[0].value, 3)) == ("share", 0.05)
    assert found.figures[0].label == "of the batch average saved by threads=32 in the simulation with gw 2"
    assert {row["option"]: round(row["ratio"], 3) for row in found.evidence} == {"threads": 0.95, "throttle": 1.0}


def test_options_among_the_other_conditions_are_found_as_well(tmp_path):
    run = phase10_roomy(tmp_path, origin="simulated")

    def flat(seconds, **options):
        changed = with_info(run, conditions={**run.info.conditions, **options})
        return with_figures(changed, "-".join(map(str, options.values())), batch_average=seconds)

    (found,) = found_by("ablation", flat(0.200, threads=0, throttle=False), flat(0.190, threads=32, throttle=False))
    assert "threads=32 saves 5.0 %" in found.claim
    assert found_by("ablation", flat(0.200, threads=0, gw=2), flat(0.190, threads=32, gw=3)) == []


def test_options_that_change_together_tell_nothing(tmp_path):
    run = phase10_roomy(tmp_path, origin="simulated")
    assert found_by("ablation", optional(run, 0.2, a=0, b=False), optional(run, 0.1, a=1, b=True)) == []
    assert found_by("ablation", run) == []
