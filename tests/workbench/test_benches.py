"""The author's and the kernel bench: what is wrong is shown where it is; nothing of the package is touched."""

import shutil
from functools import partial

import pytest

from cuzklab.backends import bench as host_bench
from cuzklab.backends.cuda import bench as cuda_bench
from cuzklab.backends.cuda import compile as nvrtc
from cuzklab.backends.registry import KERNELS
from cuzklab.errors import BadInput
from cuzklab.resources import folder
from cuzklab.workbench import assets
from cuzklab.workbench.author import START, AuthorBench, line_of
from cuzklab.workbench.kernels import KernelBench, backends, places_in, source_of
from cuzklab.workbench.patience import as_written

LINE = START.splitlines().index("    yield Free(d_bc)") + 1
VIEWS = (("packed", "chart", "design"), ("live",), ("editor", "author"), ("editor", "kernels"))


@pytest.fixture
def author(tmp_path):
    made = AuthorBench("mine", folder=tmp_path, consult=False, c=1, j=1, pw=2)
    yield made
    made.close()


def test_the_first_template_runs(author):
    assert author.bench.picture["outcome"] == "ok"
    assert author.marks == []


@pytest.mark.parametrize(
    ("instead", "words"),
    [("yield Fre(d_bc)", "NameError"), ("yield Free(d_bc", "SyntaxError"), ("yield Free(1 / 0)", "ZeroDivisionError")],
)
def test_what_is_wrong_is_marked_at_its_line(author, instead, words):
    author.source = START.replace("yield Free(d_bc)", instead)
    ((line, said, kind),) = author.marks
    assert (line, kind) == (LINE, "error")
    assert words in said


def test_a_loop_that_never_ends_is_ended_at_its_line(author, monkeypatch):
    monkeypatch.setattr("cuzklab.workbench.design.as_written", partial(as_written, seconds=0.3))
    author.source = START.replace("yield Free(d_bc)", "while True: pass")
    assert author.marks[0][0] == LINE
    assert "does a loop never end?" in author.marks[0][1]


def test_a_finding_of_the_checker_is_marked_at_its_line(author):
    finding = {"kind": "oom", "message": "d_bc does not fit", "where": f"cell mine:{LINE}"}
    author.bench.second = {"of": author.bench.picture["of"], "check": {"findings": [finding]}}
    assert author.marks == [[LINE, "oom: d_bc does not fit", "finding"]]
    author.bench.second = {"of": -1, "check": {"findings": [finding]}}  # of an older text
    assert author.marks == []


def test_the_policy_is_saved_as_it_stands(author, tmp_path):
    assert author.save().read_text() == START
    assert author.saved == str(tmp_path / "mine.py")


@pytest.mark.parametrize("name", ["phase9", "two words", "<img>", ""])
def test_a_name_is_an_identifier_of_its_own(name):
    with pytest.raises(BadInput, match="Python identifier"):
        AuthorBench(name)


def test_lines_are_read_from_messages_of_this_policy_only():
    assert line_of("at cell mine:12: x", "mine") == 12
    assert line_of("at cell other:12: x", "mine") is None


def test_a_change_is_the_difference_to_the_shipped_source():
    bench = KernelBench(backend="host")
    shipped = (folder("kernels") / bench.file).read_text()
    assert bench.text == shipped
    bench._heard(None, {"edit": shipped}, None)
    assert bench._change()["edits"] == []
    bench._heard(None, {"edit": shipped + "//"}, None)
    assert bench._change()["edits"] == [{"file": bench.file, "old": shipped, "new": shipped + "//"}]
    assert (folder("kernels") / bench.file).read_text() == shipped


@pytest.mark.parametrize(
    ("change", "words"),
    [({"macros": "{"}, "macros: not JSON"), ({"options": "[1]"}, "options: write an object")],
)
def test_settings_that_are_no_json_are_told(change, words):
    bench = KernelBench(backend="host")
    bench.settings = {**bench.settings, **change}
    bench.try_change()
    assert words in bench.trial["error"]
    assert bench.state == "idle"


def test_a_file_outside_the_kernels_is_refused():
    bench = KernelBench(backend="host")
    bench.file = "../pyproject.toml"
    assert "no such file" in bench.trial["error"]


@pytest.mark.parametrize("names", VIEWS)
def test_names_never_become_markup_and_nothing_comes_from_elsewhere(names):
    text = assets.module(*names)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"):
        assert word not in text
    assert text.count("export default") == 1


def test_every_kernel_that_the_benches_know_is_offered():
    offered = {one["name"]: one for one in backends()}
    assert offered["host"]["kernels"] == list(host_bench.KERNELS)
    assert offered["cuda"]["kernels"] == list(cuda_bench.KERNELS)
    assert offered["host"]["absent"] == "" and offered["auto"]["kernels"] in [list(of) for of in KERNELS.values()]


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_the_source_of_every_kernel_is_a_file_that_can_be_edited(backend):
    bench = KernelBench(backend="host")
    for kernel in KERNELS[backend]:
        assert source_of(backend, kernel) in bench.files


def test_choosing_a_kernel_opens_its_source_and_one_that_is_unknown_changes_nothing():
    bench = KernelBench(backend="host")
    bench.settings = {**bench.settings, "kernel": "ntt"}
    assert bench.file == source_of("host", "ntt")
    bench.settings = {**bench.settings, "kernel": "no_such"}
    assert bench.file == source_of("host", "ntt")
    with pytest.raises(BadInput, match="has no kernel 'h_polynomial'"):
        KernelBench("h_polynomial", backend="host")


def test_an_error_of_the_cpu_compiler_is_found_at_its_line():
    files = KernelBench(backend="host").files
    words = "g++: the CPU kernels do not compile: /tmp/x/kernels/host/../msm/digits.h:12:3: error: 'x' was not declared"
    assert places_in(f"{words}; set CXX to another compiler", files) == [
        {"file": "msm/digits.h", "line": 12, "words": "'x' was not declared"}
    ]
    assert places_in("/etc/passwd:3: error: no", files) == places_in("", files) == []


def test_an_error_of_nvrtc_is_found_at_its_line(tmp_path):
    root = shutil.copytree(folder("kernels"), tmp_path / "kernels")
    source = root / "cuda/vectors.cu"
    lines = source.read_text().splitlines()
    source.write_text("\n".join([*lines, "unknown_word x;"]))
    with pytest.raises(BadInput) as error:
        nvrtc.compile_unit(nvrtc.Unit("vectors.cu"), 90, root)
    (place,) = places_in(str(error.value), KernelBench(backend="host").files)
    assert (place["file"], place["line"]) == ("cuda/vectors.cu", len(lines) + 1)
    assert "unknown_word" in place["words"]
