"""A loader of pickles that hold nothing but plain data.

A pickle is a program. This loader knows only those of its instructions that make numbers, texts, lists, tuples and
dictionaries; an instruction that would look up a class, call something or set an attribute is refused by name, and so
are counts that would make a small file fill the memory. Python's own pure unpickler runs it, so that nothing is
allocated by a number in the file: its memo is a dictionary, and it reads no further than the file goes.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from cuzklab.errors import BadInput

MOST_BYTES = 512 << 20
MOST_INSTRUCTIONS = 20_000_000
_LONGEST_INTEGER_BYTES = 16

_NAMES = {code.code.encode("latin-1")[0]: code.name for code in pickletools.opcodes}
_ALLOWED = (
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET",
    "LONG_BINGET", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG1", "FLOAT", "BINFLOAT",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING", "BINBYTES",
    "SHORT_BINBYTES", "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS",
)  # fmt: skip


class _Refused(Exception):
    """Something that is no plain data; the message says what."""


class _Instructions(dict):
    """The instructions that are known, each counted as it is looked up."""

    def __init__(self, most: int) -> None:
        known = pickle._Unpickler.dispatch
        super().__init__({code: known[code] for code, name in _NAMES.items() if name in _ALLOWED})
        self.left = most

    def __getitem__(self, code: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _Refused("more instructions than a snapshot has")
        return super().__getitem__(code)

    def __missing__(self, code: int) -> NoReturn:
        raise _Refused(f"instruction {_NAMES.get(code, hex(code))}, which plain data do not need")


class PlainUnpickler(pickle._Unpickler):
    """Python's unpickler without everything that could run or fetch something."""

    def __init__(self, file: io.BytesIO, most_instructions: int = MOST_INSTRUCTIONS) -> None:
        super().__init__(file, fix_imports=False, encoding="utf-8", errors="replace")
        self.dispatch = _Instructions(most_instructions)
        self.dispatch[ord("s")] = PlainUnpickler.load_setitem
        self.dispatch[ord("u")] = PlainUnpickler.load_setitems
        self.dispatch[ord("d")] = PlainUnpickler.load_dict
        self.dispatch[ord("a")] = PlainUnpickler.load_append
        self.dispatch[ord("e")] = PlainUnpickler.load_appends
        self.dispatch[0x8A] = PlainUnpickler.load_long1

    def find_class(self, module: str, name: str) -> NoReturn:
        raise _Refused("a class")

    def persistent_load(self, pid: object) -> NoReturn:
        raise _Refused("a reference to another store")

    def get_extension(self, code: int) -> NoReturn:
        raise _Refused("an extension")

    # Keys are texts: numbers and tuples can be chosen so that every one falls on the same place of a dictionary, which
    # then takes quadratic time.

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _dictionary(self.stack[-1])[_key(key)] = value

    def load_setitems(self) -> None:
        items = self.pop_mark()
        target = _dictionary(self.stack[-1])
        target.update((_key(items[place]), items[place + 1]) for place in range(0, len(items), 2))

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append({_key(items[place]): items[place + 1] for place in range(0, len(items), 2)})

    def load_append(self) -> None:
        value = self.stack.pop()
        _list(self.stack[-1]).append(value)

    def load_appends(self) -> None:
        items = self.pop_mark()
        _list(self.stack[-1]).extend(items)

    def load_long1(self) -> None:
        length = self.read(1)[0]
        if length > _LONGEST_INTEGER_BYTES:
            raise _Refused(f"an integer of {length} bytes")
        self.append(int.from_bytes(self.read(length), "little", signed=True))


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _Refused(f"a dictionary with a {type(key).__name__} as key")
    return key


def _dictionary(target: object) -> dict:
    if not isinstance(target, dict):
        raise _Refused("items for something that is no dictionary")
    return target


def _list(target: object) -> list:
    if not isinstance(target, list):
        raise _Refused("items for something that is no list")
    return target


def load_plain(path: Path) -> Any:
    """The plain data in a pickle.

    Raises
    ------
    BadInput
        Too large, damaged, or anything else than plain data.
    """
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise BadInput(f"{path}: {size:,} bytes; at most {MOST_BYTES:,} are read. Record fewer entries (max_entries)")
    content = io.BytesIO(path.read_bytes())
    try:
        return PlainUnpickler(content).load()
    except _Refused as error:
        raise BadInput(f"{path}: byte {content.tell():,}: holds {error}: refused") from None
    except (
        pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, UnicodeError,
        OverflowError, MemoryError, RecursionError,
    ) as error:  # fmt: skip
        words = " ".join(str(error).split())[:100] or type(error).__name__
        raise BadInput(f"{path}: byte {content.tell():,}: not a whole pickle: {words}") from None
