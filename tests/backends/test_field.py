"""Field arithmetic against Python integers, on every multiply path of this machine."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzklab.backends import host, native, peers
from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS

FIELDS = {"fr": (FR_MODULUS, 4), "fp": (FP_MODULUS, 6)}
EDGES = (0, 1, 2, (1 << 64) - 1, 1 << 64, 1 << 192)


def elements(modulus: int):
    near = st.sampled_from([*EDGES, modulus - 1, modulus - 2, modulus >> 1, (modulus >> 1) + 1])
    return st.one_of(near, st.integers(0, modulus - 1))


def call(field: str, name: str, *arrays: np.ndarray) -> list[int]:
    return host.limbs_to_ints(getattr(host, f"{field}_{name}")(*arrays))


@pytest.mark.parametrize("field", FIELDS)
@given(data=st.data())
# One path for all examples of a test is what is meant.
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_operations_agree_with_integers(field_path, field, data):
    modulus, limbs = FIELDS[field]
    pairs = data.draw(st.lists(st.tuples(elements(modulus), elements(modulus)), min_size=1, max_size=20))
    a, b = ([pair[i] for pair in pairs] for i in (0, 1))
    x, y = host.ints_to_limbs(a, limbs), host.ints_to_limbs(b, limbs)
    back = pow(1 << 64 * limbs, -1, modulus)
    assert call(field, "add", x, y) == [(i + j) % modulus for i, j in pairs]
    assert call(field, "sub", x, y) == [(i - j) % modulus for i, j in pairs]
    assert call(field, "mul", x, y) == [i * j * back % modulus for i, j in pairs]
    assert call(field, "to_montgomery", x) == [(i << 64 * limbs) % modulus for i in a]
    assert call(field, "from_montgomery", x) == [i * back % modulus for i in a]
    # In Montgomery form: 1/(aR) · R² as an integer.
    square = pow(1 << 64 * limbs, 2, modulus)
    assert call(field, "inverse", x) == [pow(i, -1, modulus) * square % modulus if i else 0 for i in a]


@pytest.mark.parametrize("field", FIELDS)
def test_every_small_power_of_two_inverts(field_path, field):
    # Leading words change length here: what the inversion's approximation is sensitive to.
    modulus, limbs = FIELDS[field]
    values = [v for k in range(modulus.bit_length() - 1) for v in (1 << k, (1 << k) + 1, (1 << k) - 1)]
    got = call(field, "inverse", host.ints_to_limbs(values, limbs))
    square = pow(1 << 64 * limbs, 2, modulus)
    assert got == [pow(v, -1, modulus) * square % modulus if v else 0 for v in values]


@pytest.mark.parametrize("field", FIELDS)
def test_products_equal_those_of_blst(field_path, field):
    modulus, limbs = FIELDS[field]
    values = host.ints_to_limbs([pow(3, 300 + k, modulus) for k in range(20)], limbs)
    for a, b in zip(values, values[::-1]):
        ours = getattr(host, f"{field}_mul")(a[None], b[None])[0]
        assert (ours == peers.blst_product(field, np.ascontiguousarray(a), np.ascontiguousarray(b))).all()


def test_one_element_goes_with_all():
    many, one = host.ints_to_limbs(range(7), 4), host.ints_to_limbs([5], 4)
    expected = [(i + 5) % FR_MODULUS for i in range(7)]
    for single in (one, one[0], np.broadcast_to(one, many.shape)):
        assert call("fr", "add", many, single) == expected
        assert call("fr", "add", single, many) == expected
    assert host.fr_add(many[:0], one).shape == (0, 4)


def test_powers():
    assert host.limbs_to_ints(host.fr_from_montgomery(host.fr_powers(7, 100))) == [
        pow(7, i, FR_MODULUS) for i in range(100)
    ]
    assert host.fr_powers(7, 0).shape == (0, 4)
    assert host.limbs_to_ints(host.fr_from_montgomery(host.fr_powers(0, 3))) == [1, 0, 0]


@given(st.lists(st.integers(0, (1 << 256) - 1), max_size=10))
def test_limbs_come_back(values):
    assert host.limbs_to_ints(host.ints_to_limbs(values, 4)) == values


def test_limbs_refuse_what_does_not_fit():
    for value in (-1, 1 << 256):
        with pytest.raises(OverflowError):
            host.ints_to_limbs([value], 4)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 4), np.int64), "uint64"),
        ([[0, 0, 0, 0]], "list"),
        (np.zeros((3, 5), np.uint64), r"shape \(n, 4\)"),
        (np.zeros((3, 8), np.uint64)[:, ::2], "contiguous"),
        (host.ints_to_limbs([0, FR_MODULUS], 4), "element 1 is not below"),
    ],
)
def test_what_is_no_field_vector_is_refused(array, message):
    with pytest.raises(ValueError, match=message):
        host.fr_to_montgomery(array)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="2 elements against 3"):
        host.fr_mul(host.ints_to_limbs([1, 2, 3], 4), host.ints_to_limbs([1, 2], 4))


def test_spmv(field_path):
    matrix = [{0: 3, 2: FR_MODULUS - 1}, {}, {1: 5, 4: 6, 3: 7}, {0: 1}]
    witness = [11, 22, FR_MODULUS - 3, 44, 55]
    row_start = np.cumsum([0] + [len(row) for row in matrix], dtype=np.int64)
    wire = np.array([w for row in matrix for w in row], np.uint32)
    value = host.ints_to_limbs([v for row in matrix for v in row.values()], 4)
    back = pow(1 << 256, -1, FR_MODULUS)
    expected = [sum(v * witness[w] * back for w, v in row.items()) % FR_MODULUS for row in matrix]
    for threads in (1, 2, 3):
        got = host.spmv(row_start, wire, value, host.ints_to_limbs(witness, 4), threads=threads)
        assert host.limbs_to_ints(got) == expected
    with pytest.raises(ValueError, match="row 2 names a wire beyond the 4"):
        host.spmv(row_start, wire, value, host.ints_to_limbs(witness[:4], 4))
    with pytest.raises(ValueError, match="must ascend"):
        host.spmv(row_start[::-1].copy(), wire, value, host.ints_to_limbs(witness, 4))


def test_spmv_of_coefficients_by_number(field_path):
    """The same as with a coefficient for each entry, whether wires are bits or not, and as refused."""
    source = np.random.default_rng(1)
    lengths = source.integers(0, 5, 700)
    lengths[[0, 300, 699]] = 0, 400, 0
    row_start = np.concatenate(([0], np.cumsum(lengths)))
    wire = source.integers(0, 90, row_start[-1], dtype=np.uint32)
    number = source.integers(0, 7, len(wire), dtype=np.uint32)
    values = host.ints_to_limbs([0, 1, FR_MODULUS - 1, *(pow(7, k, FR_MODULUS) for k in range(50, 54))], 4)
    few = [0, 1, 2, 1 << 64, 1 << 128, 1 << 192, (1 << 64) + 1, FR_MODULUS - 1]
    bits = source.integers(0, 2, 50).tolist()
    witness = host.ints_to_limbs([*few, *bits, *(pow(5, k, FR_MODULUS) for k in range(90 - 50 - len(few)))], 4)
    wanted = host.spmv(row_start, wire, values[number], witness, threads=1)
    for threads in (1, 3):
        assert np.array_equal(host.spmv_coded(row_start, wire, number, values, witness, threads=threads), wanted)
    with pytest.raises(ValueError, match="names a wire beyond the 80"):
        host.spmv_coded(row_start, wire, number, values, witness[:80])
    with pytest.raises(ValueError, match="names a coefficient beyond the 6"):
        host.spmv_coded(row_start, wire, number, values[:6], witness)
    beyond = witness.copy()
    beyond[60] = 2**64 - 1
    with pytest.raises(ValueError, match=r"witness: row \d+ has a wire whose value is not below the modulus"):
        host.spmv_coded(row_start, wire, number, values, beyond)
    with pytest.raises(ValueError, match=r"expected shape"):
        host.spmv_coded(row_start, wire, number[1:], values, witness)


def test_paths_give_the_same_bytes(monkeypatch):
    values = host.ints_to_limbs([pow(5, k, FP_MODULUS) for k in range(200)], 6)
    results = []
    for path in native.FIELD_PATHS:
        monkeypatch.setenv("CUZKLAB_FIELD", path.name)
        assert native.load().field_path == path.name
        results.append(host.fp_mul(values, values[::-1].copy()).tobytes())
    assert len(results) >= 2 and len(set(results)) == 1
