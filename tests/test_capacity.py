"""Which designs fit a machine: each is told from the others by the name of its runs, whether shipped or in a file."""

from pathlib import Path

from cuzklab import capacity, policies
from cuzklab.units import GiB


def test_a_design_in_a_file_is_simulated_and_chosen_as_a_shipped_one_is(tmp_path):
    own = tmp_path / "phase8.py"
    own.write_text(Path(policies.load("phase8").module.__file__).read_text())
    options, limits = capacity.options([str(own), "phase8"], [1]), [16 * GiB]
    runs = capacity.simulations(
        options, limits, tmp_path / "out", hardware="rtx5070ti-7995wx", workload="porep-32g", proofs=2, seed=1
    )
    assert [run.info.policy for run in runs] == ["phase8 (phase8.py)", "phase8"]
    table = capacity.table(options, limits, runs)
    assert list(table["policy"]) == ["phase8 (phase8.py)", "phase8"]
    assert table["batch_average_s"][0] == table["batch_average_s"][1] > 0
    fastest, *where = capacity.findings(options, limits, runs)
    assert (fastest.id, fastest.subject) == ("fastest_feasible", "phase8 (phase8.py)")
    assert [capacity.is_simulation_of(fastest, run) for run in runs] == [True, False]
    assert [one.subject for one in where] == ["phase8 (phase8.py)", "phase8"]
