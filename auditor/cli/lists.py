"""``audit list …``: models, tasks, dictionaries, grammars, plug-ins, the cache; checks of files of your own.

``audit doctor`` says whether a model can be audited.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.cli import frame
from auditor.cli.frame import fitted, must_be_new, option, print_as, say, takes
from auditor.core import protocols, reading
from auditor.core.errors import DataFileError, PluginError
from auditor.core.plan import Plan
from auditor.core.shown import plural, quoted
from auditor.report.words import figure, visible

if TYPE_CHECKING:
    from auditor.perturb.dictionaries import Dictionary
    from auditor.run.doctor import Examined
    from auditor.tasks.task import Task

MARKS = {"ok": "ok", "note": "note", "failed": "FAILED", "skipped": "-"}  # of the checks of a model
SHOWN = 8  # labels of a task, in the list of tasks


def _print_page(folder: str) -> int:
    sys.stdout.write(reading.shipped(folder, "README.md").read_text(encoding="utf-8"))
    return 0


def task_format() -> int:
    """Describe task files field by field."""
    return _print_page("prompts")


def dictionary_format() -> int:
    """Describe dictionary files field by field."""
    return _print_page("dictionaries")


def grammar_format() -> int:
    """Describe grammar files field by field."""
    return _print_page("grammars")


def tasks() -> int:
    """List the tasks that come with the tool."""
    from auditor import tasks as shipped
    from auditor.text import languages

    for task in map(shipped.load, shipped.available()):
        texts = len(task.seeds()) if task.seeds_path is not None else 0
        say(
            f"{task.name:<14}{task.kind.name:<16}{_answers(task)}; formats: {', '.join(task.formats)}; "
            f"{plural(texts, 'embedded text')}"
        )
    local = ", ".join(languages.load("de").tasks)
    say(f"In other languages ({', '.join(languages.available())}), as hiring:de: {local}")
    say("Your own: audit list tasks new NAME, edit the file, then audit --task FILE --data TEXTS")
    return 0


def _answers(task: Task) -> str:
    """Say in a few words what a task is answered with."""
    if task.scale is not None:
        low, high = map(figure, task.scale)
        return f"a number from {low} to {high}" + (f" {task.unit}" if task.unit else "")
    if not task.labels:
        return "free text"
    hidden = len(task.labels) - SHOWN
    return f"labels: {', '.join(task.labels[:SHOWN])}" + (f", … and {hidden} more" if hidden > 0 else "")


@frame.argument("name", "NAME", "Name of the task.", type=str)
@frame.flag(
    "--kind",
    default="classification",
    help="classification, decision, multilabel, score, generation, coreference or fill-mask.",
)
@frame.out(help="File to write (default: NAME.yaml).")
def new(*, name: str, kind: str, out: Path | None) -> int:
    """Write a commented task file to start from."""
    from auditor import tasks as shipped
    from auditor.tasks import kinds

    path = must_be_new(out or Path(f"{name}.yaml"), "exists already; give another file with --out.")
    path.write_text(shipped.template(name, kind), encoding="utf-8")
    # Some have no data sets of texts; a grammar of the shipped task of the kind fits.
    source = f"--suite grammar --suite-option grammar={kind}" if kinds.of(kind).grammar else "--data TEXTS"
    say(path, f"Next: edit it, then audit --task {quoted(path)} {source} --model SPEC --dry-run")
    return 0


@frame.argument("attribute", "[ATTRIBUTE]", "Show the groups and words of one attribute.", required=False, type=str)
def dictionaries(*, attribute: str | None) -> int:
    """List the attributes, groups and numbers of terms that come with the tool, and the hinter views."""
    from auditor.perturb import dictionaries as shipped

    if attribute is not None:
        one = shipped.neutral() if attribute == "neutral" else shipped.load(attribute)
        for name, group in one.groups.items():
            say(f"{name} ({group.label}): {', '.join(dict.fromkeys(t.text for t in one.terms if t.group == name))}")
        return 0
    for one in map(shipped.load, shipped.builtin()):
        mark = "" if one.default else " (only with --attributes)"
        groups = ", ".join(sorted(one.groups)[:12]) + (", …" if len(one.groups) > 12 else "")
        say(f"{one.attribute:<20}{len(one.terms):>5} terms, {plural(len(one.groups), 'group')}: {groups}{mark}")
    say("", "Views of --protocol hinter, unions of attributes:")
    for name, parts in shipped.VIEWS.items():
        say(f"{name:<20}{_words(shipped.view(name)):>5} words: {', '.join(parts)}")
    say(f"{'neutral':<20}{_words(shipped.neutral()):>5} words for placebo edits")
    return 0


def _words(one: Dictionary) -> int:
    return len({t.text.lower() for t in one.terms})


@frame.argument("files", "[[ATTRIBUTE=]FILE…]", "Files; none checks those that come with the tool.", nargs=-1, type=str)
def check(*, files: Sequence[str]) -> int:
    """Check dictionaries: overlaps, missing slots, everyday words. Exit 1 where something is found."""
    from auditor.perturb import dictionaries as shipped

    chosen = shipped.load_options(tuple(files)) if files else [shipped.load(name) for name in shipped.builtin()]
    problems = shipped.check(chosen)
    say(*problems)
    if not problems:
        terms = sum(len(d.terms) for d in chosen)
        say(f"{plural(len(chosen), 'dictionary', 'dictionaries')}, {plural(terms, 'term')}: nothing found.")
    return 1 if problems else 0


def grammars() -> int:
    """List the grammars that come with the tool, with their views."""
    from auditor.perturb import grammar

    for name in grammar.available():
        one = grammar.load(name)
        say(f"{name:<14}attributes: {', '.join(one.attributes)}")
        say(*([f"{'':<14}views: {', '.join(one.views)}"] if one.views else []))
    return 0


@frame.argument("file", "GRAMMAR", "A shipped grammar NAME[:VIEW], or a file (.yaml).", type=str)
def check_grammar(*, file: str) -> int:
    """Look for mistakes, and print the number of derivations. Exit 1 where something is found."""
    from auditor.perturb import grammar
    from auditor.perturb.grammar.reader import HELP, focus

    one = grammar.parse(file)
    problems = grammar.check(one)
    fatal = [p for p in problems if p.fatal]
    if fatal:
        for problem in fatal[1:]:
            say(f"{one.where(problem.line)}: {problem.message}", to=sys.stderr)
        raise DataFileError(f"{one.where(fatal[0].line)}: {fatal[0].message}. {HELP}")
    say(*(f"{one.where(problem.line)}: {problem.message}" for problem in problems))
    for seen in [one] if one.view else [one, *(focus(one, name) for name in one.views)]:
        rules, terminals = len(seen.reachable()), sum(1 for _ in seen.terminals())
        say(f"{seen.full_name}: {rules} rules, {terminals} terminals; {grammar.Space(seen).derivations:,} derivations")
    say(f"Attributes: {', '.join(one.attributes) or 'none'}. Labels: {', '.join(one.labels) or 'none'}.")
    return 1 if problems else 0


# -- what the tool has, and whether a model can be audited ----------------------------------------------------


def models() -> int:
    """List the kinds of models, what each needs, and what of that is installed or set."""
    from auditor.models import kinds

    for row in kinds():
        state = "installed" if row.installed else f"needs {', '.join(row.missing)}"
        say(f"{row.spec:<26}{state}", f"    {row.what}")
        if row.install:
            say(f"    Run: {row.install}")
        if row.environment:
            say("    environment: " + _set(row.environment))
        for name, needs in row.providers.items():
            here = "installed" if needs.installed else f"Run: {needs.install}"
            key = f"; {_set(needs.environment)}" if needs.environment else ""
            say(f"    {name:<14}{here}{key}")
        say(f"    e.g. {row.example}", "")
    say("Try one in a handful of calls: audit doctor --model SPEC")
    return 0


def _set(environment: dict[str, bool]) -> str:
    return ", ".join(f"{name} {'set' if there else 'not set'}" for name, there in environment.items())


def plugins() -> int:
    """List plugins of every kind; those of other packages are imported to see whether they load."""
    from auditor.tasks.kinds import KINDS

    for kind in (*protocols.KINDS, KINDS):
        say(f"{kind.kind}s")
        for name in kind.names():
            origin = kind.origin(name)
            say(f"  {name:<22}{origin:<28}{kind.where(name)}".rstrip())
            if origin != "built in":
                try:
                    kind.load(name)
                except PluginError as error:
                    say(f"      {error}")
        say("")
    say("A suite of another package is chosen by its name: audit --suite NAME. A package offers plugins as entry")
    say("points. PACKAGE:NAME chooses a plug-in whose name another one has.")
    return 0


@frame.switch("--clear", help="Delete every cached answer; run folders keep theirs.")
def cache(*, clear: bool) -> int:
    """Say where the response cache is and how much it holds."""
    from auditor.models.reply_cache import Cache

    if clear:
        Cache().clear()
        say("The response cache is empty.")
        return 0
    stats = Cache().stats()
    say(stats.path, f"{plural(stats.entries, 'answer')}, {plural(stats.size_bytes, 'byte')}")
    return 0


@takes("doctor", Plan)
@option("models", "model", multiple=False, required=True, help="Model spec (audit list models lists the kinds).")
@option("task", default="sentiment", help="Task whose prompts are asked (default: sentiment).")
@frame.printed
def doctor(*, model: str, task: str, format: str, **options: object) -> int:
    """Check key, server, answers, positive control, repeats, log-probabilities, speed and price, in at most 10 calls.

    Exit codes: 0 it can be audited; 2 it could not be asked; 3 calls failed, answers could not be read, or the positive
    control was not seen.
    """
    from auditor import tasks
    from auditor.run import doctor as logic

    plan = Plan.of(options).but(task=task)
    prices = {name: plan.limits[name] for name in ("price_in", "price_out")}
    examined = logic.examine(
        model, task=tasks.of_plan(plan), base_url=plan.base_url, **prices, server=plan.settings_for(model)
    )
    return print_as(format, examined, _examined(examined), code=examined.exit_code)


def _examined(examined: Examined) -> Iterator[str]:
    repeated = f", {examined.repeated} of them repeated" if examined.repeated else ""
    yield f"{visible(examined.model)} on the task {examined.task}: {plural(examined.calls, 'call')}{repeated}"
    yield ""
    for check in examined.checks:
        text = fitted(f"{MARKS[check.status]:<8}{check.name:<18}{visible(check.text, newlines=False)}", " " * 26)
        yield from text.split("\n")
        if check.next:
            yield f"{'':<26}{visible(check.next, newlines=False)}"
    yield from ("", examined.summary)
