"""Changes of the memory mappings of the engine's process, and what they hold up.

Locking, unlocking and unmapping pages change mappings, one thread at a time where the profile says that it matters. How
long a change takes is a time for each byte, on a thread that competes for the host (`cuzklab.simulate.host`).
"""

from collections.abc import Generator
from typing import Any

import simpy

from cuzklab.policies.effects import Alloc, Effect, Free, TrimPool
from cuzklab.profiles import Hardware
from cuzklab.simulate.demands import deallocation_demand, page_locking_demand
from cuzklab.simulate.exclusion import Exclusion
from cuzklab.simulate.host import Demand, Processor

_DRIVER_CALLS = (Alloc, Free, TrimPool)
_ARRAYS = 3  # a, b and c are locked and unlocked one after the other


class Mappings:
    """The mappings of a process.

    If the profile says that changes exclude kernels, one thread at a time makes them, in order of arrival, and no stage
    of any device begins meanwhile; nor does a change begin while a stage's kernels run. If the profile says that they
    delay launches, it is one thread at a time, too, and stages that go on make no progress; then a change is a call for
    each of a, b and c, between which others get in, and so do calls of the driver. A deallocation is cut into as many.
    Copies go on.

    Parameters
    ----------
    env : simpy.Environment
    hardware : Hardware
    processor : Processor
        Of the host, on which the changes are made.
    """

    def __init__(self, env: simpy.Environment, hardware: Hardware, processor: Processor) -> None:
        self._env, self._hardware, self._processor = env, hardware, processor
        self._exclusion = Exclusion(env)
        self._changed_ns, self._changing_since_ns = 0, None

    def lock_pages(self, size_bytes: float, s_per_byte: float) -> Generator[simpy.Event, Any, None]:
        """Page-lock or unlock: bytes · s_per_byte on one thread, which walks the kernel's records of the pages."""
        if size_bytes and s_per_byte:
            yield from self._change(size_bytes * s_per_byte, page_locking_demand(self._hardware, s_per_byte))

    def deallocate(self, size_bytes: int) -> Generator[simpy.Event, Any, None]:
        """Give memory back to the operating system: bytes · dealloc_s_per_byte on one thread."""
        s_per_byte = self._hardware.host.dealloc_s_per_byte
        if size_bytes and s_per_byte:
            yield from self._change(size_bytes * s_per_byte, deallocation_demand(s_per_byte))

    def _change(self, alone_s: float, demand: Demand) -> Generator[simpy.Event, Any, None]:
        transfer = self._hardware.transfer
        calls = _ARRAYS if transfer.pin_delays_launches else 1
        one_at_a_time = transfer.pin_excludes_kernels or transfer.pin_delays_launches
        for _ in range(calls):
            if one_at_a_time:
                yield self._exclusion.exclude()
            start_ns, self._changing_since_ns = self._env.now, self._env.now
            yield self._processor.run(alone_s / calls, demand).done
            if one_at_a_time:
                self._changed_ns += self._env.now - start_ns
                self._changing_since_ns = None
                self._exclusion.leave()

    # --- stages on a device ------------------------------------------------------------------------------------------

    def before_launch(self) -> Generator[simpy.Event, Any, None]:
        """Where changes delay launches, a thread that is to launch a stage has its turn at the driver first."""
        if self._hardware.transfer.pin_delays_launches:
            yield self.enter_driver()
            self.leave_driver()

    def begin_stage(self) -> Generator[simpy.Event, Any, None]:
        """Where changes exclude kernels, a stage begins when there is none, and there is none until it is over."""
        if self._hardware.transfer.pin_excludes_kernels:
            yield self._exclusion.share()

    def end_stage(self) -> None:
        """A stage is over: as far as it goes, mappings may be changed."""
        if self._hardware.transfer.pin_excludes_kernels:
            self._exclusion.leave()

    def changing_ns(self) -> int:
        """How long mappings have been changed so far, one change after the other."""
        going_on = self._env.now - self._changing_since_ns if self._changing_since_ns is not None else 0
        return self._changed_ns + going_on

    def delayed(self, since_ns: int) -> Generator[simpy.Event, Any, None]:
        """The time that a stage has lost to changes, given `changing_ns` when it began."""
        while self._hardware.transfer.pin_delays_launches and (now_ns := self.changing_ns()) > since_ns:
            yield self._env.timeout(now_ns - since_ns)
            since_ns = now_ns

    # --- calls of the driver -----------------------------------------------------------------------------------------

    def takes_turns(self, effect: Effect) -> bool:
        """Whether an effect is a call for which the driver's lock is held, as page-locking holds it."""
        return self._hardware.transfer.pin_delays_launches and type(effect) in _DRIVER_CALLS

    def enter_driver(self) -> simpy.Event:
        """The driver serves one call at a time, in order of arrival; page-locking is one for each array."""
        return self._exclusion.exclude()

    def leave_driver(self) -> None:
        self._exclusion.leave()
