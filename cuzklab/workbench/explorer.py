"""The trace explorer: the timeline of a run that answers questions about it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuzklab.analysis import frames
from cuzklab.report.canvas import picture_of
from cuzklab.trace import Run, load_run
from cuzklab.workbench.answers import about_bar, about_stretch
from cuzklab.workbench.perfetto import write_stretch
from cuzklab.workbench.texts import sentence_table
from cuzklab.workbench.timeline import Timeline


class TraceExplorer(Timeline):
    """Any run, live, simulated or imported: click a bar, select a stretch of time, search, export.

    A click on a wait tells its root blocker and who would have run; on a hold, whom it delayed. A selection tells what
    the time went into. Export writes the selection (or what is in view) for Perfetto beside the notebook. Answers are
    saved with the notebook.

    Parameters
    ----------
    run : Run or path
        A run, or the directory of one.
    folder : Path, optional
        Where exports are written; by default the current one.
    """

    def __init__(self, run: Run | Path | str, *, folder: Path | str = ".") -> None:
        self.run = run if isinstance(run, Run) else load_run(run)
        self.folder = Path(folder)
        self._bars = frames.timeline(self.run)
        super().__init__(picture_of(self.run, bars=self._bars), exports=True)
        self.observe(self._chose, "chosen")
        self.observe(self._selected, "selection")

    def select(self, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
        """Select a stretch of time, from the start of the run, and return the tables that tell about it."""
        self.selection = [int(start_ns), int(end_ns)]
        return list(self.tables)

    def ask(self, row: int, time_ns: int | None = None) -> list[dict[str, Any]]:
        """What is known about a row of `frames.timeline`, at a moment from the start of the run."""
        bar = self._bars.iloc[row]
        middle = (int(bar["start_ns"]) + int(bar["end_ns"])) // 2
        moment = middle if time_ns is None else time_ns + self._whole.origin_ns
        self.tables = about_bar(self.run, bar, moment)
        return list(self.tables)

    def export(self, start_ns: int, end_ns: int, target: Path | str | None = None) -> Path:
        """Write a stretch of time for Perfetto (https://ui.perfetto.dev opens it); the file that was written."""
        name = f"{self.run.name}-{start_ns}-{end_ns}.perfetto.json"
        target = Path(target) if target else self.folder / name
        origin = self._whole.origin_ns
        events = write_stretch(self.run, origin + start_ns, origin + end_ns, target)
        self.tables = [sentence_table(f"{events:,} events written to {target}; Perfetto opens it.")]
        return target

    def _chose(self, change: Mapping[str, Any]) -> None:
        row = self.row_of(change["new"])
        if row is None:
            many = bool(change["new"])
            self.tables = (
                [sentence_table("This bar stands for many spans: zoom in on a running kernel.")] if many else []
            )
        else:
            self.ask(row, int(change["new"].get("time", 0)))
        self.send({"answered": True})

    def _selected(self, change: Mapping[str, Any]) -> None:
        chosen = change["new"]
        self.tables = about_stretch(self.run, *chosen) if len(chosen) == 2 else []
        self.send({"answered": True})

    def _asked(self, widget: Any, content: Mapping[str, Any], buffers: list[Any]) -> None:
        super()._asked(widget, content, buffers)
        stretch = content.get("range")
        if content.get("ask") == "export" and isinstance(stretch, list) and len(stretch) == 2:
            try:
                self.export(round(stretch[0]), round(stretch[1]))
            except OSError as error:
                self.tables = [sentence_table(f"Not written: {error}")]
            self.send({"answered": True})
