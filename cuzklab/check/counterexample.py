"""Checks as runs: a counterexample in the same tables as a live run or a simulation, in steps instead of nanoseconds.

Step k lasts from time k to k + 1. A request begins when its actor comes to it. What waits at the end waits until the
end of the last step.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuzklab.check.findings import CheckResult, Finding
from cuzklab.check.replay import Replayed, replay
from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Compute,
    Copy,
    Effect,
    Launch,
    OutOfDeviceMemory,
    Upload,
    live_buffers,
    live_bytes,
)
from cuzklab.policies.model import Gpu, Lock
from cuzklab.trace import (
    TABLES,
    Counter,
    Kernel,
    LockUse,
    Recorder,
    Run,
    RunInfo,
    Span,
    Transfer,
    VramEvent,
    WaitInterval,
    write_run,
)
from cuzklab.units import format_size, sizes_in_words

_OUTCOMES = {
    "oom": "device_oom", "capacity_deadlock": "deadlock", "lock_order_deadlock": "deadlock", "lost_wakeup": "deadlock",
    "request_above_capacity": "deadlock",
}  # fmt: skip


def outcome_of(finding: Finding) -> str:
    """The outcome of a run that ends as the finding says."""
    return "deadlock" if finding.wait_for else _OUTCOMES.get(finding.kind, "fault")


def counterexample_run(
    result: CheckResult, finding: Finding, place: Path, inputs: Mapping[str, str] | None = None
) -> Run:
    """Write a finding's schedule as a run.

    Parameters
    ----------
    result : CheckResult
    finding : Finding
        One of the result's.
    place : Path
        The directory to make.
    inputs : mapping of str to str, optional
        Hashes of what the check depends on.
    """
    recorder = Recorder(clock=lambda: 0)
    _Rows(recorder).record(replay(result.exploration, finding))
    conditions = _conditions(result) | {
        "finding": finding.kind, "steps": len(finding.schedule), "shortest": finding.shortest, "where": finding.where,
    }  # fmt: skip
    title = f"{_title(result)}: {finding.kind.replace('_', ' ')}"
    info = RunInfo(
        "counterexample", title, outcome_of(finding), finding.message, result.policy, conditions, _devices(result),
        inputs=dict(inputs or {}), time_unit="step",
    )  # fmt: skip
    return write_run(place, info, recorder)


def check_run(result: CheckResult, place: Path, inputs: Mapping[str, str] | None = None) -> Run:
    """Write a check without findings as a run without rows; its conditions say what was covered.

    Raises
    ------
    BadInput
        The check has findings, so it is no run that ended well.
    """
    if result.findings:
        raise BadInput("a check with findings is stored as its counterexamples")
    note = "every interleaving was covered" if result.complete else f"incomplete: {result.exploration.stopped}"
    info = RunInfo(
        "check", _title(result), "ok", "" if result.complete else f"not every interleaving was covered: {note}",
        result.policy, _conditions(result), _devices(result), inputs=dict(inputs or {}), notes=(note,),
        time_unit="step",
    )  # fmt: skip
    return write_run(place, info, Recorder(clock=lambda: 0), not_captured=tuple(TABLES))


def _title(result: CheckResult) -> str:
    of = result.conditions
    return (
        f"check of {result.policy}, {of['workers']} workers × {of['partitions']} partitions on "
        f"{format_size(of['vram_bytes'])}"
    )


def _conditions(result: CheckResult) -> dict[str, Any]:
    return dict(result.conditions) | {
        "gw": result.conditions["workers"], "states": result.states, "seconds": round(result.seconds, 3),
        "complete": result.complete,
    }  # fmt: skip


def _devices(result: CheckResult) -> tuple[Mapping[str, Any], ...]:
    of = result.conditions
    return tuple(
        {
            "index": index, "name": f"gpu{index}", "vram_limit_bytes": of["vram_bytes"],
            "margin_bytes": of["margin_bytes"],
        }
        for index in range(of["devices"])
    )  # fmt: skip


class _Rows:
    """Turns steps into rows."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._partitions: dict[str, tuple[str, int]] = {}  # of an actor: name of its partition, number of its proof
        self._came: dict[str, tuple[int, str]] = {}  # when an actor came to its next effect, and who held it up then
        self._blocked: dict[str, tuple[int, str, str]] = {}  # since when an actor is blocked, by whom, kind of wait
        self._held: dict[tuple[str, Lock], LockUse] = {}
        self._launches: dict[str, int] = {}
        self._queued: dict[Upload, int] = {}  # when an upload was queued whose copy is under way

    def record(self, steps: list[Replayed]) -> None:
        for step in steps:
            if step.partition is not None:
                self._partitions[step.actor] = (step.partition.name, step.partition.proof)
            self._end_wait(step)
            self._spans(step)
            self._memory(step)
            self._locks(step)
            self._counters(step)
            self._look_around(step)
        if steps:
            self._finish(steps[-1])

    def _who(self, actor: str) -> tuple[str, str]:
        return actor.partition("/")[0], self._partitions.get(actor, ("", -1))[0]

    # --- spans, kernels, transfers ---

    def _spans(self, step: Replayed) -> None:
        start = self._launches.pop(step.actor, step.step)
        if step.phase == "start" and not step.fault:
            self._launches[step.actor] = step.step
            return
        self._span(step.actor, step.effect, start, step.step + 1)
        if isinstance(step.effect, Upload) and step.effect.asynchronous(step.before):
            self._queued[step.effect] = step.step  # the copy itself ends by a step of its own
        elif isinstance(step.effect, Upload):
            self._transfer(step, step.effect, start, pinned=False)
        elif isinstance(step.effect, Copy):
            self._transfer(step, step.effect.upload, self._queued.get(step.effect.upload, start), pinned=True)

    def _transfer(self, step: Replayed, upload: Upload, start: int, pinned: bool) -> None:
        worker, partition = self._who(step.actor)
        self._recorder.add(
            Transfer(
                start, step.step + 1, start, upload.source.size_bytes, "h2d", pinned, upload.stream.name,
                upload.stream.gpu.index, worker, upload.partition.name or partition,
            )
        )  # fmt: skip

    def _span(self, actor: str, effect: Effect, start: int, end: int) -> None:
        worker, partition = self._who(actor)
        proof = self._partitions.get(actor, ("", -1))[1]
        gpu = _gpu_of(effect)
        name = effect.label if isinstance(effect, Compute | Launch) else sizes_in_words(str(effect))
        self._recorder.add(
            Span(start, end, name, _category(effect), 0, actor, worker, proof, partition, gpu.index if gpu else -1)
        )
        if isinstance(effect, Launch):
            self._recorder.add(
                Kernel(start, end, name, effect.stream.name, effect.gpu.index, start, name, worker, partition)
            )

    # --- locks, memory, queues ---

    def _locks(self, step: Replayed) -> None:
        lock = getattr(step.effect, "lock", None)
        if not isinstance(lock, Lock) or step.fault:
            return
        if step.after.read(lock) == step.actor:
            requested, holder = self._came.get(step.actor, (1, ""))
            use = self._use(step.actor, lock, requested, step.step, holder)
            self._held[step.actor, lock] = use
        elif (step.actor, lock) in self._held:
            self._held.pop((step.actor, lock)).released = step.step + 1

    def _use(self, actor: str, lock: Lock, requested: int, acquired: int | None, holder: str) -> LockUse:
        worker, partition = self._who(actor)
        use = LockUse(lock.name, requested, acquired, None, actor, worker, partition, holder)
        self._recorder.add(use)
        return use

    def _memory(self, step: Replayed) -> None:
        fault = step.fault.fault if step.fault else None
        gpu = _gpu_of(step.effect)
        if gpu is None:
            return
        before, after = live_buffers(step.before, gpu), live_buffers(step.after, gpu)
        for op, some, others in (("free", before, after), ("alloc", after, before)):
            for buffer in some:
                if buffer not in others:
                    self._vram(step, op, gpu, buffer.name, buffer.size_bytes, buffer.partition)
        promised = [sum(size for _, size in view.read(("reserved", gpu)) or ()) for view in (step.before, step.after)]
        if promised[0] != promised[1]:
            op = "reserve" if promised[1] > promised[0] else "unreserve"
            self._vram(step, op, gpu, "reservation", abs(promised[1] - promised[0]), "", promised[1])
        if isinstance(fault, OutOfDeviceMemory):
            self._vram(step, "fail", gpu, fault.name, fault.size_bytes, self._who(step.actor)[1])

    def _vram(
        self,
        step: Replayed,
        op: str,
        gpu: Gpu,
        name: str,
        size_bytes: int,
        partition: str,
        sum_bytes: int | None = None,
    ) -> None:
        worker, own = self._who(step.actor)
        held = ", ".join(lock.name for actor, lock in self._held if actor == step.actor)
        live = live_bytes(step.after, gpu) if sum_bytes is None else sum_bytes
        self._recorder.add(
            VramEvent(
                step.step, op, name, size_bytes, gpu.index, live, gpu.vram_bytes, worker, partition or own, held
            )
        )  # fmt: skip

    def _counters(self, step: Replayed) -> None:
        queue = getattr(step.effect, "queue", None)
        if queue is not None and not step.fault:
            self._recorder.add(Counter(step.step, f"queue {queue.name}", len(step.after.read(queue) or ())))

    # --- waits ---

    def _end_wait(self, step: Replayed) -> None:
        if step.actor in self._blocked and step.phase != "end":
            since, holder, kind = self._blocked.pop(step.actor)
            self._wait(step.actor, step.effect, kind, since, step.step, holder)

    def _look_around(self, step: Replayed) -> None:
        """Note who has come to a new effect, and who is blocked from now on."""
        for actor, effect in step.pending.items():
            holder = ", ".join(name for name in effect.blockers(step.after) if name) if effect.wait_kind else ""
            if actor == step.actor or actor not in self._came:
                self._came[actor] = (step.step + 1, holder)
            if actor in step.blocked:
                self._blocked.setdefault(actor, (step.step + 1, holder, effect.kind_of_wait(step.after)))

    def _finish(self, last: Replayed) -> None:
        """The rows of what is under way and of who waits when the schedule ends."""
        end = last.step + 1
        for actor, start in self._launches.items():
            self._span(actor, last.pending[actor], start, end)
        for actor in sorted(last.blocked):
            effect = last.pending[actor]
            since, holder, kind = self._blocked[actor]
            self._wait(actor, effect, kind, min(since, last.step), end, holder)
            if isinstance(getattr(effect, "lock", None), Lock):
                self._use(actor, effect.lock, min(since, last.step), None, holder)

    def _wait(self, actor: str, effect: Effect, kind: str, since: int, until: int, holder: str) -> None:
        worker, partition = self._who(actor)
        self._recorder.add(WaitInterval(since, until, kind, effect.on, holder, worker, partition))


def _gpu_of(effect: Effect) -> Gpu | None:
    """The device whose memory or work the effect is about."""
    for holder in (effect, getattr(effect, "buffer", None), getattr(effect, "stream", None)):
        gpu = getattr(holder, "gpu", None)
        if isinstance(gpu, Gpu):
            return gpu
    return None


def _category(effect: Effect) -> str:
    match effect:
        case Compute():
            return "cpu"
        case Launch():
            return "gpu"
        case Upload() | Copy():
            return "transfer"
    return "memory" if effect.lasts else "sync"
