"""Taking a capture with Nsight Systems, and joining one with the run that it was taken of.

`tools` finds the programs and says which is missing; `profile` runs a command under them and leaves an export.
`alignment` finds out how the clock of a capture lies to that of a run; `attach` puts kernels, copies and memory events
of the capture among the run's own spans.
"""

from cuzklab.ingest.capturing.attach import attach
from cuzklab.ingest.capturing.profile import Captured, capture

__all__ = ["Captured", "attach", "capture"]
