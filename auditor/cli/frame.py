"""The frame of every command: options from the fields of plans, help, the call, what it writes to, and what ends it.

What a command writes to are lines of results and complaints, values and pages, a terminal of some size, progress.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from auditor.core.errors import ConfigError
from auditor.core.options import Group, PlanModel, instead, members
from auditor.core.options import Option as PlanOption
from auditor.core.plan import Plan, of_rule
from auditor.core.shown import encodable, inline, own, quoted

if TYPE_CHECKING:
    from auditor.core.types import Progress
    from auditor.report.document import Document

Function = Callable[..., int]
F = TypeVar("F", bound=Function)

WIDEST = 120  # columns of a help text, where the terminal has as many
MANY = 15  # options; a command with more has them under headings
WHOLE = "--help-all"
BRIEF = ("run", "generate", "plan freeze")  # commands whose --help has the options that come first
FIRST = {o.flag for o in Plan.flags().values() if o.first} | {"--dry-run", "--output"}
PAGES = ("terminal", "json", "markdown", "html")
HOMES = ("session.json", "trial.json")  # of folders that hold runs
EVERY_S = 5.0  # between two lines of progress where no terminal is written to
MARKS = 64  # points in time of which the rate of a run is told
EXIT_USER, EXIT_INCOMPLETE, EXIT_DEFECT, EXIT_INTERRUPTED = 2, 3, 70, 130


class Argument(click.Argument):
    """An argument with a help text."""

    def __init__(self, names: Sequence[str], *, help: str = "", **more: Any) -> None:
        super().__init__(names, **more)
        self.about = help  # not `help`: some versions of click print that by themselves

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return its name and its help."""
        return self.metavar or str(self.name).upper(), self.about


class Option(click.Option):
    """An option under a heading of the help."""

    def __init__(self, names: Sequence[str], *, group: str = Group.FURTHER, **more: Any) -> None:
        super().__init__(names, **more)
        self.group = group


class Command(click.Command):
    """A command whose help has headings; ``brief`` has the options that come first, ``following`` further commands."""

    brief = False
    following: Mapping[str, str] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options under the headings that they name."""
        every = self.get_params(ctx)
        shown = [one for one in every if not self.brief or isinstance(one, Argument) or set(one.opts) & FIRST]
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{heading.value: [] for heading in Group}}
        for one in shown:
            heading = str(getattr(one, "group", Group.FURTHER.value))
            if (record := one.get_help_record(ctx)) is not None:
                rows["Arguments" if isinstance(one, Argument) else heading].append(record)
        if len(every) <= MANY:
            rows = {"Arguments": rows.pop("Arguments"), "Options": [row for group in rows.values() for row in group]}
        rows["Commands"] = [(f"{self.name} {word}", text) for word, text in self.following.items()]
        for heading, mine in rows.items():
            if mine:
                with formatter.section(heading):
                    formatter.write_dl(mine)
        if self.brief:
            formatter.write(f"\n{len(every) - len(shown)} more options: {ctx.command_path} {WHOLE}\n")


def argument(name: str, metavar: str, help: str, **more: Any) -> Callable[[F], F]:
    """Give a command an argument."""
    return click.argument(name, cls=Argument, metavar=metavar, help=help, **{"type": click.Path(path_type=Path)} | more)


def flag(*names: str, help: str, **more: Any) -> Callable[[F], F]:
    """Give a command an option of its own."""
    return click.option(*names, cls=Option, help=help, **more)


def switch(*names: str, help: str, group: str = Group.FURTHER) -> Callable[[F], F]:
    """Give a command an option that is on where it is given."""
    return flag(*names, is_flag=True, default=False, help=help, group=group)


def file(*names: str, help: str, group: str = Group.FURTHER, **more: Any) -> Callable[[F], F]:
    """Give a command an option that names a file."""
    return flag(*names, type=click.Path(path_type=Path), help=help, group=group, **more)


def option(name: str, *names: str, plan: type[PlanModel] = Plan, **more: Any) -> Callable[[F], F]:
    """Give a command one option of a plan; ``names`` are further flags and its parameter, ``more`` is what differs."""
    info, field = plan.settings()[name], plan.flags()[name]
    kinds = members(info.annotation)
    kind = kinds[0] if len(kinds) == 1 and kinds[0] in (bool, int, float, Path) else str
    made: dict[str, Any] = {"default": None, "help": _help(field, info.default), "group": field.group}
    if kind is bool:
        made["is_flag"] = True
    else:
        made |= {"type": click.Path(path_type=Path) if kind is Path else kind, "multiple": field.repeated}
    if more.get("required"):
        del made["default"]
    return flag(field.flag, *(names or (name,)), **made | more)


def out(*names: str, **more: Any) -> Callable[[F], F]:
    """Give a command the option that says where it writes."""
    return option("out", *names, **{"type": click.Path(path_type=Path)} | more)


def takes(command: str, *plans: type[PlanModel]) -> Callable[[F], F]:
    """Give a function the options of ``plans`` that ``command`` takes; it gets those that were typed."""
    fields = [(plan, name) for plan in plans for name in plan.flags(command)]

    def taking(function: F) -> F:
        for plan, name in reversed(fields):
            option(name, plan=plan)(function)
        vars(function)["taken"] = {name: plan.flags()[name] for plan, name in fields}
        return function

    return taking


def as_typed(values: Mapping[str, Any], taken: Mapping[str, PlanOption]) -> dict[str, Any]:
    """Return what was typed: without options of plans that were not given, False for one that turns off."""
    typed = {
        n: list(v) if isinstance(v, tuple) else v for n, v in values.items() if n not in taken or v not in (None, ())
    }
    return typed | {n: False for n, field in taken.items() if field.off and n in typed}


def _help(field: PlanOption, default: object) -> str:
    """The help with its default, where that is a plain value and not said."""
    if not isinstance(default, str | int) or default == "" or isinstance(default, bool) or "efault" in field.help:
        return field.help
    return f"{field.help.removesuffix('.')} (default {default})."


def _printed(_: object, __: object, name: str) -> str:
    if name not in ("terminal", "json"):
        raise ConfigError(
            f"--format must be terminal or json; got {name!r}. Files: audit report RUN --format html,json"
        )
    return name


def _page(_: object, __: object, name: str) -> str:
    name = {"md": "markdown"}.get(name, name)
    if name not in PAGES:
        raise ConfigError(f"--format must be one of {', '.join(PAGES)}; got {name!r}.")
    return name


run_argument = argument("run", "RUN", "A run folder, its name under reports/, or latest.")
full = switch("--full", help="Print all figures, not only the answer.", group=Group.LIMITS)
printed = flag(
    "--format", default="terminal", callback=_printed, help="Output format: terminal or json.", group=Group.LIMITS
)
page = flag("--format", default="terminal", callback=_page, help="terminal, json, markdown (md) or html.")
fail_on = option("fail_on", callback=lambda _, __, rule: of_rule(rule))  # a slip is told before anything is asked
waivers = file("--waivers", help="Accepted findings (default: waivers.toml, if it exists).")
config = file("--config", help="Settings file (default: audit.toml, if it exists).", group=Group.ASKED)
dry_run = switch(
    "--dry-run",
    help="Count calls and cost, and say which differences the run can show; ask nothing.",
    group=Group.LIMITS,
)
yes = switch("--yes", "-y", help="Do not ask before spending money.", group=Group.LIMITS)


def built(function: Function, name: str, following: Mapping[str, str] | None = None) -> Command:
    """Return the command of a function with its options."""
    taken: Mapping[str, PlanOption] = vars(function).get("taken", {})
    params = list(reversed(vars(function).get("__click_params__", [])))
    command = Command(
        name,
        params=params,
        help=inspect.getdoc(function),
        callback=lambda **values: function(**as_typed(values, taken)),
    )
    command.following = following or {}
    return command


def invoke(function: Function, name: str, argv: Sequence[str], following: Mapping[str, str] | None = None) -> int:
    """Run the command ``name`` and turn its usage errors into exit code 2."""
    command = built(function, name, following)
    command.brief = name in BRIEF and WHOLE not in argv
    words = ["--help" if word == WHOLE else word for word in argv]
    try:
        with command.make_context(f"audit {name}", words, max_content_width=WIDEST) as context:
            return int(command.invoke(context) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        from auditor.report.words import sentence

        complain(f"{sentence(_usage_error(error))} See: audit {name} --help")
        return EXIT_USER
    except click.Abort:  # a question was answered with no
        complain("Stopped: nothing was asked.")
        return EXIT_INTERRUPTED


def _usage_error(error: click.ClickException) -> str:
    """What is wrong with the command line; of options spelled alike only the nearest is offered."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    extra = re.search(r"unexpected extra argument\S* \((.+)\)", message)
    if extra is not None and context is not None and any("--data" in p.opts for p in context.command.params):
        return f"Name the file with an option: --data {extra[1]}"
    if not isinstance(error, click.NoSuchOption):
        return message
    name = error.option_name
    if said := instead(name):
        return said
    near = difflib.get_close_matches(name, error.possibilities or (), n=1, cutoff=0.0)
    return f"No such option: {name}." + (f" Did you mean {near[0]}?" if near else "")


# -- what commands write to -----------------------------------------------------------------------------------


def screen() -> dict[str, Any]:
    """Return width, encoding and color of what is written to; without a terminal, COLUMNS or 100, and no color."""
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return {
        "width": shutil.get_terminal_size((100, 40)).columns,
        "encoding": sys.stdout.encoding,
        "color": terminal and not plain,
    }


def fitted(line: str, indent: str = "") -> str:
    """Wrap a line at the width of what is written to."""
    return textwrap.fill(
        line, screen()["width"], subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def say(*lines: object, to: TextIO | None = None) -> None:
    """Print ``lines`` to stdout, or to another stream: each is one line there, whatever it holds."""
    stream = sys.stdout if to is None else to
    for line in lines:
        stream.write(encodable(inline(line), stream.encoding) + "\n")


def complain(message: object, below: str = "") -> None:
    """Write one paragraph on stderr, and ``below`` it, unbroken and not set in, a command to run."""
    text = inline(f"audit: {message}")
    lines = textwrap.wrap(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if below.startswith(" "):  # a quoted line with a mark below it
        lines += ["    " + inline(line) for line in textwrap.dedent(below).split("\n")]
    elif below:
        lines.append(inline(below))
    print("\n".join(encodable(line, sys.stderr.encoding) for line in lines), file=sys.stderr)


def written(*, forget: bool = False) -> Path | None:
    """Return the run folder that this command wrote to last; ``forget`` those of commands before it."""
    module = sys.modules.get("auditor.store.folder")  # a command that never loaded it has written nothing
    if module is not None and forget:
        module.RunFolder.latest = None
    path: Path | None = module.RunFolder.latest if module is not None else None
    return path


def interrupted() -> None:
    """Say that Ctrl-C was heard, and the command that goes on with what was written, where something was."""
    path = written()
    if path is None or not path.is_dir():
        return complain("Interrupted.")
    home = next((p for p in (path, *path.parents[:2]) if any((p / name).is_file() for name in HOMES)), path)
    try:
        rows = json.loads((home / "plan.json").read_text(encoding="utf-8")).get("kind") == "tabular"
    except (OSError, ValueError, AttributeError):
        rows = False
    only = " Only runs of rows with --task or an http: model can be resumed; start others again." if rows else ""
    return complain(
        f"Interrupted. All answers so far are on disk.{only}", f"Go on with: audit resume {quoted(str(home))}"
    )


def must_be_new(file: Path, why: str) -> Path:
    """Refuse to write over a file that is there."""
    from auditor.core.errors import ConfigError

    if file.exists():
        raise ConfigError(f"{file} {why}")
    return file


def print_as(format: str, values: object, lines: Iterable[object], code: int = 0) -> int:
    """Print ``values`` as JSON, keys in order, or ``lines``, which are not made before; returns ``code``."""
    import msgspec

    if format == "json":
        sys.stdout.write(json.dumps(msgspec.to_builtins(values), indent=2, sort_keys=True) + "\n")
    else:
        say(*lines)
    return code


def put(
    values: Mapping[str, object], format: str, document: Document, out: Path | None = None, *, full: bool = True
) -> None:
    """Print ``document``, or ``values`` as JSON; with ``out`` write it there, in full."""
    from auditor.report import html, markdown, terminal
    from auditor.report.exchange import to_json
    from auditor.report.terminal import Page

    if format == "json":
        text = to_json(values)
    elif format == "terminal":
        text = terminal.write(Page(**screen()), document, full=full or out is not None)
    else:
        text = (html if format == "html" else markdown).write(document)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(out)


class Draw:
    """Progress on stderr: a live line on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last: dict[tuple[str, str], float] = {}
        self._marks: dict[tuple[str, str], deque[tuple[float, int]]] = {}  # when, and what was done by then
        self._began: dict[tuple[str, str], float] = {}
        self._width = 0
        self._ended: dict[tuple[str, str], int] = {}

    def __call__(self, event: Progress) -> None:
        """Draw ``event``, at most ten times a second (live) or every few seconds (plain)."""
        now = time.monotonic()
        key = (event.phase, event.model)
        if event.message:
            self._line(f"{event.phase}: {event.message}")
            return
        marks = self._marks.setdefault(key, deque())
        if not marks or marks[0][1] > event.done:  # or another run of the same session
            marks.clear()
            self._began[key] = now
        began = self._began[key]
        # The rate is that of the later half: a run starts with few calls in flight.
        while len(marks) > 1 and marks[1][0] <= (began + now) / 2:
            marks.popleft()
        if not marks or now - marks[-1][0] >= (now - began) / MARKS:
            marks.append((now, event.done))
        since, before = marks[0]
        last = self._last.get(key)
        done = event.planned is not None and event.done >= event.planned
        if not done and last is not None and now - last < (0.1 if self._live else EVERY_S):
            return
        if not self._live and last is None and not done and now - began < EVERY_S:
            self._last[key] = now - EVERY_S + 1.0
            return
        if done:
            if self._ended.get(key) == event.done:
                return  # said already
            self._ended[key] = event.done
        self._last[key] = now
        self._line(describe(event, now - since, before), keep=done)

    def _line(self, text: str, *, keep: bool = True) -> None:
        text = encodable(inline(text), sys.stderr.encoding)
        if self._live:
            own(sys.stderr, "\r" + text.ljust(self._width)[:200])
            self._width = len(text)
            if keep:
                sys.stderr.write("\n")
                self._width = 0
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def describe(event: Progress, elapsed_s: float, before: int = 0) -> str:
    """Return one line of progress; ``before`` were done when ``elapsed_s`` began."""
    parts = [event.phase + (f" {event.model}" if event.model else "")]
    parts.append(f"{event.done:,}" + (f"/{event.planned:,}" if event.planned is not None else ""))
    rate = (event.done - before) / elapsed_s if elapsed_s > 1 else 0.0
    if rate:
        parts.append(f"{rate:,.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
    if event.cached:
        parts.append(f"{event.cached:,} cached")
    if event.failed:
        parts.append(f"{event.failed:,} failed")
    if event.cost_usd:
        parts.append(f"${event.cost_usd:.4f}")
    if event.planned and event.done < event.planned and rate:
        left = (event.planned - event.done) / rate
        parts.append(f"about {left:.0f} s left" if left < 120 else f"about {left / 60:.0f} min left")
    return " · ".join(parts)
