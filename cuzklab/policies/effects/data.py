"""The data that the stages of a partition hand on: nothing may read what has yet to be written.

Which stage reads and writes what is said by the partition's `sizes.flow`, which comes from the table of stages; so a
stage that an author adds there is minded like the others, and one that stands in no table is not.
"""

from typing import Any

from cuzklab.policies.effect import Effect, ReadBeforeWrite, World
from cuzklab.policies.model import Datum, Partition

UPLOAD = "upload"
_SYNTHESIS = ("synthesis", "")


def reads_of(partition: Partition, stage: str, part: str = "") -> tuple[Datum, ...]:
    """What a step of a partition must find, but for what a synthesised partition has from the start."""
    if (flow := getattr(partition.sizes, "flow", None)) is None:
        return ()
    there = flow.writes.get(_SYNTHESIS, ()) if partition.synthesised else ()
    return tuple(Datum(partition, what) for what in flow.reads.get((stage, part), ()) if what not in there)


def writes_of(partition: Partition, stage: str, part: str = "") -> tuple[Datum, ...]:
    """What a step of a partition leaves."""
    if (flow := getattr(partition.sizes, "flow", None)) is None:
        return ()
    return tuple(Datum(partition, what) for what in flow.writes.get((stage, part), ()))


class StageRun:
    """What the effects share that run a stage of a partition, or one part of it."""

    partition: Partition
    stage: str
    part: str

    @property
    def label(self) -> str:
        return f"{self.stage}.{self.part}" if self.part else self.stage

    @property
    def reads(self) -> tuple[Datum, ...]:
        return reads_of(self.partition, self.stage, self.part)

    @property
    def writes(self) -> tuple[Datum, ...]:
        return writes_of(self.partition, self.stage, self.part)


def refuse_early(world: World, effect: Effect) -> None:
    """Refuse a step that begins before what it reads was written.

    Raises
    ------
    ReadBeforeWrite
    """
    missing = [datum for datum in effect.reads if not world.read(datum)]
    if missing:
        flow = effect.partition.sizes.flow
        writers = dict.fromkeys(_writer(flow, datum.what) for datum in missing)
        what, by = in_words([datum.what for datum in missing]), in_words(list(writers))
        verb = "has" if len(writers) == 1 else "have"
        raise ReadBeforeWrite(f"{_step(effect)} reads {what}, which {by} {verb} yet to write")


def _step(effect: Effect) -> str:
    return f"{getattr(effect, 'label', f'the {UPLOAD}')} of {effect.partition.name}"


def _writer(flow: Any, what: str) -> str:
    stage, part = next(step for step, written in flow.writes.items() if what in written)
    return f"the {UPLOAD}" if stage == UPLOAD else f"{stage}.{part}" if part else stage


def in_words(words: list[str]) -> str:
    """Names one after another; of more than four the first three."""
    shown = words if len(words) <= 4 else words[:3]
    if len(words) > len(shown):
        return f"{', '.join(shown)} and {len(words) - len(shown)} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def written(world: World, effect: Effect) -> None:
    """A step has ended: what it writes is there."""
    for datum in effect.writes:
        world.write(datum, True)
