"""Runs at the command line: folders found by name, consent before money is spent or code runs, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click
import msgspec

from auditor.cli.frame import EXIT_INCOMPLETE, complain, option, say, screen, switch
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.shown import hidden, quoted

if TYPE_CHECKING:  # the help of a command that finds runs loads neither records nor folders
    from auditor.core.record import RunRecord
    from auditor.run.audit import Result

RUNS_CODE = ("exec", "python", "sklearn")  # kinds of models that are programs, modules or files that run
Consent = Callable[..., None]  # asks about the plan of a folder, and further models, before they are used
REACHES = ("http",)  # kinds of models that are files which say where texts are sent, and with which keys

models = option(
    "models", "model", help="A program, module or http: file named by RUN that may run here; may be repeated."
)
address = option("base_url", help="The server named by RUN that may get its texts.")
yes = switch("--yes", help="Use the programs, modules and servers named by RUN without asking.")


def is_run(name: Path) -> bool:
    """Say whether there is a folder of this name, here or under ``reports/``."""
    return name.name == "latest" or any(path.is_dir() for path in (name, Path("reports") / name))


def of_outcomes(plan: Mapping[str, object]) -> bool:
    """Say whether the plan of a run folder is of recorded outcomes (``audit ll144 --out DIR``)."""
    return plan.get("kind") == "ll144"


def find_run(name: Path, *, outcomes: bool = False, begun: tuple[str, ...] = ("plan.json",)) -> Path:
    """Return the run folder of a path, a name under ``reports/`` or ``latest``; with ``outcomes`` also of tables."""
    from auditor.store.folder import RunFolder

    path = next((path for path in (name, Path("reports") / name, *_latest(name, begun)) if path.is_dir()), None)
    if path is None:
        known = sorted(p.name for p in Path("reports").glob("*") if (p / "plan.json").is_file())[-5:]
        hint = f" Latest under reports/: {', '.join(known)}." if known else " Run `audit --task sentiment` to make one."
        raise RunFolderError(f"{name}: there is no such run folder.{hint}")
    if not outcomes and (path / "plan.json").is_file() and of_outcomes(RunFolder.open(path).plan):
        raise RunFolderError(
            f"{path} holds tables of recorded outcomes (audit ll144): no model was asked anything.",
            below=f"Go on with: audit report {quoted(path)}",
        )
    return path


def _latest(name: Path, files: tuple[str, ...]) -> list[Path]:
    """The newest run below ``reports/`` for ``latest``, below another folder for ``FOLDER/latest``."""
    if name.name != "latest":
        return []
    where = Path("reports") if name == Path("latest") else name.parent
    begun = {path.parent: path.stat().st_mtime_ns for file in files for path in where.glob(f"*/{file}")}
    return sorted(begun, key=lambda path: (begun[path], path.name))[-1:]


def find_intact(name: Path, *, outcomes: bool = False) -> Path:
    """As `find_run`; a folder in which something was changed is refused."""
    from auditor.store.integrity import require_intact

    path = find_run(name, outcomes=outcomes)
    if (path / "plan.json").is_file():
        require_intact(path)
    return path


def find_text_run(name: Path, command: str) -> Path:
    """As `find_intact`, for commands that work on texts only."""
    from auditor.store.folder import RunFolder

    path = find_intact(name)
    why = {
        "import": f"holds recorded answers without their prompts, and audit {command} works on prompts.",
        "tabular": f"is a search over rows of a table, and audit {command} works on texts. Its report has its figures "
        "and pairs.",
    }.get(str(RunFolder.open(path).plan.get("kind")))
    if why is not None:
        raise ConfigError(f"{path} {why}", below=f"Go on with: audit report {quoted(path)}")
    return path


def _somebody() -> bool:
    """Whether there is a terminal to ask at."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agree(
    models: Iterable[str | None],
    *,
    limited: bool,
    yes: bool,
    show: Callable[[], str],
    limits: str = "--max-calls N, or --max-cost USD; --dry-run counts the calls",
    default: str = "",
) -> None:
    """Ask before models are asked that may cost money, where no limit of calls or cost is set (``limited``).

    ``show`` says what will be asked and what it may cost; ``limits`` are the options that set a limit;
    ``default`` says what is asked where none is given. Raises `ConfigError` where there is nobody to ask,
    `click.Abort` where the answer is no.
    """
    from auditor.models import may_cost

    asked = [model for model in models if model and may_cost(model)]
    if not asked or limited or yes:
        return
    if not _somebody():
        raise ConfigError(
            f"{', '.join(asked)} may cost money, no limit is set, and there is no terminal to ask at: nothing was "
            f"asked. Set a limit ({limits}), or give --yes to continue without one. {default}".rstrip()
        )
    sys.stderr.write(show().rstrip("\n") + "\n")
    click.confirm("Go on?" if default else "No limit was set. Go on?", abort=True, err=True)


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a folder, which anybody may have written, names of what runs here, leaves this machine or costs money."""

    models: tuple[str, ...] = ()  # that run code or say where texts go: the command line can name them too
    addresses: tuple[str, ...] = ()
    further: tuple[str, ...] = ()  # sentences about headers, files that are sent, a cluster
    unlimited: tuple[str, ...] = ()  # models that may cost money, where no limit is set

    @classmethod
    def of(cls, plan: Mapping[str, object], *more: str | None) -> Self:
        """Of the plan of a run or a session; ``more`` are further models."""
        from auditor.core.record import part
        from auditor.models import may_cost

        stored = part(plan, _Stored)
        specs = list(dict.fromkeys(m for m in (*stored.models, stored.model, *stored.judge, *more) if m))
        headers = dict.fromkeys(header for one in stored.server.values() for header in one.headers)
        bodies = dict.fromkeys(one.extra_body for one in stored.server.values() if one.extra_body)
        secret = [f"{variable} (as {name})" for name, _, variable in (header.partition("=") for header in headers)]
        further = [f"The folder names variables whose values would be sent: {', '.join(secret)}."] if secret else []
        further += [f"The folder names files that would be sent: {', '.join(bodies)}."] if bodies else []
        further += ["The folder hands work to a cluster."] if str(stored.jobs).startswith("ray") else []
        limited = stored.max_calls is not None or stored.max_cost is not None
        return cls(
            models=tuple(spec for spec in specs if spec.partition(":")[0] in RUNS_CODE + REACHES),
            addresses=(stored.base_url,) if stored.base_url else (),
            further=tuple(further),
            unlimited=() if limited else tuple(filter(may_cost, specs)),
        )

    def options(self) -> str:
        """The options that name it all, or say yes to what no option names."""
        models = "".join(f" --model {quoted(spec)}" for spec in self.models)
        servers = "".join(f" --base-url {quoted(address)}" for address in self.addresses)
        return models + servers + " --yes" * bool(self.further or self.unlimited)

    def consent(
        self, path: Path, *, again: str, yes: bool, named: Iterable[str] | None, base_url: str | None = None
    ) -> None:
        """Ask about what the user did not name, of the folder ``path``.

        ``named`` are the models that the command line names, None where the command takes no names; ``base_url`` is the
        server that it names, beside that of the environment (``OPENAI_BASE_URL``). ``again`` is the command with the
        folder, for the `ConfigError` where something is left and nobody can be asked.
        """
        chosen = {hidden(url) for url in (base_url, os.environ.get("OPENAI_BASE_URL")) if url}
        left = replace(
            self,
            models=tuple(m for m in self.models if m not in set(named or ())),
            addresses=tuple(a for a in self.addresses if a not in chosen),
        )
        if yes or left == Named():
            return
        runs = [m for m in left.models if m.partition(":")[0] in RUNS_CODE]
        sent = [*(_where(m) for m in left.models if m not in runs), *left.addresses]
        what = [f"{path} names what would run on this machine: {'; '.join(runs)}."] if runs else []
        what += [f"{path} names where its texts would be sent, with your key: {'; '.join(sent)}."] if sent else []
        what += left.further
        if left.unlimited:
            what.append(f"{path} sets no limit of calls or cost, and {', '.join(left.unlimited)} may cost money.")
        if _somebody():
            complain(" ".join(what))
            click.confirm("Go on?", abort=True, err=True)
            return
        how = "with --yes" if named is None or left.further else "if you name it too, or with --yes"
        if left.unlimited and named is not None:
            how += ", and within a limit (--max-calls N, --max-cost USD) unless --yes is given"
        raise ConfigError(
            f"{' '.join(what)} It is used only {how}.",
            below=f"Go on with: audit {again}{' --yes' if named is None else left.options()}",
        )


class _Sent(msgspec.Struct):
    """What a server is sent beside the texts."""

    headers: tuple[str, ...] = ()
    extra_body: str | None = None


class _Stored(msgspec.Struct):
    """The settings of a plan that the user is asked about."""

    models: tuple[str, ...] = ()
    model: str | None = None
    judge: tuple[str, ...] = ()
    base_url: str | None = None
    server: dict[str, _Sent] = msgspec.field(default_factory=dict)
    jobs: str | int = ""
    max_calls: int | None = None
    max_cost: float | None = None


def _where(spec: str) -> str:
    """An ``http:`` model with the server and the variables that its file names, where it can be read."""
    from auditor.core.errors import UserError
    from auditor.models.http import read

    for rows in (False, True):
        with suppress(UserError):
            file = read(spec.partition(":")[2], rows=rows)
            variables = "".join(f", {name}" for name in sorted(file.variables))
            return f"{spec} ({hidden(file.url)}{variables})"
    return spec


def with_waivers(record: RunRecord, path: Path | None = None) -> RunRecord:
    """The record with the waivers of ``path``, or of ``waivers.toml`` here where there is one."""
    from datetime import UTC, datetime

    from auditor.core import waivers

    file = path or Path(waivers.FILE)
    if path is None and not file.exists():
        return record
    today = datetime.now(UTC).date()
    return waivers.apply(record, waivers.load(file), today, source=file.name)


def judge(record: RunRecord, rule: str | None, *, partial: bool) -> int:
    """The exit code of a record under ``--fail-on``; says in one line on stderr what came of the rule."""
    from auditor.core.verdict import verdict

    if rule is None:
        return EXIT_INCOMPLETE if partial else 0
    made = verdict(record, rule)
    say(f"--fail-on: {made.said}", to=sys.stderr)
    return made.code


def say_where(path: Path) -> None:
    """Name the report of a run, and its head, to be noted."""
    from auditor.core.record import head
    from auditor.store.folder import RunFolder

    say(f"Report: {path / 'report.html'}", f"Head: {head(RunFolder.open(path).record())}", to=sys.stderr)


def finish(result: Result, *, format: str, fail_on: str | None, full: bool = False) -> int:
    """Print a result and return the exit code of its run."""
    from auditor.report import first_screen, run_checks

    result.run = record = with_waivers(result.run)
    sys.stdout.write((result.to_json() if format == "json" else result.to_text(**screen(), full=full)) + "\n")
    sys.stdout.flush()
    if result.path is not None:
        say_where(result.path)
    if not result.complete:
        spec = result.record["spec"]
        reason = f"The run is incomplete: {(record.status_reason or '').rstrip('.')}."
        if variant := run_checks.variant(record):
            complain(reason, f"Run: audit show {quoted(result.path)} {quoted(variant)}")
        elif spec.get("kind") == "tabular" and not (spec["task"] or spec["model"].startswith("http:")):
            complain(reason)  # rows of other models are asked again
        else:
            raised = first_screen.raised(record)
            limit = raised and record.stopped_by != "control"
            further = " A higher limit is for the whole run." if limit else ""
            named = Named.of(spec).options()
            complain(f"{reason}{further}", f"Go on with: audit resume {quoted(result.path)}{named}{raised}")
    return judge(record, fail_on, partial=not result.complete)
