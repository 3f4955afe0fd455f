"""The default gate: whether a variant is still English and does not contradict itself, by the rules of `gate_rules`.

A whole parse changes with a word that the parser knows less well; the sentence may be as good as before. This gate
looks at what an edit can break. Only sentences of originals are parsed.

How often it is right: ``docs/method/validity.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from auditor.core.types import Case, Check, Edit, Variant
from auditor.perturb.combine import grouped
from auditor.perturb.edits import replacing, span_of
from auditor.perturb.gate import TextGate
from auditor.perturb.gate.gate_rules import RULES, Original, Place, units_of
from auditor.text.english import words as tokens_of
from auditor.text.parse import MAX_CHARS, Parse, Parser

# Lines are fitted to the text by what writes them (`auditor.perturb.name_lines`); an agreement follows another edit.
UNASKED = frozenset(("name_line", "statement", "agreement"))


class _Part(NamedTuple):
    """A changed sentence: its number, where it starts, the sentence of the original, and the edits in it."""

    number: int
    start: int
    sentence: str
    edits: Sequence[Edit]


class _Laid(NamedTuple):
    """A variant beside its original: its edits, and those of each changed sentence."""

    original: Original
    variant: Variant
    edits: Sequence[Edit]
    parts: Sequence[_Part]


def _lay(original: Original, variant: Variant) -> _Laid:
    """Deal the edits to the sentences that they change; one that reaches over an end belongs to the first."""
    text, spans = original.text, original.sentences
    edits, last = edits_of(text, variant), len(spans) - 1
    rows = grouped((next((i for i, (_, end) in enumerate(spans) if span_of(e)[0] < end), last), e) for e in edits)
    parts = [
        _Part(i, spans[i][0], text[spans[i][0] : max(spans[i][1], span_of(own[-1])[1])], own) for i, own in rows.items()
    ]
    return _Laid(original, variant, edits, parts)


class Constructs(TextGate):
    """Checks variants by the constructs that their edits touch.

    Parameters
    ----------
    parser : Parser
        Parses sentences of originals; shared with whoever else needs parses, so that none is made twice.
    rules : sequence of functions
        Say what is wrong at a place, "" where nothing is; without it, all of `auditor.perturb.gate.gate_rules`.

    Attributes
    ----------
    name : str
        ``constructs.v2``.
    """

    name = "constructs.v2"

    def __init__(self, *, parser: Parser, rules: Sequence[Callable[[Place], str]] = RULES) -> None:
        self.parser, self._rules = parser, rules

    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases; the sentences of all originals are parsed together."""
        laid: list[list[_Laid | Check]] = []
        for case in cases:
            text = case.original.input
            old = Original(text, self.parser) if isinstance(text, str) else None
            laid.append([_lay(old, v) if old and isinstance(v.input, str) else self._row(v) for v in case.variants])
        parts = (part for row in laid for one in row if isinstance(one, _Laid) for part in one.parts)
        todo = list(dict.fromkeys(part.sentence for part in parts if len(part.sentence) <= MAX_CHARS))
        parses = dict(zip(todo, self.parser.parse(todo), strict=True))
        return [[self._check(one, parses) if isinstance(one, _Laid) else one for one in row] for row in laid]

    def _check(self, laid: _Laid, parses: Mapping[str, Parse]) -> Check:
        for part in laid.parts:
            if part.sentence not in parses:
                reason = f"sentence {part.number + 1} is longer than {MAX_CHARS} characters"
                return self._result(laid.variant, "unknown", reason)
        for part in laid.parts:
            for place, rule in itertools.product(_places(laid, part, parses[part.sentence]), self._rules):
                if wrong := rule(place):
                    name = rule.__name__.replace("_", " ")
                    return self._judged(laid.variant, f"sentence {part.number + 1}: {name}: {wrong}")
        return self._judged(laid.variant, "")


def _places(laid: _Laid, part: _Part, parse: Parse) -> list[Place]:
    """The place of each edit of a sentence that wrote something."""
    units, made = units_of(part.sentence, part.start, parse, part.edits), str(laid.variant.input)
    written = (e for e in part.edits if e.target.split() and e.kind not in UNASKED)
    return [Place(laid.original, made, laid.edits, e, units, parse) for e in written]


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
        start = old[a].start if a < len(old) else len(text)
        end = old[b - 1].end if b > a else start
        written = variant.input[new[c].start : new[d - 1].end] if d > c else ""
        blank = " " if a == b and written else ""
        out.append(replacing(text, (start, end), written + blank, "", "swap", ("", "")))
    return tuple(out)
