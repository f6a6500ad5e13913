"""What the host's work takes alone, and what it asks of the host: CPU stages by the stage table, page-locking, copies.

How work that runs at the same time slows down follows from that, in `cuzklab.simulate.host`. A simulation goes from
here to how long a stage lasts, and live runs (`cuzklab.simulate.alone`) from how long it lasted to what it takes alone.
"""

from cuzklab.profiles import PAGE_LOCKING, PAGEABLE_COPY, Hardware
from cuzklab.simulate.host import Demand, throughput
from cuzklab.stages import G2_BUCKET_BYTES, STAGES, CircuitShape, msm_window_bits

# Locking and unmapping touch the kernel's record of each page, not the page: 64 bytes for 4 KiB.
_TRAFFIC_OF_PAGES = 64 / 4096


def pool_seconds(hardware: Hardware, stage: str, threads: int, work: int) -> float:
    """Seconds that a pool needs for what one thread does in a second: s + (1 − s) · x."""
    serial = hardware.stage_serial_share(stage)
    return serial + (1 - serial) * shared_seconds(hardware, stage, threads, work)


def shared_seconds(hardware: Hardware, stage: str, threads: int, work: int) -> float:
    """Of what all threads of a pool do: x = (1 + d · (threads − 1) / work) / throughput(threads).

    d is what each further thread adds to the work, as the parts of an MSM have buckets of their own.
    """
    added = hardware.stage_split_work(stage) * (threads - 1) / work if work else 0.0
    return (1 + added) / throughput(hardware.host, threads)


def stage_demand(
    hardware: Hardware, shape: CircuitShape, stage: str, part: str, threads: int, alone_s: float
) -> Demand:
    """What a CPU stage that alone takes so long asks of the host."""
    row = STAGES[stage]
    points = max(1, row.work(shape, part) // threads)
    buckets = threads * (G2_BUCKET_BYTES << (msm_window_bits(points) - 1))
    cache = min(1.0, buckets / hardware.host.llc_bytes) if threads > 1 else 0.0
    traffic = row.host_traffic_bytes(shape, part) / alone_s if alone_s else 0.0
    return Demand(threads, hardware.stage_memory_share(stage), traffic, cache)


def page_locking_demand(hardware: Hardware, s_per_byte: float) -> Demand:
    """What locking or unlocking pages asks of the host."""
    return Demand(1, hardware.stage_memory_share(PAGE_LOCKING), _TRAFFIC_OF_PAGES / s_per_byte)


def pageable_copy_demand(hardware: Hardware, bytes_per_s: float) -> Demand:
    """What a copy from pageable memory asks of the host: it is read and written once, into the driver's buffer."""
    return Demand(1, hardware.stage_memory_share(PAGEABLE_COPY), 2 * bytes_per_s)


def deallocation_demand(s_per_byte: float) -> Demand:
    """What giving memory back to the operating system asks of the host."""
    return Demand(1, 0.0, _TRAFFIC_OF_PAGES / s_per_byte)
