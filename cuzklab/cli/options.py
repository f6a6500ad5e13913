"""What several verbs share: the application, common options, how bad input and results are printed."""

import errno
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab import __version__
from cuzklab.cli.help import Verbs
from cuzklab.cli.places import output_folder
from cuzklab.errors import BadInput

app = typer.Typer(
    cls=Verbs,
    name="cuzklab",
    help="A performance lab for GPU Groth16 proving pipelines: check, simulate, run and explain a design.\n\n"
    "Exit status: 0 done, 1 the thing asked about failed (an unsafe design, an invalid proof), 2 bad usage or input.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", metavar="NAME=VALUE", help="An option of the policy or report; may be given several times."),
]
Policy = Annotated[str, typer.Argument(help="Name of a policy, or path of a Python file.")]
Vram = Annotated[str, typer.Option(help="Device memory, like 16GiB.")]
Backend = Annotated[
    str, typer.Option(metavar="auto|cuda|host", help="Where GPU stages execute; auto is the GPU where there is one.")
]
BackendOrSim = Annotated[
    str,
    typer.Option(
        metavar="auto|cuda|host|sim",
        help="Where live runs execute: the GPU, an emulated device on the CPU (auto takes the GPU where there is one), "
        "or sim: nowhere, in virtual time.",
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="CPU threads; all cores by default.")]
Out = Annotated[
    Path | None,
    output_folder("Folder of the run to make; where there is one of that name, a number is added."),
]

DEFAULT_STORE = Path("reports")
INTERRUPTED = 130  # exit status, as a shell gives it after Ctrl-C
# What a person can mend about a file, or about the disk that it is on.
_OF_THE_USER = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
}
_LEAST_BYTES = 1 << 20  # a bare number below it was meant to have a unit


def _print_version(asked: bool) -> None:
    if asked:
        print(f"cuzklab {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options before the verb."""


def main() -> None:
    """Entry point: bad input becomes one line on standard error and exit status 2."""
    try:
        app(prog_name="cuzklab")
    except SystemExit as end:
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):  # as typer passes Ctrl-C on
            print("cuzklab: interrupted; nothing half written was kept", file=sys.stderr)
        raise
    except KeyboardInterrupt:
        print("cuzklab: interrupted; nothing half written was kept", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader went away; Python must not complain at exit that it cannot flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except ValueError as error:
        if not _is_bad_input(error):
            raise
        print(f"cuzklab: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in _OF_THE_USER or error.filename is None:
            raise
        print(f"cuzklab: {error.filename}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None


def _is_bad_input(error: ValueError) -> bool:
    """Whether an error is one that the user caused; the rooms at the bottom have classes of their own for it."""
    return isinstance(error, BadInput) or type(error).__name__ in ("UnknownPolicy", "RunError", "QueryError")


@contextmanager
def resumable(words: str) -> Iterator[None]:
    """Work that goes on where Ctrl-C stopped it: the words say how."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"cuzklab: interrupted; {words}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def emit(value: Any) -> None:
    """Print a value as JSON on standard output; a number that JSON does not have (NaN) is null."""
    print(json.dumps(_finite(value), indent=1, default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def parameters_of(pairs: list[str] | None) -> dict[str, str]:
    """The values of `-p NAME=VALUE`."""
    values = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadInput(f"-p {pair!r}: write it NAME=VALUE")
        values[name] = value
    return values


def policy_options(pairs: list[str] | None, elsewhere: dict[str, str]) -> dict[str, str]:
    """The options of a policy; knobs of the engine that this verb has as options of its own are refused by name."""
    values = parameters_of(pairs)
    for name in values:
        if name in elsewhere:
            raise BadInput(f"-p {name}={values[name]}: here that is {elsewhere[name]} {values[name]}")
    return values


def size_of(text: str, option: str) -> int:
    """Bytes of a size given by the user."""
    from cuzklab.units import format_size, parse_size

    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    if size_bytes <= 0:
        raise BadInput(f"{option}: must be more than nothing")
    if text.strip().isdigit() and size_bytes < _LEAST_BYTES:
        raise BadInput(f"{option} {text}: that is {text} bytes; write the unit, like {text.strip()}GiB")
    if _is_decimal(text):
        print(
            f"cuzklab: {option} {text} is {format_size(size_bytes)}; cards have {text.strip()[:-1]}iB", file=sys.stderr
        )
    return size_bytes


def _is_decimal(text: str) -> bool:
    """Whether a size is in powers of 1000, which no card's memory is."""
    return text.strip().upper().endswith(("GB", "MB", "TB"))


def count_of(text: str, option: str, most: int = 9_999_999) -> int:
    """A whole number from 1 on, given by the user."""
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) > 0):
        raise BadInput(f"{option}={text}: write a whole number from 1 on")
    if int(text) > most:
        raise BadInput(f"{option}={text}: write at most {most:,}")
    return int(text)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def backend_in_force(wanted: str, *, simulated: bool = False) -> str:
    """The backend that `--backend` comes to: cuda, host or, where the verb has it, sim; says which GPU is used."""
    from cuzklab.backends.choose import choose

    choice = choose(wanted, offers=("cuda", "host", "sim") if simulated else ("cuda", "host"))
    if choice.why:
        print(f"cuzklab: {choice.why}", file=sys.stderr)
    return choice.name


def print_facts(facts: dict[str, Any]) -> None:
    """Names and values, one a line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else value
        print(f"{name.replace('_', ' '):{width}}  {text}")


def print_table(rows: list[dict[str, Any]]) -> None:
    """A plain table on standard output; as wide as its content when it is not a terminal."""
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(f"{value:,}" if isinstance(value, int) else str(value)) for value in row.values()))
    console = Console(soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 200)
    console.print(table)


def format_metric(metric: Any) -> str:
    """A figure with its unit."""
    from cuzklab.units import format_value

    return format_value(metric.value, metric.unit)
