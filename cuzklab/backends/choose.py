"""Which backend is in force: what `--backend` asks for, and what this machine has."""

import importlib.util
from dataclasses import dataclass

from cuzklab.errors import BadInput

BACKENDS = ("auto", "cuda", "host", "sim")


@dataclass(frozen=True)
class Choice:
    """A backend in force.

    Attributes
    ----------
    name : {"cuda", "host", "sim"}
    why : str
        A line for whoever did not name it, where there is something to say: which GPU is used, or why an installed
        CUDA is not; otherwise empty.
    """

    name: str
    why: str = ""


def choose(wanted: str, *, offers: tuple[str, ...] = ("cuda", "host")) -> Choice:
    """The backend for what was asked for.

    Parameters
    ----------
    wanted : {"auto", "cuda", "host", "sim"}
        "auto" is the GPU where there is one and CuPy is installed, else the CPU.
    offers : tuple of str
        Backends that make sense for the work at hand.

    Raises
    ------
    BadInput
        No such backend, none for this work, or no usable GPU where one was asked for; says what is missing.
    """
    if wanted not in ("auto", *offers):
        known = "no such backend" if wanted not in BACKENDS else "makes no sense here"
        raise BadInput(f"--backend {wanted}: {known}; use {', '.join(('auto', *offers))}")
    if wanted == "cuda":
        from cuzklab.backends.cuda import available

        if (reason := available()) is not None:
            raise BadInput(f"--backend cuda: {reason}")
        return Choice("cuda")
    if wanted == "auto" and importlib.util.find_spec("cupy") is not None:
        from cuzklab.backends.cuda import available

        if (reason := available()) is not None:
            return Choice("host", f"backend host: {reason.partition(';')[0].partition(', or use')[0]}")
        from cuzklab.backends.cuda.card import card

        return Choice("cuda", f"backend cuda: {card().title} (--backend host uses the CPU)")
    return Choice("host" if wanted == "auto" else wanted)
