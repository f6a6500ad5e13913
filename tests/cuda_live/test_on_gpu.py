"""Proofs and live runs on a real GPU: the same bytes as the CPU's, and traces whose sizes are the formulas'."""

import collections
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cuzklab.backends import cuda, host
from cuzklab.backends.backend import HOST
from cuzklab.backends.cuda import launch
from cuzklab.backends.cuda.backend import CudaBackend
from cuzklab.backends.cuda.device import CudaDevice
from cuzklab.backends.cuda.latency import event_ns, launch_ns
from cuzklab.backends.limbs import ints_to_limbs
from cuzklab.errors import BadInput
from cuzklab.live import circuit as circuits
from cuzklab.live import run_live
from cuzklab.policies.model import Partition
from cuzklab.prover.prove import prove
from cuzklab.stages import STAGES, DeviceModel, partition_sizes
from cuzklab.units import GiB

pytestmark = pytest.mark.gpu
POLICIES = (
    "phase7", "phase8", "phase9", "phase10_ordered", "phase10_nested", "phase10_ticket", "phase10_reservation",
    "phase11", "phase12", "resident",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _needs_gpu():
    if (reason := cuda.available()) is not None:
        pytest.skip(reason)


def proof_bytes(proof):
    return b"".join(point.tobytes() for point in (proof.a, proof.b, proof.c))


@pytest.mark.parametrize("log2_domain", [8, 10, 13, 15, 17])
def test_a_proof_is_the_hosts_byte_for_byte(log2_domain):
    circuit = circuits.circuit_with_test_key(log2_domain, 3)
    job = circuit.job(Partition(0, 0, circuit.sizes(DeviceModel(1))))
    (one, public), (other, other_public) = (
        prove(circuit.key, job.witness, r=12345 + log2_domain, s=67890, on=backend) for backend in (CudaBackend(), HOST)
    )
    assert proof_bytes(one) == proof_bytes(other)
    assert np.array_equal(public, other_public)


@pytest.mark.parametrize("ending", ["zkey", "params"])
def test_a_proof_of_a_mapped_key_is_the_hosts_in_either_dialect(tmp_path, ending):
    from cuzklab.prover.files import write_params, write_zkey
    from cuzklab.prover.hash_circuit import sha256_circuit
    from cuzklab.prover.keys import open_key
    from cuzklab.prover.setup import bellman_setup, setup

    system, witness = sha256_circuit(b"one block")
    path = tmp_path / f"key.{ending}"
    if ending == "zkey":
        write_zkey(path, setup(system, "a seed"))
    else:
        write_params(path, bellman_setup(system, "a seed"))
    key = open_key(path, system)
    one, other = (prove(key, witness, r=5, s=6, on=backend)[0] for backend in (CudaBackend(), HOST))
    assert proof_bytes(one) == proof_bytes(other)


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [0, 1, 63, 1000, (1 << 14) + 1, 140_001])
def test_masked_sums_in_slices(group, n):
    make = {"g1": host.fixed_base_g1, "g2": host.fixed_base_g2}[group]
    base = make(ints_to_limbs(range(1, 5001), 4))
    points = np.resize(base, (n, base.shape[1]))
    bitmap = np.random.default_rng(n).integers(0, 1 << 64, -(-n // 64), dtype=np.uint64)
    expected = getattr(host, f"masked_sum_{group}")(points, bitmap)
    assert (getattr(CudaBackend(), f"masked_sum_{group}")(points, bitmap) == expected).all()


def test_sums_leave_their_last_additions_for_later():
    points = host.fixed_base_g1(ints_to_limbs(range(1, 3001), 4))
    scalars = ints_to_limbs([pow(3, i, 1 << 250) for i in range(3000)], 4)
    bitmap = np.random.default_rng(1).integers(0, 1 << 64, 47, dtype=np.uint64)
    gpu = CudaBackend()
    left = gpu.msm_g1(points, scalars, later=True), gpu.masked_sum_g1(points, bitmap, later=True)
    assert (left[0]() == host.msm_g1(points, scalars)).all()
    assert (left[1]() == host.masked_sum_g1(points, bitmap)).all()


@pytest.mark.parametrize("log2_domain", [22, 24, 25])
def test_what_is_made_ready_fits_the_scaled_card(log2_domain):
    device = CudaDevice(0, (16 * GiB) >> (27 - log2_domain))
    try:
        device.stream("warm").run(lambda: CudaBackend().warm(1 << log2_domain)).wait()
        assert 0 < device.physical_bytes <= max(2 * GiB, device.limit_bytes)
    finally:
        device.close()


def test_a_launch_takes_microseconds_and_so_does_an_event():
    device = CudaDevice(0, 1 << 30)
    try:
        assert 1_000 < launch_ns(device) < 200_000
        assert 100 < event_ns(device, rounds=5) < 50_000
    finally:
        device.close()


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_proves_on_the_gpu(policy):
    log2_domain, partitions = 12, 4
    result = run_live(
        policy, log2_domain, backend="cuda", proofs=1, partitions=partitions, gpu_workers=2, synthesis_workers=2,
        threads=2, vram_bytes=100 * GiB, deadline_s=60,
    )  # fmt: skip
    assert (result.outcome, result.explanation, result.leaks) == ("ok", "", ())
    assert result.verified == (0,)
    circuit = circuits.circuit_with_test_key(log2_domain, 1)
    sizes = partition_sizes(circuit.shape, DeviceModel(launch.multiprocessors()))
    for index in range(partitions):
        job = circuit.job(Partition(0, index, sizes))
        proof, _ = prove(circuit.key, job.witness, r=job.r, s=job.s)
        assert proof_bytes(result.partition_proofs[f"p0.{index}"]) == proof_bytes(proof)
    check_trace(result, circuit, partitions)


def test_a_design_that_frees_what_is_in_use_fails_as_the_checker_says_and_breaks_nothing():
    """The hand-off may free its predecessor's buffers under its kernels; whether it does depends on who is faster."""
    for _ in range(5):
        result = run_live("phase10_handoff", 12, backend="cuda", proofs=1, partitions=4, gpu_workers=2,
                          synthesis_workers=2, vram_bytes=100 * GiB, deadline_s=60)  # fmt: skip
        assert result.outcome in ("ok", "fault")
        for failure in result.failures:
            assert "use_after_free" in failure.message  # a stage that finds its buffer freed, or one freed under it
    again = run_live("phase9", 12, backend="cuda", proofs=1, partitions=2, gpu_workers=2, vram_bytes=100 * GiB)
    assert again.outcome == "ok"


@pytest.mark.parametrize("policy", ["phase8", "phase9", "phase12"])
@pytest.mark.parametrize("log2_domain", [16, pytest.param(20, marks=pytest.mark.slow)])
def test_partitions_of_a_size_that_fills_the_gpu(log2_domain, policy):
    """A 16 GiB card in proportion to the circuit, where two staged partitions do not fit beside each other."""
    partitions = 4
    result = run_live(
        policy, log2_domain, backend="cuda", proofs=1, partitions=partitions, gpu_workers=2, synthesis_workers=4,
        threads=2, vram_bytes=16 * GiB, deadline_s=100,
    )  # fmt: skip
    assert (result.outcome, result.explanation, result.leaks) == ("ok", "", ())
    assert result.verified == (0,)
    check_trace(result, circuits.circuit_with_test_key(log2_domain, 1), partitions)


def test_a_kernels_fault_is_one_line(tmp_path):
    """In a process of its own, which such a fault ends the use of the device for."""
    script = (
        "import cupy, numpy as np\n"
        "from cuzklab.backends import cuda\n"
        "from cuzklab.backends.cuda.device import CudaDevice\n"
        "from cuzklab.errors import BadInput\n"
        "device = CudaDevice(0, 1 << 20)\n"
        "nowhere = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(1 << 20, 1 << 20, None, 0), 0)\n"
        "values = cupy.ndarray((1000, 4), np.uint64, nowhere)\n"
        "work = device.stream('s').run(lambda: cuda.fr_mul(values, values))\n"
        "try:\n    work.wait()\nexcept cupy.cuda.runtime.CUDARuntimeError as error:\n    print('raised', error)\n"
        "try:\n    device.close()\nexcept BadInput as error:\n    print(error)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, timeout=60)
    raised, said = done.stdout.splitlines()
    assert raised.startswith("raised cudaErrorIllegalAddress")
    assert said.startswith("CUDA: cudaErrorIllegalAddress") and said.endswith("use of gpu0: start it anew")


def check_trace(result, circuit, partitions):
    """Bytes by the formulas, memory that balances, times that follow each other."""
    rows = result.recorder.rows
    sizes = circuit.sizes(DeviceModel(launch.multiprocessors()))
    moved = collections.Counter(row.bytes for row in rows["transfers"])
    assert moved[sizes.abc] == partitions
    for stage in ("h_msm", "batch_add"):
        for part in STAGES[stage].parts:
            assert moved[STAGES[stage].streamed_bytes(circuit.shape, part)] >= partitions, (stage, part)
    assert len(rows["transfers"]) == partitions * (1 + 1 + 4 + 3)
    live = collections.Counter()
    for row in sorted(rows["vram"], key=lambda row: row.time):
        live[row.device] += {"alloc": row.bytes, "free": -row.bytes}.get(row.op, 0)
        assert live[row.device] == row.live <= row.limit or row.op in ("reserve", "unreserve", "fail")
    taken = collections.Counter((row.buffer, row.bytes) for row in rows["vram"] if row.op == "alloc")
    scratch = collections.Counter(size for (name, size) in taken.elements() if name.endswith(" scratch"))
    assert scratch == collections.Counter({size: partitions * list(sizes.scratch.values()).count(size)
                                           for size in set(sizes.scratch.values()) if size})  # fmt: skip
    spans = {(row.partition, row.name): row for row in rows["spans"] if row.category == "gpu"}
    slack_ns = max(device["clock_uncertainty_ns"] for device in result.devices) + 2_000  # and the steps of event times
    for kernel in rows["kernels"]:
        span = spans[kernel.partition, kernel.span]
        assert span.start - slack_ns <= kernel.start <= kernel.end <= span.end + slack_ns
    assert {row.name for row in rows["kernels"] if row.span == "ntt_h"} >= {"ntt_rows", "ntt_quotient"}
    assert {row.span for row in rows["kernels"]} == {
        "ntt_h", "h_msm", *(f"batch_add.{q}" for q in ("l", "a", "b_g1", "b_g2")),
        *(f"tail_msm.{q}" for q in ("l", "a", "b_g1")),
    }  # fmt: skip


def test_a_small_card_is_full_where_the_formulas_say():
    result = run_live("phase8", 12, backend="cuda", proofs=1, partitions=2, gpu_workers=2,
                      vram_bytes=12 * GiB + (1 << 29), deadline_s=60)  # fmt: skip
    assert result.outcome == "device_oom" and result.leaks == ()
    assert {failure.kind for failure in result.failures} == {"oom"}
    again = run_live("phase8", 12, backend="cuda", proofs=1, partitions=2, gpu_workers=2, vram_bytes=100 * GiB)
    assert again.outcome == "ok"


def test_no_card_has_more_memory_than_it_has():
    with pytest.raises(BadInput, match=r"the card, .* has .*; give less"):
        run_live("phase9", 12, backend="cuda", proofs=1, partitions=1, gpu_workers=1, vram_bytes=1 << 62)


def test_memory_is_given_back_to_the_card():
    import cupy

    def run():
        run_live("resident", 12, backend="cuda", proofs=1, partitions=3, gpu_workers=2, vram_bytes=100 * GiB)

    run()
    cupy.cuda.Device().synchronize()
    free, _ = cupy.cuda.runtime.memGetInfo()
    for _ in range(3):
        run()
    assert cupy.cuda.runtime.memGetInfo()[0] >= free - (8 << 20)


def test_kernels_lie_on_the_machines_clock():
    import time

    import cupy

    device = CudaDevice(0, 1 << 30)
    try:
        values = cupy.ones((1 << 22, 4), np.uint64)
        for _ in range(3):
            before = time.monotonic_ns()
            work = device.stream("s").run(lambda: cuda.fr_mul(values, values))
            work.wait()
            after = time.monotonic_ns()
            assert before - 50_000 <= work.start_ns <= work.end_ns <= after + 50_000
            (kernel,) = work.kernels
            assert kernel.name == "fr_mul" and work.start_ns <= kernel.start_ns < kernel.end_ns <= work.end_ns
        assert device.clock_uncertainty_ns < 50_000
    finally:
        device.close()


def command(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "cuzklab", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=110
    )
    return done


def test_the_command_line_takes_the_gpu_and_says_so(tmp_path, monkeypatch):
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{__import__('os').environ.get('PYTHONPATH', '')}")
    conditions = ("--workload", "porep-shaped-11", "--partitions", 2, "--vram", "100GiB")
    done = command("run", "phase9", *conditions, "--json", "-o", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "backend cuda" in done.stderr
    answer = json.loads(done.stdout)
    assert (answer["conditions"]["backend"], answer["verified"]) == ("cuda", 1)

    assert command("circuit", "make", "sha256", "-o", tmp_path, cwd=tmp_path).returncode == 0
    made = command("setup", "--r1cs", tmp_path / "circuit.r1cs", "--seed", "1", "-o", tmp_path / "key.zkey",
                   cwd=tmp_path)  # fmt: skip
    assert made.returncode == 0, made.stderr
    proofs = []
    for backend in ("auto", "cuda", "host"):
        out = tmp_path / f"{backend}.json"
        done = command("prove", "--key", tmp_path / "key.zkey", "--witness", tmp_path / "circuit.wtns", "-o", out,
                       "--r", 5, "--s", 7, "--backend", backend, "--json", cwd=tmp_path)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["backend"] == ("host" if backend == "host" else "cuda")
        proofs.append(out.read_bytes())
    assert proofs[0] == proofs[1] == proofs[2]
