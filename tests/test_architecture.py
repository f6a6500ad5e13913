"""Dependencies point one way, the core needs no GPU, and modules stay readable."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "cuzklab"

# A room may import the rooms named here (and itself). `errors` and `atomic` belong to everybody.
ALLOWED = {
    "errors": set(),
    "atomic": set(),
    "progress": set(),
    "resources": set(),
    "units": set(),
    "policies": set(),
    "trace": set(),
    "stages": {"units"},
    "profiles": {"units", "stages", "resources"},
    "backends": {"units", "stages", "resources", "profiles"},
    "prover": {"backends", "stages", "units"},
    "check": {"policies", "trace", "stages", "units", "resources"},
    "simulate": {"policies", "trace", "stages", "units", "resources", "profiles"},
    "live": {"policies", "trace", "stages", "units", "resources", "profiles", "prover", "backends"},
    "analysis": {"trace", "units"},
    "ingest": {"trace", "units"},
    "sweep": set(),
    "tuning": {"check", "simulate", "policies", "profiles", "stages", "sweep", "units"},
    "feasibility": {"check", "policies", "sweep", "units"},
    "mutation_sweep": {"check", "policies", "stages", "sweep"},
    "counterexamples": {"check", "simulate", "live", "policies", "profiles", "stages", "trace", "units", "backends"},
    "author": {
        *("check", "counterexamples", "feasibility", "live", "policies", "report", "simulate"),
        *("analysis", "trace", "units"),
    },
    "report": {"analysis", "trace", "units", "resources", "sweep"},
    "workbench": {
        *("analysis", "report", "trace", "units", "resources", "profiles"),
        *("stages", "policies", "simulate", "check", "sweep", "backends"),
    },
}
EVERYBODY = {"errors", "atomic", "progress", "version"}
KNOW_ALL = {"cli", "experiment", "grid", "capacity", "__main__", "__init__"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_share" not in path.parts)


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of cuzklab that a module imports anywhere, inside functions too."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction of a dependency"
            names = [node.module]
            if node.module == "cuzklab":
                names = [f"cuzklab.{alias.name}" for alias in node.names if alias.name != "__version__"]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name.startswith("cuzklab.")}
    return rooms


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dependencies_point_one_way(path):
    room = room_of(path)
    if room in KNOW_ALL:
        return
    assert room in ALLOWED, f"{room} is a new room: say in this test what it may know"
    assert imported_rooms(path) - {room} - EVERYBODY <= ALLOWED[room]


def test_only_the_command_line_and_the_entry_points_know_all():
    for path in modules():
        if room_of(path) not in {"cli", "__main__"}:
            assert "cli" not in imported_rooms(path), f"{path} imports the command line"


def test_modules_stay_readable():
    long = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in long.items() if lines > 450} == {}


def test_help_needs_neither_cuda_nor_the_heavy_packages():
    heavy = ("cupy", "papermill", "pandas", "plotly", "nbconvert", "pyarrow", "simpy", "duckdb")
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from cuzklab.cli import app\n"
        "result = CliRunner().invoke(app, ['--help'])\n"
        "assert result.exit_code == 0, result.output\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
