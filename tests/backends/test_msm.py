"""Sums of points against arkworks, blst and known discrete logarithms, on random and on hostile input."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuzklab.backends import host, peers
from cuzklab.backends.bls12_381 import FP_MODULUS
from cuzklab.backends.host import msm as msm_module
from cuzklab.backends.host import parallel
from tests.backends.judges import (
    GROUPS,
    WIDTH,
    R,
    arkworks_msm,
    curve_point,
    function,
    generator_multiple,
    known_points,
    random_scalars,
    scalars_to_limbs,
)

both_groups = pytest.mark.parametrize("group", GROUPS)


def msm(group, points, scalars, **options):
    return function("msm", group)(points, scalars_to_limbs(scalars), **options)


def dot(a: list[int], b: list[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


@both_groups
@pytest.mark.parametrize("n", [1, 2, 3, 31, 400])
def test_random_input_against_arkworks(field_path, group, n):
    points, _ = known_points(group, n)
    scalars = random_scalars(n, 3)
    assert (msm(group, points, scalars) == arkworks_msm(group, points, scalars)).all()


@both_groups
def test_several_thousand_points_against_blst(field_path, group):
    n = 6000 if group == "g1" else 2500
    points, logarithms = known_points(group, n)
    scalars = random_scalars(n, 4)
    expected = peers.blst_msm(points, scalars_to_limbs(scalars))
    assert (expected == generator_multiple(group, dot(scalars, logarithms))).all()
    for threads in (1, 2, 3):
        assert (msm(group, points, scalars, threads=threads) == expected).all()


HOSTILE_SCALARS = {
    "all zero": lambda n: [0] * n,
    "all one": lambda n: [1] * n,
    "all r - 1": lambda n: [R - 1] * n,
    "all equal": lambda n: [random_scalars(1, 9)[0]] * n,
    "one against its negative": lambda n: [1 if i % 2 else R - 1 for i in range(n)],
    "0, 1, r - 1 in turn": lambda n: [(0, 1, R - 1)[i % 3] for i in range(n)],
    "halves of windows": lambda n: [(1 << (13 * (i % 19) + 12)) % R for i in range(n)],
    "largest digits": lambda n: [R - 1 - i for i in range(n)],
}


@both_groups
@pytest.mark.parametrize("kind", HOSTILE_SCALARS)
def test_hostile_scalars(field_path, group, kind):
    n = 700
    points, logarithms = known_points(group, n)
    scalars = HOSTILE_SCALARS[kind](n)
    expected = generator_multiple(group, dot(scalars, logarithms))
    for threads in (1, 2, 3):
        assert (msm(group, points, scalars, threads=threads) == expected).all()


def hostile_points(group: str, kind: str, n: int) -> tuple[np.ndarray, list[int]]:
    points, logarithms = known_points(group, n)
    negate = function("neg", group)
    for i in range(n):
        if kind == "one point":
            points[i], logarithms[i] = points[0], logarithms[0]
        elif kind == "pairs of opposites" and i % 2:
            points[i], logarithms[i] = negate(points[i - 1]), -logarithms[i - 1]
        elif kind == "one point and its negative":
            points[i] = points[0] if i % 3 else negate(points[0])
            logarithms[i] = logarithms[0] if i % 3 else -logarithms[0]
            if i == 0:
                points[0], logarithms[0] = negate(points[0]), -logarithms[0]
        elif kind == "infinity everywhere" or (kind == "every other at infinity" and i % 2):
            points[i], logarithms[i] = 0, 0
        elif kind == "small multiples":
            points[i], logarithms[i] = generator_multiple(group, i % 5), i % 5
    return points, logarithms


@both_groups
@pytest.mark.parametrize(
    "kind",
    [
        "one point",
        "pairs of opposites",
        "one point and its negative",
        "infinity everywhere",
        "every other at infinity",
        "small multiples",
    ],
)
@pytest.mark.parametrize("scalars", ["random", "all equal", "one against its negative"])
def test_hostile_points(field_path, group, kind, scalars):
    n = 300
    points, logarithms = hostile_points(group, kind, n)
    values = random_scalars(n, 5) if scalars == "random" else HOSTILE_SCALARS[scalars](n)
    assert (msm(group, points, values) == generator_multiple(group, dot(values, logarithms))).all()


@both_groups
def test_exceptional_pairs_among_regular_ones(field_path, group):
    # Few different points and few different scalars: every level of the tree meets equal, opposite and infinite points.
    base, base_logarithms = known_points(group, 24)
    choice = random.Random(12)
    n = 3000
    points, logarithms = np.zeros((n, WIDTH[group]), np.uint64), []
    negative = np.stack([function("neg", group)(point) for point in base])
    for i in range(n):
        k = choice.randrange(30)
        logarithms.append(0 if k >= 24 else base_logarithms[k] * (-1) ** (i % 2))
        if k < 24:
            points[i] = (base, negative)[i % 2][k]
    few = [1, 2, R - 1, *random_scalars(4, 13)]
    scalars = [choice.choice(few) for _ in range(n)]
    for threads in (1, 2):
        assert (
            msm(group, points, scalars, threads=threads) == generator_multiple(group, dot(scalars, logarithms))
        ).all()


def test_points_with_a_zero_coordinate_are_not_infinity(field_path):
    # (0, ±2) lies on G1's curve, outside the subgroup: a point of order three.
    zero_x = np.stack([host.coordinates_to_limbs((0, y)) for y in (2, FP_MODULUS - 2)])
    assert host.on_curve_g1(zero_x) == -1 and not host.mul_g1(zero_x[0], 3).any()
    regular, _ = known_points("g1", 40)
    for pick in ([0], [0, 0], [0, 1], [0, 0, 0], [1, 0, 0, 1, 1], [0, 1] * 15 + [0]):
        points = np.concatenate([regular, zero_x[pick], np.zeros((3, 12), np.uint64), regular[:5]])
        for scalars in ([1] * len(points), random_scalars(len(points), 14)):
            assert (msm("g1", points, scalars) == arkworks_msm("g1", points, scalars)).all()
        bits = np.full(-(-len(points) // 64), 2**64 - 1, np.uint64)
        assert (host.masked_sum_g1(points, bits) == arkworks_msm("g1", points, [1] * len(points))).all()
    # A coordinate of Fp2 with one zero part.
    points, _ = known_points("g2", 40)
    points[7:10] = curve_point("g2")
    assert not points[7, 6:12].any()
    for scalars in ([1] * 40, random_scalars(40, 15)):
        assert (msm("g2", points, scalars) == arkworks_msm("g2", points, scalars)).all()


@pytest.mark.parametrize("n", [*range(1, 20), 4095, 4096, 4097, 8192 + 17])
def test_sums_of_every_length(field_path, n):
    # Lanes and groups that are just full, or one short or beyond.
    base, logarithms = known_points("g1", 64)
    points = np.ascontiguousarray(base[np.arange(n) * 29 % 64])
    total = sum(logarithms[i * 29 % 64] for i in range(n))
    bitmap = np.full(-(-n // 64), 2**64 - 1, np.uint64)
    assert (host.masked_sum_g1(points, bitmap, threads=1) == generator_multiple("g1", total)).all()
    assert (msm("g1", points, [1] * n, threads=1) == generator_multiple("g1", total)).all()


@both_groups
def test_points_outside_the_subgroup_count_with_integer_scalars(field_path, group):
    point = curve_point(group)
    scalars = random_scalars(5, 6)
    expected = function("mul", group)(point, sum(scalars))  # not reduced modulo r: the point's order is another
    assert (msm(group, np.stack([point] * 5), scalars) == expected).all()


@both_groups
def test_a_bucket_larger_than_a_group_of_the_tree(field_path, group):
    # All points meet in one bucket of each window, and the tree works in groups of 8192 entries.
    base, logarithms = known_points(group, 64)
    n = 20_000 if group == "g1" else 9000
    index = np.arange(n) % 64
    scalar = random_scalars(1, 7)[0]
    total = sum(logarithms[i] for i in index)
    assert (msm(group, base[index], [scalar] * n) == generator_multiple(group, scalar * total)).all()


@both_groups
def test_no_points(group):
    nothing = np.zeros((0, WIDTH[group]), np.uint64)
    assert not msm(group, nothing, []).any()
    assert not function("masked_sum", group)(nothing, np.zeros(0, np.uint64)).any()
    assert function("fixed_base", group)(scalars_to_limbs([])).shape == (0, WIDTH[group])


def test_parts_of_the_points_merge(monkeypatch):
    monkeypatch.setattr(msm_module, "_CHUNK_POINTS", 700)
    points, logarithms = known_points("g1", 2000)
    scalars = random_scalars(2000, 8)
    expected = generator_multiple("g1", dot(scalars, logarithms))
    for threads in (1, 2):
        assert (msm("g1", points, scalars, threads=threads) == expected).all()


def test_more_threads_than_windows_split_the_points(field_path):
    points, logarithms = known_points("g1", 5000)
    scalars = random_scalars(5000, 8)
    assert (msm("g1", points, scalars, threads=40) == generator_multiple("g1", dot(scalars, logarithms))).all()


@both_groups
@pytest.mark.parametrize("fill", ["none", "all", "random", "last"])
def test_masked_sum(field_path, group, fill):
    n = 3001
    points, logarithms = known_points(group, n)
    points[5], logarithms[5] = points[4], logarithms[4]
    points[7], logarithms[7] = function("neg", group)(points[6].copy()), -logarithms[6]
    points[8], logarithms[8] = 0, 0
    words = -(-n // 64)
    bitmap = {
        "none": np.zeros(words, np.uint64),
        "all": np.full(words, 2**64 - 1, np.uint64),  # the bits behind n are set too
        "random": np.random.default_rng(3).integers(0, 2**64, words, dtype=np.uint64),
        "last": np.array([0] * (words - 1) + [1 << ((n - 1) % 64)], np.uint64),
    }[fill]
    chosen = [i for i in range(n) if int(bitmap[i // 64]) >> (i % 64) & 1]
    expected = generator_multiple(group, sum(logarithms[i] for i in chosen))
    for threads in (1, 2, 3):
        assert (function("masked_sum", group)(points, bitmap, threads=threads) == expected).all()


def test_masked_sum_on_threads_equals_that_of_one_and_of_blst(field_path):
    base, _ = known_points("g1", 256)
    points = np.ascontiguousarray(base[np.arange(20_000) * 37 % 256])
    bitmap = np.random.default_rng(4).integers(0, 2**64, -(-20_000 // 64), dtype=np.uint64)
    chosen = points[[bool(int(bitmap[i // 64]) >> (i % 64) & 1) for i in range(len(points))]]
    expected = peers.blst_sum(chosen)
    for threads in (1, 2, 3):
        assert (host.masked_sum_g1(points, bitmap, threads=threads) == expected).all()


@both_groups
def test_fixed_base(field_path, group):
    scalars = [0, 1, 2, R - 1, R - 2, *random_scalars(40)]
    points = function("fixed_base", group)(scalars_to_limbs(scalars))
    for point, k in zip(points, scalars, strict=True):
        assert (point == generator_multiple(group, k)).all()
    again = function("fixed_base", group)(scalars_to_limbs(scalars), base=points[5].copy(), threads=3)
    for point, k in zip(again, scalars, strict=True):
        assert (point == generator_multiple(group, k * scalars[5])).all()
    infinity = function("fixed_base", group)(scalars_to_limbs(scalars), base=np.zeros(WIDTH[group], np.uint64))
    assert not infinity.any()


def test_fixed_base_of_many_scalars_uses_wider_windows():
    scalars = random_scalars(5000)
    points = host.fixed_base_g1(scalars_to_limbs(scalars), threads=2)
    assert host.on_curve_g1(points) == -1
    weights = random_scalars(5000, 11)
    assert (msm("g1", points, weights) == generator_multiple("g1", dot(scalars, weights))).all()


def set_bits(bitmap):
    return np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little"))


def whole_query(scalars):
    """The classes of scalars of which each has a point."""
    every = np.packbits(np.arange(-(-len(scalars) // 64) * 64) < len(scalars), bitorder="little").view(np.uint64)
    return host.classes_of_query(host.classify(scalars), every, len(scalars))


def test_classify_and_gather(field_path):
    scalars = [0, 1, 2, 1, 0, R - 1, 1 << 64, 1 << 128, (1 << 64) + 1, *([1] * 60), 0, 7]
    classes = host.classify(scalars_to_limbs(scalars))
    assert set_bits(classes.ones).tolist() == [i for i, k in enumerate(scalars) if k == 1]
    assert set_bits(classes.others).tolist() == [i for i, k in enumerate(scalars) if k > 1]
    assert (classes.zero_count, classes.one_count, classes.other_count) == (3, 62, 6) and classes.ones.shape == (2,)
    assert host.count_bits(classes.ones) == 62
    points, _ = known_points("g1", 4)
    assert (host.gather(points, np.array([3, 0], np.uint32)) == points[[3, 0]]).all()
    with pytest.raises(IndexError):
        host.gather(points, np.array([4], np.uint32))
    assert (host.gather_rows(points, np.array([3, 0], np.uint32), np.empty((2, 12), np.uint64)) == points[[3, 0]]).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_beyond_the_rows_is_never_gathered(threads):
    rows, out = np.zeros((7, 4), np.uint64), np.empty((70_000, 4), np.uint64)
    indices = np.zeros(len(out), np.uint32)
    assert not host.gather_rows(rows, indices, out, threads=threads).any()
    indices[50_000] = 7
    with pytest.raises(IndexError, match="7 is beyond 7 rows"):
        host.gather_rows(rows, indices, out, threads=threads)
    for wrong in (rows[:, :3], rows.astype(np.int64), np.zeros((7, 5), np.uint64), rows[::2]):
        with pytest.raises(ValueError, match="rows: "):
            host.gather_rows(wrong, indices[:1], out[:1], threads=threads)
    with pytest.raises(ValueError, match="out: "):
        host.gather_rows(rows, indices, out[:-1], threads=threads)


@both_groups
def test_a_split_msm_equals_the_whole(field_path, group):
    points, _ = known_points(group, 500)
    scalars = [k if i % 5 == 0 else i % 2 for i, k in enumerate(random_scalars(500))]
    limbs = scalars_to_limbs(scalars)
    query = whole_query(limbs)
    assert np.array_equal(query.points, query.wires)
    ours = function("add", group)(
        function("masked_sum", group)(points, query.ones),
        function("msm", group)(host.gather(points, query.points), host.gather(limbs, query.wires)),
    )
    assert (ours == msm(group, points, scalars)).all()


def test_calls_from_several_threads_at_once():
    points, logarithms = known_points("g1", 2000)
    jobs = [random_scalars(2000, seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda scalars: msm("g1", points, scalars, threads=3), jobs))
    for scalars, result in zip(jobs, results, strict=True):
        assert (result == generator_multiple("g1", dot(scalars, logarithms))).all()


def test_an_error_in_one_task_reaches_the_caller():
    def work(i: int, _: object) -> None:
        if i == 5:
            raise ValueError("task five")

    for threads in (1, 4):
        with pytest.raises(ValueError, match="task five"):
            parallel.run(work, [(i,) for i in range(10)], threads, lambda: None)


def test_ranges_cover_everything_once():
    for count, parts, multiple in [(0, 3, 1), (1, 3, 1), (10, 3, 1), (1000, 7, 64), (64, 7, 64), (65, 2, 64)]:
        pieces = parallel.ranges(count, parts, multiple)
        assert [i for a, b in pieces for i in range(a, b)] == list(range(count))
        assert all(a % multiple == 0 for a, _ in pieces) and len(pieces) <= parts


@pytest.mark.parametrize(
    ("points", "scalars", "message"),
    [
        (np.zeros((2, 12), np.uint64), np.zeros((3, 4), np.uint64), r"shape \(2, 4\)"),
        (np.zeros((2, 24), np.uint64), np.zeros((2, 4), np.uint64), r"shape \(n, 12\)"),
        (np.zeros((4, 12), np.uint64)[::2], np.zeros((2, 4), np.uint64), "contiguous"),
        (np.zeros((1, 12), np.uint64), scalars_to_limbs([R]), "scalars: element 0"),
        (np.zeros((1, 12), np.uint64), np.full((1, 4), 2**64 - 1, np.uint64), "scalars: element 0"),
    ],
)
def test_refusals(points, scalars, message):
    with pytest.raises(ValueError, match=message):
        host.msm_g1(points, scalars)
