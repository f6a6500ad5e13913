"""What limits a run: the device itself, or what the device waits for."""

from collections.abc import Iterator

from cuzklab.analysis import occupancy
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.frames import missing, records
from cuzklab.analysis.model import Finding, about, certainty_of
from cuzklab.analysis.phrases import memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent


@finding
def bottleneck(case: Case) -> Iterator[Finding]:
    """One finding a policy, origin and device; of a run without work on a device, that it lacks it."""
    for policy in (case.baseline, case.candidate):
        for run in case.representatives(policy):
            busy = records(occupancy.occupancy(run))
            if not busy:
                yield _unknown(case, run)
            for device in busy:
                yield _explained(case, run, device)


def _unknown(case: Case, run: Run) -> Finding:
    return Finding(
        id="bottleneck",
        claim=f"What limits {run.info.policy} cannot be told from {run_kind(run)}: it lacks {missing(run, 'kernels')}.",
        role="context", certainty=certainty_of(run), figures=(), evidence=(), runs=(run.name,), aspect="coverage",
        would_change="a trace with kernels or spans of GPU stages", subject=run.info.policy,
        vram_bytes=case.limit_bytes(run), gist="has a bottleneck that the trace does not show",
    )  # fmt: skip


def _explained(case: Case, run: Run, device: dict[str, object]) -> Finding:
    causes = occupancy.idle(run)
    causes = causes[causes["device"] == device["device"]]
    bound = next(one for one in occupancy.bindings(run) if one.device == device["device"])
    busy_share, between, inner = bound.busy_share, bound.between_ns, bound.inner_ns
    head = (
        f"{run.info.policy} {memory(case.limit_bytes(run))} in {run_kind(run)}: kernels run"
        f" {percent(device['kernel_occupancy'])} of the wall time ({percent(busy_share)} between the first and the"
        f" last), calls {percent(device['call_occupancy'])}"
    )
    if bound.cause == "device":
        claim, gist = f"{head}; the device is the bottleneck.", "is bound by the device"
    else:
        owed = bound.owed_to
        listed = sorted(between.items(), key=lambda item: -item[1])[:3]
        shares = ", ".join(
            f"{percent(time / inner)} {occupancy.cause_named(cause).idles} ({format_seconds(time * 1e-9)})"
            for cause, time in listed
        )
        claim = f"{head}; the device idles {shares}. The largest part is owed to {owed}."
        gist = f"is bound less by the device than by {owed}"
    return Finding(
        id="bottleneck",
        claim=claim,
        role="context",
        figures=(
            figure(run, "kernel_occupancy", device["kernel_occupancy"]),
            figure(run, "call_occupancy", device["call_occupancy"]),
            figure(run, "share", busy_share, "kernels between the first and the last"),
        ),
        evidence=(device, *records(causes)),
        **about(run, case.limit_bytes(run)),
        would_change="other numbers of synthesis and GPU workers, or another ratio of host to device speed",
        gist=gist,
    )
