"""Consent before money is spent, and before what a folder names is run or sent its texts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self, TypedDict

import typer

from auditor.cli.frame import option
from auditor.cli.screen import complain
from auditor.core.errors import ConfigError
from auditor.core.record import part
from auditor.core.record.base import Spec
from auditor.core.secrets import hidden
from auditor.core.shown import quoted

RUNS_CODE = ("exec", "python", "sklearn")  # kinds of models that are programs, modules or files that run
REACHES = ("http",)  # kinds of models that are files which say where texts are sent, and with which keys

Models = Annotated[
    list[str] | None,
    option(
        "models", help="A program, module or http: file that RUN names and that may be used here; may be given again."
    ),
]
Address = Annotated[str | None, option("base_url", help="The server that RUN names and that may be sent its texts.")]
Yes = Annotated[
    bool, typer.Option("--yes", help="Use the programs, modules and servers that RUN names without a question.")
]


def _somebody() -> bool:
    """Whether there is a terminal to ask at."""
    return sys.stdin.isatty() and sys.stderr.isatty()


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

    Nothing is asked where every model runs on this machine, where a limit of calls or cost is set (``limited``), or
    where the user said ``--yes``. ``check`` finds slips in what was typed: they are told before the question. ``show``
    says what will be asked and what it may cost; ``limits`` are the options that set a limit. Raises `ConfigError`
    where there is nobody to ask, `typer.Abort` where the user does not want to go on.
    """
    from auditor.models import may_cost

    asked = [model for model in models if model and may_cost(model)]
    if not asked or limited or yes:
        return
    check()
    if not _somebody():
        raise ConfigError(
            f"{', '.join(asked)} may cost money, no limit is set, and there is no terminal to ask at: nothing "
            f"was asked. Set a limit ({limits}), or give --yes to go on without one; --dry-run says how many calls it "
            "would be."
        )
    sys.stderr.write(show().rstrip("\n") + "\n")
    typer.confirm("No limit was set. Go on?", abort=True, err=True)


class Consented(TypedDict):
    """What the command line says of it: see `Named.consent`."""

    yes: bool
    named: Iterable[str] | None
    base_url: str | None


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a folder, which anybody may have written, names: models that run code or say where texts go, and servers."""

    models: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @classmethod
    def of(cls, models: Iterable[str | None], addresses: Iterable[str | None]) -> Self:
        """Of all models and addresses, those that are asked about."""
        kinds = RUNS_CODE + REACHES
        kept = dict.fromkeys(m for m in models if m and m.partition(":")[0] in kinds)
        return cls(models=tuple(kept), addresses=tuple(dict.fromkeys(a for a in addresses if a)))

    @classmethod
    def of_texts(cls, plan: Mapping[str, object]) -> Self:
        """Of the plan of a run over texts."""
        spec = part(plan, Spec)
        return cls.of([*spec.models, spec.judge], [spec.base_url])

    def options(self) -> str:
        """The options that name it all."""
        models = "".join(f" --model {quoted(spec)}" for spec in self.models)
        return models + "".join(f" --base-url {quoted(address)}" for address in self.addresses)

    def consent(
        self, path: Path, *, again: str, yes: bool, named: Iterable[str] | None, base_url: str | None = None
    ) -> None:
        """Ask about what the user did not name, of the folder ``path``.

        ``named`` are the models that the command line names, None where the command takes no names; ``base_url`` is the
        server that it names, beside that of the environment (``OPENAI_BASE_URL``). ``again`` is the command with the
        folder, for the `ConfigError` where something is left and nobody can be asked.
        """
        chosen = {hidden(url) for url in (base_url, os.environ.get("OPENAI_BASE_URL")) if url}
        left = Named(
            models=tuple(m for m in self.models if m not in set(named or ())),
            addresses=tuple(a for a in self.addresses if a not in chosen),
        )
        if yes or left == Named():
            return
        runs = [m for m in left.models if m.partition(":")[0] in RUNS_CODE]
        sent = [*(m for m in left.models if m not in runs), *left.addresses]
        what = [f"{path} names what would run on this machine: {'; '.join(runs)}."] if runs else []
        what += [f"{path} names where its texts would be sent, with your key: {'; '.join(sent)}."] if sent else []
        if _somebody():
            complain(" ".join(what))
            typer.confirm("Go on?", abort=True, err=True)
            return
        how = "with --yes" if named is None else "if you name it too, or with --yes"
        raise ConfigError(
            f"{' '.join(what)} It is used only {how}.",
            below=f"Go on with: audit {again}{' --yes' if named is None else left.options()}",
        )
