"""A file appears whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuzklab.atomic import atomic_write

ROOT = Path(__file__).resolve().parent.parent


def test_new_content_appears_only_at_the_end(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out.bin"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_nothing_behind(tmp_path, error):
    path = tmp_path / "out.bin"
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert os.listdir(tmp_path) == []


def test_a_library_may_write_to_the_name(tmp_path):
    path = tmp_path / "out.json"
    with atomic_write(path) as file, open(file.name, "wb") as other:
        other.write(b"{}")
    assert path.read_bytes() == b"{}"


def test_text_keeps_its_line_ends(tmp_path):
    with atomic_write(tmp_path / "t", "w") as file:
        file.write("µ\r\n")
    assert (tmp_path / "t").read_bytes() == b"\xc2\xb5\r\n"


def test_new_file_obeys_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "t") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o640


def test_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "real").read_bytes() == b"x"


def test_a_pipe_is_written_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with atomic_write(pipe) as file:
            file.write(b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def test_standard_output_by_name():
    program = (
        "from cuzklab.atomic import atomic_write\nwith atomic_write('/dev/stdout', 'w') as file: file.write('there')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("there", "")


def test_refusals_come_before_the_block(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"), atomic_write(tmp_path / "absent" / "x"):
        raise AssertionError("block entered")
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        raise AssertionError("block entered")
    with pytest.raises(ValueError, match="mode"), atomic_write(tmp_path / "x", "ab"):
        raise AssertionError("block entered")
