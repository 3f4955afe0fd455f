"""What a grammar generated and how far it reached, as lines of text; shown where cases were generated."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.core.record import RunRecord
from auditor.core.record.sections import Generation, Phase, Tolerance
from auditor.report import words
from auditor.report.document import Section, Table, noted

TITLE = "Generated cases"
PHASES = {"rand": "drawn", "prob": "directed", "bandit": "directed (bandit)"}
COLUMNS = ("Model", "Cases by", "Cases", "With a change", "Unjudged", "Variants", "Changed")
COVERAGE = ("Covered by", "Terminals", "Pairs of sensitive terminals")
SCORES = ("Model", "Beyond ε", "Cases", "Share of cases")
RIGHT = frozenset({"Cases", "With a change", "Unjudged", "Variants", "Changed", "Beyond ε"})
SAMPLINGS = {
    "iid": "drawn by the grammar's weights",
    "directed": "directed by verdicts",
    "uniform": "drawn uniformly from the sentences",
}


def build(record: RunRecord, names: Mapping[tuple[str, str], str]) -> Section | None:
    """Lay out the section, or None where no case was generated and no probability compared."""
    told, compared_ = record.generation, record.probability
    if not told and not compared_:
        return None
    tables = []
    notes = []
    if told:
        notes += [_what(told), *_bounds(told)]
        tables += [
            Table(
                caption="How the cases came about, and how many had a change",
                columns=COLUMNS,
                lines=tuple(_phase(row, told) for row in told.phases),
                right=RIGHT,
            ),
            Table(caption="How much of the grammar was covered", columns=COVERAGE, lines=_coverage(told)),
        ]
    if compared_:
        lines = tuple(_tolerance(row, names) for row in compared_.rows)
        tables.append(Table(caption="Cases beyond each tolerance", columns=SCORES, lines=lines, right=RIGHT))
    return Section(
        id="generation",
        title=TITLE if told else "Differences of the score",
        short="Generation" if told else "Differences",
        blocks=noted(notes, tables),
    )


def _what(told: Generation) -> str:
    sentences, derivations = told.sentences, told.derivations
    size = "" if sentences is None else f" with {words.count(sentences)} distinct sentences"
    if derivations is not None and derivations != sentences:
        size += f" in {words.count(derivations)} derivations"
    return (
        f"Cases come from the grammar {told.grammar}{size}. Drawn cases do not depend on any "
        "answer; directed ones follow the terminals that changes went with before, and enter no rate. Each case "
        "is counted once."
    )


def _bounds(told: Generation) -> list[str]:
    """One sentence for each model: at most this share of all sentences."""
    out = []
    for model, bound in told.bound.items():
        out.append(
            f"{model}: at {words.confidence(bound.level)} confidence, at most "
            f"{words.percent(bound.share_at_most)} of the {words.count(bound.population)} sentences of this "
            f"grammar have a variant with a changed answer ({words.count(bound.found)} of "
            f"{words.count(bound.drawn)} drawn without replacement; those without a judgement count as changed)."
        )
    return out


def _phase(row: Phase, told: Generation) -> tuple[str, ...]:
    sampling = row.sampling
    if sampling == "iid" and told.generation == "uniform":
        sampling = "uniform"
    way = SAMPLINGS.get(sampling, PHASES.get(row.phase, row.phase))
    return (
        row.model,
        way,
        words.count(row.cases),
        words.count(row.violating_cases),
        words.count(row.unjudged_cases),
        words.count(row.tests),
        words.count(row.violations),
    )


def _coverage(told: Generation) -> tuple[tuple[str, ...], ...]:
    lines = []
    for phase, row in told.coverage.items():
        parts = (
            (row.terminals_covered, row.terminals, row.terminal_share),
            (row.pairs_covered, row.pairs, row.pair_share),
        )
        cells = [
            f"{words.count(n)} of {words.count(of)}" + ("" if share is None else f" ({words.percent(share)})")
            for n, of, share in parts
        ]
        lines.append((f"{PHASES.get(phase, phase)} cases", *cells))
    return tuple(lines)


def _tolerance(row: Tolerance, names: Mapping[tuple[str, str], str]) -> tuple[str, ...]:
    return (
        names.get((row.model, row.format), row.model),
        f"{row.epsilon:g}",
        words.count(row.cases),
        words.interval(row.rate),
    )
