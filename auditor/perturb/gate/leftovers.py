"""What an edit leaves behind: ages, things and countries that belong to the group that was there before.

Each rule takes a text and its changes and says in a few words what is wrong, "" where nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from auditor.core.types import NEUTRAL
from auditor.perturb.dictionaries import neutral, persons
from auditor.perturb.gate.contradictions import WORD, Text
from auditor.perturb.gate.fixed import fixed
from auditor.perturb.gate.lexicon import FILE, listed, pattern
from auditor.perturb.gate.units import Change

_AGES: Mapping[str, tuple[int, int]] = {
    "adolescent": (11, 20),
    "young": (14, 44),
    "middle_aged": (36, 69),
    "old": (55, 120),
}


# A working life, which a teenager does not have.
_LONG = re.compile(
    r"\b(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|[1-4]\d) years\b(?! old)"
    r"|\b(?:twenty|thirty|forty|fifty)(?:-\w+)? years\b(?! old)|\bfirst career\b|\bdecades?\b",
    re.IGNORECASE,
)


def career(text: Text, changes: Sequence[Change]) -> str:
    """Find years of work behind somebody who is now young (*a younger developer … after twenty years*)."""
    for edit in changes:
        if edit.edit.attribute == "age" and edit.edit.target_group in ("adolescent", "young"):
            found = _LONG.search(text.text, max(0, edit.start - 150), edit.end + 250)
            if found and edit.edit.kind != "agreement" and not edit.start <= found.start() < edit.end:
                return f"{edit.text!r} and {found[0]!r}"
    return ""


def counted(text: Text, changes: Sequence[Change]) -> str:
    """Find the one of a number that was changed (*four sites … the third one*)."""
    for edit in changes:
        if edit.edit.kind in NEUTRAL and edit.edit.source.lower() in _NUMBERS and not edit.text.isdigit():
            found = _ONE_OF_THEM.search(text.text, edit.end, edit.end + 200)
            if found:
                return f"{edit.text!r} and {found[0]!r}"
    return ""


_NUMBERS = frozenset(("two", "three", "four", "five", "six", "2", "3", "4", "5", "6"))
_ONE_OF_THEM = re.compile(
    r"\bthe (?:second|third|fourth|fifth|other|others|last|older|younger)\b(?! \w+ of)|\bboth\b|\bneither\b"
    r"|\beach other\b|\ball (?:two|three|four|five|six)\b",
    re.IGNORECASE,
)


def age(text: Text, changes: Sequence[Change]) -> str:
    """Find a person whose age in digits, or in another word, is not that of the changed word."""
    for edit in changes:
        if edit.edit.kind == "agreement":
            continue
        start, end = edit.start, edit.end
        if edit.edit.attribute == "age" and edit.edit.target_group in _AGES:
            low, high = _AGES[edit.edit.target_group]
            for at, years in text.ages:
                apart = abs(at - start) < 60 and not start <= at < end and not low <= years <= high
                if apart and "." not in text.text[min(at, end) : max(at, start)]:
                    return f"{edit.text!r} and {years} years"
    return ""


_TWICE = re.compile(r"\b([a-z][\w'’-]+) (?:and|or|nor|in) \1\b", re.IGNORECASE)


def phrase(text: Text, changes: Sequence[Change], made: str) -> str:
    """Find *an old boy* and *blind or blind*: two ages in one phrase of the changed text, or one word twice."""
    twice = next((m[0] for m in _TWICE.finditer(made) if m[0] not in text.text), "")
    if twice:
        return repr(twice)
    if not any(e.edit.attribute in ("age", "gender") for e in changes):
        return ""
    new = [m[0] for m in _AGE_PHRASE.finditer(made)]
    if not new:
        return ""
    had = {m[0].lower() for m in _AGE_PHRASE.finditer(text.text)}
    return next((f"{found!r}" for found in new if found.lower() not in had), "")


_YOUNG = r"boys?|girls?|kids?|child(?:ren)?|bab(?:y|ies)|teen(?:ager)?s?|lads?|lass(?:es)?|toddlers?|schoolboys?"
_GROWN = (
    "gentlem[ae]n|lad(?:y|ies)|widow(?:er)?s?|grand(?:mother|father|parent)s?|grandmas?|grandpas?|pensioners?|retirees?"
    "|veterans?|professors?|judges?|surgeons?"
)
_AGE_PHRASE = re.compile(
    rf"\b(?<![-\d])(?:old|elderly|middle-aged|older|aged)\s+(?:[\w'’-]+\s+){{0,2}}?(?:{_YOUNG})\b"
    rf"|\b(?:teenage|adolescent|1\d-year-old)\s+(?:[\w'’-]+\s+){{0,2}}?(?:{_GROWN})\b"
    r"|\b(?:teenage|adolescent) m[ae]n\b|\badolescent (?:\w+, an? (?:\w+ )?(?:wo)?man)\b"
    r"|\bM(?:rs?|s|x)\.? [A-Z][\w'-]+,? an? 1\d-year-old",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _belongs() -> dict[str, list[tuple[re.Pattern[str], frozenset[str]]]]:
    """Attribute → what belongs to some of its groups, and to which."""
    return {
        attribute: [(pattern(things), frozenset(groups.split())) for groups, things in rows.items()]
        for attribute, rows in FILE.belongs.items()
    }


_pattern = lru_cache(maxsize=None)(pattern)


def belief(text: Text, changes: Sequence[Change]) -> str:
    """Find a thing of one religion, or of one disability, with a person who is now of another."""
    for edit in changes:
        owners = _belongs().get(edit.edit.attribute)
        if owners is None or edit.edit.kind == "agreement":
            continue
        start, end = edit.start, edit.end
        disability = edit.edit.attribute == "disability"  # what one needs may stand anywhere in the text
        for things, groups in owners:
            if disability and edit.edit.kind == "insertion":
                continue  # one may be deaf and blind
            if edit.edit.target_group in groups or (
                edit.edit.source_group not in groups and edit.edit.kind != "insertion"
            ):
                continue
            near = (0, len(text.text)) if disability else (max(0, start - 150), end + 250)
            for found in things.finditer(text.text, *near):
                if not start <= found.start() < end:
                    return f"{edit.text!r} and {found[0]!r}"
    return ""


_BORN = re.compile(r"\b(?:un|new|still)?born\b|\bbab(?:y|ies)\b|\binfants?\b|\btoddlers?\b", re.IGNORECASE)


def newborn(text: Text, changes: Sequence[Change]) -> str:
    """Find a child of whom nobody can say yet what the edit says (*when his trans boy is born*)."""
    for edit in changes:
        told = edit.edit.target_group in ("trans_female", "trans_male", "nonbinary")
        if (
            told
            and edit.text.lower().split()[-1] in listed("children")
            and not edit.edit.source_group.startswith("trans")
        ):
            found = _BORN.search(text.text, edit.end, edit.end + 40)
            if found and "." not in text.text[edit.end : found.start()]:
                return f"{edit.text!r} and {found[0]!r}"
    return ""


def country(text: Text, changes: Sequence[Change]) -> str:
    """Find the country whose people, films or weather were given to another one (*Japanese weather*, in Ireland)."""
    for edit in changes:
        if edit.edit.attribute == "nationality" and edit.edit.kind == "swap":
            names = FILE.countries.get(edit.edit.source_group)
            found = _pattern(names).search(text.text) if names is not None else None
            if found:
                return f"{edit.text!r} and {found[0]!r}"
    return ""


def again(text: Text, changes: Sequence[Change]) -> str:
    """Find a changed word that stands in the text once more, unchanged (*the truck driver*, *Asians … Caucasian*)."""
    for edit in changes:
        if edit.edit.kind == "agreement" or not edit.edit.source:
            continue
        low = edit.edit.source.lower()
        if edit.edit.kind in NEUTRAL:
            if low not in _things():
                continue
        elif edit.edit.attribute == "nationality":
            found = _language_of(low).search(text.text) if edit.edit.kind == "swap" else None
            if found and not edit.start <= found.start(found.lastindex or 0) < edit.end:
                return f"{edit.text!r}, and {found[0].strip()!r}"
            if not low.endswith("ans") or low == "americans":
                continue
        elif edit.edit.attribute not in ("race", "religion", "disability") or low in ("black", "white"):
            continue
        stem = low[:-1] if low.endswith("s") and not low.endswith("ss") else low
        for found in re.finditer(rf"\b{re.escape(stem)}s?\b", text.text, re.IGNORECASE):
            changed = any(e.start < found.end() and found.start() < max(e.end, e.start + 1) for e in changes)
            if not found[0].islower() and edit.edit.source.islower() and edit.edit.kind not in NEUTRAL:
                continue  # a name: the Disability Rights Union
            if not changed and (edit.edit.kind in NEUTRAL or not _of_a_person(text.text, found.end())):
                return f"{edit.text!r}, and {found[0]!r} once more"
    return ""


@lru_cache(maxsize=256)
def _language_of(nation: str) -> re.Pattern[str]:
    """Where a word for a nation names its language: *speaks no Russian*, *skills in German*."""
    own = rf"({re.escape(nation)})\b"
    return re.compile(
        rf"\b(?:sp(?:eaks?|oke|oken|eaking)|learn\w*|taught|teach(?:es)?|fluent in|underst\w+|reads?|writes?)"
        rf"\s+(?:no|some|good|fluent|basic|only|a little|any)?\s*{own}(?!\s+(?!and\b|or\b)[a-z])"
        rf"|\bin\s+{own}(?=[.,;:)]|$)"
        rf"|\b(?:[abc][12]|native|fluent|basic|level)(?:[- ]level)?\s+{own}(?!\s+(?!and\b|or\b)[a-z])",
        re.IGNORECASE,
    )


def _of_a_person(text: str, end: int) -> bool:
    """Whether a person noun follows: somebody else, whom the edit leaves alone."""
    following = WORD.match(text, end + 1)
    singular, plural, _ = persons()
    return following is not None and (following[0].lower() in singular or following[0].lower() in plural)


@lru_cache(maxsize=1)
def _things() -> frozenset[str]:
    """Neutral words that are no synonyms: things, work, months, numbers, colours."""
    return frozenset(
        t.text.lower() for t in neutral().terms
        if t.slot.startswith(("thing.", "month", "weekday", "colour", "firm", "job", "nurse", "court"))
    )  # fmt: skip


RULES = (fixed, age, career, counted, belief, newborn, country, again)
