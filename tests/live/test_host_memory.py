"""Host memory: what there is, what a run needs, that it is refused before anything is made, and that it comes back."""

import gc
import json
import math
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from cuzklab import policies
from cuzklab.backends.cuda.memory import HostPool
from cuzklab.errors import BadInput
from cuzklab.live import circuit as circuits
from cuzklab.live import engine, run_live
from cuzklab.live.circuit import circuit_with_test_key
from cuzklab.live.footprint import Batch, Engine, check_fits, host_footprint, most_under_way
from cuzklab.live.machine_memory import Room, host_room
from cuzklab.live.stages import Groth16
from cuzklab.units import GiB, MiB
from tests.cli.command import cuzklab
from tests.cuda_live import software_cupy

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"proofs": 1, "partitions": 1, "gpu_workers": 1, "vram_bytes": 512 * GiB}
"""Scratch memory of an MSM does not shrink with the circuit, so a card in proportion would not do."""


# --- what there is ---------------------------------------------------------------------------------------------------


def machine(root, total_gib=32, available_gib=30, blocks=None, groups="", **files):
    """A file system of a machine; `blocks` of memory of 1 GiB, the last of which is offline."""
    contents = {
        "proc/meminfo": f"MemTotal: {total_gib << 20} kB\nMemFree: 1 kB\nMemAvailable: {available_gib << 20} kB\n",
        "proc/self/cgroup": groups,
    } | {name.replace("__", "/"): text for name, text in files.items()}
    if blocks is not None:
        contents["sys/devices/system/memory/block_size_bytes"] = "40000000\n"
        states = ["online"] * (blocks - 1) + ["offline"]
        contents |= {f"sys/devices/system/memory/memory{i}/state": f"{state}\n" for i, state in enumerate(states)}
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_without_bounds_that_are_hard_it_is_what_the_kernel_calls_available(tmp_path):
    room = host_room(machine(tmp_path))
    assert room == Room(30 * GiB, "the machine has 32.0 GiB, of which 2.00 GiB are in use", hard=False)


def test_memory_that_is_there_but_not_yet_initialised_counts(tmp_path):
    """MemTotal reads 32 GiB, but 128 blocks of 1 GiB are online; a 64th describes the pages."""
    room = host_room(machine(tmp_path, blocks=129))
    assert room == Room(124 * GiB, "the machine has 126 GiB, of which 2.00 GiB are in use", hard=True)


def test_blocks_never_make_it_less_than_the_kernel_says(tmp_path):
    assert host_room(machine(tmp_path, blocks=9)).free_bytes == 30 * GiB


STAT = "anon 7\ninactive_file {}\ntotal_inactive_file {}\n".format


@pytest.mark.parametrize(
    ("groups", "files", "free_gib"),
    [
        ("0::/job/step\n", {"job/step/memory.max": 20, "job/memory.max": 12}, 11),  # an outer group is tighter
        ("0::/job/step\n", {"job/step/memory.max": 8, "job/memory.max": 12}, 7),
        ("0::/job/step\n", {"job/step/memory.max": None, "job/memory.max": None}, 30),
        ("0::/\n", {"memory.max": 16}, 15),
        ("0::/not/seen/from/here\n", {"memory.max": 16}, 15),  # a container sees its own group as the root
        ("0::/../../elsewhere\n", {"memory.max": 16}, 15),
    ],
)
def test_limits_of_control_groups_count_up_to_the_outermost(tmp_path, groups, files, free_gib):
    contents = {}
    for name, limit_gib in files.items():
        folder = f"sys/fs/cgroup/{name.rpartition('/')[0]}".rstrip("/")
        contents |= {
            f"sys/fs/cgroup/{name}": "max\n" if limit_gib is None else f"{limit_gib * GiB}\n",
            f"{folder}/memory.current": f"{3 * GiB}\n", f"{folder}/memory.stat": STAT(2 * GiB, 0),
        }  # fmt: skip
    room = host_room(machine(tmp_path, blocks=33, groups=groups, **contents))
    assert room.free_bytes == free_gib * GiB and room.hard


def test_limits_of_the_older_control_groups_count(tmp_path):
    folder = "sys/fs/cgroup/memory/job/"
    files = {
        folder + "memory.limit_in_bytes": f"{10 * GiB}", folder + "memory.usage_in_bytes": f"{4 * GiB}",
        folder + "memory.stat": STAT(0, GiB), "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "0", "sys/fs/cgroup/memory/memory.stat": "",
    }  # fmt: skip
    groups = "9:name=systemd:/\n4:memory:/job\n0::/\n"
    room = host_room(machine(tmp_path, groups=groups, **files))
    assert room == Room(7 * GiB, "the control group's limit is 10.0 GiB, of which 3.00 GiB are in use", hard=True)


def test_a_group_that_is_full_has_no_room(tmp_path):
    files = {"sys/fs/cgroup/memory.max": "5", "sys/fs/cgroup/memory.current": "9", "sys/fs/cgroup/memory.stat": ""}
    assert host_room(machine(tmp_path, groups="0::/\n", **files)).free_bytes == 0


def test_where_nothing_tells_nothing_is_refused(tmp_path):
    assert host_room(tmp_path) == Room(math.inf, "nothing that tells", hard=False)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: much\n")
    assert host_room(tmp_path).free_bytes == math.inf


# --- what a run needs ------------------------------------------------------------------------------------------------


def test_a_partition_of_full_size_by_its_arrays():
    """The key's 44.12 GiB, a, b and c's 11.65, the witness's 3.88: as they were measured on the GPU."""
    parts = host_footprint([Batch(27, 1, made_on_gpu=True)], Engine(1, 1, 16, None))
    assert {name: round(parts[name] / GiB, 2) for name in ("key", "a, b, c", "witnesses")} == {
        "key": 44.12, "a, b, c": 11.65, "witnesses": 3.88,
    }  # fmt: skip
    # 93.5 GiB were resident at the measured run's peak, with lists of the queries' wires (1.21 GiB) and copies of L's
    # scalars (4.36 GiB), of which there are none any more, and copying buffers that nobody gave back.
    assert 93.5 - 1.21 - 4.36 - 5 < sum(parts.values()) / GiB < 93.5 - 1.21 - 4.36


def test_a_circuit_that_is_remembered_is_not_made_again():
    engine = Engine(1, 1, 16, None)
    new, old = (host_footprint([Batch(27, 2, True, known)], engine) for known in (False, True))
    assert {name for name in new if new[name] != old[name]} == {"key", "circuit"}
    assert old["key"] == old["circuit"] == 0


def test_more_of_everything_takes_more():
    def total(partitions=2, under_way=2, calls=2, others=()):
        batches = [Batch(20, partitions, made_on_gpu=True), *others]
        return sum(host_footprint(batches, Engine(under_way, calls, 2, None)).values())

    least = total()
    other = Batch(15, 3)
    assert all(
        total(**more) > least for more in ({"partitions": 3}, {"under_way": 3}, {"calls": 3}, {"others": (other,)})
    )


def test_partitions_under_way_are_those_of_workers_and_queues():
    phase9, phase12 = policies.load("phase9"), policies.load("phase12")
    assert most_under_way(phase9, 100, workers=2, synthesis_workers=3, lookahead=4) == 9
    assert most_under_way(phase9, 5, workers=2, synthesis_workers=3, lookahead=4) == 5
    # Its queue has a place for each synthesis worker at least, and a finaliser ends what a call began.
    assert most_under_way(phase12, 100, workers=2, synthesis_workers=3, lookahead=1) == 3 + 3 + 4


def test_a_run_that_fits_is_not_spoken_of():
    batches, engine = [Batch(27, 1, True)], Engine(1, 1, 16, None)
    needed = sum(host_footprint(batches, engine).values())
    assert check_fits(batches, engine, Room(needed, "", hard=True)) is None
    with pytest.raises(BadInput):
        check_fits(batches, engine, Room(needed - 1, "", hard=True))


def test_two_proofs_of_full_size_are_refused_on_128_gib():
    batches, engine = [Batch(27, 4, made_on_gpu=True)], Engine(4, 2, 16, None)
    room = Room(124 * GiB, "the machine has 126 GiB, of which 2.00 GiB are in use", hard=True)
    with pytest.raises(BadInput) as refused:
        check_fits(batches, engine, room)
    assert str(refused.value) == (
        "host memory: the run needs about 136 GiB (a, b, c 46.6 GiB, key 44.1 GiB, witnesses 15.5 GiB, …), but the "
        "machine has 126 GiB, of which 2.00 GiB are in use: give fewer proofs (-c), --partitions, proofs in flight "
        "(-j) or --workers; one partition with one worker takes 84.6 GiB; if there is more, say how much with "
        "--host-memory"
    )
    # A machine that may have more than it shows is not refused, but warned of.
    warning = check_fits(batches, engine, Room(31 * GiB, "the machine has 31.0 GiB", hard=False))
    assert "as far as it shows" in warning and "take a smaller circuit" in warning and "\n" not in warning


# --- against what is really resident ---------------------------------------------------------------------------------

SCRIPT = """
import gc, json, pathlib, sys
from cuzklab import policies
from cuzklab.live import circuit, run_live
from cuzklab.live.footprint import Batch, Engine, host_footprint, most_under_way

folder, log2_domain, proofs, partitions, workers = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])

def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) << 10

run_live("phase9", 8, proofs=1, partitions=1, gpu_workers=1)  # what any run needs: libraries and their tables
circuit.cache_folder = lambda: folder  # the key is made
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
result = run_live("phase9", log2_domain, proofs=proofs, partitions=partitions, gpu_workers=workers, threads=2)
under_way = most_under_way(policies.load("phase9"), proofs * partitions, workers, 1, 1)
engine = Engine(under_way, workers, 2, result.conditions["vram_bytes"])
parts = host_footprint([Batch(log2_domain, proofs * partitions)], engine)
print(json.dumps({"outcome": result.outcome, "peak": status("VmHWM") - before, "estimate": sum(parts.values())}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("conditions", [(15, 1, 1, 1), (17, 1, 1, 1), (16, 2, 2, 2)])
def test_the_estimate_is_what_becomes_resident_and_at_most_a_fourth_more(tmp_path, conditions):
    """Less would let a run begin that is killed; much more would refuse one that fits."""
    arguments = map(str, (tmp_path, *conditions))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120, check=True
    )
    found = json.loads(done.stdout)
    print(found)
    assert found["outcome"] == "ok"
    assert found["peak"] <= found["estimate"] <= 1.25 * found["peak"]


# --- refused before anything is made ---------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_made(monkeypatch):
    def made(*what):
        raise AssertionError("a circuit is made")

    monkeypatch.setattr(circuits, "porep_circuit", made)
    monkeypatch.setattr(circuits, "coded_porep_circuit", made)


def test_the_command_refuses_in_one_line(nothing_is_made, tmp_path):
    command = ["run", "phase9", "--backend", "host", "--workload", "porep-shaped-20", "--host-memory", "500MiB"]
    done = cuzklab(*command, "-o", str(tmp_path / "run"))
    assert (done.status, done.out) == (2, "") and not (tmp_path / "run").exists()
    assert done.err.startswith("cuzklab: host memory: the run needs about ") and done.err.count("\n") == 1
    assert "but 500 MiB were given" in done.err


def test_what_the_machine_has_left_counts_unless_more_is_given(nothing_is_made, monkeypatch):
    conditions = {"proofs": 1, "partitions": 1, "gpu_workers": 1, "seed": 77}
    monkeypatch.setattr("cuzklab.live.place.host_room", lambda: Room(300 * MiB, "the machine is small", hard=True))
    with pytest.raises(BadInput, match=r"but the machine is small: take a smaller circuit; .* --host-memory"):
        run_live("phase9", 18, **conditions)
    with pytest.raises(AssertionError, match="a circuit is made"):
        run_live("phase9", 18, host_memory_bytes=8 * GiB, **conditions)


def test_a_warning_is_told_before_and_kept_with_the_run(monkeypatch):
    monkeypatch.setattr("cuzklab.live.place.host_room", lambda: Room(1, "the machine shows little", hard=False))
    told = []
    result = run_live("phase9", 8, **SMALL, preparing=lambda words, share: told.append(words))
    assert result.outcome == "ok"
    assert len(told) == 1 and told[0] in result.notes and "the machine shows little" in told[0]


# --- and given back --------------------------------------------------------------------------------------------------


def test_a_runs_witnesses_are_gone_with_it(monkeypatch):
    """Without the help of the garbage collector, which comes when it likes."""
    monkeypatch.setattr(circuits, "_MOST_WITNESS_BYTES", 0)
    seen = []

    class Watched(Groth16):
        def job(self, partition):
            job = super().job(partition)
            seen.append(weakref.ref(job.witness))
            return job

    monkeypatch.setattr(engine, "Groth16", Watched)
    gc.collect()
    gc.disable()
    try:
        assert run_live("phase9", 8, **SMALL | {"partitions": 2}).outcome == "ok"
        assert seen and not any(witness() is not None for witness in seen)
    finally:
        gc.enable()


def test_a_closed_pool_of_pages_keeps_none(monkeypatch):
    """What a device's runs had page-locked goes with its last array, not with the device."""
    monkeypatch.setattr(software_cupy.runtime, "locked", {})
    pool = HostPool(software_cupy.runtime)
    used, free = pool.array(100, 4, pinned=True), pool.array(50, 4)
    pages = [weakref.ref(one) for one in pool._pages.values()]
    del free
    pool.close()
    assert not software_cupy.runtime.locked
    used[...] = 7
    assert [one() is not None for one in pages] == [True, False]
    assert (used == 7).all()
    pool.close()


def test_a_circuit_of_another_seed_is_made_again_and_four_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(circuits, "_made", type(circuits._made)())
    made = [circuit_with_test_key(8, seed) for seed in (1, 2, 3, 4)]
    assert circuit_with_test_key(8, 1) is made[0]
    circuit_with_test_key(8, 5)
    assert [circuits.is_remembered(8, seed) for seed in (1, 2, 3, 4, 5)] == [True, False, True, True, True]


def test_what_a_closed_pool_has_unlocked_may_be_unpinned_again(monkeypatch):
    """As by whoever still holds a buffer when a run that was stopped has given its device up."""
    monkeypatch.setattr(software_cupy.runtime, "locked", {})
    pool = HostPool(software_cupy.runtime)
    own, foreign = pool.array(1 << 10), np.zeros(1 << 12, np.uint64)
    pool.pin([own, foreign])
    pool.close()
    assert not software_cupy.runtime.locked
    pool.unpin([own, foreign])
    pool.pin([own])
    pool.unpin([own])
    assert not software_cupy.runtime.locked
