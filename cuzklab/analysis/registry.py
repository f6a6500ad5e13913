"""The findings that are made: one file in `cuzklab/analysis/findings/` each, found without being listed anywhere."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator

from cuzklab.analysis.case import Case
from cuzklab.analysis.model import Finding

Rule = Callable[[Case], Iterator[Finding]]

_rules: dict[str, Rule] = {}


def finding(rule: Rule) -> Rule:
    """Make a generator function of a `Case` one of the rules by which findings are made.

    Its name is the id of the findings that it yields.
    """
    known = _rules.get(rule.__name__)
    if known is not None and known.__module__ != rule.__module__:
        raise ValueError(f"two findings are called {rule.__name__}: {known.__module__} and {rule.__module__}")
    _rules[rule.__name__] = rule
    return rule


def rules() -> dict[str, Rule]:
    """Every rule by its name, in alphabetical order."""
    from cuzklab.analysis import findings

    for module in pkgutil.iter_modules(findings.__path__):
        importlib.import_module(f"{findings.__name__}.{module.name}")
    return dict(sorted(_rules.items()))


def find_all(case: Case) -> tuple[Finding, ...]:
    """All findings of a case: those against and for the candidate first, context last."""
    found = [found for rule in rules().values() for found in rule(case)]
    order = {"against": 0, "supports": 1, "context": 2}
    return tuple(sorted(found, key=lambda one: order[one.role]))
