"""How recorded answers are read: by the readers of tasks, with the labels that a mapping names or the answers show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, dumps

from auditor.contrib.imports.answer_files import Column
from auditor.contrib.imports.mapping import fold
from auditor.core.reading import from_json
from auditor.core.types import Answer
from auditor.tasks import Reader, kinds
from auditor.tasks.answers import Unclear, after_reasoning, bare, is_refusal, kind_of, normalise
from auditor.tasks.kinds import LabelSetReader
from auditor.tasks.load import LONGEST_LABEL

SAMPLE = 300  # different answers that are looked at for JSON
SHARE = 0.05  # of the answers, that a sentence or a line of a longer answer has to be to count as a label
MARKERS = ("decision", "verdict", "recommendation")  # further words that start the line of an answer
FIELDS = ("score", "rating", "answer", "label", "labels", "decision", "recommendation", "verdict", "prediction")
BESIDE = ("reason", "reasons", "reasoning", "why", "explanation", "rationale", "justification", "comment", "confidence")
KINDS = {"label": "classification", "labels": "multilabel", "number": "score", "text": "generation"}
_SENTENCE = re.compile(r"[.!?;,]\s|\S+(?:\s+\S+){3}")
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_OUT_OF = re.compile(r"\d\s*(?:/|out of)\s*(\d+)", re.IGNORECASE)
_COMMA, _THOUSANDS = re.compile(r"[-+]?\d*,\d+"), re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_NUMBER = re.compile(r"[-+]?[\d.,]+")


def reader(kind: str, labels: Sequence[str] = (), field: str | None = None, top: float | None = None) -> Reader:
    """Return the reader of tasks of ``kind``, a kind of column.

    ``field`` is the key of JSON answers, ``top`` the highest score.
    """
    plain = kinds.of(KINDS[kind])
    return plain.reader(
        names={normalise(label): label for label in labels},
        keys=_keys(plain.keys, field),
        markers=(*plain.markers, *MARKERS),
        scale=None if top is None else (float("-inf"), top),
    )


def _keys(usual: Sequence[str], field: str | None) -> tuple[str, ...]:
    return tuple(usual) if field is None else (normalise(field),)


class _AnyLabel(Reader):
    """Takes every short answer for a label: finds the labels that a column has."""

    def label(self, value: object) -> str:
        if isinstance(value, bool | int | float):
            return dumps(value)
        if isinstance(value, list) and len(value) == 1:
            return self.label(value[0])
        if not isinstance(value, str):
            raise Unclear(f"the label in the JSON answer is {kind_of(value)}")
        if self.exact(normalise(value)) is None:
            raise Unclear("is too long for a label")
        return value

    def exact(self, piece: str) -> str | None:
        return piece if bare(piece) and len(piece) <= LONGEST_LABEL and not is_refusal(piece) else None

    def lines(self, plain: str) -> list[str | float | tuple[str, ...]]:
        lines = [line for line in plain.split("\n") if bare(line)]
        label = self.exact(lines[0]) if len(lines) == 1 else None
        return [] if label is None else [label]


class _AnyLabels(_AnyLabel, LabelSetReader):
    """Takes the short items of every list for labels."""

    def lines(self, plain: str) -> list[str | float | tuple[str, ...]]:
        return []

    def _list(self, plain: str) -> tuple[str, ...]:
        if bare(plain) in self.none:
            return ()
        items = {bare(item) for item in re.split(r"[,;|\n]", plain)} - {""}
        if not items or any(self.exact(item) is None for item in items):
            raise Unclear("names no label")
        return tuple(sorted(items))


@dataclass(frozen=True, slots=True)
class Shown:
    """The labels of a column, the most frequent first, and the share of the answers that can be read as them."""

    labels: tuple[str, ...]
    share: float


def labels_of(column: Column, kind: str, field: str | None) -> Shown:
    """Find the labels that answers show: whole answers, fields of JSON, lines "Answer: X", lines that come again."""
    answers = Counter(v for v in column if v is not None)
    total = sum(answers.values())
    plain = kinds.of(KINDS[kind])
    seen = (_AnyLabels if kind == "labels" else _AnyLabel)(
        keys=_keys(plain.keys, field), markers=(*plain.markers, *MARKERS)
    )
    spelled: dict[str, Counter[str]] = {}
    for raw, n in answers.items():
        value = seen.read(raw).value
        for label in value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ():
            spelled.setdefault(bare(normalise(label)) or label, Counter())[_as_written(label, raw)] += n
    if not spelled and kind == "label":
        for raw, n in answers.items():
            for line in _ends(raw):
                if seen.exact(line) is not None:
                    spelled.setdefault(bare(line), Counter())[_as_written(line, raw)] += n
        spelled = {k: c for k, c in spelled.items() if c.total() >= max(2, SHARE * total)}
    kept: list[str] = []
    for name, written in sorted(spelled.items(), key=lambda kv: (bool(_SENTENCE.search(kv[0])), -kv[1].total(), kv[0])):
        if kind == "label" and kept and _SENTENCE.search(name):
            own = reader(kind, kept).read(name).status == "ok"
            if own or written.total() < SHARE * total:
                continue
        kept.append(max(written, key=lambda w: (written[w], w)))
    kept.sort(key=lambda label: (-spelled[bare(normalise(label)) or label].total(), label))
    read = sum(answers[raw] for raw, a in reading(answers, kind, kept, field).items() if a.status != "unparsed")
    return Shown(tuple(kept), read / total if total else 0.0)


def shown(column: Column) -> list[str]:
    """Return the answers of a column as they stand there, the most frequent first, for a message."""
    counts = Counter(v for v in column if v is not None)
    return [" ".join(v.split())[:LONGEST_LABEL] for v, _ in counts.most_common()]


def _as_written(label: str, raw: str) -> str:
    """Return ``label`` as ``raw`` spells it: the readers put a text in small letters."""
    match = re.search(re.escape(bare(label)), raw, re.IGNORECASE) if bare(label) else None
    return match[0] if match else label


def _ends(raw: str) -> set[str]:
    try:
        lines = [line for line in normalise(after_reasoning(raw)).split("\n") if bare(line)]
    except Unclear:
        return set()
    return {bare(line) for line in (lines[:1] + lines[-1:])}


def reading(answers: Iterable[str], kind: str, labels: Sequence[str], field: str | None) -> dict[str, Answer]:
    """Read each of ``answers`` as a label, a set of labels, or a text."""
    one = reader(kind, labels, field)
    exact = {fold(label): label for label in labels} if kind == "label" else {}
    out = {}
    for raw in answers:
        label = exact.get(fold(raw))
        quoted = re.sub(r"(:\s*)(true|false)(?=\s*[,}])", r'\1"\2"', raw)  # of JSON: labels are texts
        out[raw] = one.read(quoted) if label is None else Answer(status="ok", value=label)
    return out


def numbers(column: Column, field: str | None = None) -> dict[str, Answer]:
    """Read each value as a number; a comma is a decimal sign where one value can be read in no other way."""
    texts = [v for v in column if v is not None]
    tops = Counter(top for v in texts for top in _OUT_OF.findall(v))
    one = reader("number", (), field, float(max(tops, key=tops.__getitem__)) if tops else None)
    comma = any(_COMMA.fullmatch(v.strip()) and not _THOUSANDS.fullmatch(v.strip()) for v in texts)

    def plain(text: str) -> str:
        return text.replace(".", "").replace(",", ".") if comma and _NUMBER.fullmatch(text.strip()) else text

    return {v: one.read(plain(v)) for v in dict.fromkeys(texts)}


def listed(column: Column, field: str | None) -> bool:
    """Say whether most answers are lists in brackets."""
    answers = [v for v in column if v is not None]
    several = sum(_is_list(v, field) for v in answers)
    return bool(answers) and several >= 0.8 * len(answers)


def _is_list(raw: str, field: str | None) -> bool:
    try:
        text = after_reasoning(raw)
    except Unclear:
        return False
    values = [v for name, v in _leaves(_object(text)) if field is None or name == field]
    plain = re.sub(r"^[^\S\n]*(?:```|~~~)[^\n`]*$", "", text, flags=re.MULTILINE)
    return any(isinstance(v, list) for v in values) or _LIST.fullmatch(plain) is not None


def fields(column: Column) -> tuple[str, ...]:
    """Return the keys of JSON answers that may hold the answer: one where it is clear, none where there is no JSON."""
    answers = list(dict.fromkeys(v for v in column if v is not None))[:SAMPLE]
    objects = [named for raw in answers if (named := dict(_leaves(_object(raw))))]
    if 2 * len(objects) < len(answers) or not objects:
        return ()
    names = Counter(name for one in objects for name in one)
    usual = [name for name, n in names.items() if 2 * n >= len(objects) and name.lower() not in BESIDE]
    known = sorted((n for n in usual if n.lower() in FIELDS), key=lambda n: FIELDS.index(n.lower()))
    return tuple(known[:1] or usual)


def _object(text: str) -> object:
    start, end = text.find("{"), text.rfind("}")
    try:
        return from_json(text[start : end + 1]) if 0 <= start < end else None
    except JSONDecodeError:
        return None


def _leaves(value: object) -> Iterator[tuple[str, object]]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if isinstance(inner, Mapping):
            yield from _leaves(inner)
        else:
            yield str(name), inner
