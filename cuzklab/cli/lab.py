"""The verb that opens the workbench: lab."""

from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.help import RECORDS
from cuzklab.cli.options import Json, app, emit


@app.command(rich_help_panel=RECORDS)
def lab(
    place: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Your folder: notebooks are copied there unless it has them.")
    ] = Path("cuzklab-lab"),
    ip: Annotated[str, typer.Option(help="An address of loopback; any other is refused.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="A free one unless given.")] = None,
    notebook: Annotated[str, typer.Option(help="What to open first: workbench, tour, author, kernels.")] = "workbench",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    as_json: Json = False,
) -> None:
    """Open the workbench in JupyterLab, on loopback and with a token; Ctrl-C ends it, its kernels and their runs."""
    import signal
    import threading
    import webbrowser

    from cuzklab.errors import BadInput
    from cuzklab.resources import folder
    from cuzklab.workbench.server import jupyterlab

    first = f"{notebook.removesuffix('.ipynb')}.ipynb"
    if not (folder("notebooks") / first).is_file() and not (place / first).is_file():
        known = ", ".join(sorted(path.stem for path in folder("notebooks").glob("*.ipynb")))
        raise BadInput(f"--notebook {notebook}: there is none in {place}; shipped are: {known}")
    asked_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: asked_to_end.set())
    tell = (lambda words: None) if as_json else print
    try:
        with jupyterlab(place, ip=ip, port=port, first=first, tell=tell) as (server, process):
            if as_json:
                emit({"url": server.url, "port": server.port, "pid": server.pid, "folder": str(server.folder)})
                import sys

                sys.stdout.flush()
            else:
                print(
                    f"the workbench is at\n\n  {server.url}\n\nNew here? tour.ipynb shows everything in ten minutes. "
                    "Ctrl-C ends the server, its kernels and their runs.",
                    flush=True,
                )
            if browser:
                webbrowser.open(server.url)
            while process.poll() is None and not asked_to_end.wait(0.5):
                pass
            failed = process.poll() is not None
    except KeyboardInterrupt:
        tell("\nended")
        return
    if failed:
        raise BadInput(f"JupyterLab ended by itself with status {process.returncode}")
