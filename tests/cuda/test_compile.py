"""The CUDA kernels compile without a GPU, and take the registers that are recorded."""

import json
import shutil

import pytest

from cuzklab.backends.cuda import launch, warm
from cuzklab.backends.cuda.compile import Unit, compile_unit, compiler_version, usage
from cuzklab.backends.cuda.field import UNIT
from cuzklab.errors import BadInput
from cuzklab.resources import folder

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed: pip install 'cuzklab[dev]'")


@pytest.fixture(autouse=True)
def _needs_nvrtc():
    try:
        compiler_version()
    except BadInput as error:
        pytest.skip(str(error))


# One unit of each source, the quick ones: the others take a minute.
QUICK = ("vectors", "ntt_tables", "ntt-log_r6-log_c4", "msm_sort", "multiples-group1", "reduce-group1")


def compare_with_record(architectures, names=None):
    recorded = json.loads(warm.recorded_path().read_text())
    version = ".".join(map(str, compiler_version()))
    if version != recorded["nvrtc"]:
        pytest.skip(f"registers were recorded with NVRTC {recorded['nvrtc']}, here is {version}")
    table = recorded["registers and spilled bytes"]
    measured = warm.measure(architectures, processes=2, names=names)
    assert set(measured) == set(names or table)
    for unit, by_architecture in measured.items():
        for number, kernels in by_architecture.items():
            assert kernels == table[unit][number], f"{unit} {number}: record anew with warm --record if this is meant"


def test_a_unit_of_each_kind_takes_the_recorded_registers():
    compare_with_record((90,), QUICK)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_kernel_takes_the_recorded_registers_on_every_architecture():
    compare_with_record(warm.ARCHITECTURES)


def test_the_record_covers_every_unit():
    table = json.loads(warm.recorded_path().read_text())["registers and spilled bytes"]
    assert set(table) == {unit.name for unit in warm.units()}
    for by_architecture in table.values():
        assert set(by_architecture) == {f"sm_{number}" for number in warm.ARCHITECTURES}


@pytest.fixture
def edited(tmp_path):
    """A copy of the kernels that a test may change."""
    target = tmp_path / "kernels"
    shutil.copytree(folder("kernels"), target)
    return target


def test_a_kernel_that_does_not_compile_is_reported_with_file_and_line(edited):
    path = edited / "cuda" / "vectors.cu"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, 'extern "C" __global__ void broken() { missing(1); }', ""]))
    with pytest.raises(BadInput, match=rf"vectors\.cu\({len(lines) + 1}\): error.*missing") as error:
        compile_unit(UNIT, 90, edited)
    assert "\n" not in str(error.value)


def test_an_edited_header_is_another_cache_entry(edited):
    before = compile_unit(Unit("msm_sort.cu"), 90, edited)
    header = edited / "msm" / "digits.h"
    header.write_text(header.read_text() + "\n// edited\n")
    after = compile_unit(Unit("msm_sort.cu"), 90, edited)
    assert before.path != after.path
    assert usage(before.log) == usage(after.log)
    assert compile_unit(Unit("msm_sort.cu"), 90, edited).path == after.path


def test_an_old_architecture_is_refused():
    with pytest.raises(BadInput, match="sm_75 is too old"):
        compile_unit(UNIT, 75)


def test_a_missing_source_is_one_line(edited):
    (edited / "cuda" / "vectors.cu").unlink()
    with pytest.raises(BadInput, match=r"vectors\.cu: cannot read the kernel"):
        compile_unit(UNIT, 90, edited)


def test_no_gpu_is_said_in_one_line():
    reason = launch.available()
    if reason is None:
        pytest.skip("there is a GPU")
    assert reason.startswith("CUDA: ") and "--backend host" in reason and "\n" not in reason
