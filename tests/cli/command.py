"""Runs the command line in this process, as `cuzklab` would."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from cuzklab.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left: its exit status and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def cuzklab(*arguments: object) -> Done:
    """Run `cuzklab` with arguments."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with (
        patch("sys.argv", ["cuzklab", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Done(status, out.getvalue(), err.getvalue())
