"""Languages other than English: a file for each has names, lines, prompts and notes (``docs/guide/languages.md``).

Words of such texts are never changed: what changes is a line in front of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from auditor.core import reading
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.text.english import READ, english_words, looks_english, word_set

ENGLISH = "en"
_FOLDER = ("embedded", "languages")
_SIGNS = '.,;:!?…"()«»„“”¿¡،؟।-–'
_PARTICLES = word_set("van der de la le el di da dos las los y")  # of names, in English texts
_HELP = "A language file has the fields of those that are shipped (de, fr, …)."


class _Part(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """A part of a language file."""


class Pool(_Part):
    """The names of one group: first names by gender, last names that go with each of them."""

    female: tuple[str, ...]
    male: tuple[str, ...]
    last: tuple[str, ...]


class Names(_Part):
    """The names of a language, by group of ``attribute``."""

    attribute: str
    source: str
    licence: str
    groups: Mapping[str, Pool]


class Choose(_Part):
    """How candidates are compared; ``first``, ``second`` and ``tie`` are accepted answers."""

    question: str
    good: str  # the wish, or `number` where answers are numbers
    number: str
    two: str
    rank: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    tie: tuple[str, ...]


@lru_cache(maxsize=1)
def choose_in_english() -> Choose:
    """Return how candidates are compared in English, and where a language file does not say it."""
    return msgspec.convert(reading.load_yaml(reading.shipped("embedded", "choose.yaml")), Choose)


class Prompt(_Part):
    """The sentences that every task shares; ``{good}`` and ``{bad}`` are its labels."""

    frame: str
    plain: str
    grade: str
    rate: str
    choose: Choose = msgspec.field(default_factory=choose_in_english)


class TaskText(_Part):
    """One task: what it asks, and notes for which the answer is good for the person, or bad."""

    system: str
    question: str
    good: tuple[str, ...]
    bad: tuple[str, ...]
    labels: tuple[str, ...] | None = None  # the good one first, the bad one last; None where the answer is a number
    answer: str = ""  # asks for JSON with a score and a decision


class Language(_Part):
    """A language file. ``women`` and ``men`` are expressions for what tells a person's gender in a text."""

    name: str
    checked: str
    scripts: tuple[str, ...]
    words: str
    women: str
    men: str
    line: str
    number: str
    statements: Mapping[str, Mapping[str, str]]
    names: Names
    prompt: Prompt
    tasks: Mapping[str, TaskText]
    spaced: bool = True  # whether blanks separate words
    path: Path | None = None

    @cached_property
    def known(self) -> frozenset[str]:
        """Return the function words."""
        return frozenset(self.words.split())

    def hits(self, text: str, words: frozenset[str]) -> int:
        """Count the function words of this language among the distinct ``words`` of a text."""
        return len(words & self.known) if self.spaced else sum(word in text for word in self.known)

    def genders(self, text: str) -> frozenset[str]:
        """Return the genders that a text states of a person, by the expressions of the file."""
        whole = r"(?<![^\W_])(?:{})(?![^\W_])" if self.spaced else "(?:{})"
        said = {"female": self.women, "male": self.men}
        return frozenset(g for g, words in said.items() if re.search(whole.format(words), text, re.IGNORECASE))

    def word(self, attribute: str, group: str) -> str:
        """Return what a statement calls a group."""
        return self.statements[attribute][group]

    def holds_name(self, text: str) -> bool:
        """Whether a text holds a name of the file."""
        names = {n for p in self.names.groups.values() for n in (*p.female, *p.male, *p.last)}
        if self.spaced:
            return not names.isdisjoint(_words(text))
        return any(n in text for n in names if main_script(n) == self.scripts[0])


def available() -> list[str]:
    """Return the codes of the languages that have a file, sorted."""
    return sorted(path.stem for path in reading.shipped(*_FOLDER).glob("*.yaml"))


def load(code: str) -> Language:
    """Load a language by its code, or from a file of the user; raises `UnknownPlugin` or `DataFileError`."""
    path = Path(code)
    if path.suffix not in {".yaml", ".yml"}:
        if code not in available():
            raise UnknownPlugin("language", code, available(), "A file of your own: --task hiring:FILE.yaml")
        path = reading.shipped(*_FOLDER, f"{code}.yaml")
    return _load(path, path.stat().st_mtime_ns if path.is_file() else 0)


def title(code: str) -> str:
    """Return the name of a language, in English."""
    return "English" if code == ENGLISH else load(code).name if code in available() else Path(code).stem


@lru_cache(maxsize=32)
def _load(path: Path, stamp: int) -> Language:
    content = reading.load_yaml(path, reading.read_text(path, missing=f" {_HELP}"))
    try:
        return msgspec.structs.replace(msgspec.convert(content, Language), path=path)
    except msgspec.ValidationError as error:
        raise DataFileError(f"{path}: {error}. {_HELP}") from None


def language_of(text: str, home: str = ENGLISH) -> str:
    """Return the code of a text's language: "en", one with a file, or "" for any other.

    Script and function words decide; a text that is too short to tell is in the language ``home``, that of its task.
    >>> [language_of(t) for t in ("She is kind.", "Die Ärztin ist nett.", "この先生はとても親切です。", "Она врач.")]
    ['en', 'de', 'ja', '']
    """
    text = text[:READ]
    words, script = _words(text.lower()), main_script(text)
    known = _known(home)
    if home == ENGLISH:
        words -= _PARTICLES
    hits = {code: one.hits(text, words) for code, one in known.items() if script in one.scripts}
    best = max(hits, key=lambda code: (hits[code], code == home), default="")
    english = english_words(words) if script == "LATIN" else 0
    if home == ENGLISH and looks_english(text) and hits.get(best, 0) <= max(english, 1):
        return ENGLISH
    if home != ENGLISH and english > max(hits.get(home, 0), 1):
        return ENGLISH
    return best if hits.get(best) or best == home else ""


@lru_cache(maxsize=32)
def _known(home: str) -> Mapping[str, Language]:
    return {code: load(code) for code in dict.fromkeys((home, *available())) if code != ENGLISH}


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(_SIGNS) for word in re.sub("['’]", " ", text).split())


def main_script(text: str) -> str:
    """Return the script of most letters, as Unicode names it: LATIN, ARABIC, HIRAGANA, CJK."""
    if text.isascii():
        return "LATIN"
    scripts = Counter[str]()
    for character, n in Counter(filter(str.isalpha, text)).items():
        scripts[unicodedata.name(character, " ").split(" ")[0]] += n
    return max(scripts, key=lambda name: scripts[name], default="")
