"""The suites of HInter: mutation as its released code does it, for ``--protocol hinter``, and joint changes first.

Texts are lower-cased, all occurrences of a pair's source between word boundaries are replaced, and for two attributes
the second pair is applied to the already changed text. Nothing is repaired or controlled, so that figures compare with
published ones. The mutation of this project is `auditor.perturb.mutation`.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from auditor.core.types import Case, Edit, SourceText, Variant, Verdict, id_of
from auditor.perturb.dictionaries import Dictionary
from auditor.perturb.edits import apply, replacing, span_of
from auditor.perturb.mutation import MutationSuite, TextSuite, _chosen
from auditor.text.english import looks_english


@dataclass(frozen=True, slots=True)
class Pair:
    """One ``source;target`` line."""

    attribute: str
    source: str
    target: str
    source_group: str
    target_group: str


def pairs_of(dictionary: Dictionary) -> list[Pair]:
    """Return the lower-cased pairs of a dictionary: the given ones, or those of its slots."""
    both = dictionary.pairs
    if both is None:
        both = tuple(
            (source, target)
            for source in dictionary.sources
            for group in dictionary.targets
            if group != source.group
            for target in dictionary.counterparts(source, group)
        )
    rows = [Pair(dictionary.attribute, a.text.lower(), b.text.lower(), a.group, b.group) for a, b in both]
    return [pair for pair in dict.fromkeys(rows) if pair.source != pair.target]


@lru_cache(maxsize=20_000)
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(word)}\b")


def spans(text: str, word: str) -> list[tuple[int, int]]:
    r"""Return where ``\bword\b`` is in ``text``, left to right."""
    return [m.span() for m in _pattern(word).finditer(text)] if word in text else []


def replace(text: str, pair: Pair) -> list[Edit]:
    """Return the edits that write ``pair.target`` for every ``pair.source`` in ``text``."""
    return [_edit(pair, text, where, pair.target) for where in spans(text, pair.source)]


def _edit(pair: Pair, text: str, where: tuple[int, int], target: str) -> Edit:
    return replacing(text, where, target, pair.attribute, "swap", (pair.source_group, pair.target_group))


def replace_again(text: str, first: Sequence[Edit], second: Pair) -> list[Edit]:
    """Return the edits of ``text`` that equal ``first``, then ``second`` on the changed text.

    A second match that touches a first replacement is one edit, of the second attribute, with the final text.
    """
    changed = apply(text, first)
    placed: list[tuple[int, int]] = []  # the first replacements in the changed text
    saved = [0]  # characters that the first k replacements took away
    for edit in first:
        start, end = span_of(edit)
        at = start - saved[-1]
        placed.append((at, at + len(edit.target)))
        saved.append(saved[-1] + (end - start) - len(edit.target))

    def back(offset: int) -> int:
        return offset + saved[sum(stop <= offset for _, stop in placed)]

    edits: list[Edit] = []
    matches = spans(changed, second.source)
    for low, high in _merged([*placed, *matches]):
        inside = [m for m in matches if low <= m[0] and m[1] <= high]
        if not inside:
            edits.append(first[placed.index((low, high))])
            continue
        target, at = "", low
        for start, end in inside:
            target += changed[at:start] + second.target
            at = end
        edits.append(_edit(second, text, (back(low), back(high)), target + changed[at:high]))
    return edits


def _merged(regions: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of overlapping regions, left to right."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(regions):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


class HinterSuite(TextSuite):
    """Mutants of lower-cased texts by pair lists, sequential for two attributes.

    ``order`` is 1 or 2; ``per_seed`` draws so many mutants of each text and attribute set (None: all of them).
    """

    name = "hinter.v1"

    def __init__(
        self,
        *,
        seeds: Iterable[SourceText],
        dictionaries: Sequence[Dictionary],
        attributes: str | Sequence[str] | None = None,
        order: int = 2,
        per_seed: int | None = None,
        seed: int = 7,
    ) -> None:
        super().__init__(seeds)
        self.order, self.per_seed, self.seed = order, per_seed, seed
        by_name = _chosen(dictionaries, attributes)
        self.pairs = {name: pairs_of(by_name[name]) for name in sorted(by_name)}
        self._dictionaries = list(by_name.values())

    def describe(self) -> dict[str, object]:
        """Return the options."""
        return {
            "name": self.name,
            "order": self.order,
            "per_seed": self.per_seed,
            "seed": self.seed,
            "dictionaries": [
                {"attribute": d.attribute, "name": d.name, "version": d.version, "sha256": d.sha256}
                for d in self._dictionaries
            ],
        }

    def cases(self, seeds: Sequence[SourceText]) -> list[Case]:
        """Make the cases of some texts; those without a source word are skipped and counted."""
        made = [case for seed in seeds if (case := self._case(seed)) is not None]
        if left_out := len(seeds) - len(made):
            self.skipped["no source word"] += left_out
        return made

    def _case(self, seed: SourceText) -> Case | None:
        """Return the case of one text, or None where it has no source word."""
        text = seed.text.lower()
        literal = {d.attribute for d in self._dictionaries if d.raw or looks_english(seed.text)}
        known = {a: [p for p in pairs if spans(text, p.source)] for a, pairs in self.pairs.items() if a in literal}
        known = {a: pairs for a, pairs in known.items() if pairs}
        if not known:
            return None
        both = itertools.combinations(sorted(known), 2) if self.order > 1 else ()
        joint = [list(self._joint(text, known[a], known[b])) for a, b in both]
        rng = Random(f"{self.seed}:{seed.id}")
        if self.per_seed is not None:
            joint = [rng.sample(rows, min(len(rows), self.per_seed)) for rows in joint]
        needed: dict[Pair, None] = {}
        for row in itertools.chain.from_iterable(joint):
            needed.update(dict.fromkeys(row[:2]))
        for pairs in known.values():
            some = pairs if self.per_seed is None else rng.sample(pairs, min(len(pairs), self.per_seed))
            needed.update(dict.fromkeys(some))
        edits = [replace(text, pair) for pair in sorted(needed, key=lambda p: (p.attribute, p.source, p.target))]
        edits += [row[2] for row in itertools.chain.from_iterable(joint)]
        case_id = id_of("c", [seed.id, seed.text])
        variants = tuple(
            Variant(
                id=f"{case_id}.v{i}",
                input=apply(text, e),
                groups={one.attribute: one.target_group for one in e},
                edits=tuple(e),
            )
            for i, e in enumerate(edits)
        )
        return Case(
            id=case_id,
            suite=self.name,
            original=Variant(id=f"{case_id}.o", input=text),
            variants=variants,
            label=seed.label,
            source=seed.source,
        )

    @staticmethod
    def _joint(text: str, first: Sequence[Pair], second: Sequence[Pair]) -> Iterator[tuple[Pair, Pair, list[Edit]]]:
        for a in first:
            edits = replace(text, a)
            for b in second:
                if a.source == b.source or b.source == a.target:
                    continue
                both = replace_again(text, edits, b)
                if len({e.attribute for e in both}) == 2:
                    yield a, b, both


# -- joint changes first, their parts only after a change: more hidden changes for the same calls, and no rates --


class JointFirst(MutationSuite):
    """The mutants of texts that allow several attributes to change together, marked for this order.

    Its cases are directed: which parts are asked depends on answers, so they enter no rate and have no placebos.
    """

    name = "joint-first.v1"

    def cases(self, seeds: Sequence[SourceText]) -> list[Case]:
        """Make the cases of some texts; those without a joint change are left out and counted."""
        made = super().cases(seeds)
        joint = [case for case in made if any(v.order > 1 for v in case.variants)]
        if left_out := len(made) - len(joint):
            self.skipped["no two attributes together"] += left_out
        return list(map(_marked, joint))


def _marked(case: Case) -> Case:
    """Leave out single changes that are part of no joint one."""
    needed = [v for v in case.variants if v.order > 1 or _part_of(v, case.variants)]
    return dataclasses.replace(case, sampling="directed", variants=tuple(needed))


def _part_of(variant: Variant, others: Sequence[Variant]) -> bool:
    return any(variant.choices < other.choices for other in others)


def first(case: Case) -> list[Variant]:
    """Return what is asked at once, with one answer each: the original, and variants that are part of no other."""
    return [case.original, *(v for v in case.variants if not _part_of(v, case.variants))]


def again(case: Case, said: Sequence[Verdict]) -> list[Variant]:
    """Return what is asked as often as the plan says: variants that differ or have no label, and the original."""
    unlike = {verdict.variant_id for verdict in said if verdict.outcome != "pass"}
    return [case.original, *(v for v in case.variants if v.id in unlike)] if unlike else []


def later(case: Case, said: Sequence[Verdict]) -> list[Variant]:
    """Return the parts of the joint variants that changed the answer."""
    changed = {verdict.variant_id for verdict in said if verdict.outcome == "violation"}
    joint = [v for v in case.variants if v.id in changed]
    return [v for v in case.variants if _part_of(v, joint)]
