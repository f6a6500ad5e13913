"""Experiments: what the files say, what is refused, and that an interrupted one goes on."""

import pytest

from cuzklab import experiment, policies
from cuzklab.analysis import Case
from cuzklab.errors import BadInput

SMALL = """
title = "t"
notebook = "phase10"
candidate = "phase10_ordered"
baseline = "phase9"
question = "q"
hypothesis = "h"

[parameters]
vram = "16GiB"
workers = 2
partitions = 1

[[step]]
do = "check"
policy = ["phase9", "phase10_ordered"]
workers = "$workers"
vram = "$vram"
"""


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


def test_a_step_is_done_for_each_combination():
    labels = [step.label for step in experiment.steps(experiment.load("phase10"))]
    assert len(labels) == len(set(labels))
    assert {"check-phase9-w3-16GiB", "live-phase10_ordered-w3-16GiB", "live-phase10_ordered-w3-48GiB"} <= set(labels)


def test_parameters_replace_the_defaults_and_keep_their_type(small):
    loaded = experiment.load(str(small), {"workers": "3", "vram": "24GiB"})
    assert loaded.parameters["workers"] == 3
    assert [step.values["vram"] for step in experiment.steps(loaded)] == ["24GiB", "24GiB"]


def test_what_is_done_is_not_repeated_and_what_changed_is(small, tmp_path):
    first = experiment.execute(str(small), tmp_path / "out")
    assert [run.info.outcome for run in first] == ["ok", "device_oom"]
    again = experiment.execute(str(small), tmp_path / "out")
    assert [run.info.created for run in again] == [run.info.created for run in first]
    assert [run.path for run in again] == [run.path for run in first]

    changed = experiment.execute(str(small), tmp_path / "out", {"partitions": 2})
    assert [run.path for run in changed] == [run.path for run in first]
    assert {run.info.conditions["partitions"] for run in changed} == {2}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "t"', "", "title is missing"),
        ('do = "check"', 'do = "guess"', "step 1: `do` must be one of"),
        ('policy = ["phase9", "phase10_ordered"]', "polices = 1", "step 1: unknown field 'polices'"),
        ('"$workers"', '"$walkers"', "which is no parameter"),
        ("[parameters]", "[parameters", "small.toml"),
    ],
)
def test_a_wrong_file_is_refused_by_name(small, tmp_path, old, new, message):
    small.write_text(SMALL.replace(old, new))
    with pytest.raises(BadInput, match=message):
        experiment.execute(str(small), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gpus": 2}, "has no parameter 'gpus'"),
        ({"workers": "many"}, "workers must be int, not 'many'; the default is 3"),
        ({"workers": 0}, "must be at least 1"),
        ({"vram": "much"}, "is not a size"),
    ],
)
def test_wrong_parameters_are_refused_before_the_start(parameters, message):
    with pytest.raises(BadInput, match=message):
        experiment.load("phase10", parameters)


def test_an_unknown_experiment_is_refused_with_those_that_exist():
    with pytest.raises(BadInput, match="there are: phase10"):
        experiment.load("phase99")


def test_the_notebook_and_the_experiment_have_the_same_defaults():
    from cuzklab import resources
    from cuzklab.report.notebook import parameters_of

    for name in experiment.names():
        declared = parameters_of(resources.folder("notebooks") / f"{experiment.load(name).notebook}.ipynb")
        defaults = {parameter.name: parameter.default for parameter in declared.values() if parameter.name != "out"}
        assert defaults == experiment.load(name).parameters


def test_repetitions_come_in_rounds():
    live = [step for step in experiment.steps(experiment.load("phase10")) if step.do == "live"]
    assert [step.repeat for step in live] == sorted(step.repeat for step in live)
    assert {step.label for step in live if step.repeat == 2} == {
        "live-phase9-w3-16GiB-2", "live-phase10_ordered-w3-48GiB-2",
    }  # fmt: skip


POLICY = """\"Mine.\"
from cuzklab.policies.effects import DeviceSync
from cuzklab.policies.model import program

@program
def prove_partition(p, gpu):
    yield DeviceSync(gpu)
"""


def test_an_edited_policy_is_not_answered_with_what_it_gave_before(small, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(POLICY)
    small.write_text(SMALL.replace('policy = ["phase9", "phase10_ordered"]', f'policy = "{mine}"'))
    (first,) = experiment.execute(str(small), tmp_path / "out")
    assert first.path == tmp_path / "out" / "runs" / "check-mine-w2-16GiB"
    (again,) = experiment.steps(experiment.load(str(small)))
    assert first.info.inputs["step"] == again.key
    mine.write_text(POLICY.replace("Mine", "Mine, edited"))
    (edited,) = experiment.steps(experiment.load(str(small)))
    assert first.info.inputs["step"] != edited.key


def test_a_file_called_as_a_shipped_policy_is_another_design_than_that(small, tmp_path):
    own = tmp_path / "phase9.py"
    own.write_text(POLICY)
    small.write_text(SMALL.replace("phase10_ordered", str(own)))
    loaded = experiment.load(str(small))
    shipped, mine = experiment.execute(str(small), tmp_path / "out")
    assert [run.info.policy for run in (shipped, mine)] == ["phase9", "phase9 (phase9.py)"]
    assert [run.name for run in (shipped, mine)] == ["check-phase9-w2-16GiB", "check-phase9-phase9.py-w2-16GiB"]
    names = [policies.name_of(place) for place in (loaded.candidate, loaded.baseline)]
    assert [Case(*names, (shipped, mine)).select(name) for name in names] == [(mine,), (shipped,)]


def test_edited_sources_and_profiles_make_runs_anew(monkeypatch):
    (before, *_) = experiment.steps(experiment.load("phase10"))
    key = before.key
    monkeypatch.setattr("cuzklab.experiment.sources_digest", lambda: "edited")
    assert before.key != key


@pytest.mark.parametrize(
    ("vram", "ending"),
    [("1.0625TiB", "-1.0625TiB"), ("16GiB", "-16GiB"), ("16.0625GiB", "-16.0625GiB"), ("16 GiB", "-16GiB")],
)
def test_a_run_is_named_after_its_memory_as_given(small, vram, ending):
    step = next(iter(experiment.steps(experiment.load(str(small), {"vram": vram}))))
    assert step.label.endswith(ending)


def test_no_value_leads_out_of_the_folder_of_the_runs():
    values = {"policy": "phase11", "options": {"g2_threads": "../../../x"}, "workers": 2, "vram": "16GiB"}
    assert experiment.Step("live", values).label == "live-phase11-g2_threads-..-..-..-x-w2-16GiB"


def test_two_steps_of_one_name_are_refused_before_anything_is_done(small, tmp_path):
    again = '\n[[step]]\ndo = "check"\npolicy = "phase9"\nworkers = 2\npartitions = 2\nvram = "16GiB"\n'
    small.write_text(SMALL + again)
    with pytest.raises(BadInput, match="two different steps would both be stored as check-phase9-w2-16GiB"):
        experiment.execute(str(small), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [name for name in experiment.names() if name.startswith("phase")])
def test_live_runs_of_a_phase_take_syntheses_at_a_time_and_threads(name):
    loaded = experiment.load(name, {"synthesis_workers": 6, "threads": 4, "log2_domain": 20})
    live = [step.values for step in experiment.steps(loaded, "cuda") if step.do == "live"]
    assert live
    assert {(step["synthesis_workers"], step["threads"], step["log2_domain"], step["backend"]) for step in live} == {
        (6, 4, 20, "cuda")
    }


def test_a_run_that_another_has_made_under_another_name_answers_for_a_step(small, tmp_path):
    first = experiment.execute(str(small), tmp_path / "out")
    first[0].path.rename(tmp_path / "out" / "runs" / "from a grid")
    again = experiment.execute(str(small), tmp_path / "out")
    assert [run.info.created for run in again] == [run.info.created for run in first]
    assert again[0].path.name == "from a grid"


def test_a_check_and_a_live_run_are_the_same_whatever_is_simulated_beside_it():
    keys = [
        {step.label: step.key for step in experiment.steps(experiment.load("phase9", {"hardware": name}))}
        for name in ("rtx5070ti-7995wx", "h200-16core-live")
    ]
    changed = {label.partition("-")[0] for label in keys[0] if keys[0][label] != keys[1][label]}
    assert changed == {"simulate"}
