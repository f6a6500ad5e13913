"""Keys in bellman's form: `.params` (Zcash, bellperson, Filecoin) and `.vk`, the part of it that a verifier needs.

A `.vk` is α1, β1, β2, γ2, δ1, δ2 and IC; `.params` goes on with the arrays h, l, a, b_g1, b_g2. An array is a u32
big-endian count and its points in Zcash's encoding without compression (`kernels/host/encoding.h`); none holds the
point at infinity. There is no magic and no version. What follows the last array is a ceremony's record and is passed
over; keys of ours end in a sentence there that marks a test key.

Arrays stay in the mapped file and are decoded a piece at a time: the file must stay as it is while the key is in use.
"""

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.backends.host.encoding import Refused, decode_points, encode_points
from cuzklab.errors import BadInput
from cuzklab.prover.files.container import open_regular, printable
from cuzklab.prover.files.r1cs import MAXIMUM_DOMAIN
from cuzklab.prover.files.zkey import TEST_KEY_TEXT
from cuzklab.prover.model import BellmanKey, Group, VerifyingKey

_BYTES = {"g1": 96, "g2": 192}
_SINGLE = {"alpha_g1": "g1", "beta_g1": "g1", "beta_g2": "g2", "gamma_g2": "g2", "delta_g1": "g1", "delta_g2": "g2"}
_ARRAYS = {"h": "g1", "l": "g1", "a": "g1", "b_g1": "g1", "b_g2": "g2"}
_SINGLE_BYTES = sum(_BYTES[group] for group in _SINGLE.values())
_GET_AGAIN = "get the key again from its source"
_BLOCK_POINTS = 1 << 14


@dataclass(frozen=True)
class EncodedPoints:
    """Points of one array of a mapped key: see `model.Points`.

    Attributes
    ----------
    file, name : str
        For messages.
    offset : int
        Of the first point, in bytes from the beginning of the file.
    data : (n, 96) or (n, 192) uint8
        A view of the file.
    """

    file: str
    name: str
    group: Group
    offset: int
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.data)

    def take(self, indices: np.ndarray, out: np.ndarray) -> None:
        try:
            decode_points(self.group, self.data, indices, out)
        except Refused as refused:
            raise self.bad(int(indices[refused.place]), refused.why) from None

    def bad(self, index: int, what: str) -> BadInput:
        at = self.offset + index * self.data.shape[1]
        where = f"point {index} of {self.name}" if len(self) > 1 else self.name
        return BadInput(f"{self.file}: {where} at offset {at} {what}; {_GET_AGAIN}")


def read_params(path: str | os.PathLike) -> BellmanKey:
    """Map a `.params` file.

    The five arrays are `EncodedPoints`; what is no point's encoding shows when it is decoded. That points lie on the
    curve and in the subgroup is checked by `cuzklab.prover.keycheck`.

    Raises
    ------
    BadInput
        Too short for its counts, counts that no circuit has, a point of the part for verifiers that is no canonical
        encoding, or infinity.
    """
    arrays, end, data = point_arrays(path, _ARRAYS)
    inputs, private, a, h = (len(arrays[name]) for name in ("ic", "l", "a", "h"))
    if len(arrays["b_g1"]) != len(arrays["b_g2"]):
        raise _refuse(path, f"{len(arrays['b_g1'])} points of b_g1 and {len(arrays['b_g2'])} of b_g2")
    if not inputs <= a <= inputs + private or len(arrays["b_g1"]) > inputs + private:
        raise _refuse(
            path, f"{a} points of a and {len(arrays['b_g1'])} of b_g1 for {inputs} inputs and {private} other wires"
        )
    if (h + 1) & h or h + 1 > MAXIMUM_DOMAIN:
        raise _refuse(path, f"{h} points of h, not one fewer than a power of two up to 2^28")
    single = _decoded(arrays)
    return BellmanKey(
        single["beta_g1"][0],
        single["delta_g1"][0],
        _verifying_key(single),
        **{name: arrays[name] for name in _ARRAYS},
        test_only=bytes(data[end:]) == TEST_KEY_TEXT,
    )


def read_bellman_vk(path: str | os.PathLike) -> VerifyingKey:
    """Read a `.vk` file, or the beginning of a `.params` file, which is the same."""
    return _verifying_key(_decoded(point_arrays(path, {})[0]))


def _refuse(path: str | os.PathLike, what: str) -> BadInput:
    return BadInput(f"{printable(path)}: {what}: no key in bellman's form; {_GET_AGAIN}")


def point_arrays(
    path: str | os.PathLike, wanted: dict[str, Group] = _ARRAYS
) -> tuple[dict[str, EncodedPoints], int, memoryview]:
    """All points of a mapped file by name, the single ones as arrays of one; where they end, and the file's bytes."""
    file = printable(path)
    with open_regular(path) as handle:
        size = os.fstat(handle.fileno()).st_size
        if size < _SINGLE_BYTES + 4:
            raise BadInput(f"{file}: {size} bytes, too short for a key in bellman's form; check the path")
        data = memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    arrays, at = {}, 0
    for name, group in (*_SINGLE.items(), ("ic", "g1"), *wanted.items()):
        count = 1
        if name not in _SINGLE:
            if len(data) - at < 4:
                raise BadInput(f"{file}: ends at byte {len(data)}, before the count of {name}; {_GET_AGAIN}")
            count, at = int.from_bytes(data[at : at + 4], "big"), at + 4
        length = count * _BYTES[group]
        if length > len(data) - at:
            raise BadInput(
                f"{file}: {count} points of {name} at offset {at}, {len(data) - at} bytes are left; {_GET_AGAIN}"
            )
        view = np.frombuffer(data, np.uint8, length, at) if length else np.empty(0, np.uint8)
        arrays[name] = EncodedPoints(file, name, group, at, view.reshape(count, _BYTES[group]))
        at += length
    if not len(arrays["ic"]):
        raise BadInput(f"{file}: no point of ic, which has one for the constant one at least; {_GET_AGAIN}")
    return arrays, at, data


def _decoded(arrays: dict[str, EncodedPoints]) -> dict[str, np.ndarray]:
    """The points that verifiers need, and β1 and δ1, decoded."""
    result = {}
    for name in (*_SINGLE, "ic"):
        array = arrays[name]
        result[name] = np.empty((len(array), array.data.shape[1] // 8), np.uint64)
        array.take(np.arange(len(array), dtype=np.uint32), result[name])
    return result


def _verifying_key(points: dict[str, np.ndarray]) -> VerifyingKey:
    single = (points[name][0] for name in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2"))
    return VerifyingKey(*single, points["ic"])


def write_params(path: str | os.PathLike, key: BellmanKey) -> None:
    """Write a key that bellman and bellperson read. A test key ends in a sentence that says so, where a ceremony would
    have its record."""
    with atomic_write(path) as file:
        for piece in _verifier_part(key.vk, key.beta_g1, key.delta_g1):
            file.write(piece)
        for name, group in _ARRAYS.items():
            points = getattr(key, name)
            file.write(len(points).to_bytes(4, "big"))
            for begin in range(0, len(points), _BLOCK_POINTS):
                file.write(_encoded(group, name, points[begin : begin + _BLOCK_POINTS]))
        if key.test_only:
            file.write(TEST_KEY_TEXT)


def write_bellman_vk(path: str | os.PathLike, key: BellmanKey) -> None:
    """Write the part of a key that verifiers need (`.vk`)."""
    with atomic_write(path) as file:
        for piece in _verifier_part(key.vk, key.beta_g1, key.delta_g1):
            file.write(piece)


def _verifier_part(vk: VerifyingKey, beta_g1: np.ndarray, delta_g1: np.ndarray) -> Iterator[bytes]:
    single = {"beta_g1": beta_g1, "delta_g1": delta_g1}
    for name, group in _SINGLE.items():
        yield _encoded(group, name, np.atleast_2d(single[name] if name in single else getattr(vk, name)))
    yield len(vk.ic).to_bytes(4, "big")
    yield _encoded("g1", "ic", vk.ic)


def _encoded(group: Group, name: str, points: np.ndarray) -> bytes:
    if len(points) and not points.any(axis=1).all():
        raise ValueError(f"{name} has the point at infinity, which bellman's files do not hold")
    return encode_points(group, np.ascontiguousarray(points)).tobytes()
