"""Lines in front of a text that say who it is about: a name, or a plain statement.

Most texts do not state the race of the person who is judged, and many not the gender. A line does, and leaves the
text as it is: ``Applicant: Lakisha Washington``, or ``The applicant is a black woman.`` The original of such a case
carries a line too, with the name of another group, so that a line by itself is on both sides of every comparison.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from random import Random
from string import Formatter
from typing import Any, NamedTuple

from auditor.core import reading
from auditor.core.types import Case, Edit, EditKind, SourceText, Variant, draws_of, id_of, text_of
from auditor.perturb.dictionaries import Dictionary, Term, load
from auditor.perturb.edits import apply, replacing
from auditor.perturb.matching import Hit, Matcher
from auditor.perturb.mutation import EVERY, MutationSuite, TextSuite
from auditor.perturb.placebo import Irrelevant, irrelevant
from auditor.text.english import article_for, match_case
from auditor.text.languages import ENGLISH, Language, language_of
from auditor.text.languages import load as load_language
from auditor.text.people import touches

GENDER, RACE = "gender", "race"
WORDS, NAME, STATEMENT = "words", "name", "statement"
CARRIED = (GENDER, RACE)  # the attributes that a line may carry
SUITES = {NAME: "name_line.v1", STATEMENT: "statement.v1"}
TARGETS = 4  # other groups that the line of one text is changed to, for each attribute
END = "\n\n"  # between a line and its text
_GENDERS = ("female", "male")
_ORIGINS = ("nationality", "religion")
_MIXED = frozenset(("american", "british", "canadian", "australian"))  # nations that all these names are of


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
    """Return the first names of each (race or ethnicity, gender), each with its last names."""
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


class _Line(ABC):
    """A line made of a template and its parts, each of which may change by itself."""

    def __init__(self, template: str, parts: Mapping[str, str], rng: Random) -> None:
        self._template, self._rng = template, rng
        self._parts = {**parts, **({"number": self._number()} if "{number}" in template else {})}
        self.text = template.format(**self._parts)

    @abstractmethod
    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another."""

    def placebos(self, attribute: str, group: str) -> list[tuple[Edit, ...]]:
        """The edit of the reference number, where the line has one."""
        numbered = "number" in self._parts
        return [self._edits({"number": self._number()}, attribute, "placebo", (group, group))] if numbered else []

    def _edits(
        self, new: Mapping[str, str], attribute: str, kind: EditKind, groups: tuple[str, str]
    ) -> tuple[Edit, ...]:
        """The edits that put ``new`` parts in the place of others; an article follows, as it does in any text."""
        out, at = [], 0
        for literal, name, _, _ in Formatter().parse(self._template):
            at += len(literal)
            old = self._parts[name] if name else ""
            if name and new.get(name, old) != old:
                how: EditKind = "agreement" if name == "article" else kind
                out.append(replacing(self.text, (at, at + len(old)), new[name], attribute, how, groups))
            at += len(old)
        return tuple(out)

    def _number(self) -> str:
        return str(self._rng.randrange(10_000, 100_000))


class _NameLine(_Line):
    """A line with a full name: ``attribute`` moves first and last name, gender the first name alone."""

    def __init__(
        self, template: str, pools: Mapping[tuple[str, str], Sequence[First]], rng: Random, said: Mapping[str, str]
    ) -> None:
        self._pools, self._rng = pools, rng
        self._attribute = next(a for a in said if a != GENDER)
        self._group, self._gender = said[self._attribute], said[GENDER]
        self._first, self._last = self._full(self._group, self._gender)
        super().__init__(template, {"first": self._first.name, "last": self._last}, rng)

    def _full(self, group: str, gender: str, *, others: bool = False) -> tuple[First, str]:
        pool = [f for f in self._pools[group, gender] if not others or f != self._first]
        first = self._rng.choice(pool)
        lasts = [last for last in first.lasts if not others or last != self._last]
        return first, self._rng.choice([last for last in lasts if last != first.name] or lasts)

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another; those of a placebo where they are one."""
        kind: EditKind = "placebo" if source == target else "name_line"
        if attribute == self._attribute:
            first, last = self._full(target, self._gender, others=source == target)
            return self._edits({"first": first.name, "last": last}, attribute, kind, (source, target))
        names, known = self._pools[self._group, target], (self._first.name, self._last)
        pool = [f.name for f in names if f.lasts == self._first.lasts and f.name not in known]
        return self._edits({"first": self._rng.choice(pool)}, attribute, kind, (source, target)) if pool else ()

    def placebos(self, attribute: str, group: str) -> list[tuple[Edit, ...]]:
        """Another name of the group, and another reference number where the line has one."""
        return [self.change(attribute, group, group), *super().placebos(attribute, group)]


class _Statement(_Line):
    """A line that says of ``said``, attribute → group, what ``words`` has for them."""

    def __init__(self, template: str, words: Callable[[str, str], str], rng: Random, said: Mapping[str, str]) -> None:
        self._words = words
        self._said = {attribute: words(attribute, group) for attribute, group in said.items()}
        super().__init__(template, _with_article(self._said), rng)

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another."""
        said = _with_article(self._said | {attribute: self._words(attribute, target)})
        return self._edits(said, attribute, "statement", (source, target))


def _with_article(said: Mapping[str, str]) -> dict[str, str]:
    """The words of a statement, with the article that goes before them in an English one."""
    return {"article": article_for(said.get(RACE) or next(iter(said.values()))), **said}


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


class Lines(TextSuite):
    """Cases of the suite ``words``, and cases with a line for what these do not change.

    For each attribute of a text the first of ``carriers`` that fits is taken; a text that ``limit_chars`` would cut
    gets no line. ``language`` is that of texts that are too short to tell. Words of other languages are changed by the
    user's pairs.
    """

    name = "lines.v1"

    def __init__(
        self,
        words: MutationSuite,
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
        language: str = ENGLISH,
    ) -> None:
        self._home, self._asked = language, attributes
        self._pairs = any(d.raw for d in dictionaries)
        self._irrelevant = irrelevant or {}
        self._inner = words
        self._carriers, self._subject = tuple(carriers), subject
        self._per_seed = min(TARGETS, per_seed or TARGETS)
        self._seed, self._limit = seed, limit_chars
        known = {d.attribute: d for d in dictionaries}
        chosen = [a for a, d in known.items() if (d.default if attributes is None else a in attributes)]
        self._named = {a for a, d in known.items() if not d.raw}
        self._varied = [a for a in CARRIED if a in chosen and not known[a].raw]
        self._known = {a: known[a] if a in known and not known[a].raw else load(a) for a in CARRIED}
        self._matcher = Matcher([*self._known.values(), *map(load, (*_ORIGINS, "names"))])
        terms = sorted({t.text.capitalize() for t in self._known[RACE].sources}, key=len, reverse=True)
        self._race_words = re.compile(rf"\b(?:{'|'.join(map(re.escape, terms))})\b")
        super().__init__(seeds)
        self.passed_over = words.passed_over

    def describe(self) -> dict[str, object]:
        """Return what the suite of words says, and the carriers."""
        return self._inner.describe() | {
            "carriers": list(self._carriers),
            "subject": self._subject,
            "skipped": dict(sorted(self.skipped.items())),
        }

    def cases(self, seeds: Sequence[SourceText]) -> list[Case]:
        """Make the cases of some texts, one or more of each."""
        codes = [language_of(seed.text, self._home) for seed in seeds]
        read = [s for s, code in zip(seeds, codes, strict=True) if code == ENGLISH or self._pairs]
        by_words = {case.id: case for case in self._inner.cases(read)}
        out: list[Case] = []
        for seed, code in zip(seeds, codes, strict=True):
            made = self._cases(seed, code, by_words.get(id_of("c", [seed.id, seed.text])))
            out += made
            if not made:
                self.skipped["no carrier fits"] += 1
        return out

    def _varies(self, language: Language) -> list[str]:
        """What lines of another language vary: gender and its attribute of names, where they are asked for."""
        wanted = self._named if self._asked is None else self._asked
        return [a for a in (GENDER, language.names.attribute) if a in wanted]

    def _cases(self, seed: SourceText, code: str, case: Case | None) -> list[Case]:
        """The cases of one text: each attribute is changed in that of the first carrier that fits."""
        language = None if code in (ENGLISH, "") else load_language(code)
        if not code:
            self.passed_over["line: the language of the text has no file"] += 1
        by_words = {v.attributes[0]: case.original.groups for v in case.variants if v.order == 1} if case else {}
        left, carried = self._varies(language) if language else list(self._varied) if code else [], set[str]()
        stated: _Stated | None = None
        out: list[Case] = []
        for carrier in self._carriers:
            if carrier == WORDS:
                kept = [v for v in case.variants if not carried & set(v.attributes)] if case else []
                out += [dataclasses.replace(case, variants=tuple(kept))] if case and kept else []
                left = [a for a in left if a not in by_words]
            elif left:
                try:
                    if language is None:
                        stated = stated or self._read(seed, {a: groups[a] for a, groups in by_words.items()})
                        made = self._made(seed, carrier, left, stated)
                    else:
                        made = self._local(seed, carrier, left, language)
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
        rng = self._random(seed, carrier)
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
            races = {hit.term.group for hit in stated.races}
            race = "+".join(races) if races else rng.choice(groups)
        if race not in groups and (RACE in varied or carrier == NAME):
            raise _Unfit("no line names the race that the text states")
        line: _Line
        if carrier == NAME:
            start = self._subject.removeprefix("the ").capitalize()
            line = _NameLine(f"{start}: {{first}} {{last}}", full_names(), rng, {RACE: race, GENDER: gender})
        else:
            said = {GENDER: gender if GENDER in varied or stated.genders else ""} | ({RACE: race} if race else {})
            words = "{race} {gender}" if race else "{gender}"
            template = f"{self._subject.capitalize()} is {{article}} {words}."
            line = _Statement(template, partial(self._word, rng), rng, said)
        named = {a: {RACE: race, GENDER: gender}[a] for a in varied}
        return self._case(seed, carrier, line, own, named, {RACE: groups, GENDER: _GENDERS}, rng)

    def _local(self, seed: SourceText, carrier: str, left: Sequence[str], language: Language) -> Case | None:
        """The case of a text in another language; what the text states of a gender stays."""
        rng = self._random(seed, carrier)
        stated = language.genders(seed.text)
        if seed.subject == ():
            raise _Unfit("the text is about no single person")
        if len(stated) > 1:
            raise _Unfit("words of two genders, and nobody tells whose they are")
        by_name, origin = carrier == NAME, language.names.attribute
        if by_name and language.holds_name(seed.text):
            raise _Unfit("the text names somebody")
        groups: dict[str, Sequence[str]] = {GENDER: _GENDERS, origin: sorted(language.names.groups)}
        if not by_name:
            groups = {a: sorted(set(language.statements.get(a, ())) - {"line"}) for a in groups}
        varied = [a for a in left if groups.get(a) and (a != GENDER or not stated)]
        if not varied:
            return None
        said = {}
        for attribute in groups if by_name else varied:
            every = groups[attribute]
            said[attribute] = rng.choice([g for g in every if self._targets(attribute, g, every)] or every)
        line: _Line
        if by_name:
            said[GENDER] = next(iter(stated), said[GENDER])
            pools = {
                (group, gender): [First(name, pool.last) for name in getattr(pool, gender)]
                for group, pool in language.names.groups.items()
                for gender in _GENDERS
            }
            line = _NameLine(f"{language.line}\n{language.number}", pools, rng, said)
        else:
            lines = [language.statements[a]["line"].replace("{value}", f"{{{a}}}") for a in said]
            line = _Statement("\n".join((*lines, language.number)), language.word, rng, said)
        return self._case(seed, carrier, line, seed.text, {a: said[a] for a in varied}, groups, rng)

    def _random(self, seed: SourceText, carrier: str) -> Random:
        return Random(f"{self._seed}:{draws_of(text_of(id_of(carrier[0], [seed.id, seed.text])))}:{carrier}")

    def _case(
        self,
        seed: SourceText,
        carrier: str,
        line: _Line,
        own: str,
        named: Mapping[str, str],
        groups: Mapping[str, Sequence[str]],
        rng: Random,
    ) -> Case | None:
        """The case with ``line`` in front of the text ``own``; ``named`` are the groups that vary."""
        case_id = id_of(carrier[0], [seed.id, seed.text])
        text = line.text + END + own
        if self._limit is not None and self._limit(text) < len(text):
            raise _Unfit("the text would be cut")

        def variant(mark: str, edits: tuple[Edit, ...], groups: Mapping[str, str]) -> Variant:
            return Variant(id=f"{case_id}.{mark}", input=apply(text, edits), groups=groups, edits=edits)

        variants: list[Variant] = []
        for attribute in sorted(named):
            targets = self._targets(attribute, named[attribute], groups[attribute])
            for target in rng.sample(targets, min(len(targets), self._per_seed)):
                edits = line.change(attribute, named[attribute], target)
                if edits:
                    variants.append(variant(f"v{len(variants)}", edits, {**named, attribute: target}))
        if not variants:
            return None
        placebos = [edits for a in sorted(named) for edits in line.placebos(a, named[a]) if edits]
        if placebos:
            placebos += [edits for a in sorted(named) for edits in irrelevant(text, self._irrelevant, a, 1, rng)]
        variants += [variant(f"p{n}", edits, named) for n, edits in enumerate(placebos)]
        return Case(
            id=case_id,
            suite=SUITES[carrier],
            original=Variant(id=f"{case_id}.o", input=text, groups=named),
            variants=tuple(variants),
            label=seed.label,
            source=seed.source,
        )

    def _word(self, rng: Random, attribute: str, group: str) -> str:
        """A word that says in English what somebody is; "person" where no gender is to be said."""
        if attribute == RACE:
            return rng.choice(adjectives(self._known[RACE], group)).text
        nouns = (t.text for t in self._known[GENDER].terms if (t.slot, t.group) == ("adult.sg", group))
        return next(nouns) if group else "person"

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
