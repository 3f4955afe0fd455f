"""The command line: a command's module is imported when it is called, and everything else once `main` has begun.

Results go to stdout, progress and notes to stderr. Exit codes: 0 ran, 1 the rule of ``--fail-on`` holds,
2 could not run, 3 incomplete or cannot be judged, 70 a defect of this tool or of a plug-in, 130 interrupted.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

COMMANDS = {  # module and function below `auditor.cli`, and one line of help; the first eight are those of --help
    "run": ("run:run", "Run an audit (the default command)."),
    "doctor": ("tool:doctor", "Check whether a model can be audited, in a handful of calls."),
    "resume": ("run:resume", "Finish a run that was cut off; no answered call is repeated."),
    "show": ("examine:show", "Show a finding with its prompts and answers, ask it again, or explain a code."),
    "report": ("report:report", "Render a run's report again, in any format, without calling the model."),
    "compare": ("compare:compare", "Compare two runs, or follow runs of one plan over time."),
    "import": ("imports:import_", "Make a run of recorded answers."),
    "list": ("tool:command", "List models, tasks, dictionaries, grammars, plug-ins, the cache; check files of yours."),
    "generate": ("run:generate", "Write cases and prompts without calling a model."),
    "mitigate": ("trials:mitigate", "Ask the texts of a run under changed prompts, and say what that does."),
    "choose": ("trials:choose", "Which of several candidates: pairs in both orders, or rankings."),
    "tabular": ("tabular:command", "Search table rows whose label changes with protected columns."),
    "ll144": ("ll144:ll144", "Compute the tables of NYC Local Law 144 from recorded outcomes."),
    "agent": ("agent:agent", "Plan and run audits for a goal in plain words, within one budget."),
    "mcp": ("agent:mcp", "Let a client of the Model Context Protocol plan and read audits, within one budget."),
    "plan": ("freezing:command", "Freeze a plan before a run, or show a frozen one."),
    "verify": ("examine:verify", "Check a run folder's hash chains."),
    "augment": ("trials:augment", "Write retraining data from the violations of a run."),
}
FIRST = 8
SETTINGS = "audit.toml"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``audit``."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):  # as on stderr, no sign that a terminal lacks ends a command
            sys.stdout.reconfigure(errors="backslashreplace")
        code = run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _mute()
        code = 0
    sys.exit(code)


def _leave(*_: object) -> None:
    """End on Ctrl-C while modules load: an exception in the midst of that may crash one that is written in C."""
    os.write(2, b"audit: Interrupted.\n")
    os._exit(130)


def _mute() -> None:
    """The reader went away (``audit … | head``): what is left to be written goes nowhere, without a traceback."""
    import contextlib

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no stream of the system
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def run(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    from auditor.cli.screen import EXIT_INTERRUPTED, EXIT_USER, complain, interrupted, message_of, written
    from auditor.core.errors import AuditError, PluginError
    from auditor.core.shown import guarded

    if argv and argv[0] in ("-V", "--version"):
        from auditor._version import __version__

        print(f"audit {__version__}")
        return 0
    if argv and argv[0] in ("-h", "--help", "help"):
        print(overview(whole=argv[0] == "help"))
        return 0
    if not argv and not Path(SETTINGS).exists():
        complain(
            f"No task is named, and there is no {SETTINGS} in this folder that names one. All commands: audit --help.",
            "Run: audit --task sentiment",
        )
        return EXIT_USER
    if not argv or argv[0].startswith("-"):
        argv = ["run", *argv]
    if said := _removed(argv):
        complain(said)
        return EXIT_USER
    written(forget=True)
    try:
        with guarded():
            function = command(argv[0])
            if signal.getsignal(signal.SIGINT) is _leave:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return function(argv[1:])
    except KeyboardInterrupt:
        interrupted()
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


def _removed(argv: Sequence[str]) -> str:
    """Say what to use instead of a command or a value that a command line asks for and that is gone, or ""."""
    from auditor.core import removed

    words = [part for word in argv for part in word.split("=", 1)]
    values = (f"{option} {value}" for option, word in pairwise(words) for value in word.split(","))
    gone = {**removed.COMMANDS, **removed.VALUES}
    asked = next((name for name in (*(" ".join(argv[:n]) for n in (1, 2, 3)), *values) if name in gone), "")
    return asked and f"{asked} was removed in 0.3; {gone[asked]}."


def _crashed(error: BaseException, message: str) -> int:
    """Say in one line what went wrong and where the traceback lies; 1 would read as findings of ``--fail-on``."""
    import tempfile
    import traceback

    from auditor.cli.screen import EXIT_DEFECT, complain
    from auditor.core.secrets import scrub

    try:
        fd, path = tempfile.mkstemp(prefix="audit-traceback-", suffix=".txt")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(scrub("".join(traceback.format_exception(error))))
        message = f"{message.rstrip('.')}. Traceback: {path}"
    except (OSError, MemoryError):
        pass  # a full disk must not hide what happened
    complain(scrub(message))
    return EXIT_DEFECT


def command(name: str) -> Callable[[list[str]], int]:
    """What runs the command ``name``, given the words after it."""
    from auditor.core.errors import UnknownPlugin

    if name not in COMMANDS:
        raise UnknownPlugin("command", name, COMMANDS, "See: audit help")
    module, _, function = COMMANDS[name][0].partition(":")
    target: Callable[..., int] = getattr(importlib.import_module(f"auditor.cli.{module}"), function)
    if function == "command":  # decides by its first word itself
        return target
    from auditor.cli import frame

    return lambda argv: frame.invoke(target, name, argv)


def overview(*, whole: bool = False) -> str:
    """Return the text of ``audit --help``, or with all commands that of ``audit help``."""
    named = list(COMMANDS.items())[: None if whole else FIRST]
    lines = [
        "Usage: audit [run] --task NAME|FILE [--model SPEC…] [options]",
        f"       audit                     # what {SETTINGS} in this folder says",
        "       audit COMMAND [options]",
        "",
        "Asks a model the same thing about different people and measures whether the answer changes.",
        "",
        "Commands:",
        *(f"  {name:<12}{text}" for name, (_, text) in named),
        *([] if whole else ["more: audit help"]),
        "",
        "First steps:",
        "  audit --task sentiment                               # the embedded models, offline",
        "  audit --task sentiment --data reviews.csv --model python:my_module:classify",
        "  audit --task hiring --model openai:NAME --base-url http://localhost:8000/v1 --dry-run",
        "",
        "`audit COMMAND --help` tells the options of a command.",
        "Exit codes: 0 ran, 1 the rule of --fail-on holds, 2 could not run, 3 incomplete or cannot be judged,",
        "70 a defect, 130 interrupted.",
    ]
    return "\n".join(lines)
