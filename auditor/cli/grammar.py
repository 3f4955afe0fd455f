"""``audit grammar``: sample, measure the coverage of, and check grammars."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from auditor.cli import common
from auditor.cli.common import invoke, say
from auditor.cli.options import option
from auditor.core.counting import plural
from auditor.core.types import Case, Edit, names

if TYPE_CHECKING:
    from auditor.perturb.grammar.coverage import Coverage

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
GrammarFile = Annotated[
    str, typer.Argument(metavar="GRAMMAR", help="A shipped grammar NAME[:VIEW], or a file (.yaml, .cfg).")
]


@app.command("list")
def list_grammars(format: common.Format = "terminal") -> int:
    """List the grammars that come with the tool, with their views."""
    from auditor.perturb import grammar

    common.check_format(format)
    found = {name: grammar.load(name) for name in grammar.available()}
    if format == "json":
        rows = [
            {"name": name, "task": one.task, "attributes": list(one.attributes), "views": list(one.views)}
            for name, one in found.items()
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    for name, one in found.items():
        say(f"{name:<14}attributes: {', '.join(one.attributes)}")
        if one.views:
            say(f"{'':<14}views: {', '.join(one.views)}")
    return 0


@app.command("sample")
def sample(
    file: GrammarFile,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many cases.")] = 10,
    generation: Annotated[str, option("generation", help="rand, or uniform over sentences.")] = "rand",
    seed: Annotated[int, option("seed")] = 7,
    attributes: Annotated[str | None, option("attributes")] = None,
    format: common.Format = "terminal",
) -> int:
    """Print distinct sentences and one counterpart each, with what differs in brackets; no model is called."""
    from random import Random

    from auditor.core.errors import ConfigError
    from auditor.perturb.grammar.suite import GrammarSuite

    common.check_format(format)
    if generation not in ("rand", "uniform"):
        raise ConfigError(f"--generation must be rand or uniform here; got {generation!r}.")
    suite = GrammarSuite(
        grammar=file,
        generation=generation,
        cases=n,
        pairs=True,
        attributes=None if attributes is None else names(attributes),
        seed=seed,
    )
    rng, made = Random(0), 0
    while cases := suite.ask(1000, rng):
        for case in cases:
            made += 1
            if format == "json":
                sys.stdout.write(json.dumps(dataclasses.asdict(case)) + "\n")
            else:
                say(*_lines(case))
    if made < n:
        print(f"{plural(made, 'distinct case')}; no further ones turned up.", file=sys.stderr)
    return 0


def _lines(case: Case) -> tuple[str, str, str]:
    [variant] = case.variants
    return (*_bracketed(str(case.original.input), variant.edits), "")


def _bracketed(text: str, edits: Sequence[Edit]) -> tuple[str, str]:
    before, after, at = "", "", 0
    for edit in edits:
        assert not isinstance(edit.where, str)
        start, end = edit.where
        before += f"{text[at:start]}[{edit.source}]"
        after += f"{text[at:start]}[{edit.target}]"
        at = end
    return before + text[at:], after + text[at:]


@app.command("check")
def check(file: GrammarFile, format: common.Format = "terminal") -> int:
    """Look for mistakes, and print the exact number of distinct sentences. Exit 1 where something is found."""
    from auditor.core.errors import DataFileError
    from auditor.perturb import grammar
    from auditor.perturb.grammar.load import focus
    from auditor.perturb.grammar.nodes import HELP
    from auditor.perturb.grammar.space import summary

    common.check_format(format)
    one = grammar.parse(file)
    problems = grammar.check(one)
    fatal = [p for p in problems if p.fatal]
    if fatal:
        for problem in fatal[1:]:
            say(f"{one.where(problem.line)}: {problem.message}", to=sys.stderr)
        raise DataFileError(f"{one.where(fatal[0].line)}: {fatal[0].message}. {HELP}")
    sizes = {one.full_name: summary(grammar.space(one))}
    if not one.view:
        for name in one.views:
            seen = focus(one, name)
            sizes[seen.full_name] = summary(grammar.space(seen))
    if format == "json":
        record = {
            "problems": [{"line": p.line, "message": p.message} for p in problems],
            "attributes": list(one.attributes),
            "labels": list(one.labels),
            "sizes": {name: dataclasses.asdict(size) for name, size in sizes.items()},
        }
        sys.stdout.write(json.dumps(record, indent=2) + "\n")
        return 1 if problems else 0
    for problem in problems:
        say(f"{one.where(problem.line)}: {problem.message}")
    for name, size in sizes.items():
        count = "too large to count" if size.sentences is None else f"{size.sentences:,}"
        say(
            f"{name}: {size.rules} rules, {size.alternatives} alternatives, {size.terminals} terminals; "
            f"{count} distinct sentences ({size.derivations:,} derivations)"
        )
    say(f"Attributes: {', '.join(one.attributes) or 'none'}. Labels: {', '.join(one.labels) or 'none'}.")
    return 1 if problems else 0


@app.command("coverage")
def coverage(
    file: Annotated[str, typer.Argument(metavar="GRAMMAR|RUN", help="A grammar, or a run folder.")],
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="Cases to draw, for a grammar.")] = 3000,
    seed: Annotated[int, option("seed")] = 7,
    format: common.Format = "terminal",
) -> int:
    """Count the terminals, and the pairs of sensitive terminals, that a run reached or RAND would reach."""
    common.check_format(format)
    folder = Path(file)
    if not folder.is_dir() and (Path("reports") / file).is_dir():
        folder = Path("reports") / file
    found = _of_run(folder) if folder.is_dir() else _of_grammar(file, n, seed)
    if format == "json":
        phases = {phase: reached.as_record() | {"cases": n} for phase, (n, reached) in found.phases.items()}
        record = {"grammar": found.grammar, "outside": found.outside, "phases": phases}
        sys.stdout.write(json.dumps(record, indent=2) + "\n")
        return 0
    say(f"{'phase':<8}{'cases':>8}{'terminals':>22}{'sensitive pairs':>22}")
    for phase, (cases, reached) in found.phases.items():
        say(
            f"{phase:<8}{cases:>8,}"
            f"{_share(reached.terminals_covered, reached.terminals):>22}"
            f"{_share(reached.pairs_covered, reached.pairs):>22}"
        )
        if reached.unseen:
            more = f" and {len(reached.unseen) - 8} more" if len(reached.unseen) > 8 else ""
            say(f"  not reached: {'; '.join(reached.unseen[:8])}{more}")
    if found.outside:
        say(f"Not sentences of this grammar: {plural(found.outside, 'text')}.")
    return 0


class _Reached(NamedTuple):
    """What a run, or cases that RAND would draw, reached of a grammar."""

    grammar: str
    outside: int  # texts that are no sentences of it
    phases: dict[str, tuple[int, Coverage]]  # cases of each phase, and what they reached


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)" if whole else "none"


def _of_grammar(name: str, n: int, seed: int) -> _Reached:
    from random import Random

    from auditor.perturb.grammar.suite import GrammarSuite

    suite = GrammarSuite(grammar=name, generation="rand", cases=n, pairs=True, seed=seed)
    made = 0
    while cases := suite.ask(1000, Random(0)):
        made += len(cases)
    reached = suite.meters["iid"].result()
    return _Reached(suite.grammar.full_name, 0, {"rand": (made, reached)})


def _of_run(path: Path) -> _Reached:
    """Coverage from the cases of a run, each text read back with the run's grammar."""
    from auditor.core.errors import RunFolderError
    from auditor.perturb import grammar
    from auditor.perturb.grammar.coverage import Meter
    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    facts = folder.plan["inputs"].get("grammar")
    if facts is None:
        raise RunFolderError(f"{path}: the cases of this run were not generated by a grammar.")
    one = grammar.load(folder.plan["plan"].get("grammar") or facts["grammar"])
    if one.sha256 != facts["sha256"]:
        raise RunFolderError(f"{path}: the grammar {one.full_name} has changed since this run.")
    space = grammar.space(one)
    meters: dict[str, Meter] = {}
    directed = "bandit" if folder.plan["plan"].get("generation") == "bandit" else "prob"
    counts: dict[str, int] = {}
    outside = 0
    for case, _ in folder.cases():
        phase = directed if case.sampling == "directed" else "rand"
        texts = [str(case.original.input), *(str(v.input) for v in case.variants if v.order)]
        read = [next(space.read(text), None) for text in texts]
        outside += sum(r is None for r in read)
        if read[0] is None:
            continue
        counts[phase] = counts.get(phase, 0) + 1
        meters.setdefault(phase, Meter(space)).add(read[0], [r for r in read[1:] if r is not None])
    phases = {p: (counts[p], m.result()) for p, m in sorted(meters.items())}
    return _Reached(one.full_name, outside, phases)


@app.command("format")
def describe() -> int:
    """Describe grammar files field by field."""
    from auditor.core import data

    sys.stdout.write(data.path("grammars", "README.md").read_text(encoding="utf-8"))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code; without a word after it, ``list``."""
    return invoke(app, "grammar", argv or ["list"])
