"""Profiles: what is shipped is readable and true, and every kind of bad file is refused by field."""

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab import profiles, resources
from cuzklab.errors import BadInput
from cuzklab.stages import POREP_32G, STAGES
from cuzklab.units import GiB, MiB

HARDWARE = Path(resources.folder("lab")) / "hardware" / "rtx5070ti-7995wx.toml"
WORKLOAD = Path(resources.folder("lab")) / "workloads" / "porep-32g.toml"


def test_published_host():
    hardware = profiles.load_hardware("rtx5070ti-7995wx")
    assert hardware.name in profiles.hardware_names()
    assert (hardware.host.cores, hardware.host.memory_bytes) == (96, 755 * GiB)
    assert (hardware.device.vram_bytes, hardware.device.margin_bytes) == (16 * GiB, 512 * MiB)
    assert hardware.transfer.pinned_bytes_per_s == 53e9
    assert hardware.calibrated and hardware.calibration.scatter < 0.05
    assert hardware.host.available_bytes == 668 * GiB
    assert set(hardware.rates.values) == set(STAGES)
    assert (
        hardware.stage_threads("b_g2_msm") == hardware.host.hardware_threads == 192
        and hardware.stage_threads("synthesis") == 1
    )
    assert hardware.stage_spread("b_g2_msm") == 0.0
    assert hardware.device.model.multiprocessors == 70


@pytest.mark.parametrize(
    ("stage", "seconds"),
    [("synthesis", 29), ("prep_msm", 1.7), ("ntt_h", 0.154), ("h_msm", 0.3), ("tail_msm", 0.083), ("b_g2_msm", 0.38)],
)
def test_rates_give_the_published_stage_times(stage, seconds):
    row = STAGES[stage]
    work = sum(row.work(POREP_32G, part) for part in row.parts)
    assert work / profiles.load_hardware("rtx5070ti-7995wx").rate(stage) == pytest.approx(seconds, rel=1e-3)


def test_every_shipped_profile_loads():
    assert [profiles.load_hardware(name).name for name in profiles.hardware_names()] == list(profiles.hardware_names())
    assert [profiles.load_workload(name).name for name in profiles.workload_names()] == list(profiles.workload_names())


def test_rates_grow_with_the_circuit_as_a_profile_says():
    """Measured at 2^20; an exponent of a half is a factor of two for a circuit that is four times as large."""
    hardware = profiles.load_hardware(HARDWARE)
    grown = replace(hardware, size_exponent=profiles.StageNumbers({"log2_domain": 20.0, "prep_msm": 0.5}, "by hand"))
    rate = hardware.rate("prep_msm")
    assert [grown.rate("prep_msm", 1 << size) for size in (18, 20, 22)] == [rate / 2, rate, rate * 2]
    assert grown.rate("prep_msm") == rate and grown.rate("synthesis", 1 << 22) == hardware.rate("synthesis")


def test_porep_workload_is_the_shape_of_the_stage_table():
    workload = profiles.load_workload("porep-32g")
    assert workload.shape == POREP_32G
    assert workload.partitions_per_proof == 10


@pytest.mark.parametrize("log2_domain", [6, 10, 14, 20, 27])
def test_scaled_shape_keeps_domain_and_ratios(log2_domain):
    shape = profiles.scaled_shape(log2_domain)
    assert shape.domain == 1 << log2_domain
    ratio = 2.0 ** (log2_domain - 27)
    for key in ("constraints", "aux", "a_density", "b_density", "nonzeros"):
        assert abs(getattr(shape, key) - getattr(POREP_32G, key) * ratio) <= 0.5
    assert max(shape.a_density, shape.b_density) <= shape.aux + shape.inputs


def test_scaled_workload_by_name_and_by_file(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('title = "t"\nsource = "s"\npartitions_per_proof = 3\n[scaled]\nlog2_domain = 12\n')
    workload = profiles.load_workload(file)
    assert (workload.name, workload.partitions_per_proof, workload.shape.domain) == ("small", 3, 4096)
    assert profiles.load_workload("porep-shaped-12").shape.constraints == workload.shape.constraints
    with pytest.raises(BadInput, match="log2_domain 5"):
        profiles.load_workload("porep-shaped-5")


def _with(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cores = 96", "cores = 96\ncolour = 3", "unknown field host.colour"),
        ("cores = 96\n", "", "field host.cores is missing"),
        ("cores = 96", "cores = -1", "field host.cores is -1; it must be at least 1"),
        ("cores = 96", "cores = 9.5", "field host.cores must be a whole number"),
        ("cores = 96", "cores = true", "field host.cores must be a whole number"),
        (
            "cores = 96",
            "cores = 64",
            "field threads.b_g2_msm is 192, but host.cores and host.threads_per_core make 128",
        ),
        ("threads_per_core = 2", "threads_per_core = 1", "field host.smt_yield is "),
        ('reserved_bytes = "87GiB"', 'reserved_bytes = "755GiB"', "field host.reserved_bytes leaves nothing"),
        ("pin_excludes_kernels = true", "pin_excludes_kernels = 1", "pin_excludes_kernels must be true or false"),
        ("[engine]", "[engines]", "unknown field engines"),
        (
            "pin_excludes_kernels = true",
            "pin_excludes_kernels = true\npin_delays_launches = true",
            "field transfer.pin_delays_launches is true, and so is",
        ),
        ("scatter = ", "runs = [1]\nscatter = ", "field calibration.runs must be a list"),
        ("[spread]", '[launch]\nsource = "x"\nsynthesis = 1.0\n[spread]', "unknown field launch.synthesis"),
        ("[spread]", '[size_exponent]\nsource = "x"\n[spread]', "field size_exponent.log2_domain is missing"),
        ("page_locking = 0.13", "pagelocking = 0.13", "unknown field spread.pagelocking"),
        ("scatter = ", "scatters = ", "unknown field calibration.scatters"),
        ("scatter_other = 0.06323\n", "", "field calibration.scatter_other is missing"),
        ("members = [\n", "members = [\n  [1.0],\n", "field calibration.members: member 1 must have"),
        ('constants = ["', 'constants = ["host.colour", "', "'host.colour' is no constant of this profile"),
        ('"755GiB"', '"755 gigs"', "field host.memory_bytes: '755 gigs' is not a size"),
        ('"755GiB"', '"-1"', "field host.memory_bytes: '-1' is not a size"),
        (
            "pinned_bytes_per_s = 53e9",
            "pinned_bytes_per_s = nan",
            "field transfer.pinned_bytes_per_s is too large or not",
        ),
        ("pinned_bytes_per_s = 53e9", "pinned_bytes_per_s = 5e9", "pageable_bytes_per_s is above"),
        ("pinned_bytes_per_s = 53e9", "pinned_bytes_per_s = 0", "must be above 0"),
        ('margin_bytes = "512MiB"', 'margin_bytes = "16GiB"', "device.margin_bytes leaves nothing"),
        ("memory_bandwidth_bytes_per_s = 300e9", "memory_bandwidth_bytes_per_s = 0", "must be above 0"),
        ("synthesis = 24.91e6", "synthesis = 0", "field rates.synthesis is 0.0; it must be above 0"),
        ("epilogue = 200 ", "epilog = 200 ", "unknown field rates.epilog"),
        ("prep_msm = 172.4e6", "#", "field rates.prep_msm is missing"),
        ("prep_msm = 0.13", "ntt_h = 0.13", "unknown field spread.ntt_h"),
        ("prep_msm = 0.13", "prep_msm = 2", "field spread.prep_msm is 2.0"),
        ("[device]", "[devices]", "unknown field devices"),
        ("[host]", "[[host]]", "host must be a section"),
        ("cores = 96", "cores = [", "not TOML"),
        ("cores = 96", f"cores = 1{'0' * 5000}", "not TOML"),
        ("cores = 96", f"cores = 0x1{'0' * 5000}", "field host.cores is too large"),
        (
            "memory_bandwidth_bytes_per_s = 300e9",
            f"memory_bandwidth_bytes_per_s = 1{'0' * 400}",
            "field host.memory_bandwidth_bytes_per_s is too large",
        ),
    ],
)
def test_bad_hardware_names_file_and_field(tmp_path, old, new, message):
    file = tmp_path / "mine.toml"
    file.write_text(_with(HARDWARE.read_text(), old, new))
    with pytest.raises(BadInput) as raised:
        profiles.load_hardware(file)
    assert str(file) in str(raised.value) and message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("partitions_per_proof = 10", "partitions_per_proof = 0", "field partitions_per_proof is 0"),
        ("a_density = 129_753_620", "a_density = 230_753_620", "but there are 130170221 variables"),
        ("constraints = 130_278_869", "constraints = 4_294_967_296", "no domain above 2^32"),
        ("tail_share = 0.05", "tail_share = 1.05", "field circuit.tail_share is 1.05"),
        ("[circuit]", "[scaled]\nlog2_domain = 12\n[circuit]", "one of the sections"),
        ("[circuit]", "[scaled]", "unknown field scaled.aux"),
        ('title = "32 GiB PoRep, C2"', 'title = " "', "field title must not be empty"),
    ],
)
def test_bad_workload_names_file_and_field(tmp_path, old, new, message):
    file = tmp_path / "mine.toml"
    file.write_text(_with(WORKLOAD.read_text(), old, new))
    with pytest.raises(BadInput) as raised:
        profiles.load_workload(file)
    assert str(file) in str(raised.value) and message in str(raised.value)


def test_a_mixed_workload_is_a_batch_with_arrivals():
    mixed, batch = profiles.load_workload("mixed"), profiles.load_workload("porep-32g")
    assert (mixed.name, mixed.shape, mixed.partitions_per_proof) == ("mixed", batch.shape, 10)
    assert [(kind.name, kind.priority, after) for kind, after in mixed.arriving(55)] == [
        ("winningpost", "critical", 11), ("windowpost", "high", 22), ("winningpost", "critical", 33),
        ("winningpost", "critical", 44),
    ]  # fmt: skip
    assert batch.arriving(55) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('batch = "porep-32g"', 'batch = "mixed"', "field batch: mixed has arrivals itself"),
        ('batch = "porep-32g"', 'batch = "other.toml"', "field batch is 'other.toml'"),
        ('batch = "porep-32g"', 'batch = "nothing"', "no workload 'nothing'"),
        ("after_share = 0.4", "after_share = 1.4", "field arrival 2.after_share is 1.4"),
        ("after_share = 0.4", "after_share = 0.4\nwhen = 3", "unknown field arrival 2.when"),
        ('workload = "windowpost"', 'workload = "mixed"', "field arrival 2.workload: mixed has arrivals"),
    ],
)
def test_bad_mixed_workload_names_file_and_field(tmp_path, old, new, message):
    file = tmp_path / "mine.toml"
    file.write_text(_with(WORKLOAD.with_name("mixed.toml").read_text(), old, new))
    with pytest.raises(BadInput) as raised:
        profiles.load_workload(file)
    assert message in str(raised.value)


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(BadInput, match=r"no hardware profile 'nothing'; there are: .*rtx5070ti"):
        profiles.load_hardware("nothing")
    with pytest.raises(BadInput, match=r"absent\.toml: No such file"):
        profiles.load_hardware(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not TOML"):
        profiles.load_workload(tmp_path / "binary.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(BadInput, match="larger than"):
        profiles.load_workload(tmp_path / "large.toml")


def test_profile_without_rates_cannot_time(tmp_path):
    text = HARDWARE.read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text[: text.index("[rates]")])
    hardware = profiles.load_hardware(file)
    assert hardware.stage_threads("b_g2_msm") == 1
    with pytest.raises(BadInput, match="has no"):
        hardware.rate("synthesis")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_of_a_profile_is_read_or_refused_as_bad_input(tmp_path_factory, data):
    content = bytearray(HARDWARE.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    file = tmp_path_factory.mktemp("fuzz") / "mine.toml"
    file.write_bytes(content)
    try:
        hardware = profiles.load_hardware(file)
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert tomllib.loads(content.decode())
        assert all(math.isfinite(rate) and rate > 0 for rate in hardware.rates.values.values())


@pytest.mark.parametrize("name", ["card24g-7995wx", "card32g-7995wx", "card80g-7995wx", "h200-16core"])
def test_derived_machines_have_the_fitted_constants(name):
    fitted, derived = profiles.load_hardware("rtx5070ti-7995wx"), profiles.load_hardware(name)
    # The cores of that one have one thread each, and unlocking pages was measured there.
    own = {"host.smt_yield", "transfer.unpin_s_per_byte"} if name.startswith("h200") else set()
    names = set(fitted.calibration.constants) - own
    assert {one: derived.constant(one) for one in names} == {one: fitted.constant(one) for one in names}


@pytest.mark.parametrize("name", ["rtx5070ti-7995wx", "h200-16core-live"])
def test_the_calibrated_profile_is_the_start_with_the_best_fit(name):
    fitted, start = profiles.load_hardware(name), profiles.load_hardware(f"{name}-start")
    best = start.with_constants(fitted.calibration.member(0))
    same = {"title": fitted.title, "calibration": fitted.calibration, "digest": fitted.digest, "name": fitted.name}
    assert replace(best, **same) == fitted
    assert f"simulate --calibrate --hardware {name}-start" in fitted.calibration.source
