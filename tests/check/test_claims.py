"""Claims: what an author says of every state, refuted with a shortest schedule or proved; defects that are claims."""

import re

import pytest

from cuzklab.check import check, explore, render_text
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.policies.claims import Claim
from cuzklab.policies.effects import (
    Acquire,
    ClearFlag,
    Compute,
    DeviceSync,
    Launch,
    Notify,
    Release,
    SetFlag,
    Wait,
)
from cuzklab.policies.model import Flag, Gpu, Partition, Semaphore, program
from cuzklab.units import GiB
from tests.check.programs import FLAG, GPU, LOCKS, PARTITION, SIZES, kinds, plain, steps

MEM, COMPUTE = LOCKS
KERNEL, WORK = Launch(GPU, "stage", PARTITION), Compute("b_g2_msm", PARTITION)
ONE_KERNEL = Claim("never two kernels at once", lambda state: len(state.kernels(GPU)) < 2)


def own_kernel(number):
    return Launch(GPU, "kernel", Partition(number, 0, SIZES))


def _slow_work_under(lock):
    return lambda state: (
        not any(state.holds(actor, lock) and isinstance(effect, Compute) for actor, effect in state.doing().items())
    )


def _stalled(state):
    """Somebody waits for the device while he holds the lock of memory, and a kernel is under way."""
    return any(
        isinstance(effect, DeviceSync) and state.holds(actor, MEM) for actor, effect in state.doing().items()
    ) and bool(state.kernels(GPU))


def _throttled(flags):
    """While somebody is at the G2 MSM, one of the flags is set."""
    return lambda state: (
        not any(effect == WORK for effect in state.doing().values()) or any(state.is_set(flag) for flag in flags)
    )


def throttling(flag):
    return plain(SetFlag(flag), WORK, ClearFlag(flag))


SENT, ROOM = Semaphore("sent"), Semaphore("permits", 2)
OWN_FLAGS = (Flag("throttle of a"), Flag("throttle of b"))
DEFECTS = {
    "two kernels at once": (
        ONE_KERNEL,
        {"a": plain(own_kernel(0)), "b": plain(own_kernel(1))},
        ["Launch", "Launch"],
    ),
    "lock held across slow unrelated work": (
        Claim("no CPU stage under the device's lock", _slow_work_under(COMPUTE)),
        {"a": plain(Acquire(COMPUTE), WORK, Release(COMPUTE))},
        ["Acquire"],
    ),
    "device-wide sync under the wrong lock": (
        Claim("nobody waits for the device under mem", lambda state: not _stalled(state)),
        {
            "a": plain(Acquire(COMPUTE), KERNEL, Release(COMPUTE)),
            "b": plain(Acquire(MEM), DeviceSync(GPU), Release(MEM)),
        },
        ["Acquire", "Acquire", "Launch"],
    ),
    "one flag shared by overlapping users": (
        Claim("no synthesis begins during a G2 MSM", _throttled([FLAG])),
        {"a": throttling(FLAG), "b": throttling(FLAG)},
        ["ClearFlag", "Compute", "SetFlag", "SetFlag"],
    ),
    "permit released before the send": (
        Claim("at most two are synthesised ahead", lambda state: state.permits(SENT) <= 2),
        {"a": plain(*[step for _ in range(3) for step in (Wait(ROOM), Notify(ROOM), Notify(SENT))])},
        ["Notify"] * 6 + ["Wait"] * 3,
    ),
}
REPAIRED = {
    "two kernels at once": {
        "a": plain(Acquire(COMPUTE), own_kernel(0), Release(COMPUTE)),
        "b": plain(Acquire(COMPUTE), own_kernel(1), Release(COMPUTE)),
    },
    "lock held across slow unrelated work": {"a": plain(Acquire(COMPUTE), KERNEL, Release(COMPUTE), WORK)},
    "device-wide sync under the wrong lock": {
        "a": plain(Acquire(COMPUTE), KERNEL, Release(COMPUTE)),
        "b": plain(Acquire(COMPUTE), DeviceSync(GPU), Release(COMPUTE)),
    },
    "one flag shared by overlapping users": {"a": throttling(OWN_FLAGS[0]), "b": throttling(OWN_FLAGS[1])},
    "permit released before the send": {
        "a": plain(*[step for _ in range(3) for step in (Wait(ROOM), Notify(SENT))]),
        "b": plain(*[step for _ in range(3) for step in (Wait(SENT), Notify(ROOM))]),
    },
}
OF_THE_TWIN = {
    "one flag shared by overlapping users": Claim("no synthesis begins during a G2 MSM", _throttled(OWN_FLAGS))
}


def judged(claim, programs, **how):
    return explore({name: (one,) for name, one in programs.items()}, claims=(claim,), **how)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_broken_claim_is_found_with_its_shortest_schedule(name):
    claim, programs, told = DEFECTS[name]
    found = judged(claim, programs)
    (finding,) = found.findings
    assert (finding.kind, finding.shortest, found.complete) == ("claim", True, True)
    assert finding.message.startswith(f"The claim “{claim.text}” does not hold after the last step")
    assert sorted(line.split()[1] for line in steps(finding)) == told
    assert found.outcomes == {"ok"}


@pytest.mark.parametrize("name", DEFECTS)
@pytest.mark.parametrize("reduced", [True, False])
def test_the_claim_holds_in_the_repaired_twin(name, reduced):
    claim = OF_THE_TWIN.get(name, DEFECTS[name][0])
    found = judged(claim, REPAIRED[name], partial_order=reduced, symmetric=reduced)
    assert (found.verdict, found.findings, found.outcomes) == ("safe", (), {"ok"})


@program
def alike(p):
    yield Acquire(MEM)
    yield Release(MEM)
    yield Launch(GPU, "kernel", p)


@pytest.mark.parametrize("last", ["w0", "w1", "w2"])
def test_a_claim_about_one_of_several_equal_workers_is_broken_by_that_one(last):
    programs = {f"w{number}": alike(Partition(number, 0, SIZES)) for number in range(3)}
    claim = Claim("not this one", lambda state: state.holder(MEM) != last)
    for symmetric in (True, False):
        (finding,) = judged(claim, programs, symmetric=symmetric).findings
        assert steps(finding) == [f"{last}: Acquire red"]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("partial_order", [True, False])
def test_reductions_do_not_change_what_is_found(symmetric, partial_order):
    programs = {f"w{number}": alike(Partition(number, 0, SIZES)) for number in range(3)}
    found = judged(ONE_KERNEL, programs, symmetric=symmetric, partial_order=partial_order)
    assert [len(finding.schedule) for finding in found.findings] == [3 + 3]


def test_a_claim_that_fails_at_the_start():
    (finding,) = judged(
        Claim("something is held", lambda state: bool(state.holder(MEM))), {"a": plain(KERNEL)}
    ).findings
    assert (finding.schedule, finding.message) == ((), "The claim “something is held” does not hold at the start.")


def test_everything_that_a_claim_can_see(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        """
from cuzklab.policies.claims import Claim
from cuzklab.policies.model import Flag, Queue, Semaphore
from cuzklab.policies.phase9 import prove_partition

def fine(state):
    (gpu,) = state.gpus
    copied = all(work.writes for work in state.copies(gpu))
    return copied and len(state.kernels(gpu)) < 2 and state.live_bytes(gpu) == sum(
        b.size_bytes for b in state.buffers(gpu)
    ) and state.free_bytes(gpu) >= 0 and not state.reserved_bytes(gpu) and state.kept(gpu.slot("d_a")) is None and (
        not state.queued(Queue("q")) and not state.is_set(Flag("f")) and not state.permits(Semaphore("s"))
    )

claims = (Claim("as expected", fine), Claim("d_bc is never there", lambda state: not any(
    buffer.name == "d_bc" for gpu in state.gpus for buffer in state.buffers(gpu)
)))
"""
    )
    found = check(load(file), workers=2, partitions=1, vram_bytes=16 * GiB)
    (finding,) = found.findings
    assert (finding.kind, finding.sites, finding.shortest) == ("claim", ("d_bc is never there",), True)
    assert finding.effect.startswith("Alloc gpu0 d_bc")
    assert "claim after 8 steps: The claim “d_bc is never there” does not hold" in render_text(found, width=200)


def test_claims_that_make_no_sense():
    with pytest.raises(BadInput, match=re.escape("42 is no claim; write Claim('words', lambda state: ...)")):
        judged(42, {"a": plain(KERNEL)})
    with pytest.raises(BadInput, match="claim 'divides' raised ZeroDivisionError: division by zero"):
        judged(Claim("divides", lambda state: 1 / 0), {"a": plain(KERNEL)})


def test_other_findings_come_beside_broken_claims():
    found = judged(ONE_KERNEL, {"a": plain(own_kernel(0), Acquire(MEM)), "b": plain(own_kernel(1))})
    assert kinds(found) == ["claim", "leak"]
    assert Gpu(0, 10, 0) == GPU
