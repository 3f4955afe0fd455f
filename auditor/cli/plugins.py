"""``audit plugins``: every plugin by kind, where it comes from, and whether it loads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import typer

from auditor.cli import common
from auditor.cli.common import invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def plugins(format: common.Format = "terminal") -> int:
    """List plugins of every kind: those built in and those of installed packages."""
    common.check_format(format)
    return common.print_as(format, listed(), _lines)


class _Plugin(msgspec.Struct, frozen=True, kw_only=True, rename={"origin": "from"}):
    """One plugin; ``problem`` is why it does not load."""

    kind: str
    name: str
    origin: str
    where: str
    problem: str = ""


def _lines(rows: Sequence[_Plugin]) -> list[str]:
    lines: list[str] = []
    for kind in dict.fromkeys(row.kind for row in rows):
        lines += [f"{kind}s"]
        for row in rows:
            if row.kind == kind:
                lines.append(f"  {row.name:<22}{row.origin:<28}{row.where}".rstrip())
                lines += [f"      {row.problem}"] if row.problem else []
        lines.append("")
    return [
        *lines,
        "A suite of another package is chosen by its name: audit --suite NAME. A package offers plugins as entry",
        "points; names end in a version, and a name without one means the newest. PACKAGE:NAME is how a plug-in is",
        "chosen whose name another one has: none takes the place of another.",
    ]


def listed() -> list[_Plugin]:
    """One row for each plugin; those of other packages are imported to see whether they load."""
    from auditor.core import registry
    from auditor.core.errors import PluginError
    from auditor.tasks.kinds import KINDS

    rows = []
    for kind in (*registry.KINDS, KINDS):
        for name in kind.names():
            problem, origin = "", kind.origin(name)
            if origin != "built in":
                try:
                    kind.load(name)
                except PluginError as error:
                    problem = str(error)
            rows.append(_Plugin(kind=kind.kind, name=name, origin=origin, where=kind.where(name), problem=problem))
    return rows


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "plugins", argv)
