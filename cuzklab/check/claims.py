"""Judging claims in states, each time anew only where something that the claim looks at is new.

A claim must see the names as they are, while the survey may visit one of several states that differ only in who is who.
So it is judged in such a state under all names at once: it is broken if it is under any of them.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from cuzklab.check.model import Model, StateTooNarrow
from cuzklab.check.moves import State
from cuzklab.check.symmetry import Symmetry
from cuzklab.errors import BadInput
from cuzklab.policies.claims import Claim, ClaimState
from cuzklab.policies.effects import Effect
from cuzklab.policies.model import Flag, Gpu


class Watched:
    """A claim with the verdicts known so far, by the values of the slots that it read."""

    def __init__(self, model: Model, claim: Claim) -> None:
        self.claim, self._model = claim, model
        self.reads: tuple[int, ...] = ()
        self._select: Any = lambda state: ()
        self._verdicts: dict[Any, bool] = {}
        self._gpus = tuple(
            dict.fromkeys(
                argument
                for programs in model.programs.values()
                for program in programs
                for argument in program.arguments
                if isinstance(argument, Gpu)
            )
        )

    def broken(self, state: State, symmetry: Symmetry | None = None) -> bool:
        """Whether the claim does not hold in a state, or, with a symmetry, in what it is under other names."""
        verdict = self._verdicts.get(self._select(state))
        if verdict is None:
            renamings = symmetry.all_renamings() if symmetry else ()
            judged = [self._judge(one) for one in (state, *(renaming.state(state) for renaming in renamings))]
            reads = set().union(*(reads for reads, _ in judged))
            for renaming in renamings:
                reads |= {renaming.slot(slot) for slot in tuple(reads)}
            if len(self._model.names) > len(state):
                raise StateTooNarrow
            if not reads <= set(self.reads):
                self.reads = tuple(sorted({*self.reads, *reads}))
                self._select = itemgetter(*self.reads)
                self._verdicts.clear()
            verdict = any(broken for _, broken in judged)
            self._verdicts[self._select(state)] = verdict
        return verdict

    def _judge(self, state: State) -> tuple[set[int], bool]:
        model, view = self._model, self._model.view(state)

        def doing() -> dict[str, Effect]:
            view.reads.update(model.actor_slots)
            return {model.names[slot]: model.node(state, slot).effect for slot in model.living(state)}

        try:
            held = self.claim.holds(ClaimState(view, self._gpus, doing))
        except Exception as error:
            raise BadInput(f"claim {self.claim.text!r} raised {type(error).__name__}: {error}") from error
        if len(model.names) > len(state):
            raise StateTooNarrow
        model.watch_flags(slot for slot in view.reads if isinstance(model.names[slot], Flag))
        return view.reads, not held


def watched(model: Model, claims: Sequence[Claim]) -> list[Watched]:
    for claim in claims:
        if not isinstance(claim, Claim):
            raise BadInput(f"{claim!r} is no claim; write Claim('words', lambda state: ...)")
    return [Watched(model, claim) for claim in claims]
