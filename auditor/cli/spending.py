"""Consent before money is spent: the one place that asks, for every command that asks a model much."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import typer

from auditor.core.errors import ConfigError


def agree(
    models: Iterable[str | None],
    *,
    limited: bool,
    yes: bool,
    check: Callable[[], object],
    show: Callable[[], str],
    limits: str = "--max-calls N, or --max-cost USD",
) -> None:
    """Ask before models are asked that may cost money; without a terminal to ask at, say what is needed.

    Nothing is asked where every model runs on this machine, where a limit of calls or cost is set, or where the user
    said ``--yes``.

    Parameters
    ----------
    models : iterable of str or None
        Their specs; None is skipped.
    limited : bool
        Whether a limit of calls or of cost is set.
    yes : bool
        ``--yes`` was given.
    check : callable
        Finds slips in what was given: they are told before the question.
    show : callable
        What will be asked and what it may cost, as text; called only where there is a question.
    limits : str
        The options that set one.

    Raises
    ------
    ConfigError
        There is nobody to ask.
    typer.Abort
        The user does not want to go on.
    """
    from auditor.models import may_cost

    asked = [model for model in models if model and may_cost(model)]
    if not asked or limited or yes:
        return
    check()
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            f"{', '.join(asked)} may cost money, no limit is set, and there is no terminal to ask at: nothing "
            f"was asked. Set a limit ({limits}), or give --yes to go on without one; --dry-run says how many calls it "
            "would be."
        )
    sys.stderr.write(show().rstrip("\n") + "\n")
    typer.confirm("No limit was set. Go on?", abort=True, err=True)
