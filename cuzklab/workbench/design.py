"""What the design bench is about: a policy on a machine with a workload, and the knobs that sliders turn."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.policies import Policy
from cuzklab.profiles import Hardware, StageNumbers, hardware_names, load_hardware, load_workload, workload_names
from cuzklab.simulate import Simulation, simulate
from cuzklab.trace import Recorder
from cuzklab.units import GiB
from cuzklab.workbench.patience import as_written

G2_STAGE = "b_g2_msm"  # the stage whose threads `gt` is
MOST_PROOFS = 20


@dataclass(frozen=True)
class Design:
    """One configuration of an engine.

    Attributes
    ----------
    policy, hardware, workload : str
        Names.
    source : str
        The policy's text where it was written in a notebook; empty for a shipped one.
    c, j : int
        Proofs of the batch, and under way at a time.
    gw, pw, gt : int
        GPU workers of the device, syntheses at a time, threads of the G2 MSM.
    vram_gib : float
        Device memory.
    link_gb_per_s : float
        Pinned copies to the device, in 10^9 bytes a second; pageable ones stay in proportion.
    """

    policy: str = "phase9"
    hardware: str = "rtx5070ti-7995wx"
    workload: str = "porep-32g"
    source: str = ""
    c: int = 4
    j: int = 4
    gw: int = 2
    pw: int = 10
    gt: int = 192
    vram_gib: float = 16.0
    link_gb_per_s: float = 53.0

    @property
    def vram_bytes(self) -> int:
        return round(self.vram_gib * GiB)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Design":
        """A design from what a page sent, which is trusted in nothing.

        Raises
        ------
        BadInput
            A knob is missing, unknown, of the wrong type or out of its range.
        """
        known = asdict(cls())
        if set(values) != set(known):
            raise BadInput(f"a design has the knobs {', '.join(known)}; got {', '.join(map(str, values))}")
        checked: dict[str, Any] = {}
        for name, example in known.items():
            value = values[name]
            if isinstance(example, float) and type(value) is int:
                value = float(value)
            if type(value) is not type(example):
                raise BadInput(f"knob {name}: {value!r} is not a {type(example).__name__}")
            checked[name] = value
        for name, (least, most) in RANGES.items():
            if not least <= checked[name] <= most:
                raise BadInput(f"knob {name} is {checked[name]}; it must be {least} to {most}")
        return cls(**checked)


# What sliders reach; the largest threads are those of the hardware.
RANGES: Mapping[str, tuple[float, float]] = {
    "c": (1, MOST_PROOFS), "j": (1, MOST_PROOFS), "gw": (1, 6), "pw": (1, 24), "gt": (1, 512), "vram_gib": (4, 96),
    "link_gb_per_s": (2, 128),
}  # fmt: skip


def choices(own: Mapping[str, str]) -> dict[str, Any]:
    """What can be chosen: policies (`own` ones first), hardware that has rates, workloads, and the defaults of each."""
    machines = {}
    for name in hardware_names():
        hardware = load_hardware(name)
        if hardware.rates is not None:
            machines[name] = {
                "title": hardware.title,
                "gt": hardware.stage_threads(G2_STAGE),
                "most_gt": most_threads(hardware),
                "vram_gib": round(hardware.device.vram_bytes / GiB, 2),
                "link_gb_per_s": round(hardware.transfer.pinned_bytes_per_s / 1e9, 1),
            }
    shipped = {name: policies.load(name).intent.partition("\n")[0] for name in policies.names()}
    return {
        "policies": {**{name: "written in this notebook" for name in own}, **shipped},
        "hardware": machines,
        "workloads": {name: load_workload(name).title for name in workload_names()},
        "ranges": {name: list(limits) for name, limits in RANGES.items()},
    }


def most_threads(hardware: Hardware) -> int:
    """Threads that a stage may have: those of the host."""
    return hardware.host.cores * hardware.host.threads_per_core


def policy_of(design: Design) -> Policy:
    """The policy of a design, from its text where it has one."""
    if design.source:
        return policies.from_source(design.policy, design.source, f"cell {design.policy}")
    return policies.load(design.policy)


def hardware_of(design: Design) -> Hardware:
    """The machine with the threads and the link that the sliders say."""
    hardware = load_hardware(design.hardware)
    given = hardware.threads or StageNumbers({}, "")
    if design.gt > most_threads(hardware):
        raise BadInput(f"knob gt is {design.gt}; {hardware.name} has {most_threads(hardware)} threads")
    rate = design.link_gb_per_s * 1e9
    part = rate / hardware.transfer.pinned_bytes_per_s
    return replace(
        hardware,
        threads=StageNumbers({**given.values, G2_STAGE: design.gt}, given.source),
        transfer=replace(
            hardware.transfer, pinned_bytes_per_s=rate,
            pageable_bytes_per_s=hardware.transfer.pageable_bytes_per_s * part,
        ),
    )  # fmt: skip


def conditions_of(design: Design) -> dict[str, Any]:
    """The keyword arguments of `simulate` and of a prediction."""
    return {
        "proofs": design.c, "in_flight": min(design.j, design.c), "gpu_workers": design.gw,
        "synthesis_workers": design.pw, "vram_bytes": design.vram_bytes,
    }  # fmt: skip


def simulated(design: Design, watch: Callable[[Recorder, int], None] | None = None) -> Simulation:
    """A design in virtual time; `watch` is told now and then what is recorded so far (see `simulate`).

    Raises
    ------
    BadInput, cuzklab.policies.UnknownPolicy
    """
    with as_written(design.policy, design.source):
        return simulate(policy_of(design), hardware_of(design), design.workload, watch=watch, **conditions_of(design))


def policy_argument(design: Design, folder: Path) -> str:
    """How `cuzklab run` is told the policy: its name, or a file that is written into a folder."""
    if not design.source:
        return design.policy
    path = folder / f"{design.policy}.py"
    path.write_text(design.source, encoding="utf-8")
    return str(path)
