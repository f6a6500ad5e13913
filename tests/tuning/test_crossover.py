"""Designs over device memory, where it is known by hand from which amount on a design can work as it was meant."""

import json

import pytest

from cuzklab.errors import BadInput
from cuzklab.profiles import load_hardware, load_workload
from cuzklab.tuning import Machine, crossover
from cuzklab.units import GiB

PLACE, WORKLOAD = "rtx5070ti-7995wx", "porep-32g"


def mapped(**more):
    arguments = {
        "vram_bytes": [11 * GiB, 12 * GiB, 14 * GiB], "designs": ["phase9", "phase10_ordered"], "baseline": "phase8",
        "gw": (1,), "proofs": 4, "seeds": 3, "processes": 0,
    }  # fmt: skip
    machine = Machine(PLACE, load_hardware(PLACE))
    return crossover(machine, WORKLOAD, load_workload(WORKLOAD), **arguments | more)


def test_a_design_that_is_faster_wherever_it_fits_pays_from_where_it_fits():
    found = mapped(check=False, gw=(2,), designs=["phase9", "phase7"])
    # Nobody fits into 11 GiB: d_a and d_bc take 12.
    assert [found.possible_from_bytes(design) for design in found.designs] == [12 * GiB] * 3
    assert found.cells["phase9", 11 * GiB].why == "device_oom"
    assert found.pays_from_bytes("phase9") == 12 * GiB
    assert found.pays_from_bytes("phase8") is None and found.pays_from_bytes("phase7") is None
    assert found.cells["phase9", 14 * GiB].gain > 0.03
    assert found.cells["phase8", 14 * GiB].gain == 0 and not found.cells["phase8", 14 * GiB].resolved
    words = {row["design"]: row["pays from"] for row in found.rows()}
    assert words["phase8"] == "the baseline" and words["phase9"] == "12.0 GiB" and words["phase7"] == "nowhere"
    json.dumps(found.to_json(), allow_nan=False)


def test_what_the_checker_refuses_is_no_choice():
    found = mapped(vram_bytes=[16 * GiB], gw=(1, 2), designs=["phase10_ordered"])
    # Two workers would be faster, and run out of memory on some schedule.
    assert found.cells["phase10_ordered", 16 * GiB].gw == 1
    assert found.cells["phase8", 16 * GiB].gw == 2


@pytest.mark.parametrize(
    ("arguments", "words"), [({"vram_bytes": [GiB // 2]}, "vram: give amounts"), ({"seeds": 1}, "seeds is 1")]
)
def test_impossible_maps_are_refused(arguments, words):
    with pytest.raises(BadInput, match=words):
        mapped(**arguments)
