"""Higher-order mutation (HInter, Souani et al. 2025, Algorithms 1 and 2) over dictionaries or raw pairs.

For every seed text that names a group, the suite makes variants that name another one: all changes are
applied at once to spans of the original, so no replaced word is ever replaced again.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.protocols import Suite
from auditor.core.record.base import NOT_CLEAR
from auditor.core.types import Case, SourceText, Variant, draws_of, id_of, names
from auditor.perturb.combine import grouped
from auditor.perturb.dictionaries import Dictionary, unknown
from auditor.perturb.edits import apply, span_of
from auditor.perturb.matching import Matcher, Scan
from auditor.perturb.persons import ALL, SUBJECT_OR_ALL, Crowd, Persons, parsed
from auditor.perturb.substitution import BETWEEN, EVERY, Choice, Substitution, Wanted, sample, split
from auditor.text.english import looks_english, word_list
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
    to the wanted groups of all its attributes, or from them. ``who`` is one of `auditor.perturb.persons.WHO`,
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
            for text, rows in parsed(self._parser, spans).items()
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
