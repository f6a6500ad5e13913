"""Compiles every unit ahead of use: `python -m cuzklab.backends.cuda.warm [ARCHITECTURE …]`, several at a time."""

import os
import sys
from concurrent.futures import ProcessPoolExecutor

from cuzklab.backends.cuda import field, msm, transform
from cuzklab.backends.cuda.compile import Cubin, Unit, compile_unit, usage


def units() -> list[Unit]:
    """Every unit of the backend."""
    return [field.UNIT, Unit("ceilings.cu"), *transform.units(), *msm.units()]


def compile_all(architectures: list[int], processes: int | None = None) -> dict[tuple[Unit, int], Cubin]:
    """All units for each architecture, by unit and architecture."""
    wanted = [(unit, architecture) for architecture in architectures for unit in units()]
    with ProcessPoolExecutor(max_workers=processes or os.cpu_count()) as pool:
        return dict(zip(wanted, pool.map(compile_unit, *zip(*wanted))))


def main() -> None:
    from cuzklab.backends.cuda.launch import architecture

    for (unit, number), cubin in compile_all([int(x) for x in sys.argv[1:]] or [architecture()]).items():
        for kernel, taken in usage(cubin.log).items():
            print(
                f"{unit.name:60} sm_{number} {kernel:14} {taken.registers:4} registers "
                f"{taken.spill_store_bytes:5} B spilled"
            )


if __name__ == "__main__":
    main()
