"""Encoded points against arkworks and blst, and encodings that are refused."""

import numpy as np
import pytest

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FP_MODULUS
from tests.backends.judges import GROUPS, WIDTH, from_arkworks, known_points, random_scalars, to_arkworks

both_groups = pytest.mark.parametrize("group", GROUPS)


def zcash(group: str, point: np.ndarray) -> bytes:
    """The encoding by Python's integers: big-endian, highest coordinate of Fp2 first."""
    numbers = host.limbs_to_coordinates(point)
    order = numbers if group == "g1" else (numbers[1], numbers[0], numbers[3], numbers[2])
    return b"".join(number.to_bytes(48, "big") for number in order)


def decode(group: str, data: np.ndarray, indices=None) -> np.ndarray:
    count = len(data) if indices is None else len(indices)
    out = np.empty((count, WIDTH[group]), np.uint64)
    host.decode_points(group, data, None if indices is None else np.array(indices, np.uint32), out)
    return out


@both_groups
def test_encoding_and_decoding(field_path, group):
    points, _ = known_points(group, 20)
    encoded = host.encode_points(group, points)
    assert [bytes(row) for row in encoded] == [zcash(group, point) for point in points]
    assert np.array_equal(decode(group, encoded), points)
    assert np.array_equal(decode(group, encoded, [19, 0, 0, 7]), points[[19, 0, 0, 7]])
    # From an address that is no multiple of anything.
    shifted = np.frombuffer(b"x" + encoded.tobytes(), np.uint8, offset=1).reshape(encoded.shape)
    assert np.array_equal(decode(group, shifted), points)
    infinity = host.encode_points(group, np.zeros((1, WIDTH[group]), np.uint64))
    assert bytes(infinity[0]) == b"\x40" + bytes(infinity.shape[1] - 1)


@both_groups
def test_what_is_no_encoding_is_refused_with_its_place(field_path, group):
    points, _ = known_points(group, 6)
    good = host.encode_points(group, points)
    width = good.shape[1]

    def refused(change) -> host.Refused:
        data = good.copy()
        change(data[4])
        with pytest.raises(host.Refused) as caught:
            decode(group, data, [5, 0, 4])
        assert caught.value.place == 2
        return caught.value

    for flag, why in ((0x80, "compressed"), (0x40, "infinity"), (0x20, "sign")):
        assert why in refused(lambda row, flag=flag: row.__setitem__(0, row[0] | flag)).why
    modulus = np.frombuffer(FP_MODULUS.to_bytes(48, "big"), np.uint8)
    for at in range(0, width, 48):
        assert "modulus" in refused(lambda row, at=at: row.__setitem__(slice(at, at + 48), modulus)).why
    with pytest.raises(IndexError):
        decode(group, good, [6])


@both_groups
def test_gathering_from_an_address_of_any_alignment(field_path, group):
    points, _ = known_points(group, 40)
    raw = np.frombuffer(b"1234" + points.tobytes(), np.uint8, offset=4).reshape(40, -1)
    indices = np.array([39, 3, 3, 0, *range(30)], np.uint32)
    out = np.empty((len(indices), WIDTH[group]), np.uint64)
    host.gather_points(group, raw, indices, out)
    assert np.array_equal(out, points[indices])


@both_groups
def test_multiples_of_many_points_with_every_special_case(field_path, group):
    """Chunks, infinity, equal points, cofactor points: scalars count as integers, so no order is taken for granted."""
    from tests.backends.judges import curve_point

    points, _ = known_points(group, 37)
    points = np.concatenate([points, points[:3], np.zeros((1, WIDTH[group]), np.uint64), curve_point(group)[None]])
    scalars = [k % 2**128 for k in random_scalars(len(points), 8)]
    scalars[:8] = [0, 1, 2, 3, 2**128 - 1, 2**127, 2**64, 2**64 - 1]
    multiply = getattr(host, f"multiply_each_{group}")
    found = multiply(points, host.ints_to_limbs(scalars, 2), threads=2)
    expected = [
        from_arkworks(group, _times(to_arkworks(group, point), k)) for point, k in zip(points, scalars, strict=True)
    ]
    assert np.array_equal(found, np.stack(expected))


def _times(point, k: int):
    """k·P by additions alone: the point may lie outside the subgroup."""
    total, power = type(point).identity(), point
    while k:
        if k & 1:
            total = total + power
        power, k = power + power, k >> 1
    return total


def test_chunks_do_not_mix(field_path):
    n = 2049  # one more than a chunk
    points, logarithms = known_points("g1", n)
    found = host.multiply_each_g1(points, host.ints_to_limbs([3] * n, 2))
    assert np.array_equal(
        found, host.fixed_base_g1(host.ints_to_limbs([3 * k % host.FR_MODULUS for k in logarithms], 4))
    )
    points[n - 1] = _cofactor_point()
    assert host.in_subgroup_g1(points) == n - 1


def _cofactor_point() -> np.ndarray:
    from tests.prover.special_points import cofactor_point_g1

    return host.coordinates_to_limbs(cofactor_point_g1())
