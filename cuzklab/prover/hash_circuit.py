"""SHA-256 as a circuit, written from FIPS 180-4 (Secure Hash Standard, August 2015), sections 4.1.2, 5 and 6.2.

The message is private, its digest public. Words are lists of 32 bits, little end first. Sums modulo 2^32 are linear
combinations that are unpacked into bits once, so each costs a constraint a bit and one more.
"""

from collections.abc import Sequence
from math import isqrt
from typing import Literal

import numpy as np

from cuzklab.prover.builder import (
    CircuitBuilder,
    Linear,
    boolean,
    choose,
    constant_word,
    multiply,
    pack,
    rotate_right,
    shift_right,
    unpack,
    xor,
)
from cuzklab.prover.model import ConstraintSystem

Word = list[Linear]

_PRIMES = [n for n in range(2, 312) if all(n % d for d in range(2, isqrt(n) + 1))][:64]


def _cube_root(n: int) -> int:
    """The integer part of the cube root, by bisection."""
    low, high = 0, 1 << (n.bit_length() // 3 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle - 1)
    return low


# FIPS 180-4, 5.3.3 and 4.2.2: the first 32 bits of the fractional parts of the roots of the first primes.
INITIAL_STATE = [isqrt(p << 64) % 2**32 for p in _PRIMES[:8]]
ROUND_CONSTANTS = [_cube_root(p << 96) % 2**32 for p in _PRIMES]


def sha256_circuit(
    message: bytes, *, public: Literal["packed", "bits"] = "packed"
) -> tuple[ConstraintSystem, np.ndarray]:
    """The circuit "I know a message of this length whose SHA-256 digest is …", and its witness for `message`.

    The circuit depends on the message's length only.

    Parameters
    ----------
    message : bytes
        Of any length; the private input.
    public : {"packed", "bits"}
        The digest as two public outputs, the upper and the lower 128 bits as integers, or as 256 of one bit, from the
        most significant bit on.

    Returns
    -------
    system : ConstraintSystem
    witness : (wires, 4) uint64, plain
    """
    builder = CircuitBuilder()
    digest = sha256_words(builder, message_words(builder, message))
    bits = [bit for word in digest for bit in reversed(word)]
    if public == "bits":
        for bit in bits:
            builder.public_output(bit)
    else:
        for half in (bits[:128], bits[128:]):
            builder.public_output(pack(half[::-1]))
    return builder.build()


def message_words(builder: CircuitBuilder, message: bytes) -> list[Word]:
    """The padded message (FIPS 180-4, 5.1.1) as words: bits of the message are boolean wires, the padding constants."""
    padding = b"\x80" + b"\x00" * ((55 - len(message)) % 64) + (8 * len(message)).to_bytes(8, "big")
    words = []
    padded = message + padding
    for start in range(0, len(padded), 4):
        word: Word = []
        for position in range(start + 3, start - 1, -1):
            byte = padded[position]
            if position < len(message):
                word += [boolean(builder, byte >> i & 1) for i in range(8)]
            else:
                word += constant_word(byte, 8)
        words.append(word)
    return words


def sha256_words(builder: CircuitBuilder, words: Sequence[Word]) -> list[Word]:
    """The digest's eight words of a padded message; the number of words is a multiple of 16."""
    state = [constant_word(value) for value in INITIAL_STATE]
    for start in range(0, len(words), 16):
        state = compress(builder, state, words[start : start + 16])
    return state


def compress(builder: CircuitBuilder, state: Sequence[Word], block: Sequence[Word]) -> list[Word]:
    """One application of the compression function (FIPS 180-4, 6.2.2) to eight words of state and 16 of message."""
    schedule = list(block)
    for t in range(16, 64):
        s1 = _xor3(
            builder,
            rotate_right(schedule[t - 2], 17),
            rotate_right(schedule[t - 2], 19),
            shift_right(schedule[t - 2], 10),
        )
        s0 = _xor3(
            builder,
            rotate_right(schedule[t - 15], 7),
            rotate_right(schedule[t - 15], 18),
            shift_right(schedule[t - 15], 3),
        )
        schedule.append(_sum32(builder, [s1, schedule[t - 7], s0, schedule[t - 16]]))
    a, b, c, d, e, f, g, h = state
    for t in range(64):
        big_s1 = _xor3(builder, rotate_right(e, 6), rotate_right(e, 11), rotate_right(e, 25))
        chosen = [choose(builder, *bits) for bits in zip(e, f, g, strict=True)]
        big_s0 = _xor3(builder, rotate_right(a, 2), rotate_right(a, 13), rotate_right(a, 22))
        majority = [_majority(builder, *bits) for bits in zip(a, b, c, strict=True)]
        first = [h, big_s1, chosen, constant_word(ROUND_CONSTANTS[t]), schedule[t]]
        new_e = _sum32(builder, [d, *first])
        new_a = _sum32(builder, [*first, big_s0, majority])
        a, b, c, d, e, f, g, h = new_a, a, b, c, new_e, e, f, g
    return [_sum32(builder, [old, new]) for old, new in zip(state, [a, b, c, d, e, f, g, h], strict=True)]


def _xor3(builder: CircuitBuilder, x: Word, y: Word, z: Word) -> Word:
    return [xor(builder, xor(builder, i, j), k) for i, j, k in zip(x, y, z, strict=True)]


def _majority(builder: CircuitBuilder, x: Linear, y: Linear, z: Linear) -> Linear:
    """The value that at least two of three bits have: x where y and z differ, else what both are."""
    both = multiply(builder, y, z)
    return both + multiply(builder, x, y + z - 2 * both)


def _sum32(builder: CircuitBuilder, words: Sequence[Word]) -> Word:
    """The sum of words modulo 2^32, as bits; the carries are bits that nothing reads."""
    total = sum((pack(word) for word in words[1:]), start=pack(words[0]))
    carries = (len(words) - 1).bit_length()
    if total.is_constant:
        return constant_word(total.value)
    return unpack(builder, total, 32 + carries)[:32]
