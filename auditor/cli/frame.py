"""The frame of every command: its options from the fields of plans, its help, its call, and what ends it."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from auditor.cli.screen import EXIT_INTERRUPTED, EXIT_USER, complain, interrupted
from auditor.core import removed
from auditor.core.errors import ConfigError
from auditor.core.options import Group, Option, PlanModel, members
from auditor.core.plan import Plan

Function = Callable[..., int]
# typer carries its own copy of click in some versions and uses the installed one in others.
ClickException: type[Any] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

WIDEST = 120  # columns of a help text, where the terminal has as many
MANY = 15  # options; a command with more has them under headings
WHOLE = "--help-all"
BRIEF = ("run", "generate", "plan freeze")  # commands whose --help has the options that come first
FIRST = {o.flag for o in Plan.flags().values() if o.first} | {"--dry-run", "--output"}


class Words(NamedTuple):
    """Commands by the further word that chooses them; ``default`` where none is given."""

    functions: Mapping[str, Function]
    default: str


def takes(command: str, *plans: type[PlanModel]) -> Callable[[Function], Function]:
    """Give a function the options of ``plans`` that ``command`` takes, in place of its last parameter, ``**options``.

    It gets those that were given, by the names of the plans' fields and as they were typed; the plan reads them.
    """
    options = {name: (plan, option) for plan in plans for name, option in plan.flags(command).items()}
    keyword = inspect.Parameter.KEYWORD_ONLY
    mine = [inspect.Parameter(n, keyword, default=None, annotation=_typed(p, n)) for n, (p, _) in options.items()]

    def taking(function: Function) -> Function:
        *own, _ = inspect.signature(function, eval_str=True).parameters.values()

        @functools.wraps(function)
        def run(**values: object) -> int:
            unset = {n for n in options if values[n] is None or values[n] == []}
            typed = {n: value for n, value in values.items() if n not in unset}
            return function(**typed | {n: False for n, (_, o) in options.items() if o.off and n in typed})

        taken = [*mine, *(p.replace(kind=keyword) for p in own)]
        run.__signature__ = inspect.Signature(taken, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in taken} | {"return": int}
        return run

    return taking


def option(
    name: str, *also: str, plan: type[PlanModel] = Plan, help: str = "", callback: Callable[..., object] | None = None
) -> Any:
    """One option of a plan, for a command that takes it by itself.

    ``help`` says what it means there, where that is something else; ``also`` are further flags.
    """
    field = plan.flags()[name]
    text = help or _help(field, plan.settings()[name].default)
    return typer.Option(
        field.flag, *also, help=text, callback=callback, show_default=False, rich_help_panel=field.group
    )


def _typed(plan: type[PlanModel], name: str) -> object:
    """What typer reads: the type of what is typed, and its option."""
    kinds = members(plan.settings()[name].annotation)
    plain = len(kinds) == 1 and kinds[0] in (bool, int, float, Path)
    typed: object = list[str] if plan.flags()[name].repeated else kinds[0] if plain else str
    return Annotated[typed | None, option(name, plan=plan)]  # type: ignore[operator]


def _help(field: Option, default: object) -> str:
    """The help with its default, where that is a plain value and not said."""
    if not isinstance(default, str | int) or default == "" or isinstance(default, bool) or "efault" in field.help:
        return field.help
    return f"{field.help.removesuffix('.')} (default {default})."


def _printed(name: str) -> str:
    if name not in ("terminal", "json"):
        raise ConfigError(
            f"--format must be terminal or json; got {name!r}. Files: audit report RUN --format html,json"
        )
    return name


PAGES = ("terminal", "json", "markdown", "html")


def _page(name: str) -> str:
    name = {"md": "markdown"}.get(name, name)
    if name not in PAGES:
        raise ConfigError(f"--format must be one of {', '.join(PAGES)}; got {name!r}.")
    return name


def _rule(text: str | None) -> str | None:
    """Tell a slip in a rule before anything is asked."""
    from auditor.core.fail_on import parse

    if text is not None:
        parse(text)
    return text


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, its name under reports/, or latest.")]
Full = Annotated[
    bool,
    typer.Option("--full", help="Print more of what was measured, not the answer alone.", rich_help_panel=Group.LIMITS),
]
Format = Annotated[
    str,
    typer.Option(
        "--format", help="What is printed: terminal or json.", callback=_printed, rich_help_panel=Group.LIMITS
    ),
]
PageFormat = Annotated[str, typer.Option("--format", help="terminal, json, markdown (md) or html.", callback=_page)]
FailOn = Annotated[str | None, option("fail_on", callback=_rule)]
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


def invoke(target: Function | Words, name: str, argv: Sequence[str]) -> int:
    """Run the command ``name`` and turn its usage errors into exit code 2."""
    whole = WHOLE in argv
    argv = ["--help" if word == WHOLE else word for word in argv]
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(target, Words):
        for word, function in target.functions.items():
            app.command(word)(function)
        word = argv[0] if argv else "-"
        near = difflib.get_close_matches(word, target.functions, n=1)  # a slip is told as one
        if word not in ("--help", "-h") and (word.startswith("-") or not near):
            argv = [target.default, *argv]
    else:
        app.command(name.rpartition(" ")[2])(target)
    try:
        result = laid_out(app, brief=name in BRIEF and not whole)(
            args=list(argv), prog_name=f"audit {name}", standalone_mode=False, max_content_width=WIDEST
        )
    except ClickException as error:
        from auditor.report.words import sentence

        complain(f"{sentence(_usage_error(error))} See: audit {name} --help")
        return EXIT_USER
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # some versions make exit code 1 of it: "findings"
            raise error.__context__ from None
        raise
    except typer.Abort as error:
        # Some versions of typer make this of Ctrl-C; elsewhere it is a question answered with no.
        if isinstance(error.__cause__, KeyboardInterrupt | EOFError):
            interrupted()
        else:
            complain("Stopped: nothing was asked.")
        return EXIT_INTERRUPTED
    if result == EXIT_INTERRUPTED:  # others turn Ctrl-C into this code and say nothing
        interrupted()
    return int(result or 0)


def _usage_error(error: Any) -> str:
    """What is wrong with the command line; of options spelled alike only the nearest is offered."""
    extra = re.search(r"unexpected extra argument\S* \((.+)\)", str(error.format_message()))
    if extra is not None and error.ctx is not None and any("--data" in p.opts for p in error.ctx.command.params):
        return f"Name the file with an option: --data {extra[1]}"
    flag, offered = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if not flag or offered is None:
        return str(error.format_message())
    if said := removed.instead(flag):
        return said
    near = difflib.get_close_matches(flag, offered, n=1, cutoff=0.0)
    return f"No such option: {flag}." + (f" Did you mean {near[0]}?" if near else "")


def laid_out(app: typer.Typer, *, brief: bool = False) -> Any:
    """Return the command of ``app``: options under headings, commands of a group with their whole first sentence.

    With ``brief`` its help has the options that come first, and says how to get them all.
    """
    command: Any = typer.main.get_command(app)
    further = getattr(command, "commands", {}).values()
    for one in further:
        if not one.short_help and one.help:
            one.short_help = " ".join(one.help.split("\n\n")[0].split())
    for one in (*further, command):
        if len(one.params) > MANY:
            one.format_options = types.MethodType(functools.partial(_format_options, brief=brief), one)
    return command


def _format_options(command: Any, context: Any, formatter: Any, *, brief: bool) -> None:
    """Write the arguments, then the options under the headings that they name."""
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{h.value: [] for h in Group}}
    parameters = [p for p in command.get_params(context) if not brief or set(p.opts) & FIRST]
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record is not None:
            argument = parameter.param_type_name == "argument"
            heading = getattr(parameter, "rich_help_panel", None) or Group.FURTHER.value
            rows["Arguments" if argument else heading].append(record)
    for heading, mine in rows.items():
        if mine:
            with formatter.section(heading):
                formatter.write_dl(mine)
    if brief:
        left = len(command.get_params(context)) - len(parameters)
        formatter.write(f"\n{left} more options: {context.command_path} {WHOLE}\n")
