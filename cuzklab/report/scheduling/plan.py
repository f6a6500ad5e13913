"""What is made when: `lab/schedules/*.toml`."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cuzklab import resources
from cuzklab.errors import BadInput, no_such

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MAX_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Schedule:
    """A report that is made at a time of the day.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    title, report : str
        For people; and the report's name.
    hour, minute : int
        Local time.
    days : tuple of int
        Weekdays, Monday 0.
    parameters : mapping
        Of the report.
    deadline_s : float
        For a night's work, reruns included.
    confirm : int
        Reruns at most; 0 for none.
    keep : int
        Reports that are kept, the newest.
    """

    name: str
    title: str
    report: str
    hour: int
    minute: int
    days: tuple[int, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float = 3600
    confirm: int = 6
    keep: int = 60

    @property
    def words(self) -> str:
        """When, for people."""
        days = "every day" if len(self.days) == 7 else ", ".join(WEEKDAYS[day] for day in self.days)
        return f"{self.hour:02d}:{self.minute:02d} {days}"

    def next_after(self, moment: datetime) -> datetime:
        """The first time at which it is due after a moment; both local."""
        due = moment.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0)
        while due <= moment or due.weekday() not in self.days:
            due += timedelta(days=1)
        return due

    def missed(self, last: datetime, now: datetime) -> int:
        """How often it was due between two moments, the newest time left out: that is what runs now."""
        count, due = 0, self.next_after(last)
        while due <= now:
            count += 1
            due = self.next_after(due)
        return max(0, count - 1)


def schedules() -> dict[str, Path]:
    """The schedules that are there, by name."""
    return {path.stem: path for path in sorted((resources.folder("lab") / "schedules").glob("*.toml"))}


def load(name: str | Path) -> Schedule:
    """Read a schedule by its name, or by the path of a TOML file.

    Raises
    ------
    BadInput
        There is none, or a field is unknown, absent or wrong; the message names file and field.
    """
    text = str(name)
    if text.endswith(".toml"):
        path = Path(text)
    elif text in (known := schedules()):
        path = known[text]
    else:
        raise BadInput(no_such("schedule", text, known, "or give the path of a TOML file"))
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise BadInput(f"{path}: larger than any schedule")
        fields = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
    return _Fields(path, fields).schedule()


@dataclass
class _Fields:
    path: Path
    values: dict[str, Any]

    def schedule(self) -> Schedule:
        if not _NAME.fullmatch(self.path.stem):
            raise BadInput(
                f"{self.path}: name the file with small letters, digits, - and _ (it becomes a timer's name)"
            )
        hour, minute = self._time()
        found = Schedule(
            self.path.stem, self._take("title", str), self._take("report", str), hour, minute, self._days(),
            self._take("parameters", dict, {}),
            60.0 * self._count("deadline_minutes", 60, 1), self._count("confirm", 6, 0), self._count("keep", 60, 1),
        )  # fmt: skip
        if self.values:
            raise BadInput(f"{self.path}: unknown field {', '.join(sorted(self.values))}")
        return found

    def _take(self, name: str, kind: type, default: Any = None) -> Any:
        value = self.values.pop(name, default)
        if value is None:
            raise BadInput(f"{self.path}: {name} is missing")
        if not isinstance(value, kind) or (kind is str and not value.strip()):
            raise BadInput(f"{self.path}: {name} must be {'text' if kind is str else 'a table'}, not {value!r}")
        return value

    def _count(self, name: str, default: int, least: int) -> int:
        value = self.values.pop(name, default)
        if type(value) is not int or not least <= value <= 100_000:
            raise BadInput(f"{self.path}: {name} must be a whole number from {least} on, not {value!r}")
        return value

    def _time(self) -> tuple[int, int]:
        text = self._take("time", str)
        match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text)
        if not match:
            raise BadInput(f"{self.path}: time must be written like 02:30, not {text!r}")
        return int(match[1]), int(match[2])

    def _days(self) -> tuple[int, ...]:
        given = self.values.pop("days", ["daily"])
        if given == ["daily"]:
            return tuple(range(7))
        if not isinstance(given, list) or not given or any(day not in WEEKDAYS for day in given):
            raise BadInput(f'{self.path}: days must be ["daily"] or a list of {", ".join(WEEKDAYS)}, not {given!r}')
        return tuple(sorted({WEEKDAYS.index(day) for day in given}))
