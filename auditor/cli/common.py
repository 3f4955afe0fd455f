"""What the commands share: options, invocation, progress, output."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypedDict, TypeVar

import typer

from auditor.cli.main import EXIT_INTERRUPTED, EXIT_USER, INTERRUPTED, complain
from auditor.cli.options import option
from auditor.core.options import Group
from auditor.core.shown import encodable, inline
from auditor.core.shown import quoted as quoted

if TYPE_CHECKING:
    from auditor.run.result import Result

Told = TypeVar("Told")
# typer carries its own copy of click in some versions and uses the installed one in others.
ClickException: type[Any] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

# What Ctrl-C says of commands that `audit resume` does not go on with.
_ROWS = "Interrupted. A run with --task or an http: model goes on with `audit tabular resume RUN`; run others again."
GOES_ON = {
    "agent": "Interrupted. What was answered is on disk: `audit agent FOLDER --resume` goes on from there.",
    "tabular": _ROWS,
    "tabular resume": _ROWS,
}
WIDEST = 120  # columns of a help text, where the terminal has as many

Full = Annotated[
    bool,
    typer.Option("--full", help="Print more of what was measured, not the answer alone.", rich_help_panel=Group.OUTPUT),
]
Format = Annotated[
    str, typer.Option("--format", help="What is printed: terminal or json.", rich_help_panel=Group.OUTPUT)
]


def _check_rule(text: str | None) -> str | None:
    """Tell a slip in a rule before anything is asked."""
    read_rule(text)
    return text


FailOn = Annotated[str | None, option("fail_on", callback=_check_rule)]
WaiversFile = Annotated[
    Path | None,
    typer.Option("--waivers", help="Findings that are let stand (default: waivers.toml, where there is one)."),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Settings file (default: audit.toml, where there is one).", rich_help_panel=Group.ASKED
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Say what would be asked, what it would cost and what it can show; ask nothing.",
        rich_help_panel=Group.LIMITS,
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask before spending money.", rich_help_panel=Group.LIMITS)
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, its name under reports/, or latest.")]


def _usage_error(error: Any) -> str:
    """What is wrong with the command line; of options spelled alike only the nearest is offered."""
    option, offered = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if not option or offered is None:
        return str(error.format_message())
    near = difflib.get_close_matches(option, offered, n=1, cutoff=0.0)
    return f"No such option: {option}." + (f" Did you mean {near[0]}?" if near else "")


def invoke(app: typer.Typer, name: str, argv: Sequence[str]) -> int:
    """Run a command and turn its usage errors into exit code 2."""
    from auditor.cli.layout import laid_out

    try:
        result = laid_out(app)(
            args=list(argv), prog_name=f"audit {name}", standalone_mode=False, max_content_width=WIDEST
        )
    except ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help text
            sys.stdout.write(f"{error.format_message()}\n")
            return EXIT_USER
        from auditor.report.words import sentence

        complain(f"{sentence(_usage_error(error))} See: audit {name} --help")
        return EXIT_USER
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # some versions make exit code 1 of it: "findings"
            raise error.__context__ from None
        raise
    except typer.Abort as error:
        # Some versions of typer make this of Ctrl-C; elsewhere it is a question answered with no.
        interrupted = isinstance(error.__cause__, KeyboardInterrupt | EOFError)
        complain(GOES_ON.get(name, INTERRUPTED) if interrupted else "Stopped: nothing was asked.")
        return EXIT_INTERRUPTED
    if result == EXIT_INTERRUPTED:  # others turn Ctrl-C into this code and say nothing
        complain(GOES_ON.get(name, INTERRUPTED))
    return int(result or 0)


def find_run(name: Path, *, outcomes: bool = False, begun: tuple[str, ...] = ("plan.json",)) -> Path:
    """The run folder: a path, or a name under ``reports/``.

    Folders with tables of recorded outcomes (``audit ll144``) hold no prompts and answers: only commands that say
    ``outcomes`` get them. ``begun`` are the files that show that ``latest`` has something a command can take.
    """
    from auditor.core.errors import RunFolderError

    for path in (name, Path("reports") / name, *_latest(name, begun)):
        if path.is_dir():
            if not outcomes:
                _refuse_outcomes(path)
            return path
    known = sorted(p.name for p in Path("reports").glob("*") if (p / "plan.json").is_file())[-5:]
    hint = f" Latest under reports/: {', '.join(known)}." if known else " Run `audit --task sentiment` to make one."
    raise RunFolderError(f"{name}: there is no such run folder.{hint}")


def _latest(name: Path, files: tuple[str, ...]) -> list[Path]:
    """The newest run below ``reports/`` for ``latest``, below another folder for ``FOLDER/latest``."""
    if name.name != "latest":
        return []
    where = Path("reports") if name == Path("latest") else name.parent
    begun = {path.parent: path.stat().st_mtime_ns for file in files for path in where.glob(f"*/{file}")}
    return sorted(begun, key=lambda path: (begun[path], path.name))[-1:]


def find_intact(name: Path, *, outcomes: bool = False) -> Path:
    """As `find_run`; a folder in which something was changed is refused."""
    from auditor.store.verify import require_intact

    path = find_run(name, outcomes=outcomes)
    if (path / "plan.json").is_file():
        require_intact(path)
    return path


def _refuse_outcomes(path: Path) -> None:
    from auditor.core.errors import RunFolderError
    from auditor.run.outcomes import is_outcomes
    from auditor.store.folder import RunFolder

    if (path / "plan.json").is_file() and is_outcomes(RunFolder.open(path).plan):
        raise RunFolderError(
            f"{path} holds tables of recorded outcomes (audit ll144): no model was asked anything.",
            below=f"Go on with: audit report {quoted(path)}",
        )


def find_text_run(name: Path, command: str) -> Path:
    """As `find_intact`, for commands that work on texts only."""
    from auditor.core.errors import ConfigError
    from auditor.store.folder import RunFolder

    path = find_intact(name)
    kind = RunFolder.open(path).plan.get("kind")
    if kind == "import":
        raise ConfigError(
            f"{path} holds recorded answers without their prompts, and audit {command} works on prompts.",
            below=f"Go on with: audit report {quoted(path)}",
        )
    if kind == "tabular":
        raise ConfigError(
            f"{path} is a search over rows of a table, and audit {command} works on texts. Its figures and pairs stand "
            "in its report.",
            below=f"Go on with: audit report {quoted(path)}",
        )
    return path


def check_format(name: str) -> None:
    """Refuse an output format that a command does not print."""
    from auditor.core.errors import ConfigError

    if name not in ("terminal", "json"):
        raise ConfigError(
            f"--format must be terminal or json; got {name!r}. Files: audit report RUN --format html,json"
        )


def print_as(format: str, values: Told, lines: Callable[[Told], Iterable[str]]) -> int:
    """Print ``values`` as JSON, or as the lines that ``lines`` makes of them; the exit code is 0."""
    import json

    import msgspec

    if format == "json":
        sys.stdout.write(json.dumps(msgspec.to_builtins(values), indent=2, sort_keys=True) + "\n")
    else:
        say(*lines(values))
    return 0


def say(*lines: object, to: TextIO | None = None) -> None:
    """Print ``lines`` to stdout, or to another stream: each is one line there, whatever it holds."""
    stream = sys.stdout if to is None else to
    for line in lines:
        stream.write(encodable(inline(line), stream.encoding) + "\n")


def read_rule(text: str | None) -> Any:
    """The parsed rule of ``--fail-on``; None stays None."""
    from auditor.core import rules

    return None if text is None else rules.parse(text)


def with_waivers(record: dict[str, object], path: Path | None = None) -> dict[str, object]:
    """The record with the waivers of ``path``, or of ``waivers.toml`` here where there is one."""
    from datetime import UTC, datetime

    from auditor.core import waivers

    file = path or Path(waivers.FILE)
    if path is None and not file.is_file():
        return record
    today = datetime.now(UTC).date()
    return waivers.apply(record, waivers.load(file), today, source=file.name)


def judge(record: dict[str, object], rule: str | None, *, partial: bool) -> int:
    """The exit code of a record under ``--fail-on``: incomplete beats findings; says in one line on stderr why."""
    from auditor.cli.main import EXIT_INCOMPLETE
    from auditor.core import rules

    if rule is None:
        return EXIT_INCOMPLETE if partial else 0
    if partial:
        say(f"--fail-on: not decided, since the run is incomplete: {rule}", to=sys.stderr)
        return EXIT_INCOMPLETE
    outcome = rules.evaluate(rule, record)
    if outcome.holds:
        told = [m.text + (f" ({_some(m.findings)})" if m.findings else "") for m in outcome.matches]
        say(f"--fail-on: {'; '.join(told) or rule}: holds", to=sys.stderr)
        return 1
    unwaived = {name: value for name, value in record.items() if name != "waivers"}
    before = rules.evaluate(rule, unwaived) if record.get("waivers") else outcome
    if before.holds:
        waived = [id for m in before.matches for id in m.findings]
        told = [f" ({_some(waived)})"] if waived else []
        say(f"--fail-on: does not hold, since what it is about is waived{''.join(told)}: {rule}", to=sys.stderr)
    else:
        say(f"--fail-on: does not hold: {rule}", to=sys.stderr)
    return 0


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:10]) + (" …" if len(ids) > 10 else "")


def say_where(path: Path) -> None:
    """Name the report of a run, and its head, to be noted."""
    from auditor.core.provenance import head
    from auditor.store.folder import RunFolder

    say(f"Report: {path / 'report.html'}", f"Head: {head(RunFolder.open(path).record())}", to=sys.stderr)


class Screen(TypedDict):
    """What is written to."""

    width: int
    encoding: str
    color: bool


def screen() -> Screen:
    """Width, encoding and colour of what is written to: 100 columns without colour where it is no terminal."""
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return {
        "width": shutil.get_terminal_size((100, 40)).columns if terminal else 100,
        "encoding": sys.stdout.encoding,
        "color": terminal and not plain,
    }


def finish(result: Result, *, format: str, fail_on: str | None, full: bool = False) -> int:
    """Print a result and return the exit code of its run."""
    from auditor.cli.consent import Named
    from auditor.core.record import read
    from auditor.report import cautions, proposed

    record = with_waivers(result.record)
    if "waivers" in record:
        result.record["waivers"] = record["waivers"]
    if format == "json":
        sys.stdout.write(result.to_json() + "\n")
    else:
        sys.stdout.write(result.to_text(**screen(), full=full) + "\n")
    sys.stdout.flush()
    if result.path is not None:
        say_where(result.path)
    if not result.complete:
        told = read(result.record)
        reason = f"The run is incomplete: {result.run.status_reason}"
        if variant := cautions.variant(told):
            complain(reason, f"Run: audit show {quoted(result.path)} {quoted(variant)}")
        else:
            raised = proposed.raised(told)
            more = " A higher limit is for the whole run." if raised else ""
            named = Named.of_texts(result.record["spec"]).options()
            complain(f"{reason}{more}", f"Go on with: audit resume {quoted(result.path)}{named}{raised}")
    return judge(record, fail_on, partial=not result.complete)
