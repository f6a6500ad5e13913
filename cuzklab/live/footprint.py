"""What host memory a live run takes, told before anything large is made; a run that cannot fit is refused.

The key, the circuit, the witnesses of all partitions and what the partitions under way hold are counted from the
circuit's counts. They are sizes of arrays, so they are exact; what is estimated is what libraries and kernels take.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuzklab.errors import BadInput
from cuzklab.live.machine_memory import Room
from cuzklab.policies import Policy
from cuzklab.profiles import scaled_shape
from cuzklab.prover.porep_counts import PorepCounts, porep_constraints, porep_counts
from cuzklab.stages import G1_BYTES, G2_BYTES, SCALAR_BYTES, CircuitShape
from cuzklab.units import GiB, MiB, format_size

ROOM_FOR_TAILS = 1.1
"""Page-locked memory for a partition's tails, made before a run, in multiples of what they take on average."""

_INTEGER_BYTES = 68  # one of Python's of 256 bits, and its place in a list
_THREAD_BYTES = 4 * MiB  # buckets, points and stack of a thread that adds up points
_TRANSFORM_VECTORS = 4  # spare ones and tables of a transform
_SETUP_VECTORS, _MOST_HEAP_BYTES = 22, 128 * MiB  # of the wires, that a setup on the CPU leaves in the heap; at most
_GPU_PROCESS_BYTES = 2 * GiB  # what the driver, CUDA's context and compiled kernels take of the host, at most


@dataclass(frozen=True)
class Batch:
    """Partitions of one kind: all have one circuit.

    Attributes
    ----------
    log2_domain : int
    partitions : int
        All of them; their witnesses are made before the timed part.
    made_on_gpu : bool
        Circuit and key come from a GPU: matrices are coded, the key lies in page-locked memory and nowhere else.
    remembered : bool
        This process holds circuit and key already.
    """

    log2_domain: int
    partitions: int
    made_on_gpu: bool = False
    remembered: bool = False


@dataclass(frozen=True)
class Engine:
    """What of a run's conditions decides how much is under way at a time.

    Attributes
    ----------
    under_way : int
        Partitions that can have a, b and c.
    calls : int
        Workers of all devices.
    threads : int
        Of a stage.
    emulated_bytes : int or None
        Device memory that is really the host's; None where the device is real.
    """

    under_way: int
    calls: int
    threads: int
    emulated_bytes: int | None


def most_under_way(policy: Policy, total: int, workers: int, synthesis_workers: int, lookahead: int) -> int:
    """Partitions that can have a, b and c at a time: at the synthesis, waiting, and in a call or its finaliser."""
    waiting = lookahead
    if policy.has("queue_capacity"):
        waiting = policy.call("queue_capacity", lookahead, synthesis_workers)
    return min(total, synthesis_workers + waiting + workers * (2 if policy.has("finish_partition") else 1))


def host_footprint(batches: Sequence[Batch], engine: Engine) -> dict[str, int]:
    """Bytes of host memory that a run takes beside what this process holds already, by what takes them.

    Partitions under way are counted as the largest.
    """
    parts = dict.fromkeys(("key", "circuit", "witnesses", "a, b, c", "tails", "kernels and libraries"), 0)
    real, shapes = engine.emulated_bytes is None, [scaled_shape(batch.log2_domain) for batch in batches]
    for batch, shape in zip(batches, shapes, strict=True):
        counts = porep_counts(porep_constraints(batch.log2_domain))
        parts["witnesses"] += batch.partitions * SCALAR_BYTES * (counts.inputs + counts.aux)
        if not batch.remembered:
            parts["circuit"] += _circuit_bytes(counts, batch.made_on_gpu)
            parts["key"] += shape.key_bytes
            if not batch.made_on_gpu:
                parts["key"] += _key_file_bytes(counts, shape) + (shape.key_bytes if real else 0)  # page-locked copy
    largest = max(shapes, key=lambda shape: shape.constraints)
    parts["a, b, c"] = engine.under_way * (largest.abc_bytes + 3 * SCALAR_BYTES * largest.inputs)
    if real:
        kept = 2 * engine.calls
        parts["tails"] = round(ROOM_FOR_TAILS * kept * sum(map(tail_bytes, shapes)))
        parts["kernels and libraries"] = _GPU_PROCESS_BYTES + max(map(_staging_bytes, batches))
    else:
        parts["tails"] = engine.calls * tail_bytes(largest)
        scratch_bytes = (
            _TRANSFORM_VECTORS * SCALAR_BYTES * largest.domain + engine.threads * (engine.calls + 1) * _THREAD_BYTES
        )
        parts["kernels and libraries"] = engine.emulated_bytes + scratch_bytes
    return parts


def tail_bytes(shape: CircuitShape) -> int:
    """What a partition's tails take: points and scalars of L, A and B, whose scalars G1 and G2 share."""
    one = G1_BYTES + SCALAR_BYTES
    return one * (shape.tail("l") + shape.tail("a") + shape.tail("b_g1")) + G2_BYTES * shape.tail("b_g2")


def _circuit_bytes(counts: PorepCounts, coded: bool) -> int:
    """The circuit, its compiled matrices, and what its witnesses are made from.

    An entry of a matrix has a wire (4 bytes) and a coefficient: its number (4) or itself (32), which compilation
    multiplies by a constant, so that there are two of them. A's compiled form has rows of its own.
    """
    entries = counts.a_nonzeros + counts.b_nonzeros + counts.c_nonzeros
    matrices = 24 * counts.constraints + 8 * entries if coded else 24 * counts.constraints + 68 * entries
    compiled_a = 8 * counts.constraints + (8 if coded else 4) * counts.a_nonzeros
    # Wires of each sort; operands of XORs, majorities and choices, and a GPU's of ANDs: 64-bit numbers.
    numbers = counts.inputs + counts.aux + 2 * counts.xors + (8 if coded else 6) * counts.triples
    return matrices + compiled_a + 8 * numbers + _INTEGER_BYTES * counts.significant


def _key_file_bytes(counts: PorepCounts, shape: CircuitShape) -> int:
    """A key's file, which stays mapped: points for every wire, the entries of A and B, a copy of these; its making."""
    wires = counts.inputs + counts.aux
    points = G1_BYTES * (3 * wires + shape.domain) + G2_BYTES * wires
    heap_bytes = min(_SETUP_VECTORS * SCALAR_BYTES * wires, _MOST_HEAP_BYTES)
    return points + (44 + 36) * (counts.a_nonzeros + counts.b_nonzeros) + heap_bytes


def _staging_bytes(batch: Batch) -> int:
    """What CuPy keeps to copy from: two of the largest arrays, each rounded up to a power of two."""
    if not batch.made_on_gpu:
        return 0
    return 2 << (16 * porep_counts(porep_constraints(batch.log2_domain)).xors).bit_length()


def check_fits(batches: Sequence[Batch], engine: Engine, room: Room) -> str | None:
    """Refuse a run that needs more host memory than there is.

    Returns
    -------
    str or None
        A warning where it may not fit, because the machine may have more memory than it shows.

    Raises
    ------
    BadInput
        It does not fit, in one line: what is needed, what there is, what to do.
    """
    parts = host_footprint(batches, engine)
    needed_bytes = sum(parts.values())
    if needed_bytes <= room.free_bytes:
        return None
    alone = replace(engine, under_way=1, calls=1)
    least_bytes = sum(host_footprint([replace(batches[0], partitions=1)], alone).values())
    largest = ", ".join(
        f"{name} {format_size(size)}" for name, size in sorted(parts.items(), key=lambda it: -it[1])[:3]
    )
    text = f"host memory: the run needs about {format_size(needed_bytes)} ({largest}, …), but {room.source}"
    if least_bytes < needed_bytes:
        advice = "give fewer proofs (-c), --partitions, proofs in flight (-j) or --workers"
        if least_bytes > room.free_bytes:
            advice = "take a smaller circuit"
        advice += f"; one partition with one worker takes {format_size(least_bytes)}"
    else:
        advice = "take a smaller circuit"
    if not room.hard:
        return f"{text}, as far as it shows; if there is no more, the system will end this process: {advice}"
    raise BadInput(f"{text}: {advice}; if there is more, say how much with --host-memory")
