"""One finding with its evidence: what differs between its texts, and the answers in every cell of the lattice."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from auditor.core import talk, waivers
from auditor.core.errors import RunFolderError
from auditor.core.record import RunRecord, Waived
from auditor.core.types import Case, Diagnosis, Edit, Finding, Prompt, Response, Variant
from auditor.report import words

LABEL_LENGTH = 48  # longer answers are free text and are shown by their last line
OUTCOMES: dict[str, Literal["same", "changed"]] = {"pass": "same", "violation": "changed"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How often each answer was given, in full; ``total`` is the number of replicates asked."""

    counts: tuple[tuple[str, int], ...]
    total: int

    @property
    def majority(self) -> str | None:
        """The answer of more than half of the replicates, if there is one."""
        top = self.counts[0] if self.counts else ("", 0)
        return top[0] if 2 * top[1] > self.total else None

    @property
    def short(self) -> str:
        """The answer where all are alike, else as in `text`."""
        return shorten(self.counts[0][0]) if len(self.counts) == 1 else self.text

    @property
    def text(self) -> str:
        """``positive 5/5`` or ``negative 3/5, positive 2/5``."""
        if not self.total:
            return "not asked"
        shown: Counter[str] = Counter()
        for answer, k in self.counts:
            shown[shorten(answer)] += k
        ranked = sorted(shown.items(), key=lambda kv: (-kv[1], kv[0]))
        return ", ".join(f"{answer} {k}/{self.total}" for answer, k in ranked)


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeCell:
    """One input of the lattice below a variant, and its answers: the original, a smaller change, or the variant."""

    variant_id: str
    label: str
    changes: tuple[tuple[str, str, str], ...]  # (attribute, old word, new word)
    responses: tuple[Response, ...]
    tally: Tally
    compared: Literal["", "same", "changed", "not judged"] = ""
    note: str = ""  # why a cell was not asked
    prompts: tuple[Prompt, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """One variant in a line: what it changes, and both answers; their scores where the label stayed."""

    variant_id: str
    text: str  # "… [He → She] grinned …"
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A finding as every format shows it; its texts and answers where `with_evidence` found them."""

    finding: Finding
    sentence: str
    notes: tuple[str, ...]
    waiver: Waived | None = None
    brief: Brief | None = None  # its clearest example in a line
    more: tuple[Brief, ...] = ()  # further examples, the clearest first
    variant_id: str = ""
    original: tuple[Segment, ...] = ()
    variant: tuple[Segment, ...] = ()
    cells: tuple[LatticeCell, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    missing: str = ""  # why there is no evidence

    @property
    def key(self) -> str:
        """What the finding is called across runs."""
        return waivers.key(self.finding)

    @property
    def place(self) -> str:
        """Attributes or directions, in words."""
        return words.direction(self.finding.directions) or words.attributes(self.finding.attributes)

    @property
    def counts(self) -> bool:
        """Whether it is shown and not waived: what ``--fail-on shown`` counts."""
        return self.finding.verdict == "shown" and self.waiver is None


def with_evidence(card: Card, evidence: object, record: RunRecord) -> Card:
    """Return a card with the texts and answers of its clearest exemplar, as far as there are some."""
    finding = card.finding
    variant_id = next(iter(finding.exemplars), "")
    model, format_ = finding.model, finding.format
    case, variant, missing = look_up(evidence, variant_id)
    sides: Pair = ((), ())
    cells: tuple[LatticeCell, ...] = ()
    if case is not None and variant is not None:
        sides = compare(case.original, variant)
        cells = lattice(case, variant, evidence, model, format_)
    return replace(
        card,
        brief=brief(evidence, variant_id, model, format_),
        more=tuple(filter(None, (brief(evidence, id, model, format_) for id in finding.exemplars[1:]))),
        variant_id=variant_id,
        original=sides[0],
        variant=sides[1],
        cells=cells,
        diagnoses=tuple(d for d in record.diagnoses if d.finding == finding.id),
        missing=missing,
    )


def brief(evidence: object, variant_id: str, model: str, format_: str) -> Brief | None:
    """A variant in a line; None where the run does not hold it."""
    case, variant, _ = look_up(evidence, variant_id)
    if case is None or variant is None:
        return None
    both = [_responses(id, evidence, model, format_) for id in (case.original.id, variant.id)]
    before, after = (tally(responses).short for responses in both)
    if before == after and (label := tally(both[0]).majority) is not None:
        scores = [[r.scores[label] for r in side if r.scores and label in r.scores] for side in both]
        if all(scores):
            before, after = (f"{label} {sum(side) / len(side):.3f}" for side in scores)
    text = marked(*compare(case.original, variant))
    return Brief(variant_id, text, before, after)


def look_up(evidence: Any, variant_id: str) -> tuple[Case | None, Variant | None, str]:
    """Find a variant and its case; where they cannot be read, the third value says why."""
    if not variant_id:
        return None, None, "no example was recorded"
    try:
        case, variant = evidence.case_of(variant_id), evidence.variant(variant_id)
    except RunFolderError as error:  # one damaged line must not cost the whole report
        return None, None, str(error)
    except KeyError:
        case = variant = None
    if case is None or variant is None:
        return None, None, f"the run holds no variant {variant_id}"
    return case, variant, ""


def lattice(case: Case, variant: Variant, evidence: Any, model: str, format_: str) -> tuple[LatticeCell, ...]:
    """List the original, every smaller change that the case holds, and the variant, smallest first.

    Of smaller changes those count that make all edits of their attributes. Conversations are as they are shown.
    """
    smaller = [
        v
        for v in case.variants
        if v.choices
        and v.choices < variant.choices
        and v.choices == {c for c in variant.choices if c[0] in v.attributes}
    ]
    smaller.sort(key=lambda v: (v.order, v.attributes, v.id))
    cells: list[LatticeCell] = []
    for member in (case.original, *((*smaller, variant) if variant.edits else ())):
        responses = _responses(member.id, evidence, model, format_)
        check = evidence.check(member.id) if cells else None
        note = "" if check is None or check.status == "valid" else f"discarded: {check.reason or check.status}"
        counted = tally(responses)
        cells.append(
            LatticeCell(
                variant_id=member.id,
                label=words.attributes(member.attributes) if cells else "original",
                changes=tuple(
                    dict.fromkeys((e.attribute, e.source, e.target) for e in member.edits if e.kind != "agreement")
                ),
                responses=tuple(r if r.output is None else replace(r, output=talk.shown(r.output)) for r in responses),
                tally=counted,
                compared=_compared(member.id, cells[0].tally, counted, evidence, model, format_) if cells else "",
                note=note,
                prompts=tuple(p for p in evidence.prompts(member.id) if not format_ or p.format in ("", format_)),
            )
        )
    return tuple(cells)


def _compared(
    variant_id: str, original: Tally, changed: Tally, evidence: Any, model: str, format_: str
) -> Literal["same", "changed", "not judged"]:
    """Follow the oracle's verdict where the evidence has one, else compare the majority answers as they stand."""
    for verdict in evidence.verdicts(variant_id):
        if verdict.model in ("", model) and (not format_ or verdict.format in ("", format_)):
            return OUTCOMES.get(verdict.outcome, "not judged")
    base, answers = original.majority, changed.majority
    if base is None or answers is None:
        return "not judged"
    return "same" if base == answers else "changed"


def _responses(variant_id: str, evidence: Any, model: str, format_: str) -> list[Response]:
    mine = [
        r
        for r in evidence.responses(variant_id)
        if (not model or r.model in ("", model)) and (not format_ or r.format in ("", format_))
    ]
    return sorted(mine, key=lambda r: (r.format, r.replicate))


def tally(responses: Sequence[Response]) -> Tally:
    """Count equal answers; failures count as answers of their own, by their error code."""
    counts: Counter[str] = Counter()
    for response in responses:
        counts[f"failed ({response.error})" if response.output is None else talk.brief(response.output).strip()] += 1
    ranked = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    return Tally(counts=tuple(ranked), total=len(responses))


def shorten(output: str) -> str:
    """Put an answer into one line: as it is if it is short, else its last line, cut."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    if not lines:
        return "(empty)"
    line = lines[-1]
    short = line if len(line) <= LABEL_LENGTH else line[: LABEL_LENGTH - 1].rstrip() + "…"
    return short if len(lines) == 1 else f"… {short}"


# -- what differs between two texts -------------------------------------------------------------------------

GAP = " … "
ROOM = 34  # characters kept on each side of a change in one line
LENGTH = 150  # characters of such a line, at most


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A piece of text: unchanged (``edit`` is None and ``changed`` False), or one side of an edit."""

    text: str
    changed: bool = False
    edit: Edit | None = None

    @property
    def attribute(self) -> str:
        """The attribute edited; ``repair`` for a forced agreement, empty where it is not known."""
        if self.edit is None:
            return ""
        return "repair" if self.edit.kind == "agreement" else self.edit.attribute


Pair = tuple[tuple[Segment, ...], tuple[Segment, ...]]


def compare(original: Variant, variant: Variant) -> Pair:
    """Segments of the original and of the variant, by recorded edits where these give the variant, else by words."""
    old, new = str(original.input), str(variant.input)
    pair = _by_edits(old, variant.edits)
    if pair is not None and "".join(s.text for s in pair[1]) == new:
        return pair
    a, b = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in (old, new))
    steps = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return _sides(("".join(a[i:j]), "".join(b[k:m]), tag != "equal", None) for tag, i, j, k, m in steps)


def _sides(pieces: Iterable[tuple[str, str, bool, Edit | None]]) -> Pair:
    left: list[Segment] = []
    right: list[Segment] = []
    for old, new, changed, edit in pieces:
        left += [Segment(text=old, changed=changed, edit=edit)] if old else []
        right += [Segment(text=new, changed=changed, edit=edit)] if new else []
    return tuple(left), tuple(right)


def _by_edits(text: str, edits: Sequence[Edit]) -> Pair | None:
    spans = sorted(((e.where, e) for e in edits if not isinstance(e.where, str)), key=lambda s: s[0])
    if len(spans) != len(edits):
        return None
    pieces: list[tuple[str, str, bool, Edit | None]] = []
    at = 0
    for (start, end), edit in spans:
        if not at <= start <= end <= len(text):
            return None
        pieces += [(text[at:start], text[at:start], False, None), (text[start:end], edit.target, True, edit)]
        at = end
    return _sides([*pieces, (text[at:], text[at:], False, None)])


def excerpt(segments: Sequence[Segment], *, limit: int = 600, context: int = 140) -> tuple[Segment, ...]:
    """Cut a text of more than ``limit`` characters to ``context`` characters on each side of its changes."""
    if sum(len(s.text) for s in segments) <= limit:
        return tuple(segments)
    if not any(s.changed for s in segments):
        text = "".join(s.text for s in segments)
        return (Segment(text=_head(text, limit) + GAP.rstrip()),)
    kept: list[Segment] = []
    last = len(segments) - 1
    for i, segment in enumerate(segments):
        room = context * ((i > 0) + (i < last))
        if segment.changed or len(segment.text) <= room:
            kept.append(segment)
            continue
        head = _head(segment.text, context) if i > 0 else ""
        tail = _tail(segment.text, context) if i < last else ""
        # No space at the ends of the whole; those beside a change stay.
        text = head + GAP + tail
        text = text if i > 0 else text.lstrip(" ")
        kept.append(Segment(text=text if i < last else text.rstrip(" ")))
    return tuple(kept)


def _head(text: str, size: int) -> str:
    cut = text.rfind(" ", 0, size)
    return text[: cut if cut > size // 2 else size]


def _tail(text: str, size: int) -> str:
    cut = text.find(" ", len(text) - size)
    return text[cut + 1 if 0 <= cut < len(text) - size // 2 else len(text) - size :]


def marked(left: tuple[Segment, ...], right: tuple[Segment, ...]) -> str:
    """The variant in one line, its changed words as ``[old → new]``, what lies between them cut."""
    old = [s.text for s in left if s.changed]
    out = ""
    for segment in excerpt(right, limit=LENGTH, context=ROOM):
        if not segment.changed:
            out += segment.text
            continue
        before = segment.edit.source if segment.edit is not None else (old.pop(0) if len(old) == 1 else "")
        out += f"[{before} → {segment.text}]" if before else f"[{segment.text}]"
    line = " ".join(words.visible(out, newlines=False).replace("⏎", " ").split())
    return line if len(line) <= 2 * LENGTH else line[: 2 * LENGTH - 1].rstrip() + "…"
