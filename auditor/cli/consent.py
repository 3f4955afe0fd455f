"""What a folder names that would run here, or be sent the texts: it is asked about, as anybody may have written it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self, TypedDict

import typer

from auditor.cli.options import option
from auditor.core.record import part
from auditor.core.record.parts import Spec
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


class Given(TypedDict):
    """What the command line says of it: see `Named.consent`."""

    yes: bool
    given: Iterable[str] | None
    base_url: str | None


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a folder names: models that run code or say where texts go, and addresses of servers."""

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
        told = part(plan, Spec)
        return cls.of([*told.models, told.judge], [told.base_url])

    def options(self) -> str:
        """The options that name it all."""
        models = "".join(f" --model {quoted(spec)}" for spec in self.models)
        return models + "".join(f" --base-url {quoted(address)}" for address in self.addresses)

    def consent(
        self, path: Path, *, again: str, yes: bool, given: Iterable[str] | None, base_url: str | None = None
    ) -> None:
        """Ask about what the user did not name.

        Parameters
        ----------
        path : Path
            The folder.
        again : str
            The command with the folder, for the message.
        yes : bool
            The user said so already.
        given : iterable of str or None
            The models that the command line names; None where the command takes no names.
        base_url : str or None
            The server that it names. That of the environment (``OPENAI_BASE_URL``) is the user's too.

        Raises
        ------
        ConfigError
            Something is left, and the user cannot be asked.
        """
        from auditor.cli.main import complain
        from auditor.core.errors import ConfigError

        chosen = {hidden(url) for url in (base_url, os.environ.get("OPENAI_BASE_URL")) if url}
        left = Named(
            models=tuple(m for m in self.models if m not in set(given or ())),
            addresses=tuple(a for a in self.addresses if a not in chosen),
        )
        if yes or left == Named():
            return
        runs = [m for m in left.models if m.partition(":")[0] in RUNS_CODE]
        sent = [*(m for m in left.models if m not in runs), *left.addresses]
        told = [f"{path} names what would run on this machine: {'; '.join(runs)}."] if runs else []
        told += [f"{path} names where its texts would be sent, with your key: {'; '.join(sent)}."] if sent else []
        if sys.stdin.isatty() and sys.stderr.isatty():
            complain(" ".join(told))
            typer.confirm("Go on?", abort=True, err=True)
            return
        how = "with --yes" if given is None else "if you name it too, or with --yes"
        raise ConfigError(
            f"{' '.join(told)} It is used only {how}.",
            below=f"Go on with: audit {again}{' --yes' if given is None else left.options()}",
        )
