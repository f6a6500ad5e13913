"""Reports that are made by themselves: when, with what, what became of them, and what they show over time.

`plan` reads lab/schedules/*.toml, `timers` writes the systemd units or the line of a crontab, `night` makes one
scheduled report (alone, with reruns where a figure is suspect), `log` keeps what became of each, `index` draws the page
of all reports with their trends.
"""

from cuzklab.report.scheduling.log import Entry, Log
from cuzklab.report.scheduling.night import Night, make_scheduled
from cuzklab.report.scheduling.plan import Schedule, load, schedules

__all__ = ["Entry", "Log", "Night", "Schedule", "load", "make_scheduled", "schedules"]
