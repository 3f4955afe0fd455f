"""Differences of scores between groups, as lines of text; shown where a task's answers are amounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.record.sections import Difference, Scores
from auditor.report import words
from auditor.report.document import Section, noted

TITLE = "Scores: how they were compared"
COLUMNS = (
    "Direction",
    "Model",
    "Difference",
    "Same prompt",
    "Placebo",
    "p",
    "Texts",
    "Verdict",
)
RIGHT = frozenset({"Texts", "p"})
MAX_ROWS = 24  # of rows that show nothing
FEW_ROWS = 5  # where no row had enough seeds for a test


def build(record: RunRecord, names: Mapping[tuple[str, str], str]) -> Section | None:
    """Lay out the section, or None where no scores were compared.

    Parameters
    ----------
    record : mapping
        The run record.
    names : mapping of (str, str) to str
        (model, format) → what its column is called elsewhere.
    """
    section = record.scores
    if not section:
        return None
    unit = f" {section.unit}" if section.unit else ""
    notes = [_single(section)]
    for model, apart in section.noise.items():
        if apart is not None:
            notes.append(
                f"{model}: two answers to one prompt lie {amount(apart, sign=False)}{unit} apart on average."
            )
    return Section(id="scores", title=TITLE, short="Scores", blocks=noted(notes, []))


def ordered(rows: Sequence[Difference]) -> list[Difference]:
    """Rows that show something first, then the largest differences; the rest stay in the record."""
    ranked = sorted(
        rows,
        key=lambda r: (
            _RANK.get(r.verdict, 4),
            1.0 if r.p_adjusted is None else r.p_adjusted,
            -abs(r.value),
            r.directions,
        ),
    )
    tested = [r for r in ranked if r.verdict != "not_tested"]
    ranked = tested or ranked[:FEW_ROWS]
    shown = sum(r.verdict in ("shown", "bounded") for r in ranked)
    return ranked[: shown + MAX_ROWS]


_RANK = {"shown": 0, "shown_for_words": 1, "bounded": 2, "not_determined": 3, "not_tested": 4}


def line(row: Difference, names: Mapping[tuple[str, str], str]) -> tuple[str, ...]:
    """One row of the table."""
    what = words.direction(row.directions) if row.directions else words.attributes(row.attributes)
    return (
        what,
        names.get((row.model, row.format), row.model),
        difference(row),
        "–" if row.noise is None else amount(row.noise, sign=False),
        "–" if row.placebo is None else amount(row.placebo),
        "–" if row.p_adjusted is None else f"{row.p_adjusted:.2g}",
        words.count(row.n),
        words.verdict(row.verdict),
    )


def difference(row: Difference) -> str:
    """A difference with its interval."""
    if not row.n:
        return "not measured"
    if row.low is None or row.high is None:
        return f"{amount(row.value)} (the same on every text)"
    return f"{amount(row.value)} ({amount(row.low)} to {amount(row.high)})"


def amount(value: float, *, sign: bool = True) -> str:
    """An amount with thousands separators and, if wanted, its sign."""
    from auditor.measure.scores import amount as plain

    text = plain(value)
    return f"+{text}" if sign and value > 0 and text != "0" else text


def _single(section: Scores) -> str:
    tolerance = section.tolerance
    beyond = (
        "by more than any two answers to one of the two prompts differ from each other"
        if tolerance is None
        else f"by more than {amount(tolerance, sign=False)}"
    )
    return f"In the rates above, a score counts as changed where the means of the answers differ {beyond}."
