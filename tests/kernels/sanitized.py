"""Every entry point of the native core once, small, with hostile input: run by test_sanitizers.py under ASan and UBSan.

Points are known multiples of the generators, so plain integers judge the sums.
"""

import random

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS as R
from cuzklab.backends.native import load
from cuzklab.prover.constraints import CircuitConstraints, MappedConstraints, compiled, evaluate
from cuzklab.prover.density import Density
from cuzklab.prover.porep_shaped import porep_shaped

draw = random.Random(1)


def scalars(n: int) -> list[int]:
    return [*[0, 1, R - 1, 1 << 254, 1, 0][:n], *(draw.randrange(R) for _ in range(n - 6))]


def limbs(values: list[int], width: int = 4) -> np.ndarray:
    return host.ints_to_limbs(values, width)


def sums(group: str, n: int) -> None:
    def function(name: str):
        return getattr(host, f"{name}_{group}")

    def multiple(k: int) -> np.ndarray:
        return function("fixed_base")(limbs([k % R]))[0]

    # Equal points, opposite points and infinity, side by side.
    logarithms = scalars(n)
    logarithms[8:12] = [logarithms[7], R - logarithms[7], 0, 0]
    points = function("fixed_base")(limbs(logarithms), threads=2)
    for factors in (scalars(n), [1] * n, [R - 1] * n, [0] * n):
        expected = multiple(sum(a * b for a, b in zip(logarithms, factors, strict=True)))
        assert np.array_equal(function("msm")(points, limbs(factors), threads=2), expected)
    bitmap = np.frombuffer(draw.randbytes(8 * -(-n // 64)), np.uint64)
    chosen = np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little")[:n])
    assert np.array_equal(function("masked_sum")(points, bitmap), multiple(sum(logarithms[i] for i in chosen)))
    short = [k % 2**128 for k in scalars(n)]
    found = function("multiply_each")(points, limbs(short, 2))
    assert np.array_equal(found, function("fixed_base")(limbs([a * b % R for a, b in zip(logarithms, short)])))
    assert function("on_curve")(points) == function("in_subgroup")(points) == -1
    assert np.array_equal(function("add")(points[6], points[6]), multiple(2 * logarithms[6]))
    assert not function("add")(points[7], function("neg")(points[7])).any()
    assert np.array_equal(function("mul")(points[6], 12345), multiple(12345 * logarithms[6]))
    finite = points[points.any(axis=1)]
    encoded = host.encode_points(group, finite)
    shifted = np.frombuffer(b"x" + encoded.tobytes(), np.uint8, offset=1).reshape(encoded.shape)
    out, order = np.empty_like(finite), np.arange(len(finite), dtype=np.uint32)[::-1].copy()
    host.decode_points(group, shifted, order, out)
    assert np.array_equal(out[::-1], finite)
    raw = np.frombuffer(b"1234" + finite.tobytes(), np.uint8, offset=4).reshape(encoded.shape)
    host.gather_points(group, raw, order, out)
    assert np.array_equal(out[::-1], finite)


def transforms(n: int) -> None:
    values = host.fr_to_montgomery(limbs(scalars(n)))
    for root in (host.SNARKJS_ROOT, host.BELLMAN_ROOT):
        copy = values.copy()
        host.ntt(copy, coset=7, root=root, threads=2)
        host.ntt(copy, coset=7, root=root, inverse=True)
        assert np.array_equal(copy, values)
    a, b = values, values[::-1].copy()
    for h in (host.h_polynomial, host.h_coefficients):
        assert h(a.copy(), b.copy(), host.fr_mul(a, b), threads=2).shape == values.shape
    one = host.fr_mul(values, host.fr_inverse(values))
    assert np.array_equal(one.any(axis=1), values.any(axis=1))


def constraints() -> None:
    system, witness = porep_shaped(248, 1)
    reference = evaluate(compiled(system), witness)
    again = evaluate(CircuitConstraints(system), witness)
    dense = compiled(system)
    records = []
    for number, matrix in enumerate((dense.a, dense.b)):
        rows = np.repeat(np.arange(matrix.rows), np.diff(matrix.row_start)).astype(np.uint32)
        head = np.stack([np.full_like(rows, number), rows, matrix.wire], axis=1)
        records.append(np.concatenate([head.view(np.uint8), matrix.value.view(np.uint8)], axis=1))
    packed = np.concatenate(records)
    unaligned = np.frombuffer(b"12" + packed.tobytes(), np.uint8, offset=2).reshape(packed.shape)
    mapped = evaluate(MappedConstraints(unaligned, dense.rows, ascending=False), witness)
    for other in (again, mapped):
        assert all(np.array_equal(getattr(other, name), getattr(reference, name)) for name in "abc")
    classes = host.classify(witness, threads=2)
    assert host.count_bits(classes.ones) == classes.one_count
    density = Density.of(np.arange(3, len(witness), 2), len(witness))
    for ones_in_tail in (False, True):
        found = host.classes_of_query(classes, density.bits, density.count, ones_in_tail=ones_in_tail)
        rows = host.gather_rows(witness, found.wires, np.empty((len(found.wires), 4), np.uint64), threads=2)
        assert np.array_equal(rows, witness[found.wires])


for size in (13, 64 + 7, 300):
    sums("g1", size)
sums("g2", 40)
for size in (8, 64, 128):
    transforms(size)
constraints()
print("clean on", load().field_path)
