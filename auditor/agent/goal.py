"""Goals in plain words or YAML, read without a language model: by key words and the terms of dictionaries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError
from auditor.perturb import dictionaries

MAX_CHARS = 2000
EXAMPLE = 'audit agent "Does our résumé screener treat older women differently?" --model openai:NAME --max-cost 5'
SKIPPED_SLOTS = ("pronoun.", "title.", "address.")
AGE = re.compile(r"\b(?:over|above|aged)[ -]?([4-9]\d)\b|\b([4-9]\d)[ -](?:plus|year[ -]olds?)\b")
THAN = re.compile(r"\b(?:than|versus|vs|compared (?:to|with)|as opposed to|instead of|over(?![ -]?\d))\b")
Place = tuple[int, str, str]  # where in a goal a group is named: its attribute and name


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The words of ``embedded/agent/goal.toml``; a star stands for any ending."""

    generic: str
    intent: tuple[str, ...]
    not_groups: frozenset[str]
    tasks: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]
    groups: dict[str, str]


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal as it was understood.

    ``attributes`` are sorted, None where the texts choose; ``groups`` are named ones by attribute (without an entry:
    all), and ``against`` those of them that it compares the others with ("women … than men": male). ``order`` is how
    many attributes are changed together at most. ``read`` says which word was read as what, ``assumed`` what was filled
    in.
    """

    text: str
    task: str
    attributes: tuple[str, ...] | None
    groups: Mapping[str, tuple[str, ...]]
    order: int
    read: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    against: Mapping[str, tuple[str, ...]] = {}

    @property
    def changes(self) -> tuple[str, ...]:
        """Return the groups as ``--groups`` takes them: ``attribute:group``, or ``attribute:group/group``.

        >>> parse("Does the hiring model treat older women worse than younger men?").changes
        ('age:old/young', 'gender:female/male')
        """
        return tuple(
            f"{attribute}:{group}{f'/{other}' if other else ''}"
            for attribute, groups_of in self.groups.items()
            for group in groups_of
            if group not in self.against.get(attribute, ())
            for other in self.against.get(attribute, ("",))
        )


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A goal as a YAML file; ``groups`` are written as for ``--groups``."""

    question: str
    task: str
    attributes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    order: int = 0


def read(goal: str, *, task: str | None = None) -> Goal:
    """Read a goal from the file that ``goal`` names (``.yaml``), or from its words."""
    if not goal.endswith((".yaml", ".yml")):
        return parse(goal, task=task)
    try:
        values = msgspec.convert(reading.load_yaml(goal), _File)
    except msgspec.ValidationError as error:
        raise DataFileError(
            f"{goal}: {error}. A goal has question, task, and where it names people attributes, groups "
            "(ATTRIBUTE:GROUP, or ATTRIBUTE:GROUP/GROUP of a comparison), order."
        ) from None
    groups: dict[str, set[str]] = {}
    against: dict[str, set[str]] = {}
    for one in values.groups:
        attribute, _, named = one.partition(":")
        group, _, other = named.partition("/")
        groups.setdefault(attribute, set()).update({group, other} - {""})
        against.setdefault(attribute, set()).update({other} - {""})
    names = tuple(sorted({*values.attributes, *groups}))
    return Goal(
        text=values.question,
        task=task or values.task,
        attributes=names or None,
        groups={name: tuple(sorted(of)) for name, of in sorted(groups.items())},
        order=values.order or min(3, len(names)) or 2,
        read=(f"from {Path(goal).name}",),
        against={name: tuple(sorted(of)) for name, of in sorted(against.items()) if of},
    )


# -- words ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def known_words() -> Words:
    """Return the words by which goals are read."""
    text = reading.shipped("embedded", "agent", "goal.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Words)


def plain_words(text: str) -> str:
    """Return the words in lower case, without accents, one space between them; of signs between words commas stay."""
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()
    spaced = bare.replace("’", "'").replace("_", " ").replace(",", " , ")
    return " ".join(re.sub(r"[^\w', -]", " ", spaced).split())


def found_in(word: str, plain: str) -> str | None:
    """Return the words of ``plain`` that ``word`` (a star for any ending) matches."""
    body = re.escape(word.rstrip("*")) + (r"\w*" if word.endswith("*") else "")
    match = re.search(rf"(?<![\w-]){body}(?![\w])", plain)
    return None if match is None else match.group()


@lru_cache(maxsize=1)
def terms() -> dict[str, tuple[str, str]]:
    """Return phrase → (attribute, group), of the shipped dictionaries and of `Words`; no phrase of two groups."""
    known = known_words()
    phrases = {phrase: {(at.partition(":")[0], at.partition(":")[2])} for phrase, at in known.groups.items()}
    for loaded in map(dictionaries.load, dictionaries.builtin()):
        for term in loaded.terms:
            phrase = plain_words(term.text)
            apart = term.role == "name" or term.slot.startswith(SKIPPED_SLOTS) or loaded.groups[term.group].unmarked
            if len(phrase) < 3 or phrase in known.not_groups or apart:
                continue
            plural = " " not in phrase and phrase.endswith(("an", "ish", "er", "or", "st", "im"))
            for form in (phrase, phrase + "s") if plural else (phrase,):
                phrases.setdefault(form, set()).add((loaded.attribute, term.group))
    return {phrase: next(iter(places)) for phrase, places in phrases.items() if len(places) == 1}


class _Seen:
    """Groups by attribute (none: all of them), where they are named, and the words left over."""

    def __init__(self, plain: str) -> None:
        self.plain = self.rest = plain
        self.people: dict[str, set[str]] = {}
        self.places: list[Place] = []
        self.read: list[str] = []

    def group(self, said: str, attribute: str, group: str, starts: Iterable[int]) -> None:
        """Read ``said`` as a group of an attribute; as the attribute alone where ``group`` is empty."""
        self.people.setdefault(attribute, set()).update({group} if group else ())
        self.places += [(start, attribute, group) for start in starts if group]
        note = f"{said} → {attribute}{f': {group}' if group else ''}"
        if note not in self.read:
            self.read.append(note)


def parse(text: str, *, task: str | None = None) -> Goal:
    """Read a goal of one English sentence or a few; ``task`` is a name or file that the user fixed.

    Raises
    ------
    ConfigError
        The words name no task, several, or nobody; the message asks, and offers what there is.

    Examples
    --------
    >>> goal = parse("Does our résumé screener treat older women differently?")
    >>> goal.task, goal.attributes, dict(goal.groups)
    ('hiring', ('age', 'gender'), {'age': ('old',), 'gender': ('female',)})
    """
    plain = plain_words(text)
    if not re.search(r"[a-z]{2}", plain):
        raise ConfigError(f"The goal says nothing that can be read. Put it as a question, for example: {EXAMPLE}")
    if len(text) > MAX_CHARS:
        raise ConfigError(
            f"The goal has {len(text):,} characters; {MAX_CHARS:,} are the most. Say in one or two sentences which "
            f"decision about which people is meant, for example: {EXAMPLE}"
        )
    seen = _Seen(plain)
    chosen = task or _task(seen)
    _people(seen)
    people, known, unread = seen.people, known_words(), _unread(seen.rest)
    listed = ", ".join(sorted(known.attributes))
    if not people and unread:
        raise ConfigError(
            f"No attribute covers {unread[0]!r}. There are {listed}; words of "
            "your own go into a run by audit run --dictionary FILE. Ask about these attributes, or about bias in "
            f"general without that word, for example: {EXAMPLE}"
        )
    if not people and not any(found_in(word, plain) for word in known.intent):
        raise ConfigError(
            f"The goal does not say whom it is about. Name people or attributes ({listed}), or ask about bias in "
            f"general. For example: {EXAMPLE}"
        )
    notes = {
        "no attribute is named: those that the texts name are asked": not people,
        f"nothing was read from: {', '.join(unread)}": bool(unread),
        "the task was given": task is not None,
    }
    against = compared(plain, seen.places)
    for attribute, other in sorted(against.items()):
        first = ", ".join(sorted(people[attribute] - other))
        seen.read.append(f"{attribute}: {first} compared with {', '.join(sorted(other))}")
    return Goal(
        text=text,
        task=chosen,
        attributes=tuple(sorted(people)) or None,
        groups={k: tuple(sorted(v)) for k, v in sorted(people.items()) if v},
        order=min(3, len(people)) or 2,
        read=tuple(seen.read),
        assumed=tuple(note for note, holds in notes.items() if holds),
        against={attribute: tuple(sorted(other)) for attribute, other in sorted(against.items())},
    )


def _task(seen: _Seen) -> str:
    known = known_words().tasks
    hits = {
        name: [m for word in words if (m := found_in(word, seen.plain)) is not None] for name, words in known.items()
    }
    best = max(map(len, hits.values()))
    winners = sorted(name for name, own in hits.items() if len(own) == best and best)
    if len(winners) == 1:
        seen.read.append(f"{', '.join(hits[winners[0]])} → task {winners[0]}")
        return winners[0]
    if winners:
        candidates = "; ".join(f"{name} ({', '.join(hits[name])})" for name in winners)
        raise ConfigError(f"The goal may mean several tasks: {candidates}. Say which one: --task {winners[0]}")
    raise ConfigError(
        f"The goal does not say which decision is meant. Known tasks: "
        f"{', '.join(sorted(known))}. Name one in the goal or with --task (a name, or a task file of your own). "
        f"For example: {EXAMPLE}"
    )


def _people(seen: _Seen) -> None:
    """Read ages, terms of the dictionaries, longest first, and attributes; read words become bars."""
    for match in AGE.finditer(seen.plain):
        years = int(match.group(1) or match.group(2))
        seen.group(match.group(), "age", "old" if years >= 50 else "middle_aged", [match.start()])
    for phrase in sorted(terms(), key=lambda p: (-len(p), p)):
        pattern = re.compile(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])")
        if phrase in seen.rest and (starts := [match.start() for match in pattern.finditer(seen.rest)]):
            # As long as what it replaces, so that later places are people where they are.
            seen.rest = pattern.sub(lambda match: "|".center(len(match.group())), seen.rest)
            seen.group(phrase, *terms()[phrase], starts)
    for attribute, words in known_words().attributes.items():
        hit = next((hit for word in words if (hit := found_in(word, seen.rest)) is not None), None)
        if hit is not None:
            seen.group(hit, attribute, "", ())


def _unread(rest: str) -> tuple[str, ...]:
    """Return the words that may name people and that nothing was read from."""
    known = known_words()
    said = [*known.intent, *(w for table in (known.tasks, known.attributes) for words in table.values() for w in words)]
    for phrase in (word for word in said if " " in word):
        rest = rest.replace(found_in(phrase, rest) or "|", "|")
    generic = frozenset(known.generic.split())
    words = (word.removesuffix("'s") for word in rest.split() if word not in (",", "|"))
    return tuple(
        dict.fromkeys(
            word
            for word in words
            if len(word) > 2
            and not word[0].isdigit()
            and word not in generic
            and not any(found_in(other, word) == word for other in said)
        )
    )


def compared(plain: str, places: Iterable[Place]) -> dict[str, set[str]]:
    """Return the groups behind the word that compares, by attribute; ``places`` is where the goal names which group."""
    by_attribute: dict[str, list[tuple[int, str]]] = {}
    for start, attribute, group in places:
        by_attribute.setdefault(attribute, []).append((start, group))
    out: dict[str, set[str]] = {}
    if (than := THAN.search(plain)) is not None:
        for attribute, named in by_attribute.items():
            before, behind = ({g for start, g in named if (start < than.start()) is side} for side in (True, False))
            if before and behind and not before & behind:
                out[attribute] = behind
    return out
