"""Rates of a run: group-bys on what an oracle said, by text.

A case is made from one text, and its variants are not independent of each other: every rate has its interval by
text. Placebos stand apart; they enter no rate of changes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from auditor.core.record.measured import Discarded, DiscardedRow
from auditor.core.types import Estimate
from auditor.measure.intervals import clopper_pearson, korn_graubard, mean_share
from auditor.measure.observations import (
    OUTCOMES,
    STATUS,
    Arm,
    Codes,
    Direction,
    Floats,
    Ints,
    Observations,
    Place,
    Shape,
)

Attributes = tuple[str, ...]
K = TypeVar("K", bound=Hashable)
PASS, VIOLATION = OUTCOMES["pass"], OUTCOMES["violation"]
EXEMPLARS = 20
MIN_VALUES = 10  # fewer rates give no index of outliers
MIN_UNITS = 30  # a rate of fewer units takes no part in it
ARMS = {"placebo_rate": "placebo", "noise_floor": "baseline"}  # whose answers a figure is of; else of edited versions


class Key(NamedTuple):
    """What a rate is about."""

    attributes: Attributes
    directions: tuple[Direction, ...] | None = None
    kind: str | None = None


ALL = Key(())


class Counts(NamedTuple):
    """The variants of each text: one entry for each text that has any."""

    text: Ints
    judged: Ints
    violations: Ints
    hidden: Ints
    settled: Ints  # joint variants of which it can be said whether they are hidden
    unsettled: Ints  # joint violations of which it cannot
    lost: Ints  # skipped or inconclusive


def tabulate(
    table: Observations, keys_of: Callable[[Shape], Iterable[K]], *, formats: bool = True, units: bool = True
) -> dict[Place, dict[K, Counts]]:
    """Count what was judged by model, format, each of the keys of its shape, and text.

    Without ``formats`` all formats of a model are counted together, under the format "". Texts of one source are one,
    unless ``units`` is False.
    """
    rows = table.judged()
    keys: Codes[K] = Codes()
    codes = [[keys.of(key) for key in keys_of(shape)] for shape in table.shapes.values]
    several = np.array([len(own) for own in codes], dtype=np.int64)
    first = np.cumsum(several) - several
    flat = np.array([key for own in codes for key in own], dtype=np.int64)
    here = np.repeat(np.arange(len(rows.shape)), several[rows.shape])
    if not len(here):
        return {}
    nth = np.arange(len(here)) - np.repeat(np.cumsum(several[rows.shape]) - several[rows.shape], several[rows.shape])
    key = flat[first[rows.shape[here]] + nth]
    many, texts = len(keys.values), len(table.texts.values)
    of = table.units() if units else np.arange(texts)
    names = table.formats.values if formats else [""]
    asked = rows.format[here] if formats else 0
    owner = (rows.model[here] * len(names) + asked) * many + key
    cells, place = np.unique(owner * texts + of[rows.text[here]], return_inverse=True)
    violation, judged = rows.outcome == VIOLATION, rows.outcome <= VIOLATION
    joint = np.array([len(shape.attributes) > 1 for shape in table.shapes.values], dtype=bool)[rows.shape]
    flags = (
        judged,
        violation,
        violation & (rows.hidden == 1),
        rows.hidden >= 0,
        violation & (rows.hidden < 0) & joint,
        ~judged,
    )
    sums = [np.bincount(place[flag[here]], minlength=len(cells)) for flag in flags]
    owners, starts = np.unique(cells // texts, return_index=True)
    out: dict[Place, dict[K, Counts]] = {}
    for code, start, end in zip(owners.tolist(), starts, [*starts[1:], len(cells)], strict=True):
        of_model, own = divmod(code, many)
        model, name = divmod(of_model, len(names))
        counts = Counts(cells[start:end] % texts, *(column[start:end] for column in sums))
        out.setdefault(Place(table.models.values[model], names[name]), {})[keys.values[own]] = counts
    return out


def by_size(attributes: Attributes) -> tuple[int, Attributes]:
    """Order of attribute sets: single ones first."""
    return len(attributes), attributes


def edited(shape: Shape) -> tuple[Attributes, ...]:
    """The attributes of a version that changes a group."""
    return (shape.attributes,) if shape.arm == Arm.EDITED else ()


def placebo(shape: Shape) -> tuple[Attributes, ...]:
    """The attributes whose edits a placebo copies."""
    return (shape.attributes,) if shape.arm == Arm.PLACEBO else ()


def _parts(shape: Shape) -> tuple[Key, ...]:
    """A rate by direction, and one by kind of edit."""
    if shape.arm != Arm.EDITED:
        return ()
    return Key(shape.attributes, directions=shape.directions), Key(shape.attributes, kind=shape.kind)


def violation_rate(counts: Counts) -> Estimate | None:
    """Share of judged variants that violate, by text; None if none was judged."""
    return share(counts.violations, counts.judged)


def seed_violation_rate(counts: Counts) -> Estimate | None:
    """Share of judged texts on which at least one variant violates; None if none was judged."""
    judged = int((counts.judged > 0).sum())
    if not judged:
        return None
    return clopper_pearson(int((counts.violations > 0).sum()), judged, n_skipped=len(counts.text) - judged)


def hidden_rate(counts: Counts) -> Estimate | None:
    """Share of judged joint variants that are hidden; those of which it cannot be said are left out, and counted."""
    rate = share(counts.hidden, counts.judged - counts.unsettled)
    unsettled = int(counts.unsettled.sum())
    if rate is None or not unsettled:
        return rate
    note = f"{unsettled} joint violations left out: a subset was not valid or not judged"
    return dataclasses.replace(rate, note="; ".join(filter(None, (rate.note, note))))


def share(events: Ints, of: Ints) -> Estimate | None:
    """``events`` of each text among its ``of``; texts without any are skipped; None where all are."""
    here = of > 0
    if not here.any():
        return None
    return korn_graubard(events[here], of[here], n_skipped=int((~here).sum()))


def estimates(table: Observations, discarded: Observations | None = None) -> list[dict[str, object]]:
    """The rates of a run as the run record has them, sorted.

    For each model, format and attribute set: ``violation_rate`` (also by direction and by kind of edit),
    ``seed_violation_rate``, for joint variants ``hidden_rate``, and ``placebo_rate`` of the placebos that stand against
    them. ``valid_share``: how many generated variants were valid.
    """
    base = tabulate(table, edited)
    rows: list[tuple[Place, Key, str, Estimate | None]] = []
    for place, by_set in base.items():
        for attributes, counts in by_set.items():
            key = Key(attributes)
            rows += [
                (place, key, "violation_rate", violation_rate(counts)),
                (place, key, "seed_violation_rate", seed_violation_rate(counts)),
            ]
            if len(attributes) > 1:
                rows.append((place, key, "hidden_rate", hidden_rate(counts)))
    for place, by_key in tabulate(table, _parts).items():
        rows += [(place, key, "violation_rate", violation_rate(counts)) for key, counts in by_key.items()]
    rows.sort(key=lambda one: (*one[0], *by_size(one[1].attributes), one[1].kind or "", one[1].directions or ()))
    rows += [(Place("", ""), Key(a), "valid_share", e) for a, e in valid_share(table, discarded)]
    rows += [(place, Key(a), "placebo_rate", e) for place, a, e in placebo_rates(table, base)]
    return [row(name, e, place, key) for place, key, name, e in rows if e is not None]


def row(name: str, estimate: Estimate, place: Place, key: Key = ALL) -> dict[str, object]:
    """One of the ``estimates`` of a run record."""
    return {
        "name": name,
        "arm": ARMS.get(name, "edited"),
        "model": place.model,
        "format": place.format,
        "attributes": list(key.attributes),
        "directions": None if key.directions is None else [list(d) for d in key.directions],
        "kind": key.kind,
        "estimate": dataclasses.asdict(estimate),
    }


def valid_share(table: Observations, discarded: Observations | None) -> Iterator[tuple[Attributes, Estimate | None]]:
    """Share of generated variants that were valid, by attribute set."""
    texts = len(table.texts.values)
    counts: dict[Attributes, tuple[Ints, Ints]] = {}
    for place, one in enumerate((table, discarded)):
        if one is None or not one.texts.values:
            continue
        # A text has its original, and so a number, in the table.
        number = np.array([table.texts.of(name) for name in one.texts.values], dtype=np.int64)
        columns = one.columns()
        for attributes in {a for s in one.shapes.values for a in edited(s)}:
            own = np.array([attributes in edited(s) for s in one.shapes.values], dtype=bool)
            text = number[columns.version_text[own[columns.version_shape]]]
            both = counts.setdefault(attributes, (np.zeros(texts, dtype=np.int64), np.zeros(texts, dtype=np.int64)))
            both[place][:] += np.bincount(text, minlength=texts)
    for attributes, (good, bad) in sorted(counts.items(), key=lambda one: by_size(one[0])):
        yield attributes, share(good[good + bad > 0], (good + bad)[good + bad > 0])


# -- placebos -------------------------------------------------------------------------------------------------


def placebo_rates(
    table: Observations, base: Mapping[Place, Mapping[Attributes, Counts]]
) -> Iterator[tuple[Place, Attributes, Estimate | None]]:
    """For each attribute set, how often the placebos changed the answer that stand against its edits.

    Of each text those that copy edits of just these attributes; else, for a joint change, those of its parts; else
    neutral ones, which copy none of the attributes that were tested.
    """
    texts = len(table.texts.values)
    tested = {name for by_set in base.values() for attributes in by_set for name in attributes}
    arms = tabulate(table, placebo)
    for place, by_set in sorted(base.items()):
        for attributes, counts in sorted(by_set.items()):
            own = set(attributes)
            kinds: tuple[Callable[[set[str]], bool], ...] = (own.__eq__, own.__gt__, tested.isdisjoint)
            changed, judged = np.zeros((2, texts), dtype=np.int64)
            for fits in kinds:
                x, n = np.zeros((2, texts), dtype=np.int64)
                for key, arm in arms.get(place, {}).items():
                    if fits(set(key)):
                        x[arm.text] += arm.violations
                        n[arm.text] += arm.judged
                free = judged == 0
                changed[free], judged[free] = x[free], n[free]
            yield place, attributes, share(changed[counts.text], judged[counts.text])


def placebo_controls(
    table: Observations, rate: Callable[[Counts], Estimate | None] = violation_rate
) -> dict[str, dict[str, Estimate]]:
    """How often placebos changed the answer, or another ``rate``, by model and by the attributes that they copy."""
    made = {
        place.model: {" + ".join(key): e for key in sorted(arms, key=by_size) if (e := rate(arms[key])) is not None}
        for place, arms in tabulate(table, placebo, formats=False).items()
    }
    return {model: estimates for model, estimates in made.items() if estimates}


def looks_hidden(counts: Counts) -> Estimate | None:
    """Of joint placebos that were judged with their parts, the share that looks hidden."""
    return share(counts.hidden, counts.settled)


# -- noise, and answers by group ------------------------------------------------------------------------------


def noise_floor(table: Observations, model: str) -> Estimate | None:
    """How often two answers of a model to one prompt differ; None if nothing was repeated.

    The mean over texts of the mean over prompts, each of the share of its pairs of replicates that differ.
    """
    columns = table.columns()
    use = (columns.model == table.models.get(model)) & (columns.label >= 0)
    labels, formats = max(1, len(table.labels.values)), max(1, len(table.formats.values))
    prompt = (columns.version * formats + columns.format)[use]
    cells, count = np.unique(prompt * labels + columns.label[use], return_counts=True)
    prompts, at = np.unique(cells // labels, return_inverse=True)
    answers = np.bincount(at, count, minlength=len(prompts))
    equal = np.bincount(at, count * (count - 1), minlength=len(prompts))
    twice = answers > 1
    if not twice.any():
        return None
    pairs = answers[twice] * (answers[twice] - 1)
    means = _means(1 - equal[twice] / pairs, columns.version_text[(prompts // formats)[twice]])
    asked = columns.version[columns.model == table.models.get(model)]
    skipped = len(np.unique(columns.version_text[asked])) - len(means)
    return mean_share(np.minimum(means, 1.0), int(pairs.sum()) // 2, n_skipped=skipped)


def _means(values: Floats, texts: Ints) -> Floats:
    """Of each text the mean of its values."""
    at = np.unique(texts, return_inverse=True)[1]
    return np.asarray(np.bincount(at, values) / np.bincount(at))


def noise_of_numbers(table: Observations, model: str) -> float | None:
    """Mean absolute difference of two answers of a model to one prompt, by text; None where nothing was repeated."""
    columns = table.columns()
    use = np.flatnonzero((columns.model == table.models.get(model)) & ~np.isnan(columns.score))
    formats = max(1, len(table.formats.values))
    prompt = columns.version[use] * formats + columns.format[use]
    order = np.lexsort((columns.score[use], prompt))
    key, value = prompt[order], columns.score[use][order]
    prompts, start, size = np.unique(key, return_index=True, return_counts=True)
    # Of sorted values, the sum over all pairs of their difference.
    rank = np.arange(len(key)) - np.repeat(start, size)
    apart = np.bincount(np.repeat(np.arange(len(prompts)), size), (2 * rank - np.repeat(size, size) + 1) * value)
    twice = size > 1
    if not twice.any():
        return None
    mean = apart[twice] / (size * (size - 1) / 2)[twice]
    return float(_means(mean, columns.version_text[(prompts // formats)[twice]]).mean())


def answers_by_group(table: Observations) -> list[dict[str, object]]:
    """What became of the answers to texts that name a group: by model, attribute and group; placebos left out."""
    columns, groups = table.columns(), table.version_groups()
    named = table.in_arm(Arm.ORIGINAL, Arm.EDITED)[columns.version_shape]
    use = named[columns.version] & (columns.status != STATUS["not_asked"])
    codes, kinds = len(table.groups.values), len(STATUS)
    cell = (columns.model * codes + groups[columns.version]) * kinds + columns.status
    cells, count = np.unique(cell[use], return_counts=True)
    counted: dict[tuple[int, str, str], Ints] = {}
    for code, n in zip(cells.tolist(), count.tolist(), strict=True):
        rest, status = divmod(code, kinds)
        model, group = divmod(rest, codes)
        for attribute, name in table.groups.values[group]:
            counted.setdefault((model, attribute, name), np.zeros(kinds, dtype=np.int64))[status] += n
    return [
        {"model": table.models.values[model], "attribute": attribute, "group": group, "n": int(by.sum())}
        | {status: int(by[STATUS[status]]) for status in ("refused", "unparsed", "filtered", "failed")}
        for (model, attribute, group), by in sorted(counted.items())
    ]


def label_counts(table: Observations) -> dict[str, int]:
    """How often each label was given; each label of a set counts."""
    columns = table.columns()
    out: dict[str, int] = {}
    many = np.bincount(columns.label[columns.label >= 0], minlength=len(table.labels.values))
    for value, n in zip(table.labels.values, many.tolist(), strict=True):
        for label in value if isinstance(value, tuple) else (str(value),):
            out[label] = out.get(label, 0) + n
    return out


def exceeding(table: Observations, epsilons: Sequence[float]) -> list[dict[str, object]]:
    """For each tolerance, the texts with a variant whose distance is beyond it, of the texts judged."""
    judged = table.judged()
    known = table.in_arm(Arm.EDITED)[judged.shape] & ~np.isnan(judged.distance)
    rows: list[dict[str, object]] = []
    for place in itertools.starmap(Place, itertools.product(table.models.values, table.formats.values)):
        here = known & table.at(judged, place)
        worst = np.full(len(table.texts.values), -1.0)
        np.maximum.at(worst, judged.text[here], judged.distance[here])
        n = int((worst >= 0).sum())
        for epsilon in epsilons if n else ():
            beyond = int((worst > epsilon + 1e-12).sum())
            counted = {"epsilon": epsilon, "cases": n, "violating_cases": beyond}
            rows.append(place._asdict() | counted | {"rate": dataclasses.asdict(clopper_pearson(beyond, n))})
    return rows


# -- variants that the gate discarded -------------------------------------------------------------------------


def discarded(table: Observations, aside: Observations) -> Discarded:
    """What the model said of variants that failed the validity check (HInter RQ3.2), beside valid ones.

    ``share_of_all_changes`` is the part of all changes that would have been reported wrongly without the check, the
    paper's share of false positives.
    """
    valid = tabulate(table, edited)
    rows = []
    for place, by_set in sorted(tabulate(aside, edited).items()):
        for attributes, own in sorted(by_set.items(), key=lambda one: by_size(one[0])):
            rate, beside = violation_rate(own), valid.get(place, {}).get(attributes)
            if rate is None:
                continue
            kept = None if beside is None else violation_rate(beside)
            changes, of_valid = (0 if some is None else int(some.violations.sum()) for some in (own, beside))
            rows.append(
                DiscardedRow(
                    **place._asdict(),
                    attributes=attributes,
                    estimate=rate,
                    estimate_valid=kept,
                    changes=changes,
                    changes_valid=of_valid,
                    share_of_all_changes=changes / (changes + of_valid) if changes + of_valid else None,
                )
            )
    judged = aside.judged()
    changed = {aside.name(n) for n in judged.version[judged.outcome == VIOLATION].tolist()}
    return Discarded(rows=tuple(rows), exemplars=tuple(sorted(changed)[:EXEMPLARS]))
