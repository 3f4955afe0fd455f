"""Higher-order mutation (HInter, Souani et al. 2025, Algorithms 1 and 2) over dictionaries or raw pairs.

For every seed text that names a group, the suite makes variants that name another one: all changes are
applied at once to spans of the original, so no replaced word is ever replaced again.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.protocols import Suite
from auditor.core.record.base import NOT_CLEAR
from auditor.core.types import Case, Edit, EditKind, SourceText, Variant, draws_of, grouped, id_of, names
from auditor.perturb.dictionaries import Dictionary, Term, gendered, unknown
from auditor.perturb.edits import apply, changes_tag, edits_of, misread, overlap, span_of
from auditor.perturb.matching import ALL, DETERMINERS, SUBJECT_OR_ALL, Crowd, Hit, Matcher, Persons, Scan
from auditor.text.english import Word, looks_english, word_list
from auditor.text.parse import Parser, sentences

_COUPLES = word_list("couples")
_BATCH = 32  # seeds scanned together, so that their sentences are parsed in one batch


class TextSuite(Suite):
    """Makes cases of ``seeds``, which are read lazily, some of them together."""

    def __init__(self, seeds: Iterable[SourceText]) -> None:
        self._seeds = iter(seeds)
        self._ready: deque[Case] = deque()

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return up to ``n`` further cases, in the order of the seeds; ``rng`` is not used."""
        while (left := n - len(self._ready)) > 0 and (batch := list(itertools.islice(self._seeds, min(_BATCH, left)))):
            self._ready += self.cases(batch)
        return [self._ready.popleft() for _ in range(min(n, len(self._ready)))]

    @abstractmethod
    def cases(self, seeds: Sequence[SourceText]) -> list[Case]:
        """Make the cases of some texts."""


class MutationSuite(TextSuite):
    """Makes one case for each of the ``seeds``, read lazily, that names a group.

    ``per_seed`` choices for each set of ``attributes`` (None: those of ``dictionaries`` that are marked ``default``)
    are spread over the target groups; None takes all. ``parser`` tells *her* (possessive) from *her* (object). Terms
    beyond ``limit_chars`` of a text are not changed. ``groups``: attribute → groups; only changes to one of these, or
    from one to any other, are made, and of a pair (``female/male``) those between its two groups. A joint variant leads
    to the wanted groups of all its attributes, or from them. ``who`` is one of `auditor.perturb.matching.WHO`,
    ``subject`` what the person who is judged is called.
    """

    name = "mutation.v1"

    def __init__(
        self,
        *,
        seeds: Iterable[SourceText],
        dictionaries: Sequence[Dictionary],
        attributes: str | Sequence[str] | None = None,
        order: int = 2,
        per_seed: int | None = 8,
        parser: Parser | None = None,
        seed: int = 7,
        limit_chars: Callable[[str], int] | None = None,
        groups: Mapping[str, Iterable[str]] | None = None,
        who: str = ALL,
        subject: str = "",
    ) -> None:
        if order < 1:
            raise ConfigError(f"order must be at least 1; got {order}")
        if per_seed is not None and per_seed < 1:
            raise ConfigError(f"per_seed must be at least 1, or None for all; got {per_seed}")
        self._dictionaries = _chosen(dictionaries, attributes)
        self.wanted = _wanted(groups or {}, self._dictionaries)
        self._order, self._per_seed = order, per_seed
        self._parser, self._seed, self._kept = parser, seed, limit_chars or len
        self._matcher = Matcher(list(self._dictionaries.values()))
        self._persons = Persons(who, subject, parser)
        super().__init__(seeds)

    def describe(self) -> dict[str, object]:
        """Return the options, the dictionaries and what was skipped so far, as plain data."""
        groups = {a: sorted(map(BETWEEN.join, w.entries)) for a, w in sorted(self.wanted.items())}
        return {
            "name": self.name,
            "order": self._order,
            "per_seed": self._per_seed,
            "who": self._persons.who,
            **({"groups": groups} if groups else {}),
            "seed": self._seed,
            "parser": None if self._parser is None else self._parser.name,
            "dictionaries": [
                {key: getattr(d, key) for key in ("attribute", "name", "version", "sha256")} | {"notes": list(d.notes)}
                for d in self._dictionaries.values()
            ],
            "skipped": dict(sorted(self.skipped.items())),
            "passed_over": dict(sorted(self.passed_over.items())),
        }

    def cases(self, seeds: Sequence[SourceText]) -> list[Case]:
        """Make the cases of some texts, whose sentences are parsed together."""
        scans = [self._scan(seed.text) for seed in seeds]
        tags = self._tags(scans)
        scans = [scan._replace(hits=scan.settled(tags.get(scan.text))) for scan in scans]
        crowds = self._persons.split([(seed, s.hits, self._both(s)) for seed, s in zip(seeds, scans, strict=True)])
        return [case for case in map(self._case, seeds, scans, crowds) if case is not None]

    def _scan(self, text: str) -> Scan:
        scan = self._matcher.scan(text)
        kept = self._kept(text) if scan.hits else 0
        hits = [hit for hit in scan.hits if hit.end <= kept]
        if hits and not looks_english(text):  # dictionaries know English words; the user's pairs are literal
            hits = [hit for hit in hits if self._dictionaries[hit.term.attribute].raw]
            self.passed_over["the text is not in English"] += not hits
        return scan._replace(hits=hits)

    def _tags(self, scans: Sequence[Scan]) -> dict[str, dict[int, str]]:
        """Penn tags of the tokens of sentences that hold an ambiguous pronoun, by text and offset in it."""
        unsure = {scan.text: places for scan in scans if (places := [hit.start for hit in scan.hits if hit.open])}
        if self._parser is None or not unsure:
            return {}
        spans = {
            text: [(a, b) for a, b in sentences(text) if any(a <= place < b for place in places)]
            for text, places in unsure.items()
        }
        return {
            text: {offset + start: tag for offset, p in rows for start, tag in zip(p.starts, p.tags, strict=True)}
            for text, rows in self._parser.parse_spans(spans).items()
        }

    def _both(self, scan: Scan) -> bool:
        """Whether a text names both groups of a primary pair, and nothing says that they are a couple."""
        if not _COUPLES.isdisjoint(word.key for word in scan.tokens):
            return False
        there = {(term.attribute, term.group) for hit in scan.hits for term in hit.terms}
        return any(
            all((d.attribute, group) in there for group in d.primary)
            for d in self._dictionaries.values()
            if d.primary is not None
        )

    def _case(self, seed: SourceText, scan: Scan, crowds: Sequence[Crowd]) -> Case | None:
        if not scan.hits:
            self.skipped["names no group"] += 1
            return None
        if not crowds:
            self.skipped[NOT_CLEAR] += 1
            return None
        if self._persons.who == SUBJECT_OR_ALL and crowds[0].words is None:
            self.passed_over[NOT_CLEAR] += 1
        case_id = id_of("c", [seed.id, seed.text])
        named = grouped((hit.term.attribute, hit.term.group) for crowd in crowds for hit in crowd.own)
        if not named:
            self.skipped["names no group of the person who is judged"] += 1
            return None
        offers: dict[str, Substitution] = {}
        groups: dict[str, str] = {}
        for attribute in sorted(named):
            dictionary, wanted = self._dictionaries[attribute], self.wanted.get(attribute, EVERY)
            own = [crowd for one in crowds if (crowd := one.of(attribute)).own]
            groups[attribute] = dictionary.named(named[attribute])
            offers[attribute] = Substitution(scan, own, dictionary, self.passed_over, wanted)
        picked = sample(offers, self._order, self._per_seed, f"{self._seed}:{draws_of(case_id)}")
        if not picked:
            self.skipped["nothing can replace its terms"] += 1
            return None
        return Case(
            id=case_id,
            suite=self.name,
            original=Variant(id=f"{case_id}.o", input=seed.text, groups=groups),
            variants=tuple(_variants(case_id, seed.text, groups, picked)),
            label=seed.label,
            source=seed.source,
        )


def _chosen(dictionaries: Sequence[Dictionary], attributes: str | Sequence[str] | None) -> dict[str, Dictionary]:
    by_name: dict[str, Dictionary] = {}
    for one in dictionaries:
        if one.attribute in by_name:
            raise ConfigError(f"two dictionaries hold the attribute {one.attribute!r}; give one of them another name")
        by_name[one.attribute] = one
    if attributes is None:
        wanted = sorted(name for name, one in by_name.items() if one.default)
    else:
        wanted = sorted(set(names(attributes)))
        for name in wanted:
            if name not in by_name:
                raise unknown(name, by_name, "List them: audit list dictionaries.")
    if not wanted:
        raise ConfigError("no attribute to change. Name one: --attributes gender")
    return {name: by_name[name] for name in wanted}


def _wanted(groups: Mapping[str, Iterable[str]], dictionaries: Mapping[str, Dictionary]) -> dict[str, Wanted]:
    """The groups asked for, of attributes that are changed."""
    out: dict[str, Wanted] = {}
    for attribute, listed in groups.items():
        if attribute not in dictionaries:
            raise unknown(attribute, dictionaries, "Groups belong to an attribute of --attributes.")
        known = dictionaries[attribute].groups
        entries = [split(name, known) for name in listed]
        for name in (name for entry in entries for name in entry):
            if name not in known:
                hint = f"List them: audit list dictionaries {attribute}."
                raise UnknownPlugin(f"group of {attribute}", name, known, hint)
        if entries:
            out[attribute] = Wanted(tuple(dict.fromkeys(entries)))
    return out


def _variants(
    case_id: str, text: str, groups: Mapping[str, str], picked: Sequence[tuple[Choice, ...]]
) -> Iterator[Variant]:
    for number, joint in enumerate(picked):
        edits = tuple(sorted((e for c in joint for e in c.edits), key=span_of))
        yield Variant(
            id=f"{case_id}.v{number}",
            input=apply(text, edits),
            groups={**groups, **{c.attribute: c.named for c in joint}},
            edits=edits,
        )


# -- what can be put for the terms of a text: which change together, into what, which are taken --------------


_PARTNERS = ("spouse.", "partner.", "wedding.", "betrothed.")
_HOLDS = frozenset(("his", "her", "my"))
_POINTS = frozenset(("the", "this", "that"))
BETWEEN = "/"  # female/male: changes between the two alone


class Wanted(NamedTuple):
    """The changes of one attribute that are asked for; without ``entries`` all of them."""

    entries: Sequence[tuple[str, ...]] = ()

    def allows(self, source: str, target: str) -> bool:
        """Whether a change from ``source`` to ``target`` is asked for."""
        return not self.entries or any({source, target}.issuperset(entry) for entry in self.entries)

    def ends(self, swaps: Iterable[Swap]) -> frozenset[str] | None:
        """Which ends of a change ("from", "to") are groups that are asked for; None where every change is."""
        if not self.entries:
            return None
        groups = {entry[0] for entry in self.entries}
        ends = ((end, group) for s in swaps for end, group in (("from", s.source.group), ("to", s.group)))
        return frozenset(end for end, group in ends if group in groups)


EVERY = Wanted()


def split(entry: str, known: Collection[str]) -> tuple[str, ...]:
    """The group of an entry, or the two of a pair; a group whose own name holds a slash is one group."""
    first, slash, second = entry.partition(BETWEEN)
    return (entry,) if entry in known or not slash else (first, second)


class Swap(NamedTuple):
    """A term of a text, as which term of the dictionary it is read, the word for it, and the group that it names."""

    hit: Hit
    source: Term
    word: Term
    group: str


class Choice(NamedTuple):
    """One way to change one attribute in one text; what follows ``person`` is made for choices that are taken."""

    attribute: str
    target: str  # the stratum: the target group, or the two groups that are exchanged
    swaps: Sequence[Swap]
    person: int  # whose words are changed, where each person is changed apart
    edits: tuple[Edit, ...] = ()  # in order, none over another
    named: str = ""  # the groups that the text names afterwards
    ends: frozenset[str] | None = None  # see `Wanted.ends`

    @property
    def source(self) -> str:
        """The group that it leads from."""
        return self.swaps[0].source.group


class Substitution:
    """Every choice of one dictionary in one text, in a fixed order; edits are made for those that are taken."""

    def __init__(
        self, scan: Scan, crowds: Sequence[Crowd], dictionary: Dictionary, passed: Counter[str], wanted: Wanted = EVERY
    ) -> None:
        self._scan, self._dictionary, self._passed, self._wanted = scan, dictionary, passed, wanted
        self._groups = {hit.start: hit.term.group for crowd in crowds for hit in crowd.own}
        whole = [crowd for crowd in crowds if crowd.words is None]
        persons = [crowd for crowd in crowds if crowd.words is not None]
        self._choices = [choice for crowd in whole for choice in self._of(crowd, 0)]
        pair = dictionary.primary
        if not whole:
            self._choices = [choice for number, crowd in enumerate(persons) for choice in self._of(crowd, number)]
        elif pair is not None:
            every = (choice for crowd in persons for choice in self._of(crowd, 0))
            single = [choice for choice in every if {choice.source, choice.target} <= set(pair)]
            exchange = "+".join(sorted(pair)) if single else ""
            self._choices = single + [choice for choice in self._choices if choice.target != exchange]

    def take(self, limit: int | None, rng: Random) -> list[Choice]:
        """Return up to ``limit`` different choices: of the primary pair first, then of all target groups."""
        out: dict[tuple[object, ...], Choice] = {}
        if limit is None or len(self._choices) <= limit:
            return self._made(self._choices, limit, out)
        first = self._primary()
        marked = any(choice.source in (self._dictionary.primary or ()) for choice in first)
        left: list[Choice] = []
        for target in sorted({choice.target for choice in first}):
            own = [choice for choice in first if choice.target == target]
            rng.shuffle(own)
            waiting = iter(own)
            self._made(waiting, min(limit, len(out) + (max(1, limit // 2) if marked else 1)), out)
            left += waiting
        kept = set(map(id, first))
        self._made(_spread([choice for choice in self._choices if id(choice) not in kept], rng), limit, out)
        return self._made(left, limit, out)

    def _made(
        self, choices: Iterable[Choice], limit: int | None, out: dict[tuple[object, ...], Choice]
    ) -> list[Choice]:
        """Make the edits of ``choices``, and add those that differ to ``out`` until it holds ``limit``."""
        for choice in map(self._edited, choices) if limit is None or len(out) < limit else ():
            key = tuple((e.where, e.target) for e in choice.edits)
            if not key or key in out:
                continue
            if not self._dictionary.raw and misread(self._scan.text, choice.edits):
                self._passed["reads as another word with its neighbours"] += 1
            elif limit is not None and any(map(changes_tag, choice.edits)):
                self._passed["needs another verb form"] += 1
            else:
                out[key] = choice
            if len(out) == limit:
                break
        return list(out.values())

    def _edited(self, choice: Choice) -> Choice:
        edits: list[Edit] = []
        for hit, source, word, group in choice.swaps:
            kind: EditKind = "marking" if self._dictionary.groups[source.group].unmarked else "swap"
            edits += edits_of(self._scan, hit, source, word, group, kind)
        after = self._groups | {swap.hit.start: swap.group for swap in choice.swaps}
        return choice._replace(
            edits=tuple(sorted(edits, key=span_of)),
            named=self._dictionary.named(after.values()),
            ends=self._wanted.ends(choice.swaps),
        )

    def _primary(self) -> list[Choice]:
        """The choices between the groups of the primary pair; of a text about neither, those to each of them."""
        pair = self._dictionary.primary
        if pair is None or self._wanted.entries:
            return []
        to = [choice for choice in self._choices if choice.target in pair]
        groups = self._dictionary.groups
        return [one for one in to if one.source in pair] or [one for one in to if groups[one.source].unmarked]

    def _of(self, crowd: Crowd, person: int) -> list[Choice]:
        """Change every term of the source group; exchange the two where the text names the target too."""
        dictionary, out = self._dictionary, []
        present = grouped((term.group, (hit, term)) for hit in crowd.own for term in hit.terms)
        for source in self._sources(crowd, present):
            for target in self._targets(source, crowd):
                if target in present and crowd.words is not None:
                    continue
                exchange = target in present and not dictionary.groups[source].unmarked
                if exchange and target < source and source in dictionary.targets:
                    continue  # the same exchange from the other side
                members = self._members(present, source)
                options = [self._options(hit, term, target) for hit, term in members]
                if exchange:
                    taken = {hit.start for hit, _ in members}
                    options += [self._options(h, t, source) for h, t in present[target] if h.start not in taken]
                if dictionary.raw:
                    options = [own for own in options if own]
                leads = any(swap.word.group == swap.group == target for own in options for swap in own)
                if not leads or not all(options):
                    self._passed["no counterpart"] += 1
                    continue
                label = "+".join(sorted((source, target))) if exchange else target
                for swaps in _in_turn(options):
                    if not exchange and self._collapses(crowd, swaps):
                        self._passed["collapse"] += 1
                    else:
                        out.append(Choice(dictionary.attribute, label, swaps, person))
        return out

    def _options(self, hit: Hit, term: Term, group: str) -> list[Swap]:
        return [Swap(hit, term, word, group) for word in self._dictionary.counterparts(term, group)]

    def _targets(self, source: str, crowd: Crowd) -> Iterator[str]:
        """Yield the target groups of ``source``; another gender's names only where no word names a gender."""
        groups, own = self._dictionary.groups, crowd.words
        bound = any(g.agrees for g in groups.values()) and not gendered().isdisjoint(
            word.key for word in self._scan.tokens if own is None or word.start in own
        )
        for target in self._dictionary.targets:
            if target == source:
                continue
            if not self._wanted.allows(source, target):
                self._passed["touches no group that was asked for"] += 1
            elif bound and groups[target].agrees != groups[source].agrees:
                self._passed["a word of the text names the gender"] += 1
            else:
                yield target

    def _sources(self, crowd: Crowd, present: Mapping[str, list[tuple[Hit, Term]]]) -> list[str]:
        """The groups whose terms may be changed."""
        if crowd.words is None:
            return sorted(present)
        groups = self._dictionary.groups
        marked = {g for g in present if not groups[g].unmarked}
        marked -= {groups[g].fallback or "" for g in marked}
        pronouns = any(t.slot.startswith("pronoun.") for rows in present.values() for _, t in rows)
        if len(marked) > 1 and pronouns:
            self._passed["one person's words name two groups"] += 1
            return []
        if self._paired(crowd):
            self._passed["a partner is named, so that it would change whom the person loves"] += 1
            return []
        return sorted(marked or present)

    def _paired(self, crowd: Crowd) -> bool:
        """Whether a partner's word goes with this person's (his wife): changed alone, it says something else too."""
        words = crowd.words or frozenset()
        every = (*crowd.own, *crowd.others)
        whose = {hit.start: hit.start in words for hit in every}
        partners = (hit for hit in every if any(t.slot.startswith(_PARTNERS) for t in hit.terms))
        holders = ((hit, self._before(hit, _HOLDS)) for hit in partners)
        return any(word is not None and (word.start in words) != whose[hit.start] for hit, word in holders)

    def _collapses(self, crowd: Crowd, swaps: Sequence[Swap]) -> bool:
        """Whether a word would be written that an unchanged term already is ("the man and the man")."""
        moved = {swap.hit.start for swap in swaps}
        unchanged = {h.surface.lower() for h in crowd.own if h.start not in moved}
        if any(swap.word.text.lower() in unchanged for swap in swaps):
            return True
        return any(
            swap.word.text.lower() == hit.surface.lower()
            and not swap.word.slot.startswith("pronoun.")
            and any(self._before(one, _POINTS, DETERMINERS) for one in (hit, swap.hit))
            for hit in crowd.others
            for swap in swaps
        )

    def _before(self, hit: Hit, wanted: frozenset[str], stops: frozenset[str] = frozenset()) -> Word | None:
        """One of the ``wanted`` words before a term, with at most two words between that do not stop the search."""
        for word in reversed(self._scan.tokens[max(0, hit.token - 3) : hit.token]):
            if word.key in wanted:
                return word
            if word.key in stops or not word.key.isalpha():
                return None
        return None

    def _members(self, present: Mapping[str, list[tuple[Hit, Term]]], source: str) -> list[tuple[Hit, Term]]:
        """Return the terms of a group and those it shares with a marked fallback (a trans woman is "she")."""
        own, groups = present[source], self._dictionary.groups
        fallback = groups[source].fallback
        if fallback is None or groups[fallback].unmarked:
            return own
        shared = present.get(fallback, [])
        apart = {t.slot for _, t in own} & {t.slot for _, t in shared}
        return own if apart else own + shared


def _in_turn(options: Sequence[Sequence[Swap]]) -> Iterator[list[Swap]]:
    """Yield one swap for each term, until each of its words was used; two people do not get one name."""
    names = dict.fromkeys(own[0].source for own in options if own[0].source.role == "name")
    ranks = {name: rank for rank, name in enumerate(names)}
    for k in range(max(map(len, options))):
        yield [own[(k + ranks.get(own[0].source, 0)) % len(own)] for own in options]


def _spread(choices: Sequence[Choice], rng: Random) -> Iterator[Choice]:
    """Yield ``choices`` in random order, one of each target group by turns."""
    rows = list(grouped((choice.target, choice) for choice in choices).values())
    rng.shuffle(rows)
    for row in rows:
        rng.shuffle(row)
    yield from by_turns(rows)


def sample(offers: Mapping[str, Substitution], order: int, per_seed: int | None, key: str) -> list[tuple[Choice, ...]]:
    """Choose the sets of choices that become variants."""
    atomic = {a: taken for a in sorted(offers) if (taken := offers[a].take(per_seed, Random(f"{key}:{a}")))}

    def joint(members: tuple[str, ...]) -> Iterator[tuple[Choice, ...]]:
        fitting = filter(fits, _joint([atomic[a] for a in members], per_seed, Random(f"{key}:{'+'.join(members)}")))
        return itertools.islice(fitting, per_seed)

    return with_parts(atomic, order, joint)


def _joint(lists: Sequence[Sequence[Choice]], limit: int | None, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one choice per list: all, or up to ``limit`` for each set of target groups, by turns."""
    if limit is None:
        yield from itertools.product(*lists)
        return
    by_target = [grouped((choice.target, choice) for choice in row).values() for row in lists]
    cells = list(itertools.product(*by_target))
    rng.shuffle(cells)
    yield from by_turns([_draw(cell, limit, rng) for cell in cells])


def _draw(cell: Sequence[Sequence[Choice]], limit: int, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one cell in random order; they are numbered, never listed."""
    size = math.prod(map(len, cell))
    numbers = [0] if size == 1 else rng.sample(range(size), min(size, limit))
    for number in numbers:
        yield numbered(number, cell)


def fits(joint: Sequence[Choice]) -> bool:
    """Whether choices can be made together."""
    ends = [choice.ends for choice in joint if choice.ends is not None]
    return (
        len({choice.person for choice in joint}) == 1
        and (not ends or bool(frozenset.intersection(*ends)))
        and not overlap(sorted(span_of(e) for choice in joint for e in choice.edits))
    )


# -- choices put together: by turns, by number, and with all their parts -------------------------------------


_T = TypeVar("_T")


def by_turns(rows: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """Yield the first of each row, then the second of each, and so on."""
    for turn in itertools.zip_longest(*rows):
        yield from (one for one in turn if one is not None)


def numbered(number: int, rows: Sequence[Sequence[_T]]) -> tuple[_T, ...]:
    """Return combination ``number`` of one of each row; that of the first row changes fastest."""
    out = []
    for row in rows:
        number, at = divmod(number, len(row))
        out.append(row[at])
    return tuple(out)


def with_parts(
    offers: Mapping[str, Sequence[_T]], order: int, joint: Callable[[tuple[str, ...]], Iterable[tuple[_T, ...]]]
) -> list[tuple[_T, ...]]:
    """Every choice of ``offers`` alone, then joint ones of up to ``order`` attributes with their parts; each once."""
    chosen: dict[tuple[int, ...], tuple[_T, ...]] = {(id(one),): (one,) for own in offers.values() for one in own}
    for size in range(2, min(order, len(offers)) + 1):
        for attributes in itertools.combinations(offers, size):
            for together in joint(attributes):
                for few in range(2, size + 1):
                    for part in itertools.combinations(together, few):
                        chosen.setdefault(tuple(map(id, part)), part)
    return sorted(chosen.values(), key=len)
