"""Names of kernels for people: what a compiler writes is longer than any line."""

_ANONYMOUS = "(anonymous namespace)::"


def short_name(kernel: str) -> str:
    """A kernel's name without return type, template arguments and parameters: ``cub::DeviceReduceKernel``."""
    text, depth, kept = kernel.removeprefix("void ").replace(_ANONYMOUS, ""), 0, []
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
