"""Circuits, witnesses and test keys made on the GPU: the host's, array by array. Needs a GPU."""

import dataclasses

import numpy as np
import pytest

from cuzklab.backends.bls12_381 import BELLMAN_ROOT, FR_MODULUS, SNARKJS_ROOT
from cuzklab.backends.keys import HOST_KEYS
from cuzklab.backends.limbs import ints_to_limbs
from cuzklab.prover.model import CodedMatrix, SparseMatrix
from cuzklab.prover.porep_shaped import coded_porep_circuit, porep_circuit, porep_witness
from cuzklab.prover.setup import dense_setup, setup
from cuzklab.prover.stages import dense_key
from tests.cuda.test_gpu import fr

pytestmark = pytest.mark.gpu


@pytest.fixture
def keys():
    from cuzklab.backends.cuda.keys import CUDA_KEYS

    return CUDA_KEYS


@pytest.fixture
def device_array():
    import cupy

    return cupy.asarray


EDGES = [0, 1, 2, 65535, 65536, FR_MODULUS - 1, FR_MODULUS - 2, (1 << 240) - 1, 0x73ED << 240, 1 << 254]


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [0, 1, 10, 777, 5000])
def test_multiples_of_the_generators(keys, device_array, monkeypatch, group, n):
    from cuzklab.backends.cuda import keys as making

    monkeypatch.setattr(making, "_PART_POINTS", {"g1": 600, "g2": 600})
    scalars = fr(n, 5)
    scalars[: len(EDGES)] = ints_to_limbs(EDGES, 4)[:n]
    assert np.array_equal(keys.multiples(group, device_array(scalars)), HOST_KEYS.multiples(group, scalars))


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_as_many_multiples_as_fill_the_gpu(keys, device_array, group):
    """Several points to an inversion; every fifth is infinity."""
    n = 300_001 if group == "g1" else 150_001
    scalars = fr(n, 6)
    scalars[::5] = 0
    assert np.array_equal(keys.multiples(group, device_array(scalars)), HOST_KEYS.multiples(group, scalars))


def test_points_lie_in_page_locked_memory_and_are_not_copied_again(keys, device_array):
    import cupy

    from cuzklab.backends.cuda.memory import pinned_copy

    points = keys.multiples("g1", device_array(fr(100, 1)))
    assert pinned_copy(points, cupy.cuda.runtime) is points
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):  # it is locked already
        cupy.cuda.runtime.hostRegister(points.ctypes.data, points.nbytes, 0)


@pytest.mark.parametrize("root", [SNARKJS_ROOT, BELLMAN_ROOT])
@pytest.mark.parametrize("log_n", [1, 2, 10, 15])
@pytest.mark.parametrize("factor", [1, 12345])
def test_lagrange_bases(keys, root, log_n, factor):
    tau = 0x1234567890ABCDEF << 100
    wanted = HOST_KEYS.lagrange_basis(tau, 1 << log_n, root=root, factor=factor)
    assert np.array_equal(keys.lagrange_basis(tau, 1 << log_n, root=root, factor=factor).get(), wanted)


@pytest.mark.parametrize("coded", [True, False])
def test_column_sums(keys, device_array, coded):
    """A column of 2^17 times r − 1 times r − 1 and one of nothing among random ones."""
    rows, wires = 1 << 17, 500
    source = np.random.default_rng(3)
    lengths = source.integers(0, 4, rows)
    lengths[77] = 3000
    row_start = np.concatenate(([0], np.cumsum(lengths + 1)))
    wire = source.integers(1, wires - 1, row_start[-1], dtype=np.uint32)
    wire[row_start[:-1]] = 0
    values = fr(40, 8)
    values[0] = ints_to_limbs([FR_MODULUS - 1], 4)
    number = source.integers(0, 40, len(wire), dtype=np.uint32)
    number[row_start[:-1]] = 0
    weights = fr(rows, 9)
    weights[: rows // 2] = ints_to_limbs([FR_MODULUS - 1], 4)
    matrix = SparseMatrix(row_start, wire, values[number])
    given = CodedMatrix(row_start, wire, number, values) if coded else matrix
    wanted = HOST_KEYS.column_sums(matrix, wires, weights)
    assert not wanted[-1].any()
    assert np.array_equal(keys.column_sums(given, wires, device_array(weights)).get(), wanted)
    with pytest.raises(ValueError, match="is beyond the 400 wires"):
        keys.column_sums(given, 400, device_array(weights))


def test_combinations_and_choices(keys, device_array):
    a, b, c = (fr(1001, seed) for seed in (1, 2, 3))
    a[::3] = 0
    terms = [(5, a), (FR_MODULUS - 1, b), (1, c)]
    got = keys.combination([(factor, device_array(each)) for factor, each in terms])
    assert np.array_equal(got.get(), HOST_KEYS.combination(terms))
    indices = keys.nonzero(device_array(a))
    assert indices.dtype == np.uint32 and np.array_equal(indices, HOST_KEYS.nonzero(a))
    assert np.array_equal(keys.take(device_array(a), indices).get(), a[indices])


@pytest.mark.parametrize(
    ("constraints", "seed"), [(200, 7), (994, 5), (3976, 3), (30000, 2), (127236, 9), (1017803, 1)]
)
def test_circuits_and_witnesses(constraints, seed):
    import cupy

    mine, other = coded_porep_circuit(constraints, seed, cupy), coded_porep_circuit(constraints, seed)
    for name in ("a", "b", "c"):
        for part in ("row_start", "wire", "number", "values"):
            one, two = (getattr(getattr(circuit.system, name), part) for circuit in (mine, other))
            assert one.dtype == two.dtype and np.array_equal(one, two), (name, part)
    for some in ("wires", "operands"):
        for name, one in getattr(mine, some).items():
            two = getattr(other, some)[name]
            assert one.dtype == two.dtype and np.array_equal(one, two), name
    assert np.array_equal(porep_witness(mine, seed, cupy), porep_witness(other, seed))


@pytest.mark.parametrize("constraints", [248, 3976, 30000])
@pytest.mark.parametrize("coded", [True, False])
def test_a_key_is_the_hosts_array_by_array(keys, constraints, coded):
    plain = porep_circuit(constraints, 4).system
    given = coded_porep_circuit(constraints, 4).system if coded else plain
    same_key(dense_setup(given, 9, on=keys), dense_key(setup(plain, 9), plain))


def same_key(mine, other):
    for field in dataclasses.fields(mine):
        one, two = getattr(mine, field.name), getattr(other, field.name)
        if field.name == "constraints":
            continue
        if field.name == "vk":
            assert all(np.array_equal(getattr(one, each.name), getattr(two, each.name))
                       for each in dataclasses.fields(one))  # fmt: skip
        elif hasattr(one, "wires"):
            assert one.wires.dtype == two.wires.dtype and np.array_equal(one.wires, two.wires), field.name
            assert np.array_equal(one.points, two.points), field.name
        else:
            assert np.array_equal(one, two), field.name


@pytest.fixture(scope="module")
def made_twice(tmp_path_factory):
    """Circuits with keys by their size: made by the GPU, and by the CPU without a key of its cache."""
    from cuzklab.live import circuit as circuits
    from cuzklab.live.place import place

    made = {}

    def of(log2_domain):
        if log2_domain not in made:
            with pytest.MonkeyPatch.context() as patch:
                folder = tmp_path_factory.mktemp("keys")
                patch.setattr(circuits, "cache_folder", lambda: folder)
                maker = place("cuda", None).maker(circuits.GPU_FROM_LOG2_DOMAIN)
                made[log2_domain] = (
                    circuits.circuit_made_by(maker, log2_domain, 2), circuits._circuit_with_test_key(log2_domain, 2)
                )  # fmt: skip
        return made[log2_domain]

    return of


SIZES = [13, 18]
"""The second is the size from which live runs take the GPU's."""


@pytest.mark.parametrize("log2_domain", SIZES)
def test_a_test_circuit_made_by_the_gpu_is_the_cpus(made_twice, log2_domain):
    from cuzklab.policies.model import Partition
    from cuzklab.stages import DeviceModel

    mine, other = made_twice(log2_domain)
    same_key(mine.key, other.key)
    assert mine.shape == other.shape
    partition = Partition(0, 1, other.sizes(DeviceModel(1)))
    one, two = mine.job(partition), other.job(partition)
    assert np.array_equal(one.witness, two.witness) and (one.r, one.s) == (two.r, two.s)
    rows = mine.key.constraints.rows
    arrays = [[np.empty((rows, 4), np.uint64) for _ in range(3)] for _ in range(2)]
    mine.key.constraints.evaluate(one.witness, *arrays[0], 2)
    other.key.constraints.evaluate(one.witness, *arrays[1], 2)
    assert all(np.array_equal(x, y) for x, y in zip(*arrays, strict=True))


def test_the_larger_of_these_sizes_is_where_live_runs_begin_to_take_the_gpus():
    from cuzklab.live.circuit import GPU_FROM_LOG2_DOMAIN
    from cuzklab.live.place import place

    assert max(SIZES) == GPU_FROM_LOG2_DOMAIN
    assert place("cuda", None).maker(max(SIZES)) is not None and place("cuda", None).maker(max(SIZES) - 1) is None


@pytest.mark.parametrize("log2_domain", SIZES)
def test_proofs_with_keys_of_both_makers_are_the_same_and_valid(made_twice, log2_domain):
    """Each proved where its key was made; each verified under the other's key, by another library."""
    from cuzklab.backends.backend import HOST
    from cuzklab.backends.cuda.backend import CudaBackend
    from cuzklab.policies.model import Partition
    from cuzklab.prover.prove import prove
    from cuzklab.prover.verify import verify
    from cuzklab.stages import DeviceModel

    mine, other = made_twice(log2_domain)
    partition = Partition(0, 0, other.sizes(DeviceModel(1)))
    proofs = []
    for circuit, backend in ((mine, CudaBackend()), (other, HOST)):
        job = circuit.job(partition)
        proofs.append(prove(job.key, job.witness, r=job.r, s=job.s, on=backend))
    (one, public), (two, also_public) = proofs
    assert np.array_equal(public, also_public)
    for name in ("a", "b", "c"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
    wrong = public.copy()
    wrong[0, 0] ^= 1
    for key, proof in ((other.key, one), (mine.key, two)):
        assert verify(key.vk, public, proof).valid
        assert not verify(key.vk, wrong, proof).valid
