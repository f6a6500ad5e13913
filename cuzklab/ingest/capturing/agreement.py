"""How far a run's own record and a capture of it agree: stage by stage, on the host and on the device."""

from typing import Any

import numpy as np
import pandas as pd

_STAGES = ("cpu", "gpu")


def agreement(spans: pd.DataFrame, theirs: pd.DataFrame, pairs: np.ndarray, own: pd.DataFrame, captured: pd.DataFrame
              ) -> list[dict[str, Any]]:  # fmt: skip
    """Durations of each stage by both.

    Parameters
    ----------
    spans, theirs : DataFrame
        The run's spans and the capture's ranges.
    pairs : (n, 2) int
        Rows of the same span in both.
    own, captured : DataFrame
        Kernels of the run, and of the capture after they were put among the run's spans.

    Returns
    -------
    list of dict
        One a stage: `stage`, `count`, `own_ns` and `capture_ns` (the stage on the host, summed); `kernels`,
        `own_device_ns` and `capture_device_ns` (from its first kernel's start to its last one's end, summed over
        partitions), None for a CPU stage or where either has no kernels. Kernels that only the capture has, which
        launch themselves unobserved, do not count.
    """
    mine, other = spans.iloc[pairs[:, 0]], theirs.iloc[pairs[:, 1]]
    both = pd.DataFrame(
        {
            "stage": mine["name"].to_numpy(), "category": mine["category"].to_numpy(),
            "own": (mine["end"] - mine["start"]).to_numpy(), "capture": (other["end"] - other["start"]).to_numpy(),
        }
    )  # fmt: skip
    observed = captured[captured["name"].isin(set(own["name"]))]
    rows = []
    for stage, group in both[both["category"].isin(_STAGES)].groupby("stage", sort=False):
        here, there = own[own["span"] == stage], observed[observed["span"] == stage]
        device = len(here) and len(there)
        rows.append(
            {
                "stage": stage, "count": len(group), "own_ns": int(group["own"].sum()),
                "capture_ns": int(group["capture"].sum()),
                "kernels": [len(here), len(there)] if device else None,
                "own_device_ns": _extent_ns(here) if device else None,
                "capture_device_ns": _extent_ns(there) if device else None,
            }
        )  # fmt: skip
    return rows


def _extent_ns(kernels: pd.DataFrame) -> int:
    of = kernels.groupby("partition")
    return int((of["end"].max() - of["start"].min()).sum())
