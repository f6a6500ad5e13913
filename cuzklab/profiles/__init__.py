"""Profiles of machines and of workloads, read from TOML and trusted in nothing.

A profile is a file that a person edits: `lab/hardware/NAME.toml`, `lab/workloads/NAME.toml`, or any path. Sizes are
bytes (``"16GiB"`` or a number), rates are base units a second, and every group of constants says in `source` where
they come from. The dataclasses are the schema: a field without a default must be there, and no other may.
`hardware` and `workloads` describe the two kinds, `sections` a machine's groups of constants, `calibration` what a fit
leaves in its file, and `fields` reads them.
"""

from cuzklab.profiles.calibration import Calibration
from cuzklab.profiles.fields import StageNumbers, read_toml
from cuzklab.profiles.hardware import (
    LAUNCHING,
    LOG2_DOMAIN,
    PAGE_LOCKING,
    PAGEABLE_COPY,
    WAKING,
    Hardware,
    hardware_names,
    load_hardware,
)
from cuzklab.profiles.sections import Device, Engine, Host, TransferRates
from cuzklab.profiles.workloads import (
    MAX_LOG2_DOMAIN,
    MIN_LOG2_DOMAIN,
    PRIORITIES,
    Arrival,
    Workload,
    load_workload,
    scaled_shape,
    scaled_workload,
    workload_names,
)

__all__ = [
    "LAUNCHING",
    "LOG2_DOMAIN",
    "MAX_LOG2_DOMAIN",
    "MIN_LOG2_DOMAIN",
    "PAGEABLE_COPY",
    "PAGE_LOCKING",
    "PRIORITIES",
    "WAKING",
    "Arrival",
    "Calibration",
    "Device",
    "Engine",
    "Hardware",
    "Host",
    "StageNumbers",
    "TransferRates",
    "Workload",
    "hardware_names",
    "load_hardware",
    "load_workload",
    "read_toml",
    "scaled_shape",
    "scaled_workload",
    "workload_names",
]
