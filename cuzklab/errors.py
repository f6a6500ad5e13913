"""The error that a person caused and can mend: the command line prints it on one line and exits with status 2."""


class BadInput(ValueError):
    """A file, name or value given by the user is not usable.

    The message is one line: what is wrong, where (file, section, offset, row), and what to do.
    """
