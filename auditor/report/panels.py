"""Choices and rankings as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.measure.claims import Claim
from auditor.measure.impact import ImpactTable, ratio_text
from auditor.report import claimed, words
from auditor.report.document import Cell, Document, Lines, Section, Table, noted

NET = ("Group", "Compared with", "Model", "Texts", "Difference (95 %)", "Verdict")
GROUPS = ("Group", "Model", "Rankings", "First place", "Mean rank", "Impact ratio", "95 %")
MEANING = {
    "choice": (
        "Points: how much more often (of 100 pairs) a version about the group is chosen than one about the other "
        "group, half of them in each order. A tie counts as half for each side; placebo edits are taken out."
    ),
    "ranking": (
        "Points: how much more often (of 100 rankings) the group has the first place. Each ranking was asked for in "
        "rotated orders, so that every candidate stands at every place."
    ),
}


def build(
    title: str,
    kind: str,
    meta: str,
    found: Sequence[Claim],
    ranks: Mapping[str, Mapping[str, float]],
    ratios: Mapping[str, ImpactTable],
) -> Document:
    """Lay out who is chosen."""
    net = sorted((c for c in found if c.family == "net" and c.verdict != "not_tested"), key=claimed.order)
    tables: tuple[tuple[str, str, list[str], tuple[str, ...], Lines], ...] = (
        ("net", "Who is chosen", [MEANING[kind]], NET, tuple(_net(net))),
        (
            "groups",
            "First places and impact ratios",
            ["Intervals of the ratios take each ranking for independent; the differences above do not."],
            GROUPS,
            tuple(_groups(ranks, ratios)),
        ),
    )
    sections = []
    for id, name, said, columns, lines in tables:
        if lines:
            blocks = noted(said, [Table(caption=name, columns=columns, lines=lines)])
            sections.append(Section(id=id, title=name, short=name, blocks=blocks))
    return Document(title=title, name="", meta=meta, banners=(), first=None, sections=tuple(sections))


def _net(found: Sequence[Claim]) -> Iterator[tuple[str | Cell, ...]]:
    for claim in found:
        yield (
            f"{claim.attribute}: {claim.groups[0]}",
            claim.groups[1],
            claim.model,
            str(claim.texts),
            claimed.net(claim),
            Cell(text=claimed.verdict(claim), kind=claim.verdict),
        )


def _groups(
    ranks: Mapping[str, Mapping[str, float]], ratios: Mapping[str, ImpactTable]
) -> Iterator[tuple[str | Cell, ...]]:
    for model, table in ratios.items():
        for row in table.rows:
            group, interval = row.count.category, row.interval_best
            low, high = interval.low, interval.high
            yield (
                group,
                model,
                str(row.count.n),
                words.percent(float(row.count.rate)) if row.count.rate is not None else "–",
                f"{ranks[model].get(group, 0):.2f}",
                ratio_text(row.ratio) if row.ratio is not None else "–",
                f"{low:.2f} to {high:.2f}" if low is not None and high is not None else "–",
            )
