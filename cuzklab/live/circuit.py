"""What a live run proves: a PoRep-shaped circuit with a test key, made once and kept.

One circuit and one key serve all partitions, as in a real engine; every partition has a witness of its own, so proofs
and public inputs differ. Everything follows from the circuit's size and a seed: a CPU makes it up to 2^22 rows, and
keeps the key's file; a GPU makes it in seconds, up to 2^27, the size of a real partition.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cuzklab import __version__
from cuzklab.backends.host import FR_MODULUS
from cuzklab.backends.keys import KeyArithmetic
from cuzklab.backends.native import cache_folder
from cuzklab.errors import BadInput
from cuzklab.live.stages import Job
from cuzklab.policies.model import Partition
from cuzklab.prover.constraints import with_public_rows
from cuzklab.prover.files.zkey import read_zkey, write_zkey
from cuzklab.prover.model import ProvingKey
from cuzklab.prover.porep_counts import porep_constraints
from cuzklab.prover.porep_shaped import PorepCircuit, coded_porep_circuit, porep_circuit, porep_witness
from cuzklab.prover.setup import Progress, dense_setup, setup
from cuzklab.prover.shape import circuit_shape
from cuzklab.prover.stages import DenseKey, check_same_circuit, dense_key
from cuzklab.stages import POREP_32G, SCALAR_BYTES, CircuitShape, DeviceModel, PartitionSizes, partition_sizes
from cuzklab.units import GiB

MIN_LOG2_DOMAIN, MAX_LOG2_DOMAIN = 8, 22
GPU_FROM_LOG2_DOMAIN, GPU_MAX_LOG2_DOMAIN = 18, 27
"""Smaller circuits take a GPU no time, but the tables for it some."""
_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True)
class Maker:
    """A device that makes circuits, witnesses and keys.

    Attributes
    ----------
    arrays : module
        CuPy, or NumPy, which is the CPU.
    keys : KeyArithmetic
    release : callable
        Gives back all device memory that was used.
    """

    arrays: Any
    keys: KeyArithmetic
    release: Callable[[], None]


_MOST_WITNESS_BYTES = 2 * GiB


class _Witnesses:
    """Witnesses of a circuit's partitions, kept from one run to the next of a process: the latest, up to a size.

    A larger one is not kept at all.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._kept: dict[int, np.ndarray] = {}

    def of(self, number: int, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The witness of that number, made unless it is kept; nobody may write into it."""
        with self._mutex:
            witness = self._kept.pop(number, None)
        if witness is None:
            witness = make()
            witness.flags.writeable = False
        with self._mutex:
            self._kept[number] = witness
            while sum(one.nbytes for one in self._kept.values()) > _MOST_WITNESS_BYTES:
                del self._kept[next(iter(self._kept))]
        return witness


@dataclass(frozen=True)
class TestCircuit:
    """A circuit with its test key.

    Attributes
    ----------
    log2_domain, seed : int
    circuit : PorepCircuit
    key : DenseKey
    shape : CircuitShape
        Measured on the circuit and its key.
    digests : mapping
        SHA-256 of the circuit's matrices and of the key's file, by name; of what a GPU made, `digest_in_blocks`.
    maker : Maker or None
        The device that makes witnesses, if not the CPU.
    """

    __test__ = False  # not a class of tests

    log2_domain: int
    seed: int
    circuit: PorepCircuit = field(repr=False)
    key: DenseKey = field(repr=False)
    shape: CircuitShape
    digests: Mapping[str, str]
    maker: Maker | None = field(default=None, repr=False)
    witnesses: _Witnesses = field(default_factory=_Witnesses, repr=False, compare=False)

    def job(self, partition: Partition, key: DenseKey | None = None) -> Job:
        """A partition's witness and randomness, which follow from the seed and its name; `key` is the key elsewhere."""
        number = partition.proof << 32 | partition.index
        drawn = int.from_bytes(_draw(self.seed, number, "witness")[:8], "little")
        witness = self.witnesses.of(number, lambda: _witness(self.circuit, drawn, self.maker))
        r, s = (int.from_bytes(_draw(self.seed, number, name) + bytes(8), "big") % FR_MODULUS for name in ("r", "s"))
        return Job(key or self.key, witness, r, s)

    def sizes(self, device: DeviceModel) -> PartitionSizes:
        """Bytes of a partition's buffers. a, b and c have a row more for each public wire, as the key's matrices do."""
        return replace(partition_sizes(self.shape, device), abc=3 * SCALAR_BYTES * self.key.constraints.rows)

    def scaled(self, porep_bytes: int) -> int:
        """An amount of device memory for a 32 GiB PoRep partition, in proportion to this circuit's domain."""
        return porep_bytes * self.shape.domain // POREP_32G.domain


def _draw(seed: int, number: int, name: str) -> bytes:
    return hashlib.sha256(f"cuzklab live\0{seed}\0{number}\0{name}".encode()).digest()


def _witness(circuit: PorepCircuit, seed: int, maker: Maker | None) -> np.ndarray:
    if maker is None:
        return porep_witness(circuit, seed)
    try:
        return porep_witness(circuit, seed, maker.arrays)
    finally:
        maker.release()


_made: OrderedDict[tuple[int, int], TestCircuit] = OrderedDict()
_MOST_MADE = 4


def circuit_with_test_key(log2_domain: int, seed: int) -> TestCircuit:
    """A PoRep-shaped circuit with 2^log2_domain rows and its TEST KEY, from memory, the user's cache, or made.

    The last four are remembered.

    Raises
    ------
    BadInput
        The size is out of range.
    """
    check_size(log2_domain)
    wanted = log2_domain, seed
    made = _made.pop(wanted, None) or _circuit_with_test_key(log2_domain, seed)
    _made[wanted] = made
    while len(_made) > _MOST_MADE:
        _made.popitem(last=False)
    return made


def _circuit_with_test_key(log2_domain: int, seed: int) -> TestCircuit:
    circuit = porep_circuit(porep_constraints(log2_domain), seed)
    digest = hashlib.sha256()
    for matrix in (with_public_rows(circuit.system), circuit.system.b, circuit.system.c):
        for array in (matrix.row_start, matrix.wire, matrix.value):
            digest.update(array.tobytes())
    key, key_digest = _test_key(circuit, seed, digest.hexdigest())
    return TestCircuit(
        log2_domain,
        seed,
        circuit,
        dense_key(key, circuit.system),
        circuit_shape(f"porep-shaped-{log2_domain}", circuit.system, porep_witness(circuit, seed)),
        MappingProxyType({"circuit": digest.hexdigest(), "test key": key_digest}),
    )


_last_made: dict[tuple[Maker, int, int], TestCircuit] = {}


def circuit_made_by(maker: Maker, log2_domain: int, seed: int, progress: Progress | None = None) -> TestCircuit:
    """As `circuit_with_test_key`, made by a device and not kept in a file; the key's points may be page-locked.

    Matrices are coded and points are made where they stay, so the host holds everything once: for 2^27 rows the key
    (44 GiB) and a fourth of that beside it. The last one is remembered.

    Raises
    ------
    BadInput
        The size is out of range, or the device's memory does not suffice.
    """
    check_size(log2_domain, maker)
    wanted = maker, log2_domain, seed
    if wanted not in _last_made:
        _last_made.clear()  # before the next one takes its memory
        _last_made[wanted] = _made_by(maker, log2_domain, seed, progress or (lambda step, share: None))
    return _last_made[wanted]


def is_remembered(log2_domain: int, seed: int, maker: Maker | None = None) -> bool:
    """Whether this process holds a circuit with its key, so that it would not be made again."""
    return (log2_domain, seed) in _made if maker is None else (maker, log2_domain, seed) in _last_made


def given_up_bytes(log2_domain: int, seed: int, maker: Maker) -> int:
    """What the circuit and key take that are forgotten before a device makes these."""
    others = (made for wanted, made in _last_made.items() if wanted != (maker, log2_domain, seed))
    return sum(made.key.query_bytes + made.key.constraints.nbytes for made in others)


def _made_by(maker: Maker, log2_domain: int, seed: int, progress: Progress) -> TestCircuit:
    progress("circuit", 0.0)
    try:
        circuit = coded_porep_circuit(porep_constraints(log2_domain), seed, maker.arrays)
        maker.release()
        key = dense_setup(
            circuit.system,
            seed,
            on=maker.keys,
            progress=lambda step, share: progress(f"key: {step}", 0.3 + 0.4 * share),
        )
    finally:
        maker.release()
    progress("its shape", 0.7)
    shape = circuit_shape(f"porep-shaped-{log2_domain}", circuit.system, _witness(circuit, seed, maker))
    progress("hashes", 0.95)
    matrices = (circuit.system.a, circuit.system.b, circuit.system.c)
    digests = {
        "circuit, in blocks": digest_in_blocks(
            array for matrix in matrices for array in (matrix.row_start, matrix.wire, matrix.number, matrix.values)
        ),
        "test key, in blocks": digest_in_blocks(
            (key.h, *(query.points for query in (key.l, key.a, key.b_g1, key.b_g2)), key.vk.ic)
        ),
    }
    return TestCircuit(log2_domain, seed, circuit, key, shape, MappingProxyType(digests), maker)


def check_size(log2_domain: int, maker: Maker | None = None) -> None:
    """Refuse a size that a device, or the CPU, does not make.

    Raises
    ------
    BadInput
    """
    most, more = GPU_MAX_LOG2_DOMAIN, ""
    if maker is None:
        most, more = MAX_LOG2_DOMAIN, f" (a GPU makes them up to {GPU_MAX_LOG2_DOMAIN})"
    if not MIN_LOG2_DOMAIN <= log2_domain <= most:
        raise BadInput(
            f"log2_domain {log2_domain}: a live run makes its circuit and key; ask for porep-shaped-N with N from "
            f"{MIN_LOG2_DOMAIN} to {most}{more}"
        )


def digest_in_blocks(arrays: Iterable[np.ndarray]) -> str:
    """SHA-256 of the SHA-256 of each 64 MiB of each array's bytes, one after the other: many threads can make it."""
    blocks = [
        data[begin : begin + _BLOCK_BYTES]
        for data in (array.reshape(-1).view(np.uint8) for array in arrays)
        for begin in range(0, len(data), _BLOCK_BYTES)
    ]
    digest = hashlib.sha256()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for each in pool.map(lambda block: hashlib.sha256(block).digest(), blocks):
            digest.update(each)
    return digest.hexdigest()


def _test_key(circuit: PorepCircuit, seed: int, circuit_digest: str) -> tuple[ProvingKey, str]:
    """The circuit's test key, and the hash of its file, which is made unless the cache has it."""
    name = hashlib.sha256(f"{__version__}\0{circuit_digest}\0{seed}".encode()).hexdigest()[:32]
    path = cache_folder() / f"test-key-{name}.zkey"
    key = _cached(path, circuit)
    if key is None:
        write_zkey(path, setup(circuit.system, seed, threads=len(os.sched_getaffinity(0))))
        key = read_zkey(path)
    return key, hashlib.sha256(path.read_bytes()).hexdigest()


def _cached(path: Path, circuit: PorepCircuit) -> ProvingKey | None:
    """The key in the cache; None if there is none, or one that is damaged or another circuit's."""
    if not path.is_file():
        return None
    try:
        key = read_zkey(path)
        check_same_circuit(circuit.system, key)
    except BadInput:
        return None
    return key
