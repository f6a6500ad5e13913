"""What a log tells of each GPU call: the times of its events, and the durations that were found to be its own.

Within a call the prep thread runs beside the worker, and the GPU thread inside the lock. The lines say how long each
step took; where it lies follows from the protocol:

* the worker asks for the lock `pre_lock_cpu` after the call's start, has it `mutex_wait` later, and releases it
  `mutex_held` after that;
* the prep thread begins when the split vectors are there; b_g2_msm follows prep_msm on it;
* the GPU thread ends with the release: tail_msm last, before it batch_add, before it the wait for the barrier; it began
  `gpu_total` before that, with ntt_msm_h.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

# A shorter wait may be none: the barrier was open, and the numbers are rounded.
_WAITED_NS = 10_000_000
# Steps of the GPU thread, in the order in which their lines appear.
GPU_STEPS = ("ntt_h", "ntt_msm_h", "barrier_wait", "batch_add", "tail_msm")


@dataclass(slots=True, eq=False)
class Call:
    """One GPU call; −1 stands for a time that the log does not have.

    Attributes
    ----------
    lines : dict
        Kind of a line without a partition → its numbers.
    words : dict
        Kind → its word.
    doubtful, contested : set of str
        Kinds whose line may belong to another call; kinds of which another call got, in doubt, a line that may be
        this one's.
    """

    worker: int
    job: str
    partition: int
    pickup_ns: int = -1
    start_ns: int = -1
    end_ns: int = -1
    took_ns: int = -1
    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    contested: set[str] = field(default_factory=set)

    @property
    def begins_ns(self) -> int:
        """When it began, as far as the log tells."""
        if self.start_ns >= 0:
            return self.start_ns
        if self.pickup_ns >= 0:
            return self.pickup_ns
        return max(self.end_ns - max(self.took_ns, 0), 0)

    def number(self, kind: str, name: str = "") -> int | None:
        """A number of a line: the one that it is named after by default; None without such a line."""
        return self.lines[kind].get(name or kind) if kind in self.lines else None

    @property
    def barrier_ends_ns(self) -> int | None:
        """When the GPU thread had waited for the prep thread; None where it did not wait, or the log does not tell."""
        steps = {name: end for name, _, end in self.gpu_steps()}
        waited = self.number("barrier_wait") or 0
        whole = {"tail_msm", "batch_add", "barrier_wait"} <= set(steps) and "mutex_held" in self.lines
        return steps["barrier_wait"] if whole and waited > _WAITED_NS else None

    @property
    def known_until_ns(self) -> int | None:
        """The end of the last step that the log tells of; None without any."""
        ends = [self.released_ns, *(end for _, _, end in self.gpu_steps())]
        prep = self.number("prep_msm")
        if prep is not None:
            ends.append(self.split_ends_ns + prep + (self.number("b_g2_msm") or 0))
        return max((end for end in ends if end is not None), default=None)

    @property
    def device(self) -> int:
        """The device that the GPU thread says it is; 0 where it does not."""
        told = (numbers["gpu_tid"] for numbers in self.lines.values() if "gpu_tid" in numbers)
        return min(next(told, 0), 1023)

    @property
    def split_ends_ns(self) -> int:
        """When the split vectors are there, and the prep thread begins."""
        split = self.lines.get("split_vectors", {})
        return self.begins_ns + max(split.get("setup_to_split", 0), split.get("split_vectors", 0))

    @property
    def requested_ns(self) -> int | None:
        before = self.number("mutex_wait", "pre_lock_cpu")
        return None if before is None else self.begins_ns + before

    @property
    def acquired_ns(self) -> int | None:
        asked = self.requested_ns
        if asked is not None:
            return asked + self.lines["mutex_wait"]["mutex_wait"]
        held = self.lines.get("mutex_held")
        return None if held is None else self.begins_ns + max(held["total_start_fn"] - held["mutex_held"], 0)

    @property
    def released_ns(self) -> int | None:
        held = self.lines.get("mutex_held")
        if held is None:
            return None
        acquired = self.acquired_ns
        return acquired + held["mutex_held"] if acquired is not None else self.begins_ns + held["total_start_fn"]

    def gpu_steps(self) -> Iterator[tuple[str, int, int]]:
        """Steps of the GPU thread that the log tells of, with start and end, in order."""
        total = self.number("tail_msm", "gpu_total")
        released, acquired = self.released_ns, self.acquired_ns
        if released is not None:
            last = released
        elif acquired is not None and total is not None:
            last = acquired + total
        elif self.end_ns >= 0:
            last = self.end_ns
        else:
            return
        steps = []
        at = last
        for kind in ("tail_msm", "batch_add", "barrier_wait"):
            took = self.number(kind)
            if took is not None:
                steps.append((kind, at - took, at))
                at -= took
        first = self.number("ntt_msm_h")
        parts = self.lines.get("ntt_h")
        if first is None and parts is not None:
            first = parts["total"]
        if first is not None:
            begins = last - total if total is not None else acquired if acquired is not None else at - first
            if parts is None:
                steps.append(("ntt_msm_h", begins, begins + first))
            else:
                middle = begins + parts["d_b_alloc"] + parts["ntt_kernels"] + parts["coset_intt_sync"]
                middle = min(middle, begins + first)
                steps.append(("h_msm", middle, begins + first))
                steps.append(("ntt_h", begins, middle))
        yield from sorted(steps, key=lambda step: step[1:])
