"""The placebo arm: edits of the same number at the same places that change no group.

A rate of changed answers says little until it is laid beside the rate under edits that leave every group as it
is. For each variant of one attribute there is a placebo with as many changed spans: other surface forms for
the same group where the dictionary has them (woman → lady), else neutral words near the changed ones
(movie → film).
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

from auditor.core.types import Case, Edit, Variant, is_beside
from auditor.perturb._agree import edits_of
from auditor.perturb._match import Hit, Matcher, Scan, settle
from auditor.perturb._seams import misread
from auditor.perturb.dictionaries import Dictionary, Term, neutral
from auditor.perturb.irrelevant import Irrelevant, irrelevant
from auditor.perturb.mutation import apply
from auditor.perturb.wordings import frames, mixed

_TRIES = 6  # draws for each placebo wanted, since a draw may repeat an earlier one
_NEAR = 3  # a neutral site is drawn among so many nearest ones at first, and among more later


class _Site(NamedTuple):
    """A place and the words that may be written there without naming another group."""

    hit: Hit
    term: Term
    words: tuple[Term, ...]


class Placebos:
    """Makes placebo variants for cases of `auditor.perturb.mutation.MutationSuite`.

    Parameters
    ----------
    dictionaries : sequence of Dictionary
        Those of the suite; all are read, so that no neutral edit touches a word that names a group.
    words : Dictionary or None
        The neutral words; None takes those that come with the tool.
    limit_chars : callable or None
        Number of characters of a text that the model gets to see.
    irrelevant : mapping, optional
        What the task names as irrelevant; half of the placebos of an attribute are of it where the text has any.

    Attributes
    ----------
    missing : Counter of str
        Placebos that a text had no room for, by attribute.
    primary : dict
        Attribute → the pair of groups that its dictionary names first.

    Examples
    --------
    >>> from auditor.perturb.dictionaries import load
    >>> from auditor.perturb.mutation import MutationSuite
    >>> from auditor.core.types import SourceText
    >>> gender = [load("gender")]
    >>> texts = [SourceText(id="1", text="The woman left the movie.")]
    >>> suite = MutationSuite(seeds=texts, dictionaries=gender, order=1)
    >>> case, = suite.ask(1, Random(0))
    >>> [v.input for v in Placebos(dictionaries=gender).placebos(case, 1, Random(0))]
    ['The lady left the movie.']
    """

    def __init__(
        self,
        *,
        dictionaries: Sequence[Dictionary],
        words: Dictionary | None = None,
        limit_chars: Callable[[str], int] | None = None,
        irrelevant: Irrelevant | None = None,
    ) -> None:
        self._irrelevant = irrelevant or {}
        self._dictionaries = {d.attribute: d for d in dictionaries}
        self.primary = {d.attribute: d.primary for d in dictionaries if d.primary is not None}
        self._words = neutral() if words is None else words
        self._groups = Matcher(list(dictionaries))
        self._neutral = Matcher([self._words])
        self._limit = limit_chars
        self.missing: Counter[str] = Counter()

    def placebos(self, case: Case, n: int | None, rng: Random) -> tuple[Variant, ...]:
        """Return placebo variants of ``case.original``.

        Parameters
        ----------
        case : Case
            With the variants whose arm is to be controlled.
        n : int or None
            The most placebos for each attribute; None makes as many as the case has variants of that
            attribute alone.
        rng : Random
            Every choice is drawn from it.

        Returns
        -------
        tuple of Variant
            ``<case id>.p0`` and on, all different. Their edits are of kind ``placebo``, with the attribute that
            they control for. ``source_group`` and ``target_group`` are equal: the group that was named before and
            after, or ``neutral``. ``groups`` are those of the original.
        """
        text = case.original.input
        if not isinstance(text, str):
            return ()
        kept = len(text) if self._limit is None else self._limit(text)
        scan, hits, free = self._read(text, kept)
        standing = frozenset(h.surface.lower() for h in (*hits, *(site.hit for site in free)))
        out: list[Variant] = []
        arms: dict[str, list[Variant]] = {}
        for variant in case.variants:
            if variant.order == 1:
                arms.setdefault(variant.attributes[0], []).append(variant)
        for attribute in sorted(arms):
            own = self._within(hits, attribute)
            wanted = len(arms[attribute]) if n is None else min(n, len(arms[attribute]))
            made: dict[tuple[object, ...], tuple[Edit, ...]] = {}
            drawn: dict[tuple[object, ...], tuple[Edit, ...]] = {}
            for named in irrelevant(text[:kept], self._irrelevant, attribute, -(-wanted // 2), rng):
                made[tuple((e.where, e.target) for e in named)] = named
            for draw in range(wanted * _TRIES):
                if len(made) == wanted:
                    break
                model = arms[attribute][draw % len(arms[attribute])]
                # Once the group's other words have had their turn, neutral ones fill the arm.
                sites = own if draw < 2 * wanted else {}
                picks = _picks(model, sites, free, standing, _NEAR + draw // 2, rng)
                picked = tuple([(site.hit.start, id(word)) for site, word in picks])
                edits = drawn.get(picked)
                if edits is None:
                    edits = drawn[picked] = _edits(scan, attribute, picks)
                if edits:
                    made.setdefault(tuple((e.where, e.target) for e in edits), edits)
            self.missing[attribute] += wanted - len(made)
            for edits in made.values():
                out.append(
                    Variant(
                        id=f"{case.id}.p{len(out)}",
                        input=apply(text, edits),
                        groups=case.original.groups,
                        edits=edits,
                    )
                )
        return tuple(out)

    def neutral(self, case: Case, most: int, rng: Random) -> tuple[Variant, ...]:
        """Return ``case.original`` with neutral words changed at one place or two, at most ``most`` of each.

        Placebo variants of the case that change neutral words alone come first: they are asked anyhow. Last are the
        original with a sentence about the text before or after it, where the model gets to see all of that.
        """
        text = case.original.input
        if not isinstance(text, str):
            return ()
        kept = len if self._limit is None else self._limit
        scan, _, free = self._read(text, kept(text))
        standing = {site.hit.surface.lower() for site in free}
        made: list[list[tuple[Edit, ...]]] = []
        for site in free:
            words = [word for word in site.words if word.text.lower() not in standing]
            found = [_edits(scan, site.term.attribute, [(site, word)]) for word in words]
            made.append([edits for edits in found if edits])
        places = {site.hit.start for site in free}
        known = {
            v.input: v.edits
            for v in case.variants
            if is_beside(v) and all(e.where[0] in places for e in v.edits if e.kind == "placebo")
        }
        for edits in mixed([site for site in made if site], most, rng):
            known.setdefault(apply(text, edits), edits)
        for edits in frames(text, most, rng):
            framed = apply(text, edits)
            if kept(framed) >= len(framed):
                known.setdefault(framed, edits)
        return tuple(
            Variant(id=f"{case.id}.n{i}", input=one, groups=case.original.groups, edits=edits)
            for i, (one, edits) in enumerate(known.items())
        )

    def _read(self, text: str, kept: int) -> tuple[Scan, list[Hit], list[_Site]]:
        """Return the scan, the places that name a group, and the neutral sites apart from them."""
        scan = self._groups.scan(text)
        hits = [h for h in settle(scan, {}) if h.end <= kept]
        taken = sorted((h.start, h.end) for h in scan.hits)
        starts = [start for start, _ in taken]
        ends = list(
            accumulate((end for _, end in taken), max)
        )  # the furthest end of this one and those before
        free = []
        for hit in self._neutral.scan(text).hits:
            before = bisect_left(starts, hit.end)
            if hit.end <= kept and (not before or ends[before - 1] <= hit.start):
                words = self._words.alternatives(hit.terms[0])
                if words:
                    free.append(_Site(hit, hit.terms[0], words))
        return scan, hits, free

    def _within(self, hits: Sequence[Hit], attribute: str) -> dict[int, _Site]:
        """Return the sites of ``attribute`` where its group has another surface form, by start offset."""
        sites = {}
        for hit in hits:
            term = hit.terms[0]
            if term.attribute == attribute:
                words = self._dictionaries[attribute].alternatives(term)
                if words:
                    sites[hit.start] = _Site(hit, term, words)
        return sites


def _picks(
    model: Variant,
    own: dict[int, _Site],
    free: Sequence[_Site],
    standing: frozenset[str],
    near: int,
    rng: Random,
) -> list[tuple[_Site, Term]]:
    """Draw as many sites as ``model`` has changed spans, the nearest ones, and a word for each."""
    left = sorted(free, key=_start)
    chosen: dict[Term, Term] = {}
    picks: list[tuple[_Site, Term]] = []
    for edit in model.edits:
        if edit.kind == "agreement" or not isinstance(edit.where, tuple):
            continue
        at = edit.where[0]
        site = own.get(at)
        if site is None:
            if not left:
                continue
            site = left.pop(_nearest(left, at, rng.randrange(min(near, len(left)))))
        if site.term not in chosen:
            # Two people must not get one name, and nobody that of somebody who is there.
            words = [w for w in site.words if w not in chosen.values() and w.text.lower() not in standing]
            if not words:
                continue
            chosen[site.term] = words[rng.randrange(len(words))]
        picks.append((site, chosen[site.term]))
    return picks


def _start(site: _Site) -> int:
    return site.hit.start


def _nearest(sites: Sequence[_Site], at: int, n: int) -> int:
    """The index of the n-th nearest to ``at`` of ``sites``, which are in order; the earlier of two equally near."""
    after = bisect_left(sites, at, key=_start)
    before = after - 1
    while True:
        back = before >= 0 and (
            after == len(sites) or at - _start(sites[before]) <= _start(sites[after]) - at
        )
        if n == 0:
            return before if back else after
        n -= 1
        before, after = (before - 1, after) if back else (before, after + 1)


def _edits(scan: Scan, attribute: str, picks: Sequence[tuple[_Site, Term]]) -> tuple[Edit, ...]:
    """The edits that put the words into their sites, for the arm of ``attribute``; none where they are misread."""
    edits: list[Edit] = []
    for site, word in picks:
        made = edits_of(scan, site.hit, site.term, word, site.term.group, "placebo")
        edits += [dataclasses.replace(one, attribute=attribute) for one in made]
    edits.sort(key=lambda e: e.where)
    return () if misread(scan.text, edits) else tuple(edits)
