"""Tables of Local Law 144: what they rest on, what they come to, what they are not; in words, and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from auditor.core.counting import plural
from auditor.core.record import RunRecord
from auditor.core.record.outcomes import Category, OtherMedian, Pool, TableFacts, UnknownBound
from auditor.report import charts, prose, words
from auditor.report.charts import LABELS, LINE, PLOT, safe
from auditor.report.document import Cell

TITLES = {"sex": "Sex", "race_ethnicity": "Race/ethnicity", "intersectional": "Intersections"}
DONE = {
    "selection": ("Selection rate", "selected"),
    "scoring": ("Scoring rate", "above the median"),
    "classification": ("Selection rate", "put into the group"),
}


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
        return "Draft from test data. The rule allows them only where historical data are insufficient (5-302(b))."
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
            f"{block.unknown_count:,} (sex {block.unknown_sex:,}, race/ethnicity {block.unknown_race_ethnicity:,})",
        ),
        ("Without an outcome, left out", f"{data.without_outcome:,}"),
    ]
    if block.median is not None:
        who = {"known": "people in the tables", "all": "all scored people"}[block.median_population or "known"]
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
    return [text.format(done=done, interval=interval, test=test) for text in prose.lines("ll144_how")]


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


AXIS_END = 1.5


def ratio(row: Category) -> str:
    """Three decimals, or why there is no ratio."""
    return row.impact_ratio_text or row.reason or "–"


def limits(row: Category) -> str:
    """The interval of the ratio."""
    if (found := row.interval) is None:
        return "reference" if row.impact_ratio_text else ""
    low, high = found
    return f"({low:.2f}–{high:.2f})"


def dots(rows: Sequence[Category], *, name: str, title: str) -> Markup:
    """Draw impact ratios as dots with their intervals, on a scale from 0 to 1.5, with a line at 0.80."""
    shown = [r for r in rows if r.impact_ratio is not None]
    if len(shown) < 2:
        return Markup("")
    body: list[str] = []
    y = 8
    for row in shown:
        y += 18
        body.append(f'<text class="row" x="0" y="{y - 4}">{safe(row.category)}</text>')
        body.append(f'<text class="sub" x="0" y="{y + 15}">{safe(ratio(row))} {safe(limits(row))}</text>')
        body.append(_dot(row, y + 11))
        y += LINE + 4
    frame = "".join(
        f'<line class="grid" x1="{_across(t)}" x2="{_across(t)}" y1="4" y2="{y}"/>'
        f'<text class="tick" x="{_across(t)}" y="{y + 17}">{t:g}</text>'
        for t in (0, 0.5, 1.0, 1.5)
    )
    frame += f'<line class="noise" x1="{_across(0.8)}" x2="{_across(0.8)}" y1="4" y2="{y}"/>'
    frame += f'<text class="tick" x="{_across(0.8)}" y="{y + 17}">0.80</text>'
    listed = "; ".join(f"{r.category} {ratio(r)} {limits(r)}" for r in shown)
    return charts.svg(name, title, listed, y + 28, [frame, *body], "forest")


def _across(value: float) -> str:
    return f"{LABELS + PLOT * min(value, AXIS_END) / AXIS_END:.3f}%"


def _dot(row: Category, y: int) -> str:
    kind = "shown" if row.alarm else "bounded"
    shape = "M0,-6 L6,5 L-6,5 Z" if kind == "shown" else "M-5,0 a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0"
    out = []
    if (found := row.interval) is not None:
        low, high = found
        out.append(f'<line class="ci {kind}" x1="{_across(low)}" x2="{_across(high)}" y1="{y}" y2="{y}"/>')
        out.append(f'<line class="ci {kind}" x1="{_across(low)}" x2="{_across(low)}" y1="{y - 4}" y2="{y + 4}"/>')
        if high <= AXIS_END:
            out.append(f'<line class="ci {kind}" x1="{_across(high)}" x2="{_across(high)}" y1="{y - 4}" y2="{y + 4}"/>')
        else:
            out.append(f'<text class="sub" x="{_across(high)}" y="{y + 4}" dx="4">→</text>')
    mark = f'<path class="mark {kind}" d="{shape}"/>'
    at = _across(row.impact_ratio or 0.0)
    out.append(f'<svg x="{at}" y="{y}" width="1" height="1" overflow="visible">{mark}</svg>')
    return "".join(out)
