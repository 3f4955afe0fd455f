"""Claims: who is worse off, by how much, and how sure, in five verdicts.

One claim is about one contrast of one family. *net*: the favourable answers (or the number, or the log odds) of one
group minus those of another, whichever was the original. *refusal*: the same of answers that were refused or could
not be read. *instability*: how often an answer changes at all, beyond placebo edits of the same shape.
docs/statistics.md says what each verdict means; docs/decisions/0004-claims.md has the rules.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from auditor.measure import contrasts, instability
from auditor.measure.linear import Adjustment, Estimated, Fit, Rows, Unidentified, fit
from auditor.measure.observations import STATUS, Arm, Columns, Observations
from auditor.measure.sequential import Look, nominal, overall
from auditor.stats.multiplicity import weighted_holm
from auditor.types import ClaimVerdict

Family = Literal["net", "instability", "interaction", "refusal"]
Scale = Literal["log_odds", "share", "number"]

ALPHA = 0.05
MIN_TEXTS = 6  # no exact two-sided test of five differences reaches 5 %
MIN_WORDS = 4.0  # effective words from which on something is said of a group
PRIMARY = 0.8  # of an attribute's share of alpha, for the pair that its dictionary names first
POWER_Z = 1.959964 + 0.841621  # two-sided 5 %, power 80 %
OTHERS = "others"
USUAL_DELTA = 0.05  # what calls_needed is for where no delta is given


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One contrast with its verdict: the contract of ``claims`` in ``run.json``.

    Attributes
    ----------
    estimate : float or None
        Group minus reference, on ``scale``.
    low, high : float or None
        95 % interval for the group: texts and words random.
    words_estimate, words_low, words_high : float or None
        The same for these words: texts random.
    texts, words : int, float
        Texts with both groups; effective number of words.
    shares : tuple of float or None
        Share of the label for the group and for the reference, for a label.
    share_difference, share_low, share_high : float or None
        The difference of shares where ``scale`` is the log odds: what delta is compared with.
    p_value, p_adjusted : float or None
        Two-sided, for the group; adjusted within the family (weighted Holm).
    examples : tuple of str
        Variant ids, the clearest first.
    calls_needed : int or None
        Calls in all after which a difference of delta (else 5 points) would be shown with 80 %, as far as texts decide.
    """

    family: Family
    attribute: str
    groups: tuple[str, ...]
    label: str
    model: str
    format: str
    scale: Scale
    unit: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    words_estimate: float | None = None
    words_low: float | None = None
    words_high: float | None = None
    texts: int = 0
    words: float = 0.0
    shares: tuple[float, float] | None = None
    share_difference: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    p_value: float | None = None
    p_words: float | None = None
    p_adjusted: float | None = None
    verdict: ClaimVerdict = "not_tested"
    why: str = ""
    delta: float | None = None
    calls_needed: int | None = None
    examples: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Plain data for ``run.json``."""
        out = dataclasses.asdict(self)
        out["groups"] = list(self.groups)
        out["examples"] = list(self.examples)
        out["shares"] = None if self.shares is None else list(self.shares)
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What the claims of a run depend on besides its observations.

    Attributes
    ----------
    outcomes : sequence of str
        Labels whose share is compared; none where answers are numbers.
    number, unit : bool, str
        Whether answers are numbers, and what they count in.
    primary : mapping of str to tuple
        Attribute → (group, reference): the pair that its dictionary names first.
    references : mapping of str to str
        Attribute → the group that all others are compared with.
    unmarked : mapping of str to collection
        Attribute → groups that name nobody in particular; they are compared with none.
    delta : float or None
        Largest net difference that counts as none: a share, or an amount where answers are numbers.
    positive_control : mapping of str to bool or None
        By model. Nothing is bounded where the control was not seen.
    alpha : float
        Of each family, all looks together.
    looks : mapping of str to tuple of Look
        Attribute → the looks at its answers so far, this one the last; none where all are in. Intervals then hold at
        all looks together (Jennison and Turnbull 1989).
    """

    outcomes: Sequence[str] = ()
    number: bool = False
    unit: str = ""
    primary: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    unmarked: Mapping[str, Iterable[str]] = field(default_factory=dict)
    delta: float | None = None
    positive_control: Mapping[str, bool | None] = field(default_factory=dict)
    alpha: float = ALPHA
    looks: Mapping[str, tuple[Look, ...]] = field(default_factory=dict)

    def overall(self, attribute: str, p_value: float) -> float:
        """``p_value`` of this look, as one of all looks together."""
        return overall(self.looks.get(attribute, ()), p_value)

    def level(self, attribute: str) -> float:
        """Level of an interval, which is 95 % where nobody looked before."""
        return 1 - nominal(self.looks.get(attribute, ()))


@dataclass(frozen=True, slots=True)
class Tested:
    """A claim with what its verdict is made from."""

    claim: Claim
    weight: float = 0.0  # of alpha, before the family is known
    main: Fit | None = None
    share: Fit | None = None  # where delta is compared: of shares or numbers
    rows: Rows | None = None


def claims(observations: Observations, question: Question) -> list[Claim]:
    """All claims of a run, each family with its own level of 5 %."""
    from auditor.measure import interactions

    columns = observations.columns()
    found: list[Claim] = []
    for family in ("net", "refusal"):
        tested = [
            one
            for model in range(len(observations.models.values))
            for name in range(len(observations.formats.values))
            for one in _family(observations, columns, model, name, family, question)
        ]
        found += decide(tested, question)
    unsigned = dataclasses.replace(question, delta=None)
    changes = [
        one
        for model in range(len(observations.models.values))
        for name in range(len(observations.formats.values))
        for one in _instability(observations, columns, model, name)
    ]
    found += decide(changes, unsigned)
    return found + interactions.claims(observations, columns, question)


def _instability(observations: Observations, columns: Columns, model: int, name: int) -> list[Tested]:
    """Unsigned changes beyond placebo edits of the same shape, for each set of attributes."""
    rows = (columns.model == model) & (columns.format == name)
    if not (rows & (columns.label >= 0)).any():
        return []
    placebos = {s.attributes for s in observations.shapes.values if s.arm == Arm.PLACEBO}
    edited = {s.attributes for s in observations.shapes.values if s.arm == Arm.EDITED}
    found = instability.paired(observations, columns, rows)
    out = []
    for attributes in sorted(edited, key=lambda a: (len(a), a)):
        claim = Claim(
            family="instability",
            attribute="+".join(attributes),
            groups=(),
            label="",
            model=observations.models.values[model],
            format=observations.formats.values[name],
            scale="share",
            unit="points",
        )
        pair = found.get(attributes)
        if pair is None or len(pair.rows.y) < MIN_TEXTS:
            texts = 0 if pair is None else len(pair.rows.y)
            why = f"{texts} texts have placebo edits of the same shape; at least {MIN_TEXTS} are needed"
            if attributes not in placebos:
                why = "the run has no placebo edits for it"
            out.append(Tested(dataclasses.replace(claim, texts=texts, why=why)))
            continue
        made = rare(fit(pair.rows), pair.rows)
        low, high = made.group.interval()
        words_low, words_high = made.these.interval()
        # Fewer changes than under placebo edits are no instability.
        more = made.group.value > 0
        claim = dataclasses.replace(
            claim,
            estimate=made.group.value,
            low=low,
            high=high,
            words_estimate=made.these.value,
            words_low=words_low,
            words_high=words_high,
            texts=made.texts,
            words=made.words,
            shares=(pair.edited, pair.placebo),
            p_value=made.group.p_value() if more else 1.0,
            p_words=made.these.p_value() if more else 1.0,
        )
        out.append(Tested(claim, 1.0, made, made, pair.rows))
    return out


def attributes_of(observations: Observations) -> list[str]:
    """Attributes that are edited alone, sorted."""
    return sorted({s.attributes[0] for s in observations.shapes.values if len(s.attributes) == 1 and s.arm})


def _family(
    observations: Observations, columns: Columns, model: int, name: int, family: str, question: Question
) -> list[Tested]:
    rows = (columns.model == model) & (columns.format == name)
    if not rows.any():
        return []
    about = About(observations.models.values[model], observations.formats.values[name])
    if family == "refusal":
        silent = Means.of(observations, columns, rows, contrasts.silence)
        if not silent.y.any():
            return []
        return [
            one
            for attribute in attributes_of(observations)
            for one in _contrasts(
                observations, columns, attribute, "refusal", "", about, {"share": silent}, question, 1.0
            )
        ]
    out: list[Tested] = []
    for label in question.outcomes or [""]:
        measured = _measured(observations, columns, rows, label, question)
        for attribute in attributes_of(observations):
            share = 1.0 / max(1, len(question.outcomes))
            out += _contrasts(
                observations, columns, attribute, "net", label, about, measured, question, share
            )
    return out


class About(NamedTuple):
    """Which answers."""

    model: str
    format: str


class Means(NamedTuple):
    """Mean outcome by version, which versions have one, and what edits do to it by themselves."""

    y: contrasts.Floats
    known: Any
    taken_out: Adjustment

    @classmethod
    def of(cls, observations: Observations, columns: Columns, rows: Any, value: Any) -> Means:
        """Of the answers in ``rows``."""
        y, known = contrasts.outcome_means(columns, rows, value)
        return cls(y, known, contrasts.adjust(observations, columns, y, known))


def _measured(
    observations: Observations, columns: Columns, rows: Any, label: str, question: Question
) -> dict[Scale, Means]:
    """Mean outcome by version on each scale that the answers have, the deciding one first."""
    return {
        scale: Means.of(observations, columns, rows, value)
        for scale, value in scales(observations, columns, rows, label, question).items()
    }


def scales(
    observations: Observations, columns: Columns, rows: Any, label: str, question: Question
) -> dict[Scale, Any]:
    """What is read from an answer on each scale that the answers have, the deciding one first."""
    if question.number:
        return {"number": contrasts.score}
    codes = [
        code
        for code, value in enumerate(observations.labels.values)
        if value == label or (isinstance(value, tuple) and label in value)
    ]
    share = contrasts.share_in(codes)
    scored = rows & ~np.isnan(columns.score) & (columns.status == STATUS["ok"])
    answered = rows & (columns.status == STATUS["ok"])
    if len(question.outcomes) == 1 and scored.any() and scored.sum() == answered.sum():
        return {"log_odds": contrasts.score, "share": share}
    return {"share": share}


def pairs(
    names: Sequence[str], attribute: str, question: Question
) -> list[tuple[str, str, tuple[str, ...], float]]:
    """Which groups are compared with which: (group, name of the reference, its groups, share of alpha)."""
    marked = [n for n in names if n not in set(question.unmarked.get(attribute, ()))]
    reference = question.references.get(attribute)
    primary = question.primary.get(attribute)
    if reference is not None:
        return _shared([(g, reference, (reference,)) for g in marked if g != reference])
    if len(marked) == 2:
        group, other = primary if primary is not None and set(primary) == set(marked) else tuple(marked)
        return [(group, other, (other,), 1.0)]
    rest = [(g, OTHERS, tuple(n for n in marked if n != g)) for g in marked]
    if primary is not None and set(primary) <= set(marked):
        first = (primary[0], primary[1], (primary[1],), PRIMARY)
        return [first, *_shared([one for one in rest if one[0] not in primary], 1 - PRIMARY)]
    return _shared(rest)


def _shared(
    found: Sequence[tuple[str, str, tuple[str, ...]]], total: float = 1.0
) -> list[tuple[str, str, tuple[str, ...], float]]:
    return [(*one, total / len(found)) for one in found]


def _contrasts(
    observations: Observations,
    columns: Columns,
    attribute: str,
    family: Family,
    label: str,
    about: About,
    measured: Mapping[Scale, Means],
    question: Question,
    share: float,
) -> list[Tested]:
    made = {
        scale: contrasts.strands(observations, columns, means.y, means.known, attribute)
        for scale, means in measured.items()
    }
    main = next(iter(measured))
    out = []
    for group, reference, against, weight in pairs(made[main].names(), attribute, question):
        units = {"log_odds": "log odds", "share": "points", "number": question.unit}
        claim = Claim(
            family=family,
            attribute=attribute,
            groups=(group, reference),
            label=label,
            scale=main,
            unit=units[main],
            delta=question.delta,
            model=about.model,
            format=about.format,
        )
        level = question.level(attribute)
        out.append(_test(claim, made, measured, group, against, weight * share, level))
    return out


def _test(
    claim: Claim,
    made: Mapping[Scale, contrasts.Strands],
    measured: Mapping[Scale, Means],
    group: str,
    against: Sequence[str],
    weight: float,
    level: float,
) -> Tested:
    main = claim.scale
    rows = contrasts.rows(made[main], group, against)
    texts = int((rows.focal > 0).sum())
    claim = dataclasses.replace(claim, texts=texts)
    if texts < MIN_TEXTS:
        return Tested(
            dataclasses.replace(
                claim, why=f"{texts} texts have a version about both; at least {MIN_TEXTS} are needed"
            )
        )
    try:
        found = fit(rows, measured[main].taken_out)
        decided = rows if main != "log_odds" else contrasts.rows(made["share"], group, against)
        share = found if main != "log_odds" else fit(decided, measured["share"].taken_out)
    except Unidentified as error:
        return Tested(dataclasses.replace(claim, why=str(error)))
    if main != "number":
        share = rare(share, decided)
        found = share if main == "share" else found
    low, high = found.group.interval(level)
    words_low, words_high = found.these.interval(level)
    claim = dataclasses.replace(
        claim,
        estimate=found.group.value,
        low=low,
        high=high,
        words_estimate=found.these.value,
        words_low=words_low,
        words_high=words_high,
        words=found.words,
        p_value=found.group.p_value(),
        p_words=found.these.p_value(),
        shares=None if main == "number" else contrasts.levels(made["share"], group, against),
    )
    if main == "log_odds":
        share_low, share_high = share.group.interval(level)
        claim = dataclasses.replace(
            claim, share_difference=share.group.value, share_low=share_low, share_high=share_high
        )
    return Tested(claim, weight, found, share, decided)


def rare(found: Fit, rows: Rows) -> Fit:
    """Intervals of shares where next to nothing changed: none shrinks to a point.

    With ``s`` texts' worth of changes, ``3 exp(−s / 2)`` more are added to the variance: without any the 95 %
    limits are 3.4 / n (Clopper and Pearson: 3.7 / n), and from six on the addition is none.
    """
    y = rows.y[rows.focal > 0]
    added = 3 * math.exp(-float(y @ y) / 2) / len(y) ** 2

    def wider(one: Estimated) -> Estimated:
        return dataclasses.replace(one, se=math.sqrt(one.se**2 + added))

    return dataclasses.replace(found, these=wider(found.these), group=wider(found.group))


# -- verdicts -------------------------------------------------------------------------------------------


def decide(tested: Sequence[Tested], question: Question) -> list[Claim]:
    """Adjust within the family and give each claim its verdict."""
    family = [t for t in tested if t.main is not None]
    weights = [t.weight for t in family]

    def holm(p_values: Iterable[float]) -> list[float]:
        spread = [question.overall(t.claim.attribute, p) for t, p in zip(family, p_values, strict=True)]
        return weighted_holm(spread, weights)

    shown = holm(t.claim.p_value or 0.0 for t in family)
    words = holm(t.claim.p_words or 0.0 for t in family)
    bounds = holm(_bound(t, question) for t in family)
    adjusted = {id(t): PValues(*three) for t, *three in zip(family, shown, words, bounds, strict=True)}
    return [t.claim if id(t) not in adjusted else _verdict(t, adjusted[id(t)], question) for t in tested]


class PValues(NamedTuple):
    """Of one claim, adjusted within its family: for the group, for these words, for the bound."""

    group: float
    words: float
    bound: float


def _bound(t: Tested, question: Question) -> float:
    delta = question.delta
    if delta is None or t.share is None or abs(t.share.group.value) >= delta:
        return 1.0
    return max(t.share.group.p_beyond(delta), t.share.group.p_beyond(-delta))


def _verdict(t: Tested, p: PValues, question: Question) -> Claim:
    claim, main = t.claim, t.main
    assert main is not None
    assert t.rows is not None
    changed = int((np.abs(t.rows.y[t.rows.focal > 0]) > 1e-9).sum())
    few = claim.scale == "share" and changed < MIN_TEXTS
    verdict: ClaimVerdict = "not_determined"
    why = ""
    alpha = question.alpha
    if few:
        why = (
            f"the answers differ in {changed} of {claim.texts} texts, and fewer than {MIN_TEXTS} show nothing"
        )
    elif p.group < alpha and main.words >= MIN_WORDS:
        verdict = "shown"
    elif p.words < alpha:
        verdict = "shown_for_words"
        why = (
            f"{main.words:.0f} words stand for the groups, too few to speak of the groups themselves"
            if main.words < MIN_WORDS
            else "other words for the same groups may give another difference"
        )
    if verdict == "not_determined" and p.bound < alpha:
        if question.positive_control.get(claim.model) is True:
            verdict, why = "bounded", ""
        else:
            why = "below delta, but the positive control was not seen"
    if verdict == "not_determined" and not why:
        why = f"a difference this small needs more texts or words than {claim.texts} and {main.words:.0f}"
    return dataclasses.replace(
        claim, verdict=verdict, why=why, p_adjusted=p.group, calls_needed=_calls(t, verdict, question)
    )


def _calls(t: Tested, verdict: ClaimVerdict, question: Question) -> int | None:
    """Calls after which a net difference of delta would be shown with 80 %; None where words forbid it."""
    if verdict != "not_determined" or t.share is None or t.claim.family == "instability":
        return None
    target = question.delta or (None if question.number else USUAL_DELTA)
    if target is None or t.share.these.se == 0:
        return None
    words2 = max(0.0, t.share.group.se**2 - t.share.these.se**2)
    room = (target / POWER_Z) ** 2 - words2
    if room <= 0:
        return None
    return math.ceil(2 * t.claim.texts * max(1.0, t.share.these.se**2 / room))
