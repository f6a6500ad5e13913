"""Which of the candidate's options did anything: runs that differ in one option only."""

from collections.abc import Iterator

from cuzklab.analysis.case import RECORDED, Case, figure
from cuzklab.analysis.compare import JUDGED_BY, Comparison, compare_repeated, turned
from cuzklab.analysis.designs import options_of, options_words
from cuzklab.analysis.findings.gain_over_baseline import alike_groups
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import listing, memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_value, percent

_SMALLEST = 0.005  # a change of less than this did nothing that one would act on


@finding
def ablation(case: Case) -> Iterator[Finding]:
    """For each origin and device: every option that some pair of completed runs differs in alone."""
    groups = alike_groups(case, case.select(case.candidate, RECORDED, ("ok",)))
    pairs: dict[tuple[str, int | None], list[tuple[str, tuple[Run, ...], tuple[Run, ...]]]] = {}
    for without in groups:
        for with_it in groups:
            option = _turned(case, with_it[0], without[0])
            if option:
                key = (with_it[0].info.origin, case.limit_bytes(with_it[0]))
                pairs.setdefault(key, []).append((option, with_it, without))
    for (_, limit_bytes), found in pairs.items():
        compared = [
            (option, result, with_it[0], without[0])
            for option, with_it, without in found
            if (result := _compared(with_it, without)) is not None
        ]
        if compared:
            yield _explained(case, limit_bytes, sorted(compared, key=lambda one: one[1].ratio))


def _turned(case: Case, run: Run, other: Run) -> str:
    """The one option in which a run goes beyond another that leaves it off; empty where they differ otherwise."""
    if run.info.origin != other.info.origin or case.limit_bytes(run) != case.limit_bytes(other) or turned(run, other):
        return ""
    mine, theirs = options_of(run), options_of(other)
    names = [name for name in mine if mine.get(name) != theirs.get(name)]
    return names[0] if len(names) == 1 and set(mine) == set(theirs) and not theirs[names[0]] else ""


def _compared(group: tuple[Run, ...], other: tuple[Run, ...]) -> Comparison | None:
    return next((found for kind in JUDGED_BY if (found := compare_repeated(group, other, kind)) is not None), None)


def _explained(case: Case, limit_bytes: int | None, compared: list[tuple[str, Comparison, Run, Run]]) -> Finding:
    run = compared[0][2]
    did = [one for one in compared if abs(one[1].gain) >= _SMALLEST and (one[1].resolved or not one[1].measured)]
    idle = [one for one in compared if one not in did]
    kind = compared[0][1].candidate.kind.replace("_", " ")
    where = run_kind(run, options=False)
    clauses = []
    if did:
        clauses.append(
            listing(
                f"{_named(option, mine)} {'saves' if result.gain > 0 else 'costs'} {percent(abs(result.gain))}"
                for option, result, mine, _ in did
            )
            + f" of the {kind}"
        )
    if idle:
        names = listing(_named(option, mine) for option, _, mine, _ in idle)
        clauses.append(f"{names} {'makes' if len(idle) == 1 else 'make'} no difference that can be told from noise")
    return Finding(
        id="ablation",
        claim=f"Each option of {case.candidate} switched on alone, in {where} {memory(limit_bytes)}:"
        f" {'; '.join(clauses)}.",
        role="context",
        certainty=certainty_of(*(one for _, _, *runs in compared for one in runs)),
        figures=(
            *(figure(mine, "share", abs(result.gain),
                     f"of the {kind} {'saved' if result.gain > 0 else 'added'} by {_named(option, mine)} in {where}")
              for option, result, mine, _ in sorted(did, key=lambda one: -abs(one[1].gain))),
            *(part for _, result, *_ in compared for part in (result.candidate, result.baseline)),
        ),
        evidence=tuple(
            {"option": option, "value": str(options_of(mine)[option]), "kind": result.candidate.kind,
             "on": result.candidate.value, "off": result.baseline.value, "ratio": result.ratio,
             "ratio_low": result.low, "ratio_high": result.high, "unit": result.candidate.unit,
             "on_words": format_value(result.candidate.value, result.candidate.unit)}
            for option, result, mine, _ in compared
        ),
        runs=tuple(dict.fromkeys(one.name for _, _, *runs in compared for one in runs)),
        would_change="options that act on each other: switched on together they may do what none does alone",
        subject=case.candidate,
        vram_bytes=limit_bytes,
        gist=_gist(did, where),
    )  # fmt: skip


def _named(option: str, run: Run) -> str:
    """An option as it is switched on: ``throttle``, ``g2_threads=32``."""
    return options_words({option: options_of(run)[option]})


def _gist(did: list[tuple[str, Comparison, Run, Run]], where: str) -> str:
    gains = listing(_named(option, run) for option, result, run, _ in did if result.gain > 0)
    losses = listing(_named(option, run) for option, result, run, _ in did if result.gain < 0)
    words = [f"gains by {gains} alone" if gains else "", f"loses by {losses} alone" if losses else ""]
    return (" and ".join(filter(None, words)) or "gains by none of its options alone") + f" in {where}"
