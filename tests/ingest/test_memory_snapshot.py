"""Memory snapshots: what they say is read, and no class, call or count in them gets its way."""

import os
import pickle
import resource
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.errors import BadInput
from cuzklab.ingest import import_file
from cuzklab.ingest.memory_snapshot.plain import load_plain
from cuzklab.trace import Run

FRAMES = [
    {"name": "forward", "filename": "/home/somebody/model.py", "line": 7},
    {"name": "main", "filename": "m.py", "line": 1},
]
MIB = 1 << 20


def entry(action: str, address: int, size: int, time_us: int, **more: object) -> dict:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us, "frames": FRAMES, **more}


# 1 MiB was live before the recording; at the end 1 + 4 MiB are live, in a segment of 20 MiB.
SNAPSHOT = {
    "segments": [
        {
            "device": 0, "address": 4096, "total_size": 20 * MIB, "stream": 0, "segment_type": "large",
            "blocks": [
                {"size": MIB, "state": "active_allocated"}, {"size": 4 * MIB, "state": "active_allocated"},
                {"size": 12 * MIB, "state": "inactive"}, {"size": 3 * MIB, "state": "inactive"},
            ],
        }
    ],
    "device_traces": [
        [
            entry("segment_alloc", 4096, 20 * MIB, 100),
            entry("alloc", 8192, 2 * MIB, 110),
            entry("alloc", 16384, 4 * MIB, 120),
            entry("free_requested", 8192, 2 * MIB, 130),
            entry("free_completed", 8192, 2 * MIB, 140),
            {"action": "oom", "device_free": 77, "size": 64 * MIB, "stream": 0, "time_us": 150, "frames": FRAMES},
            entry("snapshot", 0, 0, 160),
        ]
    ],
    "allocator_settings": {"expandable_segments": False}, "external_annotations": [],
}  # fmt: skip


@pytest.fixture
def snapshot(tmp_path):
    """Import a pickle."""
    numbers = iter(range(10**6))

    def read(content: object, protocol: int = 4) -> Run:
        path = tmp_path / f"snapshot{next(numbers)}.pickle"
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
        return import_file(path, tmp_path / f"run-{path.stem}", importer_name="memory-snapshot")

    return read


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_events_become_device_memory(snapshot, protocol):
    run = snapshot(SNAPSHOT, protocol)
    rows = run.table("vram")
    assert rows[["time", "op", "bytes", "live"]].values.tolist() == [
        [100_000, "alloc", MIB, MIB],
        [110_000, "alloc", 2 * MIB, 3 * MIB],
        [120_000, "alloc", 4 * MIB, 7 * MIB],
        [140_000, "free", 2 * MIB, 5 * MIB],
        [150_000, "fail", 64 * MIB, 5 * MIB],
    ]
    assert rows["buffer"].tolist() == [
        "allocated before the recording", "forward (model.py:7) at 0x2000", "forward (model.py:7) at 0x4000",
        "forward (model.py:7) at 0x2000", "forward (model.py:7)",
    ]  # fmt: skip
    assert set(rows["stack"][1:]) == {"forward (model.py:7) < main (m.py:1)"}
    counters = run.table("counters")
    assert counters.values.tolist() == [
        [100_000, "gpu0 reserved_bytes", 0.0],
        [100_000, "gpu0 reserved_bytes", 20.0 * MIB],
        [150_000, "gpu0 free_memory_bytes", 77.0],
    ]
    assert run.info.metrics[0]["value"] == 7 * MIB
    assert "5.00 MiB live in 20.0 MiB reserved" in run.info.notes[0]
    assert "largest free block was 12.0 MiB" in run.info.notes[0]


def test_recognised_by_its_content(tmp_path):
    path = tmp_path / "anything.bin"
    path.write_bytes(pickle.dumps(SNAPSHOT, 4))
    assert import_file(path, tmp_path / "run").info.conditions["format"] == "memory snapshot"


def test_without_events_only_what_is_live_is_known(snapshot):
    run = snapshot({"segments": SNAPSHOT["segments"], "device_traces": [[]]})
    assert run.table("vram")[["op", "bytes"]].values.tolist() == [["alloc", 5 * MIB]]
    assert "only what was live" in run.availability["vram"]["reason"]


def test_events_without_times_keep_their_order(snapshot):
    events = [{name: value for name, value in one.items() if name != "time_us"} for one in SNAPSHOT["device_traces"][0]]
    run = snapshot({**SNAPSHOT, "device_traces": [events]})
    assert run.table("vram")["time"].tolist() == [0, 1000, 2000, 4000, 5000]
    assert any("carry no time" in note for note in run.info.notes)


class Runs:
    """Would run a command when unpickled."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __reduce__(self):
        return os.system, (f"touch {self.place}",)


def test_nothing_is_run(snapshot, tmp_path):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(BadInput, match=r"holds instruction (STACK_GLOBAL|GLOBAL|REDUCE), which plain data do not"):
            snapshot({**SNAPSHOT, "x": Runs(f"{tmp_path}/was-run")}, protocol)
    assert not (tmp_path / "was-run").exists()


BOMBS = {
    "a memo number of four billion": b"\x80\x04]r\xff\xff\xff\x7f.",
    "an integer of two gigabytes": b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b"1.",
    "a byte array of a terabyte": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"1.",
    "a text of an exabyte": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"1.",
    "a frame of an exabyte": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"1.",
    "an integer of many digits": b"I" + b"9" * 100_000 + b"\n.",
    "an old integer": b"L" + b"9" * 100_000 + b"L\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "a persistent reference": b"Pabc\n.",
    "a buffer from outside": b"\x80\x05\x97.",
    "a set": b"\x80\x04\x8f.",
    "a class by name": b"cos\nsystem\n.",
    "an instance": b"(ios\nsystem\n.",
    "keys that collide": b"\x80\x04}("
    + b"".join(b"\x8a\x09" + (k * (2**61 - 1)).to_bytes(9, "little", signed=True) + b"N" for k in range(20)) + b"u.",
    "items of a number": b"\x80\x04K\x01K\x02a.",
    "nothing on the stack": b"\x80\x04s.",
    "no mark": b"\x80\x04e.",
    "nothing": b"",
    "no end": b"\x80\x04]",
    "not a pickle": b"hello",
    "a version of tomorrow": b"\x80\x63N.",
    "no such memo": b"\x80\x04h\x07.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_no_plain_data_is_refused_in_one_line(tmp_path, name):
    path = tmp_path / "bomb.pickle"
    path.write_bytes(BOMBS[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == "a memo number of four billion":  # a dictionary remembers it: nothing is allocated by the number
        assert load_plain(path) == []
    else:
        with pytest.raises(BadInput) as refused:
            load_plain(path)
        assert "\n" not in str(refused.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_too_many_instructions_and_bytes_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "long.pickle"
    path.write_bytes(b"\x80\x04" + b"}0" * 600 + b"N.")
    monkeypatch.setattr("cuzklab.ingest.memory_snapshot.plain.PlainUnpickler.__init__.__defaults__", (1000,))
    with pytest.raises(BadInput, match="more instructions than a snapshot has"):
        load_plain(path)
    monkeypatch.setattr("cuzklab.ingest.memory_snapshot.plain.MOST_BYTES", 10)
    with pytest.raises(BadInput, match="at most 10 are read"):
        load_plain(path)


def test_lists_within_themselves_and_a_million_deep_are_no_trouble(snapshot):
    around: list = []
    around.append(around)
    deep = b"\x80\x04" + b"]" * 200_000 + b"a" * 199_999 + b"."
    with pytest.raises(BadInput, match="no memory snapshot"):
        snapshot(deep)
    run = snapshot({**SNAPSHOT, "device_traces": [around, around], "segments": [*SNAPSHOT["segments"], around]})
    assert len(run.table("vram")) == 1


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False) | st.text(max_size=10)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4) | st.tuples(inner, inner)
    ),
    max_leaves=12,
)  # fmt: skip


@given(PLAIN, st.sampled_from([3, 4, 5]))  # before, bytes are a call of a codec
@settings(max_examples=40)
def test_plain_data_is_what_pickle_made_of_it(tmp_path_factory, value, protocol):
    path = tmp_path_factory.getbasetemp() / "plain.pickle"
    path.write_bytes(pickle.dumps(value, protocol))
    assert load_plain(path) == value


@given(st.integers(0, 1500), st.binary(min_size=1, max_size=6), st.booleans())
@settings(max_examples=40)
def test_damaged_snapshots_are_read_or_refused(tmp_path_factory, place, damage, insert):
    folder = tmp_path_factory.mktemp("damaged")
    raw = pickle.dumps(SNAPSHOT, 4)
    (folder / "s.pickle").write_bytes(raw[:place] + damage + raw[place + (0 if insert else len(damage)) :])
    try:
        run = import_file(folder / "s.pickle", folder / "run", importer_name="memory-snapshot")
    except BadInput as error:
        assert "\n" not in str(error)
        return
    assert (run.table("vram")["live"].to_numpy(np.int64) >= 0).all()


@given(st.fixed_dictionaries({"segments": st.lists(PLAIN, max_size=3), "device_traces": PLAIN | st.lists(st.lists(
    st.fixed_dictionaries({"action": st.sampled_from(["alloc", "free_completed", "oom", "segment_map"]) | PLAIN},
                          optional={"addr": PLAIN, "size": PLAIN, "time_us": PLAIN, "frames": PLAIN, "stream": PLAIN}),
    max_size=4), max_size=2)}))  # fmt: skip
@settings(max_examples=30)
def test_any_content_is_read_or_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("any")
    (folder / "s.pickle").write_bytes(pickle.dumps(content, 4))
    import_file(folder / "s.pickle", folder / "run", importer_name="memory-snapshot")
