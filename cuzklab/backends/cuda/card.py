"""What the GPU at hand is."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from cuzklab.backends.cuda.launch import cupy


@dataclass(frozen=True)
class Card:
    """A GPU and the software that drives it.

    Attributes
    ----------
    title : str
        The driver's name of it.
    architecture : int
        Compute capability × 10.
    memory_bytes : int
        All that it has.
    driver, runtime, cupy : str
        Versions: of CUDA as the driver has it and as CuPy uses it, and of CuPy.
    count : int
        GPUs of this machine.
    """

    title: str
    architecture: int
    multiprocessors: int
    memory_bytes: int
    driver: str
    runtime: str
    cupy: str
    count: int

    @property
    def name(self) -> str:
        """Its title as a word: ``nvidia-h200``."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def facts(self) -> dict[str, Any]:
        """All of it, for a record."""
        return asdict(self)


def card(index: int = 0) -> Card:
    """The GPU of that number.

    Raises
    ------
    BadInput
        There is no usable GPU.
    """
    module = cupy()
    runtime = module.cuda.runtime
    properties = runtime.getDeviceProperties(index)
    return Card(
        title=properties["name"].decode(),
        architecture=10 * properties["major"] + properties["minor"],
        multiprocessors=properties["multiProcessorCount"],
        memory_bytes=properties["totalGlobalMem"],
        driver=_version(runtime.driverGetVersion()),
        runtime=_version(runtime.runtimeGetVersion()),
        cupy=module.__version__,
        count=runtime.getDeviceCount(),
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
