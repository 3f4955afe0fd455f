"""Write the page of all commands from their own help texts.

Usage: ``python tools/cli_reference.py`` prints the page. ``make docs`` puts it into the site as ``cli.md``
(tools/mkdocs_hooks.py), so that it cannot be out of date.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys

from auditor.cli.frame import BRIEF
from auditor.cli.main import COMMANDS, FURTHER, overview, run
from auditor.core.options import PlanModel
from auditor.core.plan import Plan
from auditor.tables.tabular_plan import MethodOptions, TabularPlan

WIDTH = 100
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def help_text(*words: str) -> str:
    """Return the whole help of a command, laid out for ``WIDTH`` columns."""
    before = {name: os.environ.get(name) for name in ("COLUMNS", "TERMINAL_WIDTH")}
    os.environ.update(dict.fromkeys(before, str(WIDTH)))
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            code = run([*words, "--help-all" if " ".join(words) in BRIEF else "--help"])
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
    if code:
        raise SystemExit(f"audit {' '.join(words)} --help ended with {code}")
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def commands() -> dict[str, str]:
    """Every command ("run", "plan freeze", …) with its help text."""
    names = [n for name in COMMANDS for n in (name, *(f for f in FURTHER if f.startswith(f"{name} ")))]
    return {name: help_text(*name.split()) for name in names}


def options(text: str) -> set[str]:
    """The long options that a help text describes."""
    return set(OPTION.findall(text)) | {"--help"}


def settings(*plans: type[PlanModel]) -> str:
    """A table of the options of plans, from their fields."""
    rows = ["| option | key, field | what it says | where |", "|---|---|---|---|"]
    for plan in plans:
        for name, option in plan.flags().items():
            key = plan.key(name)
            names = f"`{key}`" if key == name else f"`{key}`, `{name}`"
            notes = ["may change on resume"] * any("resume" in one for one in option.commands)
            notes += [] if option.shapes else ["not held by a frozen plan"]
            told = option.help.replace("|", "\\|").replace("[", "\\[") + (f" ({'; '.join(notes)})" if notes else "")
            rows.append(f"| `{option.flag}` | {names} | {told} | {', '.join(sorted(option.commands))} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The reference as Markdown."""
    parts = [
        "# Commands\n",
        "Written from the commands' own `--help`. Results go to stdout, progress and notes to stderr.\n",
        f"```text\n{overview()}\n```\n",
    ]
    for name, text in commands().items():
        level = "##" if " " not in name else "###"
        parts.append(f"{level} audit {name}\n\n```text\n{text}\n```\n")
    parts += [
        "## Options of a plan of texts\n",
        "Each is a flag, a key of `audit.toml`, and a field of the plan, which is a keyword of `auditor.audit` (there "
        "`model` stands for `models`). Where key and field are two words, the key stands first.\n",
        settings(Plan),
        "## Options of a plan of rows\n",
        settings(TabularPlan, MethodOptions),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
