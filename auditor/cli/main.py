"""The command line: a command's module is imported when it is called, and everything else once `main` has begun.

Results go to stdout, progress and notes to stderr. Exit codes: 0 ran, 1 the rule of ``--fail-on`` holds,
2 could not run, 3 incomplete or cannot be judged, 70 a defect of this tool or of a plug-in, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

COMMANDS = {  # module and function below `auditor.cli`, and one line of help; the first eight are those of --help
    "run": ("run:run", "Run an audit (the default command)."),
    "doctor": ("lists:doctor", "Check whether a model can be audited, in a handful of calls."),
    "resume": ("run:resume", "Finish a run that was cut off; no answered call is repeated."),
    "show": ("examine:show", "Show a finding with its prompts and answers, ask it again, or explain a code."),
    "report": ("report:report", "Render a run's report again, in any format, without calling the model."),
    "choose": ("trials:choose", "Ask which candidate a model prefers: pairs in both orders, or rankings."),
    "compare": ("report:compare", "Compare two runs: better, worse, new, gone."),
    "import": ("imports:import_", "Make a run of recorded answers."),
    "list": ("", "List models, tasks, dictionaries, grammars, plug-ins, the cache; check files of yours."),
    "generate": ("run:generate", "Write cases and prompts without calling a model."),
    "mitigate": ("trials:mitigate", "Ask the texts of a run under changed prompts, and measure the effect."),
    "tabular": ("tabular:tabular", "Search table rows whose label changes with protected columns."),
    "ll144": ("ll144:ll144", "Compute the tables of NYC Local Law 144 from recorded outcomes."),
    "agent": ("agent:agent", "Plan and run audits for a goal in plain words, within one budget."),
    "mcp": ("agent:mcp", "Let a client of the Model Context Protocol plan and read audits, within one budget."),
    "plan": ("", "Freeze a plan before a run, or show a frozen one."),
    "verify": ("examine:verify", "Check a run folder's hash chains."),
    "augment": ("trials:augment", "Write retraining data from the violations of a run."),
}
FURTHER = {  # commands of several words
    "list models": ("lists:models", "kinds of models, and their requirements"),
    "list tasks": ("lists:tasks", "tasks that come with the tool"),
    "list tasks new": ("lists:new", "write a task file to start from"),
    "list tasks format": ("lists:task_format", "describe task files"),
    "list dictionaries": ("lists:dictionaries", "attributes and groups; the words of one ATTRIBUTE"),
    "list dictionaries check": ("lists:check", "check dictionary files"),
    "list dictionaries format": ("lists:dictionary_format", "describe dictionary files"),
    "list grammars": ("lists:grammars", "grammars that come with the tool"),
    "list grammars check": ("lists:check_grammar", "check a grammar, and count its sentences"),
    "list grammars format": ("lists:grammar_format", "describe grammar files"),
    "list plugins": ("lists:plugins", "plug-ins of every kind, and where they come from"),
    "list cache": ("lists:cache", "where the response cache is; --clear empties it"),
    "plan freeze": ("freezing:freeze", "fix a plan for texts before the run (audit run --plan FILE)"),
    "plan freeze tabular": ("freezing:freeze_rows", "fix a plan for rows of a table (audit tabular --plan FILE)"),
    "plan show": ("freezing:show", "check the hash of a frozen plan, and print what it fixes"),
    "tabular schema": ("tabular:schema", "write the schema of a table, to edit"),
}
EXAMPLES = {
    "run": "audit --task hiring --model openai:NAME --max-cost 5",
    "doctor": "audit doctor --model openai:NAME",
    "resume": "audit resume latest",
    "show": "audit show latest F001",
    "report": "audit report latest --format html",
    "compare": "audit compare reports/BEFORE latest",
    "import": "audit import answers.csv",
    "list": "audit list models",
}
SETTINGS = "audit.toml"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``audit``."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:1] not in (["--help"], ["-h"], ["help"]):  # these load nothing more
        import io
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)
        if isinstance(sys.stdout, io.TextIOWrapper):  # as on stderr, no sign that a terminal lacks ends a command
            sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = run(argv)
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
    """Write what is left to nowhere: the reader went away (``audit … | head``)."""
    import contextlib

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no stream of the system
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def run(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    if argv[:1] in (["--help"], ["-h"], ["help"]):
        print(overview(whole=argv[0] == "help"))
        return 0
    if argv[:1] in (["--version"], ["-V"]):
        from auditor._version import __version__

        print(f"audit {__version__}")
        return 0
    import signal

    from auditor.cli.frame import EXIT_INTERRUPTED, EXIT_USER, complain, interrupted, written
    from auditor.core.errors import AuditError, PluginError
    from auditor.core.shown import guarded

    if not argv and not os.path.exists(SETTINGS):
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
            function, rest = command(argv)
            if signal.getsignal(signal.SIGINT) is _leave:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return function(rest)
    except KeyboardInterrupt:
        interrupted()
        return EXIT_INTERRUPTED
    except PluginError as error:
        return _crashed(error, str(error))
    except AuditError as error:
        complain(str(error).removesuffix(error.below).rstrip(), error.below)
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
    from itertools import pairwise

    from auditor.core.options import gone

    words = [part for word in argv for part in word.split("=", 1)]
    values = (f"{option} {value}" for option, word in pairwise(words) for value in word.split(","))
    former = {**gone("commands"), **gone("values")}
    asked = next((name for name in (*(" ".join(argv[:n]) for n in (1, 2, 3)), *values) if name in former), "")
    return asked and f"{asked} was removed in 0.3; {former[asked]}."


def _crashed(error: BaseException, message: str) -> int:
    """Say in one line what went wrong and where the traceback lies; 1 would read as findings of ``--fail-on``."""
    import tempfile
    import traceback

    from auditor.cli.frame import EXIT_DEFECT, complain
    from auditor.core.shown import scrub

    try:
        fd, path = tempfile.mkstemp(prefix="audit-traceback-", suffix=".txt")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(scrub("".join(traceback.format_exception(error))))
        message = f"{message.rstrip('.')}. Traceback: {path}"
    except (OSError, MemoryError):
        pass  # a full disk must not hide what happened
    complain(scrub(message))
    return EXIT_DEFECT


def command(argv: Sequence[str]) -> tuple[Callable[[list[str]], int], list[str]]:
    """Return what runs the command that ``argv`` begins with, and the words after its name."""
    import difflib
    import importlib

    from auditor.core.errors import UnknownPlugin

    every = COMMANDS | FURTHER
    name, rest = next(
        ((" ".join(argv[:n]), list(argv[n:])) for n in (3, 2, 1) if " ".join(argv[:n]) in every), ("", list(argv))
    )
    if not name:
        raise UnknownPlugin("command", argv[0], COMMANDS, "See: audit help")
    place = every[name][0]
    following = {key.removeprefix(f"{name} "): text for key, (_, text) in FURTHER.items() if key.startswith(f"{name} ")}
    if not place and (not rest or rest[0] in ("--help", "-h")):
        return lambda _: _usage(name, following), rest
    slip = bool(rest) and not rest[0].startswith("-") and bool(difflib.get_close_matches(rest[0], following, n=1))
    if not place or slip:
        raise UnknownPlugin(name, rest[0], following, f"See: audit {name} --help")
    from auditor.cli import frame

    module, _, function = place.partition(":")
    target: Callable[..., int] = getattr(importlib.import_module(f"auditor.cli.{module}"), function)
    return lambda words: frame.invoke(target, name, words, following), rest


def _usage(name: str, following: Mapping[str, str]) -> int:
    """Print the commands that begin with one word."""
    print("\n".join(["Usage:", *(f"  audit {name} {word:<22}{text}" for word, text in following.items())]))
    return 0


def overview(*, whole: bool = False) -> str:
    """Return the text of ``audit --help``, or with all commands that of ``audit help``."""
    named = [(n, text) for n, (_, text) in COMMANDS.items() if whole or n in EXAMPLES]
    commands = [f"  {name:<12}{text}" for name, text in named]
    if not whole:
        commands = [f"{line}\n{'':14}{EXAMPLES[name]}" for (name, _), line in zip(named, commands, strict=True)]
    lines = [
        "Usage: audit [run] --task NAME|FILE [--model SPEC…] [options]",
        f"       audit                     # what {SETTINGS} in this folder says",
        "       audit COMMAND [options]",
        "",
        "Asks a model the same thing about different people and measures whether the answer changes.",
        "Offline, with the embedded models: audit --task sentiment",
        "",
        "Commands:",
        *commands,
        *([] if whole else ["more: audit help"]),
        "",
        "`audit COMMAND --help` shows the options of a command.",
        "Exit codes: 0 ran, 1 the rule of --fail-on holds, 2 could not run, 3 incomplete or cannot be judged,",
        "70 a defect, 130 interrupted.",
    ]
    return "\n".join(lines)
