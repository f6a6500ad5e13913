"""A run whose every name tries to become markup."""

from pathlib import Path

from cuzklab.trace import Kernel, LockUse, Recorder, Run, RunInfo, Span, Transfer, VramEvent, WaitInterval, write_run
from cuzklab.units import GiB

EVIL = (
    '</script><img src="http://evil.example/x" onerror="document.title=\'pwned\'"><a href="http://evil.example">x</a>'
)
MARKDOWN = "[x](javascript:alert(1)) **bold** <b>tag</b> \u202e\x1b[31m"


def hostile_run(folder: Path, origin: str = "live", outcome: str = "ok") -> Run:
    """All tables hold rows, and every text in them is `EVIL`, or `MARKDOWN` where two must differ."""
    recorder = Recorder(clock=lambda: 0)
    workers = (f"gpu0.w0{EVIL}", f"gpu0.w1{EVIL}")
    for number, worker in enumerate(workers):
        at = number * 3_000_000
        recorder.add(Span(at, at + 4_000_000, EVIL, "cpu", 0, worker, worker, 0, EVIL, -1))
        recorder.add(Span(at, at + 3_000_000, "b_g2_msm", "cpu", 0, worker, worker, 0, EVIL, -1))
        recorder.add(Span(at, at + 2_000_000, MARKDOWN, "gpu", 0, worker, worker, 0, EVIL, 0))
        recorder.add(LockUse(EVIL, at, at + 5_000_000, at + 11_000_000, worker, worker, EVIL, "" if number else EVIL))
        recorder.add(VramEvent(at, "alloc", EVIL, 4 * GiB, 0, 4 * GiB * (number + 1), 10 * GiB, worker, EVIL, EVIL))
        recorder.add(VramEvent(at + 1, "fail", MARKDOWN, 8 * GiB, 0, 4 * GiB * (number + 1), 10 * GiB, worker, EVIL))
        recorder.add(Transfer(at, at + 1_000_000, at, GiB, EVIL, True, EVIL, 0, worker, EVIL))
        recorder.add(Kernel(at + 2_000_000, at + 9_000_000, EVIL, EVIL, 0, at, EVIL, worker, EVIL))
        other = workers[1 - number]
        recorder.add(WaitInterval(at, 21_000_000, EVIL if number else "lock", EVIL, other, worker, EVIL))
    info = RunInfo(
        origin, EVIL, outcome, EVIL, EVIL, {"gw": 2, EVIL: EVIL, "options": {EVIL: EVIL}},
        ({"index": 0, "name": EVIL, "vram_limit_bytes": 10 * GiB},), (), {EVIL: EVIL}, (EVIL, MARKDOWN),
    )  # fmt: skip
    return write_run(folder / f"hostile-{origin}", info, recorder)
