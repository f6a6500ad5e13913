"""Names of kernels for people: what a compiler writes is longer than any line."""

import re

# Namespaces that say nothing about a kernel: without a name, and the one into which CUB puts the list of cards.
_NAMESPACES = re.compile(r"\(anonymous namespace\)::|\bCUB_[\d_]+_NS::")


def short_name(kernel: str) -> str:
    """A kernel's name without return type, template arguments and parameters: ``cub::DeviceReduceKernel``."""
    text, depth, kept = _NAMESPACES.sub("", kernel.removeprefix("void ")), 0, []
    for character in text:
        if character == "<":
            depth += 1
        elif character == ">":
            depth = max(depth - 1, 0)
        elif character == "(" and not depth and kept:
            break
        elif not depth:
            kept.append(character)
    return "".join(kept).strip() or kernel
