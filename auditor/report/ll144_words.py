"""Tables of Local Law 144 in words: what they rest on, what they show, what they are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from auditor.core.record import RunRecord
from auditor.core.record.outcome_tables import Category, OtherMedian, Pool, TableFacts
from auditor.core.shown import plural
from auditor.report import words
from auditor.report.document import Cell

FOUR_FIFTHS = 0.8
SEXES = {"Female": "women", "Male": "men"}
FRACTIONS = {
    0.1: "a tenth of",
    0.2: "a fifth of",
    0.25: "a quarter of",
    1 / 3: "a third of",
    0.5: "half",
    2 / 3: "two thirds of",
    0.75: "three quarters of",
}
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
    interval = "exact, given the first places of two" if ranking else "MOVER-R of Clopper–Pearson limits"
    return tuple(text.format(done=done, interval=interval) for text in words.lines("ll144_how"))


def rate(row: Category) -> str:
    """``47.0 % (555/1181)``."""
    return f"{row.rate_text or '–'} ({row.x:,}/{row.n:,})"


def p_value(value: float | None) -> str:
    """Two significant digits, never 0, and 1 where it rounds to it."""
    return "1" if value is not None and value >= 0.995 else words.p_value(value)


def remarks(row: Category) -> Cell:
    """Return what a reader must know about a row; why there is no ratio, where there is none."""
    if not row.impact_ratio_text and not row.excluded:
        return Cell(sub=row.reason or "")
    share = f"share {words.percent(row.share)}" if row.below_two_percent else ""
    notes = (
        "under 0.80, may be chance" if (row.impact_ratio or 1.0) < FOUR_FIFTHS and not row.alarm else "",
        "one person would move it across 0.80" if row.one_person_flip else "",
        (row.reason or "") if row.excluded else share,
    )
    return Cell(mark="▲ below 4/5" if row.alarm else "", kind="shown", sub=", ".join(filter(None, notes)))


def unit(record: RunRecord) -> str:
    """What the rates are shares of."""
    return "Times shown" if record.kind == "ranking" else "People"


def table_note(facts: TableFacts, unit: str, empty: Sequence[str] = ()) -> str:
    """Return the test of a whole table, what was left out, and which categories hold nobody."""
    text = f"{unit} in the table: {facts.n:,}."
    if facts.omnibus_p is not None:
        p = p_value(facts.omnibus_p)
        text += f" All rates equal: chi-square p {f'< {p[1:]}' if p.startswith('<') else f'= {p}'}."
    if facts.excluded_reference:
        text += (
            f" {facts.excluded_reference} has a higher rate than {facts.reference} and was left out; "
            "“To left out” is the ratio to it."
        )
    if facts.steady_reference:
        text += (
            f" {facts.reference} has the highest rate and few people. “To larger” is the ratio to "
            f"{facts.steady_reference}, the best of the larger categories."
        )
    return f"{text} Nobody is in: {', '.join(empty)}." if empty else text


# -- what the tables say, in sentences -------------------------------------------------------------------------


def sentences(record: RunRecord) -> list[str]:
    """Return what each table shows, the lowest ratio first; how many published ratios come out."""
    out = []
    for title, pool in pools(record):
        said = sorted(_results(record, pool), key=lambda one: one[0])
        out += [f"{title}: {text}" if title else text for _, text in said]
    return [*out, *([published(record.outcomes.published.counts)] if record.outcomes.published else [])]


def _results(record: RunRecord, pool: Pool) -> Iterator[tuple[float, str]]:
    """The lowest ratio of each table, and its sentences."""
    for name, rows, facts in tables(pool):
        rated = [r for r in rows if r.impact_ratio is not None and r.category != facts.reference]
        best = next((r for r in rows if r.category == facts.reference), None)
        low = min(rated, key=lambda r: r.impact_ratio or 0.0, default=None)
        if low is None or best is None:
            yield 2.0, f"{TITLES[name]}: no impact ratio is computable."
        else:
            yield low.impact_ratio or 0.0, " ".join(_result(record, facts, low, best, rated))


def _result(
    record: RunRecord, facts: TableFacts, low: Category, best: Category, rated: Sequence[Category]
) -> Iterator[str]:
    """How often people of the lowest ratio were selected, next to the best placed; then how sure that is."""
    share, small = low.impact_ratio or 0.0, ", which is very small" if facts.steady_reference else ""
    yield f"{_did(record, low)}, {_of_rate(share)} the rate of the best-placed group{small}."
    yield f"Best placed: {people(best.category)}, {_share(best)}."
    ratio = f"The impact ratio is {low.impact_ratio_text}"
    if low.interval is not None:
        ratio += f", 95 % interval {limit(low.interval[0])} to {limit(low.interval[1])}"
    yield f"{ratio}: {SIDES[_side(low)]}."
    if facts.steady_reference and low.ratio_to_steady_text and low.category != facts.steady_reference:
        larger = f"{people(facts.steady_reference)}, the best of the larger groups"
        yield f"The ratio to {larger}, is {low.ratio_to_steady_text}."
    if also := [people(r.category) for r in rated if r.alarm and r is not low]:
        yield f"Below four-fifths too: {words.listing(also)}."
    if still := sum(_side(r) == "open" for r in rated if r is not low):
        yield f"Open: {still} of the {plural(len(rated) - 1, 'other ratio')} of this table."


SIDES = {
    "below": "below four-fifths",
    "above": "four-fifths or more",
    "open": "too few people to tell on which side of 0.80 it lies",
}


def _side(row: Category) -> str:
    """Where the whole interval of a ratio lies; a key of `SIDES`."""
    above = row.interval is not None and row.interval[0] >= FOUR_FIFTHS
    return "below" if row.alarm else "above" if above else "open"


def people(category: str) -> str:
    """Name the people of a category of the rule.

    Examples
    --------
    >>> people("Black or African American / Female"), people("Two or More Races"), people("Male")
    ('Black women', 'people of two or more races', 'men')
    """
    race, _, sex = category.rpartition(" / ") if category.endswith(tuple(SEXES)) else (category, "", "")
    noun = SEXES.get(sex, "people")
    if race == "Two or More Races":
        return f"{noun} of two or more races"
    return f"{race.replace('Black or African American', 'Black')} {noun}".strip()


def _share(row: Category) -> str:
    return f"{row.x:,} of {row.n:,} ({words.percent(row.rate, 0)})"


def _did(record: RunRecord, row: Category) -> str:
    """``6 of 42 Black women (14 %) were selected``."""
    who, rate = people(row.category), f"({words.percent(row.rate, 0)})"
    if record.kind == "ranking":
        return f"{row.x:,} of {row.n:,} times that they were shown {rate}, {who} came first"
    mode = record.outcomes.mode
    done = f"{'scored' if mode == 'scoring' else words.verb(row.x, 'was', 'were')} {DONE[mode][1]}"
    return f"{row.x:,} of {row.n:,} {who} {rate} {done}"


def _of_rate(ratio: float) -> str:
    """``about a fifth of``, or the percentage where no simple fraction is near."""
    near = min(FRACTIONS, key=lambda share: abs(share - ratio))
    return f"about {FRACTIONS[near]}" if abs(near - ratio) <= 0.02 else f"{words.percent(ratio, 0)} of"


def limit(value: float) -> str:
    """Write a limit with two decimals, or with as many as show on which side of 0.80 it lies.

    Examples
    --------
    >>> limit(0.4449), limit(0.7964), limit(0.80003)
    ('0.44', '0.796', '0.80003')
    """
    digits = 2
    while value != FOUR_FIFTHS and float(f"{value:.{digits}f}") == FOUR_FIFTHS and digits < 15:
        digits += 1
    return f"{value:.{digits}f}"


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
    return f"({limit(row.interval[0])}–{limit(row.interval[1])})"
