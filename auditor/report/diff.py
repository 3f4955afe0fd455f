"""What differs between an original and a variant, as segments that a renderer can mark."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.core.types import Edit, Input, Variant
from auditor.report import words

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


def as_text(value: Input) -> str:
    """Turn an input into text; a row becomes one ``column: value`` line per column."""
    if isinstance(value, str):
        return value
    return "\n".join(f"{column}: {cell}" for column, cell in value.items())


def compare(original: Variant, variant: Variant) -> Pair:
    """Segments of the original and of the variant.

    Uses the recorded edits where applying them gives the variant exactly; otherwise (a protocol that
    edits one after the other, an imported case) a word-level diff, whose segments carry no attribute.

    Examples
    --------
    >>> edit = Edit(attribute="gender", kind="swap", source_group="men", target_group="women",
    ...             source="man", target="woman", where=(2, 5))
    >>> new = Variant(id="v", input="A woman.", edits=(edit,))
    >>> left, right = compare(Variant(id="o", input="A man."), new)
    >>> [s.text for s in right], right[1].attribute
    (['A ', 'woman', '.'], 'gender')
    """
    if isinstance(original.input, Mapping) or isinstance(variant.input, Mapping):
        return _rows(original.input, variant.input, variant.edits)
    pair = _by_edits(original.input, variant.edits)
    if pair is None or "".join(s.text for s in pair[1]) != variant.input:
        return _by_words(original.input, variant.input)
    return pair


def _by_edits(text: str, edits: Sequence[Edit]) -> Pair | None:
    left: list[Segment] = []
    right: list[Segment] = []
    spans = sorted(((e.where, e) for e in edits if not isinstance(e.where, str)), key=lambda s: s[0])
    if len(spans) != len(edits):
        return None
    at = 0
    for (start, end), edit in spans:
        if not at <= start <= end <= len(text):
            return None
        _add(left, text[at:start])
        _add(right, text[at:start])
        _add(left, text[start:end], edit)
        _add(right, edit.target, edit)
        at = end
    _add(left, text[at:])
    _add(right, text[at:])
    return tuple(left), tuple(right)


def _add(segments: list[Segment], text: str, edit: Edit | None = None, *, changed: bool = False) -> None:
    if text:
        segments.append(Segment(text=text, changed=changed or edit is not None, edit=edit))


def _by_words(old: str, new: str) -> Pair:
    a, b = re.findall(r"\s+|\w+|[^\w\s]", old), re.findall(r"\s+|\w+|[^\w\s]", new)
    left: list[Segment] = []
    right: list[Segment] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        _add(left, "".join(a[i:j]), changed=tag != "equal")
        _add(right, "".join(b[k:m]), changed=tag != "equal")
    return tuple(left), tuple(right)


def _rows(old: Input, new: Input, edits: Sequence[Edit]) -> Pair:
    by_column = {e.where: e for e in edits if isinstance(e.where, str)}
    before = old if isinstance(old, Mapping) else {"text": old}
    after = new if isinstance(new, Mapping) else {"text": new}
    left: list[Segment] = []
    right: list[Segment] = []
    for column in [*before, *(c for c in after if c not in before)]:
        differs = before.get(column) != after.get(column)
        for row, segments in ((before, left), (after, right)):
            if column in row:
                _add(segments, f"{column}: ")
                _add(segments, str(row[column]), by_column.get(column) if differs else None, changed=differs)
                _add(segments, "\n")
    return tuple(left), tuple(right)


def excerpt(segments: Sequence[Segment], *, limit: int = 600, context: int = 140) -> tuple[Segment, ...]:
    """Shorten a long text to what stands around its changes; ``…`` marks what was left out.

    Parameters
    ----------
    segments : sequence of Segment
        One side of `compare`.
    limit : int
        Texts of at most this many characters stay whole.
    context : int
        Characters kept on each side of a change, up to a word boundary.
    """
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
