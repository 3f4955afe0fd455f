"""The command line: one file per command, imported when it is called.

Results go to stdout, progress and notes to stderr. Exit codes: 0 ran, 1 findings at or above ``--fail-on``,
2 could not run, 3 incomplete, 70 a defect of this tool or of a plug-in, 130 interrupted.
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.core.secrets import scrub
from auditor.core.shown import encodable, guarded, inline

if TYPE_CHECKING:
    from auditor.core.errors import AuditError

COMMANDS = {
    "run": ("auditor.cli.run", "Run an audit (the default command)."),
    "generate": ("auditor.cli.generate", "Write cases and prompts without calling a model."),
    "score": ("auditor.cli.score", "Judge recorded answers to generated prompts."),
    "import": ("auditor.cli.imports", "Make a run of answers that somebody recorded."),
    "resume": ("auditor.cli.resume", "Finish a run that was cut off; no answered call is repeated."),
    "plan": ("auditor.cli.plan", "Freeze a plan before a run, or show a frozen one."),
    "report": ("auditor.cli.report", "Render a run's report again, in any format, without calling the model."),
    "compare": ("auditor.cli.compare", "Compare two runs: better, worse, new, gone."),
    "watch": ("auditor.cli.watch", "Follow runs of one plan: figures by date, and whether the model changed."),
    "mitigate": ("auditor.cli.mitigate", "Ask the texts of a run under changed prompts, and say what that does."),
    "choose": ("auditor.cli.choose", "Which of several candidates: pairs in both orders, or rankings."),
    "show": ("auditor.cli.show", "Show one finding, variant or case: its prompts and answers."),
    "explain": ("auditor.cli.explain", "Explain a code of a report in plain words."),
    "replay": ("auditor.cli.replay", "Ask the prompts of one finding again."),
    "augment": ("auditor.cli.augment", "Write retraining data from the violations of a run."),
    "groups": ("auditor.cli.groups", "Compare the mean scores of groups in a run."),
    "validity": ("auditor.cli.validity", "Have two people read a sample of variants."),
    "verify": ("auditor.cli.verify", "Check a run folder's hash chains."),
    "tasks": ("auditor.cli.tasks", "List the tasks, or start a task file of your own."),
    "grammar": ("auditor.cli.grammar", "Sample, measure the coverage of, or check a grammar."),
    "dictionary": ("auditor.cli.dictionary", "List or check dictionaries."),
    "ll144": ("auditor.cli.ll144", "Compute the tables of NYC Local Law 144 from recorded outcomes."),
    "tabular": ("auditor.cli.tabular", "Search table rows whose label changes with protected columns."),
    "agent": ("auditor.cli.agent", "Plan and run audits for a goal in plain words, within one budget."),
    "mcp": ("auditor.cli.mcp", "Let a client of the Model Context Protocol plan and read audits, within one budget."),
    "models": ("auditor.cli.models", "List the kinds of models and what each needs."),
    "plugins": ("auditor.cli.plugins", "List the plugins of every kind and where they come from."),
    "doctor": ("auditor.cli.doctor", "Check whether a model can be audited, in a handful of calls."),
    "cache": ("auditor.cli.cache", "Show or clear the response cache."),
}
SETTINGS = "audit.toml"
EXIT_USER, EXIT_INCOMPLETE, EXIT_DEFECT, EXIT_INTERRUPTED = 2, 3, 70, 130
INTERRUPTED = "Interrupted. What was answered is on disk: `audit resume RUN` goes on from there."


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``audit``."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # as on stderr, no sign that a terminal lacks ends a command
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _mute()
        code = 0
    sys.exit(code)


def _mute() -> None:
    """The reader went away (``audit … | head``): what is left to be written goes nowhere, without a traceback."""
    import contextlib
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no stream of the system
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def run(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    from auditor.core.errors import AuditError, PluginError

    if argv and argv[0] in ("-V", "--version"):
        from auditor._version import __version__

        print(f"audit {__version__}")
        return 0
    if argv and argv[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    if not argv and not Path(SETTINGS).is_file():
        complain(
            f"No task is named, and there is no {SETTINGS} in this folder that names one. All commands: audit --help.",
            "Run: audit --task sentiment",
        )
        return EXIT_USER
    if not argv or argv[0].startswith("-"):
        argv = ["run", *argv]
    try:
        with guarded():
            return _dispatch(argv)
    except KeyboardInterrupt:
        complain(INTERRUPTED)
        return EXIT_INTERRUPTED
    except PluginError as error:
        return _crashed(error, str(error))
    except AuditError as error:
        complain(*message_of(error))
        return EXIT_USER
    except BrokenPipeError:
        raise  # `main` knows what to do
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
        return EXIT_USER
    except Exception as error:  # noqa: BLE001 - the last resort; the traceback is kept
        said = " ".join(str(error).split())[:200]
        kind = "Out of memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {said}"
        return _crashed(error, f"{kind} (a defect of audit, or a file that was changed by hand)")


def _crashed(error: BaseException, message: str) -> int:
    """Say in one line what went wrong and where the traceback lies; 1 would read as findings of ``--fail-on``."""
    import os
    import tempfile
    import traceback

    try:
        fd, path = tempfile.mkstemp(prefix="audit-traceback-", suffix=".txt")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(scrub("".join(traceback.format_exception(error))))
        message = f"{message.rstrip('.')}. Traceback: {path}"
    except (OSError, MemoryError):
        pass  # a full disk must not hide what happened
    complain(scrub(message))
    return EXIT_DEFECT


def _dispatch(argv: list[str]) -> int:
    import importlib

    from auditor.core.errors import UnknownPlugin

    name = argv[0]
    if name not in COMMANDS:
        raise UnknownPlugin("command", name, COMMANDS, "See: audit --help")
    module = importlib.import_module(COMMANDS[name][0])
    return int(module.command(argv[1:]))


def overview() -> str:
    """The text of ``audit --help``."""
    lines = [
        "Usage: audit [run] --task NAME|FILE [--model SPEC…] [options]",
        f"       audit                     # what {SETTINGS} in this folder says",
        "       audit COMMAND [options]",
        "",
        "Asks a model the same thing about different people and measures whether the answer changes.",
        "",
        "Commands:",
        *(f"  {name:<12}{text}" for name, (_, text) in COMMANDS.items()),
        "",
        "First steps:",
        "  audit --task sentiment                               # the embedded models, offline",
        "  audit --task sentiment --data reviews.csv --model python:my_module:classify",
        "  audit --task hiring --model openai:NAME --base-url http://localhost:8000/v1 --dry-run",
        "",
        "`audit COMMAND --help` tells the options of a command.",
        "Exit codes: 0 ran, 1 findings at or above --fail-on, 2 could not run, 3 incomplete, 70 a defect, 130",
        "interrupted.",
    ]
    return "\n".join(lines)


def complain(message: object, below: str = "") -> None:
    """One clear paragraph on stderr; below it, on a line of its own and unbroken, a command to run.

    Lines after the first are set in: nothing in ``message`` looks like what stands ``below``.
    """
    text = inline(f"audit: {message}")
    lines = textwrap.wrap(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if below.startswith(" "):  # a quoted line with a mark below it
        lines += ["    " + inline(line) for line in textwrap.dedent(below).split("\n")]
    elif below:
        lines.append(inline(below))
    print("\n".join(encodable(line, sys.stderr.encoding) for line in lines), file=sys.stderr)


def message_of(error: AuditError) -> tuple[str, str]:
    """What `complain` takes of an error."""
    return str(error).removesuffix(error.below).rstrip(), error.below
