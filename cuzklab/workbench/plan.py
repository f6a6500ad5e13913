"""What a live run of a design is: a small machine runs it smaller, and that is said before and after."""

from dataclasses import dataclass
from typing import Any

from cuzklab.backends.choose import choose
from cuzklab.errors import BadInput
from cuzklab.profiles import scaled_shape
from cuzklab.stages import POREP_32G
from cuzklab.units import GiB, format_size
from cuzklab.workbench.design import Design

LOG2_DOMAIN = 15  # rows of the circuits: seconds a proof on two cores
MOST_PROOFS, MOST_SYNTHESES = 2, 4
PARTITIONS = 6


@dataclass(frozen=True)
class LivePlan:
    """The knobs of a live run.

    Attributes
    ----------
    workers, proofs, in_flight, partitions, synthesis_workers : int
        `partitions` of each proof; `in_flight` 0: all proofs.
    vram_gib : float
        Device memory for a 32 GiB PoRep partition; the run gets it in proportion to its circuits.
    log2_domain : int
        Rows of the circuits.
    backend : {"auto", "host", "cuda"}
    """

    workers: int
    proofs: int = 1
    partitions: int = PARTITIONS
    vram_gib: float = 16.0
    synthesis_workers: int = 1
    log2_domain: int = LOG2_DOMAIN
    backend: str = "auto"
    in_flight: int = 0

    @property
    def vram_bytes(self) -> int:
        return round(self.vram_gib * GiB)

    @property
    def scaled_vram_bytes(self) -> int:
        """What the device of the run has."""
        return self.vram_bytes * scaled_shape(self.log2_domain).domain // POREP_32G.domain

    def arguments(self) -> list[str]:
        """Those of ``cuzklab run POLICY``."""
        return [
            "--workload", f"porep-shaped-{self.log2_domain}", "--workers", str(self.workers), "-c", str(self.proofs),
            "--partitions", str(self.partitions), "--synthesis-workers", str(self.synthesis_workers),
            "--vram", str(self.vram_bytes), "--backend", self.backend,
            *(["-j", str(self.in_flight)] if self.in_flight else []),
        ]  # fmt: skip

    def words(self) -> str:
        """The run in one sentence."""
        proofs = f"{self.proofs} proof{'s' if self.proofs > 1 else ''} of {self.partitions} partitions"
        return (
            f"{proofs}, circuits of 2^{self.log2_domain} rows, {self.workers} GPU worker"
            f"{'s' if self.workers > 1 else ''} on {device_in_words(self.backend)} with "
            f"{format_size(self.scaled_vram_bytes)} ({self.vram_gib:g} GiB in proportion); test keys"
        )


def device_in_words(backend: str) -> str:
    """Where a live run would execute."""
    try:
        return "the GPU" if choose(backend).name == "cuda" else "an emulated device"
    except BadInput as error:
        return f"a device that is not here ({error})"


def plan_of(design: Design) -> LivePlan:
    """The live run of a design, on circuits that fit this machine."""
    proofs = min(design.c, MOST_PROOFS)
    return LivePlan(
        workers=design.gw, proofs=proofs, in_flight=min(design.j, proofs), vram_gib=design.vram_gib,
        synthesis_workers=min(design.pw, MOST_SYNTHESES),
    )  # fmt: skip


def plan_rows(design: Design) -> dict[str, Any]:
    """What would be run for real: `words`, and `rows` of what, in the design, in the run."""
    plan = plan_of(design)
    same = lambda here, there: [str(here), str(there) if here != there else "the same"]  # noqa: E731
    return {
        "words": plan.words(),
        "rows": [
            ["proofs (c)", *same(design.c, plan.proofs)],
            ["proofs in flight (j)", *same(design.j, plan.in_flight)],
            ["GPU workers (gw)", *same(design.gw, plan.workers)],
            ["syntheses at a time (pw)", *same(design.pw, plan.synthesis_workers)],
            ["partitions of a proof", f"those of {design.workload}", str(plan.partitions)],
            ["circuit", design.workload, f"2^{plan.log2_domain} rows, in its ratios"],
            ["device memory", f"{design.vram_gib:g} GiB", f"{format_size(plan.scaled_vram_bytes)}, in proportion"],
            ["hardware", design.hardware, f"{device_in_words(plan.backend)} of this machine"],
            ["threads of the G2 MSM (gt)", str(design.gt), "one, on this machine"],
            ["link, pinned", f"{design.link_gb_per_s:g} GB/s", "that of the device"],
        ],
    }
