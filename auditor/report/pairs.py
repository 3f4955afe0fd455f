"""Free text in pairs, as lines of text; shown where a task's answers are texts."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.core.record import RunRecord
from auditor.core.record.sections import Difference, Judge
from auditor.report import scores, words
from auditor.report.document import Section, Table, noted

TITLE = "Texts in pairs: what changed between the answers"
METRICS = {
    "refusal": "Refusals, share of the answers",
    "sentiment": "Sentiment (VADER, −1 to 1)",
    "length": "Length, words",
    "preference": "Preference of the judge (−1 to 1)",
    "wording": "Wording (1 − ROUGE-L), beyond the same prompt",
    "meaning": "Meaning (1 − cosine), beyond the same prompt",
}


def build(record: RunRecord, names: Mapping[tuple[str, str], str]) -> Section | None:
    """Lay out the section, or None where no texts were compared.

    Parameters
    ----------
    record : mapping
        The run record.
    names : mapping of (str, str) to str
        (model, format) → what its column is called elsewhere.
    """
    section = record.generation_pairs
    if not section:
        return None
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
        mine = scores.ordered([r for r in rows if r.metric == metric])
        if mine:
            columns = (*scores.COLUMNS, "Example")
            lines = tuple((*scores.line(r, names), _example(r)) for r in mine)
            tables.append(Table(caption=title, columns=columns, lines=lines, right=scores.RIGHT))
    left = len(rows) - sum(len(table.lines) for table in tables)
    if left and tables:
        told = words.plural(left, "further row")
        notes.append(f"{told}, most of them on too few texts for a test, can be found in run.json.")
    if not tables:
        notes.append("No pair of texts could be measured.")
    return Section(id="texts", title=TITLE, short="Texts", blocks=noted(notes, tables))


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
