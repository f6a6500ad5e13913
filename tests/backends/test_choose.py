"""Which backend is in force, with and without CuPy, with and without a GPU."""

import importlib.util
from types import SimpleNamespace

import pytest

from cuzklab.backends import choose as chosen
from cuzklab.backends import cuda
from cuzklab.backends.choose import Choice, choose
from cuzklab.backends.cuda import card as cards
from cuzklab.errors import BadInput

REASON = "CUDA: the driver sees no GPU; use --backend host"


@pytest.fixture
def machine(monkeypatch):
    """A machine with or without CuPy, and with a reason why the GPU cannot be used, or none."""

    def make(installed: bool, reason: str | None) -> None:
        find = importlib.util.find_spec
        monkeypatch.setattr(
            chosen.importlib.util,
            "find_spec",
            lambda name, *rest: (object() if installed else None) if name == "cupy" else find(name, *rest),
        )
        monkeypatch.setattr(cuda, "available", lambda: reason)
        monkeypatch.setattr(cards, "card", lambda: SimpleNamespace(title="NVIDIA H200"))

    return make


def test_auto_is_the_gpu_where_there_is_one_and_says_so(machine):
    machine(True, None)
    assert choose("auto") == Choice("cuda", "backend cuda: NVIDIA H200 (--backend host uses the CPU)")
    assert choose("cuda") == Choice("cuda") and choose("host") == Choice("host")


def test_auto_is_the_cpu_without_cupy_and_says_nothing(machine):
    machine(False, "CUDA: CuPy is not installed")
    assert choose("auto") == Choice("host")


def test_auto_says_why_an_installed_cuda_is_not_used(machine):
    machine(True, REASON)
    assert choose("auto") == Choice("host", "backend host: CUDA: the driver sees no GPU")


def test_cuda_without_a_gpu_is_refused_with_the_reason(machine):
    machine(True, REASON)
    with pytest.raises(BadInput) as refused:
        choose("cuda")
    assert str(refused.value) == f"--backend cuda: {REASON}"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("abacus", "--backend abacus: no such backend; use auto, cuda, host"),
        ("sim", "--backend sim: makes no sense here; use auto, cuda, host"),
    ],
)
def test_other_words_are_refused(machine, wanted, words):
    machine(False, "")
    with pytest.raises(BadInput) as refused:
        choose(wanted)
    assert str(refused.value) == words


def test_sim_is_offered_where_it_makes_sense(machine):
    machine(True, None)
    assert choose("sim", offers=("cuda", "host", "sim")) == Choice("sim")
