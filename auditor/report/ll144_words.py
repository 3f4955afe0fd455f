"""Tables of Local Law 144 in words: what they rest on, what they come to, what they are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from auditor.core.record import RunRecord
from auditor.core.record.outcome_tables import Category, OtherMedian, Pool, TableFacts
from auditor.core.shown import plural
from auditor.report import words
from auditor.report.document import Cell

TITLES = {"sex": "Sex", "race_ethnicity": "Race/ethnicity", "intersectional": "Intersections"}
DONE = {
    "selection": ("Selection rate", "selected"),
    "scoring": ("Scoring rate", "above the median"),
    "classification": ("Selection rate", "put into the group"),
}


def pools(record: RunRecord) -> list[tuple[str, Pool]]:
    """The pools of a record with their titles, the whole first; rankings without the categories that have nobody."""
    outcomes = record.outcomes
    whole = "Everybody" if outcomes.groups else ""
    return [(whole if pool is outcomes else pool.group, _kept(record, pool)) for pool in outcomes.pools]


def _kept(record: RunRecord, pool: Pool) -> Pool:
    every = (pool.tables or {}).items()
    tables = {name: [r for r in rows if r.n or record.kind != "ranking"] for name, rows in every}
    return structs.replace(pool, tables=tables, table_facts=pool.table_facts or {})


def tables(pool: Pool, names: Iterable[str] = ()) -> Iterator[tuple[str, Sequence[Category], TableFacts]]:
    """(name, rows, facts) of each table of a pool; in the order of the record, if ``names`` do not say another."""
    rows, facts = pool.tables or {}, pool.table_facts or {}
    for name in names or rows:
        yield name, rows[name], facts[name]


def rate_name(record: RunRecord) -> str:
    """What the rates of a record are called."""
    return "First places" if record.kind == "ranking" else DONE[record.outcomes.mode][0]


def banner(record: RunRecord) -> str:
    """What the report is, first of all."""
    if record.kind == "ranking":
        return words.text("ll144_ranking")
    return words.text("ll144_test_data" if record.outcomes.data_kind == "test" else "ll144_draft")


def facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """What the figures rest on."""
    block, data = record.outcomes, record.data
    file = (("File", f"{data.file}, {data.rows:,} lines"), ("SHA-256 of the file", data.sha256))
    if record.kind == "ranking":
        return (
            ("Rankings", f"{data.rankings:,} counted, {data.left_out:,} left out by their run id"),
            ("Model", words.listing(data.models)),
            ("Answers that name nobody", f"{data.unread:,}"),
            *file,
        )
    unknown = f"{block.unknown_count:,} (sex {block.unknown_sex:,}, race/ethnicity {block.unknown_race_ethnicity:,})"
    median: tuple[tuple[str, str], ...] = ()
    if block.median is not None:
        who = {"known": "people in the tables", "all": "all scored people"}[block.median_population or "known"]
        median = (
            ("Median score", f"{words.figure(block.median)} (one, of {block.median_n:,} {who})"),
            ("Above it", f"{words.percent(block.overall_rate)} ({block.overall_count})"),
            ("Tied at it", f"{words.percent(block.tie_share)} ({block.tie_count})"),
        )
    return (
        ("Outcome", DONE[block.mode][1]),
        ("Unknown sex or race/ethnicity", unknown),
        ("Without an outcome, left out", f"{data.without_outcome:,}"),
        *median,
        *file,
    )


def how(record: RunRecord) -> tuple[str, ...]:
    """The method in sentences."""
    ranking = record.kind == "ranking"
    done = "put first" if ranking else DONE[record.outcomes.mode][1]
    interval = "exact, given the first places of both" if ranking else "Koopman's score interval"
    test = "exact binomial test" if ranking else "Fisher's exact test"
    return tuple(text.format(done=done, interval=interval, test=test) for text in words.lines("ll144_how"))


def rate(row: Category) -> str:
    """``47.0 % (555/1181)``."""
    return f"{row.rate_text or '–'} ({row.x:,}/{row.n:,})"


def p_value(value: float | None) -> str:
    """Two significant digits, never 0, and 1 where it rounds to it."""
    return "1" if value is not None and value >= 0.995 else words.p_value(value)


def _equals(value: float | None) -> str:
    """``= 0.02`` or ``< 0.0001``."""
    text = p_value(value)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def remarks(row: Category) -> Cell:
    """What has to be said about a row; why there is no ratio, where there is none."""
    if not row.impact_ratio_text and not row.excluded:
        return Cell(sub=row.reason or "")
    share = f"share {words.percent(row.share)}" if row.below_two_percent else ""
    steady = row.ratio_to_steady_text
    notes = (
        "below 4/5, may be chance" if row.below_four_fifths and not row.alarm else "",
        "one person would move it across 4/5" if row.one_person_flip else "",
        (row.reason or "") if row.excluded else share,
        f"{steady} to the larger reference" if steady else "",
    )
    marked = row.below_four_fifths and row.alarm
    return Cell(mark="▲ below 4/5" if marked else "", kind="shown", sub=", ".join(filter(None, notes)))


def unit(record: RunRecord) -> str:
    """What the rates are shares of."""
    return "Times shown" if record.kind == "ranking" else "People"


def table_note(facts: TableFacts, unit: str) -> str:
    """The test of a whole table, and a reference that was left out."""
    text = f"{unit} in the table: {facts.n:,}."
    if facts.omnibus_p is not None:
        text += f" All rates equal: chi-square p {_equals(facts.omnibus_p)}."
    if facts.excluded_reference:
        text += (
            f" {facts.excluded_reference} has a higher rate than {facts.reference} and was left out; "
            "the ratios to it stand beside."
        )
    if facts.steady_reference:
        text += (
            f" {facts.reference} has the highest rate and holds few people: ratios to it are not to be relied on, "
            f"and those to {facts.steady_reference}, the highest of the larger categories, stand beside."
        )
    return text


def sentences(record: RunRecord) -> list[str]:
    """What each table comes to, in a sentence or two; how many published ratios come out."""
    out = []
    for title, pool in pools(record):
        place = f"{title}: " if title else ""
        out += [_result(f"{place}{TITLES[name]}", rows, facts) for name, rows, facts in tables(pool)]
    return [*out, *([published(record.outcomes.published.counts)] if record.outcomes.published else [])]


def _result(title: str, rows: Sequence[Category], facts: TableFacts) -> str:
    """The category with the lowest ratio, and those below four-fifths by more than chance."""
    rated = [r for r in rows if r.impact_ratio is not None and r.category != facts.reference]
    row = min(rated, key=lambda r: r.impact_ratio or 0.0, default=None)
    if row is None:
        return f"{title}: no impact ratio is computable."
    text = (
        f"{title}: the lowest ratio is {row.impact_ratio_text} {limits(row)}, {row.category} "
        f"({row.x:,} of {row.n:,}) to {facts.reference}{' (few people)' if facts.steady_reference else ''}."
    )
    if below := [r.category for r in rated if r.alarm]:
        return f"{text} ▲ Below four-fifths, p (Holm) at most 0.05: {words.listing(below)}."
    if row.below_four_fifths:
        return f"{text} That is below four-fifths, and chance may do that (p (Holm) {_equals(row.fisher_p_holm)})."
    return f"{text} None is below four-fifths."


def published(counts: Mapping[str, int]) -> str:
    """How many published ratios come out again."""
    listed = ", ".join(f"{n:,} {verdict}" for verdict, n in counts.items())
    of = plural(sum(counts.values()), "published ratio")
    return f"Of {of}: {listed}. Each is compared at the digits it was printed with."


def sensitivity_sentence(other: OtherMedian) -> str:
    """Which median the second set of ratios uses."""
    who = {"known": "Without people of unknown category", "all": "With people of unknown category"}
    return (
        f"The rule does not say whether people of unknown category belong to the full sample. "
        f"{who[other.median_population]} the median is {words.figure(other.median)}, and "
        f"{other.overall_count} lie above it."
    )


def ratio(row: Category) -> str:
    """Three decimals and the interval, or why there is no ratio."""
    return f"{row.impact_ratio_text or row.reason or '–'} {limits(row)}"


def limits(row: Category) -> str:
    """The interval of the ratio."""
    if row.interval is None:
        return "reference" if row.impact_ratio_text else ""
    low, high = row.interval
    return f"({low:.2f}–{high:.2f})"
