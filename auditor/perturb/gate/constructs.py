"""The default gate: whether a variant is still English and does not contradict itself, by the rules of `gate_rules`.

A whole parse changes with a word that the parser knows less well; the sentence may be as good as before. This gate
looks at what an edit can break. Only sentences of originals are parsed.

How often it is right: ``docs/method/validity.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from auditor.core.types import Check, Edit, Span, Variant
from auditor.perturb.combine import grouped
from auditor.perturb.edits import span_of
from auditor.perturb.gate import TextGate
from auditor.perturb.gate.gate_rules import RULES
from auditor.perturb.gate.place import Original, Place, units_of
from auditor.text.english import Word
from auditor.text.english import words as tokens_of
from auditor.text.parse import MAX_CHARS, Parse, Parser
from auditor.text.split import sentences

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


def _lay(original: Original, spans: Sequence[Span], variant: Variant) -> _Laid:
    """Deal the edits to the sentences that they change; one that reaches over an end belongs to the first."""
    text = original.text
    edits = edits_of(text, variant)
    last = len(spans) - 1
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

    def check_groups(self, groups: Sequence[tuple[Variant, Sequence[Variant]]]) -> list[list[Check]]:
        """Check originals with their variants; the result is in their order."""
        laid: list[list[_Laid | Check]] = []
        for original, variants in groups:
            before = Original(original.input, self.parser) if isinstance(original.input, str) else None
            spans = sentences(before.text) if before else []
            laid.append(
                [_lay(before, spans, v) if before and isinstance(v.input, str) else self._row(v) for v in variants]
            )
        parts = (part for row in laid for one in row if isinstance(one, _Laid) for part in one.parts)
        todo = list(dict.fromkeys(part.sentence for part in parts if len(part.sentence) <= MAX_CHARS))
        parses = dict(zip(todo, self.parser.parse(todo), strict=True))
        return [[self._check(one, parses) if isinstance(one, _Laid) else one for one in row] for row in laid]

    def _check(self, laid: _Laid, parses: Mapping[str, Parse]) -> Check:
        for part in laid.parts:
            if part.sentence not in parses:
                reason = f"sentence {part.number + 1} is longer than {MAX_CHARS} characters"
                return self._result(laid.variant, "unknown", reason)
        places = (place for part in laid.parts for place in _places(laid, part, parses[part.sentence]))
        return self._judged(laid.variant, next(filter(None, (self._wrong(*place) for place in places)), ""))

    def _wrong(self, number: int, place: Place) -> str:
        answers = ((rule.__name__.replace("_", " "), rule(place)) for rule in self._rules)
        return next((f"sentence {number}: {name}: {wrong}" for name, wrong in answers if wrong), "")


def _places(laid: _Laid, part: _Part, parse: Parse) -> list[tuple[int, Place]]:
    """The place of each edit of a sentence that wrote something, after the number of the sentence."""
    units = units_of(part.sentence, part.start, parse, part.edits)
    written = [e for e in part.edits if e.target.split() and e.kind not in UNASKED]
    made = str(laid.variant.input)
    return [(part.number + 1, Place(laid.original, made, laid.edits, e, units, parse)) for e in written]


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
