"""What a driver or a compiler refuses is said in one line, and the device stays usable."""

import shutil
import sys

import numpy as np
import pytest

from cuzklab.backends import cuda
from cuzklab.backends.cuda import launch, multiples
from cuzklab.backends.cuda.launch import NotEnoughMemory, refusing_in_one_line
from cuzklab.errors import BadInput
from cuzklab.resources import folder


def raising(error):
    def work():
        raise error

    return work


def one_line(error) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_no_cupy(driver, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert cuda.available() == (
        "CUDA: CuPy is not installed: pip install 'cuzklab[cu13]' or 'cuzklab[cu12]', or use --backend host"
    )


def test_no_driver(driver):
    fault = driver.cuda.runtime.CUDARuntimeError(
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
    )
    driver.cuda.runtime.getDeviceCount = raising(fault)
    assert cuda.available() == (
        "CUDA: no usable GPU or driver (CUDA driver version is insufficient for CUDA runtime version); "
        "use --backend host"
    )


def test_no_gpu(driver):
    driver.cuda.runtime.getDeviceCount = lambda: 0
    assert cuda.available() == "CUDA: the driver sees no GPU; use --backend host"


def test_a_gpu_that_is_too_old(driver):
    driver.device.compute_capability = "75"
    assert cuda.available() == "CUDA: this GPU is sm_75, kernels need sm_80 or newer; use --backend host"


def test_no_memory(driver):
    given_back = []
    driver.get_default_memory_pool().free_all_blocks = lambda: given_back.append(True)
    fault = driver.cuda.memory.OutOfMemoryError(
        "Out of memory allocating 9,663,676,416 bytes (allocated so far: 0 bytes, limit set to: 4 bytes)."
    )
    with pytest.raises(NotEnoughMemory) as error:
        refusing_in_one_line(raising(fault))()
    assert one_line(error) == (
        "CUDA: out of memory allocating 9,663,676,416 bytes, 3.00 GiB are free; "
        "use a smaller size, free arrays, or use --backend host"
    )
    assert given_back


def test_a_refused_launch(driver):
    fault = driver.cuda.driver.CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid\nargument")
    with pytest.raises(BadInput) as error:
        refusing_in_one_line(raising(fault))()
    assert one_line(error) == "CUDA: CUDA_ERROR_INVALID_VALUE: invalid argument; the device can still be used"


def test_a_fault_that_takes_the_context_along(driver):
    fault = driver.cuda.runtime.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
    driver.device.synchronize = raising(fault)
    with pytest.raises(BadInput, match="start it anew") as error:
        refusing_in_one_line(raising(fault))()
    assert "illegal memory access" in one_line(error)


def test_what_free_memory_means(driver):
    pool = driver.get_default_memory_pool()
    pool.free_bytes = lambda: 1 << 30
    assert launch.free_bytes() == 4 << 30
    pool.get_limit, pool.used_bytes = lambda: 2 << 30, lambda: 3 << 29
    assert launch.free_bytes() == 1 << 29
    pool.used_bytes = lambda: 3 << 30  # a limit set below what is in use
    assert launch.free_bytes() == 0


@pytest.mark.parametrize("options", [{"bits": 1}, {"bits": 27}, {"multiples": 0}, {"bits": 16, "multiples": 17}])
def test_tables_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match="is not between"):
        multiples.table_bytes("g1", 1000, **options)


def test_sizes_of_tables():
    assert multiples.table_bytes("g1", 1 << 24, bits=22) == 12 * 96 << 24
    assert multiples.table_bytes("g2", 1 << 20, bits=20) == 13 * 192 << 20
    # Half of the multiples, rounded up; of four at most, three suffice for 9 windows as well.
    assert multiples.table_bytes("g1", 10, bits=20, multiples=7) == 7 * 960
    assert multiples.table_bytes("g1", 10, bits=29 - 3, multiples=4) == 4 * 960
    assert multiples.table_bytes("g1", 0) == 0


@pytest.mark.gpu
class TestOnTheDevice:
    @pytest.fixture
    def limit(self):
        """Lets the pool have so many bytes."""
        pool = pytest.importorskip("cupy").get_default_memory_pool()
        cuda.release_tables()
        pool.free_all_blocks()
        yield lambda size: pool.set_limit(size=size)
        pool.set_limit(size=0)

    @pytest.fixture
    def input(self):
        from cuzklab.backends import host
        from cuzklab.backends.limbs import ints_to_limbs

        scalars = ints_to_limbs(range(5, 20_005), 4)
        points = host.fixed_base_g1(scalars)
        return points, scalars, host.msm_g1(points, scalars)

    def test_too_little_memory(self, limit, input):
        points, scalars, wanted = input
        limit(4 << 20)
        with pytest.raises(NotEnoughMemory, match=r"out of memory allocating [\d,]+ bytes, .* are free") as error:
            cuda.msm_g1(points, scalars)
        one_line(error)
        with pytest.raises(NotEnoughMemory, match="out of memory"):
            cuda.ntt(np.zeros((1 << 18, 4), np.uint64))
        limit(0)
        assert (cuda.msm_g1(points, scalars) == wanted).all()

    def test_a_table_that_does_not_fit(self, limit, input):
        points, scalars, wanted = input
        limit(16 << 20)
        expected = r"table of 17 multiples of 20,000 points takes 33\.0 MiB.* 16\.0 MiB are free; store fewer"
        with pytest.raises(NotEnoughMemory, match=expected) as error:
            cuda.store_multiples(points, bits=15)
        one_line(error)
        limit(64 << 20)
        base = cuda.store_multiples(points, bits=15, multiples=5)
        limit(0)
        assert (cuda.msm_of_multiples(base, scalars) == wanted).all()

    def test_a_kernel_that_no_longer_compiles(self, tmp_path, input):
        points, scalars, wanted = input
        edited = tmp_path / "kernels"
        shutil.copytree(folder("kernels"), edited)
        source = edited / "cuda" / "reduce.cu"
        source.write_text(source.read_text().replace("block_sum<128>", "block_total<128>"))
        launch.use_kernels(edited)
        try:
            with pytest.raises(BadInput, match=r"reduce\.cu\(\d+\): error.*block_total") as error:
                cuda.msm_g1(points, scalars)
            one_line(error)
        finally:
            launch.use_kernels(None)
        assert (cuda.msm_g1(points, scalars) == wanted).all()

    def test_a_launch_that_the_device_refuses(self, input):
        points, scalars, wanted = input
        too_many = {"accumulate.cu": {"THREADS": 2048, "BLOCKS_PER_SM": 1}}
        with launch.macros(too_many), pytest.raises(BadInput) as error:
            cuda.msm_g1(points, scalars)
        one_line(error)
        assert (cuda.msm_g1(points, scalars) == wanted).all()
