"""The controls of a run: placebo variants, the positive control, and canary prompts.

A rate says little alone. Placebo edits show how often *any* edit of that form changes the answer; the positive
control shows that the model's answers can change at all; canaries show whether the model stayed the same.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from auditor.core.types import Case, Check, Edit, Variant, draws_of
from auditor.run.wordings import checked
from auditor.tasks.task import Task

PLACEBO_CAP = 24  # placebo variants of one seed where the plan sets no number
TRIED = 40  # combinations of placebo edits that are tried for one joint edit
AGAIN = 3  # times that placebos are drawn again where the gate refused all
JOINT_CAP = 8  # of them, those that copy joint edits, for each set of attributes
CANARIES = 8  # prompts that are asked again in the middle and at the end
CANARY_REPLICATES = 3
CANARY_FROM = 10_000  # replicate numbers that nothing else uses
SEEN = 0.75  # share of control pairs that must change the answer


def is_placebo(variant: Variant) -> bool:
    """Whether the variant changes no group: all its edits, repairs aside, are placebo edits."""
    kinds = {edit.kind for edit in variant.edits if edit.kind != "agreement"}
    return kinds == {"placebo"}


def with_placebos(case: Case, suite: Any, *, per_seed: int | None, seed: int) -> Case:
    """Add placebo variants to a case: for each attribute as many as it has variants, at most ``per_seed``.

    Parameters
    ----------
    case : Case
        From the suite.
    suite : PlaceboMaker
        Its ``placebos(case, n, rng)`` gives at most ``n`` variants for each attribute.
    per_seed : int or None
        As in the plan.
    seed : int
        With the case id it determines every choice.

    Returns
    -------
    Case
        Its variants are the old ones, then placebo variants ``<case>.p0 …``: those of the suite, then joint
        ones put together from them.
    """
    if not case.variants or any(is_placebo(v) for v in case.variants):
        return case
    wanted = min(len(case.variants), per_seed or PLACEBO_CAP)
    rng = Random(f"{seed}:{draws_of(case.id)}:placebo")
    found = list(suite.placebos(case, wanted, rng))
    joint = sorted({v.attributes for v in case.variants if v.order > 1})
    for attributes in joint:
        number = sum(v.attributes == attributes for v in case.variants)
        if not any(v.attributes == attributes for v in found):
            found += _together(case, found, attributes, min(number, wanted, JOINT_CAP), rng)
    taken = {v.input for v in case.variants} | {case.original.input}
    # One text may stand against edits of two attributes; its prompt is asked once all the same.
    kept: dict[object, Variant] = {}
    for variant in found:
        if variant.input not in taken:
            kept.setdefault((variant.attributes, variant.input), variant)
    added = [
        dataclasses.replace(v, id=f"{case.id}.p{n}", groups=v.groups or case.original.groups)
        for n, v in enumerate(kept.values())
    ]
    return dataclasses.replace(case, variants=(*case.variants, *added)) if added else case


def placebos_again(
    cases: Sequence[Case], checks: Mapping[str, Check], suite: Any, gate: Any, *, seed: int
) -> tuple[list[Case], dict[str, Check]]:
    """Other placebos where the gate refused all that stood beside valid edits, and the checks of these.

    As many as were refused, of single attributes first; joint ones are then put together from what passed.

    Parameters
    ----------
    cases, checks
        With their placebo variants, and the check of every variant.
    suite, gate
        What makes placebos, and what checks them.
    seed : int
        With the case id it determines every choice.
    """
    out, found = list(cases), dict(checks)
    for single in (True, False):
        drawn: dict[int, tuple[list[Variant], Counter[tuple[str, ...]]]] = {}
        for place, case in enumerate(out):
            bare = tuple(v for v in case.variants if not is_placebo(v))
            beside = [v for v in case.variants if is_placebo(v)]
            standing = [v for v in beside if found[v.id].status == "valid"]
            lacking = {v.attributes for v in bare if found[v.id].status == "valid" and (v.order == 1) == single}
            lacking -= {v.attributes for v in standing}
            refused = Counter(v.attributes for v in beside if v.attributes in lacking)
            if not (lacking and beside):
                continue
            rng = Random(f"{seed}:{draws_of(case.id)}:placebo again")
            made: list[Variant] = []
            if single:
                about = tuple(v for v in bare if v.attributes in refused)
                for _ in range(AGAIN if about else 0):
                    made += suite.placebos(dataclasses.replace(case, variants=about), len(about) + AGAIN, rng)
            else:
                again = dataclasses.replace(case, variants=bare)
                # Those that stand may take all places of the text: then of one neutral word for each part.
                words = [v for v in suite.neutral(again, JOINT_CAP, rng) if len(v.edits) == 1]
                for attributes in sorted(lacking):
                    made += _together(again, standing, attributes, JOINT_CAP, rng)
                    for _ in range(AGAIN):
                        rng.shuffle(words)
                        made += _together(again, words, attributes, JOINT_CAP, rng)
            known = {v.input for v in case.variants} | {case.original.input}
            new = {v.input: v for v in made if v.input not in known}
            if new:
                drawn[place] = list(new.values()), refused
        tried = {
            place: dataclasses.replace(
                out[place],
                variants=tuple(dataclasses.replace(v, id=f"{out[place].id}.a{n}") for n, v in enumerate(variants)),
            )
            for place, (variants, _) in drawn.items()
        }
        fine = checked(gate, list(tried.values()))
        for place, case in tried.items():
            left = +drawn[place][1] or Counter({v.attributes: 1 for v in case.variants})
            number = sum(map(is_placebo, out[place].variants))
            added: list[Variant] = []
            for variant in case.variants:
                if fine[variant.id].status == "valid" and left[variant.attributes] > 0:
                    left[variant.attributes] -= 1
                    name = f"{case.id}.p{number + len(added)}"
                    groups = variant.groups or case.original.groups
                    added.append(dataclasses.replace(variant, id=name, groups=groups))
                    found[name] = dataclasses.replace(fine[variant.id], variant_id=name)
            out[place] = dataclasses.replace(out[place], variants=(*out[place].variants, *added))
    return out, found


def _together(case: Case, single: Sequence[Variant], attributes: Sequence[str], n: int, rng: Random) -> list[Variant]:
    """Joint placebo variants for ``n`` joint edits: for each attribute a placebo like its part, or a neutral one."""
    if not isinstance(case.original.input, str):
        return []
    changed = {name for v in case.variants for name in v.attributes}
    neutral = [v for v in single if not changed & set(v.attributes)]
    parts = [[v for v in single if v.attributes == (name,)] or neutral for name in attributes]
    forms = [[(_form(v.edits), v) for v in part] for part in parts]
    made: dict[tuple[int, ...], Variant] = {}
    for model in [v for v in case.variants if v.attributes == attributes][:n]:
        near = []
        for name, part in zip(attributes, forms, strict=True):
            wanted = _form([e for e in model.edits if e.attribute == name])
            rng.shuffle(part)
            near.append([v for _, v in sorted(part, key=lambda row: _unlike(row[0], wanted))])
        for combination in _combinations(near):
            # Not by id: a suite may leave the numbering to this module.
            key = tuple(map(id, combination))
            if key in made or len(set(key)) < len(key):
                continue
            edits = [
                dataclasses.replace(e, attribute=name)
                for name, v in zip(attributes, combination, strict=True)
                for e in v.edits
            ]
            edits.sort(key=_where)
            if not _overlap(edits):
                text = _apply(case.original.input, edits)
                made[key] = Variant(id="", input=text, groups=case.original.groups, edits=tuple(edits))
                break
    return list(made.values())


_Form = tuple[int, int, int]


def _form(edits: Sequence[Edit]) -> _Form:
    """Spans, words and characters that edits change or add."""
    return (
        sum(e.kind != "agreement" for e in edits),
        sum(e.target.count(" ") - e.source.count(" ") for e in edits),
        sum(len(e.target) - len(e.source) for e in edits),
    )


def _unlike(one: _Form, other: _Form) -> int:
    """How far apart two forms are, in characters."""
    return sum(weight * abs(a - b) for weight, a, b in zip((12, 8, 1), one, other, strict=True))


def _combinations(parts: Sequence[Sequence[Variant]]) -> Iterator[tuple[Variant, ...]]:
    """Combinations of one variant of each part, those of the first ones of all parts first, at most `TRIED`."""
    short = [part[:TRIED] for part in parts]
    places = itertools.product(*(range(len(part)) for part in short))
    for picked in itertools.islice(sorted(places, key=sum), TRIED):
        yield tuple(part[i] for part, i in zip(short, picked, strict=True))


def _where(edit: Edit) -> tuple[int, int]:
    return edit.where if isinstance(edit.where, tuple) else (0, 0)


def _overlap(edits: Sequence[Edit]) -> bool:
    return any(_where(a)[1] > _where(b)[0] or _where(a) == _where(b) for a, b in itertools.pairwise(edits))


def _apply(text: str, edits: Sequence[Edit]) -> str:
    parts, at = [], 0
    for edit in edits:
        start, end = _where(edit)
        parts += [text[at:start], edit.target]
        at = end
    return "".join((*parts, text[at:]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two texts that must get different answers."""

    id: str
    texts: tuple[str, str]


def control_pairs(task: Task) -> list[Pair]:
    """The control texts of a task: those that come with it, or that its file names; else none.

    They differ in what the task is about (a review that praises and one that damns), so that a model which
    answers both alike cannot show an effect of anything.
    """
    return [Pair(id=f"control.{n}", texts=pair) for n, pair in enumerate(task.controls)]


def outcomes(task: Task, given: Mapping[str, int]) -> tuple[str, ...]:
    """The labels whose share is compared between groups.

    The favourable one; of two labels "positive" or else the first one, because the other mirrors it; of many
    the twelve that were given most often.
    """
    if not task.labels:
        return ()
    if task.favourable is not None:
        return (task.favourable,)
    if len(task.labels) <= 2 and not task.kind.several:
        return ("positive",) if "positive" in task.labels else (task.labels[0],)
    ranked = sorted(task.labels, key=lambda label: (-given.get(label, 0), label))
    return tuple(sorted(label for label in ranked[:12] if given.get(label)))


def seen_by_format(tally: Any) -> dict[str, tuple[bool, int, int]]:
    """By format: whether the positive control was seen, pairs answered differently, pairs asked."""
    return {n: (sum(h) >= SEEN * len(h), sum(h), len(h)) for n, h in sorted(tally.control.items())}


def control_seen(tally: object) -> bool | None:
    """Whether the positive control was seen in every format; None where it was not run."""
    found = seen_by_format(tally)
    return all(seen for seen, _, _ in found.values()) if found else None
