"""A program that is killed at any moment leaves whole runs or none, and a store that can be read."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from cuzklab.trace.store import list_runs

ROOT = Path(__file__).resolve().parents[2]
KILLS = 50

# Writes runs as fast as it can, each with known rows; begins with its number so that the test knows that it has begun.
WRITER = """
import os
import sys
from pathlib import Path
from cuzklab.report.scheduling.log import Entry, Log
from cuzklab.sweep import Journal
from cuzklab.trace import Recorder, RunInfo, Span, write_run

store = Path(sys.argv[1])
journal, log = Journal(store / "sweep.jsonl"), Log(store / "log.jsonl")
recorder = Recorder(clock=lambda: 0)
for number in range(200):
    recorder.add(Span(number, number + 1, "prep_msm", "cpu"))
os.write(1, b"%d\\n" % os.getpid())  # in one piece
number = len(journal.answers)
while True:
    write_run(store / "runs" / f"run{number}", RunInfo("live", f"run {number}"), recorder)
    journal.add(f"{number}", number)
    log.add(Entry("a", "b", "done", f"run{number}", ""))
    number += 1
    os.write(1, b"whole\\n")
"""


def test_fifty_kills_leave_a_readable_store(tmp_path):
    chance = random.Random(20261130)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    # One process forks the writers, so that Python and its packages are loaded once; each child is killed by itself.
    forker = (
        "import os, sys, signal\nimport cuzklab.report.scheduling.log, cuzklab.sweep, cuzklab.trace, pandas, pyarrow\n"
        f"source = {WRITER!r}\n"
        "for line in sys.stdin:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        exec(compile(source, 'writer', 'exec'), {'__name__': 'writer'})\n"
        "    os.waitpid(child, 0)\n"
        "    os.write(1, b'ended\\n')\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", forker, str(tmp_path)], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    whole = 0
    try:
        for _ in range(KILLS):
            print(file=parent.stdin, flush=True)
            child = int(parent.stdout.readline())
            for _ in range(chance.randrange(3)):
                parent.stdout.readline()
            time.sleep(chance.uniform(0.0, 0.02))  # the moment is what is tested; nothing is waited for
            os.kill(child, signal.SIGKILL)
            while parent.stdout.readline() != "ended\n":
                pass
            runs = list_runs(tmp_path)
            assert len(runs) >= whole, "a run that was whole is gone"
            whole = len(runs)
            for run in runs[:3]:
                assert len(run.table("spans")) == 200
        assert whole > 10
        visible = [path for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")]
        assert len(visible) == whole, "a folder that is no whole run has a run's name"
    finally:
        parent.kill()
        parent.wait()
