"""The wheel carries everything that the package needs, and works outside the checkout."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "-o", str(out), str(ROOT)], check=True, timeout=300)
    (built,) = out.glob("cuzklab-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The command of an installation made from the wheel, in an environment of its own, with a compiler from PyPI."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place / "venv", with_pip=True)
    pip = [str(place / "venv/bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}[cpu]"], check=True, timeout=600)
    return place / "venv/bin/cuzklab"


def run(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    # No PATH: neither the checkout's tools nor a compiler of the system can help.
    environment = {"HOME": str(cwd), "PATH": str(command.parent), "LANG": "C.UTF-8"}
    return subprocess.run(
        [str(command), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )


def test_the_shipped_folders_travel_inside(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for folder, ending in (("kernels", ".h"), ("kernels", ".cpp"), ("lab", ".toml"), ("notebooks", ".ipynb")):
        inside = [name for name in names if name.startswith(f"cuzklab/_share/{folder}/") and name.endswith(ending)]
        assert inside, f"the wheel has no {ending} in {folder}/"
    assert not [name for name in names if name.startswith("tests/") or "__pycache__" in name]


def test_an_installed_wheel_checks_a_design(installed, tmp_path):
    done = run(installed, "check", "phase9", "--workers", "2", "--vram", "16GiB", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "safe"


def test_an_installed_wheel_proves_and_verifies_without_a_system_compiler(installed, tmp_path):
    for arguments in (
        ("circuit", "make", "sha256", "-o", "circuit"),
        ("setup", "--r1cs", "circuit/circuit.r1cs", "--seed", "1", "-o", "key.zkey"),
        (
            "prove",
            "--key",
            "key.zkey",
            "--witness",
            "circuit/circuit.wtns",
            "-o",
            "proof.json",
            "--public",
            "public.json",
        ),
        ("verify", "--key", "key.zkey", "--public", "public.json", "--proof", "proof.json"),
    ):
        done = run(installed, *arguments, cwd=tmp_path)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"


def test_an_installed_wheel_reports(installed, tmp_path):
    done = run(installed, "report", "phase10", "-o", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert Path(result["html"]).stat().st_size > 100_000
    assert result["findings"] > 0
