"""``audit grammar``: sample, measure the coverage of, and check grammars."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import invoke, say
from auditor.cli.options import option
from auditor.core.counting import plural
from auditor.core.types import names

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True
)
GrammarFile = Annotated[
    str, typer.Argument(metavar="GRAMMAR", help="A shipped grammar NAME[:VIEW], or a file (.yaml, .cfg).")
]


@app.command("list")
def list_grammars(format: common.Format = "terminal") -> int:
    """List the grammars that come with the tool, with their views."""
    from auditor.perturb import grammar

    common.check_format(format)
    rows: list[dict[str, Any]] = []
    for name in grammar.available():
        one = grammar.load(name)
        rows.append(
            {"name": name, "task": one.task, "attributes": list(one.attributes), "views": list(one.views)}
        )
    if format == "json":
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    for row in rows:
        say(f"{row['name']:<14}attributes: {', '.join(row['attributes'])}")
        if row["views"]:
            say(f"{'':<14}views: {', '.join(row['views'])}")
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


def _lines(case: Any) -> tuple[str, str, str]:
    [variant] = case.variants
    return (*_bracketed(case.original.input, variant.edits), "")


def _bracketed(text: str, edits: Any) -> tuple[str, str]:
    before, after, at = "", "", 0
    for edit in edits:
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
            "sizes": sizes,
        }
        sys.stdout.write(json.dumps(record, indent=2) + "\n")
        return 1 if problems else 0
    for problem in problems:
        say(f"{one.where(problem.line)}: {problem.message}")
    for name, size in sizes.items():
        count = "too large to count" if size["sentences"] is None else f"{size['sentences']:,}"
        say(
            f"{name}: {size['rules']} rules, {size['alternatives']} alternatives, {size['terminals']} terminals; "
            f"{count} distinct sentences ({size['derivations']:,} derivations)"
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
    record = _of_run(folder) if folder.is_dir() else _of_grammar(file, n, seed)
    if format == "json":
        sys.stdout.write(json.dumps(record, indent=2) + "\n")
        return 0
    say(f"{'phase':<8}{'cases':>8}{'terminals':>22}{'sensitive pairs':>22}")
    for phase, row in record["phases"].items():
        say(
            f"{phase:<8}{row['cases']:>8,}"
            f"{_share(row['terminals_covered'], row['terminals']):>22}"
            f"{_share(row['pairs_covered'], row['pairs']):>22}"
        )
        if row["unseen"]:
            more = f" and {len(row['unseen']) - 8} more" if len(row["unseen"]) > 8 else ""
            say(f"  not reached: {'; '.join(row['unseen'][:8])}{more}")
    if record["outside"]:
        say(f"Not sentences of this grammar: {plural(record['outside'], 'text')}.")
    return 0


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)" if whole else "none"


def _of_grammar(name: str, n: int, seed: int) -> dict[str, Any]:
    from random import Random

    from auditor.perturb.grammar.suite import GrammarSuite

    suite = GrammarSuite(grammar=name, generation="rand", cases=n, pairs=True, seed=seed)
    made = 0
    while cases := suite.ask(1000, Random(0)):
        made += len(cases)
    row = suite.meters["iid"].result().as_record() | {"cases": made}
    return {"grammar": suite.grammar.full_name, "outside": 0, "phases": {"rand": row}}


def _of_run(path: Path) -> dict[str, Any]:
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
    return {
        "grammar": one.full_name,
        "outside": outside,
        "phases": {p: m.result().as_record() | {"cases": counts[p]} for p, m in sorted(meters.items())},
    }


@app.command("format")
def describe() -> int:
    """Describe grammar files field by field."""
    from auditor.core import data

    sys.stdout.write(data.path("grammars", "README.md").read_text(encoding="utf-8"))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code; without a word after it, ``list``."""
    return invoke(app, "grammar", argv or ["list"])
