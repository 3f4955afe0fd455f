"""The default gate: whether a variant is still English, construct by construct, and does not contradict itself.

A whole parse changes with a word that the parser knows less well; the sentence may be as good as before. This gate
compares what an edit can break: the forms that agree with the changed word (`forms`, `agreement`), the
sense in which it stands (`senses`), and what the rest of the text says (`genders`, `leftovers`). Only sentences of
originals are parsed, each once, whatever number of variants change it.

How often it is right: ``docs/validity.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from auditor.core.types import Check, Edit, Span, Variant
from auditor.perturb.gate import TextGate, forms, genders, leftovers, senses
from auditor.perturb.gate.agreement import find, first_new
from auditor.perturb.gate.units import Change, places_of
from auditor.text.english import Word
from auditor.text.english import words as tokens_of
from auditor.text.parse import MAX_CHARS, Bounded, Parse, Parser
from auditor.text.split import sentences

LINES = frozenset(("name_line", "statement"))  # fitted to the text by what writes them (`auditor.perturb.name_lines`)
MAX_SENTENCES = 200_000  # remembered judgements of changed sentences
# Across markup, which no parser reads.
_THEY = re.compile(
    r"\bthey(?:\s|[*_]|</?[a-z][^<>]*>)+(?:is|was|has|does|isn't|wasn't|hasn't|doesn't)\b", re.IGNORECASE
)
_RULES = {**forms.RULES, **senses.RULES}

_Key = tuple[str, tuple[tuple[int, int, str, str, str, str], ...]]


class _Part(NamedTuple):
    """A changed sentence: its number, where it starts, the sentence of the original, and the changes in it."""

    number: int
    start: int
    sentence: str
    changes: Sequence[Change]
    key: _Key


class _Laid(NamedTuple):
    """A variant beside its original: the changes of it, and the changes of each changed sentence."""

    text: genders.Text
    variant: Variant
    changes: Sequence[Change]
    parts: Sequence[_Part]


def _lay(text: genders.Text, spans: Sequence[Span], variant: Variant) -> _Laid:
    """Deal the edits to the sentences that they change; one that reaches over an end belongs to the first."""
    changes = [Change(*_span(edit), edit.target, edit) for edit in edits_of(text.text, variant)]
    rows: dict[int, list[Change]] = {}
    at = 0
    for change in changes:
        while at + 1 < len(spans) and spans[at][1] <= change.start:
            at += 1
        rows.setdefault(at, []).append(change)
    parts = []
    for number, own in rows.items():
        start, end = spans[number]
        sentence = text.text[start : max(end, own[-1].end)]
        key = tuple(
            (c.start - start, c.end - start, c.text, c.edit.kind, c.edit.attribute, c.edit.target_group) for c in own
        )
        parts.append(_Part(number, start, sentence, own, (sentence, key)))
    return _Laid(text, variant, changes, parts)


class Constructs(TextGate):
    """Checks variants by the constructs that their edits touch.

    Parameters
    ----------
    parser : Parser
        Parses sentences of originals; shared with whoever else needs parses, so that none is made twice.
    max_sentences : int
        How many judgements of changed sentences are remembered.

    Attributes
    ----------
    name : str
        ``constructs.v1``.

    Examples
    --------
    >>> check = Constructs(parser=Parser())
    >>> original = Variant(id="c.o", input="She sits by a window.")
    >>> texts = ["He sits by a window.", "They sits by a window.", "He sits by an window."]
    >>> [c.status for c in check.check(original, [Variant(id=f"c.v{i}", input=t) for i, t in enumerate(texts)])]
    ['valid', 'invalid', 'invalid']
    """

    name = "constructs.v1"

    def __init__(self, *, parser: Parser, max_sentences: int = MAX_SENTENCES) -> None:
        self.parser = parser
        self._reasons: Bounded[_Key, str] = Bounded(max_sentences)

    def check_groups(self, groups: Sequence[tuple[Variant, Sequence[Variant]]]) -> list[list[Check]]:
        """Check originals with their variants; the result is in their order."""
        laid: list[list[_Laid | Check]] = []
        todo: dict[str, None] = {}
        for original, variants in groups:
            before = original.input if isinstance(original.input, str) else ""
            text, spans, rows = genders.Text(before), sentences(before), not isinstance(original.input, str)
            row = [self._row(v) if rows or not isinstance(v.input, str) else _lay(text, spans, v) for v in variants]
            laid.append(row)
            parts = (part for one in row if isinstance(one, _Laid) for part in one.parts)
            todo.update(
                (p.sentence, None) for p in parts if self._reasons.get(p.key) is None and len(p.sentence) <= MAX_CHARS
            )
        parses = dict(zip(todo, self.parser.parse(list(todo)), strict=True))
        return [[self._check(one, parses) if isinstance(one, _Laid) else one for one in row] for row in laid]

    def _check(self, laid: _Laid, parses: Mapping[str, Parse]) -> Check:
        text, variant = laid.text, laid.variant
        for part in laid.parts:
            if len(part.sentence) > MAX_CHARS:
                reason = f"sentence {part.number + 1} is longer than {MAX_CHARS} characters"
                return self._result(variant, "unknown", reason)
            wrong = self._reasons.recall(part.key)
            if wrong is None:
                wrong = self._judge(part, parses[part.sentence])
                self._reasons.keep(part.key, wrong)
            if wrong:
                return self._judged(variant, f"sentence {part.number + 1}: {wrong}")
        changes = [change for change in laid.changes if change.edit.kind not in LINES]
        wrong = (
            genders.gender(text, changes)
            or genders.either(text, changes)
            or leftovers.left_behind(text.text, changes)
            or leftovers.phrase(text.text, changes, str(variant.input))
            or genders.two_genders(text, changes, self.parser)
        )
        return self._judged(variant, f"contradiction: {wrong}" if wrong else "")

    def _judge(self, part: _Part, parse: Parse) -> str:
        """Say what is wrong with a changed sentence, "" where nothing is."""
        changes = [Change(c.start - part.start, c.end - part.start, c.text, c.edit) for c in part.changes]
        for place in places_of(part.sentence, parse, changes):
            for name, rule in _RULES.items() if place.edit.kind not in LINES else ():
                wrong = rule(place)
                if wrong:
                    return f"{name}: {wrong}"
        written, at = "", 0
        for change in changes:
            written += part.sentence[at : change.start] + change.text
            at = change.end
        written += part.sentence[at:]
        they = _THEY.search(written)
        if they and not _THEY.search(part.sentence):
            return f"verb of they: {they[0]!r}"
        return first_new(find(part.sentence), written)


def _span(edit: Edit) -> tuple[int, int]:
    assert isinstance(edit.where, tuple)
    return edit.where


def edits_of(text: str, variant: Variant) -> tuple[Edit, ...]:
    """The edits of a variant in order; where it says none, those that a comparison of words finds."""
    if variant.edits and all(isinstance(edit.where, tuple) for edit in variant.edits):
        return variant.edits
    assert isinstance(variant.input, str)
    old, new = tokens_of(text), tokens_of(variant.input)
    out = []
    matcher = SequenceMatcher(
        None, [text[w.start : w.end] for w in old], [variant.input[w.start : w.end] for w in new], autojunk=False
    )
    for op, a, b, c, d in matcher.get_opcodes():
        if op == "equal":
            continue
        start, end = (old[a].start, old[b - 1].end) if b > a else (_gap(text, old, a),) * 2
        written = variant.input[new[c].start : new[d - 1].end] if d > c else ""
        out.append(
            Edit(attribute="", kind="swap", source_group="", target_group="", source=text[start:end],
                 target=written + (" " if a == b and written else ""), where=(start, end))
        )  # fmt: skip
    return tuple(out)


def _gap(text: str, tokens: Sequence[Word], a: int) -> int:
    return tokens[a].start if a < len(tokens) else len(text)
