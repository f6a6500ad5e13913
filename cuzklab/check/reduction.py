"""Which moves need not be interleaved with those of others.

Partial-order reduction by singleton persistent sets: where the next move *m* of an actor A commutes with everything
that the others can do before A moves again, only *m* is explored. Every schedule σ of the others from that state can
be preceded by *m*: σ stays possible, does the same, and faults at the same effects; and a schedule that contains *m*
can have it moved to its front. Programs are finite, so *m* is put off nowhere for ever. Hence each fault, each state in
which everybody is blocked or about to fault, and each node that an actor can reach is still found. A move that itself
faults is never taken alone, as it would end the search below it. Nor is one that changes something that a claim looks
at: σ and *m* σ then lead to states that the claim cannot tell apart, as do σ with *m* in its place and *m* in front.

That programs are finite is not assumed: where they can go round, an endless σ could be preceded by *m* again and again,
so the reduced search comes to a state twice on one path, and the survey is made anew without any reduction.

*m* is known to commute when each key that it touches

* is touched by nobody else who lives or could be started before A moves (a key that is *private* to A), or
* is touched by everybody only while holding a certain lock, and A holds that lock (a *guarded* key), or
* when its effect only ever gives (`Effect.gives`), and likewise where a forked program ends.

Who touches a key, and under which locks, is not known beforehand. The search assumes what it has seen so far; when a
node turns up that breaks an assumption that was used, it starts again, knowing more. An assumption that is never broken
in the reduced search holds in the whole: in a shortest schedule that breaks it, all moves before the last respect the
assumptions, so by the argument above the reduced search reaches a state in which that last move is the next of its
actor; what it touches is then noted whether or not it can take place.
"""

from collections.abc import Iterable

from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model, StateTooNarrow
from cuzklab.check.moves import Move, State
from cuzklab.check.symmetry import Symmetry
from cuzklab.policies.effects import Join


class AssumptionBroken(Exception):
    """A key that was taken to be private or guarded is not; the search starts again."""


class PartialOrder:
    """What is known about who touches which key under which locks, and what was relied on."""

    def __init__(self, model: Model, symmetry: Symmetry | None = None) -> None:
        self._model, self._symmetry = model, symmetry
        self.users: dict[int, set[int]] = {}
        self.guards: dict[int, frozenset[int]] = {}
        self.relied: set[int] = set()
        self._watched: set[int] = set()
        self._changed_alone: set[int] = set()
        self._noted: set[tuple[int, int, tuple[int, ...]]] = set()

    def restart(self) -> None:
        """Keep what is known, forget what was relied on."""
        self.relied.clear()
        self._changed_alone.clear()

    def note(self, state: State, slot: int) -> None:
        """Take note of what the actor's next effect touches."""
        model = self._model
        table = model.table(state[slot])
        holders = tuple([state[lock] for lock in model.lock_slots])
        signature = (state[slot], len(table.touched), holders)
        if signature in self._noted:
            return
        self._noted.add(signature)
        held, broken = self._held(state, slot), False
        renamings = self._symmetry.all_renamings() if self._symmetry else ()
        for key in table.touched:
            if slot in self.users.get(key, ()) and self.guards[key] <= held:
                continue
            broken |= self._learn(key, slot, held)
            for renaming in renamings:  # what one member does, all do under their own names
                image = frozenset(renaming.slot(lock) for lock in held)
                broken |= self._learn(renaming.slot(key), renaming.slot(slot), image)
        if len(model.names) > len(state):
            raise StateTooNarrow
        if broken:
            raise AssumptionBroken

    def _learn(self, key: int, user: int, held: frozenset[int]) -> bool:
        """Keep that the user touches a key while it holds some locks; whether that breaks what was relied on."""
        self.users.setdefault(key, set()).add(user)
        self.guards[key] = self.guards.get(key, held) & held
        return key in self.relied

    def alone(self, state: State, slot: int, move: Move) -> bool:
        """Whether the move, which is possible and does not fault, need not be interleaved with those of others."""
        touched = self.shared(state, slot, move)
        changed = {changed for changed, _ in move.updates}
        if changed & self._watched:  # somebody may look at any state in between
            return False
        if not self._unshared(state, slot, touched):
            return False
        self.relied.update(touched)
        self._changed_alone |= changed
        return True

    def watch(self, slots: Iterable[int]) -> None:
        """Claims look at these slots: moves that change them are interleaved with everything.

        Raises
        ------
        AssumptionBroken
        """
        self._watched |= set(slots)
        if self._watched & self._changed_alone:
            raise AssumptionBroken

    def shared(self, state: State, slot: int, move: Move) -> frozenset[int]:
        """The keys that a move touches and by which it might fail to commute with those of others."""
        model = self._model
        node = model.node(state, slot)
        touched = model.table(state[slot]).touched
        if (node.effect.gives or isinstance(node.effect, Join)) and not node.begun:
            touched = frozenset()  # what has ended stays so, and to join it changes nothing
        if slot in model.parents and move.following == ENDED:
            # The end of a forked program lets a join go on; a fork finds its name taken before and after.
            touched -= {model.key_slot(("task", node.actor))}
        return touched

    def unseen(self, state: State, slot: int) -> bool:
        """Whether the actor's next move neither affects what others can do before it moves again, nor depends on it.

        Such a move can be put off until just before the actor's next. To be asked after a complete survey.
        """
        starts_another = state[slot] in self._model.forks
        return not starts_another and self._unshared(state, slot, self._model.table(state[slot]).touched)

    def _unshared(self, state: State, slot: int, touched: Iterable[int]) -> bool:
        """Whether each key is for now out of reach of everybody but the actor."""
        for key in touched:
            for user in self.users[key]:
                if user != slot and not self._dormant(state, user, slot):
                    guards = self.guards[key]
                    if not guards or not guards & self._held(state, slot):
                        return False
                    break
        return True

    def _held(self, state: State, slot: int) -> frozenset[int]:
        model = self._model
        actor = model.names[slot]
        return frozenset(lock for lock in model.lock_slots if model.values[lock][state[lock]] == actor)

    def _dormant(self, state: State, user: int, mover: int) -> bool:
        """Whether the user cannot act before the mover moves: it is not running, and only the mover could start it."""
        while state[user] <= ENDED:
            if user not in self._model.parents:
                return True
            user = self._model.parents[user]
            if user == mover:
                return True
        return False
