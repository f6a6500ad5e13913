"""Nothing reads what has yet to be written: found on some schedule, or shown to be impossible without minding it."""

import importlib
from dataclasses import replace

import pytest

from cuzklab.check import check, explore, worker_programs
from cuzklab.check.dataflow import unordered
from cuzklab.check.endings import Due
from cuzklab.check.model import Model
from cuzklab.check.policy import proofs_due, synthesis_beside_a_call
from cuzklab.check.search import Budget, survey
from cuzklab.policies import from_source, load, names
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.policies.model import Gpu
from cuzklab.stages import FLOW, NO_FLOW, POREP_32G, STAGES, partition_sizes
from cuzklab.units import GiB
from tests.check.data_programs import DATA, system
from tests.check.programs import steps
from tests.check.spin import assert_agreement, in_mib
from tests.cli.command import cuzklab

exploring = importlib.import_module("cuzklab.check.explore")
GPU, SIZES = Gpu(0, 16 * GiB), partition_sizes(POREP_32G)
LAST = Due(DATA[-1:], "w1", 0)


def minded(programs, due=()):
    """The data that a check must mind."""
    model = Model(programs, 16)
    return unordered(model, due, survey(model, Budget(100_000, 60)).symmetry)


# --- programs that hand data on -----------------------------------------------------------------------------------


def causes(exploration):
    assert exploration.complete
    return {(one.kind, one.sites, len(one.schedule)) for one in exploration.findings}, exploration.outcomes


def compare(seeds, monkeypatch):
    """Compare checks that mind what they must with plain ones that mind everything; how many there are of each sort."""
    judged = {"ordered": 0, "early": 0, "minded for nothing": 0}
    for seed in seeds:
        programs = system(seed)
        found = causes(explore(programs, due=(LAST,)))
        with monkeypatch.context() as patch:
            patch.setattr(exploring, "unordered", lambda *of: frozenset(DATA))
            plain = explore(programs, due=(LAST,), partial_order=False, symmetric=False, merge=False)
        assert causes(plain) == found, seed
        early = any(kind == "read_before_write" for kind, *_ in found[0])
        judged["early" if early else "minded for nothing" if minded(programs, (LAST,)) else "ordered"] += 1
    return judged


def test_what_need_not_be_minded_is_never_read_early(monkeypatch):
    judged = compare(range(40), monkeypatch)
    assert min(judged["ordered"], judged["early"]) >= 5


@pytest.mark.slow
def test_what_need_not_be_minded_is_never_read_early_many(monkeypatch):
    judged = compare(range(40, 500), monkeypatch)
    assert min(judged.values()) >= 1  # what only an exact search can tell is among them


def test_spin_finds_the_same_few(tmp_path):
    judged = assert_agreement(tmp_path, {seed: system(seed) for seed in range(12)}, 16)
    endings = [{ending.split(":")[0] for ending in verdict.endings} for verdict in judged]
    assert sum("read_before_write" in kinds for kinds in endings) >= 3 and any("ended" in kinds for kinds in endings)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_spin_finds_the_same_many(tmp_path):
    for first in range(12, 132, 40):
        assert_agreement(tmp_path, {seed: system(seed) for seed in range(first, first + 40)}, 16)


# --- designs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_nothing_need_be_minded_of_a_design_that_is_shipped(name):
    of = {"workers": 2, "partitions": 1, "gpus": (GPU,), "sizes": SIZES}
    assert minded(worker_programs(load(name), **of), proofs_due(**of)) == frozenset()
    plain = worker_programs(load(name), **{**of, "sizes": replace(SIZES, flow=NO_FLOW)})
    assert explore(worker_programs(load(name), **of), shortest=False).states == explore(plain, shortest=False).states


def test_an_engine_makes_what_its_workers_read():
    config = EngineConfig(1, 2, (GPU,), 1, 1, 1, 1)
    programs = {name: (one,) for name, one in engine_programs(load("phase9"), config, SIZES).items()}
    assert minded(programs) == frozenset()
    programs, made = synthesis_beside_a_call(load("phase11"), GPU, SIZES)
    assert minded(programs, made) == frozenset()


CALL = {
    "prep": "prep_thread = yield Fork(prep(p))",
    "lock": "yield Acquire(gpu.lock)",
    "memory": 'd_a, d_bc = (yield Alloc(gpu, "d_a", 4, p)), (yield Alloc(gpu, "d_bc", 8, p))',
    "pin": "yield Pin(p.abc)",
    "upload": 'yield Upload(p.abc, (d_a, d_bc), p.stream(gpu, "upload"), p)',
    "order": 'yield WaitEvent((yield RecordEvent(p.stream(gpu, "upload"))), p.stream(gpu, "compute"))',
    "ntt_h": 'yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))',
    "h_msm": 'yield Launch(gpu, "h_msm", p, uses=(d_a,))',
    "free": "yield Free(d_bc); yield Free(d_a)",
    "unpin": "yield Unpin(p.abc)",
    "barrier": "yield Wait(p.barrier)",
    "sums": "yield from sums(p, gpu)",
    "unlock": "yield Release(gpu.lock)",
    "join": "yield Join(prep_thread)",
    "epilogue": 'yield Compute("epilogue", p)',
}


def design(*lines, more=""):
    head = (
        '"""A design."""\nfrom cuzklab.policies.common import prep, sums\nfrom cuzklab.policies.effects import *\n'
        "from cuzklab.policies.model import program\n\n@program\ndef prove_partition(p, gpu):\n"
    )
    return head + "".join(f"    {line}\n" for line in lines) + more


def without(step):
    return [line for name, line in CALL.items() if name != step]


def swapped(first, second):
    return list({**CALL, first: CALL[second], second: CALL[first]}.values())


SYNTHESIS = "\n@program\ndef synthesise(p):\n    if {condition}:\n        yield Compute('synthesis', p)\n"
WRONG = {
    "h_msm before ntt_h": (
        design(*swapped("ntt_h", "h_msm")), "h_msm of p0.0 reads h, which ntt_h has yet to write",
        "Launch gpu0 h_msm", 10,
    ),
    "no ntt_h": (design(*without("ntt_h")), "reads h, which ntt_h has yet to write", "Launch gpu0 h_msm", 10),
    "no upload": (
        design(*without("upload")), "ntt_h of p0.0 reads a, b, c on the device, which the upload has yet to write",
        "Launch gpu0 ntt_h", 8,
    ),
    "no wait for prep": (
        design(*without("barrier")), "batch_add.l of p0.0 reads bitmaps, which prep_msm has yet to write",
        "Launch gpu0 batch_add.l", 17,
    ),
    "no join": (
        design(*without("join")), "reads b_g2 tail sum, which b_g2_msm has yet to write", "Compute epilogue", 35,
    ),
    "no sums": (design(*without("sums")), "reads sums of ones (l), sums of ones (a), sums of ones (b_g1) and 4 more",
                "Compute epilogue", 23),
    "no epilogue": (
        design(*without("epilogue")), "w0 has ended its work on p0.0, but nothing has written its proof", "", 36,
    ),
    "no synthesis": (
        design(*CALL.values(), more=SYNTHESIS.format(condition="False")),
        "synth0 has ended its work on p1.0, but nothing has written its a, b, c and aux", "", 0,
    ),
    "no synthesis while a flag is set": (
        design(*[CALL["prep"], "yield SetFlag(Flag('busy'))", *without("prep"), "yield ClearFlag(Flag('busy'))"],
               more=SYNTHESIS.format(condition="not (yield ReadFlag(Flag('busy')))")).replace("model import",
                                                                                             "model import Flag,"),
        "nothing has written its a, b, c and aux", "", 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_design_that_reads_too_early_is_told_so(name):
    source, message, effect, length = WRONG[name]
    result = check(from_source("mine", source, "mine.py"), workers=2, partitions=1, vram_bytes=16 * GiB)
    (finding,) = [one for one in result.findings if one.kind == "read_before_write"]
    assert result.findings == (finding,) and result.complete
    assert message in finding.message
    assert (finding.effect, len(finding.schedule), finding.shortest) == (effect, length, True)


def test_the_same_design_in_order_is_safe():
    more = SYNTHESIS.format(condition="True")
    result = check(from_source("mine", design(*CALL.values(), more=more), "mine.py"), workers=2, partitions=2,
                   vram_bytes=16 * GiB)  # fmt: skip
    assert (result.verdict, result.findings) == ("safe", ())


def test_the_schedule_leads_straight_to_the_kernel():
    source = design(*swapped("ntt_h", "h_msm"))
    (finding,) = check(from_source("mine", source, "mine.py"), workers=3, partitions=2, vram_bytes=16 * GiB).findings
    assert steps(finding)[-3:] == [
        "w0: WaitEvent p0.0.upload",
        "w0/copy: Copy gpu0 p0.0.abc",
        "w0: Launch gpu0 h_msm start",
    ]


def test_a_sketch_of_locks_and_memory_is_not_asked_for_a_proof():
    sketch = design("yield Acquire(gpu.lock)", "yield Release(gpu.lock)")
    assert check(from_source("sketch", sketch, "s.py"), workers=2, partitions=1, vram_bytes=GiB).verdict == "safe"


def test_spin_agrees_about_designs(tmp_path):
    sizes = in_mib(SIZES)
    sources = [WRONG[name][0] for name in ("no ntt_h", "no wait for prep")]
    systems = {
        number: worker_programs(
            from_source(f"mine{number}", source.replace(", 4, p", ", 4 << 20, p").replace(", 8, p", ", 8 << 20, p"),
                        f"mine{number}.py"),
            workers=2, partitions=1, gpus=(GPU,), sizes=sizes,
        )
        for number, source in enumerate(sources)
    }  # fmt: skip
    for verdict in assert_agreement(tmp_path, systems, 16):
        assert {ending.split(":")[0] for ending in verdict.endings} >= {"read_before_write"}


def test_the_command_says_so_with_status_1(tmp_path):
    place = tmp_path / "mine.py"
    place.write_text(design(*without("ntt_h")))
    done = cuzklab("check", str(place), "--workers", "1", "--partitions", "1", "--json")
    assert done.status == 1 and '"kind": "read_before_write"' in done.out


# --- the table ------------------------------------------------------------------------------------------------------


def test_every_stage_reads_what_some_stage_writes_or_what_is_given():
    given = {"circuit", "witness inputs", "key", "h query"}
    written = {name for stage in STAGES.values() for name in stage.writes} | {"a, b, c on the device"}
    assert {name for stage in STAGES.values() for name in stage.reads} <= given | written
    assert set(FLOW.reads) == {(one.name, part) for one in STAGES.values() for part in one.parts} | {("upload", "")}
    unread = {name for names_ in FLOW.writes.values() for name in names_} - {n for r in FLOW.reads.values() for n in r}
    assert unread == {"proof"}
    assert len(FLOW.reads["epilogue", ""]) == 9
