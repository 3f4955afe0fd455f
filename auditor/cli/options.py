"""Options of commands, made from the fields of a plan (`auditor.core.options`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from auditor.core.options import Option, PlanModel, members
from auditor.core.plan import Plan

Callback = Callable[[str | None], str | None]


def takes(command: str, *plans: type[PlanModel]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a function the options of ``plans`` that ``command`` takes, in place of its last parameter, ``**options``.

    It gets those that were given, by the names of the plans' fields and as they were typed; the plan reads them.
    """
    names = {name: option for plan in plans for name, option in plan.flags(command).items()}
    keyword = inspect.Parameter.KEYWORD_ONLY
    mine = [
        inspect.Parameter(n, keyword, default=None, annotation=_annotation(plan, n))
        for plan in plans
        for n in plan.flags(command)
    ]

    def told(function: Callable[..., int]) -> Callable[..., int]:
        *own, _ = inspect.signature(function, eval_str=True).parameters.values()

        @functools.wraps(function)
        def run(**values: object) -> int:
            unset = {n for n in names if values[n] is None or values[n] == []}
            given = {n: value for n, value in values.items() if n not in unset}
            return function(**given | {n: False for n, o in names.items() if o.off and n in given})

        taken = [*mine, *(p.replace(kind=keyword) for p in own)]
        run.__signature__ = inspect.Signature(taken, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in taken} | {"return": int}
        return run

    return told


def option(
    name: str, *also: str, plan: type[PlanModel] = Plan, help: str = "", callback: Callback | None = None
) -> Any:
    """One option of a plan, for a command that takes it by itself.

    ``help`` says what it means there, where that is something else; ``also`` are further flags.
    """
    told = plan.flags()[name]
    text = help or _help(told, plan.settings()[name].default)
    return typer.Option(told.flag, *also, help=text, callback=callback, show_default=False, rich_help_panel=told.group)


def _annotation(plan: type[PlanModel], name: str) -> object:
    """What typer reads: the type of what is typed, and its option."""
    kinds = members(plan.settings()[name].annotation)
    plain = len(kinds) == 1 and kinds[0] in (bool, int, float)
    typed: object = list[str] if plan.flags()[name].repeated else kinds[0] if plain else str
    return Annotated[typed | None, option(name, plan=plan)]  # type: ignore[operator]


def _help(told: Option, default: object) -> str:
    """The help with its default, where that is a plain value and not said."""
    if not isinstance(default, str | int) or default == "" or isinstance(default, bool) or "efault" in told.help:
        return told.help
    return f"{told.help.removesuffix('.')} (default {default})."
