"""`bench trial` reads a change in which nothing is trusted."""

import json

import pytest
from typer.testing import CliRunner

from cuzklab.cli import app
from cuzklab.cli.trials import _change
from cuzklab.errors import BadInput


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "an object with the fields"),
        ('{"more": 1}', "an object"),
        ('{"edits": {}}', "edits must be a list"),
        ('{"macros": []}', "macros must be an object"),
        ('{"edits": [{"file": "a"}]}', r"edits\[0\]: an edit has"),
        ('{"edits": [{"file": "a", "old": "", "new": ""}]}', "not empty"),
        ('{"macros": {"a.cu": {"THREADS": "64"}}}', "whole numbers"),
        ('{"macros": {"a.cu": 3}}', "whole numbers"),
    ],
)
def test_a_file_that_is_no_change_is_refused_in_one_line(tmp_path, text, words):
    path = tmp_path / "change.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=words) as caught:
        _change(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_one_that_is_far_too_large_are_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        _change(tmp_path / "none.json")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * ((4 << 20) + 1))
    with pytest.raises(BadInput, match="larger than"):
        _change(large)


def test_an_edit_outside_the_kernels_is_refused(tmp_path):
    path = tmp_path / "change.json"
    path.write_text(json.dumps({"edits": [{"file": "../pyproject.toml", "old": "a", "new": "b"}]}))
    result = CliRunner().invoke(app, ["bench", "trial", "ntt", "--change", str(path), "--backend", "host"])
    assert isinstance(result.exception, BadInput)
    assert "no such file" in str(result.exception)
