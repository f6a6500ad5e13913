"""Every kernel against the host backend, on random and on hostile inputs. Needs a GPU."""

import functools

import numpy as np
import pytest

from cuzklab.backends import cuda, host
from cuzklab.backends.bls12_381 import BELLMAN_ROOT, FP_MODULUS, FR_MODULUS
from cuzklab.backends.limbs import ints_to_limbs

pytestmark = pytest.mark.gpu


def random_elements(modulus, limbs, n, seed):
    """Uniform below 2^(64·limbs) cut down to below the modulus."""
    words = np.random.default_rng(seed).integers(0, 1 << 64, (n, limbs), dtype=np.uint64)
    top = modulus >> (64 * (limbs - 1))
    words[:, -1] %= np.uint64(top)
    return words


fr = functools.partial(random_elements, FR_MODULUS, 4)
fp = functools.partial(random_elements, FP_MODULUS, 6)


@functools.cache
def points(group, n):
    """n different points of the group."""
    make = {"g1": host.fixed_base_g1, "g2": host.fixed_base_g2}[group]
    return make(ints_to_limbs(range(1, n + 1), 4) * np.uint64(0x9E3779B97F4A7C15) % np.uint64(1 << 62))


EDGES = {
    field: ints_to_limbs([0, 1, 2, modulus - 1, modulus - 2, modulus // 2, (1 << 32) - 1, 1 << 32, 1 << 64], limbs)
    for field, modulus, limbs in (("fr", FR_MODULUS, 4), ("fp", FP_MODULUS, 6))
}


@pytest.mark.parametrize("field", ["fr", "fp"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_field_operations(field, operation):
    edges, name = EDGES[field], f"{field}_{operation}"
    make = {"fr": fr, "fp": fp}[field]
    a = np.concatenate([np.repeat(edges, len(edges), 0), make(100_003, 1)])
    b = np.concatenate([np.tile(edges, (len(edges), 1)), make(100_003, 2)])
    assert (getattr(cuda, name)(a, b) == getattr(host, name)(a, b)).all()
    assert (getattr(cuda, name)(a, b[:1]) == getattr(host, name)(a, b[:1])).all()
    assert getattr(cuda, name)(a[:0], b[:0]).shape == (0, a.shape[1])


@pytest.mark.parametrize("name", ["fr_to_montgomery", "fr_from_montgomery", "fp_to_montgomery", "fp_from_montgomery"])
def test_montgomery_form(name):
    field = name[:2]
    x = np.concatenate([EDGES[field], {"fr": fr, "fp": fp}[field](70_001, 3)])
    assert (getattr(cuda, name)(x) == getattr(host, name)(x)).all()


@pytest.mark.parametrize("log_n", [*range(21), 22])
def test_transforms_of_every_size(log_n):
    x = fr(1 << log_n, log_n)
    x[: min(len(x), 9)] = EDGES["fr"][: min(len(x), 9)]
    for options in ({}, {"inverse": True}, {"coset": 7}, {"inverse": True, "coset": 7}, {"root": BELLMAN_ROOT}):
        if log_n > 18 and options in ({"root": BELLMAN_ROOT}, {"inverse": True}):
            continue
        wanted, got = x.copy(), x.copy()
        host.ntt(wanted, **options)
        cuda.ntt(got, **options)
        assert (wanted == got).all(), options


def test_a_large_transform_returns():
    """2^25 points, beyond what the host does in reasonable time: inverse after forward is the identity."""
    import cupy

    x = cupy.asarray(fr(1 << 25, 9))
    y = x.copy()
    cuda.ntt(y, coset=5)
    assert not (x == y).all()
    cuda.ntt(y, inverse=True, coset=5)
    assert bool((x == y).all())


@pytest.mark.parametrize("log_n", [*range(21), 22])
@pytest.mark.parametrize("function", ["h_polynomial", "h_coefficients"])
def test_quotients_of_every_size(function, log_n):
    a, b, c = (fr(1 << log_n, seed) for seed in (1, 2, 3))
    wanted = getattr(host, function)(a.copy(), b.copy(), c.copy())
    assert (getattr(cuda, function)(a.copy(), b.copy(), c.copy()) == wanted).all()


@pytest.mark.parametrize("log_n", [19, 20, 21, 22])
def test_quotients_with_split_tables(log_n, monkeypatch):
    """As from 2^25 points on, at sizes that the host does in reasonable time."""
    from cuzklab.backends.cuda import quotient

    monkeypatch.setattr(quotient, "_LARGEST_TABLE_LOG2", 18)
    cuda.release_tables()
    a, b, c = (fr(1 << log_n, seed) for seed in (1, 2, 3))
    wanted = host.h_polynomial(a.copy(), b.copy(), c.copy())
    assert (cuda.h_polynomial(a, b, c) == wanted).all()
    cuda.release_tables()


def test_a_quotient_needs_its_vectors_and_little_else():
    import cupy

    log_n = 25
    vectors = [cupy.asarray(fr(1 << 16, seed)) for seed in (1, 2, 3)]
    vectors = [cupy.tile(each, (1 << (log_n - 16), 1)) for each in vectors]
    cuda.release_tables()
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    cuda.h_polynomial(*vectors)
    assert pool.total_bytes() - before < 64 << 20


def hostile_scalars(kind, n):
    scalars = fr(n, 17)
    if kind == "zero":
        scalars[:] = 0
    elif kind == "one":
        scalars[:] = ints_to_limbs([1], 4)
    elif kind == "minus one":
        scalars[:] = ints_to_limbs([FR_MODULUS - 1], 4)
    elif kind == "equal":
        scalars[:] = scalars[0]
    elif kind == "mostly zeros and ones":
        rare = np.random.default_rng(1).integers(0, 100, n)
        scalars[rare < 50] = 0
        scalars[(rare >= 50) & (rare < 99)] = ints_to_limbs([1], 4)
    elif kind == "small":
        scalars[:, 1:] = 0
        scalars[:, 0] &= np.uint64(0xFF)
    elif kind == "edges":
        scalars[: n // 2] = np.resize(EDGES["fr"], (n // 2, 4))
    return scalars


def hostile_points(kind, group, n):
    base = points(group, n)
    if kind == "different":
        return base
    chosen = base.copy()
    if kind == "repeated":
        chosen[:] = base[0]
    elif kind == "opposite":
        chosen[1::2] = [(host.neg_g1 if group == "g1" else host.neg_g2)(p) for p in base[: n - n % 2 : 2]]
    elif kind == "infinity":
        chosen[::3] = 0
    return chosen


SCALARS = ["random", "zero", "one", "minus one", "equal", "mostly zeros and ones", "small", "edges"]
POINTS = ["different", "repeated", "opposite", "infinity"]


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("scalar_kind", SCALARS)
def test_msm_on_hostile_inputs(group, scalar_kind):
    n = 3001
    for point_kind in POINTS:
        p, k = hostile_points(point_kind, group, n), hostile_scalars(scalar_kind, n)
        wanted = getattr(host, f"msm_{group}")(p, k)
        assert (getattr(cuda, f"msm_{group}")(p, k) == wanted).all(), point_kind


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [0, 1, 2, 31, 1000, 4097, 20_000])
def test_msm_of_any_length(group, n):
    p, k = points(group, max(n, 1))[:n], fr(n, n)
    assert (getattr(cuda, f"msm_{group}")(p, k) == getattr(host, f"msm_{group}")(p, k)).all()


@pytest.mark.parametrize("bits", [*range(2, 21), 22])
def test_every_window(bits):
    p, k = points("g1", 3001), hostile_scalars("edges", 3001)
    assert (cuda.msm_g1(p, k, bits=bits) == host.msm_g1(p, k)).all()


@pytest.mark.parametrize("log_n", [16, 18])
def test_larger_msms(log_n):
    n = (1 << log_n) - 37
    p = np.resize(points("g1", 20_000), (n, 12))
    for kind in ("random", "equal", "mostly zeros and ones"):
        k = hostile_scalars(kind, n)
        assert (cuda.msm_g1(p, k) == host.msm_g1(p, k)).all(), kind


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("kind", ["random", "equal", "mostly zeros and ones"])
def test_batches_streamed_from_the_host(group, kind, monkeypatch):
    """Many small batches, from pinned memory, from the device and mixed, against one."""
    import cupy
    import cupyx

    from cuzklab.backends.cuda import msm

    n = 9_999
    p, k = points(group, n), hostile_scalars(kind, n)
    wanted = getattr(host, f"msm_{group}")(p, k)
    monkeypatch.setattr(msm, "_BATCH_POINTS", 1500)
    monkeypatch.setattr(msm, "_STREAMED_POINTS", 1024)
    run = getattr(cuda, f"msm_{group}")
    pinned_p, pinned_k = cupyx.empty_like_pinned(p), cupyx.empty_like_pinned(k)
    pinned_p[...], pinned_k[...] = p, k
    for a, b in ((pinned_p, pinned_k), (cupy.asarray(p), cupy.asarray(k)), (cupy.asarray(p), k), (p, k)):
        assert (run(a, b) == wanted).all()
    k[5000] = ints_to_limbs([FR_MODULUS], 4)
    with pytest.raises(ValueError, match="element 5000 is not below"):
        run(cupy.asarray(p), k)


@pytest.mark.parametrize("most_bytes", [64 << 20, 160 << 20, 2 << 30])
@pytest.mark.parametrize("on_device", [True, False])
def test_sums_keep_to_the_memory_that_is_left(most_bytes, on_device):
    """The scalars of H's MSM are on the device already, those of a tail come with the points."""
    import cupy

    from cuzklab.backends.cuda.backend import CudaBackend, batch_within
    from cuzklab.backends.cuda.workspace import Workspace

    n = (1 << 19) + 5
    p, k = np.resize(points("g1", 20_000), (n, 12)), fr(n, 4)
    given = cupy.asarray(k) if on_device else k
    workspace = Workspace(cupy.cuda)
    workspace.allow(most_bytes)
    with workspace.current():
        got = CudaBackend().msm_g1(p, given)
    assert (got == host.msm_g1(p, k)).all()
    assert workspace.peak_bytes <= most_bytes
    unlimited = Workspace(cupy.cuda)
    unlimited.allow(1 << 40)
    with unlimited.current():
        CudaBackend().msm_g1(p, given)
    bits, size = batch_within(None, n, 96 if on_device else 128)
    from cuzklab.backends.cuda import buckets

    most = buckets.scratch_bytes("g1", buckets.shape(n, bits, size), size, 96 if on_device else 128)
    assert 0.5 * most < unlimited.peak_bytes <= most


def test_scalars_beyond_r_are_refused():
    k = fr(100, 1)
    k[57] = ints_to_limbs([FR_MODULUS], 4)
    with pytest.raises(ValueError, match="element 57 is not below"):
        cuda.msm_g1(points("g1", 100), k)


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 1000, 20_000])
def test_masked_sums(group, n):
    p = points(group, max(n, 1))[:n]
    source = np.random.default_rng(n)
    random = source.integers(0, 1 << 64, -(-n // 64), dtype=np.uint64)
    for bitmap in (random, np.zeros_like(random), ~np.zeros_like(random)):
        wanted = getattr(host, f"masked_sum_{group}")(p, bitmap)
        assert (getattr(cuda, f"masked_sum_{group}")(p, bitmap) == wanted).all()
    for kind in POINTS[1:] if n > 1 else ():
        q = hostile_points(kind, group, n)
        wanted = getattr(host, f"masked_sum_{group}")(q, random)
        assert (getattr(cuda, f"masked_sum_{group}")(q, random) == wanted).all(), kind


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_a_larger_masked_sum(group):
    n = 200_001
    p = np.resize(points(group, 20_000), (n, 12 if group == "g1" else 24))
    bitmap = np.random.default_rng(5).integers(0, 1 << 64, -(-n // 64), dtype=np.uint64)
    wanted = getattr(host, f"masked_sum_{group}")(p, bitmap)
    assert (getattr(cuda, f"masked_sum_{group}")(p, bitmap) == wanted).all()
