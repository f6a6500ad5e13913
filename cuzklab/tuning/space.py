"""What a tune searches: machines, policies and the values of each knob; and what of it contradicts itself."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, Workload, load_hardware, load_workload
from cuzklab.simulate.setup import Setup
from cuzklab.units import format_size, parse_size

# Threads of the pool of the G2 MSM: gt, an option of the policies that let one choose.
G2_THREADS = "g2_threads"
DEFAULT_GW, DEFAULT_PW, DEFAULT_GT = (1, 2, 3, 4), (5, 8, 10, 12, 16, 20), (16, 32, 64)
DEFAULT_LOOKAHEAD: tuple[int | None, ...] = (None, 4, 20)
DEFAULT_VRAM_SHARES = (1.0, 0.75)
MOST_CONFIGURATIONS = 50_000
KNOBS = ("policy", "gw", "pw", "gt", "lookahead", "vram")


@dataclass(frozen=True)
class Machine:
    """A hardware profile that is searched.

    Attributes
    ----------
    place : str
        Its name, or the absolute path of its file.
    price_per_hour : float or None
        What an hour of it costs, in whatever currency.
    """

    place: str
    hardware: Hardware = field(repr=False)
    price_per_hour: float | None = None


@dataclass(frozen=True)
class Configuration:
    """One point of the search.

    Attributes
    ----------
    machine, policy : str
        The machine's name or path; the policy's name or path.
    gw, pw : int
        GPU workers a device, partitions synthesised at a time.
    gt : int or None
        Threads of the G2 MSM's pool; None where the policy does not let one choose.
    lookahead : int or None
        Synthesised partitions that may wait; None as the policy's engine has it.
    vram_bytes : int
        Device memory that the engine may use.
    """

    machine: str
    policy: str
    gw: int
    pw: int
    gt: int | None
    lookahead: int | None
    vram_bytes: int

    @property
    def options(self) -> dict[str, Any]:
        """Options of the policy."""
        return {} if self.gt is None else {G2_THREADS: self.gt}

    @property
    def design(self) -> str:
        """The policy's name."""
        return policies.name_of(self.policy)

    @property
    def label(self) -> str:
        """In a few words."""
        gt = "" if self.gt is None else f" gt{self.gt}"
        ahead = "" if self.lookahead is None else f" ahead{self.lookahead}"
        return f"{self.design} gw{self.gw} pw{self.pw}{gt}{ahead} {format_size(self.vram_bytes)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "hardware": self.machine, "policy": self.policy, "gw": self.gw, "pw": self.pw, "gt": self.gt,
            "lookahead": self.lookahead, "vram_bytes": self.vram_bytes,
        }  # fmt: skip


@dataclass(frozen=True)
class Space:
    """Everything that is searched, and under what conditions.

    Attributes
    ----------
    machines : tuple of Machine
    workload_place : str
        Name or absolute path of the workload.
    proofs, in_flight : int
        c and j of the simulations that decide.
    configurations : tuple of Configuration
        In an order that does not matter to the result.
    """

    machines: tuple[Machine, ...]
    workload_place: str
    workload: Workload = field(repr=False)
    proofs: int
    in_flight: int
    configurations: tuple[Configuration, ...] = field(repr=False)

    def machine(self, configuration: Configuration) -> Machine:
        return next(machine for machine in self.machines if machine.place == configuration.machine)

    def setup(self, configuration: Configuration) -> Setup:
        """The simulation of a configuration, as it was confirmed."""
        return Setup(
            policies.load(configuration.policy, **configuration.options), self.machine(configuration).hardware,
            self.workload, self.proofs, self.in_flight, configuration.gw, configuration.pw, configuration.lookahead,
            vram_bytes=configuration.vram_bytes,
        )  # fmt: skip

    def command(self, configuration: Configuration) -> str:
        """The command that simulates a configuration by itself."""
        knobs = {"gw": configuration.gw, "pw": configuration.pw, "lookahead": configuration.lookahead}
        given = {**knobs, **configuration.options}
        words = " ".join(f"-p {name}={value}" for name, value in given.items() if value is not None)
        return (
            f"cuzklab simulate {configuration.policy} --hardware {configuration.machine} --workload "
            f"{self.workload_place} -c {self.proofs} -j {self.in_flight} {words} --vram {configuration.vram_bytes}"
        )


def space_of(
    hardware: Sequence[str | Path],
    workload: str | Path,
    *,
    knobs: Mapping[str, str] | None = None,
    prices: Sequence[float] = (),
    proofs: int = 20,
    in_flight: int | None = None,
) -> Space:
    """The space that a user asks for.

    Parameters
    ----------
    hardware : sequence of str
        Names or paths of profiles, one at least.
    workload : str
    knobs : mapping of str to str
        Values of policy, gw, pw, gt, lookahead (``auto`` as the policy's engine has it), vram (sizes), with commas
        between; what is not given has default values.
    prices : sequence of float
        Price an hour of each machine, in their order; one for all, or none.
    proofs, in_flight : int

    Raises
    ------
    BadInput
        Something is impossible or contradicts something else; names the knob.
    """
    given = {name: _split(name, text) for name, text in (knobs or {}).items()}
    for name in given:
        if name not in KNOBS:
            raise BadInput(f"-p {name}: tune has no knob {name!r}; it has: {', '.join(KNOBS)}")
    if not 4 <= proofs <= 1000:
        raise BadInput(f"-c {proofs}: a tune compares batches of 4 to 1000 proofs")
    in_flight = proofs if in_flight is None else in_flight
    if not 1 <= in_flight <= proofs:
        raise BadInput(f"-j {in_flight}: it must be 1 to {proofs}, the proofs of the batch (-c)")
    machines = _machines(hardware, prices)
    work = load_workload(workload)
    chosen = given.get("policy") or list(policies.names())
    designs = {name: policies.load(_place(name)) for name in chosen}
    with_gt = [name for name, policy in designs.items() if G2_THREADS in policies.options_of(policy.module)]
    if "gt" in given and not with_gt:
        raise BadInput("-p gt: none of the policies lets one choose the threads of the G2 MSM (option g2_threads)")
    gw = _counts("gw", given, DEFAULT_GW, 64)
    pw = _counts("pw", given, DEFAULT_PW, 10_000)
    lookahead = _lookahead(given)
    found: list[Configuration] = []
    _refuse_too_many(len(machines) * len(designs) * len(gw) * len(pw) * len(lookahead))
    for machine in machines:
        gt = _pool_threads(given, machine.hardware)
        vram = _device_memory(given, machine.hardware)
        for name, policy in designs.items():
            pools = gt if name in with_gt else (None,)
            seen = set()
            for one in product(gw, pw, pools, lookahead, vram):
                places = _places(policy, one, work, in_flight)
                if (key := (*one[:3], places, one[4])) not in seen:  # lookaheads that come to the same
                    seen.add(key)
                    found.append(Configuration(machine.place, _place(name), *one))
    _refuse_too_many(len(found))
    return Space(machines, _place(workload), work, proofs, in_flight, tuple(found))


def _refuse_too_many(count: int) -> None:
    if count > MOST_CONFIGURATIONS:
        raise BadInput(f"{count:,} configurations are more than {MOST_CONFIGURATIONS:,}; give fewer values (-p)")


def digest_of(place: str) -> str:
    """SHA-256 of a policy's or profile's file that the user wrote; nothing for shipped ones."""
    path = Path(place)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix in (".py", ".toml") else ""


def _split(name: str, text: str) -> list[str]:
    values = [value.strip() for value in text.split(",")]
    if not all(values):
        raise BadInput(f"-p {name}={text}: write values with commas between")
    if len(set(values)) < len(values):
        raise BadInput(f"-p {name}={text}: a value stands there twice")
    return values


def _place(name: str | Path) -> str:
    """Files by their full path, so that workers find them."""
    text = str(name)
    return str(Path(text).resolve()) if text.endswith((".py", ".toml")) else text


def _machines(hardware: Sequence[str | Path], prices: Sequence[float]) -> tuple[Machine, ...]:
    if not hardware:
        raise BadInput("--hardware: name at least one profile")
    places = [_place(name) for name in hardware]
    if len(set(places)) < len(places):
        raise BadInput(f"--hardware: {max(places, key=places.count)} stands there twice")
    if prices and len(prices) not in (1, len(places)):
        raise BadInput(f"--price: {len(prices)} prices for {len(places)} machines; give one for each, or one for all")
    for price in prices:
        if not 0 < price < math.inf:
            raise BadInput(f"--price {price}: an hour must cost more than nothing")
    each: list[float | None] = list(prices) if len(prices) == len(places) else [*prices, None][:1] * len(places)
    machines = []
    for place, price in zip(places, each, strict=True):
        machine = load_hardware(place)
        machine.rate("synthesis")  # a profile without rates is refused before anything runs
        machines.append(Machine(place, machine, price))
    return tuple(machines)


def _counts(name: str, given: Mapping[str, list[str]], default: tuple[int, ...], most: int) -> tuple[int, ...]:
    return tuple(_count(name, value, most) for value in given[name]) if name in given else default


def _count(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= most):
        raise BadInput(f"-p {name}={text}: write whole numbers from 1 to {most}")
    return int(text)


def _lookahead(given: Mapping[str, list[str]]) -> tuple[int | None, ...]:
    if "lookahead" not in given:
        return DEFAULT_LOOKAHEAD
    return tuple(None if value == "auto" else _count("lookahead", value, 1_000_000) for value in given["lookahead"])


def _pool_threads(given: Mapping[str, list[str]], hardware: Hardware) -> tuple[int, ...]:
    threads = hardware.host.hardware_threads
    if "gt" not in given:
        return tuple(count for count in DEFAULT_GT if count <= threads) or (threads,)
    for count in (found := _counts("gt", given, (), 1_000_000)):
        if count > threads:
            raise BadInput(f"-p gt={count}: {hardware.name} has {threads} hardware threads")
    return found


def _device_memory(given: Mapping[str, list[str]], hardware: Hardware) -> tuple[int, ...]:
    device = hardware.device
    if "vram" not in given:
        return tuple(round(device.vram_bytes * share) for share in DEFAULT_VRAM_SHARES)
    found = []
    for text in given["vram"]:
        try:
            size_bytes = parse_size(text)
        except ValueError as error:
            raise BadInput(f"-p vram: {error}") from None
        if size_bytes > device.vram_bytes:
            raise BadInput(f"-p vram={text}: {hardware.name} has {format_size(device.vram_bytes)}")
        if size_bytes <= device.margin_bytes:
            raise BadInput(f"-p vram={text}: nothing remains beside the margin of {format_size(device.margin_bytes)}")
        found.append(size_bytes)
    return tuple(found)


def _places(policy: policies.Policy, one: tuple[Any, ...], work: Workload, in_flight: int) -> int:
    """Places in the queue of synthesised partitions; more than are in flight are as good as these."""
    _, pw, _, lookahead, _ = one
    most = in_flight * work.partitions_per_proof
    bounded = policy.has("queue_capacity")
    if lookahead is None:
        lookahead = pw if bounded else most
    return min(policy.call("queue_capacity", lookahead, pw) if bounded else lookahead, most)
