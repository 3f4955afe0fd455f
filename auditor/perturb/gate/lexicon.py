"""The reader of ``auditor/embedded/gate.yaml``: lists of words, patterns, and rules that are rows of conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import msgspec

from auditor.core import reading
from auditor.perturb.dictionaries import nations, persons
from auditor.perturb.gate.units import Place, Unit
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


def _sort(unit: Unit) -> str:
    first = unit.text[:1]
    return "letters" if first.isalpha() else "digits" if first.isalnum() else "mark" if first else "end"


def _stood_before(place: Place) -> str:
    return place.parse.words[place.token - 1].lower() if place.token > 0 else ""


_FIELDS: dict[str, Callable[[Place], str]] = {
    "kind": lambda place: place.edit.kind,
    "attribute": lambda place: place.edit.attribute,
    "from": lambda place: place.edit.source_group,
    "to": lambda place: place.edit.target_group,
    "source": lambda place: place.edit.source.lower(),
    "target": lambda place: place.edit.target.lower(),
    "source noun": lambda place: (place.edit.source.lower().split() or [""])[-1],
    "tag": lambda place: place.noun.tag,
    "stood before": _stood_before,
}


def _beside(name: str, unit: Callable[[Place], Unit]) -> None:
    _FIELDS[name] = lambda place: unit(place).low
    _FIELDS[f"{name} tag"] = lambda place: unit(place).tag
    _FIELDS[f"{name} is"] = lambda place: _sort(unit(place))
    _FIELDS[f"{name} stands"] = lambda place: "joined" if unit(place).joined else "apart"
    _FIELDS[f"{name} comes"] = lambda place: "text" if unit(place).change is None else "edit"


_beside("before", lambda place: place.before())
_beside("before2", lambda place: place.before(2))
_beside("after", lambda place: place.after())
_beside("after2", lambda place: place.after(2))
_beside("after3", lambda place: place.after(3))


def _condition(field: str, text: str) -> Condition:
    denied, read = field.startswith("not "), _FIELDS[field.removeprefix("not ")]
    own = words(text)
    beginnings = tuple(word[:-1] for word in own if word.endswith("*"))
    if beginnings:
        return lambda place: (read(place) in own or read(place).startswith(beginnings)) is not denied
    return lambda place: (read(place) in own) is not denied


def every(row: _Row, named: Mapping[str, Condition] | None = None) -> Condition:
    """The condition that all fields of a row hold; "when" is one of those that are ``named``."""
    own = [
        named[text] if named is not None and field == "when" else _condition(field, text)
        for field, text in row.items()
        if field != "says"
    ]
    return lambda place: all(condition(place) for condition in own)


class Rule:
    """A rule of the file, made when it is first asked: what is wrong at a place by its first row that holds, or ""."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._blocks: Iterable[tuple[Condition, list[tuple[Condition, str]]]] = ()

    def __call__(self, place: Place) -> str:
        """What the rule says of a place."""
        self._blocks = self._blocks or [
            (every(block.when), [(every(row), row.get("says", block.says)) for row in block.rows])
            for block in FILE.rules[self._name]
        ]
        for when, rows in self._blocks:
            if when(place):
                for holds, says in rows:
                    if holds(place):
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
