"""CPU time that the host of a virtual machine gives to others."""

import pytest

from cuzklab.live import run_live
from cuzklab.trace import stolen
from cuzklab.trace.stolen import CpuTimes, cpu_times, stolen_share


def proc(folder, *lines):
    (folder / "proc").mkdir(exist_ok=True)
    (folder / "proc" / "stat").write_text("\n".join(lines) + "\n")
    return folder


def test_the_machines_line_is_read_and_guests_do_not_count_twice(tmp_path):
    root = proc(tmp_path, "cpu  100 20 30 4000 5 6 7 80 9 1", "cpu0 1 1 1 1 1 1 1 1 1 1")
    assert cpu_times(root) == CpuTimes(busy=100 + 20 + 30 + 6 + 7, stolen=80)


@pytest.mark.parametrize("line", ["", "cpu", "cpu 1 2 3", "cpu a b c d e f g h"])
def test_what_cannot_be_read_is_not_known(tmp_path, line):
    assert cpu_times(tmp_path) is None
    assert cpu_times(proc(tmp_path, line)) is None


def test_the_share_is_of_what_was_wanted():
    before = CpuTimes(1000, 50)
    assert stolen_share(before, CpuTimes(1093, 57)) == 0.07
    assert stolen_share(before, CpuTimes(1093, 50)) == 0
    assert stolen_share(before, before) is None
    assert stolen_share(before, CpuTimes(1001, 40)) is None  # a machine that was moved, and counts anew
    assert stolen_share(None, before) is None and stolen_share(before, None) is None


@pytest.mark.parametrize(("ticks", "noted"), [(30, True), (10, False)])
def test_a_run_says_what_was_taken_from_it(tmp_path, monkeypatch, ticks, noted):
    readings = iter((CpuTimes(0, 0), CpuTimes(1000 - ticks, ticks)))
    monkeypatch.setattr(stolen, "cpu_times", lambda: next(readings))
    result = run_live("phase8", 10, proofs=1, partitions=1, gpu_workers=1)
    assert result.machine["cpu_stolen_share"] == ticks / 1000
    assert any("The host gave 3 % of the CPU time" in note for note in result.notes) == noted
    assert result.write(tmp_path / "run").info.machine["cpu_stolen_share"] == ticks / 1000
