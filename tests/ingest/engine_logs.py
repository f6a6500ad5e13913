"""Logs whose truth is known: what an engine would have written during a simulated run, to the millisecond."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from cuzklab import policies
from cuzklab.simulate import simulate

MS = 1_000_000


@dataclass
class Entry:
    """A line of the log: when it is written, and its text in each version."""

    time_ns: int
    text: str
    untimed: bool = False


@dataclass
class Known:
    """What a log tells, as sets of rows that a reader must find.

    Rows: spans (name, category, start, end, partition, worker), locks (requested, acquired, released, partition,
    worker, holder), waits (kind, start, end, partition, worker, holder).
    """

    entries: list[Entry] = field(default_factory=list)
    spans: set[tuple] = field(default_factory=set)
    locks: set[tuple] = field(default_factory=set)
    waits: set[tuple] = field(default_factory=set)


@dataclass(frozen=True)
class Version:
    """How an engine of some age writes."""

    queued: str = "GPU_QUEUE"
    number: str = "{:.0f}"
    before: str = ""
    job: str = "job-{}"


MODERN, OLD = Version(), Version("CHAN_SEND", "{:.3f}", "2026-02-18T10:00:00Z INFO engine: ", "{:08x}")


def whole(ns: float) -> int:
    return round(ns / MS) * MS


@cache
def simulated_log(
    policy: str = "phase9",
    version: Version = MODERN,
    proofs: int = 2,
    seed: int = 1,
    offset_ns: int = 0,
    workers: int = 2,
) -> Known:
    """The log of a simulated batch, and its truth."""
    result = simulate(
        policies.load(policy), "rtx5070ti-7995wx", "porep-32g", proofs=proofs, in_flight=proofs, gpu_workers=workers,
        synthesis_workers=4, seed=seed,
    )  # fmt: skip
    tables = {name: result.recorder.table(name).to_pylist() for name in ("spans", "locks", "waits")}
    known = Known()
    log = _Writer(known, version)
    jobs: dict[int, str] = {}
    for row in sorted(tables["spans"], key=lambda row: row["start"]):
        if row["name"] == "synthesis":
            job = jobs.setdefault(row["proof"], version.job.format(len(jobs) + 10))
            log.synthesis(row, job)
    for row in tables["spans"]:
        if row["category"] == "call":
            mine = {name: [one for one in tables[name] if one["partition"] == row["partition"]] for name in tables}
            log.call(row, mine, jobs[row["proof"]])
    known.entries.sort(key=lambda entry: entry.time_ns)
    return known


class _Writer:
    def __init__(self, known: Known, version: Version) -> None:
        self.known, self.version = known, version

    def at(self, ns: int) -> int:
        return whole(ns)

    def ms(self, ns: int) -> str:
        return self.version.number.format(ns / MS)

    def event(self, ns: int, what: str, job: str, detail: str) -> None:
        text = f"{self.version.before}TIMELINE,{self.ms(ns)},{what},{job},{detail}"
        self.known.entries.append(Entry(ns, text))

    def timing(self, ns: int, text: str) -> None:
        self.known.entries.append(Entry(ns, f"CUZK_TIMING: {text}", True))

    def synthesis(self, row: dict, job: str) -> None:
        start, end, number = self.at(row["start"]), self.at(row["end"]), row["partition"].split(".")[1]
        self.event(start, "SYNTH_START", job, f"partition={number}")
        self.event(end, "SYNTH_END", job, f"partition={number},synth_ms={self.ms(end - start)}")
        self.event(end, self.version.queued, job, f"partition={number}")
        self.known.spans.add(("synthesis", "cpu", start, end, row["partition"], ""))

    def call(self, row: dict, tables: dict[str, list[dict]], job: str) -> None:
        start, end, name = self.at(row["start"]), self.at(row["end"]), row["partition"]
        number, worker = name.split(".")[1], int(row["worker"].rpartition("w")[2])
        who = f"w{worker}"
        (lock,) = (one for one in tables["locks"] if one["lock"] == "gpu0.lock")
        asked, acquired, released = (self.at(lock[key]) for key in ("requested", "acquired", "released"))
        steps = {key: self._extent(tables["spans"], key) for key in
                 ("prep_msm", "b_g2_msm", "ntt_h", "h_msm", "batch_add", "tail_msm")}  # fmt: skip
        for wait in tables["waits"]:  # the device waits for the upload: part of its first step
            if wait["kind"] == "event" and wait["worker"] == row["worker"]:
                steps["ntt_h"] = (min(self.at(wait["start"]), steps["ntt_h"][0]), steps["ntt_h"][1])
        barrier = [wait for wait in tables["waits"] if wait["on"] == f"{name}.barrier"]
        first, middle, done = steps["ntt_h"][0], steps["h_msm"][0], steps["h_msm"][1]
        steps["ntt_h"] = (first, middle)
        length = {key: self.ms(until - since) for key, (since, until) in steps.items()}

        self.event(start, "GPU_PICKUP", job, f"worker={worker},partition={number}")
        self.event(start, "GPU_START", job, f"worker={worker},partition={number}")
        begun = steps["prep_msm"][0]  # the prep thread begins when the call is set up
        self.timing(begun, f"split_vectors_ms=0 setup_to_split_ms={self.ms(begun - start)}")
        self.timing(acquired, f"pre_lock_cpu_ms={self.ms(asked - start)} mutex_wait_ms={self.ms(acquired - asked)}")
        self.timing(acquired, "prestage_vram free_mib=15800 usable_mib=15288 need_da_mib=4096 need_dbc_mib=8192"
                    " total_mib=16384")  # fmt: skip
        self.timing(acquired, "prestage_setup=ok")
        parts = (0, middle - first, 0, 0, done - middle, 0, done - first)
        keys = ("d_b_alloc", "ntt_kernels", "coset_intt_sync", "msm_init", "msm_invoke", "msm_dtor", "total")
        text = " ".join(f"{key}={self.ms(value)}ms" for key, value in zip(keys, parts, strict=True))
        self.known.entries.append(Entry(done, f"CUZK_NTT_H: {text}", True))
        self.timing(done, f"gpu_tid=0 ntt_msm_h_ms={self.ms(done - first)}")
        self.timing(steps["prep_msm"][1], f"prep_msm_ms={length['prep_msm']}")
        self.timing(steps["b_g2_msm"][1], f"b_g2_msm_ms={length['b_g2_msm']} num_circuits=1")
        waited = self._extent(barrier, None) if barrier else (steps["batch_add"][0],) * 2
        self.timing(waited[1], f"gpu_tid=0 barrier_wait_ms={self.ms(waited[1] - waited[0])}")
        self.timing(steps["batch_add"][1], f"gpu_tid=0 batch_add_ms={length['batch_add']}")
        total = self.ms(released - first)
        self.timing(released, f"gpu_tid=0 tail_msm_ms={length['tail_msm']} gpu_total_ms={total}")
        self.timing(released, f"mutex_held_ms={self.ms(released - acquired)}"
                    f" total_start_fn_ms={self.ms(released - start)}")  # fmt: skip
        took = self.ms(end - start)
        self.event(end, "GPU_END", job, f"worker={worker},partition={number},gpu_ms={took}")
        self.timing(end + 40 * MS, "async_dealloc_ms=40")

        known = self.known
        known.spans |= {
            (key, "cpu" if key in ("prep_msm", "b_g2_msm") else "gpu", *extent, name, who)
            for key, extent in steps.items()
        }
        known.spans |= {
            ("prove_partition", "call", start, end, name, who),
            ("prestage ok", "memory", acquired, acquired, name, who),
            ("async_dealloc", "memory", end, end + 40 * MS, name, who),
        }
        holder = lock["holder_at_request"]
        holder = f"w{holder.rpartition('w')[2]}" if holder and acquired > asked else ""
        known.locks.add((asked, acquired, released, name, who, holder))
        if acquired > asked:
            known.waits.add(("lock", asked, acquired, name, who, holder))
        known.waits.add(("barrier", *waited, name, who, ""))

    def _extent(self, rows: Sequence[dict], stage: str | None) -> tuple[int, int]:
        chosen = [row for row in rows if stage is None or row["name"].partition(".")[0] == stage]
        return self.at(min(row["start"] for row in chosen)), self.at(max(row["end"] for row in chosen))


def text_of(known: Known) -> str:
    return "".join(f"{entry.text}\n" for entry in known.entries)
