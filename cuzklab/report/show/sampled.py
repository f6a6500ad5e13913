"""Sampled stacks of CPU stages, where a run has them."""

import json

from IPython.display import display as show

from cuzklab.errors import BadInput
from cuzklab.report import display, tables
from cuzklab.report.html import EMBEDS_STACKS
from cuzklab.report.stacks import frame
from cuzklab.trace import Run
from cuzklab.trace.recorders.profile import PROFILE_FILE

_MAX_BYTES = 256 << 20


def stacks(run: Run) -> None:
    """pyinstrument's flame view of a run's CPU stages, or the sentence that says why there is none."""
    file = run.path / PROFILE_FILE
    if not file.is_file():
        display.text(f"{run.info.title}: its CPU stages were not sampled.")
        return
    if file.stat().st_size > _MAX_BYTES:
        display.text(f"{file.name}: larger than {_MAX_BYTES} bytes, too large for a report.")
        return
    try:
        embedded = frame(json.loads(file.read_text(encoding="utf-8")))
    except (BadInput, ValueError, RecursionError) as error:
        display.text(f"{file.name}: not readable ({error}).")
        return
    caption = "Sampled stacks of CPU stages (statistical: times are counts of samples, all threads together)"
    html = f"<figure>{embedded}<figcaption>{tables.escape(caption)}</figcaption></figure>"
    show({"text/html": html, "text/plain": caption}, raw=True, metadata={EMBEDS_STACKS: True})
