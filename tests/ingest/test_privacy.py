"""A secret in a capture gets into nothing that is written or printed."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cuzklab.ingest.privacy import LONGEST_NAME, Texts, secret_values
from cuzklab.report import write_report
from tests.cli.command import cuzklab
from tests.ingest import synthetic
from tests.ingest.showing import notebook_shows

SECRET = "correct-horse-battery-staple"
TOKEN = "hf_" + "Zq8" * 10
PRIVATE = ("/home/alice/keys", "alice-laptop", "--password=opensesame-1")


def leaky(folder: Path, in_names: bool = False) -> Path:
    """An export with secrets in every place where Nsight Systems puts what it should not."""
    who = {"start": 0, "end": 9, "globalTid": synthetic.tid(3, 4)}
    text = f"stage {SECRET} {TOKEN}" if in_names else "stage"
    environment = f"PATH=/bin\0API_KEY={SECRET}\0HF_TOKEN={TOKEN}\0HOME={PRIVATE[0]}"
    return synthetic.write(
        folder / "leaky.sqlite",
        {
            "StringIds": [(1, f"log in with {SECRET} {TOKEN}"), (2, f"{PRIVATE[0]}/out.log"), (3, "kernel")],
            "ProcessStreams": [(synthetic.pid(3), 2, 1)],
            "META_DATA_CAPTURE": [
                ("PROCESS_0:ENVIRONMENT_VARIABLE", f"DB_PASSWORD={SECRET}"),
                ("PROCESS_0:COMMAND", f"{PRIVATE[0]}/prog"),
                ("PROCESS_0:ARGUMENT_0", PRIVATE[2]), ("PROCESS_0:WORKING_DIR", PRIVATE[0]),
            ],
            "META_DATA_EXPORT": [("EXPORT_HOST", PRIVATE[1]), ("EXPORT_PARAM_INPUT_PATH", PRIVATE[0])],
            "TARGET_INFO_SYSTEM_ENV": [("DeviceEnvironment", environment.encode()), ("Hostname", PRIVATE[1])],
            "DIAGNOSTIC_EVENT": [(0, f"lost {PRIVATE[0]} {SECRET}"), (1, f"3 events were lost by {SECRET}")],
            "PROCESSES": [(synthetic.pid(3), 3, f"{PRIVATE[0]}/prog")],
            "NVTX_EVENTS": synthetic.ranges([{**who, "text": text}]),
            "CUPTI_ACTIVITY_KIND_KERNEL": [(1, 2, 0, 1, 7, 1, synthetic.pid(3), 3, 3)],
        },
    )  # fmt: skip


def everything_in(folder: Path) -> str:
    """The bytes of every file, and the rows of every Parquet file."""
    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found.append(file.read_bytes().decode("utf-8", "replace"))
            if file.suffix == ".parquet":
                found.append(json.dumps(pq.read_table(file).to_pylist(), ensure_ascii=False))
    return "\n".join(found)


@pytest.mark.parametrize("in_names", [False, True])
def test_no_run_and_no_message_has_a_secret(tmp_path, in_names):
    source = tmp_path / "source"
    source.mkdir()
    out = tmp_path / "out"
    done = cuzklab("import", leaky(source, in_names), "-o", out / "run")
    as_json = cuzklab("import", source / "leaky.sqlite", "-o", out / "again", "--json")
    shown = cuzklab("runs", "show", out / "run")
    assert (done.status, as_json.status, shown.status) == (0, 0, 0)
    page = notebook_shows(out / "run", out / "report")
    printed = (done.out, done.err, as_json.out, as_json.err, shown.out, page)
    everything = "\n".join([everything_in(out), *printed])
    assert "kernel" in everything and "stage" in everything
    for secret in (SECRET, TOKEN, *PRIVATE):
        assert secret not in everything
    if in_names:
        assert "(redacted)" in everything
        assert "Secrets were taken out of" in done.out


def test_a_whole_report_has_none(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    out = tmp_path / "out"
    cuzklab("import", leaky(source, in_names=True), "-o", out / "run")
    written = write_report("capture", out / "report", {"run": str(out / "run")})
    assert written.verdict["decision"] == "described"
    assert written.runs == ((out / "run").resolve(),)
    everything = everything_in(out)
    assert "What it cannot say" in everything
    for secret in (SECRET, TOKEN, *PRIVATE):
        assert secret not in everything


def test_private_things_are_kept_when_asked_for(tmp_path):
    done = cuzklab("import", leaky(tmp_path, in_names=True), "-o", tmp_path / "run", "--keep-private")
    assert done.status == 0
    everything = everything_in(tmp_path / "run")
    assert TOKEN in everything and PRIVATE[2] in everything


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("AWS_SECRET_ACCESS_KEY=abcdefgh", {"abcdefgh"}),
        ("PATH=/usr/bin\0GITHUB_TOKEN='abc12345'\nX=1", {"abc12345"}),
        ("KEYBOARD=qwertz-long", set()),
        ("no variable", set()),
        ("EMPTY_TOKEN=", set()),
    ],
)
def test_secret_looking_variables(line, values):
    assert secret_values([line]) == values


def test_texts_are_lenient_and_short():
    texts = Texts(["hunter22"])
    assert texts(b"a\xff\0b\n") == "a\ufffd\ufffdb "
    assert texts(None) == ""
    assert texts(12) == "12"
    assert texts("my hunter22 is") == "my (redacted) is"
    assert texts.redacted == 1
    long, other = texts("x" * 5000 + "a"), texts("x" * 5000 + "b")
    assert len(long) == LONGEST_NAME and long != other
    assert texts("a ghp_" + "A1" * 12) == "a (redacted)"
