"""Scheduled reports: plans, timers, one night with its reruns, the log, what is removed, the index page."""

import fcntl
import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cuzklab.errors import BadInput
from cuzklab.report.notebook import NotebookFailed
from cuzklab.report.scheduling import Entry, Log, load, make_scheduled, schedules, timers
from cuzklab.report.scheduling.index import write_index
from cuzklab.report.scheduling.night import AlreadyRunning, folder_of, log_of
from cuzklab.report.write import Report
from cuzklab.trace import Recorder, RunInfo, write_run
from cuzklab.units import Metric

PLAN = 'title = "Every night"\nreport = "phase10"\ntime = "02:30"\n'
MONDAY = datetime.fromisoformat("2026-11-30T02:30:00+00:00")


def plan(tmp_path, more="", name="nightly"):
    file = tmp_path / f"{name}.toml"
    file.write_text(PLAN + more)
    return load(str(file))


# --- plans


def test_the_shipped_schedules_are_plans_of_shipped_reports():
    from cuzklab.report.notebook import checked_parameters
    from cuzklab.report.write import notebook_of

    assert "nightly" in schedules()
    for name in schedules():
        found = load(name)
        checked_parameters(notebook_of(found.report), found.parameters)


def test_when_it_is_due_and_how_often_it_was_missed(tmp_path):
    weekly = plan(tmp_path, 'days = ["sat", "mon"]\n')
    assert weekly.words == "02:30 mon, sat"
    assert weekly.next_after(MONDAY) == MONDAY + timedelta(days=5)
    assert weekly.next_after(MONDAY - timedelta(minutes=1)) == MONDAY
    assert weekly.missed(MONDAY, MONDAY + timedelta(days=5)) == 0
    assert weekly.missed(MONDAY, MONDAY + timedelta(days=14, minutes=3)) == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (PLAN.replace('"Every night"', "1"), "title must be text, not 1"),
        (PLAN + "time = 2", "cannot be read"),
        (PLAN.replace("02:30", "2:30"), "time must be written like 02:30, not '2:30'"),
        (PLAN.replace('report = "phase10"\n', ""), "report is missing"),
        (PLAN + 'days = ["monday"]', "days must be"),
        (PLAN + "keep = 0", "keep must be a whole number from 1 on, not 0"),
        (PLAN + "confirm = true", "confirm must be a whole number from 0 on, not True"),
        (PLAN + "evry = 1", "unknown field evry"),
    ],
)
def test_a_bad_plan_is_refused_in_one_line(tmp_path, text, complaint):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as refusal:
        load(str(file))
    assert complaint in str(refusal.value) and str(file) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_name_that_no_timer_can_have_is_refused(tmp_path):
    with pytest.raises(BadInput, match="name the file"):
        plan(tmp_path, name="every night!")


# --- timers


def test_units_that_systemd_accepts(tmp_path):
    if not shutil.which("systemd-analyze"):
        assert not os.environ.get("CI"), "CI must have systemd-analyze"
        pytest.skip("no systemd-analyze on this machine")
    odd = tmp_path / 'a folder with 100% "odd" $signs'
    odd.mkdir()
    schedule = plan(tmp_path, 'days = ["mon", "fri"]\n')
    done = timers.install_systemd(schedule, timers.command("nightly", odd), tmp_path, tmp_path / "units")
    assert [file.name for file in done.files] == ["cuzklab-nightly.service", "cuzklab-nightly.timer"]
    assert not done.active
    assert "OnCalendar=Mon,Fri *-*-* 02:30:00" in done.files[1].read_text()
    assert "Persistent=true" in done.files[1].read_text()
    assert timers.verify(done.files) == ""
    done.files[1].write_text("[Timer]\nOnCalendar=whenever\n")
    assert "whenever" in timers.verify(done.files)
    assert len(timers.remove("nightly", tmp_path / "units")) == 2
    assert not list((tmp_path / "units").iterdir())


def test_a_line_for_cron(tmp_path):
    schedule = plan(tmp_path, 'days = ["sun", "mon"]\n')
    line = timers.cron_line(schedule, ["python", "-m", "x", "50% off"], Path("/some where"))
    assert line == "30 2 * * 1,0 cd '/some where' && python -m x '50\\% off' # cuzklab schedule nightly"


def test_the_crontab_keeps_what_is_not_ours(tmp_path, monkeypatch):
    """Against a crontab program of this test, which keeps its table in a file."""
    table = tmp_path / "table"
    table.write_text("0 0 * * * other\n1 1 * * * old # cuzklab schedule nightly\n")
    program = tmp_path / "bin" / "crontab"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nif [ "$1" = "-l" ]; then cat "{table}"; else cat > "{table}"; fi\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    timers.install_cron(plan(tmp_path), ["new"], tmp_path)
    first, second = table.read_text().splitlines()
    assert first == "0 0 * * * other" and second.endswith("&& new # cuzklab schedule nightly")
    assert timers.remove("nightly", tmp_path) == ["a line of the crontab"]
    assert table.read_text() == "0 0 * * * other\n"


# --- a night


class Machine:
    """A clock that tests move, and a writer of reports whose runs have the batch averages that the test says."""

    def __init__(self, averages, seconds=10.0):
        self.averages, self.seconds = list(averages), seconds
        self.elapsed, self.made = 0.0, []
        self.day = MONDAY

    def now(self):
        return self.day + timedelta(seconds=self.elapsed)

    def monotonic(self):
        return self.elapsed

    def write(self, name, folder, parameters, *, deadline_s, progress):
        average = self.averages.pop(0)
        if isinstance(average, Exception):
            raise average
        self.elapsed += self.seconds
        self.made.append(folder.name)
        conditions = {"c": 1, "gw": 2, "workload": "example"}
        metric = Metric("batch_average", average, "measured", conditions)
        info = RunInfo("live", "a run", policy="phase9", conditions=conditions, metrics=(metric.to_json(),),
                       created=self.now().isoformat(), machine={"processor": "example"})  # fmt: skip
        run = write_run(folder / "runs" / "live", info, Recorder(clock=lambda: 0))
        page = folder / f"{name}.html"
        page.write_text("<title>a report</title>")
        verdict = {"decision": "keep", "sentence": "All is well"}
        return Report(page, folder / "verdict.json", folder / "n.ipynb", verdict, (), (run.path,))

    def past(self, store, nights):
        """Ordinary nights that have been, without the judging of each."""
        self.averages[:0] = [40.0 + 0.02 * (5 * night % 7) + 1e-4 * night for night in range(nights)]
        for _ in range(nights):
            folder = folder_of("nightly", store) / f"{self.now():%Y%m%d-%H%M%S}"
            self.write("phase10", folder, {}, deadline_s=1, progress=None)
            moment = self.now().isoformat()
            log_of("nightly", store).add(Entry(moment, moment, "done", folder.name, "keep: All is well"))
            self.day += timedelta(days=1)
            self.elapsed = 0.0

    def night(self, schedule, store):
        night = make_scheduled(schedule, store, write=self.write, now=self.now, monotonic=self.monotonic)
        self.day += timedelta(days=1)
        self.elapsed = 0.0
        return night


def test_an_ordinary_night_makes_one_report(tmp_path):
    machine = Machine([40.05])
    machine.past(tmp_path, 14)
    night = machine.night(plan(tmp_path), tmp_path)
    assert (night.entry.outcome, night.entry.words, len(night.reports)) == ("done", "keep: All is well", 1)
    assert night.judged[0].judgement.state == "unchanged" and night.judged[0].judgement.baseline == 14


def test_a_slow_night_is_confirmed_before_it_is_an_alarm(tmp_path):
    machine = Machine([44.0, 44.1, 44.2, 44.3, 44.4])
    machine.past(tmp_path, 14)
    slow = machine.night(plan(tmp_path), tmp_path)
    assert slow.entry.outcome == "alarm"
    assert "phase9, 2 workers, live: batch average is 10.3 % slower" in slow.entry.words
    assert machine.made[14:] == ["20261214-023000", *(f"20261214-023000-confirm{n}" for n in (1, 2, 3, 4))]
    assert len([entry for entry in log_of("nightly", tmp_path) if entry.confirms]) == 4


def test_a_disturbed_night_is_no_alarm(tmp_path):
    machine = Machine([48.0, 40.01, 40.03, 40.05, 40.07, 40.09, 40.11])
    machine.past(tmp_path, 14)
    night = machine.night(plan(tmp_path), tmp_path)
    assert night.entry.outcome == "done" and len(night.reports) > 1


def test_reruns_end_with_the_deadline(tmp_path):
    schedule = plan(tmp_path, "deadline_minutes = 1\n")
    machine = Machine([44.0] * 9)
    machine.past(tmp_path, 12)
    machine.seconds = 25.0  # two fit into a minute, a third would not end in time
    assert len(machine.night(schedule, tmp_path).reports) == 2


def test_a_failed_night_is_logged_and_missed_ones_are_counted(tmp_path):
    schedule = plan(tmp_path)
    machine = Machine([40.0, NotebookFailed("phase10: cell 3 raised", "cell", 3, None), 40.0])
    machine.night(schedule, tmp_path)
    failed = machine.night(schedule, tmp_path)
    assert (failed.entry.outcome, failed.entry.words, failed.reports) == ("failed", "phase10: cell 3 raised", ())
    machine.day += timedelta(days=2)
    assert machine.night(schedule, tmp_path).entry.missed == 2
    assert [entry.outcome for entry in log_of("nightly", tmp_path)] == ["done", "failed", "done"]


def test_only_one_at_a_time(tmp_path):
    schedule = plan(tmp_path)
    place = folder_of("nightly", tmp_path)
    place.mkdir(parents=True)
    with open(place / ".lock", "w") as other:
        other.write("4711")
        other.flush()
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(AlreadyRunning, match="has not ended \\(process 4711\\)"):
            Machine([40.0]).night(schedule, tmp_path)
    assert not list(log_of("nightly", tmp_path))


def test_parameters_that_the_report_does_not_have_are_refused_before_anything_starts(tmp_path):
    schedule = plan(tmp_path, "[parameters]\nworkres = 3\n")
    with pytest.raises(BadInput, match="no parameter 'workres'"):
        make_scheduled(schedule, tmp_path)
    assert not folder_of("nightly", tmp_path).exists()


def test_old_reports_go_with_their_reruns(tmp_path):
    schedule = plan(tmp_path, "keep = 2\n")
    machine = Machine([40.0, 41.0, 42.0])
    place = folder_of("nightly", tmp_path)
    machine.night(schedule, tmp_path)
    (place / "20261130-023000-confirm1").mkdir()
    (place / ".removed-by-a-crash").mkdir()
    machine.night(schedule, tmp_path)
    assert machine.night(schedule, tmp_path).removed == ("20261130-023000", "20261130-023000-confirm1")
    assert sorted(path.name for path in place.iterdir() if path.is_dir()) == ["20261201-023000", "20261202-023000"]


def test_a_torn_line_of_the_log_costs_that_line_only(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.add(Entry("a", "b", "done", "one", ""))
    with open(log.path, "ab") as file:
        file.write(b'{"started": "to')
    log.add(Entry("c", "d", "done", "two", ""))
    assert [entry.folder for entry in log] == ["one", "two"]


def test_the_index_names_every_report_and_shows_trends(tmp_path):
    schedule = plan(tmp_path)
    machine = Machine([44.0, 44.1, 44.2, 44.3, 44.4, NotebookFailed("<b>cell 3</b>", "cell", 3, None)])
    machine.past(tmp_path, 14)
    machine.night(schedule, tmp_path)
    machine.night(schedule, tmp_path)
    page = write_index(tmp_path)
    text = page.read_text()
    assert 'href="scheduled/nightly/20261130-023000/phase10.html"' in text
    assert "The newest report of nightly needs a look." in text
    assert "&lt;b&gt;cell 3&lt;/b&gt;" in text and "<b>cell 3</b>" not in text
    figure = json.loads(text.split('data-figure="figure-1">')[1].split("</script>")[0])
    assert len(figure["data"][0]["x"]) == 15
    assert "slower" in text


def test_an_index_without_reports_says_what_to_do(tmp_path):
    assert "cuzklab schedule list" in write_index(tmp_path).read_text()
