"""Signed differences between groups: who gets a label more often, and who gets no label at all.

For each direction (source group → target group) and seed, the difference is the share of answers with an
outcome on the texts about the target group minus that on the original. Seeds are given, never selected by the
model's answers, so under "the group makes no difference" it is as often above 0 as below.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditor.counting import plural
from auditor.stats.intervals import approximate_note, mean_interval
from auditor.stats.multiplicity import benjamini_hochberg, resamples_for, too_coarse
from auditor.stats.paired import sign_flip, signed_limits
from auditor.stats.summary import Direction, Edited, Labels, percent
from auditor.types import ClaimVerdict, Estimate, Finding, Verdict

DIRECTION, SILENCE = "DIR110", "REF120"
MIN_DISCORDANT = 6
MAX_OPEN = 20  # directions of one family that are kept although nothing was shown
METHOD = "signed seed difference, t by seed"

Outcome = Callable[[Hashable], float]
Silent = Mapping[tuple[str, str], Mapping[str, float]]  # (case, format) -> variant -> share without a label


class Place(NamedTuple):
    """What one signed difference is about."""

    model: str
    format: str
    attributes: tuple[str, ...]
    directions: tuple[Direction, ...]


class Test(NamedTuple):
    """One signed difference and its test."""

    place: Place
    label: str
    estimate: Estimate
    p_value: float | None  # None with too few discordant seeds
    discordant: int
    limit: float  # the larger 90 % limit: the smallest delta that could have been bounded


def outcome_of(label: str) -> Outcome:
    """1 where an answer is, or for a set holds, ``label``; else 0.

    Examples
    --------
    >>> outcome_of("yes")("yes"), outcome_of("b")(("a", "b")), outcome_of("yes")("no")
    (1.0, 1.0, 0.0)
    """

    def value(answer: Hashable) -> float:
        return float(label in answer if isinstance(answer, tuple) else answer == label)

    return value


def label_tests(
    verdicts: Iterable[Verdict],
    edits: Mapping[str, Edited],
    answers: Mapping[str, Labels],
    label: str,
    *,
    rng: np.random.Generator,
    resamples: int,
    family: float = 0,
) -> list[Test]:
    """Signed differences in how often ``label`` is the answer, one for each direction.

    Parameters
    ----------
    verdicts, edits, answers, label
        What was judged, what was edited, all answers by model, and the label that is counted.
    rng : numpy.random.Generator
        For the sign-flip tests.
    resamples : int
        Sign patterns at first; tests that all but none of them reach are drawn again with more (see
        `auditor.stats.multiplicity.too_coarse`).
    family : float
        Tests that the p values are corrected for, where they are more than those made here.
    """
    outcome = outcome_of(label)

    def share(verdict: Verdict, original: bool) -> float | None:
        arms = answers.get(verdict.model, {}).get((verdict.case_id, verdict.format), {})
        if original:
            arm: Sequence[Hashable] = next((a for name, a in arms.items() if name not in edits), ())
        else:
            arm = arms.get(verdict.variant_id, ())
        return sum(map(outcome, arm)) / len(arm) if arm else None

    return _tests(verdicts, edits, share, label, rng=rng, resamples=resamples, family=family)


def silence_tests(
    verdicts: Iterable[Verdict],
    edits: Mapping[str, Edited],
    silent: Mapping[str, Silent],
    *,
    rng: np.random.Generator,
    resamples: int,
) -> list[Test]:
    """Signed differences in how often an answer was refused or unreadable, one for each direction."""

    def share(verdict: Verdict, original: bool) -> float | None:
        arms = silent.get(verdict.model, {}).get((verdict.case_id, verdict.format), {})
        if original:
            return next((value for name, value in arms.items() if name not in edits), 0.0)
        return arms.get(verdict.variant_id, 0.0)

    asked = [v for v in verdicts if any(silent.get(v.model, ()))]
    return _tests(asked, edits, share, "", rng=rng, resamples=resamples)


def _tests(
    verdicts: Iterable[Verdict],
    edits: Mapping[str, Edited],
    share: Callable[[Verdict, bool], float | None],
    label: str,
    *,
    rng: np.random.Generator,
    resamples: int,
    family: float = 0,
) -> list[Test]:
    found: dict[Place, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for v in verdicts:
        directions = edits[v.variant_id].directions
        if len(directions) != len(v.attributes):  # several source groups at once have no one direction
            continue
        before, after = share(v, True), share(v, False)
        if before is not None and after is not None:
            found[Place(v.model, v.format, v.attributes, directions)][v.case_id].append(after - before)
    out = []
    wanted = resamples_for(max(family, len(found)), least=resamples)
    for place in sorted(found):
        d = [sum(values) / len(values) for _, values in sorted(found[place].items())]
        discordant = sum(abs(x) > 1e-12 for x in d)
        enough = discordant >= MIN_DISCORDANT
        p_value = None
        if enough:
            p_value = sign_flip(d, rng=rng, resamples=resamples)
            if too_coarse(p_value, resamples, wanted):
                p_value = sign_flip(d, rng=rng, resamples=wanted)
        value, low, high = mean_interval(d)
        out.append(
            Test(
                place=place,
                label=label,
                estimate=Estimate(
                    value=value,
                    low=max(-1.0, low),
                    high=min(1.0, high),
                    level=0.95,
                    n=len(d),
                    n_skipped=0,
                    method=METHOD,
                    note=approximate_note(len(d), discordant),
                ),
                p_value=p_value,
                discordant=discordant,
                limit=_limit(d),
            )
        )
    return out


def _limit(d: Sequence[float]) -> float:
    """The larger limit of the 90 % interval."""
    return max(abs(x) for x in signed_limits(d, 0.90))


def direction_findings(
    families: Sequence[Sequence[Test]],
    candidates: int,
    *,
    alpha: float,
    delta: float | None,
    positive_control: Mapping[str, bool | None],
) -> list[Finding]:
    """Findings about signed differences, below claims that were shown.

    Parameters
    ----------
    families : sequence of sequences of Test
        One family for each claim that was shown; families of other claims are not opened.
    candidates : int
        Claims in all. Within a family q values are Benjamini–Hochberg's times ``candidates / families``,
        which bounds the average false discovery rate over the families that were opened (Benjamini and
        Bogomolov 2014).
    """
    out: list[Finding] = []
    opened = len(families)
    for family in families:
        raw = benjamini_hochberg([test.p_value for test in family])
        adjusted = [None if q is None else min(1.0, q * candidates / opened) for q in raw]
        found = [
            _direction(test, q, len(family), alpha, delta, positive_control.get(test.place.model))
            for test, q in zip(family, adjusted, strict=True)
        ]
        kept = [f for f in found if f.verdict in ("shown", "bounded")]
        rest = [f for f in found if f.verdict not in ("shown", "bounded")]
        rest.sort(key=lambda f: (1.0 if f.p_value is None else f.p_value, f.directions, f.text))
        out += kept + rest[:MAX_OPEN]
    return out


def _direction(
    test: Test, q: float | None, family: int, alpha: float, delta: float | None, control: bool | None
) -> Finding:
    verdict: ClaimVerdict = "not_determined"
    notes = [f"exploratory: one of {family} directions below a claim that was shown (Benjamini–Hochberg)"]
    if test.p_value is None:
        notes.append(f"too few discordant seeds ({test.discordant}; at least {MIN_DISCORDANT} are needed)")
    elif q is not None and q < alpha:
        verdict = "shown"
    notes.append(
        f"the smallest delta this run could have bounded is {percent(test.limit, up=True)} percentage points"
    )
    if delta is not None and verdict != "shown" and test.limit < delta and control is True:
        verdict = "bounded"
        notes.append("the 90 % interval lies within plus and minus delta, and the positive control was seen")
    return _finding(test, DIRECTION, verdict, q, direction_text(test), tuple(notes))


def silence_findings(tests: Sequence[Test], *, alpha: float) -> list[Finding]:
    """Directions in which the share of refused or unreadable answers differs, one family for each model."""
    out: list[Finding] = []
    for model in sorted({test.place.model for test in tests}):
        family = [test for test in tests if test.place.model == model]
        q_values = benjamini_hochberg([test.p_value for test in family])
        for test, q in zip(family, q_values, strict=True):
            if q is not None and q < alpha:
                note = f"one of {len(family)} directions of this model (Benjamini–Hochberg)"
                out.append(_finding(test, SILENCE, "shown", q, silence_text(test), (note,)))
    return out


def _finding(
    test: Test, code: str, verdict: ClaimVerdict, q: float | None, text: str, notes: tuple[str, ...]
) -> Finding:
    place, estimate = test.place, test.estimate
    return Finding(
        id="",
        kind="claim",
        code=code,
        model=place.model,
        format=place.format,
        attributes=place.attributes,
        directions=place.directions,
        verdict=verdict,
        rate=dataclasses.replace(estimate, note=""),
        p_value=test.p_value,
        p_adjusted=q,
        text=text,
        notes=(*notes, *([estimate.note] if estimate.note else [])),
    )


def direction_text(test: Test) -> str:
    """What was measured, in one sentence."""
    source, target = _groups(test)
    return (
        f"texts about {target} got the label {test.label} in {_more(test.estimate)} of {test.estimate.n} "
        f"seeds than the same texts about {source} ({_range(test.estimate)})"
    )


def silence_text(test: Test) -> str:
    """What was measured, in one sentence."""
    source, target = _groups(test)
    return (
        f"texts about {target} got no label (refused or not readable) in {_more(test.estimate)} of "
        f"{plural(test.estimate.n, 'seed')} than the same texts about {source} ({_range(test.estimate)})"
    )


def points(share: float) -> str:
    """A difference of shares in percentage points, without its sign.

    Examples
    --------
    >>> points(-0.031)
    '3.1'
    """
    return percent(abs(share))


def _more(estimate: Estimate) -> str:
    return f"{points(estimate.value)} percentage points {'fewer' if estimate.value < 0 else 'more'}"


def _range(estimate: Estimate) -> str:
    if abs(estimate.low) == 1.0 and estimate.high == 1.0:
        return f"{estimate.level * 100:.0f} %: not measured, all seeds alike"
    sign = -1 if estimate.value < 0 else 1
    ends = sorted((sign * estimate.low, sign * estimate.high))
    low, high = (f"{'−' if end < 0 else ''}{points(end)}" for end in ends)
    return f"{estimate.level * 100:.0f} %: {low} to {high}"


def _groups(test: Test) -> tuple[str, str]:
    source = " and ".join(s.replace("_", " ") for _, s, _ in test.place.directions)
    target = " and ".join(t.replace("_", " ") for _, _, t in test.place.directions)
    return source, target
