"""Logs of engines: read back exactly where the truth is known, and honest where lines are lost."""

import gzip
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.errors import BadInput
from cuzklab.ingest import import_file
from cuzklab.ingest.engine_log.clock import Clock
from cuzklab.ingest.engine_log.vocabulary import Event, Timing, Torn, entries, nanoseconds
from cuzklab.trace import Run
from tests.ingest import synthetic
from tests.ingest.engine_logs import MODERN, MS, OLD, Known, simulated_log, text_of

SECONDS = 10**9


@pytest.fixture
def log(tmp_path):
    """Import a text as a log."""
    numbers = iter(range(10**6))

    def read(text: str | bytes) -> Run:
        number = next(numbers)
        path = tmp_path / f"engine{number}.log"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return import_file(path, tmp_path / f"run{number}")

    return read


def spans(run: Run) -> Counter:
    rows = run.table("spans")
    who = rows["worker"].where(rows["name"] != "synthesis", "")
    return Counter(zip(rows["name"], rows["category"], rows["start"], rows["end"], rows["partition"], who, strict=True))


def rows(run: Run, table: str, *columns: str) -> Counter:
    frame = run.table(table)
    return Counter(zip(*(frame[column] for column in columns), strict=True))


def assert_equal(run: Run, known: Known) -> None:
    assert spans(run) == Counter(known.spans)
    columns = ("requested", "acquired", "released", "partition", "worker", "holder_at_request")
    assert rows(run, "locks", *columns) == Counter(known.locks)
    assert rows(run, "waits", "kind", "start", "end", "partition", "worker", "holder") == Counter(known.waits)


def counts(run: Run) -> Counter:
    total: Counter = Counter()
    for row in run.info.conditions["lines_placed"]:
        total.update({name: value for name, value in row.items() if name != "line"})
    return total


@pytest.mark.parametrize(
    ("policy", "version"),
    [("phase8", MODERN), ("phase9", OLD), ("phase11", OLD), ("phase12", MODERN)],
    ids=["phase8", "phase9-old", "phase11-old", "phase12"],
)
def test_a_log_of_a_known_run_is_read_back_exactly(log, policy, version):
    """With one GPU worker nothing is in doubt."""
    known = simulated_log(policy, version, workers=1)
    run = log(text_of(known))
    assert_equal(run, known)
    assert "doubtful" not in set(run.table("spans")["style"])
    placed = counts(run)
    assert placed["lines"] == sum(entry.untimed for entry in known.entries) == 260
    assert placed["not_placed"] == 0
    assert placed["only_possible_call"] + placed["fits_one_call"] == 260
    figures = {figure["kind"]: figure["value"] for figure in run.info.metrics}
    wall = max(span[3] for span in known.spans if span[0] != "async_dealloc")
    assert figures["wall"] * SECONDS == pytest.approx(wall + 40 * MS)
    assert figures["batch_average"] == pytest.approx(figures["wall"] / 2)
    assert "kernel_occupancy" not in figures
    assert run.info.devices == ({"index": 0, "name": "GPU 0", "vram_limit_bytes": 16 << 30},)


@pytest.mark.parametrize("policy", ["phase9", "phase11", "phase12"])
def test_interleaved_workers_are_told_apart(log, policy):
    known = simulated_log(policy)
    run = log(text_of(known))
    assert_equal(run, known)
    assert counts(run)["in_doubt"] < 0.09 * 260


@pytest.mark.parametrize(("policy", "workers", "seed"), [("phase8", 2, 1), ("phase9", 3, 2), ("phase12", 4, 3)])
def test_what_is_wrong_is_marked_doubtful(log, policy, workers, seed):
    """Two calls that begin within milliseconds can write their lines in either order."""
    known = simulated_log(policy, proofs=3, workers=workers, seed=seed)
    run = log(text_of(known))
    rows = run.table("spans")
    wrong = spans(run) - Counter(known.spans)
    doubtful = rows[rows["style"] == "doubtful"]
    assert {(row[0], row[4]) for row in wrong} <= set(zip(doubtful["name"], doubtful["partition"], strict=True))
    assert sum(wrong.values()) <= 0.03 * len(known.spans)
    assert len(rows) == len(known.spans)


def test_versions_mixed_in_one_log_across_a_restart(log):
    first, second = simulated_log("phase9", OLD), simulated_log("phase12", MODERN, seed=2)
    run = log(text_of(first) + "engine starting\n" + text_of(second))
    pause = max(span[3] for span in first.spans if span[0] == "prove_partition")
    pause_ns = max(pause, *(span[3] for span in first.spans if span[0] == "synthesis"))
    moved = {
        (name, category, start + pause_ns, end + pause_ns, part.replace("p1.", "p3.").replace("p0.", "p2."), who)
        for name, category, start, end, part, who in second.spans
    }  # fmt: skip
    assert spans(run) == Counter(first.spans | moved)
    assert run.info.conditions["engine_starts"] == 2
    assert any("1 times the engine started again" in note for note in run.info.notes)


def test_noise_between_and_within_lines_changes_nothing(log):
    known = simulated_log("phase9")
    noisy = []
    for number, entry in enumerate(known.entries):
        noisy.append(f"thread {number} says: nothing of interest ")
        noisy.append(
            entry.text + ("\r\n" if number % 3 else " and more\n") * bool(number % 2) + "\n" * (number % 2 == 0)
        )
        noisy.append("\0\x1b[31mwarning\x1b[0m \xff\n" * (number % 5 == 0))
    raw = "".join(noisy).encode("latin-1")
    assert_equal(log(raw), known)


def test_gzip_is_read_as_well(log, tmp_path):
    known = simulated_log("phase9")
    packed = tmp_path / "engine.log.gz"
    packed.write_bytes(gzip.compress(text_of(known).encode()))
    assert_equal(import_file(packed, tmp_path / "run"), known)


# What happens to a line of a log.
MUTATIONS = {
    "dropped": lambda line, rng: "",
    "torn": lambda line, rng: line[: rng.randrange(len(line))] + ("\n" if rng.random() < 0.5 else ""),
    "key": lambda line, rng: line.replace("partition=", "partiti0n=").replace("_ms=", "_mz="),
}
# Their ends are taken from what follows where their own was lost.
DERIVED = ("prove_partition", "synthesis")


def lengths_that_are_wrong(run: Run, known: Known) -> set[tuple]:
    """Of the spans that the reader vouches for those whose length is not the truth."""
    truth = {(name, partition, end - start) for name, _, start, end, partition, _ in known.spans}
    rows = run.table("spans")
    rows = rows[(rows["style"] != "doubtful") & ~rows["open"] & (rows["name"] != "ntt_msm_h")]
    rows = rows[~(rows["name"].isin(DERIVED) & (rows["style"] == "placed"))]
    return set(zip(rows["name"], rows["partition"], rows["end"] - rows["start"], strict=True)) - truth


@pytest.mark.parametrize("how", MUTATIONS)
@pytest.mark.parametrize("policy", ["phase9", "phase12"])
def test_lines_that_are_lost_take_little_with_them(log, policy, how):
    """What the reader vouches for is right, and what was lost is counted.

    Where a call's own line is lost, that of another one may take its place unnoticed: one in eight lost lines at most.
    Without its CUZK_NTT_H line a call has one stage ntt_msm_h. A number that is cut is another number, so a torn line
    may be wrong by itself.
    """
    known = simulated_log(policy, proofs=3, workers=3)
    for seed in range(2):
        rng, lines, hit = random.Random(seed), [], 0
        for entry in known.entries:
            chosen = rng.random() < 0.04
            hit += chosen
            lines.append(MUTATIONS[how](f"{entry.text}\n", rng) if chosen else f"{entry.text}\n")
        run = log("".join(lines))
        wrong = lengths_that_are_wrong(run, known)
        assert len(wrong) <= (hit if how == "torn" else hit // 8), wrong
        assert len(known.spans) - len(run.table("spans")) <= 2 * hit
        placed = counts(run)
        assert placed["in_doubt"] + placed["not_placed"] <= 25 + 2 * hit
        assert any("carry neither time nor partition" in note for note in run.info.notes)


@pytest.mark.parametrize("policy", ["phase9", "phase12"])
def test_lines_that_changed_places(log, policy):
    """Two streams are never written at quite the same moment."""
    known = simulated_log(policy, proofs=3, workers=3)
    lines = [f"{entry.text}\n" for entry in known.entries]
    rng = random.Random(5)
    for place in range(0, len(lines) - 1, 7):
        if rng.random() < 0.5:
            lines[place], lines[place + 1] = lines[place + 1], lines[place]
    run = log("".join(lines))
    assert lengths_that_are_wrong(run, known) == set()
    assert len(run.table("spans")) >= len(known.spans) - 5


def test_lines_that_fit_no_call_are_said_to_be_unplaced(log):
    run = log(
        "TIMELINE,1000,GPU_START,a,worker=0,partition=0\n"
        "CUZK_TIMING: prep_msm_ms=500000\n"  # longer than the engine has been running
        "TIMELINE,3000,GPU_END,a,worker=0,partition=0,gpu_ms=2000\n"
        "CUZK_TIMING: async_dealloc_ms=5\n"
    )
    placed = {row["line"]: row for row in run.info.conditions["lines_placed"]}
    assert placed["prep_msm"]["not_placed"] == 1
    assert placed["async_dealloc"]["only_possible_call"] == 1
    assert "Not placed: 1 prep_msm." in run.info.notes
    assert "could not be placed" in run.availability["spans"]["reason"]
    assert spans(run) == Counter(
        {
            ("prove_partition", "call", SECONDS, 3 * SECONDS, "p0.0", "w0"): 1,
            ("async_dealloc", "memory", 3 * SECONDS, 3 * SECONDS + 5 * MS, "p0.0", "w0"): 1,
        }
    )


def test_two_equal_calls_are_told_apart_only_in_doubt(log):
    run = log(
        "TIMELINE,1000,GPU_START,a,worker=0,partition=0\nTIMELINE,1000,GPU_START,a,worker=1,partition=1\n"
        "CUZK_TIMING: prep_msm_ms=100\nCUZK_TIMING: prep_msm_ms=101\nTIMELINE,1200,SYNTH_START,b,kind=winning\n"
    )
    (row,) = run.info.conditions["lines_placed"]
    assert (row["in_doubt"], row["only_possible_call"]) == (2, 0)
    styles = run.table("spans").query("name == 'prep_msm'")
    assert styles["style"].tolist() == ["doubtful", "doubtful"]


def test_what_the_log_lacks_is_said(log):
    run = log("TIMELINE,5,SYNTH_START,a,kind=winning\nTIMELINE,15,SYNTH_END,a,kind=winning,synth_ms=10\n")
    assert spans(run) == Counter({("synthesis", "cpu", 5 * MS, 15 * MS, "p0.0", ""): 1})
    states = {name: entry["state"] for name, entry in run.availability.items()}
    assert states == {
        "spans": "present", "locks": "not captured", "vram": "not captured", "transfers": "not captured",
        "kernels": "not captured", "api_calls": "not captured", "waits": "not captured", "counters": "not captured",
    }  # fmt: skip
    assert all(entry["reason"] for name, entry in run.availability.items() if name != "spans")


def test_a_capture_of_an_engine_that_printed_its_log_is_no_log(tmp_path):
    printed = "TIMELINE,1,SYNTH_START,a,partition=0\n"
    tables = {"StringIds": [(1, printed)], "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.20.3")]}
    export = synthetic.write(tmp_path / "capture.sqlite", tables)
    assert printed.encode() in export.read_bytes()
    assert import_file(export, tmp_path / "run").info.conditions["format"] == "sqlite"


def test_a_log_whose_lines_begin_with_brackets_is_no_json(log):
    run = log(
        "[10:00:00] TIMELINE,5,SYNTH_START,a,partition=0\n[10:00:01] TIMELINE,9,SYNTH_END,a,partition=0,synth_ms=4\n"
    )
    assert run.info.conditions["format"] == "engine log"


def test_text_without_a_time_is_refused(log):
    with pytest.raises(BadInput, match=r"no line with a time .* among 1"):
        log("CUZK_TIMING: prep_msm_ms=5\n")
    with pytest.raises(BadInput, match="nothing that can be imported"):
        log("hello\n")


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("TIMELINE,12,GPU_START,j,worker=1,partition=2", [Event("gpu_start", 12 * MS, "j", 1, 2)]),
        ("TIMELINE,12.5,CHAN_SEND,j,", [Event("queued", 12 * MS + MS // 2, "j")]),
        (
            "TIMELINE,12,GPU_STTIMELINE,13,SYNTH_START,j,partition=4",
            [Torn("torn"), Event("synth_start", 13 * MS, "j", -1, 4)],
        ),
        ("TIMELINE,99999999999999999,GPU_START,j,worker=1,partition=2", [Torn("impossible time")]),
        ("TIMELINE,9,GPU_PAUSE,j,worker=1", [Torn("unknown event")]),
        ("TIMELINE,9,GPU_START,j,worker=1,partition=-2", [Torn("torn")]),
        ("TIMELINE,9,GPU_START,j,worker=99999999999,partition=2", [Torn("torn")]),
        ("TIMELINE,", [Torn("torn")]),
        ("CUZK_TIMING: gpu_tid=3 ntt_msm_h_ms=690", [Timing("ntt_msm_h", {"ntt_msm_h": 690 * MS, "gpu_tid": 3})]),
        ("CUZK_TIMING: prestage_setup=skip_vram free=3", [Timing("prestage_setup", {}, "skip_vram")]),
        ("CUZK_TIMING: mutex_held_ms=12", [Torn("torn")]),
        ("CUZK_TIMING: mutex_held_ms=12 total_start_fn_ms=1e9", [Torn("torn")]),
        ("CUZK_TIMING: frobnicate_ms=12", [Torn("unknown timing")]),
        ("CUZK_NTT_H: d_b_alloc=1ms ntt_kernels=2ms", [Torn("torn")]),
        ("a line of something else", []),
    ],
)  # fmt: skip
def test_entries_of_a_line(line, kinds):
    assert list(entries(line)) == kinds


@given(st.integers(0, 10**12), st.sampled_from(["{}", "{}ms", "{}.25", "{}.250000ms"]))
def test_milliseconds(number, form):
    expected = number * MS + (MS // 4 if "." in form else 0)
    assert nanoseconds(form.format(number)) == expected


@pytest.mark.parametrize("text", ["", "-1", "1e3", "nan", "١٢", "0x10", "1.2.3", "9" * 5000, "ms"])
def test_what_is_no_number_of_milliseconds(text):
    assert nanoseconds(text) is None


def place(clock: Clock, *times_s: float) -> list[tuple[float, bool]]:
    return [(event.time_ns / SECONDS, restarted) for time in times_s
            for event, restarted in clock.place(Event("queued", round(time * SECONDS), "j"))]  # fmt: skip


def test_the_clock_believes_a_leap_only_when_it_is_confirmed():
    clock = Clock()
    assert place(clock, 1, 100, 99, 10**7, 101) == [(1, False), (100, False), (99, False), (101, False)]
    assert clock.unconfirmed == 1
    assert place(clock, 3, 4) == [(104, True), (105, False)]
    assert (clock.restarts, clock.latest_ns) == (1, 105 * SECONDS)
    assert place(clock, 10**6, 10**6 + 1) == [(10**6 + 101, False), (10**6 + 102, False)]


def test_a_log_that_begins_late(log):
    late = 5_000_000
    run = log(f"TIMELINE,{late},SYNTH_START,a,partition=0\nTIMELINE,{late + 7},SYNTH_END,a,partition=0,synth_ms=7\n")
    assert spans(run) == Counter({("synthesis", "cpu", late * MS, (late + 7) * MS, "p0.0", ""): 1})


def test_a_line_of_sixteen_megabytes(log):
    known = simulated_log("phase9", proofs=1)
    text = text_of(known)
    run = log(
        text[: len(text) // 2].rpartition("\n")[0]
        + "\n"
        + "x" * (16 << 20)
        + "\n"
        + text[len(text) // 2 :].partition("\n")[2]
    )
    assert any("lines are longer than" in note for note in run.info.notes)
    assert len(run.table("spans")) > 0.9 * len(known.spans)


FRAGMENTS = st.one_of(
    st.sampled_from([entry.text for entry in simulated_log("phase9", proofs=1).entries]),
    st.sampled_from(["TIMELINE,", "CUZK_TIMING: ", "CUZK_NTT_H: ", ",", "=", "9" * 400, "\0", "-1"]),
    st.text(max_size=12),
)  # fmt: skip


@given(st.lists(st.tuples(FRAGMENTS, st.sampled_from(["", "\n"])), max_size=60))
@settings(max_examples=30)
def test_any_text_is_read_or_refused(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "engine.log"
    path.write_bytes("".join(text + end for text, end in pieces).encode("utf-8", "surrogatepass"))
    try:
        run = import_file(path, folder / "run", importer_name="engine-log")
    except BadInput as error:
        assert "\n" not in str(error)
        return
    frame = run.table("spans")
    assert (frame["start"] >= 0).all() and (frame["end"] >= frame["start"]).all()
    locks = run.table("locks")
    assert (locks["acquired"] >= locks["requested"]).all()
