"""What the canvas draws and sums, in JavaScript, against the same arithmetic in numpy."""

import numpy as np
import pytest

from tests.workbench.browser import in_node

WIDE, INSTANT = 2, 1e-6


def row_of_spans(generator, count, length, kinds):
    """Spans of a row in order, some without extent."""
    edges = np.sort(generator.integers(0, length, 2 * count))
    start, end = edges[::2].copy(), edges[1::2].copy()
    instant = generator.random(count) < 0.1
    end[instant] = start[instant]
    return {"start": start.tolist(), "end": end.tolist(), "kind": generator.integers(0, kinds, count).tolist()}


def cases():
    generator = np.random.default_rng(7)
    for number in range(24):
        count, length = int(generator.integers(0, 3_000)), int(10 ** generator.uniform(3, 9))
        left = float(generator.integers(0, length)) if number % 3 else 0.0
        right = left + max(1.0, float(generator.integers(1, length)) * 10 ** generator.uniform(-2, 0))
        row = row_of_spans(generator, count, length, 5)
        mask = generator.integers(0, 2, count).tolist() if number % 2 else None
        yield {"row": row, "left": left, "right": right, "width": int(generator.integers(1, 300)), "mask": mask}


def binned(row, left, right, width, mask):
    """Wide spans; of each pixel the kind that takes most of it, and the part that is taken."""
    scale = width / (right - left)
    sums, wide = np.zeros((width, 5)), []
    for place, (start, end, kind) in enumerate(zip(row["start"], row["end"], row["kind"], strict=True)):
        if end < left or start > right or (mask and not mask[place]):
            continue
        low, high = (start - left) * scale, (end - left) * scale
        if high - low >= WIDE:
            wide.append(place)
            continue
        low, high = max(low, 0), min(high, width)
        if min(width - 1, int(low)) == min(width - 1, int(high)):
            sums[min(width - 1, int(low)), kind] += high - low + INSTANT
        else:
            pixels = np.arange(width)
            sums[:, kind] += np.clip(np.minimum(pixels + 1, high) - np.maximum(pixels, low), 0, None)
    kind = np.where(sums.max(axis=1) > 0, sums.argmax(axis=1), -1)
    return wide, kind, np.minimum(sums.sum(axis=1), 1), sums


def test_bins_agree_with_numpy():
    script = """
    return given.map(({ row, left, right, width, mask }) => {
      const bins = new Bins(width, 5).fill(row, 0, row.start.length, left, right, mask);
      return { wide: bins.wide, kind: [...bins.kind], share: [...bins.share] };
    });
    """
    given = list(cases())
    narrow = 0
    for case, found in zip(given, in_node(("Bins",), script, given), strict=True):
        wide, kind, share, sums = binned(**case)
        assert found["wide"] == wide
        assert found["share"] == pytest.approx(share, abs=1e-5)
        for pixel in range(case["width"]):
            # Of kinds that take the same part to the last bit either is right.
            if kind[pixel] != found["kind"][pixel]:
                assert sums[pixel, found["kind"][pixel]] == pytest.approx(sums[pixel].max(), abs=1e-9)
        narrow += int((kind >= 0).sum())
    assert narrow > 500


def test_memory_shows_the_highest_moment_of_each_pixel():
    generator = np.random.default_rng(3)
    time = np.sort(generator.integers(0, 10_000, 500))
    live = generator.integers(0, 1000, 500)
    views = [(0, 10_000, 70), (2_500, 2_600, 40), (9_990, 12_000, 9), (-500, -10, 5)]
    script = """
    return given.views.map(([left, right, width]) => [...highest(given.time, given.live, 0, 500, left, right, width)]);
    """
    found = in_node(("highest",), script, {"time": time.tolist(), "live": live.tolist(), "views": views})
    for (left, right, width), places in zip(views, found, strict=True):
        for pixel, place in enumerate(places):
            begins, ends = (left + (right - left) * edge / width for edge in (pixel, pixel + 1))
            before = np.flatnonzero(time <= begins if pixel == 0 else time < begins)
            inside = np.flatnonzero((time < ends) & ((time > begins) if pixel == 0 else (time >= begins)))
            candidates = [*before[-1:], *inside]
            assert place == -1 if not candidates else live[place] == live[candidates].max()
            assert not candidates or place in candidates


def test_sums_are_those_of_what_is_inside():
    generator = np.random.default_rng(5)
    rows = [row_of_spans(generator, 200, 50_000, 3) for _ in range(3)]
    start, end, kind = (np.concatenate([row[name] for row in rows]) for name in ("start", "end", "kind"))
    label = generator.integers(0, 4, 600)
    columns = {
        "start": start, "end": end, "kind": kind, "label": label,
        "merged": np.ones(600, int), "idle": np.zeros(600, int),
        "row_first": [0, 200, 400], "row_count": [200, 200, 200], "row_lane": [0, 0, 1],
        "worker": np.zeros(600, int), "partition": np.zeros(600, int),
    }  # fmt: skip
    picture = {
        "header": {"kinds": [0, 0, 0], "lanes": [{"group": "worker"}, {"group": "device"}],
                   "strings": ["ntt_h", "h_msm", "Tail", "x"]},
        "columns": {name: np.asarray(values).tolist() for name, values in columns.items()},
    }  # fmt: skip
    left, right = 12_345, 23_456
    script = """
    const { columns, header } = given.picture, lanes = [{ name: "a", label: "a" }, { name: "GPU0", label: "b" }];
    return [sums(given.picture, given.left, given.right), search(given.picture, "TAIL", lanes).found,
      search(given.picture, "gpu0", lanes).found];
    """
    found, tails, lane = in_node(("sums", "search"), script, {"picture": picture, "left": left, "right": right})
    assert tails == int((label == 2).sum()) and lane == 200
    inside = (end >= left) & (start <= right)
    group = np.repeat(["worker", "worker", "device"], 200)
    for row in found:
        own = inside & (kind == row["kind"]) & (label == row["label"]) & (group == row["group"])
        assert row["count"] == own.sum()
        assert row["time"] == (np.minimum(end, right) - np.maximum(start, left))[own].sum()
        assert row["longest"] == (end - start)[own].max()
    assert sum(row["count"] for row in found) == inside.sum()
