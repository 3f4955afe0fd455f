"""``audit list tasks`` and ``audit list dictionaries``: what comes with the tool, and files of your own."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import frame
from auditor.cli.frame import Words, option
from auditor.cli.screen import must_be_new, print_as, prints_page, say
from auditor.core import reading
from auditor.core.shown import plural, quoted
from auditor.report.words import figure

if TYPE_CHECKING:
    from auditor.perturb.dictionaries import Dictionary
    from auditor.tasks.task import Task

SHOWN = 8  # labels of a task, in the list of tasks


def list_tasks(format: frame.Format = "terminal") -> int:
    """List the tasks that come with the tool."""
    from auditor import tasks

    every = [tasks.load(name) for name in tasks.available()]
    rows = [
        {
            "name": task.name,
            "kind": task.kind.name,
            "labels": task.labels,
            "scale": task.scale,
            "unit": task.unit,
            "formats": list(task.formats),
            "embedded_texts": _embedded(task),
        }
        for task in every
    ]
    return print_as(format, rows, _tasks(every))


def _tasks(tasks: Iterable[Task]) -> Iterator[str]:
    for task in tasks:
        yield (
            f"{task.name:<14}{task.kind.name:<16}{_answers(task)}; formats: {', '.join(task.formats)}; "
            f"{plural(_embedded(task), 'embedded text')}"
        )
    yield "Your own: audit list tasks new NAME, edit the file, then audit --task FILE --data TEXTS"


def _embedded(task: Task) -> int:
    return len(task.seeds()) if task.seeds_path is not None else 0


def _answers(task: Task) -> str:
    """What a task is answered with, in a few words."""
    if task.scale is not None:
        low, high = map(figure, task.scale)
        return f"a number from {low} to {high}" + (f" {task.unit}" if task.unit else "")
    if not task.labels:
        return "free text"
    hidden = len(task.labels) - SHOWN
    return f"labels: {', '.join(task.labels[:SHOWN])}" + (f", … and {hidden} more" if hidden > 0 else "")


def new(
    name: Annotated[str, typer.Argument(help="Name of the task.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind", help="classification, decision, multilabel, score, generation, coreference or fill-mask."
        ),
    ] = "classification",
    out: Annotated[Path | None, option("out", help="File to write (default: NAME.yaml).")] = None,
) -> int:
    """Write a commented task file to start from."""
    from auditor import tasks
    from auditor.tasks import kinds

    path = must_be_new(out or Path(f"{name}.yaml"), "exists already; give another file with --out.")
    path.write_text(tasks.template(name, kind), encoding="utf-8")
    # Some have no data sets of texts; a grammar of the shipped task of the kind fits.
    source = f"--suite grammar --suite-option grammar={kind}" if kinds.of(kind).grammar else "--data TEXTS"
    say(path, f"Next: edit it, then audit --task {quoted(path)} {source} --model SPEC --dry-run")
    return 0


def list_dictionaries(
    attribute: Annotated[str | None, typer.Argument(help="Show the groups and words of one attribute or view.")] = None,
    format: frame.Format = "terminal",
) -> int:
    """List the attributes, groups and numbers of terms that come with the tool, and the hinter views."""
    from auditor.perturb import dictionaries

    if attribute is not None:
        return _list_terms(attribute, format)
    every = [dictionaries.load(name) for name in dictionaries.builtin()]
    rows = [
        {
            "attribute": one.attribute,
            "default": one.default,
            "groups": sorted(one.groups),
            "terms": len(one.terms),
            "words": _words(one),
        }
        for one in every
    ]
    views = [
        {"view": name, "attributes": parts, "words": _words(dictionaries.view(name))}
        for name, parts in dictionaries.VIEWS.items()
    ]
    return print_as(format, [*rows, *views], _dictionaries(every), ordered=False)


def _dictionaries(every: Iterable[Dictionary]) -> Iterator[str]:
    from auditor.perturb import dictionaries

    for one in every:
        mark = "" if one.default else " (only with --attributes)"
        groups = ", ".join(sorted(one.groups)[:12]) + (", …" if len(one.groups) > 12 else "")
        yield f"{one.attribute:<20}{len(one.terms):>5} terms, {plural(len(one.groups), 'group')}: {groups}{mark}"
    yield ""
    yield "Views of --protocol hinter, unions of attributes:"
    for name, parts in dictionaries.VIEWS.items():
        yield f"{name:<20}{_words(dictionaries.view(name)):>5} words: {', '.join(parts)}"
    yield f"{'neutral':<20}{_words(dictionaries.neutral()):>5} words for placebo edits"


def _words(one: Dictionary) -> int:
    return len({t.text.lower() for t in one.terms})


def _list_terms(attribute: str, format: str) -> int:
    from auditor.perturb import dictionaries

    one = dictionaries.neutral() if attribute == "neutral" else dictionaries.load(attribute)
    terms = [
        {"text": t.text, "group": t.group, "slot": t.slot, "pos": t.pos}
        | {"conditions": sorted(t.tags), "source": t.source}
        for t in one.terms
    ]
    words = {name: dict.fromkeys(t.text for t in one.terms if t.group == name) for name in one.groups}
    lines = (f"{name} ({group.label}): {', '.join(words[name])}" for name, group in one.groups.items())
    return print_as(format, terms, lines, ordered=False)


def show(attribute: Annotated[str, typer.Argument(help="One attribute, or neutral.")]) -> int:
    """Print the file of one dictionary that comes with the tool, to copy from or to extend (extends: ATTRIBUTE)."""
    from auditor.perturb import dictionaries

    name = Path(attribute).stem
    if name != "neutral":
        dictionaries.load(name)  # says which there are
    sys.stdout.write(reading.read_text(reading.shipped("dictionaries", f"{name}.yaml")))
    return 0


def check(
    files: Annotated[
        list[str] | None, typer.Argument(help="[ATTRIBUTE=]FILE…; none checks those that come with the tool.")
    ] = None,
) -> int:
    """Check dictionaries: overlaps, missing slots, everyday words. Exit 1 where something is found."""
    from auditor.perturb import dictionaries

    shipped = [] if files else [dictionaries.load(name) for name in dictionaries.builtin()]
    chosen = dictionaries.load_options(tuple(files)) if files else shipped
    problems = dictionaries.check(chosen)
    say(*problems)
    if not problems:
        terms = sum(len(d.terms) for d in chosen)
        say(f"{plural(len(chosen), 'dictionary', 'dictionaries')}, {plural(terms, 'term')}: nothing found.")
    return 1 if problems else 0


TASKS = Words({"list": list_tasks, "format": prints_page("prompts", "task"), "new": new}, "list")
DICTIONARY = Words(
    {"list": list_dictionaries, "show": show, "check": check, "format": prints_page("dictionaries", "dictionary")},
    "list",
)
