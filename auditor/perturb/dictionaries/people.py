"""The words that name a person by work, age or role, and those that may stand before them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from auditor.core import data, yamlfile
from auditor.perturb.dictionaries.files import load


@lru_cache(maxsize=1)
def persons() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return singular and plural person nouns and the modifiers that may precede them, in lower case."""
    content: Any = yamlfile.load(data.path("dictionaries", "shared", "persons.yaml"))
    irregular = dict(content["irregular"])
    singular = {noun for noun in content["nouns"].split() if noun not in irregular}
    plural = {_plural(noun) for noun in singular} | set(irregular)
    for term in load("gender").sources:
        if term.pos == "NNS":
            plural.add(term.text.lower().split()[-1])
        elif term.pos == "NN" and term.role in {"person", "kin", "occupation", "rank"}:
            singular.add(term.text.lower().split()[-1])
    return frozenset(singular), frozenset(plural), frozenset(content["modifiers"].split())


@lru_cache(maxsize=1)
def titles() -> dict[str, tuple[str, ...]]:
    """Return titles of films, books and the like, in lower case, by their longest words."""
    content: Any = yamlfile.load(data.path("dictionaries", "shared", "titles.yaml"))
    out: dict[str, list[str]] = {}
    for title in content["titles"].splitlines():
        out.setdefault(max(title.split(), key=len), []).append(title)
    return {word: tuple(found) for word, found in out.items()}


@lru_cache(maxsize=1)
def gendered() -> frozenset[str]:
    """Return the words, in lower case, that name a gender (she, Mr, wife): the marked terms of one word."""
    gender = load("gender")
    marked = [t.text.lower().rstrip(".") for t in gender.sources if not gender.groups[t.group].unmarked]
    return frozenset(word for word in marked if word.isalpha())


_FIRST_PEOPLES = frozenset(("alaska", "indigenous", "nations"))


@lru_cache(maxsize=1)
def nations() -> frozenset[str]:
    """Return the words, in lower case, that a term of a nationality ends with (american, britons, african).

    With them the words of first peoples, which say whose land it is: *Indigenous British* is another people than meant.
    """
    return frozenset(t.text.lower().split()[-1] for t in load("nationality").sources) | _FIRST_PEOPLES


@lru_cache(maxsize=1)
def single_nationals() -> frozenset[str]:
    """Return the words, in lower case, that stand for one person of a nation (*American, Finn*; not *Finnish*)."""
    return frozenset(t.text.lower() for t in load("nationality").terms if t.slot == "noun.sg")


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
