"""How often answers equal the labels in the data, as lines of text; shown where the texts carry labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.record.sections import ByLabel, Gold, Measures, Performance
from auditor.core.types import Estimate
from auditor.report import words
from auditor.report.document import Section, Table, noted

MEASURES: tuple[tuple[str, Callable[[Measures], Estimate | None]], ...] = (
    ("Accuracy", lambda told: told.accuracy),
    ("Micro-F1", lambda told: told.micro_f1),
    ("Macro-F1", lambda told: told.macro_f1),
)


MAX_GROUPS = 8  # per model, the largest ones
FEW_TEXTS = 6  # smaller groups stand in run.json only


def build(record: RunRecord, names: Mapping[tuple[str, str], str], noun: str) -> Section | None:
    """Lay out the section, or None where the run has none."""
    section = record.performance
    gold = section.gold
    if not gold:
        return None
    if section.models is None:
        reason = words.sentence(f"Not measured: {section.reason or 'no reason given'}")
        return _section((reason,))
    several = any(_differs(m.overall) for m in section.models)
    shown = [m for m in MEASURES if several or m[0] != "Micro-F1"]
    lines: list[tuple[str, ...]] = []
    more: list[tuple[str, ...]] = []
    notes = [_what(section, noun, several)]
    for entry in section.models:
        name = names.get((entry.model, entry.format), entry.model)
        lines.append((name, "all texts", *_figures(entry.overall, shown)))
        ranked = sorted(entry.groups, key=lambda g: (-g.n, g.attribute, g.group))
        kept = {(g.attribute, g.group) for g in ranked[:MAX_GROUPS]}
        for group in entry.groups:
            if group.n < FEW_TEXTS:
                continue
            label = f"{group.attribute}: {words.group(group.group)}"
            row = (name, label, *_figures(group, shown))
            (lines if (group.attribute, group.group) in kept else more).append(row)
        notes.append(_violations(name, entry.violations, noun))
    notes += _lost(gold)
    columns = ("Model", "Texts that name", "Texts", *(title for title, _ in shown))
    table = Table(
        caption="By the groups that the originals name, with intervals by text",
        columns=columns,
        lines=tuple(lines),
        right=frozenset({"Texts"}),
        more=tuple(more),
        left=("further group", "further groups"),
    )
    return _section(tuple(n for n in notes if n), table)


def _section(notes: tuple[str, ...], *tables: Table) -> Section:
    title = "Answers against the labels in the data"
    return Section(id="performance", title=title, short="Labels", blocks=noted(notes, tables), folded=True)


def _differs(overall: Measures) -> bool:
    first, second = overall.accuracy, overall.micro_f1
    return bool(first and second and first.value != second.value)


def _figures(measures: Measures, shown: Sequence[tuple[str, Callable[[Measures], Estimate | None]]]) -> tuple[str, ...]:
    accuracy = measures.accuracy
    return (
        words.count(accuracy.n if accuracy else 0),
        *(words.interval(rate) if (rate := of(measures)) else "–" for _, of in shown),
    )


def _what(section: Performance, noun: str, several: bool) -> str:
    whole = f"the whole set of {noun}s" if several else f"the {noun}"
    skipped = sum(m.overall.accuracy.n_skipped for m in section.models or () if m.overall.accuracy)
    lost = f" {words.plural(skipped, 'original')} without a clear answer left out." if skipped else ""
    source = section.source or "the texts"
    if source.startswith("embedded"):
        source = f"those of the {source}, as their writer meant them"
    return (
        f"Labels: {source}. Accuracy: {whole} for the original equals the label in "
        f"the data. Texts are never chosen by it.{lost}"
    )


def _violations(name: str, found: ByLabel, noun: str) -> str:
    parts = []
    told = ((found.right, "answered like the label in the data"), (found.wrong, "answered otherwise"))
    for rate, what in told:
        if rate:
            parts.append(f"in {words.interval(rate)} of the variants of {words.plural(rate.n, 'original')} {what}")
    return f"{name}: the {noun} changed {', and '.join(parts)}." if parts else ""


def _lost(gold: Gold) -> list[str]:
    out = []
    if gold.unmapped:
        such = ", ".join(repr(text) for text in gold.examples)
        out.append(
            f"{words.plural(gold.unmapped, 'label')} in the data {'names' if gold.unmapped == 1 else 'name'} no "
            f"label of the task ({such}) and {'is' if gold.unmapped == 1 else 'are'} left out."
        )
    if gold.missing:
        out.append(f"{words.plural(gold.missing, 'text')} without a label left out.")
    return out
