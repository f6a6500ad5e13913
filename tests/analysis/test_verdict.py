"""Verdicts follow from findings, and change when these do."""

import dataclasses
import json

import pytest

from cuzklab.analysis import Case, Finding, find_all
from cuzklab.analysis.registry import finding
from cuzklab.analysis.verdict import grounds, verdict, verdict_json
from cuzklab.trace import Run
from cuzklab.units import GiB, Metric
from tests.analysis.example import (
    example_case,
    phase9_like,
    phase10_out_of_memory,
    phase10_roomy,
    safe_check,
)


def decide(case: Case):
    return verdict(case, find_all(case))


def test_phase_10_on_16_gib_is_reverted_with_its_reasons(tmp_path):
    decided = decide(example_case(tmp_path))
    assert decided.decision == "revert"
    assert decided.because == (
        "design_infeasible_here", "ran_out_of_memory", "baseline_safe", "baseline_completed",
        "overlap_already_achieved", "feasible_at",
    )  # fmt: skip
    assert decided.sentence.startswith(
        "Revert phase10_ordered on 16.0 GiB: it runs out of device memory within 14 steps (proved"
    )
    assert "phase9 already hides 95 % of b_g2_msm" in decided.sentence
    assert decided.would_change.startswith("a device with more memory: it works on 40.0 GiB, where it was measured")


def test_a_verdict_says_on_which_cards_sizes_and_workers_it_rests(tmp_path):
    decided = decide(example_case(tmp_path))
    assert decided.basis == ("Live: example on an emulated device, gw 2; checked: example, 2 workers.")
    assert decided.sentence.endswith(f". {decided.basis}")
    assert decided.head == "Revert phase10_ordered on 16.0 GiB"
    assert decided.sentence.startswith(f"{decided.head}: {decided.reasons[0]}; {decided.reasons[1]}")


def test_a_real_card_that_plays_a_smaller_one_is_named_with_the_size_of_its_circuit(tmp_path):
    run = phase10_roomy(tmp_path)
    gpu = {"index": 0, "name": "NVIDIA H200", "vram_limit_bytes": GiB // 8}
    facts = {**run.info.conditions, "backend": "cuda", "workload": "porep-shaped-20", "vram_equivalent_bytes": 16 * GiB}
    live = Run(run.path, dataclasses.replace(run.info, devices=(gpu,), conditions=facts))
    more = Run(run.path, dataclasses.replace(live.info, policy="phase9", conditions={**facts, "gw": 3}))
    elsewhere = Run(run.path, dataclasses.replace(live.info, conditions={**facts, "vram_equivalent_bytes": 48 * GiB}))
    case = Case("phase10_ordered", "phase9", (live, more, elsewhere), vram_bytes=16 * GiB)
    assert grounds(case) == "Live: 2^20 rows on NVIDIA H200 that plays a card of 16.0 GiB, gw 2 and 3."


def test_what_no_comparison_could_tell_is_said_beside_what_one_told(tmp_path):
    runs = (
        *(phase10_roomy(tmp_path, "simulated", gain_ms=2), phase9_like(tmp_path, "simulated", vram_bytes=40 * GiB)),
        *(phase10_roomy(tmp_path), phase9_like(tmp_path, vram_bytes=40 * GiB)),
    )
    decided = decide(Case("phase10_ordered", "phase9", runs))
    assert decided.decision == "keep"
    assert decided.reasons[1] == "it was measured too few times to tell a gain in the live run with gw 2"
    assert decided.reasons[-1] == "it works on 40.0 GiB"


@pytest.mark.parametrize(("gain_ms", "decision"), [(2, "keep"), (0, "revert"), (-2, "revert")])
def test_on_the_card_where_it_fits_the_gain_decides(tmp_path, gain_ms, decision):
    simulated = "simulated"
    runs = phase10_roomy(tmp_path, simulated, gain_ms=gain_ms), phase9_like(tmp_path, simulated, vram_bytes=40 * GiB)
    decided = decide(Case("phase10_ordered", "phase9", runs))
    assert decided.decision == decision
    assert decided.because[0] == "gain_over_baseline"


def test_the_same_runs_judged_for_a_larger_card_change_the_verdict(tmp_path):
    runs = (
        phase10_out_of_memory(tmp_path, "counterexample"), safe_check(tmp_path), phase9_like(tmp_path),
        phase9_like(tmp_path, "simulated", vram_bytes=40 * GiB), phase10_roomy(tmp_path, "simulated", gain_ms=2),
    )  # fmt: skip
    case = Case("phase10_ordered", "phase9", runs)
    assert decide(case).decision == "revert"
    assert decide(dataclasses.replace(case, vram_bytes=40 * GiB)).decision == "keep"


def test_names_of_policies_do_not_matter(tmp_path):
    runs = phase10_out_of_memory(tmp_path, "counterexample", "mine"), safe_check(tmp_path, "theirs")
    assert decide(Case("mine", "theirs", runs)).decision == "revert"
    assert decide(Case("theirs", "mine", runs)).decision == "undecided"


def test_without_a_working_baseline_an_infeasible_design_is_not_simply_reverted(tmp_path):
    infeasible = phase10_out_of_memory(tmp_path, "counterexample")
    alone = decide(Case("phase10_ordered", "phase9", (infeasible,)))
    assert alone.decision == "tune"
    assert "nothing shows that phase9 works there" in alone.sentence
    both = decide(Case("phase10_ordered", "phase9", (infeasible, phase10_out_of_memory(tmp_path, policy="phase9"))))
    assert both.decision == "tune"
    assert "phase9 fails there too" in both.sentence


def test_without_findings_nothing_is_decided():
    decided = decide(Case("phase10_ordered", "phase9", ()))
    assert (decided.decision, decided.because) == ("undecided", ())
    assert "there is no finding" in decided.sentence


def test_a_run_without_anything_to_compare_with_leaves_it_undecided(tmp_path):
    decided = decide(Case("phase10_ordered", "phase9", (phase10_roomy(tmp_path),)))
    assert decided.decision == "undecided"
    assert "no completed run of phase9" not in decided.would_change
    assert decided.because == ("gain_over_baseline",)


def _made(role: str, aspect: str, name: str) -> Finding:
    figures = (Metric("count", 1, "measured"),)
    return Finding(
        name, "It is so.", role, "measured", figures, (), ("run",), "another run", aspect, "a", 16 * GiB, name
    )


@pytest.mark.parametrize(
    ("made", "decision"),
    [
        ([("supports", "performance")], "keep"),
        ([("supports", "performance"), ("against", "mechanism")], "tune"),
        ([("supports", "performance"), ("against", "performance")], "tune"),
        ([("context", "performance")], "tune"),
        ([("context", "performance"), ("against", "mechanism")], "revert"),
        ([("supports", "feasibility")], "undecided"),
    ],
)
def test_rules_look_at_roles_and_aspects(made, decision):
    findings = [_made(role, aspect, f"rule{number}") for number, (role, aspect) in enumerate(made)]
    decided = verdict(Case("a", "b", (), vram_bytes=16 * GiB), findings)
    assert decided.decision == decision


def test_json_holds_findings_figures_runs_and_conditions(tmp_path):
    case = example_case(tmp_path)
    findings = find_all(case)
    record = json.loads(json.dumps(verdict_json(case, findings, verdict(case, findings), {"command": "report"}),
                                   allow_nan=False))  # fmt: skip
    assert record["verdict"]["decision"] == "revert"
    assert len(record["findings"]) == len(findings)
    assert record["provenance"] == {"command": "report"}
    assert record["vram_bytes"] == 16 * GiB
    runs = {run["name"]: run for run in record["runs"]}
    assert set(runs) == {run.name for run in case.runs}
    assert runs["live-phase9-16"]["conditions"]["gw"] == 2
    assert runs["live-phase9-16"]["availability"]["kernels"] == {"state": "present", "rows": 16}
    assert {"kind": "batch_average", "value": 0.172, "unit": "s/proof"}.items() <= record["figures"][1].items()
    for name in record["verdict"]["because"]:
        assert name in {one["id"] for one in record["findings"]}


def test_a_finding_without_evidence_or_of_an_unknown_role_is_refused():
    with pytest.raises(ValueError, match="without evidence"):
        Finding("x", "So.", "against", "measured", (), (), (), "")
    with pytest.raises(ValueError, match="not one of supports"):
        Finding("x", "So.", "for", "measured", (), (), (), "")


def test_two_rules_of_one_name_are_refused():
    def bottleneck(case):
        yield from ()

    bottleneck.__module__ = "elsewhere"
    find_all(Case("a", "b", ()))
    with pytest.raises(ValueError, match="two findings are called bottleneck"):
        finding(bottleneck)
