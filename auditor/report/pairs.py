"""Differences between groups, of scores and of texts in pairs; shown where answers are amounts or texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.record.sections import Difference, Judge, Scores
from auditor.report import words
from auditor.report.document import Block, Items, Section, Table, Text, noted

TITLE = "Texts in pairs: what changed between the answers"
APART = (
    "Can answers about two groups be told apart by their words, with those that name a group masked? A rule is learned "
    "from four fifths of the texts and tried on the others."
)
METRICS = {
    "refusal": "Refusals, share of the answers",
    "sentiment": "Sentiment (VADER, −1 to 1)",
    "length": "Length, words",
    "preference": "Preference of the judge (−1 to 1)",
    "wording": "Wording (1 − ROUGE-L), beyond the same prompt",
    "meaning": "Meaning (1 − cosine), beyond the same prompt",
}


def build(record: RunRecord, names: Mapping[tuple[str, str], str]) -> Section | None:
    """Lay out the section, or None where no texts were compared."""
    section, apart = record.generation_pairs, tuple(words.visible(one.said) for one in record.told_apart)
    parts: list[Block] = [Text(APART), Items(apart)] if apart else []
    if not section:
        return Section(id="texts", title=TITLE, short="Texts", blocks=tuple(parts)) if parts else None
    rows = section.rows
    notes = [
        "Each answer for a variant beside the answers for its original. Masked in both: "
        f"{section.masked}. Signed metrics: second group minus first, by direction. Wording and meaning: how much "
        "farther apart the answers to two prompts are than two answers to one. p: adjusted for all metrics and rows "
        "(Holm); the larger one of the tests against the model's own noise and against placebo edits.",
        "Sentiment, wording and meaning are measured by programs, not read by people; look at the examples.",
        *_judge(section.judge),
    ]
    tables = []
    for metric, title in METRICS.items():
        mine = ordered([r for r in rows if r.metric == metric])
        if mine:
            columns = (*COLUMNS, "Example")
            lines = tuple((*line(r, names), _example(r)) for r in mine)
            tables.append(Table(caption=title, columns=columns, lines=lines, right=RIGHT))
    left = len(rows) - sum(len(table.lines) for table in tables)
    if left and tables:
        told = words.plural(left, "further row")
        notes.append(f"{told}, most of them on too few texts for a test, can be found in run.json.")
    if not tables:
        notes.append("No pair of texts could be measured.")
    return Section(id="texts", title=TITLE, short="Texts", blocks=(*parts, *noted(notes, tables)))


def _example(row: Difference) -> str:
    return next(iter(row.exemplars), "–") if row.verdict == "shown" else "–"


def _judge(told: Judge) -> list[str]:
    """What is known of the judge itself."""
    if (controls := told.controls) is None:
        return []
    pairs = told.pairs
    first = ""
    if pairs.named:
        share = words.percent(pairs.first_named / pairs.named)
        first = f" It named the text that stood first in {share} of its choices."
    return [
        f"Judge {told.model}: of {words.plural(controls.n, 'control pair')} in which one text is worse by "
        f"construction, {words.count(controls.right)} were judged right in both orders, "
        f"{words.count(controls.wrong)} wrong, {words.count(controls.undecided)} undecided and "
        f"{words.count(controls.unreadable)} not readable. Of {words.plural(pairs.pairs, 'pair')} of the run, "
        f"{words.count(pairs.inconsistent)} moved with the order and count as ties.{first}"
        + ("" if told.trusted else " Too few were right: its preferences support no claim."),
        *_asked(told),
    ]


def _asked(told: Judge) -> list[str]:
    """How often the judge was asked, and what it cost; records of earlier versions say less."""
    if told.tokens_in is None:
        return []
    cost = ""
    if told.cost_usd != 0.0:
        cost = ", at a price that is not known" if told.cost_usd is None else f", for {told.cost_usd:.4f} USD"
    lost = f"; {words.count(told.failed)} got no answer" if told.failed else ""
    return [
        f"The judge was asked {words.plural(told.calls + told.cached, 'question')}, "
        f"{words.count(told.cached)} of them answered by the cache{lost}{cost}. The totals of the run include these."
    ]


SCORES_TITLE = "Scores: how they were compared"
COLUMNS = ("Direction", "Model", "Difference", "Same prompt", "Placebo", "p", "Texts", "Verdict")
RIGHT = frozenset({"Texts", "p"})
MAX_ROWS = 24  # of rows that show nothing
FEW_ROWS = 5  # where no row had enough seeds for a test


def of_scores(record: RunRecord, names: Mapping[tuple[str, str], str]) -> Section | None:
    """Lay out the section, or None where no scores were compared."""
    section = record.scores
    if not section:
        return None
    unit = f" {section.unit}" if section.unit else ""
    notes = [_single(section)]
    for model, apart in section.noise.items():
        if apart is not None:
            notes.append(f"{model}: two answers to one prompt lie {amount(apart, sign=False)}{unit} apart on average.")
    return Section(id="scores", title=SCORES_TITLE, short="Scores", blocks=noted(notes, []))


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
