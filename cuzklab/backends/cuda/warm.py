"""Compiles every unit ahead of use, several at a time, and reports registers and spills; no GPU needed.

`python -m cuzklab.backends.cuda.warm [ARCHITECTURE …]` prints a table (default: the GPU that is here).
`python -m cuzklab.backends.cuda.warm --record` writes the table that the tests compare with.
"""

import json
import os
import sys
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cuzklab.backends.cuda import field, keys, msm, multiples, quotient, transform
from cuzklab.backends.cuda.compile import Unit, compile_unit, compiler_version, usage
from cuzklab.resources import folder

ARCHITECTURES = (80, 90, 120)
"""Compute capabilities × 10 of the recorded table: A100, H100 and H200, RTX 50."""


def units() -> list[Unit]:
    """Every unit of the backend."""
    made_of = (transform, quotient, msm, multiples, keys)
    return list(dict.fromkeys([field.UNIT, Unit("ceilings.cu"), *(unit for each in made_of for unit in each.units())]))


def recorded_path() -> Path:
    """The recorded table."""
    return folder("kernels") / "cuda" / "registers.json"


def measure(
    architectures: tuple[int, ...], processes: int | None = None, names: Collection[str] | None = None
) -> dict[str, dict[str, dict[str, list[int]]]]:
    """[registers, spilled bytes] by unit, architecture and kernel; of all units, or of those named."""
    chosen = [unit for unit in units() if names is None or unit.name in names]
    wanted = [(unit, architecture) for unit in chosen for architecture in architectures]
    table: dict[str, dict[str, dict[str, list[int]]]] = {}
    with ProcessPoolExecutor(max_workers=processes or os.cpu_count()) as pool:
        for (unit, architecture), cubin in zip(wanted, pool.map(compile_unit, *zip(*wanted))):
            kernels = {name: [taken.registers, taken.spill_store_bytes] for name, taken in usage(cubin.log).items()}
            table.setdefault(unit.name, {})[f"sm_{architecture}"] = dict(sorted(kernels.items()))
    return table


def main() -> None:
    if sys.argv[1:] == ["--record"]:
        version = ".".join(map(str, compiler_version()))
        rows = (f"  {json.dumps(unit)}: {json.dumps(row)}" for unit, row in measure(ARCHITECTURES).items())
        text = f'{{"nvrtc": "{version}",\n "registers and spilled bytes": {{\n' + ",\n".join(rows) + "\n }\n}\n"
        recorded_path().write_text(text)
        return
    from cuzklab.backends.cuda.launch import architecture

    for unit, by_architecture in measure(tuple(int(x) for x in sys.argv[1:]) or (architecture(),)).items():
        for number, kernels in by_architecture.items():
            for kernel, (registers, spilled) in kernels.items():
                print(f"{unit:60} {number:6} {kernel:20} {registers:4} registers {spilled:5} B spilled")


if __name__ == "__main__":
    main()
