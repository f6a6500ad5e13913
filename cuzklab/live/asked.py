"""What a live run is asked for, made out and refused where it is impossible, before anything large is made."""

from cuzklab.errors import BadInput
from cuzklab.live.circuit import MIN_LOG2_DOMAIN
from cuzklab.live.place import Place
from cuzklab.profiles import Workload, load_workload, scaled_shape
from cuzklab.stages import POREP_32G
from cuzklab.units import format_size

MAX_PARTITIONS, MAX_WORKERS = 10_000, 64


def size_of(workload: Workload | str | int) -> tuple[int, int]:
    """log2 of the domain, and partitions of a proof."""
    if isinstance(workload, int):
        workload = f"porep-shaped-{workload}"
    if isinstance(workload, str):
        workload = load_workload(workload)
    if workload.arrivals:
        raise BadInput(f"workload {workload.name}: a live run takes arrivals one by one, as urgent proofs")
    log2_domain = workload.shape.domain.bit_length() - 1
    if workload.shape != scaled_shape(log2_domain, workload.shape.name):
        raise BadInput(
            f"workload {workload.name}: a live run makes a circuit with the ratios of a 32 GiB PoRep partition and a "
            "key for it; ask for porep-shaped-N"
        )
    return log2_domain, workload.partitions_per_proof


def check_memory(where: Place, equivalent_bytes: int, limit_bytes: int, margin_bytes: int) -> None:
    if limit_bytes <= margin_bytes:
        raise BadInput(
            f"vram {format_size(equivalent_bytes)}: the engine leaves {format_size(where.margin_bytes)} "
            "free, so nothing remains; give more"
        )
    if where.card_bytes is not None and limit_bytes > where.card_bytes:
        raise BadInput(
            f"vram {format_size(equivalent_bytes)}: the card, {where.title}, has {format_size(where.card_bytes)}; "
            "give less"
        )


def check_numbers(
    proofs: int, partitions: int, gpu_workers: int, synthesis_workers: int, threads: int, gpus: int
) -> None:
    if proofs * partitions > MAX_PARTITIONS:
        raise BadInput(f"{proofs} proofs of {partitions} partitions are more than {MAX_PARTITIONS} partitions")
    for name, number in (
        ("gpu_workers", gpu_workers),
        ("synthesis_workers", synthesis_workers),
        ("threads", threads),
        ("gpus", gpus),
    ):
        if not 1 <= number <= MAX_WORKERS:
            raise BadInput(f"{name} is {number}; it must be 1 to {MAX_WORKERS}")


def urgent_size(kind: Workload, log2_domain: int) -> tuple[int, int]:
    """The size of an urgent proof's circuit: as much smaller than the batch's as it really is; and its partitions."""
    smaller = POREP_32G.domain.bit_length() - kind.shape.domain.bit_length()
    return max(MIN_LOG2_DOMAIN, log2_domain - max(0, smaller)), kind.partitions_per_proof
