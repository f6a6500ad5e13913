"""From which amount of device memory on a design is safe, and where it is unsafe again.

Safety is not monotone in memory: with more of it a design may take another path that needs more still. So nothing is
bisected. A check with `Amount`s of memory tells at which amount the first comparison comes out otherwise; up to there
its result holds. The next check is made there, and so on: finitely many checks cover every byte of a range.

Where a design is unsafe one schedule is enough, and it is unsafe wherever that schedule runs the same; following a
known one costs next to nothing, so that comes first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuzklab.check.amounts import Amount, Log
from cuzklab.check.explore import MAX_STATES, SECONDS
from cuzklab.check.findings import Exploration, Finding
from cuzklab.check.policy import MARGIN_BYTES, check, worker_programs
from cuzklab.check.replay import replay
from cuzklab.check.search import LimitReached
from cuzklab.errors import BadInput
from cuzklab.policies import Policy
from cuzklab.policies.model import Gpu, Sizes
from cuzklab.stages import POREP_32G, partition_sizes

INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Interval:
    """Amounts of device memory with one verdict, both ends included.

    Attributes
    ----------
    verdict : {"safe", "unsafe", "unknown"}
    kinds : tuple of str
        Kinds of findings that are certain there; where it is unsafe there may be more.
    message : str
        The first finding in a sentence, at `from_bytes`; or why nothing is known.
    to_bytes : int or None
        None: however much there is.
    """

    from_bytes: int
    to_bytes: int | None
    verdict: str
    kinds: tuple[str, ...] = ()
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "from_bytes": self.from_bytes, "to_bytes": self.to_bytes, "verdict": self.verdict,
            "kinds": list(self.kinds), "message": self.message,
        }  # fmt: skip


@dataclass
class Range:
    """The verdict for every amount of device memory in a range.

    Parameters
    ----------
    policy : Policy
    workers, partitions, devices : int
        As for `check`.
    sizes : Sizes, optional
        Of a partition; those of a 32 GiB PoRep partition if left out.
    step_bytes : int
        With a step only the amounts that lie so far apart are looked at, one by one; 0 covers every byte.
    max_states, seconds
        Of each check.
    keep : callable (intervals, reached_bytes)
        Told what is covered, whenever that is more.
    stop : callable
        Whether to stop; asked now and then.

    Attributes
    ----------
    checks : int
        Whole checks so far.
    """

    policy: Policy
    workers: int
    partitions: int
    devices: int = 1
    sizes: Sizes | None = None
    margin_bytes: int = MARGIN_BYTES
    step_bytes: int = 0
    max_states: int = MAX_STATES
    seconds: float = SECONDS
    checks: int = 0
    keep: Callable[[list[Interval], int], None] = lambda intervals, reached_bytes: None
    stop: Callable[[], bool] = lambda: False
    _known: list[Finding] = field(default_factory=list)

    def cover(self, first_bytes: int, last_bytes: int, grid_bytes: int | None = None) -> list[Interval]:
        """The intervals of a range, in order and without gaps.

        Parameters
        ----------
        first_bytes, last_bytes : int
            Both included. The last interval is open where nothing changes above it.
        grid_bytes : int, optional
            Where the steps are counted from, if not from `first_bytes`.

        Raises
        ------
        BadInput
            The policy computes with the amount in a way that cannot be followed, and there is no step.
        KeyboardInterrupt
            It was to stop.
        """
        grid_bytes = first_bytes if grid_bytes is None else grid_bytes
        found: list[Interval] = []
        vram_bytes = first_bytes
        while vram_bytes <= last_bytes:
            interval, following = self._at(vram_bytes)
            end = last_bytes if following is None else min(following - 1, last_bytes)
            if self.step_bytes:
                following = self._next_step(grid_bytes, vram_bytes, following)
                end = min(vram_bytes if following is None else following - self.step_bytes, last_bytes)
            found.append(_until(interval, None if following is None and not self.step_bytes else end))
            self.keep(joined(found), last_bytes + 1 if following is None else min(following, last_bytes + 1))
            if following is None:
                break
            vram_bytes = following
        return joined(found)

    def _next_step(self, first_bytes: int, vram_bytes: int, following: int | None) -> int:
        """The first amount of the grid that needs a look of its own."""
        if following is None:
            following = 1 << 62
        steps = -(-(following - first_bytes) // self.step_bytes)
        return first_bytes + max(steps, (vram_bytes - first_bytes) // self.step_bytes + 1) * self.step_bytes

    def _at(self, vram_bytes: int) -> tuple[Interval, int | None]:
        """The verdict at an amount, and the amount at which it may change."""
        best: tuple[Interval, int | None] | None = None
        for finding in self._known:
            one = self._followed(finding, vram_bytes)
            if one is not None and (best is None or _later(one[1], best[1])):
                best = one
        return best or self._checked(vram_bytes)

    def _checked(self, vram_bytes: int) -> tuple[Interval, int | None]:
        """A whole check."""
        self.checks += 1
        log = Log(vram_bytes)
        result = check(
            self.policy, workers=self.workers, partitions=self.partitions, devices=self.devices,
            vram_bytes=Amount(vram_bytes, log), margin_bytes=self.margin_bytes, sizes=self.sizes, shortest=False,
            max_states=self.max_states, seconds=self.seconds, progress=self._look_up,
        )  # fmt: skip
        if log.opaque and not self.step_bytes:
            raise BadInput(
                f"{log.opaque}: the policy computes with the amount of device memory in a way that cannot be followed "
                "(other than adding, subtracting, comparing, whole parts); give a step: --sweep vram=FROM:TO:STEP"
            )
        if result.exploration.stopped == INTERRUPTED:
            raise KeyboardInterrupt
        if log.opaque:
            log.thresholds = {vram_bytes + 1}
        if result.verdict == "unknown":
            return Interval(vram_bytes, None, "unknown", (), result.exploration.stopped), log.next_threshold()
        if not result.findings:
            return Interval(vram_bytes, None, "safe"), log.next_threshold()
        kinds = tuple(sorted({finding.kind for finding in result.findings}))
        self._known = [*self._known, *result.findings][-64:]
        following = log.next_threshold()
        for finding in result.findings:
            one = self._followed(finding, vram_bytes)
            if one is not None and _later(one[1], following):
                following = one[1]
        return Interval(vram_bytes, None, "unsafe", kinds, result.findings[0].message), following

    def _look_up(self, states: int, seconds: float) -> None:
        if self.stop():
            raise LimitReached(INTERRUPTED)

    def _followed(self, finding: Finding, vram_bytes: int) -> tuple[Interval, int | None] | None:
        """A known schedule, if it fails at this amount too: then everything between the thresholds on its way does."""
        log = Log(vram_bytes)
        gpus = tuple(Gpu(index, Amount(vram_bytes, log), self.margin_bytes) for index in range(self.devices))
        programs = worker_programs(
            self.policy, workers=self.workers, partitions=self.partitions, gpus=gpus, sizes=self.sizes or _porep()
        )
        try:
            steps = replay(Exploration((), 0, 0.0, True, programs=programs, queue_bound=_QUEUE_BOUND), finding)
        except BadInput:
            return None
        last = steps[-1]
        if last.fault is not None:
            if last.fault.fault.kind != finding.kind:
                return None
        elif not (finding.wait_for and last.pending and set(last.pending) == last.blocked):
            return None  # where somebody can still go on, only a whole check tells what follows
        following = vram_bytes + 1 if log.opaque else log.next_threshold()
        return Interval(vram_bytes, None, "unsafe", (finding.kind,), finding.message), following


_QUEUE_BOUND = 1 << 20


def _porep() -> Sizes:
    return partition_sizes(POREP_32G)


def _later(one: int | None, other: int | None) -> bool:
    return other is not None and (one is None or one > other)


def _until(interval: Interval, to_bytes: int | None) -> Interval:
    return Interval(interval.from_bytes, to_bytes, interval.verdict, interval.kinds, interval.message)


def joined(intervals: list[Interval]) -> list[Interval]:
    """Neighbours with one verdict as one; of unsafe ones the kinds are put together and the first message stays."""
    found: list[Interval] = []
    for interval in intervals:
        if found and found[-1].verdict == interval.verdict:
            before = found.pop()
            kinds = tuple(sorted({*before.kinds, *interval.kinds}))
            interval = Interval(before.from_bytes, interval.to_bytes, before.verdict, kinds, before.message)
        found.append(interval)
    return found
