"""Sweeps: resumable, the same in any order, and no worker's death loses or doubles an answer."""

import json
import os
import signal
import sys

import pytest

from cuzklab.errors import BadInput
from cuzklab.sweep import Journal, Task, sweep
from tests.clusters import command_line_cluster

FUNCTIONS = '''
import os, signal, time
from pathlib import Path

def square(number, log=""):
    if log:
        with open(log, "a") as file:
            file.write(f"{number}\\n")
    return {"square": number * number}

def fails_at_three(number):
    if number == 3:
        raise ValueError("three is\\nrefused")
    return number

def dies_at_two(number, marker=""):
    """Kills its process at 2: always, or only while a marker file is absent."""
    if number == 2 and not (marker and Path(marker).exists()):
        if marker:
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number

def gpu(number):
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")

def slow(number, log):
    with open(log, "a") as file:
        file.write(f"{number} {os.getpid()}\\n")
    time.sleep(0.15)
    return number * 10
'''


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """A module that worker processes can import."""
    folder = tmp_path / "importable"
    folder.mkdir()
    name = "sweep_functions_of_a_test"
    (folder / f"{name}.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(folder))
    import importlib

    sys.modules.pop(name, None)
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


def tasks(count, **more):
    return [Task({"number": number} | more, f"number {number}") for number in range(count)]


def test_outcomes_come_in_the_order_of_the_tasks(functions):
    told = []
    outcomes = sweep(
        functions.square, tasks(7), processes=2, progress=lambda share, words="": told.append((share, words))
    )
    assert [outcome.value["square"] for outcome in outcomes] == [0, 1, 4, 9, 16, 25, 36]
    assert [share for share, _ in told] == [number / 7 for number in range(8)]


def test_a_failed_task_fails_alone_and_in_one_line(functions):
    outcomes = sweep(functions.fails_at_three, tasks(5), processes=2)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, None, 4]
    assert outcomes[3].error == "ValueError: three is refused"


def test_a_sweep_goes_on_where_it_was(functions, tmp_path):
    journal, log = tmp_path / "sweep.jsonl", tmp_path / "log"
    first = sweep(functions.square, tasks(3, log=str(log)), journal=journal, processes=1)
    # A crash tears the last line: that answer is lost, and only that one.
    journal.write_bytes(journal.read_bytes()[:-5])
    again = sweep(functions.square, tasks(5, log=str(log)), journal=journal, processes=1)
    assert [outcome.value for outcome in again[:3]] == [outcome.value for outcome in first]
    assert [outcome.resumed for outcome in again] == [True, True, False, False, False]
    assert log.read_text().split() == ["0", "1", "2", "2", "3", "4"]
    # What results depend on has changed: nothing of the journal is used.
    other = sweep(functions.square, tasks(2, log=str(log)), journal=journal, salt="another version", processes=1)
    assert not any(outcome.resumed for outcome in other)


def test_a_journal_that_is_none_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a journal\n")
    with pytest.raises(BadInput, match="byte 0: not a journal"):
        Journal(path)
    assert path.read_text() == "not a journal\n"


def test_a_task_that_kills_its_process_is_blamed_alone(functions):
    outcomes = sweep(functions.dies_at_two, tasks(5), processes=2)
    assert [outcome.value for outcome in outcomes] == [0, 1, None, 3, 4]
    assert outcomes[2].error == "its process died 3 times (killed, or out of memory)"


def test_a_task_whose_process_was_killed_once_is_done_by_another(functions, tmp_path):
    outcomes = sweep(functions.dies_at_two, tasks(5, marker=str(tmp_path / "died")), processes=2)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, 3, 4]


def test_each_process_has_a_gpu_of_its_own(functions):
    outcomes = sweep(functions.gpu, tasks(4), gpus=["0", "GPU-5"])
    assert {outcome.value for outcome in outcomes} <= {"0", "GPU-5"}
    with pytest.raises(BadInput, match="must not share a GPU"):
        sweep(functions.gpu, tasks(1), gpus=["0"], processes=2)


def test_equal_tasks_are_refused(functions):
    with pytest.raises(BadInput, match="same arguments"):
        sweep(functions.square, [*tasks(2), *tasks(1)])


def test_a_cluster_that_is_not_there_is_one_line():
    with pytest.raises(BadInput, match="cannot be reached"):
        sweep(print, tasks(1), cluster="tcp://127.0.0.1:9")


@pytest.mark.slow
def test_a_worker_of_a_cluster_is_killed_in_mid_sweep(functions, tmp_path):
    """A scheduler and two workers from the command line; the worker that has begun a task is killed."""
    log = tmp_path / "log"
    with command_line_cluster(tmp_path, tmp_path / "importable") as (address, workers):
        killed = []

        def kill_one(share, words=""):
            begun = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
            victims = workers & {int(pid) for _, pid in begun}
            if share > 0.2 and victims and not killed:
                killed.append(victims.pop())
                os.kill(killed[0], signal.SIGKILL)

        outcomes = sweep(
            functions.slow, tasks(20, log=str(log)), cluster=address, journal=tmp_path / "j.jsonl", progress=kill_one
        )
    assert killed
    assert [(outcome.value, outcome.error) for outcome in outcomes] == [(number * 10, "") for number in range(20)]
    lines = (tmp_path / "j.jsonl").read_text().splitlines()
    assert len(lines) == len({json.loads(line)["key"] for line in lines}) == 20
    assert len({line.split()[1] for line in log.read_text().splitlines()}) == 2, "both workers had work"
