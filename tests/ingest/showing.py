"""The notebook of a recording, cell by cell in this process: what it would show, without a kernel."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import nbformat

from cuzklab import resources


def notebook_shows(run: Path, out: Path) -> str:
    """Everything that the notebook displays for a run, HTML and the JSON of figures, as one text."""
    document = nbformat.read(resources.folder("notebooks") / "capture.ipynb", as_version=4)
    names: dict[str, object] = {}
    shown: list[str] = []

    def keep(thing: object, **options: object) -> None:
        if "cuzklab_style" in (options.get("metadata") or {}):
            return  # JupyterLab's styles are ours, and not in a report
        data = thing if isinstance(thing, dict) else {"text/html": thing.data}
        shown.extend(value if isinstance(value, str) else json.dumps(value) for value in data.values())

    with patch("cuzklab.report.display.display", keep), redirect_stdout(StringIO()):
        for cell in document.cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, "capture.ipynb", "exec"), names)
                if "parameters" in cell.metadata.get("tags", []):
                    names.update(run=str(run), out=str(out))
    return "\n".join(shown)
