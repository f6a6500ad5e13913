"""The command line: one verb a command, thin. Heavy imports happen inside commands.

`options` holds what several verbs share; every other module holds a verb or a few that belong together.

Exit status: 0 done, 1 the thing asked about failed (an unsafe design, an invalid proof), 2 bad usage or bad input.
"""

from importlib import import_module
from pkgutil import iter_modules

from cuzklab.cli.options import app, main

# A module of this package registers its verbs when it is imported: a new one needs no line here.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["app", "main"]
