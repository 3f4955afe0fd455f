"""``audit list tasks``, ``dictionaries`` and ``grammars``: what comes with the tool, and files of your own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.cli import frame
from auditor.cli.screen import must_be_new, say
from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.shown import plural, quoted
from auditor.report.words import figure

if TYPE_CHECKING:
    from auditor.perturb.dictionaries import Dictionary
    from auditor.tasks.task import Task

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
