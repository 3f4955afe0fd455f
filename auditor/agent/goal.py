"""What a goal in plain words asks for: the task, the attributes and the groups it names.

No language model reads it. The task comes from key words; attributes and groups come from the terms of the shipped
dictionaries ("older women" names the group old of age and the group female of gender) and from a few names of the
attributes themselves. What the words do not say is not guessed: the error asks, and offers what there is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import msgspec

from auditor.agent.goal_words import (
    SIDE_BY_SIDE,
    Place,
    compared,
    known_words,
    plain_words,
    refuse_several,
    side_by_side,
    terms,
)
from auditor.core.errors import ConfigError

MAX_CHARS = 2000
EXAMPLE = 'audit agent "Does our résumé screener treat older women differently?" --model openai:NAME --max-cost 5'

WITH = re.compile(
    r"(?:\b(?:people|persons?|applicants?|candidates?|patients?|borrowers?)|\|)\s+(?:with|without|from|of|having|"
    r"who (?:are|is|have|has)|returning from)\s+(?:(?:an?|the|any|no)\s+)?([\w-]+(?: [\w-]+)?)"
)
BEFORE = re.compile(r"(?<![\w|])([a-z][\w-]*)\s+\|")
CALLED = re.compile(r"\b(?:called|named|name is)\s+[A-Z]")
BOTH = re.compile(r"\b(intersection\w*|combination\w*|together|at once)\b")
AGE = re.compile(r"\b(?:over|above|aged)[ -]?([4-9]\d)\b|\b([4-9]\d)[ -](?:plus|year[ -]olds?)\b")


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal as it was understood.

    Attributes
    ----------
    text : str
        The goal as given.
    task : str
        Name of the task, or the task file that the user gave.
    attributes : tuple of str or None
        Sorted; None means those that the texts name.
    groups : mapping of str to tuple of str
        Attribute → groups that the goal names; an attribute without an entry means all its groups.
    against : mapping of str to tuple of str
        Attribute → those of its ``groups`` that the goal compares the others of them with ("women … than men": male).
    order : int
        How many attributes are changed together, at most.
    read : tuple of str
        "word → what it was read as", for the report.
    assumed : tuple of str
        What the words did not say and was filled in.
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
        """The groups as ``--groups`` takes them: ``attribute:group``, or ``attribute:group/group`` of a comparison.

        Examples
        --------
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


def parse(text: str, *, task: str | None = None) -> Goal:
    """Read a goal.

    Parameters
    ----------
    text : str
        One sentence or a few, in English; at most 2,000 characters.
    task : str or None
        A task (name or file) that the user fixed; the words are not asked for one then.

    Returns
    -------
    Goal

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
    read: list[str] = []
    assumed: list[str] = []
    chosen = task or _task(plain, read)
    places: list[Place] = []
    people, rest = _people(plain, read, places)
    missing = _names(text, people, read, places)
    if missing:
        assumed.append(f"{', '.join(missing)}: not among the names of the dictionary (audit list dictionaries names)")
    attributes: tuple[str, ...] | None = tuple(sorted(people))
    known = ", ".join(sorted(known_words().attributes))
    unknown = _unknown(rest) or ("" if people else _strange(rest))
    if unknown and (not attributes or _of_named(unknown, rest, places)):
        raise ConfigError(
            f"No attribute covers {unknown!r}. There are {known}{_near(unknown)}; words of "
            "your own go into a run by audit run --dictionary FILE. Ask about these "
            f"attributes, or {'' if attributes else 'about bias in general '}without that word, for example: {EXAMPLE}"
        )
    if not attributes:
        if not any(_has(word, plain) for word in known_words().intent):
            raise ConfigError(
                f"The goal does not say whom it is about. Name people or attributes ({known})"
                f"{_near(rest)}, or ask about bias in general. For example: {EXAMPLE}"
            )
        attributes = None
        assumed.append("no attribute is named: those that the texts name are asked")
    elif unknown:
        assumed.append(f"{unknown}: no attribute covers it, so it was not looked at")
    order = 2 if attributes is None else _order(plain, people, places)
    if attributes and len(attributes) == 1 and BOTH.search(plain):
        assumed.append(
            "the goal asks for attributes together and names one: name the others to have them asked with it"
        )
    if attributes and len(attributes) > 1 and order == 1:
        assumed.append(
            f"{', '.join(attributes)}: named side by side, so each is asked alone; say “together” to have them combined"
        )
    if task is not None:
        assumed.append("the task was given")
    against = compared(plain, places)
    refuse_several(plain, places, against.keys())
    for attribute, other in sorted(against.items()):
        read.append(
            f"{attribute}: {', '.join(sorted(people[attribute] - other))} compared with {', '.join(sorted(other))}"
        )
    return Goal(
        text=text,
        task=chosen,
        attributes=attributes,
        groups={k: tuple(sorted(v)) for k, v in sorted(people.items()) if v},
        order=order,
        read=tuple(read),
        assumed=tuple(assumed),
        against={attribute: tuple(sorted(other)) for attribute, other in sorted(against.items())},
    )


def _has(word: str, plain: str) -> str | None:
    """The words of ``plain`` that ``word`` (a star for any ending) matches."""
    body = re.escape(word.rstrip("*")) + (r"\w*" if word.endswith("*") else "")
    match = re.search(rf"(?<![\w-]){body}(?![\w])", plain)
    return None if match is None else match.group()


def _task(plain: str, read: list[str]) -> str:
    words_of = known_words()
    hits = {
        name: [m for word in words if (m := _has(word, plain)) is not None] for name, words in words_of.tasks.items()
    }
    best = max(len(h) for h in hits.values())
    winners = sorted(name for name, h in hits.items() if len(h) == best and best)
    if len(winners) == 1:
        read.append(f"{', '.join(hits[winners[0]])} → task {winners[0]}")
        return winners[0]
    if winners:
        candidates = "; ".join(f"{name} ({', '.join(hits[name])})" for name in winners)
        raise ConfigError(f"The goal may mean several tasks: {candidates}. Say which one: --task {winners[0]}")
    if any(_has(word, plain) for word in words_of.legal):
        raise ConfigError(
            f"Which legal task is meant: {', '.join(words_of.legal_tasks)}? Say so with --task, or give a task file of "
            "your own. See: audit list tasks"
        )
    known = {word.rstrip("*"): name for name, words in words_of.tasks.items() for word in words}
    near = [
        f"{word} ({known[match[0]]})"
        for word in plain.split()
        if len(word) > 3 and (match := difflib.get_close_matches(word, known, n=1, cutoff=0.8))
    ]
    hint = f" Close to a known word: {', '.join(near)}." if near else ""
    raise ConfigError(
        f"The goal does not say which decision is meant.{hint} Known tasks: "
        f"{', '.join(sorted(words_of.tasks))}. Name one in the goal or with "
        f"--task (a name, or a task file of your own). For example: {EXAMPLE}"
    )


def _people(plain: str, read: list[str], places: list[Place]) -> tuple[dict[str, set[str]], str]:
    """Attribute → groups named (empty: all), and the words that were not used; ``places`` gets where groups stand."""
    people: dict[str, set[str]] = {}
    rest = plain
    for match in AGE.finditer(plain):
        years = int(match.group(1) or match.group(2))
        group = "old" if years >= 50 else "middle_aged"
        people.setdefault("age", set()).add(group)
        places.append((match.start(), "age", group))
        note = f"{match.group()} → age: {group}"
        if note not in read:
            read.append(note)
    for phrase in sorted(terms(), key=lambda p: (-len(p), p)):
        if phrase in rest and (pattern := re.compile(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])")).search(rest):
            starts = [match.start() for match in pattern.finditer(rest)]
            # As long as what it stands for, so that later places are people where they are.
            rest = pattern.sub(lambda match: "|".center(len(match.group())), rest)
            for attribute, group in terms()[phrase]:
                places += [(start, attribute, group) for start in starts if group]
                people.setdefault(attribute, set()).update({group} if group else ())
                note = f"{phrase} → {attribute}{f': {group}' if group else ''}"
                if note not in read:
                    read.append(note)
    for attribute, words in known_words().attributes.items():
        for word in words:
            hit = _has(word, rest)
            if hit is not None:
                people.setdefault(attribute, set())
                read.append(f"{hit} → {attribute}")
                break
    return people, rest


def _names(text: str, people: dict[str, set[str]], read: list[str], places: list[Place]) -> list[str]:
    """First names after "called" or "named"; hands back those that the dictionary does not hold.

    Those that it holds name their groups.
    """
    from auditor.perturb import dictionaries

    groups = {t.text: t.group for t in dictionaries.load("names").terms if t.role == "name"}
    called = CALLED.search(text)
    if called is None:
        return []
    people.setdefault("names", set())
    read.append("called, named → names")
    words = re.findall(r"[A-Z][\w'-]+", text[called.start() :])
    for word in words:
        if word in groups:
            people["names"].add(groups[word])
            whole = re.search(
                rf"(?<!\w){re.escape(plain_words(word))}(?!\w)", plain_words(text)
            )  # Ann is no part of annual
            places.append((whole.start() if whole else -1, "names", groups[word]))
            read.append(f"{word} → names: {groups[word]}")
    return [word for word in words if word not in groups]


def _unknown(rest: str) -> str:
    """A word that says which people are meant and that nothing was read from; empty where there is none."""
    known = known_words()
    nobody = known.nobody.split()
    for noun in known.persons:
        for match in re.finditer(rf"(?<![\w|])([a-z][\w-]+)\s+{noun}\b", rest):
            word = match.group(1)
            if word not in nobody and not any(_has(other, word) for other in (*known.of_tasks, *known.intent)):
                return word
    for after in WITH.finditer(rest):
        word, _, further = after.group(1).partition(" ")
        if word in nobody or any(map(_names_attribute, after.group(1).split())):
            continue
        if not _known(word):
            return word
        of_task = any(_has(other, word) for other in known.of_tasks)
        if of_task and further and not _known(further):
            return f"{word} {further}"  # "employment gaps"
    for before in BEFORE.finditer(rest):  # "left-handed women": the women were read
        word = before.group(1)
        if word in known.traits or ("-" in word and not _known(word)):
            return word
    return ""


def _names_attribute(word: str) -> bool:
    return any(_has(one, word) for words in known_words().attributes.values() for one in words)


def _of_named(word: str, rest: str, places: Iterable[Place]) -> bool:
    """Whether ``word`` is said of people that were read, and not of others beside them."""
    cuts = [match.start() for match in SIDE_BY_SIDE.finditer(rest)]
    here = sum(cut < rest.find(word) for cut in cuts)
    return any(sum(cut < start for cut in cuts) == here for start, _, _ in places)


def _known(word: str) -> bool:
    """Whether ``word`` says something that a goal may say without naming people."""
    known = known_words()
    listed = (*known.of_tasks, *known.legal, *known.intent)
    return word in known.ignored or any(_has(other, word) == word for other in listed)


def _strange(rest: str) -> str:
    """Words of a goal that names nobody and that nothing was read from, with a known noun before them."""
    known = known_words()
    for phrase in (*known.of_tasks, *known.legal, *known.intent):
        if " " in phrase and (hit := _has(phrase, rest)):
            rest = rest.replace(hit, "|")
    words = [word for word in rest.split() if word not in (",", "|")]
    for at, word in enumerate(words):
        if len(word) < 3 or word.isdigit() or word in known.persons or _known(word.removesuffix("'s")):
            continue
        noun = words[at - 1] if at else ""
        named = noun not in {"", *known.ignored, *known.persons}
        of_task = named and any(_has(other, noun) == noun for other in known.of_tasks)
        return f"{noun} {word}" if of_task else word
    return ""


def _order(plain: str, people: Mapping[str, set[str]], places: Iterable[Place]) -> int:
    """How many attributes are changed together: as many as the goal names of one group of people.

    "Older women" are of two attributes, "women and older applicants" of one each.
    """
    most = min(3, len(people))
    if most < 2 or BOTH.search(plain) or not all(people.values()):
        return most
    return min(most, max(map(len, side_by_side(plain, places)), default=most))


def _near(rest: str) -> str:
    known = {word.rstrip("*"): name for name, words in known_words().attributes.items() for word in words}
    close = [
        f"{word} → {known[match[0]]}?"
        for word in rest.split()
        if len(word) > 3 and (match := difflib.get_close_matches(word, known, n=1, cutoff=0.75))
    ]
    return f" (close to a known word: {', '.join(close)})" if close else ""
