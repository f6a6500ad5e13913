"""How the list of verbs reads: in groups, each with its whole first sentence."""

from typing import Any

from typer.core import TyperGroup

# In the order of the work. A verb names its group with `rich_help_panel`.
DESIGNS = "Designs: a policy by name, or a Python file of yours"
RECORDS = "What ran: runs, reports, the workbench"
ENGINES = "Other engines and programs"
PROOFS = "Proofs and kernels"
_GROUPS = (DESIGNS, RECORDS, ENGINES, PROOFS)


class Verbs(TyperGroup):
    """Commands by group; those that name none come last."""

    def format_commands(self, context: Any, formatter: Any) -> None:
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in _GROUPS}
        for name, command in shown.items():
            group = getattr(command, "rich_help_panel", None)
            words = command.get_short_help_str(limit=300)
            groups.setdefault(group if isinstance(group, str) else "Commands", []).append((name, words))
        for group, rows in groups.items():
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows, col_max=14)
