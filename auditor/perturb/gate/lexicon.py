"""The reader of ``auditor/embedded/gate.yaml``: lists of words, patterns, and rules that are rows of conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property

import msgspec

from auditor.core import reading
from auditor.perturb.dictionaries import nations, persons
from auditor.perturb.gate.units import Place
from auditor.text.english import FUNCTION_WORDS

Condition = Callable[[Place], bool]
_Row = dict[str, str]  # field -> words, see the file


class _Block(msgspec.Struct, forbid_unknown_fields=True):
    rows: list[_Row]
    when: _Row = {}
    says: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    lists: dict[str, str]
    one_of: dict[str, str]
    near_tags: dict[str, str]
    rules: dict[str, list[_Block]]
    fits: dict[str, list[_Row]]
    belongs: dict[str, dict[str, str]]
    countries: dict[str, str]
    languages_of: dict[str, str]
    phrases: list[str]


FILE = msgspec.convert(reading.load_yaml(reading.shipped("embedded", "gate.yaml")), _File)


def words(text: str) -> frozenset[str]:
    """The words that a text of the file lists; "" alone where it is empty."""
    out: set[str] = set()
    for word in text.split():
        if word[0] == "$":
            out |= listed(word[1:])
        else:
            out.add(word.replace("~", " "))
    return frozenset(out or ("",))


@cache
def listed(name: str) -> frozenset[str]:
    """A list of the file, or one of the sets that its lists and rows name and the dictionaries know."""
    return words(FILE.lists[name]) if name in FILE.lists else _KNOWN[name]()


def _person_nouns() -> frozenset[str]:
    singular, plural, _ = persons()
    return singular | plural | listed("singular") | listed("plural")


_KNOWN: Mapping[str, Callable[[], frozenset[str]]] = {
    "persons": _person_nouns,
    "nations": nations,
    "function_words": lambda: FUNCTION_WORDS,
}


def is_person(low: str) -> bool:
    """Whether a word in lower case is a noun for a person, or for several."""
    return low in listed("persons")


def pattern(text: str) -> re.Pattern[str]:
    """The words of a text of the file, which are regular expressions, as one."""
    return re.compile(rf"\b(?:{'|'.join(text.split())})\b".replace("~", " "), re.IGNORECASE)


class Row:
    """The conditions of one row; "when" is one of those that are ``named``."""

    def __init__(self, row: _Row, named: Mapping[str, Condition] | None = None) -> None:
        self._tests: list[tuple[str, frozenset[str], tuple[str, ...], bool]] = []
        for field, text in row.items():
            if field not in ("says", "when"):
                own, name = words(text), field.removeprefix("not ")
                beginnings = tuple(word[:-1] for word in own if word.endswith("*"))
                self._tests.append((name, own, beginnings, name == field))
        self._when = named[row["when"]] if named is not None and "when" in row else None

    def holds(self, place: Place) -> bool:
        """Whether each of its conditions holds."""
        facts = place.facts
        for field, own, beginnings, wanted in self._tests:
            fact = facts[field]
            if (fact in own or (beginnings != () and fact.startswith(beginnings))) is not wanted:
                return False
        return self._when is None or self._when(place)


class Rule:
    """A rule of the file, made when it is first asked: what is wrong at a place by its first row that holds, or ""."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _blocks(self) -> list[tuple[Row, list[tuple[Row, str]]]]:
        return [
            (Row(block.when), [(Row(row), row.get("says", block.says)) for row in block.rows])
            for block in FILE.rules[self._name]
        ]

    def __call__(self, place: Place) -> str:
        """What the rule says of a place."""
        for when, rows in self._blocks:
            if when.holds(place):
                for row, says in rows:
                    if row.holds(place):
                        return _filled(says, place)
        return ""


def _filled(says: str, place: Place) -> str:
    after, after2 = place.after(), place.after(2)
    return says.format(
        source=place.edit.source,
        low=place.edit.source.lower(),
        target=place.edit.target,
        written=place.change.text.strip(),
        before=place.before(),
        before2=place.before(2),
        after=after,
        after2=after2,
        after3=place.after(3),
        owner=after.text + after2.text,
    )
