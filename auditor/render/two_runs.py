"""Two runs side by side, as text and as Markdown. From plain data; see `auditor.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.render import words
from auditor.render.markdown import escape, table
from auditor.render.page import Page

Data = Mapping[str, Any]
Lines = list[Sequence[str]]
SIGNS = {
    "worse": "▲ worse",
    "better": "▼ better",
    "unclear": "? no difference shown",
    "untested": "– not tested",
}
ORDER = {"worse": 0, "better": 1, "unclear": 2, "untested": 3}
RATES = ("Change", "Model", "Changed", "Before", "After", "Difference (95 %)", "Seeds", "p, corrected")
FINDINGS = ("", "Finding", "Before", "After", "Note")
MEANING = (
    "Worse and better: more or fewer changed answers, with a test by seed below 5 % after Holm's correction over "
    "all rates tested. No difference shown is about the data: the interval says how large a difference is left open."
)


def text(comparison: Data, *, width: int | None = None, encoding: str = "utf-8") -> str:
    """The comparison for a terminal."""
    page = Page(width=width or 100, encoding=encoding, color=False)
    page.heading(f"Run {comparison['before']} before, run {comparison['after']} after")
    page.paragraph(summary(comparison))
    for note in comparison["notes"]:
        page.paragraph(words.sentence(note))
    page.heading("Plans")
    if comparison["plans"]:
        page.table([("Setting", False), ("Before", False), ("After", False)], _plans(comparison))
    else:
        page.paragraph("The plans and their inputs are the same.")
    if comparison["rates"]:
        page.heading("Rates")
        page.table([(name, False) for name in RATES], _rates(comparison))
        page.line()
        for line in _tests(comparison):
            page.paragraph(line)
    if comparison["findings"]:
        page.heading("Findings shown")
        page.table([(name, False) for name in FINDINGS], _findings(comparison))
    return page.value()


def markdown(comparison: Data) -> str:
    """The comparison as Markdown; text from runs is escaped."""
    lines = [f"# Run {escape(comparison['before'])} before, run {escape(comparison['after'])} after", ""]
    lines += [escape(summary(comparison)), ""]
    lines += [f"> {escape(words.sentence(note))}\n" for note in comparison["notes"]]
    lines += ["## Plans", ""]
    if comparison["plans"]:
        lines += table(("Setting", "Before", "After"), _plans(comparison))
    else:
        lines += ["The plans and their inputs are the same.", ""]
    if comparison["rates"]:
        lines += ["## Rates", "", *table(RATES, _rates(comparison))]
        lines += [f"{escape(line)}\n" for line in _tests(comparison)]
    if comparison["findings"]:
        lines += ["## Findings shown", "", *table(FINDINGS, _findings(comparison))]
    return "\n".join(lines).rstrip() + "\n"


def summary(comparison: Data) -> str:
    """Counts, in one sentence."""
    rates = [r["change"] for r in comparison["rates"]]
    fates = [f["fate"] for f in comparison["findings"]]
    n = len(comparison["plans"])
    return (
        f"{words.plural(n, 'setting')} {'differs' if n == 1 else 'differ'}. Of "
        f"{words.plural(len(rates), 'rate')}: {rates.count('worse')} worse, {rates.count('better')} better, "
        f"{rates.count('unclear')} without a difference shown, {rates.count('untested')} not tested. Findings "
        f"shown: {fates.count('new')} new, {fates.count('gone')} gone, {fates.count('kept')} in both."
    )


def _plans(comparison: Data) -> Lines:
    return [(p["name"], p["before"], p["after"]) for p in comparison["plans"]]


def _rates(comparison: Data) -> Lines:
    return [
        (
            SIGNS[r["change"]],
            r["model"] + (f", {r['format']}" if r["format"] else ""),
            words.attributes(r["attributes"]),
            words.percent(r["before"]),
            words.percent(r["after"]),
            _points(r),
            str(r["n_after"]) if r["n_before"] == r["n_after"] else f"{r['n_before']} and {r['n_after']}",
            r["reason"] if r["p_adjusted"] is None else f"{r['p_adjusted']:.2g}",
        )
        for r in sorted(comparison["rates"], key=lambda r: ORDER[r["change"]])
    ]


def _points(rate: Data) -> str:
    if rate["difference"] is None:
        return "not measured"
    low, high = f"{100 * rate['low']:+.1f}", f"{100 * rate['high']:+.1f}"
    return f"{100 * rate['difference']:+.1f} points ({low} to {high})".replace("-", "−")


def _tests(comparison: Data) -> list[str]:
    names = sorted({r["test"] for r in comparison["rates"] if r["test"]})
    told = [f"Test: {'; '.join(names)}. {MEANING}"] if names else []
    opposed = [r for r in comparison["rates"] if r["reason"] and r["p_value"] is not None]
    return [*told, *(f"{words.attributes(r['attributes'])}: {r['reason']}." for r in opposed)]


def _findings(comparison: Data) -> Lines:
    return [
        (f["fate"], f["key"], _ids(f["before"]), _ids(f["after"]), f["note"]) for f in comparison["findings"]
    ]


def _ids(ids: Sequence[str]) -> str:
    if not ids:
        return "–"
    return ", ".join(ids[:4]) + (f" and {len(ids) - 4} more" if len(ids) > 4 else "")
