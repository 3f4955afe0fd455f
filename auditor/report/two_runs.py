"""Two runs side by side; see `auditor.measure.compare`."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.core.record import RunRecord
from auditor.core.types import SHOWN
from auditor.measure.claims import MIN_TEXTS, OTHERS, Claim
from auditor.measure.compared import Comparison, RateChange
from auditor.report import claimed, matrix, words
from auditor.report.document import Cell, Document, Section, Table, beside, noted

Lines = list[tuple[str | Cell, ...]]
Part = tuple[str, str, tuple[str, ...], Lines, list[str]]
SIGNS = {"worse": "▲ worse", "better": "▼ better", "unclear": "? no difference shown", "untested": "– not tested"}
ORDER = {"worse": 0, "better": 1, "unclear": 2, "untested": 3}
RATES = ("Change", "Model", "Changed", "Before", "After", "Difference (95 %)", "Texts", "p, corrected")
FINDINGS = ("", "Finding", "Before", "After", "Note")
MEANING = (
    "Worse and better: more or fewer changed answers, with a test by text below 5 % after Holm's correction over "
    "all rates tested. No difference shown is about the data: the interval says how large a difference is left open."
)


def build(comparison: Comparison, records: Sequence[RunRecord] = ()) -> Document:
    """Lay the comparison out; with the records of both runs, their net differences side by side."""
    parts = [
        *_claims(records),
        ("rates", "How often answers changed", RATES, _rates(comparison), _tests(comparison)),
        ("findings", "Findings shown", FINDINGS, _findings(comparison), []),
    ]
    return beside(
        comparison,
        summary(comparison),
        [
            Section(
                id=id,
                title=title,
                short=title,
                blocks=noted(told, [Table(caption=title, columns=columns, lines=tuple(lines))]),
            )
            for id, title, columns, lines, told in parts
            if lines
        ],
    )


NET = ("Attribute", "Groups", "Model", "Before", "After")
SIDES = (
    "The net difference of each run with its own interval, for pairs of groups that a dictionary names and for what "
    "was shown in either run. Two intervals that overlap show no change."
)


def _claims(records: Sequence[RunRecord]) -> list[Part]:
    """Net differences of both runs: pairs of groups, and whatever was shown in one of them."""
    if len(records) != 2:
        return []
    sides = [{k: c for k, c in claimed.index(r).items() if c.family == "net" and c.texts >= MIN_TEXTS} for r in records]
    keys = [k for k in dict.fromkeys((*sides[0], *sides[1])) if any(_leads(side.get(k)) for side in sides)]
    lines: list[tuple[str | Cell, ...]] = []
    for key in keys:
        one = sides[0].get(key) or sides[1][key]
        place = f"{one.model}, {one.format}" if one.format not in ("", "bare") else one.model
        cells = [_net(side.get(key)) for side in sides]
        lines.append((one.attribute, matrix.pair(records[1], one), place, *cells))
    return [("net", "Net differences, before and after", NET, lines, [SIDES])]


def _leads(claim: Claim | None) -> bool:
    return claim is not None and (claim.verdict in SHOWN or claim.groups[-1:] != (OTHERS,))


def _net(claim: Claim | None) -> Cell:
    if claim is None or claim.verdict == "not_tested":
        return Cell(text="–", sub="not compared")
    about = words.plural(claim.texts, "text")
    return Cell(text=claimed.net(claim), mark=claimed.verdict(claim), kind=claim.verdict, sub=about)


def summary(comparison: Comparison) -> str:
    """Counts, in one sentence."""
    rates = [r.change for r in comparison.rates]
    fates = [f.fate for f in comparison.findings]
    n = len(comparison.plans)
    return (
        f"{words.plural(n, 'setting')} {'differs' if n == 1 else 'differ'}. Of "
        f"{words.plural(len(rates), 'rate')}: {rates.count('worse')} worse, {rates.count('better')} better, "
        f"{rates.count('unclear')} without a difference shown, {rates.count('untested')} not tested. Findings "
        f"shown: {fates.count('new')} new, {fates.count('gone')} gone, {fates.count('kept')} in both."
    )


def _rates(comparison: Comparison) -> Lines:
    return [
        (
            SIGNS[r.change],
            r.model + (f", {r.format}" if r.format else ""),
            words.attributes(r.attributes),
            words.percent(r.before),
            words.percent(r.after),
            _points(r),
            str(r.n_after) if r.n_before == r.n_after else f"{r.n_before} and {r.n_after}",
            r.reason if r.p_adjusted is None else f"{r.p_adjusted:.2g}",
        )
        for r in sorted(comparison.rates, key=lambda r: ORDER[r.change])
    ]


def _points(rate: RateChange) -> str:
    if rate.difference is None:
        return "not measured"
    low, high = (f"{100 * (x or 0.0):+.1f}" for x in (rate.low, rate.high))
    return f"{100 * rate.difference:+.1f} points ({low} to {high})".replace("-", "−")


def _tests(comparison: Comparison) -> list[str]:
    names = sorted({r.test for r in comparison.rates if r.test})
    return [f"Test: {'; '.join(names)}. {MEANING}"] if names else []


def _findings(comparison: Comparison) -> Lines:
    return [(f.fate, f.key, _ids(f.before), _ids(f.after), f.note) for f in comparison.findings]


def _ids(ids: Sequence[str]) -> str:
    if not ids:
        return "–"
    return ", ".join(ids[:4]) + (f" and {len(ids) - 4} more" if len(ids) > 4 else "")
