"""Joint changes: what two attributes changed together do beside each alone, of single versions and as claims.

The sets of attributes that a variant changes form a lattice. As judged, a violation is *hidden* if the variants of all
its proper non-empty subsets, with the same choices, are valid and pass: the set is minimal. For two attributes this is
HInter's definition (Algorithm 1, lines 26–28). As numbers, what a joint version does beyond its parts is their
interaction contrast y(AB) − y(A) − y(B) + y(0). An edited version stands with the versions of its text that make some
of its changes and no others; a joint placebo version with its single placebo edits.

A claim is about the mean contrast, oriented as the net difference is: the difference between two groups of one
attribute, for one group of the other attribute minus for another. What joint placebo edits do beyond their parts is
taken out.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from auditor.core.record.measured import Claim
from auditor.core.types import Case, Check, Variant, Verdict
from auditor.measure.claims import MIN_TEXTS, Pair, Question, Tested, filled, pairs, rare, scales
from auditor.measure.contrasts import Moves, outcome_means
from auditor.measure.linear import MOST_ROWS, NO_WORDS, Adjustment, Design, Rows, Words, fit
from auditor.measure.observations import Arm, Bools, Columns, Floats, Ints, Observations, Shape

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_JOINTS = 20_000  # joint versions that are looked at, beside those that are asked for
Attributes = tuple[str, ...]
Choices = frozenset[tuple[str, tuple[int, int] | str, str]]


def mark_hidden(case: Case, verdicts: Sequence[Verdict], checks: Mapping[str, Check]) -> list[Verdict]:
    """Set ``hidden`` on the verdicts of one case, those of several models and formats apart.

    False for a joint variant that passes, or a valid subset of which violates; True for a violation all of whose
    subsets pass and none of which a check found invalid (one that a check could not judge counts as valid, as in all
    rates); None for atomic variants, and where a subset is missing, invalid, skipped or inconclusive, or the joint
    variant itself is.
    """
    usable = {id for id, check in checks.items() if check.status != "invalid"}
    outcomes = {(v.model, v.format, v.variant_id): v.outcome for v in verdicts if v.variant_id in usable}
    by_id: dict[str, Variant] = {}
    by_choices: dict[Choices, str] = {}
    # Most cases have no joint violation.
    for variant in case.variants if any(v.order > 1 and v.outcome == "violation" for v in verdicts) else ():
        by_id[variant.id] = variant
        by_choices.setdefault(variant.choices, variant.id)

    def hidden(v: Verdict) -> bool | None:
        if v.order < 2 or v.variant_id not in usable:
            return None
        if v.outcome != "violation":
            return False if v.outcome == "pass" else None
        ids = [by_choices.get(part, "") for part in smaller(by_id[v.variant_id])]
        parts = {outcomes.get((v.model, v.format, id)) for id in ids}
        return False if "violation" in parts else True if parts == {"pass"} else None

    return [replace(v, hidden=hidden(v)) for v in verdicts]


def smaller(variant: Variant) -> Iterator[Choices]:
    """The choices of all proper non-empty subsets of the attributes of a variant."""
    for size in range(1, len(variant.attributes)):
        for subset in itertools.combinations(variant.attributes, size):
            yield frozenset(choice for choice in variant.choices if choice[0] in subset)


class Joints(NamedTuple):
    """Joint versions of one order, each with all its parts."""

    text: Ints
    shape: Ints  # of the joint version
    placebo: Bools  # whether it is a joint placebo version
    spans: Ints  # how many places of the text were changed
    cells: Ints  # (n, 2 ** order), rows of versions: the original, the parts by size, the joint version
    signs: Floats  # of the cells in the interaction contrast

    def where(self, rows: Bools) -> Joints:
        """Some of them."""
        columns = (self.text[rows], self.shape[rows], self.placebo[rows], self.spans[rows], self.cells[rows])
        return Joints(*columns, self.signs)

    def known(self, known: Bools) -> Bools:
        """Those with an outcome in each cell."""
        return np.asarray(known[self.cells].all(axis=1))

    def contrasts(self, y: Floats) -> Floats:
        """Interaction contrasts: for two attributes y(AB) − y(A) − y(B) + y(0)."""
        return np.asarray(y[self.cells] @ self.signs)

    def beyond_parts(self, y: Floats) -> Floats:
        """How far the joint version lies beyond all its parts, signed; 0 where it lies among them."""
        cells = y[self.cells]
        joint, parts = cells[:, -1], cells[:, :-1]
        above, below = joint - parts.max(axis=1), joint - parts.min(axis=1)
        return np.asarray(np.where(above > 0, above, np.where(below < 0, below, 0.0)))


def joints(observations: Observations, columns: Columns, wanted: Collection[int] = ()) -> dict[int, Joints]:
    """Joint versions by order; of very many, a sample of texts and those of the versions ``wanted``."""
    shapes = observations.shapes.values
    order = np.array([len(s.attributes) for s in shapes], dtype=np.int64)
    usable = observations.in_arm(Arm.EDITED, Arm.PLACEBO)
    joint = np.flatnonzero((usable & (order > 1))[columns.version_shape])
    if not len(joint):
        return {}
    texts = np.unique(columns.version_text[joint])
    if len(joint) > MOST_JOINTS:
        share = MOST_JOINTS / len(joint)
        drawn = texts[np.random.default_rng(0).random(len(texts)) < share]
        texts = np.union1d(drawn, columns.version_text[list(wanted)])
    near = np.flatnonzero(
        np.isin(columns.version_text, texts) & (usable | observations.in_arm(Arm.ORIGINAL))[columns.version_shape]
    )
    by_text: dict[int, list[int]] = defaultdict(list)
    for row, text in zip(near.tolist(), columns.version_text[near].tolist(), strict=True):
        by_text[text].append(row)
    by_order: dict[int, list[tuple[int, int, list[int]]]] = defaultdict(list)
    for text, rows in by_text.items():
        for row, cells in _of_text([(row, shapes[columns.version_shape[row]]) for row in rows]):
            by_order[int(order[columns.version_shape[row]])].append((text, row, cells))
    out = {}
    for size, some in sorted(by_order.items()):
        shape = columns.version_shape[[row for _, row, _ in some]]
        signs = [(-1.0) ** (size - k) for k in range(size + 1) for _ in itertools.combinations(range(size), k)]
        out[size] = Joints(
            text=np.array([text for text, _, _ in some], dtype=np.int64),
            shape=shape,
            placebo=np.array([shapes[code].arm == Arm.PLACEBO for code in shape]),
            spans=np.array([shapes[code].spans for code in shape], dtype=np.int64),
            cells=np.array([cells for _, _, cells in some], dtype=np.int64),
            signs=np.array(signs),
        )
    return out


def _of_text(versions: Sequence[tuple[int, Shape]]) -> Iterator[tuple[int, list[int]]]:
    """(joint version, its cells) of one text, for the joint versions all of whose parts are there."""
    original = next((row for row, shape in versions if shape.arm == Arm.ORIGINAL), None)
    if original is None:
        return
    singles = [(row, shape) for row, shape in versions if shape.arm and len(shape.attributes) == 1]
    by_key = {_key(shape): row for row, shape in reversed(versions) if shape.arm}
    for row, shape in versions:
        if len(shape.attributes) < 2:
            continue
        parts = _parts(shape, singles, by_key)
        if parts is not None:
            yield row, [original, *parts, row]


def _key(shape: Shape) -> tuple[object, ...]:
    # A placebo may stand against edits of several attributes: its words say what it is.
    placebo = shape.arm == Arm.PLACEBO
    attributes = len(shape.attributes) if placebo else shape.attributes
    return shape.arm, attributes, () if placebo else shape.directions, shape.words_out, shape.words_in


def _parts(
    joint: Shape, singles: Sequence[tuple[int, Shape]], by_key: dict[tuple[object, ...], int]
) -> list[int] | None:
    words = set(joint.words_in) | set(joint.words_out)
    near = [
        (row, s)
        for row, s in singles
        if s.arm == joint.arm and words.issuperset(s.words_in) and words.issuperset(s.words_out)
    ]
    turns = {name: {d for d in joint.directions if d[0] == name} for name in joint.attributes}
    options = [
        near
        if joint.arm == Arm.PLACEBO
        else [(row, s) for row, s in near if s.attributes == (name,) and {*s.directions} == own]
        for name, own in turns.items()
    ]
    for chosen in itertools.product(*options):
        single = [s for _, s in chosen]
        if _together(single, "words_in") != joint.words_in or _together(single, "words_out") != joint.words_out:
            continue
        cells = [row for row, _ in chosen]
        if len(set(cells)) < len(cells):
            continue
        for size in range(2, len(chosen)):
            for some in itertools.combinations(single, size):
                part = joint._replace(
                    attributes=tuple(s.attributes[0] for s in some),
                    directions=tuple(sorted({d for s in some for d in s.directions})),
                    words_in=_together(some, "words_in"),
                    words_out=_together(some, "words_out"),
                )
                cells.append(by_key.get(_key(part), -1))
        if -1 not in cells:
            return cells
    return None


def _together(shapes: Sequence[Shape], which: str) -> tuple[str, ...]:
    return tuple(sorted(itertools.chain.from_iterable(getattr(s, which) for s in shapes)))


# -- claims ---------------------------------------------------------------------------------------------------


def tested(observations: Observations, columns: Columns, question: Question) -> Iterator[Tested]:
    """Claims of the family "interaction": all pairs of attributes that were changed together in enough texts."""
    both = joints(observations, columns).get(2)
    if both is None:
        return
    for place, rows in observations.places(columns):
        for label in question.outcomes or [""]:
            scale, value = next(iter(scales(observations, columns, rows, label, question).items()))
            y, known = outcome_means(columns, rows, value)
            here = both.known(known)
            if not here.any():
                continue
            table = _Table(observations, both, here, both.contrasts(y))
            made_of = list(table.contrasts(question))
            taken_out = table.with_words([sides for _, sides, _ in made_of])
            for attributes, (first, second), made in made_of:
                claim = Claim(
                    family="interaction",
                    attribute="+".join(attributes),
                    groups=(f"{first.group}+{second.group}", f"{first.reference}+{second.reference}"),
                    label=label,
                    scale=scale,
                    unit=question.unit_of(scale),
                    model=place.model,
                    format=place.format,
                    texts=len(np.unique(made.design.text[made.design.focal > 0])),
                )
                if taken_out is None:
                    few = f"fewer than {MIN_TEXTS} texts have joint placebo edits and their parts"
                    yield Tested(replace(claim, why=few))
                    continue
                fitted = fit(made, taken_out)
                fitted = rare(fitted, made) if scale == "share" else fitted
                yield Tested(filled(claim, fitted), first.weight * second.weight, made.changed)


class _Table:
    """Contrasts of joint versions by text."""

    def __init__(self, observations: Observations, both: Joints, here: Bools, contrast: Floats) -> None:
        rows = np.flatnonzero(here)
        used, shape = np.unique(both.shape[rows], return_inverse=True)
        self._shapes = [observations.shapes.values[code] for code in used]
        self._text, self._shape, self._contrast = both.text[rows], shape, contrast[rows]
        self._units = observations.units()
        self._words = Moves.of(self._shapes, np.arange(len(self._shapes)))
        # From and to which group, for both attributes; none where one edit changes several people to different ones.
        turns = [d if len(d := one.directions) == 2 else (("", "", ""),) * 2 for one in self._shapes]
        self._names, self._turns = np.unique(
            np.array([[turn[1:] for turn in two] for two in turns], dtype=np.str_), return_inverse=True
        )
        self._sides: dict[tuple[int, Pair], Floats] = {}
        placebo = both.placebo[rows]
        self._of: dict[Attributes, Ints] = {}
        pair = [one.attributes if len(one.directions) == 2 else () for one in self._shapes]
        for attributes in sorted({*pair} - {()}):
            about = np.array([one == attributes for one in pair])
            if (about := about[shape] & ~placebo).any():
                self._of[attributes] = np.flatnonzero(about)
        self._placebo = np.flatnonzero(placebo)
        self._placebos = self._means(self._placebo, np.ones(len(self._placebo)))
        self.taken_out: Adjustment | None = None
        means = self._placebos.y
        unit = np.unique(self._units[self._placebos.text], return_inverse=True)[1]
        if (units := int(unit.max(initial=-1)) + 1) >= MIN_TEXTS:
            apart = np.bincount(unit, means - means.mean())
            variance = float(apart @ apart) / len(means) ** 2 * units / (units - 1)
            effect = np.array([means.mean()])
            self.taken_out = Adjustment(effect=effect, covariance=np.array([[variance]]), span=np.eye(1))

    def with_words(self, tested: Sequence[tuple[Pair, Pair]]) -> Adjustment | None:
        """Return what is taken out, with what all joint versions tell of words; the contrasts ``tested`` are fixed."""
        if self.taken_out is None:
            return None
        kept = np.argsort(self._text, kind="stable")[:MOST_ROWS]
        placebo = np.zeros(len(self._text))
        placebo[self._placebo] = 1.0
        fixed = np.column_stack([placebo, *(self._signs(sides)[self._shape] for sides in dict.fromkeys(tested))])
        text = np.unique(self._text[kept], return_inverse=True)[1].astype(np.int64)
        words = Words(fixed[kept], self._words.table[self._shape[kept]].toarray(), text)
        return replace(self.taken_out, words=words.spread(self._contrast[kept]) or NO_WORDS)

    def contrasts(self, question: Question) -> Iterator[tuple[Attributes, tuple[Pair, Pair], Rows]]:
        """Groups of two attributes beside others, where there are enough texts.

        One row for each text, then one for each text with placebos.
        """
        from scipy.sparse import vstack

        for attributes, about in self._of.items():
            turns = self._turns[np.unique(self._shape[about])]
            names = [self._names[np.unique(turns[:, place])].tolist() for place in range(2)]
            chosen = [pairs(own, attribute, question) for own, attribute in zip(names, attributes, strict=True)]
            for sides in itertools.product(*chosen):
                sign = self._signs(sides)[self._shape[about]]
                of, sign = about[sign != 0], sign[sign != 0]
                if len(np.unique(self._units[self._text[of]])) < MIN_TEXTS:
                    continue
                both = [self._means(of, sign), self._placebos]
                design = Design(
                    focal=np.repeat([1.0, 0.0], [len(one.y) for one in both]),
                    covariates=np.concatenate([one.sign for one in both])[:, None],
                    text=self._units[np.concatenate([one.text for one in both])],
                    words=vstack([one.words for one in both], format="csr"),
                    tokens=self._words.tokens,
                )
                first, second = sides
                yield attributes, (first, second), Rows(np.concatenate([one.y for one in both]), design)

    def _means(self, rows: Ints, sign: Floats) -> _Means:
        from scipy.sparse import csr_array

        text, of, n = np.unique(self._text[rows], return_inverse=True, return_counts=True)
        mean = csr_array((sign / n[of], (of, np.arange(len(rows)))), shape=(len(text), len(rows)))
        words = mean @ self._words.table[self._shape[rows]]
        return _Means(text, mean @ self._contrast[rows], mean @ np.ones(len(rows)), words)

    def _signs(self, sides: Sequence[Pair]) -> Floats:
        """How shapes enter: reversing one attribute reverses a contrast, reversing both does not; 0: not at all."""
        out = np.ones(len(self._shapes))
        for place, side in enumerate(sides):
            if (place, side) not in self._sides:
                group, against = self._names == side.group, np.isin(self._names, side.against)
                source, target = self._turns[:, place].T
                sign = 1.0 * (group[target] & against[source]) - (group[source] & against[target])
                self._sides[place, side] = sign
            out *= self._sides[place, side]
        return out


class _Means(NamedTuple):
    """Means over the contrasts of each text: of these, of their signs, and of their words."""

    text: Ints
    y: Floats
    sign: Floats
    words: csr_array
