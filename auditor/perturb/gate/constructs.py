"""The default gate: whether a variant is still English, construct by construct, and does not contradict itself.

A whole parse changes with a word that the parser knows less well; the sentence may be as good as before. This gate
compares what an edit can break: the forms that agree with the changed word (`forms`, `agreement`), the
sense in which it stands (`senses`), and what the rest of the text says of the same person (`contradictions`). Only
sentences of originals are parsed, each once, whatever number of variants change it.

How often it is right: ``docs/validity.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from auditor.core.protocols import Gate
from auditor.core.types import Case, Check, Edit, Variant
from auditor.perturb.gate import contradictions, forms, leftovers, one_person, senses
from auditor.perturb.gate.agreement import Problem, find, first_new
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

_Key = tuple[str, bool, tuple[tuple[int, int, str, str, str, str], ...]]


class _Part(NamedTuple):
    """A changed sentence: its number, the sentence of the original, and the changes in it."""

    number: int
    sentence: str
    changes: tuple[Change, ...]
    key: _Key


class _Before:
    """An original, laid out once for all its variants."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = sentences(text)
        self.people = contradictions.Text(text)

    def parts(self, edits: Sequence[Edit]) -> list[_Part]:
        """Deal the edits to the sentences that they change; one that reaches over an end belongs to the first."""
        out: list[_Part] = []
        at = 0
        rows: dict[int, list[Change]] = {}
        for edit in edits:
            start, end = _span(edit)
            while at + 1 < len(self.spans) and self.spans[at][1] <= start:
                at += 1
            first = self.spans[at][0] if self.spans else 0
            rows.setdefault(at, []).append(Change(start - first, end - first, edit.target, edit))
        for number, changes in rows.items():
            start, end = self.spans[number]
            last = max(end, start + changes[-1].end)
            sentence = self.text[start:last]
            key = tuple((c.start, c.end, c.text, c.edit.kind, c.edit.attribute, c.edit.target_group) for c in changes)
            out.append(_Part(number, sentence, tuple(changes), (sentence, True, key)))
        return out


class Constructs(Gate):
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
        self._problems: Bounded[str, tuple[Problem, ...]] = Bounded(max_sentences)

    def check(self, original: Variant, variants: Sequence[Variant]) -> list[Check]:
        """Return one check for each variant of ``original``, in their order."""
        return self.check_groups([(original, variants)])[0]

    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases together, which makes larger batches for the parser."""
        return self.check_groups([(case.original, case.variants) for case in cases])

    def check_groups(self, groups: Sequence[tuple[Variant, Sequence[Variant]]]) -> list[list[Check]]:
        """Check originals with their variants; the result is in their order."""
        laid: list[tuple[_Before | None, list[tuple[Variant, tuple[Edit, ...], list[_Part]]]]] = []
        todo: dict[str, None] = {}
        for original, variants in groups:
            before = _Before(original.input) if isinstance(original.input, str) else None
            rows: list[tuple[Variant, tuple[Edit, ...], list[_Part]]] = []
            for variant in variants:
                edits = edits_of(before.text, variant) if before is not None else ()
                parts = before.parts(edits) if before is not None else []
                rows.append((variant, edits, parts))
                todo.update(
                    (p.sentence, None)
                    for p in parts
                    if self._reasons.get(p.key) is None and len(p.sentence) <= MAX_CHARS
                )
            laid.append((before, rows))
        asked = list(todo)
        parses = dict(zip(asked, self.parser.parse(asked), strict=True)) if asked else {}
        return [[self._check(before, *row, parses) for row in rows] for before, rows in laid]

    def _check(
        self,
        before: _Before | None,
        variant: Variant,
        edits: Sequence[Edit],
        parts: Sequence[_Part],
        parses: dict[str, Parse],
    ) -> Check:
        if before is None or not isinstance(variant.input, str):
            return self._result(variant, "unknown", "the gate reads texts, and this input is a table row")
        for part in parts:
            if len(part.sentence) > MAX_CHARS:
                reason = f"sentence {part.number + 1} is longer than {MAX_CHARS} characters"
                return self._result(variant, "unknown", reason)
            wrong = self._reasons.recall(part.key)
            if wrong is None:
                wrong = self._judge(part, parses[part.sentence])
                self._reasons.keep(part.key, wrong)
            if wrong:
                return self._result(variant, "invalid", f"sentence {part.number + 1}: {wrong}")
        changes = [Change(*_span(edit), edit.target, edit) for edit in edits if edit.kind not in LINES]
        wrong = _contradiction(before.people, changes, variant.input)
        if not wrong and (two := one_person.two_genders(before.people, changes, self.parser)):
            wrong = f"contradiction: {two}"
        return self._result(variant, "invalid" if wrong else "valid", wrong)

    def _judge(self, part: _Part, parse: Parse) -> str:
        """Say what is wrong with a changed sentence, "" where nothing is."""
        _, places = places_of(part.sentence, parse, part.changes, opens=True)
        for place in places:
            for name, rule in _RULES.items() if place.edit.kind not in LINES else ():
                wrong = rule(place)
                if wrong:
                    return f"{name}: {wrong}"
        return self._agreement(part)

    def _agreement(self, part: _Part) -> str:
        made, at = [], 0
        for change in part.changes:
            made += [part.sentence[at : change.start], change.text]
            at = change.end
        made.append(part.sentence[at:])
        they = _THEY.search("".join(made))
        if they and not _THEY.search(part.sentence):
            return f"verb of they: {they[0]!r}"
        return first_new(self._listed(part.sentence), "".join(made))

    def _listed(self, sentence: str) -> tuple[Problem, ...]:
        problems = self._problems.recall(sentence)
        if problems is None:
            problems = tuple(find(sentence))
            self._problems.keep(sentence, problems)
        return problems

    def _result(self, variant: Variant, status: Literal["valid", "invalid", "unknown"], reason: str) -> Check:
        return Check(variant_id=variant.id, check=self.name, status=status, reason=reason)


def _contradiction(text: contradictions.Text, changes: Sequence[Change], made: str) -> str:
    """Say how the changed text ``made`` contradicts itself, "" where it does not."""
    for rule in (*contradictions.RULES, *leftovers.RULES):
        wrong = rule(text, changes)
        if wrong:
            return f"contradiction: {wrong}"
    wrong = leftovers.phrase(text, changes, made)
    return f"contradiction: {wrong}" if wrong else ""


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
