"""Text in a normal form, and the labels, negations and refusals in it.

English only, by design: the words below are the ones that make "not positive" no "positive". Where they
cannot tell, an answer is not read; a label that was never given would be worse than one that is lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from auditor.core import reading

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
