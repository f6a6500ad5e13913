"""A dask cluster as an operator starts one: a scheduler and workers from the command line."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def command_line_cluster(folder: Path, *importable: Path) -> Iterator[tuple[str, set[int]]]:
    """A scheduler and two workers of one thread each; the address, and the workers' process ids.

    Modules in the `importable` folders, and of this package, can be imported by the workers.
    """
    path = os.pathsep.join([str(ROOT), *map(str, importable), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "DASK_LOGGING__DISTRIBUTED": "error"}
    address_file = folder / "scheduler.json"
    started: list[subprocess.Popen] = []

    def start(program: str, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--no-dashboard"]
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1]

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(address_file))
        until = time.monotonic() + 60
        while not address_file.exists() and time.monotonic() < until:
            time.sleep(0.1)
        options = ("--scheduler-file", str(address_file), "--nthreads", "1", "--no-nanny")
        workers = {start("dask_worker", *options).pid for _ in range(2)}
        yield json.loads(address_file.read_text())["address"], workers
    finally:
        for process in started:
            process.kill()
            process.wait()
