"""Options of commands, made from the fields of a plan (`auditor.core.options`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_origin

import typer

from auditor.core.options import Option, PlanModel, members
from auditor.core.plan import Plan


def takes(plan: type[PlanModel], command: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a function the options of ``plan`` that ``command`` takes, in place of its last parameter, ``**options``.

    It gets those that were given, by the names of the plan's fields and as they were typed; the plan reads them.
    """
    names = plan.options(command)
    keyword = inspect.Parameter.KEYWORD_ONLY
    mine = [inspect.Parameter(n, keyword, default=None, annotation=_annotation(plan, n)) for n in names]

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
    name: str,
    *,
    plan: type[PlanModel] = Plan,
    help: str = "",
    callback: Callable[[str | None], str | None] | None = None,
) -> Any:
    """One option of a plan, for a command that takes it by itself; ``help`` where it means another thing there."""
    told = plan.options()[name]
    text = help or _help(told, plan.settings()[name].default)
    return typer.Option(
        told.flag,
        help=text,
        callback=callback,
        show_default=False,
        rich_help_panel=told.group,
    )


def _annotation(plan: type[PlanModel], name: str) -> object:
    """What typer reads: the type of what is typed, and its option."""
    kinds = members(plan.settings()[name].annotation)
    if any(get_origin(kind) is tuple for kind in kinds):
        typed: object = list[str] if plan.options()[name].repeated else str
    else:
        typed = kinds[0] if len(kinds) == 1 and kinds[0] in (bool, int, float) else str
    return Annotated[typed | None, option(name, plan=plan)]  # type: ignore[operator]


def _help(told: Option, default: object) -> str:
    """The help with its default, where that is a plain value and not said."""
    if default is None or isinstance(default, bool) or default in ("", ()) or "efault" in told.help:
        return told.help
    return f"{told.help.removesuffix('.')} (default {default})."
