"""Whole engines on small circuits: real proofs, verified, and the same as the plain prover's."""

import json

import numpy as np
import pytest

from cuzklab.errors import BadInput
from cuzklab.live import circuit as circuits
from cuzklab.live import run_live
from cuzklab.live.stages import STAGE_FUNCTIONS
from cuzklab.policies.model import Partition
from cuzklab.profiles import load_hardware, scaled_shape
from cuzklab.prover.prove import prove
from cuzklab.prover.setup import setup
from cuzklab.stages import STAGES, DeviceModel, partition_sizes
from cuzklab.trace import load_run
from cuzklab.units import GiB

LOG2_DOMAIN = 10
ROOMY = 80 * GiB  # small circuits have relatively large scratch buffers


def small(policy, **options):
    conditions = {"proofs": 1, "partitions": 2, "gpu_workers": 2, "vram_bytes": ROOMY, "deadline_s": 60} | options
    return run_live(policy, LOG2_DOMAIN, **conditions)


@pytest.fixture
def policy_file(tmp_path):
    """Write a policy of a few effects."""

    def write(*lines, name="mine"):
        path = tmp_path / f"{name}.py"
        body = "\n".join(f"    {line}" for line in lines)
        path.write_text(
            '"""A policy of the user\'s."""\n'
            "from cuzklab.policies.common import prep, sums\n"
            "from cuzklab.policies.effects import *\n"
            "from cuzklab.policies.model import program\n"
            f"@program\ndef prove_partition(p, gpu):\n{body}\n"
        )
        return str(path)

    return write


def test_every_stage_has_a_function():
    assert set(STAGE_FUNCTIONS) == set(STAGES)


@pytest.mark.parametrize("policy", ["phase8", "phase9", "phase10_ordered", "phase10_nested"])
def test_proofs_are_verified_and_their_trace_is_complete(policy):
    result = small(policy, proofs=2)
    assert (result.outcome, result.explanation) == ("ok", "")
    assert result.proofs == result.verified == (0, 1)
    assert result.failures == () and result.leaks == ()
    assert sorted(result.partition_proofs) == ["p0.0", "p0.1", "p1.0", "p1.1"]

    rows = result.recorder.rows
    circuit = circuits.circuit_with_test_key(LOG2_DOMAIN, 1)
    device = load_hardware("emulated").device.model
    sizes = circuit.sizes(device)
    uploads = [row for row in rows["transfers"] if row.bytes == sizes.abc]
    assert len(uploads) == 4 and {row.pinned for row in uploads} == {policy != "phase8"}
    # Every other transfer is the stream of points of one stage, by the table's formula; tails differ a little.
    streamed = [
        STAGES[stage].streamed_bytes(circuit.shape, part)
        for stage in ("h_msm", "batch_add")
        for part in STAGES[stage].parts
    ]
    assert sorted(row.bytes for row in rows["transfers"] if row not in uploads and row.bytes > 10_000) == sorted(
        4 * streamed
    )
    assert len(rows["transfers"]) == 4 * (1 + 1 + 4 + 3)
    assert len(rows["kernels"]) == 4 * 9
    scratch = [row for row in rows["vram"] if row.op == "alloc" and row.buffer.endswith(" scratch")]
    assert sorted(row.bytes for row in scratch) == sorted(4 * [size for size in sizes.scratch.values() if size])
    assert rows["vram"][-1].live == 0
    assert len([row for row in rows["spans"] if row.category == "call"]) == 4
    assert {
        "wall_s",
        "prove_time_s",
        "batch_average_s",
        "peak_vram_bytes",
        "peak_host_bytes",
        "kernel_occupancy",
    } <= set(result.metrics)


def test_proofs_are_the_plain_provers_byte_for_byte():
    result = small("phase9", threads=2)
    circuit = circuits.circuit_with_test_key(LOG2_DOMAIN, 1)
    sizes = circuit.sizes(DeviceModel(1))
    for index in range(2):
        job = circuit.job(Partition(0, index, sizes))
        proof, public = prove(circuit.key, job.witness, r=job.r, s=job.s)
        found = result.partition_proofs[f"p0.{index}"]
        for name in ("a", "b", "c"):
            assert np.array_equal(getattr(found, name), getattr(proof, name))
        assert np.array_equal(public, job.public)
    first, second = result.partition_proofs.values()
    assert not np.array_equal(first.a, second.a)


def test_the_same_seed_gives_the_same_proofs_under_every_policy():
    proofs = [small(policy, record=False).partition_proofs for policy in ("phase8", "phase10_ordered")]
    for name, one in proofs[0].items():
        assert one.a.tobytes() + one.b.tobytes() + one.c.tobytes() == b"".join(
            point.tobytes() for point in (proofs[1][name].a, proofs[1][name].b, proofs[1][name].c)
        )


def test_without_memory_partitions_fail_and_nothing_else():
    result = small("phase8", vram_bytes=12 * GiB + (1 << 29), partitions=3)
    assert result.outcome == "device_oom"
    assert result.proofs == result.verified == ()
    assert [(failure.partition, failure.kind) for failure in result.failures] == [
        ("p0.0", "oom"),
        ("p0.1", "oom"),
        ("p0.2", "oom"),
    ]
    assert result.explanation.startswith(
        "3 of 3 partitions failed for want of device memory, first proof 0, partition 0, at Launch gpu0 h_msm, "
    )
    assert result.failures[0].effect == "Launch gpu0 h_msm" and result.failures[0].worker.startswith("gpu0.w")
    assert result.leaks == ()
    vram = result.recorder.rows["vram"]
    assert len([row for row in vram if row.op == "fail"]) == 3
    assert vram[-1].live == 0
    assert {row.name for row in result.recorder.rows["spans"] if row.category == "call"} == {"failed_partition"}
    assert "batch_average_s" in result.reasons


def test_a_run_is_stored_with_what_it_rests_on(tmp_path):
    result = small("phase9")
    run = result.write(tmp_path / "run", {"step": "abc"})
    info = load_run(run.path).info
    assert (info.origin, info.outcome, info.policy) == ("live", "ok", "phase9")
    assert set(info.inputs) == {"circuit", "test key", "hardware emulated", f"policy {info.policy}", "step"}
    assert any(note.startswith("TEST KEY") for note in info.notes)
    assert info.conditions["vram_equivalent_bytes"] == ROOMY
    assert info.conditions["vram_bytes"] == info.devices[0]["vram_limit_bytes"] == ROOMY >> (27 - LOG2_DOMAIN)
    for table in ("spans", "locks", "vram", "transfers", "kernels", "counters"):
        assert info.availability[table]["state"] == "present"
        assert len(run.table(table)) == len(result.recorder.rows[table])
    assert {metric["obtained"] for metric in info.metrics} == {"measured"}


def test_a_run_without_recording_has_no_rows_and_cannot_be_stored(tmp_path):
    result = small("phase9", record=False)
    assert result.outcome == "ok" and result.recorder is None
    assert set(result.metrics) == {"wall_s"}
    with pytest.raises(ValueError, match="nothing to store"):
        result.write(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_deadlock_of_a_users_policy_is_reported_and_stored(policy_file, tmp_path):
    result = small(policy_file("yield Acquire(gpu.lock)", "yield Acquire(gpu.lock)"))
    assert result.outcome == "deadlock"
    holder = next(edge.actor for edge in result.waits_for if edge.holders == (edge.actor,))
    assert f"{holder} waits for lock gpu0.lock (held by {holder})" in result.explanation
    assert result.write(tmp_path / "run").info.outcome == "deadlock"


CALL = {
    "prep": "task = yield Fork(prep(p))",
    "lock": "yield Acquire(gpu.lock)",
    "d_a": 'd_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p)',
    "d_bc": 'd_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p)',
    "upload": 'yield Upload(p.abc, (d_a, d_bc), p.stream(gpu, "compute"), p)',
    "ntt_h": 'yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))',
    "h_msm": 'yield Launch(gpu, "h_msm", p, uses=(d_a,))',
    "free": "yield Free(d_bc); yield Free(d_a)",
    "barrier": "yield Wait(p.barrier)",
    "sums": "yield from sums(p, gpu)",
    "unlock": "yield Release(gpu.lock)",
    "join": "yield Join(task)",
    "epilogue": 'yield Compute("epilogue", p)',
}
FORGETS = {
    "ntt_h": ("h_msm of p0.0 reads h, which ntt_h has yet to write", "fault"),
    "h_msm": ("epilogue of p0.0 reads h sum, which h_msm has yet to write", "fault"),
    "epilogue": ("without a proof", "invalid"),
}


@pytest.mark.parametrize("forgotten", sorted(FORGETS))
def test_a_policy_that_forgets_a_step_does_not_prove(policy_file, forgotten):
    words, kind = FORGETS[forgotten]
    result = small(policy_file(*(line for name, line in CALL.items() if name != forgotten)), partitions=1)
    assert result.outcome == "fault" and result.verified == ()
    (failure,) = result.failures
    assert failure.kind == kind and words in failure.message
    assert words in result.explanation


def test_a_policy_that_does_a_step_twice_does_not_prove(policy_file):
    twice = {**CALL, "ntt_h": f"{CALL['ntt_h']}; {CALL['ntt_h']}"}
    result = small(policy_file(*twice.values()), partitions=1)
    (failure,) = result.failures
    assert result.outcome == "fault" and result.verified == ()
    assert failure.kind == "invalid" and "the proof is not valid" in failure.message


def test_an_unknown_stage_is_named(policy_file):
    result = small(policy_file('yield Compute("prep_nsm", p)'), partitions=1)
    assert result.explanation.startswith("proof 0, partition 0, at Compute prep_nsm, by gpu0.w")
    assert "stage prep_nsm of partition p0.0 failed: LookupError: no such stage; there" in result.explanation


@pytest.mark.parametrize(
    ("workload", "options", "words"),
    [
        ("porep-32g", {}, "ask for porep-shaped-N"),
        (30, {}, "log2_domain 30"),
        (10, {"vram_bytes": 1}, "nothing remains"),
        (10, {"threads": 0}, "threads is 0"),
        (10, {"gpu_workers": 1000}, "gpu_workers is 1000"),
        (10, {"proofs": 0}, "proofs must be at least 1"),
        (10, {"partitions": 20_000}, "more than 10000 partitions"),
    ],
)
def test_impossible_conditions_are_refused(workload, options, words):
    with pytest.raises(BadInput, match=words):
        run_live("phase9", workload, **({"proofs": 1, "partitions": 1, "gpu_workers": 1} | options))


def test_keys_are_cached_and_damaged_ones_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(circuits, "cache_folder", lambda: tmp_path)
    made = circuits._circuit_with_test_key(8, 5)
    (path,) = tmp_path.glob("test-key-*.zkey")
    content = path.read_bytes()
    monkeypatch.setattr(circuits, "setup", None)  # a second key is not made
    again = circuits._circuit_with_test_key(8, 5)
    assert again.digests == made.digests
    assert np.array_equal(again.key.h, made.key.h)
    monkeypatch.setattr(circuits, "setup", setup)
    path.write_bytes(content[: len(content) // 2])
    assert circuits._circuit_with_test_key(8, 5).digests == made.digests
    assert path.read_bytes() == content


def test_the_emulated_link_is_the_published_one_a_thousand_times_slower():
    emulated, published = (load_hardware(name).transfer for name in ("emulated", "rtx5070ti-7995wx"))
    assert emulated.pinned_bytes_per_s * 1000 == published.pinned_bytes_per_s
    assert emulated.pageable_bytes_per_s * 1000 == published.pageable_bytes_per_s
    assert emulated.pin_s_per_byte == pytest.approx(published.pin_s_per_byte * 1000, rel=1e-12)
    assert emulated.unpin_s_per_byte == pytest.approx(published.unpin_s_per_byte * 1000, rel=1e-12)


@pytest.mark.parametrize("log2_domain", [14, 15, 16])
@pytest.mark.parametrize("multiprocessors", [1, 2])
def test_scaled_devices_hold_what_the_real_one_holds(log2_domain, multiprocessors):
    """Phase 9's peak, d_a and d_bc with the H-MSM's scratch, fits 16 GiB in proportion; two partitions do not."""
    sizes = partition_sizes(scaled_shape(log2_domain), DeviceModel(multiprocessors))
    limit, margin = 16 * GiB >> (27 - log2_domain), (GiB >> 1) >> (27 - log2_domain)
    staged = sizes.d_a + sizes.d_bc
    assert staged + max(sizes.scratch.values()) <= limit
    assert staged + margin <= limit < 2 * staged
    # 40 GiB hold two staged partitions and any scratch.
    assert 2 * staged + max(sizes.scratch.values()) <= (40 * GiB >> (27 - log2_domain))


def test_cpu_stages_can_be_sampled(tmp_path):
    """On a circuit whose syntheses and G2 MSMs last many sampling intervals; shorter stages may have no sample."""
    result = run_live("phase9", 14, proofs=1, partitions=2, gpu_workers=2, vram_bytes=ROOMY, sample_stacks=True)
    stages = json.loads((result.write(tmp_path / "run").path / "profile.json").read_text())
    assert {"synthesis", "b_g2_msm"} <= {name for name, session in stages.items() if session["frame_records"]}
