"""Tables of Local Law 144 as text and as one HTML file; from the record as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from auditor.counting import plural
from auditor.provenance import head
from auditor.render import html as page_html
from auditor.render import words
from auditor.render.ll144_chart import dots, limits
from auditor.render.page import Page

if TYPE_CHECKING:
    from jinja2 import Template

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
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    facts: Mapping[str, Mapping[str, Any]]
    bounds: Sequence[Mapping[str, Any]]
    bounds_reason: str
    unknown: int


def parts(record: Mapping[str, Any]) -> list[Part]:
    """List the pools of a record, the whole first; categories without people are dropped from rankings."""
    block = record["ll144"]
    found = []
    if block["tables"]:
        found.append(_part("Everybody" if block["groups"] else "", block, record))
    return found + [_part(g["group"], g, record) for g in block["groups"]]


def _part(title: str, block: Mapping[str, Any], record: Mapping[str, Any]) -> Part:
    keep_empty = record["kind"] != "ranking"
    return Part(
        title=title,
        tables={n: [r for r in rows if keep_empty or r["n"]] for n, rows in block["tables"].items()},
        facts=block["table_facts"],
        bounds=block["unknown_bounds"],
        bounds_reason=block["unknown_bounds_reason"],
        unknown=block["unknown_count"],
    )


def rate_name(record: Mapping[str, Any]) -> str:
    """What the rates of a record are called."""
    return "First places" if record["kind"] == "ranking" else DONE[record["ll144"]["mode"]][0]


def heading(record: Mapping[str, Any]) -> str:
    """The title of a report."""
    if record["kind"] == "ranking":
        return "First places in recorded rankings, by group (test data)"
    return "Rates and impact ratios by category"


def banner(record: Mapping[str, Any]) -> str:
    """What the report is, first of all."""
    if record["kind"] == "ranking":
        return (
            "Test data: a model ranked made-up applications. Nobody applied and nobody was turned down. This "
            "is not a bias audit under Local Law 144 and cannot become one."
        )
    if record["ll144"]["data_kind"] == "test":
        return (
            "Draft from test data. The rule allows them only where historical data are insufficient "
            "(5-302(b))."
        )
    return (
        "Draft. Computed from a file as given; not a bias audit under Local Law 144 unless an independent "
        "auditor makes it one."
    )


def summary_fields(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Fields of the published summary (5-303); what was not given stays visibly empty."""
    block, data = record["ll144"], record["data"]
    fields = [
        ("Independent auditor", EMPTY),
        ("Statement of independence", EMPTY),
        ("Date of the bias audit", block["audit_date"] or EMPTY),
        ("Distribution date", block["distribution_date"] or EMPTY),
        ("Source and explanation of the data", data["source"] or EMPTY),
        ("Kind of data", f"{block['data_kind']} data" if block["data_kind"] else EMPTY),
    ]
    if block["data_kind"] == "test":
        fields += [
            ("Why no historical data were used", block["test_data_reason"] or EMPTY),
            ("How the test data were made and obtained", block["test_data_generation"] or EMPTY),
        ]
    unknown = f"{block['unknown_count']:,} people with an unknown sex or race/ethnicity are not included"
    if block["partly_known"]:
        unknown += " in the intersectional table; who has one known attribute is in the table of that one"
    return [*fields, ("Unknown category", unknown + ".")]


EMPTY = "[to be filled in]"
PUBLISHED = ("Table", "Category", "Published", "Computed", "Comes out")


def facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the figures rest on."""
    block, data = record["ll144"], record["data"]
    if record["kind"] == "ranking":
        return [
            ("Rankings", f"{data['rankings']:,} counted, {data['left_out']:,} left out by their run id"),
            ("Model", words.listing(data["models"])),
            ("Answers that name nobody", f"{data['unread']:,}"),
            ("File", f"{data['file']}, {data['rows']:,} lines"),
            ("SHA-256 of the file", data["sha256"]),
        ]
    found = [
        ("Outcome", DONE[block["mode"]][1]),
        (
            "Unknown sex or race/ethnicity",
            f"{block['unknown_count']:,} (sex {block['unknown_sex']:,}, race/ethnicity "
            f"{block['unknown_race_ethnicity']:,})",
        ),
        ("Without an outcome, left out", f"{data['without_outcome']:,}"),
    ]
    if block["median"] is not None:
        who = {"known": "people in the tables", "all": "all scored people"}[block["median_population"]]
        found += [
            ("Median score", f"{words.figure(block['median'])} (one, of {block['median_n']:,} {who})"),
            ("Above it", f"{words.percent(block['overall_rate'])} ({block['overall_count']})"),
            ("Tied at it", f"{words.percent(block['tie_share'])} ({block['tie_count']})"),
        ]
    found += [("File", f"{data['file']}, {data['rows']:,} lines"), ("SHA-256 of the file", data["sha256"])]
    return found


def how(record: Mapping[str, Any]) -> list[str]:
    """The method in sentences."""
    ranking = record["kind"] == "ranking"
    done = "put first" if ranking else DONE[record["ll144"]["mode"]][1]
    interval = "exact, given the first places of both" if ranking else "Koopman's score interval"
    test = "exact binomial test" if ranking else "Fisher's exact test"
    return [text.format(done=done, interval=interval, test=test) for text in HOW]


def rate(row: Mapping[str, Any]) -> str:
    """``47.0 % (555/1181)``."""
    return f"{row['rate_text'] or '–'} ({row['x']:,}/{row['n']:,})"


def p_value(value: float | None) -> str:
    """Two significant digits, never 0."""
    if value is None:
        return "–"
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.995 else "1"


def p_equals(value: float) -> str:
    """``= 0.02`` or ``< 0.0001``."""
    text = p_value(value)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def marks(row: Mapping[str, Any]) -> list[str]:
    """What has to be said about a row, in words."""
    found = []
    if row["below_four_fifths"]:
        found.append("▲ below 4/5")
    if row["one_person_flip"]:
        found.append("one person")
    if row["excluded"]:
        found.append("left out")
    elif row["below_two_percent"]:
        found.append("share < 2 %")
    return found


def remarks(row: Mapping[str, Any]) -> list[str]:
    """The same in full, where there is room; why there is no ratio, where there is none."""
    long = {"one person": "one person would move it across 4/5"}
    if not row["impact_ratio_text"]:
        return [str(row["reason"] or "")]
    return [long.get(mark, mark) for mark in marks(row)]


def unit(record: Mapping[str, Any]) -> str:
    """What the rates are shares of."""
    return "Times shown" if record["kind"] == "ranking" else "People"


def table_note(facts: Mapping[str, Any], unit: str) -> str:
    """The test of a whole table, and a reference that was left out."""
    text = f"{unit} in the table: {facts['n']:,}."
    if facts["omnibus_p"] is not None:
        text += f" All rates equal: chi-square p {p_equals(facts['omnibus_p'])}."
    if facts["excluded_reference"]:
        text += (
            f" {facts['excluded_reference']} has a higher rate than {facts['reference']} and was left out; "
            "the ratios to it stand beside."
        )
    return text


def text(record: Mapping[str, Any], *, width: int = 110, encoding: str = "utf-8") -> str:
    """Write the report for a terminal."""
    page = Page(width=width, encoding=encoding, color=False)
    page.line(heading(record), "bold")
    page.paragraph(banner(record), first="!! ", indent="   ")
    page.heading("What was computed")
    for name, value in facts(record):
        page.paragraph(value, first=f"{name}: ", indent="  ")
    for part in parts(record):
        _text_part(page, part, record)
    _text_sensitivity(page, record)
    if record["ll144"].get("published"):
        page.heading("Against the published ratios")
        page.paragraph(published_sentence(record))
        page.table([(title, False) for title in PUBLISHED], published_rows(record))
    if record["warnings"]:
        page.heading("Take note")
        for warning in record["warnings"]:
            page.paragraph(warning, first="! ", indent="  ")
    if record["kind"] != "ranking":
        page.heading("Draft of the published summary (6 RCNY 5-303)")
        for name, value in summary_fields(record):
            page.paragraph(value, first=f"{name}: ", indent="  ")
        page.paragraph("Number of people, rates and impact ratios of all categories: the tables above.")
    page.heading("What this is not")
    for sentence in NOT_THIS:
        page.paragraph(sentence, first="· ", indent="  ")
    return page.value()


def _text_part(page: Page, part: Part, record: Mapping[str, Any]) -> None:
    name = rate_name(record)
    for table, rows in part.tables.items():
        beside = bool(part.facts[table]["excluded_reference"])
        page.heading(f"{part.title + ': ' if part.title else ''}{TITLES[table]}")
        columns = [("Category", False), (name, True), ("Ratio", True), ("95 %", False), ("p", True)]
        columns += [
            ("p (Holm)", True),
            ("Z", True),
            *([("To left out", True)] if beside else []),
            ("", False),
        ]
        page.table(columns, (_text_row(row, beside) for row in rows))
        page.line()
        page.paragraph(table_note(part.facts[table], unit(record)))
        for row in rows:
            if row["excluded"]:
                page.paragraph(f"{row['category']}: {row['reason']}")
    if part.bounds:
        page.line()
        page.paragraph(bounds_sentence(part))
        page.table(
            [("Table", False), ("Category", False), ("Ratio could be", False)],
            ((TITLES[b["table"]], b["category"], f"{b['low_text']} … {b['high_text']}") for b in part.bounds),
        )
    else:
        page.paragraph(f"No bounds for unknown people: {part.bounds_reason}.")


def bounds_sentence(part: Part) -> str:
    """What the bounds for people of unknown category mean."""
    return (
        f"If the {part.unknown:,} people of unknown category were known, the ratios to the same reference "
        "could lie anywhere between these ends (each by the most extreme allocation; nobody is guessed)."
    )


def _text_row(row: Mapping[str, Any], beside: bool) -> list[str]:
    z = "–" if row["z"] is None else f"{row['z']:.2f}"
    line = [row["category"], rate(row), row["impact_ratio_text"] or "–", limits(row)]
    line += [p_value(row["fisher_p"]), p_value(row["fisher_p_holm"]), z]
    line += [row["ratio_to_excluded_text"] or "–"] if beside else []
    told = marks(row) if row["impact_ratio_text"] or row["excluded"] else [row["reason"] or ""]
    return [*line, ", ".join(told)]


def _text_sensitivity(page: Page, record: Mapping[str, Any]) -> None:
    other = record["ll144"]["sensitivity"]
    if other is None:
        return
    page.heading("With the other median")
    page.paragraph(sensitivity_sentence(other))
    page.table(
        [("Category", False), ("Scoring rate", True), ("Ratio", True)],
        (
            (r["category"], rate(r), r["impact_ratio_text"] or "–")
            for r in _all_rows(other["tables"])
            if r["n"]
        ),
    )


def published_sentence(record: Mapping[str, Any]) -> str:
    """How many published ratios come out again."""
    counts = record["ll144"]["published"]["counts"]
    told = ", ".join(f"{n:,} {verdict}" for verdict, n in counts.items())
    of = plural(sum(counts.values()), "published ratio")
    return f"Of {of}: {told}. Each is compared at the digits it was printed with."


def published_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """Published ratios beside those computed here."""
    return [
        [
            TITLES[row["table"]],
            row["category"],
            row["published"],
            row["computed"] or "–",
            f"{row['verdict']}: {row['how']}" if row["how"] else row["verdict"],
        ]
        for row in record["ll144"]["published"]["rows"]
    ]


def sensitivity_sentence(other: Mapping[str, Any]) -> str:
    """Which median the second set of ratios uses."""
    who = {"known": "Without people of unknown category", "all": "With people of unknown category"}
    return (
        f"The rule does not say whether people of unknown category belong to the full sample. "
        f"{who[other['median_population']]} the median is {words.figure(other['median'])}, and "
        f"{other['overall_count']} lie above it."
    )


def _all_rows(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterable[Mapping[str, Any]]:
    for name in TITLES:
        yield from tables[name]


def html(record: Mapping[str, Any]) -> str:
    """Write the report as one HTML file that loads nothing and runs no script."""
    shown = parts(record)
    return _template().render(
        record=record,
        parts=shown,
        charts={(i, n): _chart(part, i, n) for i, part in enumerate(shown) for n in TITLES},
        record_sha256=head(record),
    )


def _chart(part: Part, i: int, name: str) -> Markup:
    title = f"Impact ratios, {TITLES[name]}{', ' + part.title if part.title else ''}"
    return dots(part.tables[name], name=f"dots-{i}-{name}", title=title)


@cache
def _template() -> Template:
    import sys

    environment = page_html._environment()
    environment.globals["ll"] = sys.modules[__name__]
    return environment.get_template("ll144.html.j2")
