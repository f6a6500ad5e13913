"""What the calibrated model promises about published figures; the same bounds for every row, none singled out."""

from functools import cache
from statistics import median

import pytest

from cuzklab.errors import BadInput
from cuzklab.profiles import load_hardware
from cuzklab.simulate import differences, load_published, validate
from cuzklab.simulate.compare import compare_with_published
from cuzklab.simulate.differences import Change, Difference, compare_differences, load_differences

SEEDS = range(5)


@cache
def compared():
    return compare_with_published(seeds=SEEDS)


@pytest.mark.slow
def test_every_published_figure_is_met_within_its_bound():
    errors = {}
    for one in compared():
        if one.row.metric is None or one.row.not_simulated:
            continue
        kind, conditions = one.row.metric.kind, one.row.conditions
        if kind == "peak_host" and conditions["pw"] < 2:
            continue
        bound = {
            "batch_average": 0.13 if one.row.policy in ("phase7", "phase8") and conditions["pw"] >= 18 else 0.07,
            "steady_interval": 0.07,
            "prove_time": 0.12 if conditions["gw"] == 1 else 0.15,
            "peak_host": 0.10,
        }.get(kind, 0.10)
        errors[one.row.words, kind] = (one.error, bound)
    assert len(errors) >= 30
    assert {row: error for row, (error, bound) in errors.items() if abs(error) > bound} == {}
    throughput = [abs(error) for (_, kind), (error, _) in errors.items() if kind in validate.THROUGHPUT_KINDS]
    assert median(throughput) <= 0.025


@pytest.mark.slow
def test_what_ran_out_of_memory_does_with_every_seed_and_nothing_else_does():
    for one in compared():
        if not one.row.not_simulated:
            assert one.same_outcome, (one.row.words, one.outcomes)


@pytest.mark.slow
def test_changes_that_are_resolved_are_reproduced():
    verdicts = {one.difference.words: one.verdict for one in compare_differences(seeds=SEEDS)}
    # What the model does not reproduce: phases 11 and 12 keep the device equally long in it, so what fills the queue of
    # phase 12 as published makes calls of phase 11 longer than published.
    failed = {words for words, verdict in verdicts.items() if verdict == "not reproduced"}
    growth = "prove time grows with the GPU workers: phase 9 gw 1 at j 1 to phase 11 gw 2"
    assert failed == {"phase 12: peak memory, pw 10 to 12", growth}
    assert sum(verdict == "reproduced" for verdict in verdicts.values()) == 7
    assert verdicts["phase 12, pw 5: a second GPU worker"] == "no change, as published"


def _change(least, most, simulated):
    row = load_published()[2]
    return Change(Difference("", row, row, least, most, 0.04), simulated, None, None).verdict


@pytest.mark.parametrize(
    ("least", "most", "simulated", "verdict"),
    [
        (-0.17, -0.11, -0.14, "reproduced"),
        # 0.89 · 1.04 = 0.9256 and 0.83 / 1.04 = 0.7981 are the farthest quotients.
        (-0.17, -0.11, -0.075, "reproduced"),
        (-0.17, -0.11, -0.074, "not reproduced"),
        (-0.17, -0.11, -0.201, "reproduced"),
        (-0.17, -0.11, -0.203, "not reproduced"),
        (-0.17, -0.11, 0.14, "not reproduced"),
        (0.03, 0.03, 0.03, "unresolved"),
        (0.03, 0.03, -0.3, "unresolved"),
        (0.0, 0.0, 0.03, "no change, as published"),
        (0.0, 0.0, 0.05, "not reproduced"),
        (0.1, 0.1, None, "not simulated"),
    ],
)
def test_verdicts_of_differences(least, most, simulated, verdict):
    assert _change(least, most, simulated) == verdict


def test_the_tables_count_fits_and_predictions_apart():
    rows = [row for row in load_published() if row.policy in ("phase0", "phase12") and row.conditions["c"] <= 5]
    found = validate.validate(rows, seeds=(0, 1), members=1)
    lines = validate.table(found)
    assert (
        len(lines) == len(rows)
        and lines[0]["use"] == "not simulated"
        and "no policy has either" in lines[0]["conditions"]
    )
    first = next(line for line in lines if line["published"] == "290 s/proof")
    assert first["use"] == "fit" and " to " in first["90 % of runs"] and abs(first["error_share"]) < 0.07
    counted = {(line["use"], line["figures"]): line["rows"] for line in validate.summary(found)}
    assert counted == {
        ("fit", "throughput"): 2, ("fit", "peak host memory"): 1, ("prediction", "throughput"): 1,
        ("prediction", "peak host memory"): 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("run_to_run = 0.04\n", "", "field run_to_run is missing"),
        ("least = -0.17\n", "", "difference 1: must have the fields"),
        ("least = -0.17", "least = -1.7", "difference 1: field least must be"),
        ("most = -0.11", "most = -0.21", "difference 1: field least is above most"),
        ('before = { policy = "phase7"', 'before = { policy = "phase77"', "difference 1: before: field policy"),
    ],
)
def test_bad_differences_are_refused(tmp_path, old, new, message):
    text = (differences.resources.folder("lab") / "published" / "differences.toml").read_text()
    assert text.count(old) == 1
    file = tmp_path / "differences.toml"
    file.write_text(text.replace(old, new))
    with pytest.raises(BadInput) as raised:
        load_differences(file)
    assert message in str(raised.value)


def test_the_profile_says_what_the_data_cannot_tell():
    calibration = load_hardware("rtx5070ti-7995wx").calibration
    assert len(calibration.members) >= 8
    assert "host.cache_pressure" in calibration.unidentified
    assert "transfer.unpin_s_per_byte" not in calibration.unidentified
