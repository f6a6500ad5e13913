"""JSON documents of snarkjs, read without trusting them.

Numbers are decimal strings. Sizes are limited before anything is parsed: of the file, of each number, of each list.
"""

import json
import os
from typing import Any

from cuzklab.backends.bls12_381 import FP_MODULUS
from cuzklab.backends.limbs import coordinates_to_limbs, limbs_to_coordinates
from cuzklab.errors import BadInput
from cuzklab.prover.files.container import open_regular, printable

_NOT_OURS = "use a file that snarkjs or cuzklab wrote"


def shown(value: Any) -> str:
    """A value for a message: on one line, cut where it is long."""
    # Never the whole of a huge value: only a string's beginning, or the kind of anything else.
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    return repr(value)


class Document:
    """A parsed file, with the name that messages need."""

    def __init__(self, path: str | os.PathLike, maximum_bytes: int):
        file = printable(path)
        with open_regular(path) as handle:
            size = os.fstat(handle.fileno()).st_size
            raw = handle.read(min(size, maximum_bytes))
        if size > maximum_bytes:
            raise BadInput(f"{file}: larger than {maximum_bytes} bytes; {_NOT_OURS}")
        self._parse(file, raw)

    @classmethod
    def of_bytes(cls, file: str, raw: bytes) -> "Document":
        """A document that is part of a file; `file` says which, for messages."""
        self = cls.__new__(cls)
        self._parse(file, raw)
        return self

    def part(self, value: Any, where: str) -> "Document":
        """A value inside the document as a document of its own."""
        inner = type(self).__new__(type(self))
        inner.file, inner.root = f"{self.file}: {where}", value
        return inner

    def _parse(self, file: str, raw: bytes) -> None:
        self.file = file
        try:
            self.root = json.loads(
                raw.decode("utf-8"),
                parse_int=_small_integer,
                parse_float=_refuse_number,
                parse_constant=_refuse_number,
                object_pairs_hook=_without_repeats,
            )
        except RecursionError:
            raise BadInput(f"{self.file}: JSON nested too deeply; {_NOT_OURS}") from None
        except ValueError as error:
            reason = str(error) if str(error).isprintable() else "not text"
            raise BadInput(f"{self.file}: not JSON of this kind ({reason}); {_NOT_OURS}") from None

    def bad(self, where: str, what: str, todo: str = _NOT_OURS) -> BadInput:
        return BadInput(f"{self.file}: {where}: {what}; {todo}" if where else f"{self.file}: {what}; {todo}")

    def field(self, name: str) -> Any:
        """A field of the root object."""
        if not isinstance(self.root, dict):
            raise self.bad("", f"{shown(self.root)} where an object is expected")
        if name not in self.root:
            raise self.bad(name, "is missing")
        return self.root[name]

    def require_groth16(self) -> None:
        """The document must say that it is for Groth16 over BLS12-381."""
        protocol, curve = self.field("protocol"), self.field("curve")
        if protocol != "groth16":
            raise self.bad("protocol", f"{shown(protocol)}, not groth16")
        # snarkjs compares curves by their letters and digits too, so that BLS12-381 is accepted.
        name = "".join(filter(str.isalnum, curve)).lower() if isinstance(curve, str) and len(curve) < 40 else ""
        if name != "bls12381":
            known = " (BN254)" if name in ("bn128", "bn254", "altbn128") else ""
            raise self.bad("curve", f"{shown(curve)}{known}, this program works over bls12381")

    def integer(self, value: Any, where: str, bound: int, bound_name: str) -> int:
        """A canonical decimal string below `bound`."""
        longest = len(str(bound))
        if not isinstance(value, str):
            raise self.bad(where, f"{shown(value)} where a decimal string is expected")
        if not (value.isascii() and value.isdigit()) or (value[0] == "0" and value != "0"):
            raise self.bad(where, f"{shown(value)} is not a canonical decimal number")
        if len(value) > longest or int(value) >= bound:
            raise self.bad(where, f"{shown(value)} is not below {bound_name}")
        return int(value)

    def items(self, value: Any, where: str, length: int | None = None) -> list:
        if not isinstance(value, list) or (length is not None and len(value) != length):
            wanted = "a list" if length is None else f"a list of {length}"
            raise self.bad(where, f"{shown(value)} where {wanted} is expected")
        return value

    def g1(self, value: Any, where: str):
        """A G1 point, three coordinates of which the third is 1 (or 0, 1, 0: infinity); (12,) uint64, Montgomery."""
        x, y, z = (self._coordinate(item, f"{where}[{i}]") for i, item in enumerate(self.items(value, where, 3)))
        return self._point([x, y], [z], [0, 1], where)

    def g2(self, value: Any, where: str):
        """A G2 point, three pairs c0, c1; (24,) uint64, Montgomery."""
        pairs = [self.items(item, f"{where}[{i}]", 2) for i, item in enumerate(self.items(value, where, 3))]
        numbers = [
            self._coordinate(item, f"{where}[{i}][{j}]") for i, pair in enumerate(pairs) for j, item in enumerate(pair)
        ]
        return self._point(numbers[:4], numbers[4:], [0, 0, 1, 0], where)

    def _coordinate(self, value: Any, where: str) -> int:
        return self.integer(value, where, FP_MODULUS, "the modulus")

    def _point(self, affine: list[int], last: list[int], infinity: list[int], where: str):
        if last == [1] + [0] * (len(last) - 1):
            if not any(affine):
                raise self.bad(where, "0, 0 is no point")
            return coordinates_to_limbs(affine)
        if not any(last) and affine == infinity:
            return coordinates_to_limbs([0] * len(affine))
        raise self.bad(where, "the third coordinate is not 1")


def g1_json(point) -> list[str]:
    """A G1 point, (12,) uint64 in Montgomery form, as snarkjs writes it."""
    x, y = limbs_to_coordinates(point)
    return [str(x), str(y), "1"] if x or y else ["0", "1", "0"]


def g2_json(point) -> list[list[str]]:
    """A G2 point, (24,) uint64 in Montgomery form, as snarkjs writes it."""
    numbers = limbs_to_coordinates(point)
    x, y = [str(n) for n in numbers[:2]], [str(n) for n in numbers[2:]]
    return [x, y, ["1", "0"]] if any(numbers) else [["0", "0"], ["1", "0"], ["0", "0"]]


def dump(value: Any) -> str:
    """JSON with the indentation of snarkjs."""
    return json.dumps(value, indent=1)


def _small_integer(text: str) -> int:
    if len(text) > 10:
        raise ValueError(f"a bare number of {len(text)} digits, numbers are strings here")
    return int(text)


def _refuse_number(text: str):
    raise ValueError(f"{shown(text)}, only whole numbers are expected")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return result
