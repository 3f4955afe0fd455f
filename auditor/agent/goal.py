"""What a goal in plain words asks for: the task, the attributes and the groups it names.

No language model reads it. The task comes from key words; attributes and groups come from the terms of the shipped
dictionaries ("older women" names the group old of age and the group female of gender) and from a few names of the
attributes themselves. What the words do not say is not guessed: the error asks, and offers what there is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from auditor.agent.goal_words import SIDE_BY_SIDE, Place, compared, found_in, known_words, plain_words, terms
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

    ``attributes`` are sorted, None where the texts choose; ``groups`` are those that it names by attribute (all groups
    of one without an entry), and ``against`` those of them that it compares the others with ("women … than men": male).
    ``order`` is how many attributes are changed together at most. ``read`` says which word was read as what, and
    ``assumed`` what was filled in.
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


class _Seen:
    """What was read so far: groups by attribute (none: all of them), where they are named, and the words left over."""

    def __init__(self, plain: str) -> None:
        self.plain = self.rest = plain
        self.people: dict[str, set[str]] = {}
        self.places: list[Place] = []
        self.read: list[str] = []
        self._cuts = [match.start() for match in SIDE_BY_SIDE.finditer(plain)]

    def group(self, said: str, attribute: str, group: str, starts: Iterable[int]) -> None:
        """Take ``said`` for a group of an attribute; for the attribute alone where ``group`` is empty."""
        self.people.setdefault(attribute, set()).update({group} if group else ())
        self.places += [(start, attribute, group) for start in starts if group]
        note = f"{said} → {attribute}{f': {group}' if group else ''}"
        if note not in self.read:
            self.read.append(note)

    def part(self, start: int) -> int:
        """Return which of the groups of people that are named side by side is named at ``start``."""
        return sum(cut < start for cut in self._cuts)

    def parts(self) -> list[dict[str, str]]:
        """Return attribute → group of each group of people that is named side by side with others."""
        parts: dict[int, dict[str, str]] = {}
        for start, attribute, group in self.places:
            parts.setdefault(self.part(start), {})[attribute] = group
        return [parts[place] for place in sorted(parts)]


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
    missing = _names(text, seen)
    assumed = [f"{', '.join(missing)}: not among the names of the dictionary (audit list dictionaries names)"] * bool(
        missing
    )
    people, known = seen.people, known_words()
    listed, offered = ", ".join(sorted(known.attributes)), _by_word(known.attributes)
    unknown = _unknown(seen.rest) or ("" if people else _strange(seen.rest))
    named = {seen.part(start) for start, _, _ in seen.places}
    if unknown and (not people or seen.part(seen.rest.find(unknown)) in named):
        raise ConfigError(
            f"No attribute covers {unknown!r}. There are {listed}{_near(unknown, offered)}; words of "
            "your own go into a run by audit run --dictionary FILE. Ask about these "
            f"attributes, or {'' if people else 'about bias in general '}without that word, for example: {EXAMPLE}"
        )
    if not people and not any(found_in(word, plain) for word in known.intent):
        raise ConfigError(
            f"The goal does not say whom it is about. Name people or attributes ({listed})"
            f"{_near(seen.rest, offered)}, or ask about bias in general. For example: {EXAMPLE}"
        )
    if not people:
        assumed.append("no attribute is named: those that the texts name are asked")
    elif unknown:
        assumed.append(f"{unknown}: no attribute covers it, so it was not looked at")
    order = _order(seen) if people else 2
    if len(people) == 1 and BOTH.search(plain):
        assumed.append("the goal asks for attributes together and names one: name the others to combine them")
    if len(people) > 1 and order == 1:
        names = ", ".join(sorted(people))
        assumed.append(f"{names}: named side by side, so each is asked alone; say “together” to have them combined")
    if task is not None:
        assumed.append("the task was given")
    against = compared(plain, seen.places)
    _refuse_several(seen.parts(), against)
    for attribute, other in sorted(against.items()):
        first = ", ".join(sorted(people[attribute] - other))
        seen.read.append(f"{attribute}: {first} compared with {', '.join(sorted(other))}")
    return Goal(
        text=text,
        task=chosen,
        attributes=tuple(sorted(people)) or None,
        groups={k: tuple(sorted(v)) for k, v in sorted(people.items()) if v},
        order=order,
        read=tuple(seen.read),
        assumed=tuple(assumed),
        against={attribute: tuple(sorted(other)) for attribute, other in sorted(against.items())},
    )


def _by_word(table: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {word.rstrip("*"): name for name, words in table.items() for word in words}


def _near(words: str, known: Mapping[str, str]) -> str:
    """Words that are almost known, with what they would be read as."""
    close = [
        f"{word} → {known[match[0]]}?"
        for word in words.split()
        if len(word) > 3 and (match := difflib.get_close_matches(word, known, n=1, cutoff=0.75))
    ]
    return f" (close to a known word: {', '.join(close)})" if close else ""


def _task(seen: _Seen) -> str:
    known = known_words()
    hits = {
        name: [m for word in words if (m := found_in(word, seen.plain)) is not None]
        for name, words in known.tasks.items()
    }
    best = max(map(len, hits.values()))
    winners = sorted(name for name, own in hits.items() if len(own) == best and best)
    if len(winners) == 1:
        seen.read.append(f"{', '.join(hits[winners[0]])} → task {winners[0]}")
        return winners[0]
    if winners:
        candidates = "; ".join(f"{name} ({', '.join(hits[name])})" for name in winners)
        raise ConfigError(f"The goal may mean several tasks: {candidates}. Say which one: --task {winners[0]}")
    if any(found_in(word, seen.plain) for word in known.legal):
        raise ConfigError(
            f"Which legal task is meant: {', '.join(known.legal_tasks)}? Say so with --task, or give a task file of "
            "your own. See: audit list tasks"
        )
    raise ConfigError(
        f"The goal does not say which decision is meant{_near(seen.plain, _by_word(known.tasks))}. Known tasks: "
        f"{', '.join(sorted(known.tasks))}. Name one in the goal or with "
        f"--task (a name, or a task file of your own). For example: {EXAMPLE}"
    )


def _people(seen: _Seen) -> None:
    """Ages, the terms of the dictionaries, longest first, and names of attributes; what was read becomes bars."""
    for match in AGE.finditer(seen.plain):
        years = int(match.group(1) or match.group(2))
        seen.group(match.group(), "age", "old" if years >= 50 else "middle_aged", [match.start()])
    for phrase in sorted(terms(), key=lambda p: (-len(p), p)):
        if phrase in seen.rest and (pattern := re.compile(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])")).search(
            seen.rest
        ):
            starts = [match.start() for match in pattern.finditer(seen.rest)]
            # As long as what it replaces, so that later places are people where they are.
            seen.rest = pattern.sub(lambda match: "|".center(len(match.group())), seen.rest)
            for attribute, group in terms()[phrase]:
                seen.group(phrase, attribute, group, starts)
    for attribute, words in known_words().attributes.items():
        hit = next((hit for word in words if (hit := found_in(word, seen.rest)) is not None), None)
        if hit is not None:
            seen.group(hit, attribute, "", ())


def _names(text: str, seen: _Seen) -> list[str]:
    """Read first names after "called" or "named"; hands back those that the dictionary does not hold."""
    from auditor.perturb import dictionaries

    called = CALLED.search(text)
    if called is None:
        return []
    groups = {t.text: t.group for t in dictionaries.load("names").terms if t.role == "name"}
    seen.group("called, named", "names", "", ())
    words = re.findall(r"[A-Z][\w'-]+", text[called.start() :])
    for word in words:
        if word in groups:
            whole = re.search(rf"(?<!\w){re.escape(plain_words(word))}(?!\w)", seen.plain)  # Ann is no part of annual
            seen.group(word, "names", groups[word], [whole.start() if whole else -1])
    return [word for word in words if word not in groups]


def _unknown(rest: str) -> str:
    """A word that says which people are meant and that nothing was read from; empty where there is none."""
    known = known_words()
    nobody = known.nobody.split()
    for noun in known.persons:
        for match in re.finditer(rf"(?<![\w|])([a-z][\w-]+)\s+{noun}\b", rest):
            word = match.group(1)
            if word not in nobody and not any(found_in(other, word) for other in (*known.of_tasks, *known.intent)):
                return word
    for after in WITH.finditer(rest):
        word, _, further = after.group(1).partition(" ")
        attributes = [one for words in known.attributes.values() for one in words]
        if word in nobody or any(found_in(one, said) for one in attributes for said in after.group(1).split()):
            continue
        if not _known(word):
            return word
        if further and not _known(further) and any(found_in(other, word) for other in known.of_tasks):
            return f"{word} {further}"  # "employment gaps"
    for before in BEFORE.finditer(rest):  # "left-handed women": the women were read
        word = before.group(1)
        if word in known.traits or ("-" in word and not _known(word)):
            return word
    return ""


def _known(word: str) -> bool:
    """Whether ``word`` says something that a goal may say without naming people."""
    known = known_words()
    return word in known.ignored or any(found_in(other, word) == word for other in known.of_goals)


def _strange(rest: str) -> str:
    """A word of a goal that names nobody and that nothing was read from, with a known noun before it."""
    known = known_words()
    for phrase in known.of_goals:
        if " " in phrase and (hit := found_in(phrase, rest)):
            rest = rest.replace(hit, "|")
    words = [word for word in rest.split() if word not in (",", "|")]
    for noun, word in zip(["", *words], words, strict=False):
        if len(word) < 3 or word.isdigit() or word in known.persons or _known(word.removesuffix("'s")):
            continue
        named = noun and noun not in known.ignored and noun not in known.persons
        return f"{noun} {word}" if named and any(found_in(o, noun) == noun for o in known.of_tasks) else word
    return ""


def _order(seen: _Seen) -> int:
    """Return how many attributes are changed together: as many as the goal names of one group of people."""
    most = min(3, len(seen.people))
    if most < 2 or BOTH.search(seen.plain) or not all(seen.people.values()):
        return most
    return min(most, max(map(len, seen.parts()), default=most))


def _refuse_several(parts: list[dict[str, str]], against: Container[str]) -> None:
    """Ask back where a goal names several groups of several attributes and does not compare them."""
    joint = [part for part in parts if len(part) > 1]
    if all(part.keys() == joint[0].keys() and any(a in against for a in part) for part in joint[1:]):
        return
    listed = "; ".join(" and ".join(f"{a}: {g}" for a, g in sorted(part.items())) for part in joint)
    raise ConfigError(
        f"The goal names {len(joint)} groups of several attributes each ({listed}), and a session would mix them. "
        "Ask about each in a goal of its own."
    )
