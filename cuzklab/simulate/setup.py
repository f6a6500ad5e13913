"""What a simulation is asked for, as a value: so that it can be varied a little, stored and compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, Workload, load_hardware, load_workload
from cuzklab.simulate.simulation import Simulation, simulate


@dataclass(frozen=True)
class Setup:
    """Policy, machine, workload and knobs of one simulation; everything but the seed.

    Attributes
    ----------
    proofs, in_flight, gpu_workers, synthesis_workers : int
        c, j, gw and pw.
    lookahead : int or None
        None: as the policy's engine has it (see `simulate`).
    vram_bytes : int or None
        None: all that the device has.
    """

    policy: policies.Policy
    hardware: Hardware
    workload: Workload
    proofs: int
    in_flight: int
    gpu_workers: int
    synthesis_workers: int
    lookahead: int | None = None
    partitions: int | None = None
    gpus: int = 1
    vram_bytes: int | None = None

    @property
    def device_bytes(self) -> int:
        """Device memory in force."""
        return self.hardware.device.vram_bytes if self.vram_bytes is None else self.vram_bytes

    @property
    def partitions_per_proof(self) -> int:
        return self.workload.partitions_per_proof if self.partitions is None else self.partitions

    @property
    def places(self) -> int:
        """Synthesised partitions that may wait for a GPU worker."""
        bounded = self.policy.has("queue_capacity")
        lookahead = self.lookahead
        if lookahead is None:
            lookahead = self.synthesis_workers if bounded else self.in_flight * self.partitions_per_proof
        return self.policy.call("queue_capacity", lookahead, self.synthesis_workers) if bounded else lookahead

    def run(self, seed: int = 0, record: bool = False) -> Simulation:
        """Simulate it."""
        return simulate(
            self.policy, self.hardware, self.workload, proofs=self.proofs, in_flight=self.in_flight,
            gpu_workers=self.gpu_workers, synthesis_workers=self.synthesis_workers, lookahead=self.lookahead,
            partitions=self.partitions, gpus=self.gpus, vram_bytes=self.vram_bytes, seed=seed, record=record,
        )  # fmt: skip


_NEEDED = {"c": int, "j": int, "gw": int, "pw": int, "partitions": int, "lookahead": int, "vram_bytes": int}


def setup_of(
    conditions: Mapping[str, Any], what: str, hardware: Hardware | str | None = None, workload: Workload | None = None
) -> Setup:
    """The setup that a simulated or live run's conditions state.

    Parameters
    ----------
    conditions : mapping
        As they stand in ``run.json``.
    what : str
        For errors: what has these conditions.
    hardware : optional
        Instead of the profile that the conditions name.
    workload : optional

    Raises
    ------
    BadInput
        A condition is missing or is not a number, or names a profile or policy that is not here.
    """
    for name, kind in (*_NEEDED.items(), ("policy", str), ("hardware", str), ("workload", str)):
        if not isinstance(conditions.get(name), kind) or isinstance(conditions.get(name), bool):
            raise BadInput(f"{what}: condition {name} is missing or is no {'number' if kind is int else 'text'}")
    if conditions.get("urgent"):
        raise BadInput(f"{what}: condition urgent: a run with urgent proofs cannot be replayed with changes yet")
    if (name := conditions["policy"]) not in policies.names():  # a path would be executed
        raise BadInput(
            f"{what}: policy {name!r} does not come with cuzklab, so a stored run of it is not repeated with changes; "
            "give its file: cuzklab simulate FILE.py --explain"
        )
    policy = policies.load(name)
    options = {name: conditions[name] for name in policies.options_of(policy.module) if name in conditions}
    if isinstance(hardware, str) or hardware is None:
        hardware = load_hardware(hardware or conditions["hardware"])
    return Setup(
        policies.load(name, **options), hardware, workload or load_workload(conditions["workload"]),
        conditions["c"], conditions["j"], conditions["gw"], conditions["pw"], conditions["lookahead"],
        conditions["partitions"], conditions.get("gpus", 1), conditions["vram_bytes"],
    )  # fmt: skip
