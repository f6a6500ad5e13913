"""All mutants of a policy, in several processes; resumable, and after Ctrl-C what was judged until then."""

import functools
import hashlib
import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.check.judging import PARTITIONS, WORKERS, Judged, judged, require_safe
from cuzklab.check.mutants import Mutation
from cuzklab.check.mutations import mutations
from cuzklab.check.policy import MARGIN_BYTES
from cuzklab.errors import BadInput
from cuzklab.policies import Policy, load
from cuzklab.policies.model import Gpu
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.sweep import Journal, Task, sweep

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Mutants:
    """What became of a policy's mutants.

    Attributes
    ----------
    judged : tuple of Judged
        In the order of the program.
    total : int
        Mutants that there are; more than were judged after an interruption.
    """

    policy: str
    options: Mapping[str, Any]
    vram_bytes: int
    judged: tuple[Judged, ...]
    total: int

    @property
    def complete(self) -> bool:
        return len(self.judged) == self.total

    @property
    def refused(self) -> list[Judged]:
        return [one for one in self.judged if one.refused]

    @property
    def survivors(self) -> list[Judged]:
        return [one for one in self.judged if one.survived]

    @property
    def undecided(self) -> list[Judged]:
        return [one for one in self.judged if one.undecided]

    @property
    def unexplained(self) -> list[Judged]:
        """Survivors without a reason: the checker may have missed a defect."""
        return [one for one in self.survivors if not one.reason]

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab check --mutations --json` prints it."""
        from collections import Counter

        return {
            "policy": self.policy, "options": dict(self.options), "vram_bytes": self.vram_bytes, "workers": WORKERS,
            "partitions": PARTITIONS, "mutants": self.total, "judged": len(self.judged), "complete": self.complete,
            "refused": len(self.refused), "kinds": dict(Counter(kind for one in self.refused for kind in one.kinds)),
            "survivors": [{"mutation": str(one.mutation), "reason": one.reason} for one in self.survivors],
            "undecided": [{"mutation": str(one.mutation), "why": one.undecided} for one in self.undecided],
        }  # fmt: skip


def mutants(
    policy: str, vram_bytes: int, *, options: Mapping[str, Any] | None = None, processes: int | None = None,
    journal: Path | None = None, progress: Progress = lambda share, words="": None,
) -> Mutants:  # fmt: skip
    """Judge every single mutation of a safe policy.

    Parameters
    ----------
    policy : str
        Name, or path of a Python file.
    vram_bytes : int
        Device memory.
    options : mapping, optional
        Of the policy.
    processes : int, optional
        All cores by default.
    journal : Path, optional
        Keeps the verdicts; those of the same policy and the same checker are not computed again.
    progress : callable (share, words), optional

    Returns
    -------
    Mutants
        After Ctrl-C those that were judged until then.

    Raises
    ------
    BadInput
        The policy is unknown or not safe itself.
    """
    options = dict(options or {})
    design = load(policy, **options)
    require_safe(design, vram_bytes)
    everyone = _mutations(design, vram_bytes)
    salt = _salt(design)
    tasks = [
        Task({"policy": policy, "options": options, "vram_bytes": vram_bytes, "number": number}, str(mutation))
        for number, mutation in enumerate(everyone)
    ]
    with tempfile.TemporaryDirectory(prefix="cuzklab-mutants-") as folder:
        kept = journal or Path(folder) / "journal"
        try:
            for outcome in sweep(
                judge_numbered, tasks, journal=kept, salt=salt, processes=processes, progress=progress
            ):
                if outcome.error:
                    raise BadInput(f"{outcome.task.label}: {outcome.error}")
        except KeyboardInterrupt:
            pass  # what was judged stands in the journal
        answers = Journal(kept).answers
    found = [
        Judged(mutation, tuple(answer["kinds"]), answer["reason"], answer["undecided"])
        for mutation, task in zip(everyone, tasks, strict=True)
        if (answer := answers.get(task.key(salt))) is not None
    ]
    return Mutants(design.name, options, vram_bytes, tuple(found), len(everyone))


def judge_numbered(policy: str, options: Mapping[str, Any], vram_bytes: int, number: int) -> dict[str, Any]:
    """The verdict on one mutant, by its number. In a worker process, which leaves Ctrl-C to the one that asked."""
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    design, everyone = _loaded(policy, tuple(sorted(options.items())), vram_bytes)
    found = judged(design, everyone[number], vram_bytes)
    return {"kinds": found.kinds, "reason": found.reason, "undecided": found.undecided}


@functools.lru_cache(maxsize=1)
def _loaded(policy: str, options: tuple[tuple[str, Any], ...], vram_bytes: int) -> tuple[Policy, list[Mutation]]:
    design = load(policy, **dict(options))
    return design, _mutations(design, vram_bytes)


def _mutations(design: Policy, vram_bytes: int) -> list[Mutation]:
    return mutations(design, Gpu(0, vram_bytes, MARGIN_BYTES), partition_sizes(POREP_32G))


def _salt(design: Policy) -> str:
    """A hash of the policy's source, and of the checker's and of what both are written with."""
    import cuzklab

    package, text = Path(cuzklab.__file__).parent, hashlib.sha256()
    sources = [*package.glob("check/**/*.py"), *package.glob("policies/**/*.py"), package / "stages.py"]
    for source in [*sorted(sources), Path(design.module.__file__)]:
        text.update(source.read_bytes())
    return text.hexdigest()
