"""Recorded outcomes of people after Local Law 144: documents, the summary to publish, a CSV, and their sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from auditor.core.record import RunRecord, head
from auditor.core.record.outcome_tables import Category, Pool, TableFacts
from auditor.core.shown import csv_text
from auditor.report import document as doc
from auditor.report import sections, words

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
CAPTIONS = {**TITLES, "intersectional": "Race/ethnicity and sex"}
CSV_COLUMNS = (
    "group", "table", "category", "n", "x", "rate", "impact_ratio", "impact_ratio_exact", "low", "high", "p_value",
    "p_adjusted", "z", "share", "below_four_fifths", "one_person_flip", "below_two_percent", "excluded",
    "justification", "reason",
)  # fmt: skip


def build(record: RunRecord) -> doc.Document:
    """Lay out a record of ``audit ll144``."""
    if record.kind == "ranking":  # of version 0.2
        note, whole = doc.Text(words.text("ll144_ranking"), "note"), doc.facts("As recorded", record.raw.get("ll144"))
        title = "First places in recorded rankings, by group (test data)"
        return doc.Document(title=title, sections=(doc.section("result", "Result", note, whole),), inert=True)
    block, data = record.outcomes, record.data
    unknown = f"{block.unknown_count:,} (sex {block.unknown_sex:,}, race/ethnicity {block.unknown_race_ethnicity:,})"
    computed = [("Outcome", DONE[block.mode][1]), ("Unknown sex or race/ethnicity", unknown)]
    computed.append(("Without an outcome, left out", f"{data.without_outcome:,}"))
    if block.median is not None:
        who = {"known": "people in the tables", "all": "all scored people"}[block.median_population or "known"]
        computed.append(("Median score", f"{words.figure(block.median)} (one, of {block.median_n:,} {who})"))
        computed.append(("Above it", f"{words.percent(block.overall_rate)} ({block.overall_count})"))
        computed.append(("Tied at it", f"{words.percent(block.tie_share)} ({block.tie_count})"))
    computed += [("File", f"{data.file}, {data.rows:,} lines"), ("SHA-256 of the file", data.sha256)]
    made: list[doc.Block] = [doc.Facts("", tuple(computed), grid=True)]
    made += [doc.Text("Take note", "heading"), doc.Items(tuple(record.warnings))] if record.warnings else []
    return doc.Document(
        title="Rates and impact ratios by category",
        sections=(
            replace(doc.section("result", "Result", finding(record)), whole=True),
            *(
                doc.Section(
                    id=f"part-{i + 1}", title=title or "Tables", blocks=tuple(_pool(record, title, pool, i)), whole=True
                )
                for i, (title, pool) in enumerate(pools(record))
            ),
            doc.section("computed", "What was computed", made, short="Computed"),
            doc.section("unknown", "People of unknown category", _unknown(record), short="Unknown people"),
            doc.section("how", "How", doc.Items(how(record))),
            doc.section("not", "What this is not", doc.Items(words.lines("ll144_not_this"))),
        ),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
        inert=True,
    )


def finding(record: RunRecord) -> tuple[doc.Block, ...]:
    """Return what the tables show, then what they are not."""
    draft = "ll144_test_data" if record.outcomes.data_kind == "test" else "ll144_draft"
    return doc.Items(tuple(sentences(record))), doc.Text(words.text(draft), "note")


def impact(record: RunRecord) -> Iterator[doc.Block]:
    """Yield the tables of a record as part of another report."""
    for i, (title, pool) in enumerate(pools(record)):
        yield from [doc.Text(title, "heading")] if title else []
        yield from _pool(record, title, pool, i)
    yield from _unknown(record)
    yield doc.Items(how(record))


def _pool(record: RunRecord, title: str, pool: Pool, i: int) -> Iterator[doc.Block]:
    named = rate_name(record)
    for name, rows, facts in tables(pool):
        about = f"{TITLES[name]}{', ' + title if title else ''}"
        further = {"To left out": "ratio_to_excluded_text"} if facts.excluded_reference else {}
        further |= {"To larger": "ratio_to_steady_text"} if facts.steady_reference else {}
        lines = (
            (
                row.category,
                f"{row.rate_text or '–'} ({row.x:,}/{row.n:,})",
                row.impact_ratio_text,
                doc.Cell(text=limits(row)),
                *(getattr(row, name) for name in further.values()),
                remarks(row),
            )
            for row in rows
            if row.n
        )
        columns = ("Category", f"#{named}", "#Ratio", "95 %", *(f"#{title}" for title in further), "Remarks")
        yield doc.table(f"{about}: {named.lower()} and impact ratio", columns, lines)
        empty = [row.category for row in rows if not row.n]
        yield doc.Text(_note(facts, empty), "meta")
        drawn = sections.ratios(
            [(row, f"{row.impact_ratio_text} {limits(row)}") for row in rows if row.impact_ratio is not None],
            name=f"dots-{i}-{name}",
            title=f"Impact ratios, {about}",
        )
        if drawn:
            yield doc.Chart(drawn, "As in the first chart." if i or name != "sex" else words.text("ll144_chart"))


def _unknown(record: RunRecord) -> Iterator[doc.Block]:
    for title, pool in pools(record):
        place = f" ({title})" if title else ""
        if not pool.unknown_bounds:
            yield doc.Text(f"No bounds for people of unknown category{place}: {pool.unknown_bounds_reason}.")
            continue
        yield doc.Text(words.text("ll144_bounds").format(unknown=f"{pool.unknown_count:,}"))
        bounds = ((b.category, TITLES[b.table], b.reference, b.low_text, b.high_text) for b in pool.unknown_bounds)
        caption = f"Lowest and highest ratio that people of unknown category could make true{place}"
        yield doc.table(caption, "Category | Table | Against | #Lowest | #Highest", bounds)


# -- the summary ------------------------------------------------------------------------------------------


def summary(record: RunRecord) -> doc.Document:
    """The sheet: what was not given is a field."""
    own = {} if record.responsible is None else record.responsible.pages.get("ll144", {})
    listed, named = items(record), rate_name(record)
    missing = [e.label for e in listed if e.value is None]
    parts = []
    for i, (title, pool) in enumerate(pools(record)):
        fields, sheets = list(listed), []
        for name, rows, _ in tables(pool):
            for row in rows:
                if row.excluded:  # stands in no ratio (5-301(d))
                    rate = f"{named.lower()} {row.rate_text or '–'}"
                    text = f"{row.category}: {row.n:,} applicants, {rate}. {row.justification}"
                    fields.append(doc.Entry("left_out", "Left out of the impact ratios", text))
            lines = (
                (r.category, r.n, r.rate_text, r.impact_ratio_text or ("left out" if r.excluded else None))
                for r in rows
            )
            sheets.append(doc.table(CAPTIONS[name], f"Category | #Applicants | #{named} | #Impact ratio", lines))
        form = doc.form("Items of the rule", f"item-{i + 1}", fields)
        parts.append(doc.Section(id=f"part-{i + 1}", title=title or "Results", blocks=(form, *sheets)))
    return doc.Document(
        title="Summary of the results of the bias audit",
        meta=" · ".join(own[key] for key in ("tool", "employer") if own.get(key)),
        banners=(f"Not ready to publish. To be filled in: {'; '.join(missing)}.",) if missing else (),
        sections=tuple(parts),
        inert=True,
        bare=True,
    )


def items(record: RunRecord) -> tuple[doc.Entry, ...]:
    """What the rule asks for beside the tables; None where it was not given."""
    block = record.outcomes
    test = (
        doc.Entry("test_data_reason", "Why no historical data were used", block.test_data_reason),
        doc.Entry("test_data_generation", "How the test data were made and obtained", block.test_data_generation),
    )
    unknown = f"{block.unknown_count:,} people with an unknown sex or race/ethnicity are not included"
    if block.partly_known:
        unknown += " in the intersectional table; who has one known attribute is in the table of that one"
    return (
        doc.Entry("audit_date", "Date of the bias audit", block.audit_date),
        doc.Entry("distribution_date", "Distribution date", block.distribution_date),
        doc.Entry("source", "Source and explanation of the data", record.data.source),
        doc.Entry("data_kind", "Historical or test data", f"{block.data_kind} data" if block.data_kind else None),
        *(test if block.data_kind == "test" else ()),
        doc.Entry("unknown", "Unknown category", f"{unknown}."),
    )


def to_csv(record: RunRecord) -> str:
    """One line for each category of each table; shares in [0, 1], texts safe for spreadsheets."""
    lines: list[list[object]] = [list(CSV_COLUMNS)]
    for title, pool in pools(record):
        for name, rows, _ in tables(pool):
            for row in rows:
                low, high = row.interval or (None, None)
                own = {"group": title, "table": name, "low": low, "high": high, "below_four_fifths": row.alarm}
                own |= {"p_value": row.fisher_p, "p_adjusted": row.fisher_p_holm}
                values = msgspec.structs.asdict(row) | own
                lines.append([values[key] for key in CSV_COLUMNS])
    return csv_text(lines, newlines=False)


# -- in words --------------------------------------------------------------------------------------------


def pools(record: RunRecord) -> list[tuple[str, Pool]]:
    """The pools of a record with their titles, the whole first."""
    outcomes = record.outcomes
    whole = "Everybody" if outcomes.groups else ""
    return [(whole if pool is outcomes else pool.group, pool) for pool in outcomes.pools]


def tables(pool: Pool) -> Iterator[tuple[str, Sequence[Category], TableFacts]]:
    """Yield (name, rows, facts) of each table of a pool."""
    rows, facts = pool.tables or {}, pool.table_facts or {}
    for name in TITLES:
        if name in rows:
            yield name, rows[name], facts[name]


def rate_name(record: RunRecord) -> str:
    """What the rates of a record are called."""
    return DONE[record.outcomes.mode][0]


def how(record: RunRecord) -> tuple[str, ...]:
    """The method in sentences."""
    done, interval = DONE[record.outcomes.mode][1], "MOVER-R of Clopper–Pearson limits"
    return tuple(text.format(done=done, interval=interval) for text in words.lines("ll144_how"))


def remarks(row: Category) -> doc.Cell:
    """Return what a reader must know about a row; why there is no ratio, where there is none."""
    if not row.impact_ratio_text and not row.excluded:
        return doc.Cell(sub=row.reason or "")
    share = f"share {words.percent(row.share)}" if row.below_two_percent else ""
    notes = (
        "under 0.80, may be chance" if (row.impact_ratio or 1.0) < FOUR_FIFTHS and not row.alarm else "",
        "one person would move it across 0.80" if row.one_person_flip else "",
        (row.reason or "") if row.excluded else share,
    )
    return doc.Cell(mark="▲ below 4/5" if row.alarm else "", kind="shown", sub=", ".join(filter(None, notes)))


def _note(facts: TableFacts, empty: Sequence[str]) -> str:
    """Return the test of a whole table, what was left out, and which categories hold nobody."""
    text = f"People in the table: {facts.n:,}."
    if facts.omnibus_p is not None:
        p = "1" if facts.omnibus_p >= 0.995 else words.p_value(facts.omnibus_p)
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


def sentences(record: RunRecord) -> Iterator[str]:
    """Say what each table shows, the lowest ratio first."""
    for title, pool in pools(record):
        said = []
        for name, rows, facts in tables(pool):
            rated = [r for r in rows if r.impact_ratio is not None and r.category != facts.reference]
            best = next((r for r in rows if r.category == facts.reference), None)
            low = min(rated, key=lambda r: r.impact_ratio or 0.0, default=None)
            if low is None or best is None:
                said.append((2.0, f"{TITLES[name]}: no impact ratio is computable."))
            else:
                said.append((low.impact_ratio or 0.0, " ".join(_result(record, facts, low, best, rated))))
        for _, text in sorted(said, key=lambda one: one[0]):
            yield f"{title}: {text}" if title else text


def _result(
    record: RunRecord, facts: TableFacts, low: Category, best: Category, rated: Sequence[Category]
) -> Iterator[str]:
    """How often people of the lowest ratio were selected, next to the best placed; then how sure that is."""
    share, small = low.impact_ratio or 0.0, ", which is very small" if facts.steady_reference else ""
    mode = record.outcomes.mode
    done = f"{'scored' if mode == 'scoring' else words.verb(low.x, 'was', 'were')} {DONE[mode][1]}"
    did = f"{low.x:,} of {low.n:,} {people(low.category)} ({words.percent(low.rate, 0)}) {done}"
    near = min(FRACTIONS, key=lambda fraction: abs(fraction - share))
    part = f"about {FRACTIONS[near]}" if abs(near - share) <= 0.02 else f"{words.percent(share, 0)} of"
    yield f"{did}, {part} the rate of the best-placed group{small}."
    yield f"Best placed: {people(best.category)}, {best.x:,} of {best.n:,} ({words.percent(best.rate, 0)})."
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
        yield f"Open: {still} of the {words.plural(len(rated) - 1, 'other ratio')} of this table."


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
    """Name the people of a category of the rule."""
    race, _, sex = category.rpartition(" / ") if category.endswith(tuple(SEXES)) else (category, "", "")
    noun = SEXES.get(sex, "people")
    if race == "Two or More Races":
        return f"{noun} of two or more races"
    return f"{race.replace('Black or African American', 'Black')} {noun}".strip()


def limit(value: float) -> str:
    """Write a limit with two decimals, or with as many as show on which side of 0.80 it lies."""
    digits = 2
    while value != FOUR_FIFTHS and float(f"{value:.{digits}f}") == FOUR_FIFTHS and digits < 15:
        digits += 1
    return f"{value:.{digits}f}"


def limits(row: Category) -> str:
    """The interval of the ratio."""
    if row.interval is None:
        return "reference" if row.impact_ratio_text else ""
    return f"({limit(row.interval[0])}–{limit(row.interval[1])})"
