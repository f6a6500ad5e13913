"""A sweep of reports over a cluster, one of whose workers is killed in the middle of a report."""

import json
import os
import signal

import pytest

from cuzklab.experiment import sources_digest
from cuzklab.report import many
from tests.cli.command import cuzklab
from tests.clusters import command_line_cluster

# The report of 2 workers is begun, and waits until the test has killed the process that makes it.
CELL = """
import os, time
from pathlib import Path
from cuzklab.report.postmortem import write_record
with open({log!r}, "a") as file:
    file.write(f"{{workers}} {{os.getppid()}}\\n")
while workers == 2 and not Path({killed!r}).exists():
    time.sleep(0.05)
verdict = {{"decision": "keep", "sentence": f"{{workers}} on {{vram}}", "because": [], "would_change": ""}}
write_record({{"verdict": verdict, "findings": [], "runs": []}}, Path("."), {{}})
"""


@pytest.mark.slow
def test_a_worker_of_a_cluster_is_killed_in_the_middle_of_a_report(small_notebook, tmp_path):
    log, killed, out = tmp_path / "log", tmp_path / "killed", tmp_path / "out"
    notebook = small_notebook(CELL.format(log=str(log), killed=str(killed)))
    order = ("2", "1", "3", "4", "5", "6")

    def begun():
        return [tuple(line.split()) for line in log.read_text().splitlines()] if log.exists() else []

    with command_line_cluster(tmp_path) as (address, workers):

        def kill_one(share, words=""):
            victims = [int(pid) for number, pid in begun() if number == "2"]
            if victims and not killed.exists():
                assert victims[0] in workers
                os.kill(victims[0], signal.SIGKILL)
                killed.touch()

        made = many.make_grid(
            notebook, out, {"workers": ",".join(order), "vram": "8GiB"}, deadline_s=100, cluster=address,
            progress=kill_one, salt=sources_digest(),
        )  # fmt: skip
        assert killed.exists()
        # Nothing lost: each has its own answer and its page, in the order of the grid.
        assert [(one.sentence, one.resumed) for one in made] == [(f"{number} on 8GiB", False) for number in order]
        assert sorted(path.parent.name for path in out.glob("*/small.html")) == [
            f"small-workers-{n}" for n in range(1, 7)
        ]
        assert [json.loads((out / one.folder / "verdict.json").read_text())["verdict"]["sentence"] for one in made] == [
            one.sentence for one in made
        ]
        # Nothing twice: one answer each is kept, and only what died was begun again, by the other worker.
        keys = [json.loads(line)["key"] for line in (out / many.JOURNAL).read_text().splitlines()]
        assert len(keys) == len(set(keys)) == len(order)
        times = [number for number, _ in begun()]
        assert times.count("2") == 2
        assert len({pid for number, pid in begun() if number == "2"}) == 2
        assert sorted(set(times)) == sorted(order)
        # The same sweep from the command line makes nothing again.
        before = len(times)
        grid = ("-p", f"workers={','.join(order)}", "-p", "vram=8GiB")
        told = json.loads(
            cuzklab(
                "report", "sweep", notebook, *grid, "--cluster", address, "--deadline", "100", "-o", out, "--json"
            ).out
        )
        assert [one["resumed"] for one in told["reports"]] == [True] * len(order)
        assert len(begun()) == before
