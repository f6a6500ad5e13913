"""Texts from foreign files: decoded whatever they hold, cut to a length, and without secrets.

Captures leak: Nsight Systems as root stores the environment of every process on the host, and what the program printed.
An importer reads neither into a run. But a secret may also stand in a range's name; so every text passes through
`Texts`, which knows the values of secret-looking variables of the captured environment and the looks of common tokens.
"""

import hashlib
import re
from collections.abc import Iterable

REDACTED = "(redacted)"
# Longer names (of C++ templates) are cut; the hash keeps different ones apart.
LONGEST_NAME = 1024
_HASH_DIGITS = 8

_SECRET_VARIABLE = re.compile(
    r"(?i)(token|secret|passw|pwd|credential|api_?key|access_?key|private_?key|auth|cookie|session|(^|_)key$)"
)
_SHORTEST_SECRET = 6  # a shorter value would be taken out of unrelated names
_TOKENS = re.compile(
    r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|glpat-[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*)",
    re.DOTALL,
)
_UNPRINTABLE = {code: "\ufffd" for code in (*range(32), *range(127, 160))} | {9: " ", 10: " ", 13: " "}
_SURROGATES = re.compile("[\ud800-\udfff]")


class Texts:
    """Makes names of what stands in a file.

    Parameters
    ----------
    secrets : iterable of str
        Values that must not get into any output.
    keep_private : bool
        Leave secrets where they are.

    Attributes
    ----------
    redacted : int
        How many texts had something taken out.
    """

    def __init__(self, secrets: Iterable[str] = (), keep_private: bool = False) -> None:
        values = sorted({one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=len, reverse=True)
        known = "|".join(map(re.escape, values))
        self._secrets = None if keep_private or not known else re.compile(known)
        self._keep_private = keep_private
        self.redacted = 0

    def __call__(self, raw: bytes | str | int | float | None) -> str:
        """A name as text without control characters, at most `LONGEST_NAME` long."""
        text = decode(raw)
        if not self._keep_private:
            clean = _TOKENS.sub(REDACTED, text)
            clean = self._secrets.sub(REDACTED, clean) if self._secrets else clean
            self.redacted += clean != text
            text = clean
        text = text.translate(_UNPRINTABLE)
        if len(text) <= LONGEST_NAME:
            return text
        mark = f"… #{hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]}"
        return text[: LONGEST_NAME - len(mark)] + mark


def decode(raw: bytes | str | int | float | None) -> str:
    """Whatever a file has where text belongs, as text."""
    if raw is None:
        return ""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return _SURROGATES.sub("\ufffd", text)


def secret_values(variables: Iterable[str]) -> set[str]:
    """Values of secret-looking variables among lines such as ``HF_TOKEN=hf_x``; lines may be joined by NULs."""
    found = set()
    for line in variables:
        for pair in re.split(r"[\0\n]", line):
            name, equals, value = pair.partition("=")
            if equals and _SECRET_VARIABLE.search(name.strip()):
                found.add(value.strip().strip("\"'"))
    return found - {"", REDACTED}
