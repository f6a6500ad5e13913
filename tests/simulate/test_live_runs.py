"""Calibration to live runs: recorded by hand here, real ones in the slow suite."""

import json
import shutil
from collections import defaultdict
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.live import run_live
from cuzklab.profiles import StageNumbers, load_hardware, scaled_workload
from cuzklab.simulate import simulate
from cuzklab.simulate.alone import Alone, Kind, observe
from cuzklab.simulate.launching import device_constants, undisturbed
from cuzklab.simulate.live_runs import (
    LOCK_WAIT,
    fit_live_runs,
    load_live_run,
    measured_machine,
    run_figures,
    simulate_run,
    simulation_figures,
)
from cuzklab.simulate.measured import _pools
from cuzklab.trace import RunInfo, load_run, write_run
from cuzklab.units import GiB


def as_live(folder, policy, workers, hardware, *, log2_domain=12, threads=1, proofs=1, name="emulated", **options):
    """A simulation, stored as if it had been live: its stage times are known exactly."""
    found = simulate(
        policies.load(policy, **options), hardware, scaled_workload(log2_domain, 4), proofs=proofs, in_flight=proofs,
        gpu_workers=workers, synthesis_workers=2, lookahead=4, vram_bytes=hardware.device.vram_bytes, seed=5,
    )  # fmt: skip
    assert found.outcome == "ok", found.explanation
    for span in found.recorder.rows["spans"]:  # as the live engine calls them
        call = span.name.partition(" d_")[0].replace(" ", "_")
        span.name = call if call in ("alloc", "free", "trim_pool", "device_sync") else span.name
    metrics = tuple(metric.to_json() for metric in found.metrics.values())
    conditions = {**found.conditions, "gt": threads, "hardware": name}
    info = RunInfo(
        origin="live", title="", outcome="ok", policy=policy, conditions=conditions, devices=found.devices,
        metrics=metrics,
    )  # fmt: skip
    return write_run(folder, info, found.recorder)


@pytest.fixture
def quiet_machine():
    """Enough cores, no memory contention, no spread: stages last what they last alone."""
    emulated = load_hardware("emulated")
    return replace(
        emulated,
        host=replace(emulated.host, cores=16),
        device=replace(emulated.device, vram_bytes=2 << 20, margin_bytes=1 << 14),
        spread=replace(emulated.spread, values={"synthesis": 1e-9}),
        memory_share=replace(emulated.memory_share, values={}),
    )


@pytest.fixture
def card(quiet_machine):
    """A device that is none of the host's threads, with launches that take long."""
    return replace(
        quiet_machine,
        device=replace(quiet_machine.device, kernels_on_host=False, alloc_s=0.003, free_s=0.002, pooled_s=0.0),
        engine=replace(quiet_machine.engine, pickup_s=0.0),
        launch=StageNumbers({"ntt_h": 0.004, "h_msm": 0.008, "batch_add": 0.002, "tail_msm": 0.006}, "by hand"),
        size_exponent=StageNumbers(
            {"log2_domain": 12.0, "synthesis": 0.1, "prep_msm": -0.1, "h_msm": 0.2, "tail_msm": 0.5}, "by hand"
        ),
    )


def measured(monkeypatch, base, runs):
    """The machine that runs tell, from a profile that knows none of the truth."""
    monkeypatch.setattr("cuzklab.simulate.live_runs.load_hardware", lambda name: base)
    return measured_machine([load_run(run.path) for run in runs])


def ignorant(card):
    """The same constants to be measured, with other values."""
    rates = {f"rates.{stage}": 3 * rate for stage, rate in card.rates.values.items()}
    launches = {f"launch.{stage}": 0.1 for stage in card.launch.values}
    exponents = {f"size_exponent.{stage}": 0.0 for stage in card.size_exponent.values if stage != "log2_domain"}
    return card.with_constants(rates | launches | exponents | {"device.alloc_s": 1.0, "transfer.pin_s_per_byte": 1.0})


def test_kernels_and_launches_of_a_card_are_measured(tmp_path, card, monkeypatch):
    runs = [as_live(tmp_path / policy, policy, 2, card) for policy in ("phase8", "phase9")]
    found = measured(monkeypatch, ignorant(card), runs)
    for name in ("rates.ntt_h", "rates.h_msm", "rates.b_g2_msm", "rates.prep_msm", "rates.synthesis", "rates.epilogue"):
        assert found.constant(name) == pytest.approx(card.constant(name), rel=0.01), name
    for stage, seconds in card.launch.values.items():
        assert found.constant(f"launch.{stage}") == pytest.approx(seconds, rel=0.01), stage
    for name in ("device.alloc_s", "device.free_s"):
        assert found.constant(name) == pytest.approx(card.constant(name), rel=0.01), name
    for name in ("pin_s_per_byte", "unpin_s_per_byte", "pageable_bytes_per_s", "pinned_bytes_per_s"):
        assert found.constant(f"transfer.{name}") == pytest.approx(card.constant(f"transfer.{name}"), rel=0.01), name


def test_kernels_of_a_stage_count_while_any_of_them_runs(tmp_path, card, monkeypatch):
    """Two halves that overlap are the whole; a pause between two is a launch's."""
    whole = as_live(tmp_path / "whole", "phase8", 1, card)
    table = pq.read_table(whole.path / "kernels.parquet").to_pandas()
    quarter = (table["end"] - table["start"]) // 4
    halves = [table.assign(end=table["start"] + 3 * quarter), table.assign(start=table["start"] + quarter)]
    apart = [table.assign(end=table["start"] + quarter), table.assign(start=table["end"] - quarter)]
    found = {}
    for name, tables in (("halves", halves), ("apart", apart)):
        shutil.copytree(whole.path, tmp_path / name)
        pd.concat(tables).to_parquet(tmp_path / name / "kernels.parquet", index=False)
        found[name] = measured(monkeypatch, ignorant(card), [load_run(tmp_path / name)])
    rate = card.rate("ntt_h")
    assert found["halves"].rate("ntt_h") == pytest.approx(rate, rel=1e-6)
    assert found["apart"].rate("ntt_h") == pytest.approx(2 * rate, rel=1e-6)
    kernels_s = 7 * 4096 * 12 / 2 / rate
    assert found["apart"].stage_launch_s("ntt_h") == pytest.approx(0.004 + kernels_s / 2, rel=1e-6)


def test_how_rates_grow_with_the_circuit_is_measured_in_runs_of_two_sizes(tmp_path, card, monkeypatch):
    roomy = card.with_constants({"device.vram_bytes": 8 << 20})
    runs = [as_live(tmp_path / f"{size}", "phase8", 1, roomy, log2_domain=size) for size in (12, 14)]
    found = measured(monkeypatch, ignorant(roomy), runs)
    for stage in ("synthesis", "prep_msm", "h_msm", "tail_msm"):
        assert found.constant(f"size_exponent.{stage}") == pytest.approx(
            card.constant(f"size_exponent.{stage}"), abs=0.01
        ), stage
        assert found.rate(stage, 1 << 14) == pytest.approx(card.rate(stage, 1 << 14), rel=0.01), stage


def test_what_waits_for_memory_and_for_cores_is_told_from_runs_in_which_stages_compete(tmp_path, card, monkeypatch):
    """The more beside it, the slower: the truth comes back though no stage ever ran alone for long."""
    truth = replace(
        card,
        host=replace(card.host, cores=3, memory_bandwidth_bytes_per_s=4e8, wakeup_penalty=5.0),
        memory_share=StageNumbers({"synthesis": 0.3, "prep_msm": 0.6, "b_g2_msm": 0.1}, "by hand"),
    )
    runs = [as_live(tmp_path / f"{n}", policy, n, truth, proofs=2) for policy, n in (("phase8", 1), ("phase9", 3))]
    base = ignorant(truth).with_constants({"memory_share.prep_msm": 0.3, "host.wakeup_penalty": 0.0})
    found = measured(monkeypatch, base, runs)
    assert found.constant("memory_share.prep_msm") == pytest.approx(0.6, rel=0.35)
    assert found.rate("synthesis") == pytest.approx(truth.rate("synthesis"), rel=0.05)
    assert found.rate("prep_msm") == pytest.approx(truth.rate("prep_msm"), rel=0.05)
    for run in runs:
        figures, again = run_figures(run), simulation_figures(simulate_run(run, found, 5))
        assert again["batch_average_s"] == pytest.approx(figures["batch_average_s"], rel=0.03)


def test_a_part_that_one_thread_does_alone_is_told_from_pools_of_two_sizes(tmp_path, card, monkeypatch):
    truth = replace(card, serial_share=StageNumbers({"b_g2_msm": 0.2}, "by hand"))
    runs = [as_live(tmp_path / f"{n}", "phase11", 1, truth, g2_threads=n, throttle=False) for n in (1, 4)]
    base = ignorant(truth).with_constants({"serial_share.b_g2_msm": 0.0})
    found = measured(monkeypatch, base, runs)
    assert found.constant("serial_share.b_g2_msm") == pytest.approx(0.2, abs=0.01)
    assert found.rate("b_g2_msm", 1 << 12) == pytest.approx(truth.rate("b_g2_msm", 1 << 12), rel=0.02)


def test_a_pool_that_a_design_has_by_default_is_counted_with_its_threads(tmp_path, card):
    run = as_live(tmp_path / "run", "phase12", 1, card)
    conditions = {name: value for name, value in run.info.conditions.items() if name != "g2_threads"}
    run = replace(run, info=replace(run.info, conditions=conditions))
    (kind,) = [kind for kind in observe([run], [1 << 12]).kinds if kind.name == "b_g2_msm"]
    assert kind.threads == 32


def test_what_each_thread_adds_is_told_from_pools_of_three_sizes(tmp_path, card, monkeypatch):
    truth = replace(
        card,
        serial_share=StageNumbers({"b_g2_msm": 0.1}, "by hand"), split_work=StageNumbers({"b_g2_msm": 5.0}, "by hand"),
    )  # fmt: skip
    runs = [as_live(tmp_path / f"{n}", "phase11", 1, truth, g2_threads=n, throttle=False) for n in (1, 4, 32)]
    guess = {"serial_share.b_g2_msm": 0.02, "split_work.b_g2_msm": 1.0}
    found = measured(monkeypatch, ignorant(truth).with_constants(guess), runs)
    assert found.constant("serial_share.b_g2_msm") == pytest.approx(0.1, abs=0.01)
    assert found.constant("split_work.b_g2_msm") == pytest.approx(5.0, rel=0.05)
    assert found.rate("b_g2_msm", 1 << 12) == pytest.approx(truth.rate("b_g2_msm", 1 << 12), rel=0.02)
    # Two sizes do not tell both: then what the profile says each thread adds stays.
    found = measured(monkeypatch, ignorant(truth).with_constants(guess), runs[:2])
    assert found.constant("split_work.b_g2_msm") == 1.0


@pytest.mark.parametrize(
    ("pools", "seconds", "told"),
    [
        # The more threads the slower, as if they shared nothing: what each adds to nothing is not told.
        ((1, 4, 32), (1.0, 2.0, 2.9), {}),
        # Beyond the cores all pools are equally fast: two such do not tell what one thread does alone.
        ((20, 32), (1.0, 1.0), {}),
        ((17, 24, 32), (1.0, 1.0, 1.0), {}),
        ((1, 4), (1.0, 0.4), {"serial_share.b_g2_msm": pytest.approx(0.2, abs=1e-6)}),
    ],
)
def test_pools_that_do_not_tell_a_constant_leave_it_as_it_was(card, pools, seconds, told):
    base = replace(
        card,
        serial_share=StageNumbers({"b_g2_msm": 0.1}, "by hand"), split_work=StageNumbers({"b_g2_msm": 1e-9}, "by hand"),
    )  # fmt: skip
    each = {Kind("b_g2_msm", 4096, threads): one for threads, one in zip(pools, seconds, strict=True)}
    assert _pools(Alone(each, {}, {}, {}), {4096: scaled_workload(12, 1).shape}, base) == told


def test_a_profile_with_one_launch_for_all_stages_has_its_other_constants_measured(tmp_path, card, monkeypatch):
    truth = replace(card, launch=None).with_constants({"device.launch_s": 0.004, "device.between_s": 0.001})
    run = as_live(tmp_path / "run", "phase8", 1, truth)
    found = measured(monkeypatch, truth.with_constants({"device.launch_s": 1.0, "device.between_s": 1.0}), [run])
    assert found.device.launch_s == pytest.approx(0.004, rel=0.01)
    assert found.device.between_s == pytest.approx(0.001, rel=0.01)


def test_how_much_launches_differ_is_not_told_by_a_host_that_was_always_busy(card):
    rest = {"stage": "ntt_h", "part": "", "domain": 4096, "lasted_s": 0.3, "kernels_s": 0.2, "link_s": 0.0}
    stages = pd.DataFrame({"gap_s": [1e-3] * 9, "threads": [3.0] * 3 + [20.0] * 6}).assign(disturbed=False, **rest)
    assert device_constants(stages, card)[1]["spread.launching"] == 0.0
    assert "spread.launching" not in device_constants(stages[stages["threads"] > 16], card)[1]


def test_calls_of_the_pool_are_measured_apart_where_the_profile_tells_them_apart(tmp_path, card, monkeypatch):
    truth = card.with_constants({"device.pooled_s": 5e-4, "device.pooled_free_s": 1e-4})
    run = as_live(tmp_path / "run", "phase9", 1, truth)
    found = measured(monkeypatch, ignorant(truth).with_constants({"device.pooled_s": 1.0}), [run])
    for name in ("alloc_s", "pooled_s", "free_s", "pooled_free_s"):
        assert found.constant(f"device.{name}") == pytest.approx(truth.constant(f"device.{name}"), rel=0.01), name
    found = measured(monkeypatch, ignorant(card), [run])
    assert found.device.alloc_s == pytest.approx(truth.device.alloc_s + truth.device.pooled_s, rel=0.01)


def test_spreads_of_launches_and_of_waking_are_measured_with_how_long_a_thread_takes_to_wake(
    tmp_path, card, monkeypatch
):
    """Handovers are made to last 0.2 ms in the middle, by a factor e^0.5 more or less at one standard deviation."""
    spread = StageNumbers({"synthesis": 1e-9, "launching": 0.2, "waking": 0.1}, "by hand")
    truth = replace(card, spread=spread).with_constants({"engine.wake_s": 1e-9})
    run = as_live(tmp_path / "run", "phase9", 2, truth, proofs=30)
    locks = pq.read_table(run.path / "locks.parquet").to_pandas().sort_values("acquired")
    waited = (locks["acquired"] > locks["requested"]).to_numpy()
    assert waited.sum() > 50
    quantiles = NormalDist().inv_cdf
    ranks = np.arange(1, waited.sum() + 1) / (waited.sum() + 1)
    locks.loc[waited, "acquired"] += [round(2e5 * np.exp(0.5 * quantiles(rank))) for rank in ranks]
    locks.to_parquet(run.path / "locks.parquet", index=False)
    base = ignorant(truth).with_constants({"spread.launching": 0.9, "spread.waking": 0.9})
    found = measured(monkeypatch, base, [load_run(run.path)])
    assert found.constant("spread.launching") == pytest.approx(0.2, rel=0.15)
    assert found.constant("spread.waking") == pytest.approx(0.5, rel=0.05)
    assert found.engine.wake_s == pytest.approx(2e-4 * np.exp(0.5**2 / 2), rel=0.05)
    assert found.device.idle_s == found.engine.wake_s


def test_bursts_that_lost_their_core_are_counted_where_the_host_was_too_busy(card):
    """25 of 100 gaps between stages beside 20 threads on 16 cores were long; one on a calm host does not count."""
    busy = pd.DataFrame({"gap_s": [1e-3] * 75 + [0.02] * 25, "threads": 20.0})
    calm = pd.DataFrame({"gap_s": [1e-3] * 199 + [0.5], "threads": 3.0})
    rest = {"stage": "ntt_h", "part": "", "domain": 4096, "lasted_s": 0.3, "kernels_s": 0.2, "link_s": 0.0}
    stages = pd.concat((busy, calm)).assign(disturbed=False, **rest)
    one_share = card.with_constants({"host.lost_core_share": 0.9})
    assert device_constants(stages, one_share)[1]["host.lost_core_share"] == 0.25
    assert "host.lost_core_share" not in device_constants(stages, card)[1]
    assert "host.lost_core_share" not in device_constants(stages[stages["threads"] < 16], one_share)[1]


def test_runs_that_were_not_measured_are_predicted_where_the_truth_is_known(tmp_path, quiet_machine, monkeypatch):
    monkeypatch.setattr("cuzklab.simulate.live_runs.load_hardware", lambda name: quiet_machine)
    keys = [("phase8", 1), ("phase9", 2), ("phase8", 2), ("phase9", 1)]
    runs = [as_live(tmp_path / f"{policy}-{workers}", policy, workers, quiet_machine) for policy, workers in keys]
    found = fit_live_runs([run.path for run in runs[:2]], replicates=2, seeds=(0,))
    assert len(found.problem.targets) == 3  # two batch averages, and one wait for a lock
    assert len(found.problem.runs) == 2 and len(found.members) == 3
    machine = quiet_machine.with_constants(found.members[0])
    for run in runs[2:]:
        figures, predicted = run_figures(run), simulation_figures(simulate_run(run, machine, 0))
        assert predicted["batch_average_s"] == pytest.approx(figures["batch_average_s"], rel=0.02)
        assert predicted[LOCK_WAIT] == pytest.approx(figures[LOCK_WAIT], rel=0.05, abs=0.01)


def test_a_run_is_simulated_with_its_own_threads(tmp_path, card):
    """The profile's rates are of one thread; with four, synthesis and the G2 MSM take a fourth."""
    run = as_live(tmp_path / "run", "phase8", 1, card)
    four = replace(run, info=replace(run.info, conditions={**run.info.conditions, "gt": 4}))
    times = []
    for one in (run, four):
        spans = simulate_run(one, card, 0).recorder.rows["spans"]
        times.append(
            {name: next(s.end - s.start for s in spans if s.name == name) for name in ("synthesis", "b_g2_msm")}
        )
    assert times[0]["synthesis"] == pytest.approx(4 * times[1]["synthesis"], rel=1e-6)
    assert times[0]["b_g2_msm"] == pytest.approx(4 * times[1]["b_g2_msm"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("slower_link", "repeats"), [(12, 1), (1, 5)], ids=["bound by the link", "by computing"])
def test_throughput_and_lock_waits_of_live_runs_that_were_not_fitted_are_predicted(tmp_path, slower_link, repeats):
    """On a link so slow that what the machine does besides matters little, and on one that hardly counts.

    There the other work of the machine does: of several runs of each kind, in turns, the median one is taken.
    """
    emulated = load_hardware("emulated")
    link = emulated.transfer
    slow = replace(
        emulated,
        transfer=replace(
            link,
            pinned_bytes_per_s=link.pinned_bytes_per_s / slower_link,
            pageable_bytes_per_s=link.pageable_bytes_per_s / slower_link,
            pin_s_per_byte=link.pin_s_per_byte * slower_link,
            unpin_s_per_byte=link.unpin_s_per_byte * slower_link,
        ),
    )
    found = defaultdict(list)
    for number in range(repeats):
        for policy, workers in (("phase8", 1), ("phase9", 2), ("phase8", 2), ("phase9", 1)):
            result = run_live(
                policy, 12, proofs=1, partitions=4, gpu_workers=workers, synthesis_workers=2, lookahead=4,
                vram_bytes=48 * GiB, hardware=slow,
            )  # fmt: skip
            assert result.outcome == "ok"
            found[policy, workers].append(result.write(tmp_path / f"{policy}-{workers}-{number}"))
    runs = {
        key: sorted(ones, key=lambda run: run_figures(run)["batch_average_s"])[repeats // 2]
        for key, ones in found.items()
    }
    machine = measured_machine([runs["phase8", 1], runs["phase9", 2]])
    for key in (("phase8", 2), ("phase9", 1)):
        measured = run_figures(runs[key])
        predicted = simulation_figures(simulate_run(runs[key], machine, 0))
        assert predicted["batch_average_s"] == pytest.approx(measured["batch_average_s"], rel=0.1), key
        if measured[LOCK_WAIT] > 0.05 * measured["wall_s"]:
            assert predicted[LOCK_WAIT] == pytest.approx(measured[LOCK_WAIT], rel=0.1), key


def test_runs_that_cannot_be_calibrated_to_are_refused(tmp_path):
    stored = simulate(
        "phase9", "emulated", scaled_workload(12, 2), proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1,
        vram_bytes=32 * GiB,
    ).to_run(tmp_path / "run")  # fmt: skip
    with pytest.raises(BadInput, match="a simulated run; only live ones"):
        fit_live_runs([stored.path])


def test_seeds_that_do_not_end_as_the_runs_did_do_not_count_beside_them(tmp_path, quiet_machine, monkeypatch):
    """What no seed shows is off by a factor 2; the profile that is written has a scatter all the same."""
    monkeypatch.setattr("cuzklab.simulate.live_runs.load_hardware", lambda name: quiet_machine)
    run = as_live(tmp_path / "run", "phase8", 1, quiet_machine)

    def fails(*seeds):
        def drawn(run, hardware, seed):
            found = simulate_run(run, hardware, seed)
            return replace(found, outcome="device_oom", metrics={}) if seed in seeds else found

        monkeypatch.setattr("cuzklab.simulate.live_runs.simulate_run", drawn)
        return fit_live_runs([run.path], replicates=1, seeds=(0, 1))

    some, none = fails(1), fails(0, 1)
    assert some.figures[0] == pytest.approx(run_figures(run)["batch_average_s"], rel=0.02) and some.scatter < 0.02
    assert none.residuals == pytest.approx([np.log(2)]) and none.scatter == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda spans: spans.assign(name=spans["name"].replace("prep_msm", "evil")),
            "spans.parquet: 'evil' is no stage",
        ),
        (
            lambda spans: spans.assign(name=spans["name"].replace("tail_msm.l", "tail_msm.x")),
            "spans.parquet: 'tail_msm.x' is no stage",
        ),
        (lambda spans: spans.assign(end=spans["start"] - 5), "spans.parquet: row 0 ends before it begins"),
        (lambda spans: spans[:0], "spans.parquet: no stage on a device"),
    ],
)
def test_a_trace_from_which_nothing_can_be_measured_is_refused(tmp_path, quiet_machine, monkeypatch, change, message):
    monkeypatch.setattr("cuzklab.simulate.live_runs.load_hardware", lambda name: quiet_machine)
    run = as_live(tmp_path / "run", "phase8", 1, quiet_machine)
    change(run.table("spans")).to_parquet(run.path / "spans.parquet", index=False)
    with pytest.raises(BadInput, match=message):
        fit_live_runs([run.path], replicates=1, seeds=(0,))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": ["a", "b"]}, "run.json: machine is not a table"),
        ({"metrics": [{"kind": "batch_average", "value": 10**400}]}, "run.json: a metric has no kind or no value"),
        ({"conditions": {"gw": 10**6}}, "run.json: condition gw is 1000000; it must be a whole number from 1 to 1000"),
        ({"conditions": {"pw": 0}}, "run.json: condition pw is 0; it must be a whole number from 1 to 1000"),
    ],
)
def test_what_a_stored_run_says_is_checked_before_it_is_reckoned_with(tmp_path, quiet_machine, change, message):
    run = as_live(tmp_path / "run", "phase8", 1, quiet_machine)
    place = run.path / "run.json"
    record = json.loads(place.read_text())
    if "conditions" in change:
        change = {"conditions": {**record["conditions"], **change["conditions"]}}
    place.write_text(json.dumps(record | change))
    with pytest.raises(BadInput, match=message):
        load_live_run(run.path)


_SPAN = st.tuples(
    st.integers(0, 60),
    st.integers(1, 20),
    st.sampled_from(("pin", "unpin", "h_msm")),
    st.sampled_from(("p0", "p1", None)),
)


@given(st.lists(_SPAN, max_size=30))
def test_a_span_is_undisturbed_where_no_other_partition_locks_pages_beside_it(rows):
    spans = pd.DataFrame(
        [(start, start + length, name, partition) for start, length, name, partition in rows],
        columns=["start", "end", "name", "partition"],
    )
    wanted = [
        number
        for number, (start, length, _, partition) in enumerate(rows)
        if not any(
            begin < start + length and begin + lasted > start and owner != partition
            for begin, lasted, name, owner in rows
            if name != "h_msm"
        )
    ]
    assert list(undisturbed(spans).index) == wanted
