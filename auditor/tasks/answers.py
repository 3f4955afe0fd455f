"""What a model's output means for a task: strict, total, and linear in the length of the output.

An output is a label only where it can be read in one way. Everything else is an outcome of its own:
``unparsed`` (with a reason) or ``refused``. The order in which a chat answer is read:

1. Reasoning in ``<think>`` tags and other marks of it is set aside.
2. *Decisive* places: a JSON object with one of the task's keys, a line "Answer: X" (or another of the task's
   markers). All of them have to agree; the last marker line has to be clear.
3. A line, the first or the last, that holds a label and nothing else.
4. Running text: the labels named there, longest names first and whole words only. One label counts if no
   negation, condition or question mark stands around it and the first or the last sentence names it ("Sure!",
   "Let me know …" and the like set aside), or a sentence says that it is the answer; two labels do not.
5. A refusal phrase makes an answer without a label ``refused``; beside one, only 2, 3, or a label as the last
   word is taken.

The words that are looked for are English, by design: they make "not positive" no "positive". Where they cannot tell, an
answer is not read; a label that was never given would be worse than one that is lost.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

from auditor.core import reading
from auditor.core.types import Answer

Style = Literal["chat", "text"]

PARSER = "strict.v2"
FORMER = ("strict.v1",)  # lost answers between sentences of courtesy; a file that names it gets the new one
_OBJECTS = 64  # JSON objects looked at in one answer: keeps the work linear
_THINK = re.compile(r"[<\[◁](/?)think(?:ing)?[>\]▷]", re.IGNORECASE)
_ASIDE = re.compile(r"<(/?)(thought|reasoning|reflection|scratchpad|analysis)>", re.IGNORECASE)
_CHANNEL = re.compile(r"<\|channel\|>")  # of models that write several texts, of which the last is the answer
_FINAL = re.compile(r"<\|channel\|>\s?final[^<]{0,40}<\|message\|>")
_INSIDE = "the answer ends inside its reasoning"
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_OPEN = re.compile(r"\{\s*[\"}]")
_LEAD = r"(?:(?:so|thus|therefore|hence|overall),? )?(?:(?:the|my|our) )?(?:(?:final|overall|correct|best) )?"
_HEAD = re.compile(r"[.;!(\n\u2013\u2014]| - ")
_CORRECTION = re.compile(r"\b(?:wait|actually|correction|scratch that|i mean|on second thought|rather)\b")

Value = tuple[str, ...] | str | float  # as `Answer.value` holds it


class Unclear(Exception):
    """A signal of a reader: the answer cannot be read in one way; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads answers of one task: here one label each; other kinds of tasks have readers that derive from this one.

    Names, keys, markers and ``none`` are in normal form (`auditor.tasks.answers.normalise`).
    """

    lists: ClassVar[bool] = False  # whether an answer may be a list

    names: Mapping[str, str] = field(default_factory=dict)  # labels and aliases to labels
    keys: tuple[str, ...] = ("label", "answer")  # of a JSON answer
    markers: tuple[str, ...] = ("answer", "label")  # that start the decisive line
    scale: tuple[float, float] | None = None  # lowest and highest score
    none: tuple[str, ...] = ("none",)  # for "no label" in a multi-label answer
    unit: str = ""  # as in ``USD/year``; an amount in another currency or for another period is not read

    def read(self, output: str, style: Style = "chat") -> Answer:
        """Say what ``output`` means; never raises on a string.

        Style "chat" reads a generator's answer; "text" takes a classifier's label, which has to be a name of a label
        and nothing more, case and surrounding blanks aside.
        """
        if not output.strip() or not normalise(output):
            return Answer(status="unparsed", reason="empty answer")
        try:
            return self.understood(output, style)
        except Unclear as error:
            # Refusals are looked for last: a label that can be read wins over an apology.
            if style == "chat" and is_refusal(normalise(output)):
                return Answer(status="refused", reason="declines to answer")
            return Answer(status="unparsed", reason=str(error))

    def understood(self, output: str, style: Style) -> Answer:
        """What ``output``, which is not blank, means; raises `Unclear` where it cannot be read in one way."""
        return Answer(status="ok", value=self.exactly(output) if style == "text" else self._chat(output))

    def value(self, value: object) -> Value:
        """Read one JSON value; strict about types."""
        return self.label(value)

    def content(self, content: str) -> Value | None:
        """Read the words after a marker; None if they name none at all."""
        if (label := self.exact(content)) is not None:
            return label
        head = _HEAD.split(content, maxsplit=1)
        if (label := self.exact(head[0])) is not None and not _CORRECTION.search(head[-1]):
            return label
        seen = mentions(content, self.names)
        return _single(seen.clear, seen.blocked) if seen.clear or seen.blocked else None

    def lines(self, plain: str) -> list[Value]:
        """Labels that have a line to themselves, if the first or the last line is one of them."""
        labels = [self.exact(line) for line in plain.split("\n") if bare(line)]
        if not labels or (labels[0] is None and labels[-1] is None):
            return []
        return [label for label in labels if label is not None]

    def prose(self, plain: str) -> Value:
        """Read running text."""
        seen = mentions(plain, self.names)
        label = _single(seen.clear, seen.blocked)
        if not seen.at_edge:
            raise Unclear(f"names {label!r} neither in its first nor in its last sentence")
        if not seen.last_word and is_refusal(plain):
            raise Unclear("declines, and names a label in passing")
        return label

    def exactly(self, output: str) -> Value:
        """Read a classifier's output: the name itself."""
        label = self.names.get(normalise(output))
        if label is None:
            raise Unclear(f"{short(output)} is not a label of the task")
        return label

    def label(self, value: object) -> str:
        """Read one label from JSON."""
        if isinstance(value, int) and abs(value) < 10**9:
            # A task may call its labels "0" and "1"; then the number is the label, verbatim.
            label = self.names.get(str(value))
            if label == str(value):
                return label
        if isinstance(value, list) and len(value) == 1:
            return self.label(value[0])
        if not isinstance(value, str):
            raise Unclear(f"the label in the JSON answer is {kind_of(value)}")
        label = self.exact(normalise(value))
        if label is None:
            raise Unclear(f"{short(value)} is not a label of the task")
        return label

    def exact(self, piece: str) -> str | None:
        """Return the label that ``piece`` (in normal form) names, punctuation around it aside."""
        label = self.names.get(piece)
        return label if label is not None else self.names.get(bare(piece))

    def _chat(self, output: str) -> Value:
        text = after_reasoning(output)
        decided, rest = self._json(text)
        plain = normalise(_FENCE.sub("\n", rest))
        decided += self._marked(plain)
        if not decided:
            decided = self.lines(plain)
        if decided:
            if any(value != decided[0] for value in decided):
                raise Unclear("decisive places disagree: " + _listed(str(v) for v in decided))
            return decided[0]
        return self.prose(plain)

    def _json(self, text: str) -> tuple[list[Value], str]:
        """Values of the JSON objects in ``text``, and the text without those objects."""
        whole = decode(_FENCE.sub("", text).strip().lstrip("\ufeff"))
        if isinstance(whole, list):
            if not self.lists:
                raise Unclear("the JSON answer is a list, not one object")
            return [self.value(whole)], ""
        if isinstance(whole, str):
            return [self.value(whole)], ""
        values: list[Value] = []
        rest: list[str] = []
        at = tried = keyless = 0
        while tried < _OBJECTS and (match := _OPEN.search(text, at)):
            tried += 1
            try:
                obj, end = _DECODER.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                rest.append(text[at : match.start() + 1])
                at = match.start() + 1
                continue
            rest.append(text[at : match.start()])
            at = end
            own = obj.under(self.keys)
            keyless += not own
            values += [self.value(value) for value in own]
        rest.append(text[at:])
        if keyless and not values and not "".join(rest).strip(" \n`"):
            raise Unclear(f"the JSON answer has no key {_listed(self.keys)}")
        return values, "\n".join(rest)

    def _marked(self, plain: str) -> list[Value]:
        """Read the lines "Answer: X". Earlier ones may be unclear, the last one may not."""
        hits = list(_marker(self.markers).finditer(plain))
        values: list[Value] = []
        for i, hit in enumerate(hits):
            limit = hits[i + 1].start() if i + 1 < len(hits) else len(plain)
            content = plain[hit.end() : limit]
            if not self.lists or content.partition("\n")[0].strip(" \"'"):
                content = next((line for line in content.split("\n") if bare(line)), "")
            try:
                value = self.content(content) if bare(content) else None
            except Unclear:
                if i + 1 == len(hits):
                    raise
                continue
            if value is not None:
                values.append(value)
        return values


class Alone(Reader):
    """Reads labels that have a line or a marked place to themselves: only in English is known what negates one."""

    def content(self, content: str) -> Value | None:
        """Read the words after a marker."""
        return self.exact(content)

    def prose(self, plain: str) -> Value:
        """Refuse running text."""
        raise Unclear("has no line with a label alone")


def _single(clear: Iterable[str], blocked: Iterable[str]) -> str:
    named = sorted({*clear, *blocked})
    if len(named) > 1:
        raise Unclear(f"names several labels: {_listed(named)}")
    if not named:
        raise Unclear("names no label of the task")
    if tuple(blocked):
        raise Unclear(f"names {named[0]!r} with a negation, a condition or a question")
    return named[0]


def after_reasoning(output: str) -> str:
    """Return ``output`` without what a model thought before it answered, in the marks that models use."""
    *thought, final = _FINAL.split(output)
    if not thought and _CHANNEL.search(output):
        raise Unclear(_INSIDE)
    tags = list(_THINK.finditer(final))
    if tags and not tags[-1].group(1):
        raise Unclear(_INSIDE)
    return _without_asides(final[tags[-1].end() :] if tags else final)


def _without_asides(text: str) -> str:
    """``text`` without its parts between ``<reasoning>`` and its end, which may stand behind the answer too."""
    kept, at, within = [], 0, ""
    for tag in _ASIDE.finditer(text):
        name = tag.group(2).lower()
        if not within and not tag.group(1):
            kept.append(text[at : tag.start()])
            within = name
        elif tag.group(1) and name == within:
            at, within = tag.end(), ""
    if within:
        raise Unclear(_INSIDE)
    return "\n".join([*kept, text[at:]])


@lru_cache(maxsize=64)
def _marker(markers: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(m) for m in sorted(markers, key=lambda m: (-len(m), m)))
    anywhere = rf"(?<![\w-])(?:{words})[\"')\]]{{0,2}} ?[:=]"
    at_start = rf"^[^\w\n]{{0,4}}{_LEAD}(?:{words})(?: is(?: ?:)?(?=\s)|[ ]?(?:->|=>|[-\u2013\u2014\u2192])(?=\s))"
    return re.compile(f"{anywhere}|{at_start}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Object:
    pairs: list[tuple[str, object]]  # duplicates kept: two different labels in one object disagree

    def under(self, keys: tuple[str, ...], depth: int = 3) -> list[object]:
        """The values under ``keys``; where there are none, or objects, those in the objects within."""
        named = [value for key, value in self.pairs if normalise(key) in keys]
        within = [v for v in named or [value for _, value in self.pairs] if isinstance(v, _Object)]
        deeper = [value for one in within if depth for value in one.under(keys, depth - 1)]
        return [v for v in named if v not in within or not deeper] + deeper


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def decode(text: str) -> object:
    """Return the JSON list or string that ``text`` is, or None; numbers are left to the readers of text."""
    if not text.startswith(("[", '"')):
        return None
    try:
        value: object = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", str: "a text"}
    return "empty (null)" if value is None else names.get(type(value), "an object")


def short(text: str) -> str:
    """The beginning of ``text``, quoted."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 40 else text[:37] + "…")


def _listed(items: Iterable[str]) -> str:
    distinct = sorted(set(items))
    return ", ".join(distinct[:5]) + (", …" if len(distinct) > 5 else "")


# -- text in a normal form, and the labels, negations and refusals in it -----------------------------------------------


# More marks than any script stacks on one letter; see `_few_marks`.
_MARKS = 8
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f]")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2212", "-"),
        **dict.fromkeys("*`", None),
    }
)
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_LINE_START = re.compile(r"^[^\S\n]*(?:[#>]+[^\S\n]*)+", re.MULTILINE)
_SPACE = re.compile(r"[^\S\n]+")
_AROUND_BREAK = re.compile(r" ?\n ?")

PUNCTUATION = " \n\t.,;!\"'()[]{}<>\u2026\u3002"
_BEFORE = 160  # characters in front of a label that are searched for a negation
_AFTER = 60
_SHORT = 3  # names with fewer letters ("no", "1", "a") are too common in text to count there
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_CLAUSE = re.compile(r"[.!?;](?=\s|$)|\n|, but\b")
_STOP = re.compile(r"[.!;,:\n(\u2013\u2014]| - ")
_QUESTION = re.compile(r"[\"')\]]{0,3} ?\?")

EXPRESSIONS: Any = reading.load_yaml(reading.shipped("embedded", "answers.yaml"))


def _any(name: str) -> str:
    """An expression for whatever fits a list of ``auditor/embedded/answers.yaml``."""
    return re.sub(r"<(\w+)>", _named, f"(?:{'|'.join(EXPRESSIONS[name].splitlines())})")


def _named(match: re.Match[str]) -> str:
    return _any(match[1])


_BEFORE_IT, _AFTER_IT = re.compile(_any("before_it")), re.compile(_any("after_it"))
_OPENER, _CLOSER = re.compile(rf"\W*{_any('opener')}\b"), re.compile(rf"\W*(?:please )?{_any('closer')}\b")
_POLITE = 3  # sentences of courtesy that are set aside, at each end
_STATES = re.compile(rf"\W*(?:so |thus |therefore |hence |overall |(?:and|but) )?{_any('states')}\W*")
_STATED = 20  # labels in a text that are looked at for it
_REFUSAL = re.compile(_any("refusal"))


def normalise(text: str) -> str:
    r"""Return case-folded, compatibility-composed text without Markdown marks and invisible characters.

    Full-width letters, no-break spaces, curly quotes and a byte-order mark become their plain forms;
    runs of blanks become one; line breaks stay (as ``\n``). Takes time linear in ``text``.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _few_marks(text))
        text = _INVISIBLE.sub("", text)
    text = _BREAKS.sub("\n", text).translate(_SIGNS)
    text = _CONTROL.sub(" ", text).casefold()
    text = _LINE_START.sub("", _EDGE_UNDERSCORE.sub("", text))
    return _AROUND_BREAK.sub("\n", _SPACE.sub(" ", text)).strip()


def _few_marks(text: str) -> str:
    """At most `_MARKS` combining marks in a row: ordering a long run takes quadratic time."""
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MARKS:
            kept.append(character)
    return "".join(kept)


def bare(text: str) -> str:
    """``text`` (already normal) without the punctuation around it; a colon and a question mark stay."""
    return text.strip(PUNCTUATION)


class Mentions(NamedTuple):
    """Labels that a text names: plainly, or with a negation, a condition or a question around them."""

    clear: tuple[str, ...]
    blocked: tuple[str, ...]
    at_edge: bool  # the first or the last sentence or a line of its own has a clear label, or one says so
    last_word: bool  # the text ends with a clear label


def is_refusal(plain: str) -> bool:
    """Whether ``plain`` (in normal form) holds a phrase by which models decline."""
    return _REFUSAL.search(plain) is not None


@lru_cache(maxsize=64)
def name_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Whole-word occurrences of ``names``, the longest first, so that "article 11" is never "article 1"."""
    body = "|".join(re.escape(name) for name in sorted(names, key=lambda n: (-len(n), n)))
    return re.compile(rf"(?<!\w)(?<!\w[-'])(?:{body or '(?!)'})(?![-']?\w)(?!\.\d)")


def mentions(plain: str, names: Mapping[str, str]) -> Mentions:
    """Find the labels named in ``plain``, distinct, in order of appearance; ``names`` in normal form to labels.

    Longer names win: "not hire" is not "hire". A single word of fewer than three letters counts only where it is the
    whole first or last sentence, and figures not at all: "1. The cast" names no label "1".
    """
    clear: dict[str, None] = {}
    blocked: dict[str, None] = {}
    last = looked = 0
    edge = False
    pattern = name_pattern(tuple(name for name in names if not _short(name)))
    plain = _without_closers(plain, pattern)
    first_end, last_start = _edges(plain)
    for match in pattern.finditer(plain):
        label = names[match.group()]
        if unsure(plain, match.start(), match.end()):
            blocked[label] = None
        else:
            clear[label] = None
            last = match.end()
            edge = edge or match.start() < first_end or match.start() >= last_start
            if not edge and looked < _STATED:
                looked += 1
                stated = _STATES.fullmatch(_clause(plain, match.start()).rpartition(", ")[2]) is not None
                edge = stated or _alone(plain, match.start(), match.end())
    for piece in _first_and_last(plain):
        if _letters(piece) and _short(piece) and piece in names:
            clear[names[piece]] = None
            edge = True
    return Mentions(tuple(clear), tuple(blocked), edge, bool(clear) and not bare(plain[last:]))


def unsure(plain: str, start: int, end: int) -> bool:
    """Whether the words around ``plain[start:end]`` negate it, make it a condition, or ask about it."""
    clause = _clause(plain, start)
    if any(_BEFORE_IT.fullmatch(word) for word in _WORD.findall(clause)) or "anything but" in clause:
        return True
    after = plain[end : end + _AFTER]
    if _QUESTION.match(after):
        return True
    if plain[end - 1].isdigit() and after.startswith(" of "):
        return True  # "Article 2 of Protocol 4" where only "Article 2" is a label
    following = _WORD.findall(_STOP.split(after, maxsplit=1)[0])[:4]
    return any(_AFTER_IT.fullmatch(word) for word in following)


def _clause(plain: str, start: int) -> str:
    """What stands before ``start`` in its clause."""
    return _CLAUSE.split(plain[max(0, start - _BEFORE) : start])[-1]


def _alone(plain: str, start: int, end: int) -> bool:
    """Whether ``plain[start:end]`` has a line to itself."""
    before, after = plain[max(0, start - _AFTER) : start], plain[end : end + _AFTER]
    line, mark, rest = before.rpartition("\n")[2], "\n" in before, after.partition("\n")
    return mark and bool(rest[1]) and not bare(line.lstrip("-*• ")) and not bare(rest[0])


def _starts(plain: str) -> list[int]:
    """Where sentences begin, the first one aside."""
    return [cut.end() for cut in _CLAUSE.finditer(plain) if bare(plain[cut.end() : cut.end() + _AFTER])]


def _edges(plain: str) -> tuple[int, int]:
    """Return where the first sentence ends and where the last one starts, one of courtesy aside."""
    cuts = _starts(plain)
    starts = [0, *cuts]
    first = 0
    while first < min(len(cuts), _POLITE) and _OPENER.match(plain, starts[first]):
        first += 1
    return [*cuts, len(plain)][first], starts[-1]


def _without_closers(plain: str, pattern: re.Pattern[str]) -> str:
    """``plain`` without the sentences of courtesy at its end, where a label stands before them."""
    end = len(plain)
    for start in _starts(plain)[: -_POLITE - 1 : -1]:
        if not _CLOSER.match(plain, start):
            break
        end = start
    return plain[:end] if pattern.search(plain, 0, end) else plain


def _first_and_last(plain: str) -> tuple[str, str]:
    pieces = [bare(piece) for piece in re.split(r"[.!;,\n]", plain)]
    pieces = [piece for piece in pieces if piece] or [""]
    return pieces[0], pieces[-1]


def _short(name: str) -> bool:
    """Whether ``name`` may stand in a text by chance: one word of few letters, or none ("ok", and not "3 - ok")."""
    letters = _letters(name)
    return letters < _SHORT and (" " not in name or not letters)


def _letters(name: str) -> int:
    return sum(character.isalpha() for character in name)
