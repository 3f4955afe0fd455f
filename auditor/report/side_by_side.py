"""Two runs, two searches over rows, two tables of outcomes beside each other; see `auditor.measure.comparison`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.core.record import Claim, RunRecord
from auditor.core.types import SHOWN
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.measure.run_changes import Comparison, RowsComparison, TablesComparison, Tested
from auditor.report import claimed, ll144_words, matrix, tabular_report, words
from auditor.report.document import Cell, Document, Line, Section, section, sheet, table

HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
SIGNS = {
    "worse": "▲ worse",
    "better": "▼ better",
    "same": "= the same",
    "unclear": "? no difference shown",
    "untested": "– not tested",
}
ORDER = {name: n for n, name in enumerate(SIGNS)}
FATES = {"new": "new", "gone": "gone", "kept": "in both"}
ENTRIES = {"minimal set": "Minimal sets of columns", "slice": "Slices", "finding": "Findings shown"}


def _document(
    compared: Comparison | RowsComparison | TablesComparison,
    summary: str,
    sections: Sequence[Section],
    what: str = "Runs",
) -> Document:
    """What differs in the plans, of hashes the first digits, then ``sections``."""
    differing = compared.settings if isinstance(compared, TablesComparison) else compared.plans
    lines = [(p.name, *(HASH.sub(r"\1…", text) for text in (p.before, p.after))) for p in differing]
    same = [] if lines else ["The plans and their inputs are the same."]
    plans = table("What was set otherwise", "Setting | Before | After", lines)
    return Document(
        title=f"{what} {compared.before} before, {compared.after} after",
        meta=summary,
        banners=tuple(note[:1].upper() + note[1:] for note in compared.notes),
        sections=(section("plans", "Plans", same, plans), *sections),
    )


def _differ(comparison: Comparison | RowsComparison) -> str:
    """How many settings differ."""
    n = len(comparison.plans)
    return f"{words.plural(n, 'setting')} {words.verb(n, 'differs', 'differ')}."


def _fates(fates: Sequence[str]) -> str:
    return f"Findings shown: {', '.join(f'{fates.count(fate)} {name}' for fate, name in FATES.items())}."


def _points(change: Tested, spec: str, lead: str = "") -> str:
    if change.difference is None:
        return "not measured"
    return words.span(change.difference, change.low, change.high, spec, scale=100, unit=" points", lead=lead)


# -- two runs over texts ----------------------------------------------------------------------------------


def runs(comparison: Comparison, records: Sequence[RunRecord] = ()) -> Document:
    """Two runs over texts; with the records of both, their net differences side by side."""
    tests = sorted({r.test for r in comparison.rates if r.test})
    meaning = [f"Test: {'; '.join(tests)}. {words.text('compared_rates')}"] if tests else []
    columns = "Change | Model | Changed | Before | After | Difference (95 %) | Texts | p, corrected"
    shown = [(f.fate, f.key, _ids(f.before), _ids(f.after), f.note) for f in comparison.findings]
    sections = [
        *_claims(records),
        *sheet("rates", "How often answers changed", meaning, columns, _rates(comparison)),
        *sheet("findings", "Findings shown", [], " | Finding | Before | After | Note", shown),
    ]
    return _document(comparison, summary(comparison), sections)


def summary(comparison: Comparison) -> str:
    """Counts, in one sentence."""
    changes = [r.change for r in comparison.rates]
    return (
        f"{_differ(comparison)} Of {words.plural(len(changes), 'rate')}: {changes.count('worse')} worse, "
        f"{changes.count('better')} better, {changes.count('unclear')} without a difference shown, "
        f"{changes.count('untested')} not tested. {_fates([f.fate for f in comparison.findings])}"
    )


def _claims(records: Sequence[RunRecord]) -> list[Section]:
    """Net differences of both runs: pairs of groups, and whatever was shown in one of them."""
    if len(records) != 2:
        return []
    sides = [{k: c for k, c in claimed.index(r).items() if c.family == "net" and c.texts >= MIN_TEXTS} for r in records]
    lines: list[Line] = []
    for key in dict.fromkeys((*sides[0], *sides[1])):
        both = [side.get(key) for side in sides]
        one = both[0] or sides[1][key]
        if any(c is not None and (c.verdict in SHOWN or c.groups[-1:] != (OTHERS,)) for c in both):
            place = f"{one.model}, {one.format}" if one.format not in ("", "bare") else one.model
            lines.append((one.attribute, matrix.pair(records[1], one), place, *map(_net, both)))
    columns = "Attribute | Groups | Model | Before | After"
    return sheet("net", "Net differences, before and after", [words.text("compared_claims")], columns, lines)


def _net(claim: Claim | None) -> Cell:
    if claim is None or claim.verdict == "not_tested":
        return Cell(text="–", sub="not compared")
    return matrix.cell(claim, sub=words.plural(claim.texts, "text"))


def _rates(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    for r in sorted(comparison.rates, key=lambda r: ORDER[r.change]):
        yield (
            SIGNS[r.change],
            r.model + (f", {r.format}" if r.format else ""),
            words.attributes(r.attributes),
            words.percent(r.before),
            words.percent(r.after),
            _points(r, "+.1f"),
            str(r.n_after) if r.n_before == r.n_after else f"{r.n_before} and {r.n_after}",
            r.reason if r.p_adjusted is None else words.number(r.p_adjusted),
        )


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(ids[:4]) + (f" and {len(ids) - 4} more" if len(ids) > 4 else "") if ids else "–"


# -- two searches over rows -------------------------------------------------------------------------------


def searches(comparison: RowsComparison) -> Document:
    """Two searches over rows."""
    columns = "Change | Score | Columns | Before | After | Difference | Rows | p, corrected"
    sections = sheet("scores", "Scores", _tests(comparison), columns, _scores(comparison))
    sets = [
        (" + ".join(s.columns), *(words.percent(x, 2) for x in (s.before, s.after, s.hidden_before, s.hidden_after)))
        for s in comparison.sets
    ]
    note = ["A description of the rows that each run looked at first; nothing is tested here."]
    columns = "Changed together | Before | After | No smaller set does, before | after"
    sections += sheet("sets", "Sets of protected columns", note, columns, sets)
    for kind, title in ENTRIES.items():
        mine = [(e.fate, e.what, e.before or "–", e.after or "–") for e in comparison.entries if e.kind == kind]
        note = [words.text("compared_slices")] if kind == "slice" else []
        sections += sheet(kind.replace(" ", "-"), title, note, " | What | Before | After", mine)
    cases = section("cases", "Cases whose label changes", _cases(comparison), short="Cases")
    return _document(comparison, rows_summary(comparison), [*sections, cases])


def rows_summary(comparison: RowsComparison) -> str:
    """Counts, in one sentence."""
    changes = [s.change for s in comparison.scores]
    counts = ", ".join(f"{changes.count(name)} {sign[2:]}" for name, sign in SIGNS.items() if name in changes)
    fates = [e.fate for e in comparison.entries if e.kind == "finding"]
    scores = words.plural(len(changes), "score")
    return f"{_differ(comparison)} {scores}{': ' + counts if counts else ''}. {_fates(fates)}"


def _scores(comparison: RowsComparison) -> Iterator[tuple[str, ...]]:
    for s in sorted(comparison.scores, key=lambda s: ORDER[s.change]):
        yield (
            SIGNS[s.change],
            f"{tabular_report.SCORES.get(s.name, s.name)}, {s.population}",
            ", ".join(s.columns),
            words.percent(s.before, 2),
            words.percent(s.after, 2),
            _points(s, "+.2f", "95 %: "),
            f"{s.n_after:,}" if s.n_before == s.n_after else f"{s.n_before:,} and {s.n_after:,}",
            s.reason or words.p_value(s.p_adjusted),
        )


def _tests(comparison: RowsComparison) -> list[str]:
    tests = sorted({s.test for s in comparison.scores if s.test})
    out = [f"Compared by: {'; '.join(tests)}. {words.text('compared_scores')}"] if tests else []
    for s in comparison.scores:
        if s.only_before is not None:
            out.append(
                f"{tabular_report.SCORES.get(s.name, s.name)}, {s.population}: of {s.n_after:,} rows that both "
                f"runs judged, the label changes in {s.only_before:,} before only and in {s.only_after:,} "
                "after only."
            )
    return out


def _cases(comparison: RowsComparison) -> str:
    cases = comparison.cases
    counts = f"{cases.before:,} before and {cases.after:,} after"
    if cases.both is None:
        return f"{counts}; which of them are the same is not known: {cases.reason}."
    return f"Of those that the run folders keep: {counts}, {cases.both:,} of them in both."


# -- two tables of outcomes -------------------------------------------------------------------------------


def tables(comparison: TablesComparison) -> Document:
    """Two tables of recorded outcomes."""
    by_title: dict[str, list[tuple[str, ...]]] = {}
    for row in comparison.rows:
        name = ll144_words.TITLES[row.table]
        line = (
            row.category,
            _share_of(row.n_before, row.x_before, row.rate_before),
            _share_of(row.n_after, row.x_after, row.rate_after),
            row.ratio_text_before or "–",
            row.ratio_text_after or "–",
            ll144_words.p_value(row.p_value),
            ll144_words.p_value(row.p_adjusted),
        )
        by_title.setdefault(f"{row.group}: {name}" if row.group else name, []).append(line)
    columns = "Category | #Before | #After | #Ratio before | #after | #p | #p (Holm)"
    sections = []
    for n, (title, lines) in enumerate(by_title.items()):
        sections += sheet(f"tables-{n}", title, [] if n else [words.text("compared_tables")], columns, lines)
    return _document(comparison, "", sections, what="Tables")


def _share_of(n: int | None, x: int | None, share: float | None) -> str:
    if n is None:
        return "nobody"
    counts = f"({words.count(x)}/{words.count(n)})"
    return counts if share is None else f"{words.percent(share)} {counts}"
