"""The options that say how a server is asked, written once for every command that has them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

# How a server is asked: fields of `auditor.core.plan.Plan`.
SERVER: dict[str, Any] = {
    "max_tokens": Annotated[
        int | None,
        typer.Option(
            "--max-tokens", help="Most tokens of an answer (default: the task's); reasoning counts too."
        ),
    ],
    "temperature": Annotated[
        str | None,
        typer.Option("--temperature", help="A number (default: the task's), or none: the server's own."),
    ],
    "timeout_s": Annotated[
        float | None, typer.Option("--timeout", help="Seconds for one whole call (default 60).")
    ],
    "reasoning_effort": Annotated[
        str | None, typer.Option("--reasoning-effort", help="Sent to openai: models, e.g. low.")
    ],
    "extra_body": Annotated[
        str | None,
        typer.Option(
            "--extra-body", help="JSON file with further fields of every request to openai: models."
        ),
    ],
    "headers": Annotated[
        list[str] | None,
        typer.Option(
            "--header", help="NAME=VARIABLE: a header for openai: models, its value from the environment."
        ),
    ],
}


def with_server_options(command: Callable[..., int]) -> Callable[..., int]:
    """``command`` with the options of `SERVER` in place of its last parameter, ``**server``."""
    signature = inspect.signature(command, eval_str=True)
    *own, _ = signature.parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    server = [inspect.Parameter(n, keyword, default=None, annotation=SERVER[n]) for n in SERVER]

    @functools.wraps(command)
    def run(**values: Any) -> int:
        return command(**{n: tuple(v) if n == "headers" and v is not None else v for n, v in values.items()})

    taken = [*(p.replace(kind=keyword) for p in own), *server]
    run.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in taken} | {"return": int}
    return run
