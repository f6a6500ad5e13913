"""snarkjs, where node and the package are installed: the peer that whole proofs are measured beside."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_START_TIMEOUT_S = 30
_SCRIPT = Path(__file__).with_name("snarkjs_peer.mjs")


@dataclass(frozen=True)
class Absent:
    """Why the peer cannot be measured."""

    reason: str


class SnarkjsFailed(RuntimeError):
    """snarkjs answered with an error, or ended."""


@dataclass(frozen=True)
class Snarkjs:
    """A node process with snarkjs and warm workers, as many as the process has cores."""

    process: subprocess.Popen
    version: str

    def load(self, zkey: Path, wtns: Path) -> None:
        """Read a key and a witness into node's memory."""
        self._ask(zkey=str(zkey), wtns=str(wtns))

    def prove(self) -> tuple[float, dict, list[str]]:
        """Wall time of one `groth16.prove` in milliseconds, the proof and the public values as snarkjs writes them."""
        answer = self._ask(prove=True)
        return float(answer["ms"]), answer["proof"], answer["public"]

    def _ask(self, **request: Any) -> dict[str, Any]:
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": "the node process ended"}
        if "error" in answer:
            raise SnarkjsFailed(f"snarkjs: {answer['error']}")
        return answer


def find_node_modules() -> Path | Absent:
    """The folder that holds snarkjs: CUZKLAB_NODE_MODULES, or what `npm root` says here or for the whole machine."""
    if named := os.environ.get("CUZKLAB_NODE_MODULES"):
        found = Path(named)
        return found if (found / "snarkjs").is_dir() else Absent(f"CUZKLAB_NODE_MODULES={named} holds no snarkjs")
    npm = shutil.which("npm")
    for option in ((), ("-g",)) if npm else ():
        try:
            said = subprocess.run([npm, "root", *option], capture_output=True, text=True, timeout=_START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue
        found = Path(said.stdout.strip())
        if said.returncode == 0 and (found / "snarkjs").is_dir():
            return found
    return Absent("snarkjs is not installed: npm install snarkjs, or set CUZKLAB_NODE_MODULES")


@contextmanager
def snarkjs() -> Iterator[Snarkjs | Absent]:
    """The peer while the block runs, or why there is none."""
    modules, node = find_node_modules(), shutil.which("node")
    if isinstance(modules, Absent) or node is None:
        yield modules if isinstance(modules, Absent) else Absent("node is not installed")
        return
    version = json.loads((modules / "snarkjs" / "package.json").read_text())["version"]
    process = subprocess.Popen(
        [node, str(_SCRIPT), str(modules)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Snarkjs(process, version)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=_START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
