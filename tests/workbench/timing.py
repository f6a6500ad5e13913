"""Measures the canvas with a large run: ``python -m tests.workbench.timing [SPANS]`` prints what took how long.

It needs node, Chromium at ``/usr/bin/chromium`` (or ``$CUZKLAB_CHROMIUM``), and playwright-core in
``$CUZKLAB_NODE_MODULES``. Nothing is judged: the figures are those of the machine and of what else runs on it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cuzklab.report.canvas import picture_of
from cuzklab.report.canvas.scripts import document
from cuzklab.trace import load_run
from tests.workbench.large import large_run

SCRIPT = Path(__file__).resolve().parents[1] / "js" / "timeline_timing.mjs"


def measure(folder: Path, spans: int) -> dict[str, float]:
    """Seconds of CPU in Python, milliseconds in the browser, sizes in bytes."""
    run = load_run(large_run(folder / "run", spans).path)
    begun = time.process_time()
    picture = picture_of(run)
    made = time.process_time()
    packed = picture.to_bytes()
    encoded = time.process_time()
    page = folder / "page.html"
    page.write_text(document(picture), encoding="utf-8")
    done = subprocess.run(
        ["node", str(SCRIPT), str(page)], capture_output=True, text=True, timeout=150, check=True, env=os.environ
    )
    return {
        "python_picture_cpu_s": made - begun,
        "python_encode_cpu_s": encoded - made,
        "bytes": len(packed),
        **json.loads(done.stdout),
    }


def main() -> None:
    spans = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), spans)
    print(f"{found['spans']:,} spans, {found['bytes'] / 1e6:.1f} MB, {os.getloadavg()[0]:.1f} others at work")
    print(f"from the stored run to a picture   {found['python_picture_cpu_s']:8.2f} s of CPU")
    print(f"to bytes                           {found['python_encode_cpu_s']:8.2f} s of CPU")
    print(f"from opening the page to a picture {found['pageToPicture']:8.0f} ms")
    print(f"from bytes to a picture            {found['bytesToPicture']:8.0f} ms")
    print(f"from the wheel to a picture        {found['zoom']:8.0f} ms, median of {found['rounds']}")
    print(f"    of which drawing               {found['drawing']:8.0f} ms")
    print(f"    the slowest                    {found['slowestZoom']:8.0f} ms")


if __name__ == "__main__":
    main()
