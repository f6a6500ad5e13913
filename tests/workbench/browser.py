"""Runs the canvas under node and in headless Chromium."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cuzklab.report.canvas import scripts
from cuzklab.workbench.timeline import Timeline
from tests.conftest import ROOT


def need(*programs: str) -> None:
    """Skip where a program is missing, and fail in CI."""
    lacking = [program for program in programs if not shutil.which(program)]
    if lacking:
        message = f"needs {', '.join(lacking)}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


def need_chromium() -> str:
    """Chromium's path; skips where it, node or playwright-core is missing, and fails in CI."""
    chromium = os.environ.get("CUZKLAB_CHROMIUM", shutil.which("chromium") or "chromium")
    need("node", chromium)
    if not os.environ.get("CUZKLAB_NODE_MODULES"):
        message = "needs playwright-core in $CUZKLAB_NODE_MODULES"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return chromium


def in_node(names: Sequence[str], script: str, argument: Any) -> Any:
    """What a script makes of `given`, with `names` out of the canvas' modules at hand.

    The script is the body of a function. The modules are joined as they are for a widget.
    """
    need("node")
    joined = f"{scripts.script('timeline')}\nexport {{ {', '.join(names)} }};"
    source = f"""
    import {{ readFileSync }} from "node:fs";
    const given = JSON.parse(readFileSync(0, "utf8"));
    const {{ {", ".join(names)} }} = await import("data:text/javascript;base64," + given.module);
    const main = async (given) => {{ {script} }};
    console.log(JSON.stringify(await main(given.argument)));
    """
    given = {"module": base64.b64encode(joined.encode()).decode(), "argument": argument}
    done = subprocess.run(
        ["node", "--input-type=module", "-e", source], input=json.dumps(given), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def in_chromium(
    folder: Path, widget: Timeline, window: Sequence[float], steps: Sequence[dict[str, Any]], *options: str,
    whole: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """What a person sees who does `steps` with a widget; see ``tests/js/timeline_check.mjs``.

    `window` is the stretch of time in view, in the unit of the steps' moments.
    """
    chromium = need_chromium()
    state = widget.get_state()
    traits = {name: state[name] for name in ("complete", "exports", "selection", "chosen", "tables")}
    case = folder / "case.json"
    shown = widget._whole if whole else widget._saved
    case.write_text(
        json.dumps(
            {
                "module": widget._esm, "style": widget._css, "traits": traits, "window": list(window),
                "picture": base64.b64encode(widget.picture).decode(), "steps": list(steps), "spans": len(shown),
                "whole": base64.b64encode(widget._whole.to_bytes()).decode() if whole else None,
            }
        )
    )  # fmt: skip
    done = subprocess.run(
        ["node", str(ROOT / "tests/js/timeline_check.mjs"), str(case), *options], capture_output=True, text=True,
        timeout=90, env=os.environ | {"CUZKLAB_CHROMIUM": chromium},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
