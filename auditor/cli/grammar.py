"""``audit list grammars``: sample, measure the coverage of, and check grammars."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from auditor.cli import frame
from auditor.cli.frame import Words, option
from auditor.cli.screen import print_as, prints_page, say
from auditor.core.errors import DataFileError, RunFolderError
from auditor.core.shown import plural
from auditor.core.types import Case, names
from auditor.store.folder import RunFolder

if TYPE_CHECKING:
    from auditor.perturb.grammar.space import Coverage

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


def coverage(
    file: Annotated[str, typer.Argument(metavar="GRAMMAR|RUN", help="A grammar, or a run folder.")],
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="Cases to draw, for a grammar.")] = 3000,
    seed: Annotated[int, option("seed")] = 7,
    format: frame.Format = "terminal",
) -> int:
    """Count the terminals, and the pairs of sensitive terminals, that a run reached or RAND would reach."""
    folder = Path(file)
    if not folder.is_dir() and (Path("reports") / file).is_dir():
        folder = Path("reports") / file
    reached = _of_run(folder) if folder.is_dir() else _of_grammar(file, n, seed)
    phases = {phase: covered.as_record() | {"cases": n} for phase, (n, covered) in reached.phases.items()}
    record = {"grammar": reached.grammar, "outside": reached.outside, "phases": phases}
    return print_as(format, record, _coverage(reached), ordered=False)


class _Reached(NamedTuple):
    """What a run, or cases that RAND would draw, reached of a grammar."""

    grammar: str
    outside: int  # texts that are no sentences of it
    phases: dict[str, tuple[int, Coverage]]  # cases of each phase, and what they reached


def _coverage(reached: _Reached) -> Iterator[str]:
    yield f"{'phase':<8}{'cases':>8}{'terminals':>22}{'sensitive pairs':>22}"
    for phase, (cases, covered) in reached.phases.items():
        terminals = _share(covered.terminals_covered, covered.terminals)
        yield f"{phase:<8}{cases:>8,}{terminals:>22}{_share(covered.pairs_covered, covered.pairs):>22}"
        if covered.unseen:
            further = f" and {len(covered.unseen) - 8} more" if len(covered.unseen) > 8 else ""
            yield f"  not reached: {'; '.join(covered.unseen[:8])}{further}"
    if reached.outside:
        yield f"Not sentences of this grammar: {plural(reached.outside, 'text')}."


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)" if whole else "none"


def _of_grammar(name: str, n: int, seed: int) -> _Reached:
    from auditor.perturb.grammar.cases import GrammarSuite

    suite = GrammarSuite(grammar=name, generation="rand", cases=n, pairs=True, seed=seed)
    made = 0
    while cases := suite.ask(1000, Random(0)):
        made += len(cases)
    return _Reached(suite.grammar.full_name, 0, {"rand": (made, suite.meters["iid"].result())})


def _of_run(path: Path) -> _Reached:
    """Coverage from the cases of a run, each text read back with the run's grammar."""
    from auditor.perturb import grammar
    from auditor.perturb.grammar.space import Meter

    folder = RunFolder.open(path)
    facts, plan = folder.plan["inputs"].get("grammar"), folder.plan["plan"]
    if facts is None:
        raise RunFolderError(f"{path}: the cases of this run were not generated by a grammar.")
    one = grammar.load(plan.get("grammar") or facts["grammar"])
    if one.sha256 != facts["sha256"]:
        raise RunFolderError(f"{path}: the grammar {one.full_name} has changed since this run.")
    space = grammar.space(one)
    meters: dict[str, Meter] = {}
    counts: Counter[str] = Counter()
    outside = 0
    for case, _ in folder.cases():
        phase = "prob" if case.sampling == "directed" else "rand"
        texts: Sequence[str] = [str(case.original.input), *(str(v.input) for v in case.variants if v.order)]
        original, *others = (next(space.read(text), None) for text in texts)
        outside += (original is None) + others.count(None)
        if original is not None:
            counts[phase] += 1
            meters.setdefault(phase, Meter(space)).add(original, [r for r in others if r is not None])
    return _Reached(one.full_name, outside, {p: (counts[p], m.result()) for p, m in sorted(meters.items())})


GRAMMAR = Words(
    {
        "list": list_grammars,
        "sample": sample,
        "check": check,
        "coverage": coverage,
        "format": prints_page("grammars", "grammar"),
    },
    "list",
)
