"""Proving keys of snarkjs (`.zkey`) for Groth16.

Sections: 1 protocol, 2 header, 3 IC, 4 coefficients of the A and B matrices, 5 A, 6 B in G1, 7 B in G2, 8 C (private
wires), 9 H, 10 contributions. Points are affine in Montgomery form, exactly as `ProvingKey` holds them, so its point
arrays are views of the mapped file: a key of many gigabytes opens at once, and the file must stay as it is while the
key is in use.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.backends.host.encoding import gather_points
from cuzklab.backends.native import load
from cuzklab.prover.files.container import Section, open_regular, read_container, require_section, write_container
from cuzklab.prover.files.fields import FP_BYTES, FR_BYTES, first_not_below
from cuzklab.prover.files.r1cs import MAXIMUM_DOMAIN
from cuzklab.prover.model import Group, ProvingKey, SparseMatrix, VerifyingKey

TEST_KEY_SECTION = 0x7E57
"""A section type of ours. Programs that do not know it pass over it; its presence marks a key with a known trapdoor."""
TEST_KEY_TEXT = (
    b"TEST KEY, made by cuzklab from a seed: whoever has the seed can forge proofs. Never use it for real.\n"
)

SECTION_NAMES = {
    1: "protocol",
    2: "header",
    3: "IC",
    4: "coefficients",
    5: "A",
    6: "B in G1",
    7: "B in G2",
    8: "C",
    9: "H",
    10: "contributions",
    TEST_KEY_SECTION: "test key",
}
_MAGIC, _VERSION = b"zkey", 1
_GROTH16, _PROTOCOLS = 1, {2: "PLONK", 10: "FFLONK"}
_MAKE_AGAIN = "make the key again, for bls12381"
_G1_BYTES, _G2_BYTES = 2 * FP_BYTES, 4 * FP_BYTES
_COEFFICIENT = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("wire", "<u4"), ("value", "<u8", (4,))])
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class PointArray:
    """Points of one section of a key: where they lie in the file, and a view of them, (n, 12) or (n, 24) uint64."""

    section: Section
    at: int
    points: np.ndarray
    what: str = ""

    @property
    def group(self) -> Group:
        return "g1" if self.points.shape[1] == 12 else "g2"

    def __len__(self) -> int:
        return len(self.points)

    def take(self, indices: np.ndarray, out: np.ndarray) -> None:
        # The view may lie on a multiple of 4 only, which native code may not read 64-bit limbs from.
        gather_points(self.group, self.points.view(np.uint8), indices, out)

    def bad(self, index: int, what: str) -> Exception:
        """The error for something wrong with the point of this index."""
        name = self.what or f"point {index}"
        return self.section.bad(f"{name} {what}", _MAKE_AGAIN, self.at + index * self.points.shape[1] * 8)


@dataclass(frozen=True)
class KeyFile:
    """A mapped key whose sizes have been checked, its points and coefficients not yet.

    `points` has the single points of the header under alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, and
    the queries under ic, a, b_g1, b_g2, l, h.
    """

    wires: int
    public: int
    domain: int
    points: dict[str, PointArray]
    coefficients: Section
    test_only: bool


def read_zkey(path: str | os.PathLike) -> ProvingKey:
    """Read a proving key.

    The points of the five queries are read-only views of the mapped file, on multiples of 4 bytes (not always 8); the
    matrices are copies, sorted by row. That points lie on the curve and in the subgroup is checked by
    `cuzklab.prover.keycheck`, not here.

    Raises
    ------
    BadInput
        Not such a file, another protocol or field, sizes that do not agree with each other or with the file, a
        matrix, row or wire that does not exist, a number that is not below its modulus in the matrices, the header
        or IC.
    """
    file = open_zkey(path)
    a, b = _matrices(file)
    points = file.points
    return ProvingKey(
        wires=file.wires,
        public=file.public,
        domain=file.domain,
        beta_g1=points["beta_g1"].points[0].copy(),
        delta_g1=points["delta_g1"].points[0].copy(),
        vk=verifying_key(file),
        a=a,
        b=b,
        a_query=points["a"].points,
        b_g1_query=points["b_g1"].points,
        b_g2_query=points["b_g2"].points,
        l_query=points["l"].points,
        h_query=points["h"].points,
        test_only=file.test_only,
    )


def read_zkey_vk(path: str | os.PathLike) -> VerifyingKey:
    """Read only what a verifier needs from a proving key."""
    return verifying_key(open_zkey(path))


def is_zkey(path: str | os.PathLike) -> bool:
    """Whether a file says that it is a `.zkey`; keys in bellman's form say nothing."""
    with open_regular(path) as file:
        return file.read(4) == _MAGIC


def open_zkey(path: str | os.PathLike) -> KeyFile:
    """Map a key and check every size in it, without reading its points and coefficients."""
    sections = read_container(path, _MAGIC, _VERSION, SECTION_NAMES)

    def section(kind: int) -> Section:
        return require_section(sections, kind, SECTION_NAMES, path)

    section(1).require(4, "a protocol number")
    protocol = section(1).u32(0)
    if protocol != _GROTH16:
        name = _PROTOCOLS.get(protocol, f"protocol {protocol}")
        raise section(1).bad(f"a key for {name}, not Groth16", "use a key from `snarkjs groth16 setup`")
    header = section(2)
    at = header.require_prime(0, FP_MODULUS, FP_BYTES, _MAKE_AGAIN)
    at = header.require_prime(at, FR_MODULUS, FR_BYTES, _MAKE_AGAIN)
    header.require(at + 12 + 3 * _G1_BYTES + 3 * _G2_BYTES, "two moduli, three counts and six points")
    wires, public, domain = struct.unpack_from("<III", header.body, at)
    if public >= wires:
        raise header.bad(f"{public} public wires of {wires}, the constant one not counted", at=at)
    if domain & (domain - 1) or not 1 <= domain <= MAXIMUM_DOMAIN:
        raise header.bad(f"a domain of {domain}, not a power of two up to 2^28", at=at + 8)
    if public + 1 > domain:
        raise header.bad(f"a domain of {domain} has no room for {public + 1} rows of public wires", at=at + 8)

    points: dict[str, PointArray] = {}
    at += 12
    for name, limbs in (
        ("alpha_g1", 12),
        ("beta_g1", 12),
        ("beta_g2", 24),
        ("gamma_g2", 24),
        ("delta_g1", 12),
        ("delta_g2", 24),
    ):
        points[name] = PointArray(header, at, header.array("<u8", (1, limbs), at), name)
        at += limbs * 8
    for name, kind, count, limbs in (
        ("ic", 3, public + 1, 12),
        ("a", 5, wires, 12),
        ("b_g1", 6, wires, 12),
        ("b_g2", 7, wires, 24),
        ("l", 8, wires - public - 1, 12),
        ("h", 9, domain, 12),
    ):
        section(kind).require(count * limbs * 8, f"{count} points")
        points[name] = PointArray(section(kind), 0, section(kind).array("<u8", (count, limbs)))
    coefficients = section(4)
    count = coefficients.u32(0)
    coefficients.require(4 + count * _COEFFICIENT.itemsize, f"a count and {count} records")
    return KeyFile(wires, public, domain, points, coefficients, TEST_KEY_SECTION in sections)


def check_canonical(array: PointArray) -> None:
    """Refuse a coordinate that is not below the modulus."""
    coordinate = first_not_below(array.points.reshape(-1, 6), FP_MODULUS)
    if coordinate >= 0:
        per_point = array.points.shape[1] // 6
        raise array.bad(coordinate // per_point, "has a coordinate that is not below the modulus")


def verifying_key(file: KeyFile) -> VerifyingKey:
    """What a verifier needs, copied and checked to be below the modulus."""
    names = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2", "ic")
    for name in names:
        check_canonical(file.points[name])
    single = {name: file.points[name].points[0].copy() for name in names}
    return VerifyingKey(
        single["alpha_g1"], single["beta_g2"], single["gamma_g2"], single["delta_g2"], file.points["ic"].points.copy()
    )


def matrix_records(file: KeyFile) -> tuple[np.ndarray, bool]:
    """The coefficients as they lie in the file, (n, 44) uint8, each record checked; whether rows ascend.

    Raises
    ------
    BadInput
        A matrix, row or wire that does not exist, a coefficient that is not below r.
    """
    section = file.coefficients
    count = section.u32(0)
    records = section.array(np.uint8, (count, _COEFFICIENT.itemsize), at=4)
    ascending = np.ones(1, np.uint32)
    bad = load().library.fr_check_records(records.ctypes.data, count, file.domain, file.wires, ascending.ctypes.data)
    if bad >= 0:
        record = section.array(_COEFFICIENT, count, at=4)[bad]
        limits = {"matrix": 2, "row": file.domain, "wire": file.wires}
        wrong = next((name for name, limit in limits.items() if record[name] >= limit), None)
        what = f"{wrong} {record[wrong]}, there are {limits[wrong]}" if wrong else "a coefficient that is not below r"
        raise section.bad(f"record {bad}: {what}", _MAKE_AGAIN, 4 + int(bad) * _COEFFICIENT.itemsize)
    return records, bool(ascending[0])


def _matrices(file: KeyFile) -> tuple[SparseMatrix, SparseMatrix]:
    raw, _ = matrix_records(file)
    records = raw.view(_COEFFICIENT).reshape(-1)
    rows = int(records["row"].max()) + 1 if len(records) else 0
    matrices = []
    for matrix in range(2):
        mine = np.flatnonzero(records["matrix"] == matrix)
        row = records["row"][mine]
        if (row[1:] < row[:-1]).any():
            order = np.argsort(row, kind="stable")
            mine, row = mine[order], row[order]
        value = np.ascontiguousarray(records["value"][mine])
        row_start = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=rows), out=row_start[1:])
        matrices.append(SparseMatrix(row_start, np.ascontiguousarray(records["wire"][mine]), value))
    return matrices[0], matrices[1]


def write_zkey(path: str | os.PathLike, key: ProvingKey) -> None:
    """Write a proving key that snarkjs reads.

    Section 10 says that there were no contributions and has a circuit hash of zeros, as the key does not know it:
    `snarkjs zkey verify` and `contribute` are not for such a file. A key with `test_only` has one more section, of
    type 0x7e57, that says so; other programs pass over it, and `read_zkey` gives it back.
    """
    queries = [
        ("vk.ic", 3, key.vk.ic, key.public + 1, 12),
        ("h_query", 9, key.h_query, key.domain, 12),
        ("l_query", 8, key.l_query, key.wires - key.public - 1, 12),
        ("a_query", 5, key.a_query, key.wires, 12),
        ("b_g1_query", 6, key.b_g1_query, key.wires, 12),
        ("b_g2_query", 7, key.b_g2_query, key.wires, 24),
    ]
    for name, _, points, count, limbs in queries:
        if points.shape != (count, limbs) or points.dtype != np.dtype("<u8"):
            raise ValueError(f"{name} has shape {points.shape} of {points.dtype}, not {(count, limbs)} of uint64")
    if max(key.a.rows, key.b.rows) > key.domain:
        raise ValueError(f"{max(key.a.rows, key.b.rows)} rows in a domain of {key.domain}")
    vk = key.vk
    header = [
        struct.pack("<I", FP_BYTES) + FP_MODULUS.to_bytes(FP_BYTES, "little"),
        struct.pack("<I", FR_BYTES) + FR_MODULUS.to_bytes(FR_BYTES, "little"),
        struct.pack("<III", key.wires, key.public, key.domain),
        *(
            point.astype("<u8").tobytes()
            for point in (vk.alpha_g1, key.beta_g1, vk.beta_g2, vk.gamma_g2, key.delta_g1, vk.delta_g2)
        ),
    ]
    sections = [
        (1, 4, [struct.pack("<I", _GROTH16)]),
        (2, sum(map(len, header)), header),
        # IC, then the coefficients, then the queries: the order of `snarkjs groth16 setup`.
        *((kind, points.nbytes, [points]) for _, kind, points, _, _ in queries),
        (10, 68, [bytes(68)]),
    ]
    count = key.a.nonzeros + key.b.nonzeros
    sections.insert(3, (4, 4 + count * _COEFFICIENT.itemsize, _coefficient_records(key)))
    if key.test_only:
        sections.append((TEST_KEY_SECTION, len(TEST_KEY_TEXT), [TEST_KEY_TEXT]))
    with atomic_write(path) as file:
        write_container(file, _MAGIC, _VERSION, sections)


def _coefficient_records(key: ProvingKey) -> Iterator[bytes | np.ndarray]:
    yield struct.pack("<I", key.a.nonzeros + key.b.nonzeros)
    for first in range(0, max(key.a.rows, key.b.rows), _BLOCK_ROWS):
        parts = []
        for number, matrix in enumerate((key.a, key.b)):
            last = min(first + _BLOCK_ROWS, matrix.rows)
            if first >= last:
                continue
            bounds = matrix.row_start[first : last + 1]
            part = np.empty(int(bounds[-1] - bounds[0]), _COEFFICIENT)
            part["matrix"] = number
            part["row"] = np.repeat(np.arange(first, last), np.diff(bounds))
            part["wire"] = matrix.wire[bounds[0] : bounds[-1]]
            part["value"] = matrix.value[bounds[0] : bounds[-1]]
            parts.append(part)
        block = np.concatenate(parts)
        # Row by row, A before B, as snarkjs writes them: a stable sort keeps that order within a row.
        yield block[np.argsort(block["row"], kind="stable")]
