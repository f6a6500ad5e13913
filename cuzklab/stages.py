"""The table of stages: where each runs, what it reads and writes, and its bytes and work as formulas.

One row of `STAGES` is all there is to a stage: the live interpreter runs the function of that name, the simulator
charges `work` at the hardware profile's rate and streams `streamed_bytes`, the checker counts `scratch_bytes`. What
`reads` and `writes` say is the order that every design must keep: nothing may read what has yet to be written (`FLOW`).
The formulas are those of the engine that `cuzklab` models; sizes in GiB for a 32 GiB PoRep partition stand beside
them, and tests compare.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

G1_BYTES, G2_BYTES, SCALAR_BYTES = 96, 192, 32
G1_BUCKET_BYTES, G2_BUCKET_BYTES = 192, 384  # XYZZ coordinates
SCALAR_BITS = 255


@dataclass(frozen=True)
class CircuitShape:
    """The numbers of one partition's circuit that sizes and costs depend on.

    Attributes
    ----------
    constraints, aux, inputs : int
        Rows; private variables; public variables with the constant one.
    a_density, b_density : int
        Variables that occur in A and in B, inputs included: points of those queries.
    nonzeros : int
        Entries of the three constraint matrices together.
    tail_share : float
        Part of the scalars that are neither 0 nor 1: they go through Pippenger, the ones through masked sums.
    """

    name: str
    constraints: int
    aux: int
    inputs: int
    a_density: int
    b_density: int
    nonzeros: int
    tail_share: float

    @property
    def domain(self) -> int:
        """Rows of the evaluation domain, the power of two that holds constraints and inputs."""
        return 1 << (self.constraints + self.inputs - 1).bit_length()

    def points(self, query: str) -> int:
        """Points of a query of the key: ``h l a b_g1 b_g2``."""
        return {"h": self.domain, "l": self.aux, "a": self.a_density, "b_g1": self.b_density, "b_g2": self.b_density}[
            query
        ]

    def point_bytes(self, query: str) -> int:
        return self.points(query) * (G2_BYTES if query == "b_g2" else G1_BYTES)

    def tail(self, query: str) -> int:
        """Scalars of a query that are neither 0 nor 1 (every one of H's)."""
        return self.domain if query == "h" else round(self.points(query) * self.tail_share)

    @property
    def abc_bytes(self) -> int:
        """The evaluations a, b, c that synthesis leaves and the device takes: 11.65 GiB."""
        return 3 * SCALAR_BYTES * self.constraints

    @property
    def aux_bytes(self) -> int:
        return SCALAR_BYTES * self.aux

    @property
    def key_bytes(self) -> int:
        """All queries of the proving key: 44.12 GiB."""
        return sum(self.point_bytes(query) for query in ("h", "l", "a", "b_g1", "b_g2"))

    @property
    def constraint_bytes(self) -> int:
        """The compiled constraint matrices in compressed rows: 25.68 GiB."""
        return 36 * self.nonzeros + 12 * self.constraints

    @property
    def synthesised_bytes(self) -> int:
        """Host memory of a partition from the end of synthesis until it is proved: a, b, c, aux: 15.5 GiB."""
        return self.abc_bytes + self.aux_bytes


# The 32 GiB PoRep partition. The share of the tail is not published; 0.05 is inferred: tail MSMs over L, A and B_G1
# take 83–125 ms beside an H-MSM of the same machine that takes ≈ 300 ms for 2^27 scalars.
POREP_32G = CircuitShape(
    "porep-32g", 130_278_869, 130_169_893, 328, 129_753_292 + 328, 33_112_281 + 1,
    309_405_051 + 130_327_340 + 282_656_500, 0.05,
)  # fmt: skip


@dataclass(frozen=True)
class DeviceModel:
    """What of a device the byte formulas depend on: its multiprocessors."""

    multiprocessors: int = 70


def msm_window_bits(points: int) -> int:
    """Window of the MSM, in bits: 17 for a PoRep partition, one fewer for each halving of the points, at least 4."""
    return min(max(max(points, 1).bit_length() - 11, 4), 17)


def msm_scratch_bytes(points: int, device: DeviceModel) -> int:
    """Buckets and temporaries of an MSM on the device.

    Buckets take (nwin·2^(w−1) + 8·SM)·192 + 4·nwin·2^(w−1) bytes, temporaries s·(16 + 4·nwin + 192). The stride s is
    inferred from the 1.6 GiB that the modelled engine was seen to use for 2^27 points: ⌈points / 21⌉.
    """
    if points == 0:
        return 0
    window_bits = msm_window_bits(points)
    windows = math.ceil(SCALAR_BITS / window_bits)
    buckets = windows << (window_bits - 1)
    stride = -(-points // 21)
    return (buckets + 8 * device.multiprocessors) * G1_BUCKET_BYTES + 4 * buckets + stride * (16 + 4 * windows + 192)


def batch_add_scratch_bytes(points: int, affine_bytes: int, device: DeviceModel) -> int:
    """Double buffer of point slices, partial sums and the bitmap: 2·B·affine + 8·SM·bucket + bitmap.

    B = 1024·⌈⌈n/1024⌉/8⌉ points are on the device at a time.
    """
    if points == 0:
        return 0
    blocks = -(-points // 1024)
    slice_points = 1024 * -(-blocks // 8)
    return 2 * slice_points * affine_bytes + 8 * device.multiprocessors * 2 * affine_bytes + -(-points // 8)


_Formula = Callable[[CircuitShape, str], int]


@dataclass(frozen=True)
class Stage:
    """One row of the table.

    Attributes
    ----------
    processor : {"cpu", "gpu"}
    parts : tuple of str
        A stage that runs once for each of several queries names them; otherwise one empty part.
    reads, writes : tuple of str
        Names of the data that it takes and leaves. A stage with parts leaves its data once for each part, and whoever
        reads them needs all. What no stage writes (the key, the circuit) is there from the start.
    work_unit : str
        What `work` counts; a hardware profile states the rate in this unit a second, under the stage's name.
    work : (shape, part) -> int
    streamed_bytes : (shape, part) -> int
        Bytes that cross to the device while the stage runs.
    scratch_bytes : (shape, part, device) -> int
        Device memory that it takes at its start and gives back at its end.
    host_traffic_bytes : (shape, part) -> int
        Bytes to and from host memory: what competes for its bandwidth.
    """

    name: str
    processor: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    work_unit: str
    work: _Formula
    parts: tuple[str, ...] = ("",)
    streamed_bytes: _Formula = lambda shape, part: 0
    scratch_bytes: Callable[[CircuitShape, str, DeviceModel], int] = lambda shape, part, device: 0
    host_traffic_bytes: _Formula = lambda shape, part: 0
    explanation: str = ""


def _bitmap_bytes(shape: CircuitShape, query: str) -> int:
    return -(-shape.points(query) // 8)


EVALUATIONS, UPLOADED, PROOF = ("a", "b", "c"), ("a, b, c on the device",), "proof"

_TABLE = (
    Stage(
        "synthesis", "cpu", ("circuit", "witness inputs"), (*EVALUATIONS, "aux"), "nonzeros",
        lambda shape, part: shape.nonzeros,
        # Each entry of the matrices is read once with a 32-byte variable; a, b, c and aux are written.
        host_traffic_bytes=lambda shape, part: shape.constraint_bytes + 32 * shape.nonzeros + shape.synthesised_bytes,
        explanation="witness generation and three sparse matrix–vector products",
    ),
    Stage(
        "prep_msm", "cpu", ("aux", "key"), ("bitmaps", "tails"), "scalars",
        lambda shape, part: shape.points("l") + shape.points("a") + shape.points("b_g1"),
        host_traffic_bytes=lambda shape, part: sum(
            SCALAR_BYTES * shape.points(query) + 2 * G1_BYTES * shape.tail(query) for query in ("l", "a", "b_g1")
        ),
        explanation="classifies scalars as 0, 1 or other, builds bitmaps, gathers the tails",
    ),
    Stage(
        "ntt_h", "gpu", UPLOADED, ("h",), "butterflies",
        lambda shape, part: 7 * shape.domain * (shape.domain.bit_length() - 1) // 2,
        explanation="inverse and coset transforms of a, b, c; a·b − c over the vanishing polynomial",
    ),
    Stage(
        "h_msm", "gpu", ("h", "h query"), ("h sum",), "points",
        lambda shape, part: shape.points("h"),
        streamed_bytes=lambda shape, part: shape.point_bytes("h"),
        scratch_bytes=lambda shape, part, device: msm_scratch_bytes(shape.points("h"), device),
        explanation="Pippenger over the H query; scalars are on the device, points stream",
    ),
    Stage(
        "batch_add", "gpu", ("bitmaps", "key"), ("sums of ones",), "points",
        lambda shape, part: shape.points(part) * (3 if part == "b_g2" else 1),
        parts=("l", "a", "b_g1", "b_g2"),
        streamed_bytes=lambda shape, part: shape.point_bytes(part) + _bitmap_bytes(shape, part),
        scratch_bytes=lambda shape, part, device: batch_add_scratch_bytes(
            shape.points(part), G2_BYTES if part == "b_g2" else G1_BYTES, device
        ),
        explanation="sums of the points whose scalar is 1; all points stream past a bitmap",
    ),
    Stage(
        "tail_msm", "gpu", ("tails",), ("tail sums",), "points",
        lambda shape, part: shape.tail(part),
        parts=("l", "a", "b_g1"),
        streamed_bytes=lambda shape, part: shape.tail(part) * (G1_BYTES + SCALAR_BYTES),
        scratch_bytes=lambda shape, part, device: msm_scratch_bytes(shape.tail(part), device),
        explanation="Pippenger over the scalars that are neither 0 nor 1",
    ),
    Stage(
        "b_g2_msm", "cpu", ("tails",), ("b_g2 tail sum",), "points",
        lambda shape, part: shape.tail("b_g2"),
        host_traffic_bytes=lambda shape, part: shape.tail("b_g2") * (G2_BYTES + SCALAR_BYTES),
        explanation="Pippenger over G2 for the tail of B, on a pool of CPU threads",
    ),
    Stage(
        "epilogue", "cpu", ("h sum", "sums of ones", "tail sums", "b_g2 tail sum"), (PROOF,), "proofs",
        lambda shape, part: 1,
        explanation="assembles A, B, C and makes them affine",
    ),
)  # fmt: skip

STAGES: Mapping[str, Stage] = MappingProxyType({stage.name: stage for stage in _TABLE})


@dataclass(frozen=True)
class DataFlow:
    """Which data of a partition are read and written by which step.

    Attributes
    ----------
    reads, writes : mapping of (str, str) to tuple of str
        Names of data, by stage and part; ``("upload", "")`` is the copy to the device. Only data that some step writes.
    """

    reads: Mapping[tuple[str, str], tuple[str, ...]]
    writes: Mapping[tuple[str, str], tuple[str, ...]]


def _data_flow() -> DataFlow:
    """The flow of data that the table of stages and the upload come to."""
    upload = Stage("upload", "", EVALUATIONS, UPLOADED, "", lambda shape, part: 0)
    steps = [(one, part) for one in (*_TABLE, upload) for part in one.parts]

    def written(one: Stage, part: str) -> tuple[str, ...]:
        return tuple(f"{name} ({part})" if part else name for name in one.writes)

    def read(one: Stage) -> tuple[str, ...]:
        writers = ((other, part, name) for name in one.reads for other, part in steps if name in other.writes)
        return tuple(written(other, part)[other.writes.index(name)] for other, part, name in writers)

    return DataFlow(
        MappingProxyType({(one.name, part): read(one) for one, part in steps}),
        MappingProxyType({(one.name, part): written(one, part) for one, part in steps}),
    )


FLOW = _data_flow()
NO_FLOW = DataFlow(MappingProxyType({}), MappingProxyType({}))


@dataclass(frozen=True)
class PartitionSizes:
    """Bytes of one partition's buffers, as a policy sees them.

    `scratch` is keyed by (stage, part). `flow` is what interpreters hold the order of stages to: that of the table for
    real partitions, none for the small systems of tests.
    """

    abc: int
    d_a: int
    d_bc: int
    scratch: Mapping[tuple[str, str], int]
    flow: DataFlow = NO_FLOW


def partition_sizes(shape: CircuitShape, device: DeviceModel | None = None) -> PartitionSizes:
    """Byte sizes of a partition of the given shape: d_a = 32·D (4 GiB), d_bc = 64·D (8 GiB), scratch of each stage."""
    device = device or DeviceModel()
    scratch = {
        (stage.name, part): stage.scratch_bytes(shape, part, device)
        for stage in STAGES.values()
        if stage.processor == "gpu"
        for part in stage.parts
    }
    domain = shape.domain
    d_a, d_bc = SCALAR_BYTES * domain, 2 * SCALAR_BYTES * domain
    return PartitionSizes(shape.abc_bytes, d_a, d_bc, MappingProxyType(scratch), FLOW)
