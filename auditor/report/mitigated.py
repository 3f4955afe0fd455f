"""What changed prompts do to a run, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from auditor.core.types import SHOWN
from auditor.measure.claims import Claim
from auditor.measure.mitigation import Change, Effect, Mitigated, Side
from auditor.report import claimed, words
from auditor.report.document import Cell, Document, Lines, Section, Table, noted

EFFECTS: Mapping[Effect, tuple[str, str]] = {
    "reduced": ("▼ reduced", "bounded"),
    "reversed": ("▲ reversed", "shown"),
    "larger": ("▲ larger", "shown"),
    "not_shown": ("? no change shown", "not_determined"),
    "not_tested": ("– not tested", "not_tested"),
}
ORDER: tuple[Effect, ...] = ("reversed", "larger", "reduced", "not_shown", "not_tested")
CHANGES = ("Prompt", "Difference", "Before", "After", "Change (95 %)", "Effect", "p, corrected")
SIDES = ("Prompt", "Measure", "Texts", "Before", "After", "Difference (95 %)", "p, corrected")
COSTS = ("Prompt", "What", "Answers", "Calls", "Unread", "Tokens in", "Tokens out", "USD", "Run")
MEANING = (
    "The change is measured answer by answer on the same versions of the same texts; intervals and tests are those of "
    "claims, with Holm's correction over all changes. Reduced: the change is shown and goes towards no difference. "
    "Reversed: a difference is shown the other way round. No change shown is about the data, not about the prompt."
)


def build(
    title: str, meta: str, found: Mitigated, costs: Sequence[tuple[str, ...]] = (), notes: Iterable[str] = ()
) -> Document:
    """Lay out what changed prompts do; ``costs`` are lines of the columns `COSTS`."""
    tested = [c for c in found.changes if c.effect != "not_tested"]
    left = len(found.changes) - len(tested)
    told = [MEANING] + ([f"Not tested, for want of texts: {words.plural(left, 'comparison')}."] if left else [])
    tables: tuple[tuple[str, str, list[str], tuple[str, ...], Lines], ...] = (
        ("changes", "Net differences and interactions", told, CHANGES, tuple(_changes(tested))),
        ("sides", "Accuracy and instability", [], SIDES, tuple(_sides(found.sides))),
        ("costs", "What was asked", [], COSTS, tuple(costs)),
    )
    return Document(
        title=title,
        name="",
        meta=f"{meta} {helps(found)}".strip(),
        banners=tuple(notes),
        first=None,
        sections=tuple(
            Section(
                id=id, title=name, short=name, blocks=noted(said, [Table(caption=name, columns=columns, lines=lines)])
            )
            for id, name, said, columns, lines in tables
            if lines
        ),
    )


def helps(found: Mitigated) -> str:
    """What was shown, in one or two sentences; nothing else is recommended."""
    good = found.helps()
    turned = sorted({c.mitigation for c in found.changes if c.effect == "reversed"})
    shown = any(c.before.verdict in SHOWN for c in found.changes)
    told = (
        f"Shown to reduce a difference, and not shown to do harm: {', '.join(good)}."
        if good
        else "Of no prompt it was shown that it reduces a difference without harm."
        if shown
        else "No difference was shown under the first prompt, so none can be shown to shrink."
    )
    return told + (f" Reversed by: {', '.join(turned)}." if turned else "")


def _changes(changes: Iterable[Change]) -> Iterator[tuple[str | Cell, ...]]:
    for one in sorted(changes, key=lambda c: ORDER.index(c.effect)):
        mark, kind = EFFECTS[one.effect]
        p = one.change.p_adjusted
        yield (
            one.mitigation,
            Cell(text=f"{one.before.attribute}: {' / '.join(one.before.groups)}", sub=one.before.label),
            _cell(one.before),
            _cell(one.after),
            _difference(one.change, one.unit),
            Cell(text=mark, kind=kind),
            "–" if p is None else f"{p:.2g}",
        )


def _cell(claim: Claim) -> Cell:
    return Cell(text=claimed.net(claim), mark=claimed.verdict(claim), kind=claim.verdict)


def _difference(claim: Claim, unit: str) -> str:
    by_words = claim.verdict == "shown_for_words"
    limits = (claim.words_low, claim.words_high) if by_words else (claim.low, claim.high)
    value = claim.words_estimate if by_words else claim.estimate
    if value is None or limits[0] is None or limits[1] is None:
        return "–"
    told = f"{value:+.2f} ({limits[0]:+.2f} to {limits[1]:+.2f}) {unit}"
    return told.replace("-", "−").strip()


def _sides(sides: Iterable[Side]) -> Iterator[tuple[str | Cell, ...]]:
    for one in sides:
        told = f"{100 * (one.after - one.before):+.1f}"
        if one.low is not None and one.high is not None:
            told += f" ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
        yield (
            one.mitigation,
            {"accuracy": "answers like the label", "instability": "answers that an edit changes"}[one.what],
            str(one.texts),
            words.percent(one.before),
            words.percent(one.after),
            f"{told} points".replace("-", "−"),
            "–" if one.p_adjusted is None else f"{one.p_adjusted:.2g}",
        )
