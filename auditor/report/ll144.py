"""Tables of Local Law 144: what they rest on, what they come to, and what they are not, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.core.counting import plural
from auditor.core.record import RunRecord
from auditor.core.record.outcomes import Category, OtherMedian, Pool, TableFacts, UnknownBound
from auditor.report import words
from auditor.report.document import Cell
from auditor.report.ll144_chart import limits as limits

TITLES = {"sex": "Sex", "race_ethnicity": "Race/ethnicity", "intersectional": "Intersections"}
DONE = {
    "selection": ("Selection rate", "selected"),
    "scoring": ("Scoring rate", "above the median"),
    "classification": ("Selection rate", "put into the group"),
}
NOT_THIS = (
    "It is no bias audit under Local Law 144. That takes an independent auditor, who was not involved in "
    "using, developing or distributing the tool and has no employment or financial tie to its user or maker.",
    "It says nothing about why rates differ, whether a criterion is related to the job, or what a later "
    "human step did. It is about outcomes (impact), not about how a tool treats two texts that differ "
    "in a group (treatment).",
    "Local Law 144 sets no threshold. The four-fifths mark is a rule of thumb of another source "
    "(29 CFR 1607.4(D)); neither side of it is a legal finding. This is no legal advice.",
    "People of unknown category are counted, not guessed. No category is inferred from a name, a picture "
    "or a place.",
)
HOW = (
    "Rate: people {done} divided by people assessed, in the category. Impact ratio: the rate divided by the "
    "highest rate in the same table, from exact fractions; rounding comes last.",
    "Below four-fifths is decided in whole numbers (5 · x · n₀ < 4 · x₀ · n): exactly 4/5 is not below.",
    "▲: below four-fifths with p (Holm) at most 0.05. Without the mark a ratio below four-fifths may be chance. Where "
    "the reference holds fewer than 30 people or 2 % of the table, the mark needs a ratio below four-fifths to the "
    "larger reference too.",
    "In brackets the 95 % interval of the ratio ({interval}). p: {test} against the reference, p (Holm): "
    "adjusted for the tests of the table. The reference is picked by the data because its rate is highest, so "
    "ratios come out low by chance, most of all with many small categories: the interval allows for that (Hsu 1984), "
    "the ratio and the p values do not. Read the test of the whole table first.",
    "One person: whether one selection more here and one less in the reference (or the reverse) would move "
    "the ratio across four-fifths.",
    "Share: of the people with known categories in the table. The rule does not say whether unknown people "
    "belong to the data of which 2 % is meant; here they do not.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One set of tables: the whole pool, or a group."""

    title: str
    tables: Mapping[str, Sequence[Category]]
    facts: Mapping[str, TableFacts]
    bounds: Sequence[UnknownBound]
    bounds_reason: str | None
    unknown: int


def parts(record: RunRecord) -> list[Part]:
    """List the pools of a record, the whole first; categories without people are dropped from rankings."""
    block = record.outcomes
    whole = "Everybody" if block.groups else ""
    return [_part(whole if pool is block else pool.group, pool, record) for pool in block.pools]


def _part(title: str, block: Pool, record: RunRecord) -> Part:
    keep_empty = record.kind != "ranking"
    return Part(
        title=title,
        tables={n: [r for r in rows if keep_empty or r.n] for n, rows in (block.tables or {}).items()},
        facts=block.table_facts or {},
        bounds=block.unknown_bounds,
        bounds_reason=block.unknown_bounds_reason,
        unknown=block.unknown_count,
    )


def rate_name(record: RunRecord) -> str:
    """What the rates of a record are called."""
    return "First places" if record.kind == "ranking" else DONE[record.outcomes.mode][0]


def heading(record: RunRecord) -> str:
    """The title of a report."""
    if record.kind == "ranking":
        return "First places in recorded rankings, by group (test data)"
    return "Rates and impact ratios by category"


def banner(record: RunRecord) -> str:
    """What the report is, first of all."""
    if record.kind == "ranking":
        return (
            "Test data: a model ranked made-up applications. Nobody applied and nobody was turned down. This "
            "is not a bias audit under Local Law 144 and cannot become one."
        )
    if record.outcomes.data_kind == "test":
        return (
            "Draft from test data. The rule allows them only where historical data are insufficient "
            "(5-302(b))."
        )
    return (
        "Draft. Computed from a file as given; not a bias audit under Local Law 144 unless an independent "
        "auditor makes it one."
    )


def facts(record: RunRecord) -> list[tuple[str, str]]:
    """What the figures rest on."""
    block, data = record.outcomes, record.data
    if record.kind == "ranking":
        return [
            ("Rankings", f"{data.rankings:,} counted, {data.left_out:,} left out by their run id"),
            ("Model", words.listing(data.models)),
            ("Answers that name nobody", f"{data.unread:,}"),
            ("File", f"{data.file}, {data.rows:,} lines"),
            ("SHA-256 of the file", data.sha256),
        ]
    found = [
        ("Outcome", DONE[block.mode][1]),
        (
            "Unknown sex or race/ethnicity",
            f"{block.unknown_count:,} (sex {block.unknown_sex:,}, race/ethnicity "
            f"{block.unknown_race_ethnicity:,})",
        ),
        ("Without an outcome, left out", f"{data.without_outcome:,}"),
    ]
    if block.median is not None:
        who = {"known": "people in the tables", "all": "all scored people"}[
            block.median_population or "known"
        ]
        found += [
            ("Median score", f"{words.figure(block.median)} (one, of {block.median_n:,} {who})"),
            ("Above it", f"{words.percent(block.overall_rate)} ({block.overall_count})"),
            ("Tied at it", f"{words.percent(block.tie_share)} ({block.tie_count})"),
        ]
    found += [("File", f"{data.file}, {data.rows:,} lines"), ("SHA-256 of the file", data.sha256)]
    return found


def how(record: RunRecord) -> list[str]:
    """The method in sentences."""
    ranking = record.kind == "ranking"
    done = "put first" if ranking else DONE[record.outcomes.mode][1]
    interval = "exact, given the first places of both" if ranking else "Koopman's score interval"
    test = "exact binomial test" if ranking else "Fisher's exact test"
    return [text.format(done=done, interval=interval, test=test) for text in HOW]


def rate(row: Category) -> str:
    """``47.0 % (555/1181)``."""
    return f"{row.rate_text or '–'} ({row.x:,}/{row.n:,})"


def p_value(value: float | None) -> str:
    """Two significant digits, never 0."""
    if value is None:
        return "–"
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.995 else "1"


def p_equals(value: float | None) -> str:
    """``= 0.02`` or ``< 0.0001``."""
    text = p_value(value)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def remarks(row: Category) -> Cell:
    """What has to be said about a row; why there is no ratio, where there is none."""
    if not row.impact_ratio_text and not row.excluded:
        return Cell(sub=row.reason or "")
    found = []
    if row.below_four_fifths and not row.alarm:
        found.append("below 4/5, may be chance")
    if row.one_person_flip:
        found.append("one person would move it across 4/5")
    if row.excluded:
        found.append(row.reason or "")
    elif row.below_two_percent:
        found.append(f"share {words.percent(row.share)}")
    if row.ratio_to_steady_text:
        found.append(f"{row.ratio_to_steady_text} to the larger reference")
    marked = row.below_four_fifths and row.alarm
    return Cell(mark="▲ below 4/5" if marked else "", kind="shown", sub=", ".join(found))


def unit(record: RunRecord) -> str:
    """What the rates are shares of."""
    return "Times shown" if record.kind == "ranking" else "People"


def table_note(facts: TableFacts, unit: str) -> str:
    """The test of a whole table, and a reference that was left out."""
    text = f"{unit} in the table: {facts.n:,}."
    if facts.omnibus_p is not None:
        text += f" All rates equal: chi-square p {p_equals(facts.omnibus_p)}."
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What one table comes to: its category with the lowest ratio, and those below four-fifths by more than chance."""

    title: str
    lowest: Category | None
    reference: str
    below: tuple[Category, ...]
    few: bool  # the reference holds few people


def results(record: RunRecord) -> list[Found]:
    """What each table comes to, in order."""
    found = []
    for part in parts(record):
        for name, rows in part.tables.items():
            facts = part.facts[name]
            rated = [r for r in rows if r.impact_ratio is not None and r.category != facts.reference]
            found.append(
                Found(
                    title=f"{part.title + ': ' if part.title else ''}{TITLES[name]}",
                    lowest=min(rated, key=lambda r: r.impact_ratio or 0.0, default=None),
                    reference=str(facts.reference),
                    below=tuple(r for r in rated if r.alarm),
                    few=bool(facts.steady_reference),
                )
            )
    return found


def result_sentence(found: Found) -> str:
    """One table in one or two sentences."""
    row = found.lowest
    if row is None:
        return f"{found.title}: no impact ratio is computable."
    text = (
        f"{found.title}: the lowest ratio is {row.impact_ratio_text} {limits(row)}, {row.category} "
        f"({row.x:,} of {row.n:,}) to {found.reference}{' (few people)' if found.few else ''}."
    )
    if found.below:
        names = words.listing([r.category for r in found.below])
        return f"{text} ▲ Below four-fifths, p (Holm) at most 0.05: {names}."
    if row.below_four_fifths:
        return f"{text} That is below four-fifths, and chance may do that (p (Holm) {p_equals(row.fisher_p_holm)})."
    return f"{text} None is below four-fifths."


def bounds_sentence(part: Part) -> str:
    """What the bounds for people of unknown category mean."""
    return (
        f"If the {part.unknown:,} people of unknown category were known, the ratios to the same reference "
        "could lie anywhere between these ends (each by the most extreme allocation; nobody is guessed)."
    )


def published_sentence(record: RunRecord) -> str:
    """How many published ratios come out again."""
    published = record.outcomes.published
    counts = published.counts if published is not None else {}
    told = ", ".join(f"{n:,} {verdict}" for verdict, n in counts.items())
    of = plural(sum(counts.values()), "published ratio")
    return f"Of {of}: {told}. Each is compared at the digits it was printed with."


def sensitivity_sentence(other: OtherMedian) -> str:
    """Which median the second set of ratios uses."""
    who = {"known": "Without people of unknown category", "all": "With people of unknown category"}
    return (
        f"The rule does not say whether people of unknown category belong to the full sample. "
        f"{who[other.median_population]} the median is {words.figure(other.median)}, and "
        f"{other.overall_count} lie above it."
    )


def excluded(record: RunRecord) -> list[Category]:
    """The categories that were left out of the ratios."""
    return [row for part in parts(record) for rows in part.tables.values() for row in rows if row.excluded]
