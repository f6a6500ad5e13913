"""Starts JupyterLab on the workbench: on loopback, always with a token, with settings of its own.

The notebooks are copied to a folder of the user's, where they may be changed; nothing is written into the package, and
the user's own JupyterLab settings are neither read nor touched.
"""

import contextlib
import ipaddress
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cuzklab.errors import BadInput
from cuzklab.resources import folder

FIRST = "workbench.ipynb"
_START_S, _STOP_S = 90.0, 15.0


@dataclass(frozen=True)
class Server:
    """A JupyterLab that answers.

    Attributes
    ----------
    url : str
        Address of the workbench, token included.
    token : str
    port : int
    pid : int
    folder : Path
        Its root: the user's folder.
    """

    url: str
    token: str
    port: int
    pid: int
    folder: Path


def checked_ip(text: str) -> str:
    """An address of this machine's loopback.

    Raises
    ------
    BadInput
        Any other: whoever reaches the server can run programs as you.
    """
    try:
        address = ipaddress.ip_address("127.0.0.1" if text == "localhost" else text)
    except ValueError:
        raise BadInput(f"--ip {text}: not an address; the workbench listens on 127.0.0.1") from None
    if not address.is_loopback:
        raise BadInput(
            f"--ip {text}: the workbench listens on loopback only; from another machine use a tunnel: "
            "ssh -L 8888:127.0.0.1:8888 HOST"
        )
    return str(address)


def free_port(ip: str) -> int:
    """A port that nobody uses."""
    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
        probe.bind((ip, 0))
        return probe.getsockname()[1]


def copy_notebooks(place: Path) -> list[str]:
    """Copy the shipped notebooks into a folder; those that are there already are the user's and stay.

    Returns
    -------
    list of str
        Names of those that were copied.
    """
    place.mkdir(parents=True, exist_ok=True)
    copied = []
    for notebook in sorted(folder("notebooks").glob("*.ipynb")):
        target = place / notebook.name
        if not target.exists():
            shutil.copyfile(notebook, target)
            copied.append(notebook.name)
    return copied


@contextlib.contextmanager
def jupyterlab(
    place: Path, *, ip: str = "127.0.0.1", port: int | None = None, first: str = FIRST,
    tell: Callable[[str], None] = lambda words: None,
) -> Iterator[tuple[Server, subprocess.Popen[bytes]]]:  # fmt: skip
    """JupyterLab on a folder, until the block ends: then the server and its kernels are ended, too.

    Parameters
    ----------
    place : Path
    ip : str
        Of loopback.
    port : int, optional
        A free one unless given.
    first : str
        The notebook that the address opens.
    tell : callable (words)
        Told lines for a person.

    Raises
    ------
    BadInput
        A wrong address, a port in use, or JupyterLab is missing or does not start.
    """
    ip = checked_ip(ip)
    place = place.resolve()
    copied = copy_notebooks(place)
    if copied:
        tell(f"copied {', '.join(copied)} to {place}")
    port = free_port(ip) if port is None else _unused(ip, port)
    token = secrets.token_hex(24)
    with tempfile.TemporaryDirectory(prefix="cuzklab-lab-") as private:
        log_path = Path(private) / "log"
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                _command(place, ip, port, Path(private)), env=_environment(Path(private), token), cwd=place,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            tell("starting JupyterLab …")
            host = f"[{ip}]" if ":" in ip else ip
            _await(process, f"http://{host}:{port}", token, log_path)
            yield (
                Server(f"http://{host}:{port}/lab/tree/{first}?token={token}", token, port, process.pid, place),
                process,
            )
        finally:
            _end(process)


def _command(place: Path, ip: str, port: int, private: Path) -> list[str]:
    settings = folder("lab") / "jupyterlab"
    options = {
        "ServerApp.ip": ip,
        "ServerApp.port": str(port),
        "ServerApp.port_retries": "0",
        "ServerApp.root_dir": str(place),
        "ServerApp.open_browser": "False",
        "ServerApp.allow_remote_access": "False",
        "ServerApp.allow_origin": "",
        "PasswordIdentityProvider.hashed_password": "",
        "ServerApp.log_level": "WARN",
        "LabApp.app_settings_dir": str(settings / "settings"),
        "LabApp.extra_labextensions_path": str(settings / "labextensions"),
        "LabApp.user_settings_dir": str(private / "user-settings"),
        "LabApp.workspaces_dir": str(private / "workspaces"),
        "LabApp.news_url": "None",
        "LabApp.expose_app_in_browser": "True",
    }
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options["ServerApp.allow_root"] = "True"
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]


def _environment(private: Path, token: str) -> dict[str, str]:
    """The token travels in the environment: a command line can be read by everybody on the machine."""
    root = str(Path(__file__).resolve().parents[2])
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER_", "JUPYTERLAB_"))},
        "JUPYTER_TOKEN": token,
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))),
    }


def _unused(ip: str, port: int) -> int:
    try:
        with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ip, port))
    except (OSError, OverflowError) as error:
        raise BadInput(f"--port {port}: cannot be used on {ip} ({error}); leave it out for a free one") from None
    return port


def _await(process: "subprocess.Popen[bytes]", base: str, token: str, log: Path) -> None:
    """Wait until the server answers; whatever it wrote is shown if it does not."""
    request = urllib.request.Request(f"{base}/api/status", headers={"Authorization": f"token {token}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), opener.open(request, timeout=2):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    last = log.read_text(errors="replace").strip().splitlines()[-3:]
    raise BadInput("JupyterLab did not start: " + (" / ".join(last) or f"no answer within {_START_S:g} s"))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the server as it wants to be ended, so that it ends its kernels; then whatever is left of its session."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
