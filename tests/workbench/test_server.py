"""`cuzklab lab`: loopback, a token, the user's folder; and, driven by a browser, all views of the workbench."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest

from cuzklab.analysis import blocking, frames
from cuzklab.backends.registry import KERNELS
from cuzklab.errors import BadInput
from cuzklab.ingest import import_file
from cuzklab.resources import folder
from cuzklab.trace import load_run
from cuzklab.workbench.server import checked_ip, copy_notebooks
from tests.report.hostile import hostile_run
from tests.workbench.large import large_run

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tests/js/workbench_check.mjs"


@pytest.mark.parametrize("ip", ["0.0.0.0", "::", "192.168.1.7", "example.org", "", "*"])
def test_any_address_but_loopback_is_refused(ip):
    with pytest.raises(BadInput, match=r"127\.0\.0\.1|loopback"):
        checked_ip(ip)


@pytest.mark.parametrize(("given", "used"), [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1")])
def test_loopback_is_taken(given, used):
    assert checked_ip(given) == used


def test_notebooks_are_copied_and_those_of_the_user_stay(tmp_path):
    (tmp_path / "tour.ipynb").write_text("mine")
    copied = copy_notebooks(tmp_path)
    assert "workbench.ipynb" in copied and "tour.ipynb" not in copied
    assert (tmp_path / "tour.ipynb").read_text() == "mine"
    assert (tmp_path / "workbench.ipynb").read_bytes() == (folder("notebooks") / "workbench.ipynb").read_bytes()
    assert copy_notebooks(tmp_path) == []


def test_the_launcher_names_notebooks_that_are_shipped():
    text = (folder("lab") / "jupyterlab/labextensions/cuzklab-launcher/static/remoteEntry.js").read_text()
    for name in ("tour", "workbench", "author", "kernels"):
        assert f'"{name}.ipynb"' in text
        assert (folder("notebooks") / f"{name}.ipynb").is_file()


def start(place: Path) -> tuple[subprocess.Popen, dict]:
    """`cuzklab lab` on a folder, and what it printed once it answered."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cuzklab", "lab", str(place), "--no-browser", "--json"], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines = []
    while not lines or lines[-1].strip() != "}":
        line = process.stdout.readline()
        assert line, "cuzklab lab ended before it answered"
        lines.append(line)
    return process, json.loads("".join(lines))


def status_of(port: int, path: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status if "/login" not in answer.url else 403
    except urllib.error.HTTPError as error:
        return error.code


def listening(port: int) -> set[str]:
    """Addresses on which something listens at a port, in hexadecimal, as the kernel knows them."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                found.add(local.rpartition(":")[0])
    return found


def children(pid: int) -> list[int]:
    """Processes started by one, and by those."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += [int(entry.name), *children(int(entry.name))]
    return found


def notebook_of(run: Path, target: Path) -> None:
    """A notebook with the explorer on a run."""
    cell = nbformat.v4.new_code_cell(
        f"from cuzklab.workbench import TraceExplorer\nTraceExplorer({str(run)!r}, folder='.')"
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=_kernel()), target)


def _kernel() -> dict:
    shipped = json.loads((folder("notebooks") / "workbench.ipynb").read_text())
    return {"kernelspec": shipped["metadata"]["kernelspec"]}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_workbench_in_a_browser(tmp_path):
    """Open, run all, move sliders, click a wait, start and stop a live run, save, reopen: in JupyterLab and Chromium.

    Screenshots are kept in $CUZKLAB_SHOTS where that is set.
    """
    shots = Path(os.environ.get("CUZKLAB_SHOTS") or tmp_path / "shots")
    shots.mkdir(parents=True, exist_ok=True)
    place = tmp_path / "lab"
    place.mkdir()
    notebook_of(hostile_run(place).path, place / "nasty.ipynb")
    notebook_of(large_run(tmp_path / "large", 1_000_000).path, place / "large.ipynb")
    process, server = start(place)
    started = []
    try:
        assert status_of(server["port"], "/api/contents") == 403
        assert status_of(server["port"], "/api/contents?token=wrong") == 403
        assert status_of(server["port"], "/lab") == 403
        token = server["url"].rpartition("=")[2]
        assert status_of(server["port"], f"/api/contents?token={token}") == 200
        assert listening(server["port"]) == {"0100007F"}
        assert token not in Path(f"/proc/{server['pid']}/cmdline").read_text()
        done = subprocess.run(
            ["node", str(CHECK), server["url"], str(shots)], capture_output=True, text=True, timeout=240, cwd=ROOT
        )
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(done.stderr)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        started = children(server["pid"])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert "failure" not in seen, seen["failure"]
    assert started, "there is no kernel to be ended"
    assert process.returncode == 0
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", server["port"])) != 0

    assert seen["errors"] == []
    assert seen["foreign"] == []
    check_sliders_and_live_run(seen)
    check_explorer(seen, place)
    check_editors(seen)
    check_saved(seen)
    assert seen["large"]["first_ms"] <= seen["large"]["whole_ms"]  # the times themselves are printed: others work here


def check_sliders_and_live_run(seen: dict) -> None:
    assert len(seen["latency_ms"]) == len(seen["whole_ms"]) == 22 and len(seen["large_first_ms"]) == 3
    assert seen["pictures_for_burst"] < 24
    assert "refuses the design" in seen["refusal"] and seen["schedule_rows"] > 5
    assert "waits" in seen["wait_by_key"]
    assert seen["longest_wait"] in seen["wait_by_click"]
    assert "2 proofs of 6 partitions, circuits of 2^15 rows" in seen["planned"]
    assert "2 proofs of 6 partitions, circuits of 2^15 rows" in seen["finished"]
    assert seen["frames_per_s"] <= 10.5
    assert "Stopped" in seen["stopped"]
    assert "2 of 2 proofs verified" in seen["finished"]
    assert seen["markup"] == 0
    assert {"cuzklab: tour", "cuzklab: workbench"} <= set(seen["launcher"])
    assert seen["unreachable"] == []


def check_explorer(seen: dict, place: Path) -> None:
    run = load_run(place / "runs" / "phase9")
    wait, origin = seen["expected_wait"], frames.window(run)[0]
    assert seen["wait_is_drawn"]
    asked = origin + round(wait["start"] + 0.15 * (wait["end"] - wait["start"]))
    walk = blocking.walk_to_root(run, wait["worker"], asked)
    assert walk.root and f"to blame is {walk.root}, which is in {walk.doing}" in seen["root_blocker"]
    assert "Who would have run" in seen["would_have_run"] and wait["worker"] in seen["would_have_run"]
    assert [caption.partition(",")[0] for caption in seen["stretch_tables"]][:3] == ["Device time", "Stages", "Locks"]
    assert "kernels run" in seen["attribution"]
    axis = seen["memory_axis"]
    assert axis["left"] == axis["lanes_left"] and axis["width"] == pytest.approx(axis["lanes_width"], abs=1)
    live_gib = int(seen["memory_at"]) / 2**30
    assert float(seen["memory_said"].split()[0]) == float(f"{live_gib:.3g}")
    (name,) = seen["exported"]
    first, last = (int(part) for part in re.search(r"-(\d+)-(\d+)\.perfetto", name).groups())
    assert first == pytest.approx(0.4 * wait["length"], rel=0.01) and last == pytest.approx(
        0.6 * wait["length"], rel=0.01
    )
    exported = import_file(place / name, place / "again")
    for table in ("spans", "kernels", "waits"):
        rows = run.table(table)
        inside = rows[(rows["end"] >= origin + first) & (rows["start"] <= origin + last)]
        assert len(exported.table(table)) == len(inside), table
    assert seen["found"].replace(",", "") == f"{seen['expected_found'].strip()} found"
    assert "h_msm" in seen["match"]
    assert seen["nasty"]["title"] not in ("pwned", "") and "onerror" in seen["nasty"]["text"]
    assert not {"img", "a", "script", "iframe"} & set(seen["nasty"]["elements"])


def check_editors(seen: dict) -> None:
    assert "NameError" in seen["author_error"] and "deadlock" in seen["author_finding"]
    assert seen["kernels_offered"] == list(KERNELS["host"])
    slip = seen["slip"]
    assert slip["place"].endswith(f"line {slip['line']}") and "unknown_word" in slip["said"]
    assert slip["marked"].split()[-1] == str(slip["line"])
    assert seen["kernel_rows"] == 2 and "Same result" in seen["kernel_verdict"]


def check_saved(seen: dict) -> None:
    views = {"DesignBench", "LiveView", "TraceExplorer", "Compare", "AuthorBench", "KernelBench"}
    for when in ("saved", "saved_after_restart", "saved_when_read"):
        assert views <= set(seen[when]), when
    assert seen["reopened"] == {"policy": "phase9", "pw": "24", "cards": 7, "errors": 0}
    assert seen["without_kernel"].startswith("No kernel")
    assert seen["browser_export"].endswith(".perfetto.json")
    assert "aved by the browser" in seen["export_without_kernel"]
