"""How much of the CPU time that a virtual machine wanted its host gave to others.

While a core is taken away, every CPU stage on it stands still, and so does a thread that launches kernels: times of
such a run are of the neighbours as much as of the design. Linux counts it as steal (proc_stat(5)); a machine of its own
has none. A host that shares cores without telling its guests shows none either.
"""

from dataclasses import dataclass
from pathlib import Path

FACT = "cpu_stolen_share"
"""Its name among a run's facts of the machine."""

NOTED_SHARE = 0.02
"""From here on a run says so: less is lost among the differences between repeated runs."""


@dataclass(frozen=True)
class CpuTimes:
    """CPU time of the whole machine since it started, in ticks.

    Attributes
    ----------
    busy : int
        Spent for whoever runs on the machine.
    stolen : int
        Wanted, and given to others by the host.
    """

    busy: int
    stolen: int


def cpu_times(root: Path = Path("/")) -> CpuTimes | None:
    """Read them; None where the system does not tell.

    Parameters
    ----------
    root : Path
        Of the file system that `/proc` lies in.
    """
    try:
        words = (root / "proc/stat").read_text().splitlines()[0].split()
        user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, words[1:9])
    except (OSError, ValueError, IndexError):
        return None
    # Guests' time, the two words that follow, is in user and nice already.
    return CpuTimes(user + nice + system + interrupts + soft_interrupts, stolen)


def stolen_share(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    """Stolen time of all that was wanted between two readings; None where nothing is known or nothing ran."""
    if before is None or after is None:
        return None
    busy, stolen = after.busy - before.busy, after.stolen - before.stolen
    return stolen / (busy + stolen) if busy + stolen > 0 and stolen >= 0 else None
