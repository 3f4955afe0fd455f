"""Which words the changes went with, as lines of text; shown where the run has a diagnosis of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.record.sections import Token, Tokens
from auditor.report import words
from auditor.report.document import Section, Table, noted

MAX_TOKENS = 10  # per model in short reports
MAX_MORE = 50  # per model in long ones; run.json has all of them
MAX_NAMES = 6
COLUMNS = ("Model", "Word", "Among", "Cases", "Changed", "Shrunken", "Index", "q")
RIGHT = frozenset({"Cases", "Index", "q"})


def build(record: RunRecord, names: Mapping[tuple[str, str], str]) -> Section | None:
    """Lay out the section, or None where the run has none."""
    sections = record.tokens
    if not sections:
        return None
    lines: list[tuple[str, ...]] = []
    more: list[tuple[str, ...]] = []
    notes = [_what(sections)]
    for section in sections:
        name = names.get((section.model, section.format), section.model)
        with_errors = [t for t in section.tokens if t.errors]
        ranked = sorted(with_errors, key=lambda t: not t.stands_out)  # stable: by rate within
        rows = [_row(name, token) for token in ranked]
        lines += rows[:MAX_TOKENS]
        more += rows[MAX_TOKENS:MAX_MORE]
        notes.append(_sums(name, section))
    table = Table(
        caption="Words with changed answers; those that stand out first, then by shrunken rate",
        columns=COLUMNS,
        lines=tuple(lines),
        right=RIGHT,
        more=tuple(more),
        left=("further word", "further words"),
    )
    return Section(
        id="tokens", title="Words that the changes went with", short="Words", blocks=noted(notes, [table]), folded=True
    )


def _row(name: str, token: Token) -> tuple[str, ...]:
    shrunken = token.shrunken
    index, q = token.index, token.q
    mark = "▲ " if token.stands_out else ""
    among = words.group(token.family)
    group = f" ({words.group(token.group)})" if token.group else ""
    return (
        name,
        f"{mark}{token.token}",
        f"{among}{group}",
        words.count(token.n),
        words.interval(token.interval),
        "–" if shrunken is None else words.percent(shrunken.value),
        "–" if index is None else f"{index:+.1f}",
        "–" if q is None else f"{q:.2g}",
    )


def _what(sections: Sequence[Tokens]) -> str:
    terminals = sections[0].unit == "terminal"
    token = (
        "a terminal of the grammar, compared within its rule"
        if terminals
        else "a term that was put in, compared within its attribute, over variants that change one attribute"
    )
    return (
        f"A word is {token}. Changed: share of the cases with the word in which some answer changed, with its exact "
        "95 % interval. Shrunken: the same, pulled towards the words it is compared with. Index: distance from their "
        "median in median deviations; above 2 is the published mark. q: exact binomial test, adjusted for the "
        "number of words. ▲ marks q of 0.05 or less above the pooled rate."
    )


def _sums(name: str, section: Tokens) -> str:
    out = sum(t.stands_out for t in section.tokens)
    parts = [f"{name}: {out} of {words.plural(len(section.tokens), 'word')} stand out"]
    reasons: dict[str, list[str]] = {}
    for family in section.families:
        reasons.setdefault(family.reason or "", []).append(words.group(family.name))
    for reason, names in reasons.items():
        if not reason:
            continue
        where = words.listing(names) if len(names) <= MAX_NAMES else f"{len(names)} sets of words"
        parts.append(f"index {reason} ({where})")
    return f"{'; '.join(parts)}."
