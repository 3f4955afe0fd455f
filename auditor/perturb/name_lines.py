"""Lines in front of a text that say who it is about: a name, or a plain statement.

Most texts do not state the race of the person who is judged, and many not the gender. A line does, and leaves the
text as it is: ``Applicant: Lakisha Washington``, or ``The applicant is a black woman.`` The original of such a case
carries a line too, with the name of another group, so that a line by itself is on both sides of every comparison.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from auditor.core import reading
from auditor.core.protocols import Suite
from auditor.core.types import Case, Edit, EditKind, SourceText, Variant, draws_of, id_of, text_of
from auditor.perturb.dictionaries import Dictionary, Term, load
from auditor.perturb.edits import apply, replacing
from auditor.perturb.matching import Hit, Matcher
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.neutral_edits import Irrelevant, irrelevant
from auditor.perturb.persons import touches
from auditor.perturb.substitution import EVERY
from auditor.text.english import article_for, match_case

GENDER, RACE = "gender", "race"
WORDS, NAME, STATEMENT = "words", "name", "statement"
CARRIED = (GENDER, RACE)  # the attributes that a line may carry
SUITES = {NAME: "name_line.v1", STATEMENT: "statement.v1"}
TARGETS = 4  # other groups that the line of one text is changed to, for each attribute
END = "\n\n"  # between a line and its text
_GENDERS = ("female", "male")
_ORIGINS = ("nationality", "religion")
_MIXED = frozenset(("american", "british", "canadian", "australian"))  # nations that all these names are of
_BATCH = 32  # texts that the suite of words gets together


def line_end(case: Case) -> int:
    """How many characters of the original are a line with what stands between it and its text; 0 without a line."""
    if case.suite not in SUITES.values():
        return 0
    return str(case.original.input).index(END) + len(END)


class First(NamedTuple):
    """A first name, and the last names that go with it."""

    name: str
    lasts: tuple[str, ...]


@lru_cache(maxsize=1)
def full_names() -> Mapping[tuple[str, str], tuple[First, ...]]:
    """Return the first names of each (race or ethnicity, gender), each with its last names.

    First names are those of ``names.yaml`` but for the ambiguous ones of ``shared/name_lines.yaml``; last names are of
    the latter. The groups are those of the attributes race and gender. Sources stand in the two files.
    >>> pools = full_names()
    >>> sorted({race for race, _ in pools})
    ['asian', 'black', 'hispanic', 'middle_eastern', 'white']
    >>> min(len(names) for names in pools.values()) >= 20
    True
    """
    content: Any = reading.load_yaml(reading.shipped("dictionaries", "shared", "name_lines.yaml"))
    firsts = load("names")
    by_group: dict[tuple[str, str], list[First]] = {}
    for term in firsts.terms:
        gender = firsts.groups[term.group].agrees or ""
        race = term.group.removesuffix(f"_{gender}")
        if term.text in content["ambiguous"]:
            continue
        pools = content["last"][race]
        lasts = next((p for p in pools if term.text in p.get("first", ())), None)
        lasts = lasts or next(p for p in pools if "first" not in p)
        by_group.setdefault((race, gender), []).append(First(term.text, tuple(lasts["names"])))
    return {group: tuple(names) for group, names in by_group.items()}


class _Line(NamedTuple):
    """A line of words with a beginning and an end; each part may change by itself."""

    start: str
    parts: Mapping[str, str]
    end: str = ""

    @property
    def text(self) -> str:
        return self.start + " ".join(filter(None, self.parts.values())) + self.end

    def edits(
        self, new: Mapping[str, str], attribute: str, kind: EditKind, groups: tuple[str, str]
    ) -> tuple[Edit, ...]:
        """The edits that put ``new`` parts in the place of others; an article follows, as it does in any text."""
        out, at, text = [], len(self.start), self.text
        for name, old in self.parts.items():
            if new.get(name, old) != old:
                how: EditKind = "agreement" if name == "article" else kind
                out.append(replacing(text, (at, at + len(old)), new[name], attribute, how, groups))
            at += len(old) + 1 if old else 0
        return tuple(out)


class _NameLine:
    """A line with a full name: race moves first and last name, gender the first name alone."""

    def __init__(self, subject: str, rng: Random, race: str, gender: str) -> None:
        self._rng, self._race, self._gender = rng, race, gender
        self._first, self._last = self._full(race, gender)
        start = f"{subject.removeprefix('the ').capitalize()}: "
        self.line = _Line(start, {"first": self._first.name, "last": self._last})

    def _full(self, race: str, gender: str, *, others: bool = False) -> tuple[First, str]:
        pool = [f for f in full_names()[race, gender] if not others or f != self._first]
        first = self._rng.choice(pool)
        lasts = [last for last in first.lasts if not others or last != self._last]
        return first, self._rng.choice([last for last in lasts if last != first.name] or lasts)

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another; those of a placebo where they are one."""
        kind: EditKind = "placebo" if source == target else "name_line"
        if attribute == RACE:
            first, last = self._full(target, self._gender, others=source == target)
            return self.line.edits({"first": first.name, "last": last}, attribute, kind, (source, target))
        names, known = full_names()[self._race, target], (self._first.name, self._last)
        pool = [f.name for f in names if f.lasts == self._first.lasts and f.name not in known]
        return self.line.edits({"first": self._rng.choice(pool)}, attribute, kind, (source, target)) if pool else ()


class _Statement:
    """A sentence that says who it is, without ``race`` or ``gender`` where they are ""; any text has its placebos."""

    def __init__(self, subject: str, rng: Random, known: Mapping[str, Dictionary], race: str, gender: str) -> None:
        self._rng, self._known = rng, known
        self._said = {"adjective": self._word(RACE, race) if race else "", "noun": self._word(GENDER, gender)}
        self.line = _Line(f"{subject.capitalize()} is ", self._with_article(self._said), ".")

    def _word(self, attribute: str, group: str) -> str:
        if attribute == RACE:
            return self._rng.choice(adjectives(self._known[RACE], group)).text
        nouns = (t.text for t in self._known[GENDER].terms if (t.slot, t.group) == ("adult.sg", group))
        return next(nouns) if group else "person"

    def _with_article(self, said: Mapping[str, str]) -> dict[str, str]:
        return {"article": article_for(" ".join(filter(None, said.values()))), **said}

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another; none where they are one."""
        if source == target:
            return ()
        said = self._said | {"adjective" if attribute == RACE else "noun": self._word(attribute, target)}
        return self.line.edits(self._with_article(said), attribute, "statement", (source, target))


def adjectives(race: Dictionary, group: str) -> list[Term]:
    """The adjectives that may be written for a group."""
    return [t for t in race.terms if (t.slot, t.group) == ("adjective", group) and "source-only" not in t.tags]


class _Unfit(Exception):
    """Why a text gets no line."""


class _Stated(NamedTuple):
    """What a text says by itself of the person who is judged, as far as words tell."""

    genders: frozenset[str]
    races: tuple[Hit, ...]  # words for a race, where the text may mean the person
    race: bool  # whether it does
    named: bool  # somebody has a name, or a title
    origin: bool  # a nation or a religion, which most names go badly with
    unread: bool  # a word that may name a race, and no rule says whose or whether it does


class Feed(Iterator[SourceText]):
    """Texts for a suite, which may be filled again after they have run dry."""

    def __init__(self) -> None:
        self.waiting: deque[SourceText] = deque()

    def __next__(self) -> SourceText:
        if not self.waiting:
            raise StopIteration
        return self.waiting.popleft()


class Lines(Suite):
    r"""Cases of a suite over given texts, and for what its cases do not change cases with a line.

    Parameters
    ----------
    make : callable
        Builds the suite that changes words of the texts, from the texts it gets.
    seeds, dictionaries, attributes, seed
        As of that suite; ``seeds`` are read lazily, once.
    carriers : sequence of {"words", "name", "statement"}
        For each attribute of a text the first one that fits is taken.
    subject : str
        What the person is called: "the applicant".
    per_seed : int or None
        The most variants of a case for each attribute.
    limit_chars : callable or None
        Number of characters of a text that the model gets to see; a text that would be cut gets no line.
    irrelevant : mapping, optional
        What the task names as irrelevant: one placebo of it for each attribute, beside another name of the group.

    Examples
    --------
    >>> both = [load("gender"), load("race")]
    >>> suite = Lines(
    ...     lambda texts: MutationSuite(seeds=texts, dictionaries=both),
    ...     seeds=[SourceText(id="1", text="She ran the night shift for six years.")], dictionaries=both,
    ...     carriers=("words", "name"), subject="the applicant",
    ... )
    >>> for case in suite.ask(5, Random(0)):
    ...     print(case.suite, sorted({v.attributes for v in case.variants}), case.original.input.split("\n")[0])
    mutation.v1 [('gender',)] She ran the night shift for six years.
    name_line.v1 [('race',)] Applicant: Emily Larson
    """

    name = "lines.v1"

    def __init__(
        self,
        make: Callable[[Iterable[SourceText]], MutationSuite],
        *,
        seeds: Iterable[SourceText],
        dictionaries: Sequence[Dictionary],
        carriers: Sequence[str],
        subject: str,
        attributes: str | Sequence[str] | None = None,
        per_seed: int | None = 8,
        seed: int = 7,
        limit_chars: Callable[[str], int] | None = None,
        irrelevant: Irrelevant | None = None,
    ) -> None:
        self._irrelevant = irrelevant or {}
        self._feed = Feed()
        self._inner = make(self._feed)
        self._seeds = iter(seeds)
        self._carriers, self._subject = tuple(carriers), subject
        self._per_seed = min(TARGETS, per_seed or TARGETS)
        self._seed, self._limit = seed, limit_chars
        known = {d.attribute: d for d in dictionaries}
        chosen = [a for a, d in known.items() if (d.default if attributes is None else a in attributes)]
        self._varied = [a for a in CARRIED if a in chosen and not known[a].raw]
        self._known = {a: known[a] if a in known and not known[a].raw else load(a) for a in CARRIED}
        self._matcher = Matcher([*self._known.values(), *map(load, (*_ORIGINS, "names"))])
        terms = sorted({t.text.capitalize() for t in self._known[RACE].sources}, key=len, reverse=True)
        self._race_words = re.compile(rf"\b(?:{'|'.join(map(re.escape, terms))})\b")
        self._ready: deque[Case] = deque()
        self.passed_over: Counter[str] = self._inner.passed_over

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return up to ``n`` further cases, in the order of the texts."""
        out: list[Case] = []
        while len(out) < n and (self._ready or self._fill(rng)):
            if self._ready:
                out.append(self._ready.popleft())
        return out

    def describe(self) -> dict[str, object]:
        """Return what the suite of words says, and the carriers."""
        return self._inner.describe() | {
            "carriers": list(self._carriers),
            "subject": self._subject,
            "skipped": dict(sorted(self.skipped.items())),
            "passed_over": dict(sorted(self.passed_over.items())),
        }

    def _fill(self, rng: Random) -> bool:
        batch = list(itertools.islice(self._seeds, _BATCH))
        self._feed.waiting.extend(batch)
        cases = {case.id: case for case in self._inner.ask(len(batch), rng)} if batch else {}
        for seed in batch:
            made = self._cases(seed, cases.get(id_of("c", [seed.id, seed.text])))
            self._ready += made
            if not made:
                self.skipped["no carrier fits"] += 1
        return bool(batch)

    def _cases(self, seed: SourceText, case: Case | None) -> list[Case]:
        """The cases of one text: each attribute is changed in that of the first carrier that fits."""
        by_words = {v.attributes[0]: case.original.groups for v in case.variants if v.order == 1} if case else {}
        left, carried = list(self._varied), set[str]()
        stated: _Stated | None = None
        out: list[Case] = []
        for carrier in self._carriers:
            if carrier == WORDS:
                kept = [v for v in case.variants if not carried & set(v.attributes)] if case else []
                out += [dataclasses.replace(case, variants=tuple(kept))] if case and kept else []
                left = [a for a in left if a not in by_words]
            elif left:
                stated = stated or self._read(seed, {a: groups[a] for a, groups in by_words.items()})
                try:
                    made = self._made(seed, carrier, left, stated)
                except _Unfit as unfit:
                    self.passed_over[f"line: {unfit}"] += 1
                    continue
                if made is not None:
                    out.append(made)
                    carried |= set(made.original.groups)
                    left = [a for a in left if a not in carried]
        # Two cases of one text are no two texts.
        return [dataclasses.replace(c, source=seed.source or seed.id) for c in out] if len(out) > 1 else out

    def _read(self, seed: SourceText, by_words: Mapping[str, str]) -> _Stated:
        """What a text states; ``by_words`` are the groups that its case of words names."""
        genders: dict[str, set[str]] = {"pronoun": set(), "noun": set()}
        races: list[Hit] = []
        named = origin = False
        scan = self._matcher.scan(seed.text)
        known = {hit.start for hit in scan.hits}
        words = [m for m in self._race_words.finditer(seed.text) if m.start() not in known]
        for hit in scan.settled():
            term = hit.term
            if not _about(seed, hit.start, hit.end):
                continue  # another person
            if term.attribute == RACE:
                races.append(hit)
            elif term.attribute in _ORIGINS:
                origin |= term.group not in _MIXED
            elif term.attribute != GENDER or term.slot.startswith("title"):
                named = True
            elif term.slot.startswith("pronoun"):
                genders["pronoun"].add(term.group)
            elif term.number == "sg" and not self._known[GENDER].groups[term.group].unmarked:
                genders["noun"].add(term.group)
        # Beside pronouns, nouns are other people: "she cared for her father".
        said = by_words.get(GENDER, "")
        return _Stated(
            genders=frozenset({said} if said in _GENDERS else genders["pronoun"] or genders["noun"]),
            races=tuple(races),
            race=RACE in by_words if seed.subject is None else bool(races),
            named=named,
            origin=origin,
            unread=any(_about(seed, *m.span()) for m in words),
        )

    def _made(self, seed: SourceText, carrier: str, left: Sequence[str], stated: _Stated) -> Case | None:
        case_id = id_of(carrier[0], [seed.id, seed.text])
        rng = Random(f"{self._seed}:{draws_of(text_of(case_id))}:{carrier}")
        for why, unfit in (
            ("the text is about no single person", seed.subject == ()),
            ("the text names somebody", carrier == NAME and stated.named),
            ("the text states a nation or a religion", carrier == NAME and stated.origin),
            ("a word may name a race", stated.unread),
            ("words of two genders, and nobody tells whose they are", len(stated.genders) > 1),
        ):
            if unfit:
                raise _Unfit(why)
        varied = [a for a in left if a != GENDER or not stated.genders]
        if not varied:
            return None
        gender = next(iter(stated.genders), None) or rng.choice(_GENDERS)
        if gender not in _GENDERS:
            raise _Unfit("the text is about a gender that no line names")
        groups = self._groups(carrier)
        race, own = "", seed.text
        if RACE in varied:
            if stated.race:
                own = _without(seed, stated.races)
            open_ = [g for g in groups if self._targets(RACE, g, groups)]
            race = rng.choice(open_) if open_ else ""
        elif carrier == NAME:  # a name says it all the same, and must not contradict the text
            said = {hit.term.group for hit in stated.races}
            race = "+".join(said) if said else rng.choice(groups)
        if race not in groups and (RACE in varied or carrier == NAME):
            raise _Unfit("no line names the race that the text states")
        writer: _NameLine | _Statement
        if carrier == NAME:
            writer = _NameLine(self._subject, rng, race, gender)
        else:
            free = GENDER not in varied and not stated.genders
            writer = _Statement(self._subject, rng, self._known, race, "" if free else gender)
        text = writer.line.text + END + own
        if self._limit is not None and self._limit(text) < len(text):
            raise _Unfit("the text would be cut")
        named = {a: {RACE: race, GENDER: gender}[a] for a in varied}

        def variant(mark: str, edits: tuple[Edit, ...], groups: Mapping[str, str]) -> Variant:
            return Variant(id=f"{case_id}.{mark}", input=apply(text, edits), groups=groups, edits=edits)

        variants: list[Variant] = []
        for attribute in sorted(varied):
            every = groups if attribute == RACE else _GENDERS
            targets = self._targets(attribute, named[attribute], every)
            for target in rng.sample(targets, min(len(targets), self._per_seed)):
                edits = writer.change(attribute, named[attribute], target)
                if edits:
                    variants.append(variant(f"v{len(variants)}", edits, {**named, attribute: target}))
        if not variants:
            return None
        placebos = [edits for a in sorted(varied) if (edits := writer.change(a, named[a], named[a]))]
        if placebos:
            placebos += [edits for a in sorted(varied) for edits in irrelevant(text, self._irrelevant, a, 1, rng)]
        variants += [variant(f"p{n}", edits, named) for n, edits in enumerate(placebos)]
        return Case(
            id=case_id,
            suite=SUITES[carrier],
            original=Variant(id=f"{case_id}.o", input=text, groups=named),
            variants=tuple(variants),
            label=seed.label,
            source=seed.source,
        )

    def _groups(self, carrier: str) -> list[str]:
        """The races and ethnicities that a carrier names, of those that the dictionary has."""
        known = self._known[RACE]
        if carrier == NAME:
            return sorted({race for race, _ in full_names()} & set(known.groups))
        return sorted(g for g in known.targets if adjectives(known, g))

    def _targets(self, attribute: str, source: str, groups: Iterable[str]) -> list[str]:
        wanted = self._inner.wanted.get(attribute, EVERY)
        return [g for g in groups if g != source and wanted.allows(source, g)]


def _about(seed: SourceText, start: int, end: int) -> bool:
    """Whether a place in the text may speak of its subject."""
    return seed.subject is None or touches(start, end, seed.subject)


def _without(seed: SourceText, hits: Sequence[Hit]) -> str:
    """The text without its adjectives for the race of its subject."""
    text = seed.text
    for hit in reversed(hits):
        before, after = text[: hit.start], text[hit.end :]
        follows = re.match(r" (?!(?:and|or)\b)[a-z]", after)
        plain = hit.term.slot == "adjective" and follows and not before.endswith((", ", "and ", "or "))
        if seed.subject is None or not plain:
            raise _Unfit("the race that the text states cannot be left out")
        after = after[1:]
        if article := re.search(r"\b([Aa])n? $", before):
            new = article_for(after)
            before = before[: article.start()] + match_case(article[1], new) + " "
        if not before or re.search(r"[.!?:]\s+$", before):
            after = after[0].upper() + after[1:]
        text = before + after
    return text
