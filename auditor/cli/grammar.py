"""``audit list grammars``: sample and check grammars."""

from __future__ import annotations

import dataclasses
import json
import sys
from random import Random
from typing import Annotated

import typer

from auditor.cli import frame
from auditor.cli.frame import Words, option
from auditor.cli.screen import print_as, prints_page, say
from auditor.core.errors import DataFileError
from auditor.core.shown import plural
from auditor.core.types import Case, names

GrammarFile = Annotated[
    str, typer.Argument(metavar="GRAMMAR", help="A shipped grammar NAME[:VIEW], or a file (.yaml).")
]


def list_grammars(format: frame.Format = "terminal") -> int:
    """List the grammars that come with the tool, with their views."""
    from auditor.perturb import grammar

    every = {name: grammar.load(name) for name in grammar.available()}
    rows = [
        {"name": name, "task": one.task, "attributes": list(one.attributes), "views": list(one.views)}
        for name, one in every.items()
    ]
    lines = []
    for name, one in every.items():
        lines.append(f"{name:<14}attributes: {', '.join(one.attributes)}")
        lines += [f"{'':<14}views: {', '.join(one.views)}"] if one.views else []
    return print_as(format, rows, lines, ordered=False)


def sample(
    file: GrammarFile,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many cases.")] = 10,
    seed: Annotated[int, option("seed")] = 7,
    attributes: Annotated[str | None, option("attributes")] = None,
    format: frame.Format = "terminal",
) -> int:
    """Print distinct sentences and one counterpart each, with what differs in brackets; no model is called."""
    from auditor.perturb.grammar.cases import GrammarSuite

    chosen = None if attributes is None else names(attributes)
    suite = GrammarSuite(grammar=file, generation="rand", cases=n, pairs=True, attributes=chosen, seed=seed)
    rng, made = Random(0), 0
    while cases := suite.ask(1000, rng):
        for case in cases:
            made += 1
            if format == "json":
                sys.stdout.write(json.dumps(dataclasses.asdict(case)) + "\n")
            else:
                say(*_bracketed(case), "")
    if made < n:
        print(f"{plural(made, 'distinct case')}; no further ones turned up.", file=sys.stderr)
    return 0


def _bracketed(case: Case) -> tuple[str, str]:
    [variant] = case.variants
    text, before, after, at = str(case.original.input), "", "", 0
    for edit in variant.edits:
        assert not isinstance(edit.where, str)
        start, end = edit.where
        before += f"{text[at:start]}[{edit.source}]"
        after += f"{text[at:start]}[{edit.target}]"
        at = end
    return before + text[at:], after + text[at:]


def check(file: GrammarFile, format: frame.Format = "terminal") -> int:
    """Look for mistakes, and print the exact number of distinct sentences. Exit 1 where something is found."""
    from auditor.perturb import grammar
    from auditor.perturb.grammar.reader import HELP, focus
    from auditor.perturb.grammar.space import summary

    one = grammar.parse(file)
    problems = grammar.check(one)
    fatal = [p for p in problems if p.fatal]
    if fatal:
        for problem in fatal[1:]:
            say(f"{one.where(problem.line)}: {problem.message}", to=sys.stderr)
        raise DataFileError(f"{one.where(fatal[0].line)}: {fatal[0].message}. {HELP}")
    every = [one] if one.view else [one, *(focus(one, name) for name in one.views)]
    sizes = {seen.full_name: summary(grammar.space(seen)) for seen in every}
    record = {
        "problems": [{"line": p.line, "message": p.message} for p in problems],
        "attributes": list(one.attributes),
        "labels": list(one.labels),
        "sizes": sizes,
    }
    lines = [f"{one.where(problem.line)}: {problem.message}" for problem in problems]
    for name, size in sizes.items():
        count = "too large to count" if size.sentences is None else f"{size.sentences:,}"
        lines.append(
            f"{name}: {size.rules} rules, {size.alternatives} alternatives, {size.terminals} terminals; "
            f"{count} distinct sentences ({size.derivations:,} derivations)"
        )
    lines.append(f"Attributes: {', '.join(one.attributes) or 'none'}. Labels: {', '.join(one.labels) or 'none'}.")
    return print_as(format, record, lines, ordered=False, code=1 if problems else 0)


GRAMMAR = Words(
    {"list": list_grammars, "sample": sample, "check": check, "format": prints_page("grammars", "grammar")}, "list"
)
