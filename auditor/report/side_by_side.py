"""Two runs side by side; see `auditor.measure.comparison`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.core.record import RunRecord
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.measure.comparison import Comparison, Fate
from auditor.report import sections, words
from auditor.report.document import Cell, Document, Line, Section, section, sheet, table

HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
SIGNS = {
    "worse": "▲ worse",
    "better": "▼ better",
    "same": "= the same",
    "unclear": "? no difference shown",
    "untested": "– not tested",
}
FATES: dict[Fate, str] = {"new": "new", "gone": "gone", "kept": "in both"}
RATES = {"text": ("How often answers changed", "Model", "Texts"), "row": ("Scores", "Score", "Rows")}


def runs(comparison: Comparison, records: Sequence[RunRecord] = ()) -> Document:
    """Two runs; with the records of both over texts, their net differences side by side."""
    lines = [(p.name, *(HASH.sub(r"\1…", text) for text in (p.before, p.after))) for p in comparison.plans]
    same = [] if lines else ["The plans and their inputs are the same."]
    plans = table("What was set otherwise", "Setting | Before | After", lines)
    tests, (title, what, unit) = sorted({r.test for r in comparison.rates if r.test}), RATES[comparison.unit]
    meaning = [f"Test: {'; '.join(tests)}. {words.text(f'compared_{comparison.unit}s')}"] if tests else []
    columns = f"Change | {what} | Changed | Before | After | Difference (95 %) | {unit} | p, corrected"
    shown = [(f.fate, f.key, _ids(f.before), _ids(f.after), f.note) for f in comparison.findings]
    return Document(
        title=f"Runs {comparison.before} before, {comparison.after} after",
        meta=summary(comparison),
        banners=tuple(map(words.sentence, comparison.notes)),
        sections=(
            section("plans", "Plans", same, plans),
            *_claims(records),
            *sheet("rates", title, meaning, columns, _rates(comparison)),
            *sheet("findings", "Findings shown", [], " | Finding | Before | After | Note", shown),
        ),
    )


def summary(comparison: Comparison) -> str:
    """Counts, in one sentence each for plans, rates and findings."""
    n, changes = len(comparison.plans), [r.change for r in comparison.rates]
    fates = [f.fate for f in comparison.findings]
    return (
        f"{words.plural(n, 'setting')} {words.verb(n, 'differs', 'differ')}. Of {words.plural(len(changes), 'rate')}: "
        f"{changes.count('worse')} worse, {changes.count('better')} better, {changes.count('unclear')} without a "
        f"difference shown, {changes.count('untested')} not tested. Findings shown: "
        f"{', '.join(f'{fates.count(fate)} {name}' for fate, name in FATES.items())}."
    )


def _claims(records: Sequence[RunRecord]) -> list[Section]:
    """Net differences of both runs: pairs of groups, and whatever was shown in one of them."""
    if len(records) != 2:
        return []
    net = [[c for c in r.claims or () if c.family == "net" and c.texts >= MIN_TEXTS] for r in records]
    sides = [{(c.attribute, frozenset(c.groups), c.label, c.model, c.format): c for c in claims} for claims in net]
    lines: list[Line] = []
    for key in dict.fromkeys((*sides[0], *sides[1])):
        both = [side.get(key) for side in sides]
        one = both[0] or sides[1][key]
        if any(c is not None and (c.verdict == "shown" or c.groups[-1:] != (OTHERS,)) for c in both):
            place = f"{one.model}, {one.format}" if one.format not in ("", "bare") else one.model
            nets = (
                Cell(text="–", sub="not compared")
                if c is None or c.verdict == "not_tested"
                else sections.cell(c, sub=words.plural(c.texts, "text"))
                for c in both
            )
            lines.append((one.attribute, sections.pair(records[1], one), place, *nets))
    columns = "Attribute | Groups | Model | Before | After"
    return sheet("net", "Net differences, before and after", [words.text("compared_claims")], columns, lines)


def _rates(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    digits = 1 if comparison.unit == "text" else 2
    for r in sorted(comparison.rates, key=lambda r: list(SIGNS).index(r.change)):
        moved = "not measured"
        if r.difference is not None:
            moved = words.span(r.difference, r.low, r.high, f"+.{digits}f", scale=100, unit=" points")
        yield (
            SIGNS[r.change],
            ", ".join(filter(None, (r.model, r.format))),
            words.attributes(r.attributes),
            *(words.percent(share, digits) for share in (r.before, r.after)),
            moved,
            f"{r.n_after:,}" if r.n_before == r.n_after else f"{r.n_before:,} and {r.n_after:,}",
            r.reason if r.p_adjusted is None else words.number(r.p_adjusted),
        )


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(ids[:4]) + (f" and {len(ids) - 4} more" if len(ids) > 4 else "") if ids else "–"
