"""What a person types wrongly: one line that says what to do, exit status 2, nothing written and no time lost."""

import json
from contextlib import contextmanager

import pytest

from cuzklab.cli import designs
from cuzklab.cli.options import emit
from tests.cli.command import Done, cuzklab


def typed(line: str) -> Done:
    """A command, as a person types it."""
    return cuzklab(*line.split())


def refused(done: Done, message: str) -> None:
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("cuzklab: ") and done.err.count("\n") == 1, done.err
    assert message in done.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a file in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not a folder\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check phas9", "Did you mean phase9?"),
        ("check phase10_orderd", "Did you mean phase10_ordered?"),
        ("simulate phase9 --hardware rtx5070ti-7995", "no hardware profile 'rtx5070ti-7995'; there are: "),
        ("simulate phase9 --hardware rtx5070ti-7995", "Did you mean rtx5070ti-7995wx?"),
        ("simulate phase9 -w porep32g", "no workload 'porep32g'; there are: "),
        ("simulate phase9 -w porep32g", "Did you mean porep-32g?"),
        ("report phase01", "Did you mean phase1"),
        ("schedule run nightli", "Did you mean nightly?"),
        ("circuit make sha265 -o c", "Did you mean sha256?"),
        ("grid h20", "Did you mean h200?"),
    ],
)
def test_a_name_with_a_slip_is_told_the_likely_one(arguments, message, folder):
    refused(typed(arguments), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check phase9 --workers 1000000", "workers must be at most 64"),
        ("check phase9 --partitions 99999999999", "partitions must be at most 1000"),
        ("check phase9 --devices 100000", "devices must be at most 64"),
        ("check phase9 --sweep vram=8GiB:9GiB --workers 65", "workers must be at most 64"),
        ("simulate phase9 -p gw=65", "-p gw=65: write at most 64"),
        ("simulate phase9 -p pw=1000000", "-p pw=1000000: write at most 10,000"),
        ("check phase9 --vram 16", "--vram 16: that is 16 bytes; write the unit, like 16GiB"),
        ("report phase10 -p workers=0", "parameter workers = '0': must be at least 1"),
        ("report phase10 -p vram=banana", "'banana' is not a size"),
        ("report sweep phase10 -p vram=16GiB,banana", "'banana' is not a size"),
        ("tune --cluster nonsense -p policy=phase9 -p gw=1 -p pw=8", "write the scheduler's address"),
    ],
)
def test_a_number_beyond_reason_is_refused_at_once(arguments, message, folder):
    arguments = [int(word) if word.isdigit() else word for word in arguments.split()]
    done = cuzklab(*arguments)
    assert done.status == 2 and message in done.err and "Traceback" not in done.err
    assert not (folder / "reports").is_dir() or arguments[0] == "tune"


@pytest.mark.parametrize("arguments", ["run phase9 --seed -1", "circuit make porep-shaped --seed -1 -o c"])
def test_a_seed_is_not_negative(arguments, folder):
    done = typed(arguments)
    assert done.status == 2 and "--seed" in done.err and "greater than or equal to 0" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run phase9 --backend host --host-memory=", "--host-memory: '' is not a size"),
        ("run phase9 --backend host --host-memory 0", "--host-memory: must be more than nothing"),
        ("run phase9 --backend host --workload porep-shaped-10 --host-memory 1MiB", "but 1.00 MiB were given"),
        ("validate nowhere --hardware emulated", "nowhere: neither a stored run nor a folder with some in it"),
        ("validate file --hardware emulated", "file: neither a stored run nor a folder with some in it"),
        ("validate . --hardware emulatd", "Did you mean emulated?"),
    ],
)
def test_memory_and_runs_that_there_are_not_are_refused_before_any_work(arguments, message, folder):
    refused(typed(arguments), message)
    assert not (folder / "reports").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check phase10_ordered --log2-domain 9", "--log2-domain and --backend go with --replay live"),
        ("check phase10_ordered --backend host --replay simulate", "--log2-domain and --backend go with --replay live"),
        ("check phase9 --processes 2", "--processes goes with --sweep and --mutations"),
        ("check phase9 --mutations --workers 3", "--mutations: always 2 workers"),
        ("run phase9 --keep-report x", "--nsys and --keep-report go with --capture"),
        ("check phase9 -p gw=3", "-p gw=3: here that is --workers 3"),
        ("run phase9 -p pw=4", "-p pw=4: here that is --synthesis-workers 4"),
        ("grid h200 --only nosuch", "--only nosuch: no run's name contains it; they are like phase7-gw1"),
        ("run phase9 --nsys /usr/bin/nsys", "--nsys and --keep-report go with --capture"),
        ("simulate --calibrate --explain", "--calibrate goes with none of"),
        ("circuit make sha256 --seed 3 -o c", "--log2-domain and --seed are of porep-shaped"),
        ("circuit make porep-shaped --message m -o c", "--message is of sha256"),
        ("bench kernels --backend host --phases", "--phases: the host backend has no phases"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(arguments, message, folder):
    refused(typed(arguments), message)


@pytest.mark.parametrize(
    "arguments",
    [
        "check phase9 -o file/run",
        "run phase9 -o file/run",
        "simulate phase9 -c 1 -o file/run",
        "tune -p policy=phase9 -o file/tune",
        "report phase10 -o file/report",
        "report all --quick -o file/reports",
        "report sweep phase10 -p workers=2 -o file/reports",
        "circuit make sha256 -o file/circuit",
        "runs recover spilled -o file/run",
        "grid h200 -o file/runs",
    ],
)
def test_a_place_below_a_file_is_refused_before_the_work(arguments, folder, monkeypatch):
    monkeypatch.setattr(designs, "backend_in_force", lambda *_, **__: pytest.fail("the work was begun"))
    refused(typed(arguments), f"{folder / 'file'} is a file, not a folder")


@pytest.mark.parametrize(
    ("place", "message"),
    [("/proc/out", "nothing can be written there"), ("nowhere/out", "its folder does not exist"), (".", "is a folder")],
)
@pytest.mark.parametrize("option", ["setup --r1cs c --seed 1 -o", "prove --key k --witness w -o",
                                    "prove --key k --witness w -o p.json --public"])  # fmt: skip
def test_a_file_that_cannot_be_made_is_refused_before_the_work(option, place, message, folder):
    refused(cuzklab(*option.split(), place), message)


def test_a_proof_and_its_public_values_are_two_files(folder):
    refused(typed("prove --key k --witness w -o p.json --public ./p.json"), "is the file of the proof")


def test_a_device_may_be_written_to(folder):
    done = typed("prove --key nokey --witness w -o /dev/null")
    refused(done, "w: cannot be read")


def test_a_circuit_or_witness_is_no_key(folder):
    (folder / "c").write_bytes(b"r1cs\x01\x00\x00\x00")
    (folder / "w").write_bytes(b"wtns\x02\x00\x00\x00")
    refused(typed("prove --key c --witness w -o p.json"), "c: is a circuit (.r1cs), not a key")
    refused(cuzklab("circuit", "stats", "w"), "w: is a witness (.wtns), not a key")


def test_a_decimal_size_is_told_in_binary(folder):
    done = typed("check phase9 --vram 16GB")
    assert done.err == "cuzklab: --vram 16GB is 14.9 GiB; cards have 16GiB\n"
    assert done.status == 0


def test_an_empty_query_is_refused(folder):
    refused(cuzklab("runs", "query", ""), "query: is empty")


def test_a_file_that_vanishes_is_one_line(folder, monkeypatch):
    def gone(*_, **__):
        raise FileNotFoundError(2, "No such file or directory", "vanished.py")

    monkeypatch.setattr("cuzklab.policies.load", gone)
    refused(cuzklab("check", "phase9"), "vanished.py: No such file or directory")


def test_a_stored_check_says_where(folder):
    done = cuzklab("check", "phase9", "-o", "here", "--json")
    assert (done.status, done.json["run"]) == (0, "here")
    assert cuzklab("check", "phase9", "-o", "here").out.splitlines()[-1] == "run  here-2"
    done = typed("simulate phase9 -c 1 --seeds 1 --fits 0 -o there --json")
    assert (done.status, done.json["run"]) == (0, "there")


def test_the_version_is_told():
    from cuzklab import __version__

    assert cuzklab("--version").out == f"cuzklab {__version__}\n"


def test_no_verb_is_cut_short_in_the_list():
    done = cuzklab("--help")
    assert "..." not in done.out.removeprefix("Usage: cuzklab [OPTIONS] COMMAND [ARGS]...")
    for group in ("Designs", "What ran", "Other engines", "Proofs and kernels"):
        assert group in done.out
    assert "Commands:" not in done.out  # every verb is in a group


def test_a_figure_that_is_no_number_is_null_in_json(capsys):
    emit({"level": float("nan"), "rows": [(1.5, float("inf"))]})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {"level": None, "rows": [[1.5, None]]}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("simulate phase9 -c 1", "nothing half written was kept"),
        ("report phase10 --backend sim", "`cuzklab report phase10 -o reports/phase10-"),
        ("report all --quick", "the same command goes on in reports/all"),
        ("tune -p policy=phase9 -p gw=1 -p pw=8", "the same command goes on there"),
    ],
)
def test_ctrl_c_is_one_line(line, words, folder, monkeypatch):
    @contextmanager
    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    for module in ("simulation", "reports", "tune"):
        monkeypatch.setattr(f"cuzklab.cli.{module}.progress", interrupted)
    done = typed(line)
    assert (done.status, done.out) == (130, "")
    assert done.err.startswith("cuzklab: interrupted; ") and done.err.count("\n") == 1
    assert words in done.err


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--witness nowhere", "nowhere: cannot be read"),
        ("--witness w --r x", "--r 'x': write a decimal number"),
        ("--witness w --witness nowhere -o p.jsonl", "nowhere: cannot be read"),
    ],
)
def test_a_slip_is_told_before_a_key_is_looked_through(rest, message, folder, monkeypatch):
    (folder / "w").write_bytes(b"wtns\x02\x00\x00\x00")
    monkeypatch.setattr("cuzklab.prover.keys.open_key", lambda *_: pytest.fail("the key was opened"))
    refused(typed(f"prove --key k -o p.json {rest}"), message)
