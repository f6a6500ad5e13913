"""Damaged files: every reader succeeds or raises `BadInput`, and takes no memory that the file does not justify."""

import json
import lzma
import struct
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzklab.errors import BadInput
from cuzklab.prover.files import (
    read_key_or_vk,
    read_proof,
    read_public,
    read_r1cs,
    read_r1cs_header,
    read_witness,
    read_zkey,
    read_zkey_vk,
)
from cuzklab.prover.keys import open_key

READERS = {
    "chain.r1cs": (read_r1cs, read_r1cs_header),
    "chain.wtns": (read_witness,),
    "chain.zkey": (read_zkey, read_zkey_vk, read_key_or_vk, open_key),
    "proof.json": (read_proof,),
    "public.json": (read_public,),
    "verification_key.json": (read_key_or_vk,),
}
# A reader may hold a few times the file, and a fixed amount besides.
TIMES, BESIDES = 12, 2 << 20

EXTREMES = [0, 1, 2, 3, 2**7, 2**15, 2**28, 2**28 + 1, 2**31 - 1, 2**31, 2**32 - 1]
bounded = settings(
    max_examples=60, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def section_places(data: bytes) -> list[tuple[int, int]]:
    """Begin and end of each section with its header, of an undamaged file."""
    places, at = [], 12
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        length = struct.unpack_from("<Q", data, at + 4)[0]
        places.append((at, at + 12 + length))
        at += 12 + length
    return places


@st.composite
def damage(draw, data: bytes) -> bytes:
    """One to three blows to a file."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["cut", "extend", "flip", "number", "early number", "splice", "remove"]))
        if kind == "cut":
            data = data[:at]
        elif kind == "extend":
            data += draw(st.binary(min_size=1, max_size=40))
        elif kind == "flip":
            new = draw(st.binary(min_size=1, max_size=8))
            data = data[:at] + new + data[at + len(new) :]
        elif kind == "number":
            at -= at % 4
            data = data[:at] + struct.pack("<I", draw(st.sampled_from(EXTREMES))) + data[at + 4 :]
        elif kind == "early number":
            # Headers and counts lie here.
            at = 4 * draw(st.integers(1, 40))
            data = data[:at] + struct.pack("<I", draw(st.sampled_from(EXTREMES))) + data[at + 4 :]
        elif kind == "splice":
            end, to = draw(st.integers(at, at + 4096)), draw(st.integers(0, len(data)))
            data = data[:to] + data[at:end] + data[to:]
        else:
            data = data[:at] + data[draw(st.integers(at, at + 4096)) :]
    return data


@st.composite
def rearranged(draw, data: bytes) -> bytes:
    """Whole sections left out, repeated, renumbered, resized, or in another order; the count right or not."""
    parts = [data[begin:end] for begin, end in section_places(data)]
    chosen = draw(st.lists(st.sampled_from(parts), min_size=0, max_size=len(parts) + 2))
    if draw(st.booleans()):
        chosen = list(draw(st.permutations(parts)))
    if chosen and draw(st.booleans()):
        which = draw(st.integers(0, len(chosen) - 1))
        kind = draw(st.one_of(st.sampled_from([0, 0x7E57, 2**32 - 1]), st.integers(1, 10)))
        body = chosen[which][12:]
        body = draw(st.sampled_from([body, b"", body[:3], body[:-4], body + bytes(4), body[: len(body) // 2]]))
        chosen[which] = struct.pack("<IQ", kind, len(body)) + body
    count = draw(st.sampled_from([len(chosen), len(chosen), len(chosen) + 1, max(len(chosen) - 1, 0), 2**32 - 1]))
    return data[:8] + struct.pack("<I", count) + b"".join(chosen)


def survives(readers, path, content: bytes, besides: int = BESIDES) -> None:
    path.write_bytes(content)
    for read in readers:
        tracemalloc.start()
        try:
            read(path)
        except BadInput as error:
            assert "\n" not in str(error)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < TIMES * len(content) + besides


@pytest.mark.parametrize("name", READERS)
@bounded
@given(data=st.data())
def test_damaged(shared_data, tmp_path, name, data):
    original = (shared_data / "groth16" / "chain" / name).read_bytes()
    survives(READERS[name], tmp_path / "damaged", data.draw(damage(original)))


@pytest.mark.parametrize("name", [name for name in READERS if name.startswith("chain")])
@bounded
@given(data=st.data())
def test_sections_rearranged(shared_data, tmp_path, name, data):
    original = (shared_data / "groth16" / "chain" / name).read_bytes()
    survives(READERS[name], tmp_path / "rearranged", data.draw(rearranged(original)))


@pytest.mark.parametrize("name", READERS)
@bounded
@given(rest=st.binary(max_size=300))
def test_noise_behind_the_right_beginning(tmp_path, name, rest):
    kind = name.rpartition(".")[2]
    start = b"{" if kind == "json" else kind.encode() + struct.pack("<I", 2 if kind == "wtns" else 1)
    survives(READERS[name], tmp_path / "noise", start + rest)
    survives(READERS[name], tmp_path / "noise", rest)


@bounded
@given(data=st.data())
def test_damaged_xz(shared_data, tmp_path, data):
    original = (shared_data / "groth16" / "chain" / "chain.wtns").read_bytes()
    # The decoder keeps a window of 8 MiB.
    survives((read_witness,), tmp_path / "damaged.xz", data.draw(damage(lzma.compress(original))), BESIDES + (9 << 20))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["0", "1", "01"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("name", ["proof.json", "public.json", "verification_key.json"])
@bounded
@given(data=st.data())
def test_json_with_one_value_replaced(shared_data, tmp_path, name, data):
    root = json.loads((shared_data / "groth16" / "chain" / name).read_text())
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(root)
    node, key = data.draw(st.sampled_from(places))
    node[key] = data.draw(JSON_VALUES)
    survives(READERS[name], tmp_path / "replaced.json", json.dumps(root).encode())
