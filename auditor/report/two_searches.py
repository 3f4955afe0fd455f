"""Two searches over rows side by side. From plain data; see `auditor.tables.tabular_compare`."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.measure.compared import RowsComparison, ScoreChange
from auditor.report import tabular, words
from auditor.report.document import Document, Section, Table, Text, beside, noted

Lines = list[Sequence[str]]
SIGNS = {
    "worse": "▲ worse",
    "better": "▼ better",
    "same": "= the same",
    "unclear": "? no difference shown",
    "untested": "– not tested",
}
ORDER = {name: i for i, name in enumerate(SIGNS)}
SCORES = ("Change", "Score", "Columns", "Before", "After", "Difference", "Rows", "p, corrected")
SETS = ("Changed together", "Before", "After", "No smaller set does, before", "after")
ENTRIES = ("", "What", "Before", "After")
MEANING = (
    "Worse and better: more or fewer rows whose label changes. Where both runs judged the same rows, by a test of "
    "these rows below 5 % after Holm's correction; elsewhere where the two intervals do not overlap. No difference "
    "shown is about the data."
)
SLICES = (
    "A run keeps the slices with the highest rates only: one that is gone may have made room for others, and --fail-on "
    "new does not count them."
)
TITLES = {"minimal set": "Minimal sets of columns", "slice": "Slices", "finding": "Findings shown"}


def summary(comparison: RowsComparison) -> str:
    """Counts, in one sentence."""
    changes = [s.change for s in comparison.scores]
    told = [f"{changes.count(name)} {SIGNS[name][2:]}" for name in SIGNS if name in changes]
    fates = [e.fate for e in comparison.entries if e.kind == "finding"]
    n = len(comparison.plans)
    return (
        f"{words.plural(n, 'setting')} {'differs' if n == 1 else 'differ'}. "
        f"{words.plural(len(changes), 'score')}{': ' + ', '.join(told) if told else ''}. Findings shown: "
        f"{fates.count('new')} new, {fates.count('gone')} gone, {fates.count('kept')} in both."
    )


def build(comparison: RowsComparison) -> Document:
    """Lay the comparison out."""
    parts: list[tuple[str, str, tuple[str, ...], Lines, list[str]]] = [
        ("scores", "Scores", SCORES, _scores(comparison), _tests(comparison))
    ]
    note = ["A description of the rows that each run looked at first; nothing is tested here."]
    parts.append(("sets", "Sets of protected columns", SETS, _sets(comparison), note))
    for kind, title in TITLES.items():
        cells: Lines = [(e.fate, e.what, e.before or "–", e.after or "–") for e in comparison.entries if e.kind == kind]
        parts.append((kind.replace(" ", "-"), title, ENTRIES, cells, [SLICES] if kind == "slice" else []))
    made = [
        Section(
            id=id,
            title=title,
            short=title,
            blocks=noted(told, [Table(caption=title, columns=columns, lines=tuple(map(tuple, cells)))]),
        )
        for id, title, columns, cells, told in parts
        if cells
    ]
    cases = Section(id="cases", title="Cases whose label changes", short="Cases", blocks=(Text(_cases(comparison)),))
    return beside(comparison, summary(comparison), [*made, cases])


def _scores(comparison: RowsComparison) -> Lines:
    return [
        (
            SIGNS[s.change],
            f"{tabular.SCORES.get(s.name, s.name)}, {s.population}",
            ", ".join(s.columns),
            words.percent(s.before, 2),
            words.percent(s.after, 2),
            _points(s),
            f"{s.n_after:,}" if s.n_before == s.n_after else f"{s.n_before:,} and {s.n_after:,}",
            s.reason or _p(s.p_adjusted),
        )
        for s in sorted(comparison.scores, key=lambda s: ORDER[s.change])
    ]


def _p(value: float | None) -> str:
    return "–" if value is None else "<0.0001" if value < 0.0001 else f"{value:.2g}"


def _points(score: ScoreChange) -> str:
    if score.difference is None:
        return "not measured"
    told = f"{100 * score.difference:+.2f} points"
    if score.low is not None and score.high is not None:
        told += f" (95 %: {100 * score.low:+.2f} to {100 * score.high:+.2f})"
    return told.replace("-", "−")


def _tests(comparison: RowsComparison) -> list[str]:
    names = sorted({s.test for s in comparison.scores if s.test})
    told = [f"Compared by: {'; '.join(names)}. {MEANING}"] if names else []
    for s in comparison.scores:
        if s.only_before is not None:
            told.append(
                f"{tabular.SCORES.get(s.name, s.name)}, {s.population}: of {s.n_after:,} rows that both "
                f"runs judged, the label changes in {s.only_before:,} before only and in {s.only_after:,} "
                "after only."
            )
    return told


def _sets(comparison: RowsComparison) -> Lines:
    return [
        (" + ".join(s.columns), *(words.percent(x, 2) for x in (s.before, s.after, s.hidden_before, s.hidden_after)))
        for s in comparison.sets
    ]


def _cases(comparison: RowsComparison) -> str:
    found = comparison.cases
    told = f"{found.before:,} before and {found.after:,} after"
    if found.both is None:
        return f"{told}; which of them are the same is not known: {found.reason}."
    return f"Of those that the run folders keep: {told}, {found.both:,} of them in both."
