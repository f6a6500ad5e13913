"""The error that a person caused and can mend: the command line prints it on one line and exits with status 2."""

from collections.abc import Iterable
from difflib import get_close_matches


class BadInput(ValueError):
    """A file, name or value given by the user is not usable.

    The message is one line: what is wrong, where (file, section, offset, row), and what to do.
    """


def no_such(what: str, name: str, known: Iterable[str], otherwise: str = "") -> str:
    """One line for a name that there is not: which ones there are, and which one was probably meant.

    Parameters
    ----------
    what : str
        Kind of thing, singular.
    name : str
        As it was given.
    known : iterable of str
    otherwise : str
        What else could have been given, after the names: ``or give the path of a file``.
    """
    names = list(known)
    close = get_close_matches(name, names, n=1, cutoff=0.7)
    others = f", {otherwise}" if otherwise else ""
    meant = f". Did you mean {close[0]}?" if close else ""
    return f"no {what} {name!r}; there are: {', '.join(names) or 'none'}{others}{meant}"
