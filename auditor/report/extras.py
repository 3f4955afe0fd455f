"""Sections that stand only where a run has something for them: comparison, discarded variants, plan, waivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.contrib.adaptive import report as adaptive
from auditor.core import waivers
from auditor.measure.two_models import MIN_SEEDS
from auditor.report import comparison, planned, words
from auditor.report.document import Items, Section, Table, Text, noted

Data = Mapping[str, Any]
DISCARDED = (
    "Model",
    "Attributes",
    "Texts",
    "Discarded ones changed",
    "Valid ones changed",
    "Share of all changes",
)
DEVIATIONS = ("What", "As planned", "As run")


def build(record: Data) -> tuple[Section, ...]:
    """Lay out what the record has, in the order of the report."""
    found = (_comparison(record), _adaptive(record), _discarded(record), _frozen(record), _waivers(record))
    return tuple(section for section in found if section is not None)


def _comparison(record: Data) -> Section | None:
    if not record.get("comparison"):
        return None
    told = comparison.build(record)
    if told is None:
        return None
    tables = (
        Table(
            caption="Every model on the same texts",
            columns=comparison.RATES,
            lines=told.rates,
            right=comparison.RIGHT,
        ),
        Table(
            caption="Two models on the variants that both answered",
            columns=comparison.PAIRS,
            lines=told.pairs,
            right=comparison.RIGHT,
        ),
    )
    return Section(
        id="comparison",
        title="The models beside each other",
        short="Models",
        blocks=noted(told.notes, tables),
        folded=True,
    )


def _adaptive(record: Data) -> Section | None:
    told = adaptive.build(record)
    if told is None:
        return None
    tables = (
        Table(
            caption="What the questions went to",
            columns=adaptive.CALLS,
            lines=told.calls,
            right=adaptive.RIGHT,
        ),
        Table(
            caption="Arms on fresh texts (95 % intervals)",
            columns=adaptive.FRESH,
            lines=told.fresh,
            right=adaptive.RIGHT,
        ),
    )
    return Section(
        id="adaptive", title=adaptive.TITLE, short="Search", blocks=noted(told.notes, tables), folded=True
    )


def _discarded(record: Data) -> Section | None:
    rows: Sequence[Data] = (record.get("discarded") or {}).get("rows") or ()
    if not rows:
        return None
    several = len({(r["model"], r["format"]) for r in rows}) > len({r["model"] for r in rows})
    lines = tuple(
        (
            f"{r['model']}, {r['format']}" if several else str(r["model"]),
            words.attributes(r["attributes"]),
            words.count(int(r["estimate"]["n"])),
            words.interval(r["estimate"]),
            words.interval(r.get("estimate_valid")),
            _share(r),
        )
        for r in rows
        if int(r["estimate"]["n"]) >= MIN_SEEDS
    )
    exemplars = (record["discarded"] or {}).get("exemplars") or ()
    notes = [
        "A figure about the validity check, not about the model: variants that the check discarded were asked too. "
        "They enter no other figure of this report.",
        "The last column is the part of all changes that would have been reported from discarded variants had nothing "
        "been checked.",
    ]
    if exemplars:
        notes.append(f"Examples: audit show {words.run_name(record)} {exemplars[0]}")
    return Section(
        id="discarded",
        title="What the discarded variants would have added",
        short="Discarded",
        blocks=noted(
            notes,
            [
                Table(
                    caption="Answers to discarded and to valid variants",
                    columns=DISCARDED,
                    lines=lines,
                    right=comparison.RIGHT,
                )
            ],
        ),
        folded=True,
    )


def _share(row: Data) -> str:
    changes = int(row["changes"]) + int(row["changes_valid"])
    if row.get("share_of_all_changes") is None:
        return "no change"
    return f"{words.percent(row['share_of_all_changes'])} ({words.count(row['changes'])} of {words.count(changes)})"


def _frozen(record: Data) -> Section | None:
    frozen = record.get("frozen")
    if not frozen:
        return None
    by = f" by {frozen['frozen_by']}" if frozen.get("frozen_by") else ", no name given"
    notes = [f"The plan was frozen {frozen['frozen_at']}{by}. SHA-256: {frozen['sha256']}."]
    if frozen.get("reason"):
        notes.append(f"Reasons given: {words.sentence(str(frozen['reason']))}")
    notes += planned.frozen(record)
    lines = tuple(planned.deviations(record))
    if not lines:
        notes.append("No deviation was recorded.")
    table = Table(caption="What was done otherwise than planned", columns=DEVIATIONS, lines=lines)
    return Section(
        id="frozen", title="The frozen plan", short="Plan", blocks=noted(notes, (table,)), brief=True
    )


def _waivers(record: Data) -> Section | None:
    items = waivers.items(record)
    if not items:
        return None
    note = "Somebody lets these findings stand. They are shown all the same, and change no figure."
    source, date = (record["waivers"].get(key) or "not recorded" for key in ("source", "date"))
    about = f"File: {source}, as of: {date}."
    return Section(
        id="waivers",
        title="Waivers",
        short="Waivers",
        blocks=(Text(note), Items(tuple(waivers.lines(record))), Text(about, "meta")),
        brief=True,
    )
