"""From observations to all claims of a run, and from claims and verdicts to findings; no sentences about claims.

A finding says which claim it is about, and by which variants it is seen. A hidden change of a single text is one where
a joint version does more beyond its parts than joint placebo edits do. The measure of a joint version is its
interaction contrast on the score; where answers are labels alone, how far its share of the label lies beyond all of its
parts. Placebo versions of the same texts, with as many places changed, have the same measure: what they reach is what
any rewording of that extent reaches.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from auditor.core.record.measured import Claim
from auditor.core.shown import plural, verb
from auditor.core.types import DECIDED, ClaimVerdict, Estimate, Finding, Interaction, InteractionKind, Verdict
from auditor.measure.claims import ALPHA, MIN_TEXTS, OTHERS, Question, decide, instability, net, one_thread, scales
from auditor.measure.contrasts import Versions, outcome_means
from auditor.measure.interactions import Joints, joints, tested
from auditor.measure.intervals import benjamini_hochberg, holm, sign_flip
from auditor.measure.observations import Arm, Bools, Columns, Direction, Floats, Ints, Judged, Observations, Place
from auditor.measure.rates import VIOLATION, Counts, by_size, edited, tabulate, violation_rate

EXEMPLARS = 5
ATOMIC, JOINT = "MUT101", "MUT102"
SCORE = "SCO130"
CODES = {  # of families of claims
    "net": "DIR110",
    "refusal": "REF120",
    "instability": ATOMIC,
    "interaction": "INT150",
    "omnibus": "OMN160",
}
LEVEL = 0.05  # of the test of the whole run, and of a version among placebo versions
FALSE_SHARE = 0.10  # of confirmed texts that may be false, where the whole run shows something
MATCHED = 20  # texts with placebos of the same extent from which on only these are compared
MOST_SUBSETS = 70  # sets of placebo versions of one text that are averaged
MAX_HIDDEN = 200  # hidden findings for each model and format: the strongest of all
HIDDEN = "HID201"
ALONE = Interaction(
    kind="not_tested", why="not every part of this change was asked and answered, or it comes from a directed search"
)
VERDICTS: Mapping[str, ClaimVerdict] = {
    "confirmed": "shown",
    "threshold_crossing": "not_determined",
    "not_tested": "not_tested",
}
Variant = tuple[str, str, str]  # model, variant id, format
METHOD = "net difference by text, texts and words random"
Key = tuple[Place, tuple[str, ...]]  # and attributes


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the findings of a run depend on besides its observations and claims."""

    deterministic: Mapping[str, bool]
    noise: Mapping[str, Estimate | None] = field(default_factory=dict)
    replicates: Mapping[str, int] = field(default_factory=dict)
    # whether its prompts confirmed it when they were repeated, and the p value of that
    confirmed: Mapping[Variant, Mapping[str, Any]] = field(default_factory=dict)
    interactions: Mapping[Variant, Interaction] = field(default_factory=dict)


class Seen(NamedTuple):
    """A verdict with the row of its version, and the directions of its edits."""

    verdict: Verdict
    version: int
    directions: tuple[Direction, ...]

    @classmethod
    def of(cls, table: Observations, judged: Judged, rows: Ints) -> Iterator[Seen]:
        """The verdicts in ``rows`` of the judgements of a table."""
        shapes = [table.shapes.values[code] for code in judged.shape[rows].tolist()]
        seen = zip(table.verdicts(rows.tolist()), judged.version[rows].tolist(), shapes, strict=True)
        return (cls(v, version, shape.directions) for v, version, shape in seen)


@one_thread
def claims(observations: Observations, question: Question, versions: Versions | None = None) -> list[Claim]:
    """All claims of a run; ``versions`` are those of the observations, where they were laid out before."""
    columns = observations.columns()
    laid_out = versions or Versions(observations, columns)
    unsigned = dataclasses.replace(question, delta=None)
    made = [
        *decide(list(net(observations, columns, laid_out, "net", question)), question),
        *decide(list(net(observations, columns, laid_out, "refusal", question)), question),
        *decide(list(instability(observations, columns, laid_out)), unsigned),
    ]
    del laid_out  # 150 MiB of the default audit, which interactions do not need
    return [*made, *decide(list(tested(observations, columns, question)), question)]


def findings(tables: Sequence[Observations], settings: Settings, claims: Sequence[Claim] = ()) -> list[Finding]:
    """All findings of a run.

    For each model, format and attribute set one with its rate of changes (MUT101 one attribute, MUT102 several) and
    the verdict of the claim about instability. `CODES` has those of other claims; HID201 is a single hidden variant.
    docs/decisions/0004-claims.md has the rules.
    """
    places = {id(claim): n for n, claim in enumerate(claims)}
    of_sets: list[Finding] = []
    of_groups: list[Finding] = []
    for place, by_set in sorted(tabulate(tables[0], edited).items()):
        for attributes, counts in sorted(by_set.items(), key=lambda one: by_size(one[0])):
            key = (place, attributes)
            about = [c for c in claims if _key(c) == key]
            changed = _changed(tables, key)
            rate = violation_rate(counts)
            own = next((c for c in about if c.family == "instability"), None)
            shown = (c.examples for c in about if c.verdict == "shown" and c.examples)  # where no label changed
            of_sets.append(
                Finding(
                    id="",
                    kind="claim",
                    code=ATOMIC if len(attributes) == 1 else JOINT,
                    model=place.model,
                    format=place.format,
                    attributes=attributes,
                    verdict="not_tested" if own is None or rate is None else own.verdict,
                    rate=rate,
                    noise=settings.noise.get(place.model),
                    p_value=None if own is None else own.p_value,
                    p_adjusted=None if own is None else own.p_adjusted,
                    exemplars=tuple(one.verdict.variant_id for one in changed[:EXEMPLARS]) or next(shown, ()),
                    notes=tuple(rate_notes(attributes, counts, rate)),
                    claim=None if own is None else places[id(own)],
                )
            )
            of_groups += _claims([c for c in about if c is not own], changed, places)
    return numbered([*of_sets, *of_groups, *hidden_findings(tables, settings)])


def of_claims(claims: Sequence[Claim], tables: Sequence[Observations]) -> list[Finding]:
    """Findings of claims alone: for answers that are amounts, where a rate of changes says little."""
    places = {id(claim): n for n, claim in enumerate(claims)}
    by_key: dict[Key, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(_key(claim), []).append(claim)
    made = (one for key, own in by_key.items() for one in _claims(own, _changed(tables, key), places))
    return numbered(one for one in made if one.verdict != "not_determined")


def numbered(findings: Iterable[Finding]) -> list[Finding]:
    """Give each finding its id."""
    return [dataclasses.replace(finding, id=f"F{n:03d}") for n, finding in enumerate(findings, 1)]


def _key(claim: Claim) -> Key:
    return Place(claim.model, claim.format), tuple(claim.attribute.split("+"))


def _changed(tables: Iterable[Observations], key: Key) -> list[Seen]:
    """The violations of a set of attributes, the clearest first."""
    seen: list[Seen] = []
    place, attributes = key
    for table in tables:
        judged = table.judged()
        own = np.array([attributes in edited(s) for s in table.shapes.values], dtype=bool)[judged.shape]
        seen += Seen.of(table, judged, np.flatnonzero(table.at(judged, place) & own & (judged.outcome == VIOLATION)))
    return sorted(seen, key=lambda one: (-(one.verdict.distance or 0.0), one.verdict.case_id, one.verdict.variant_id))


# -- claims about groups ------------------------------------------------------------------------------------


def _claims(claims: Sequence[Claim], changed: Sequence[Seen], places: Mapping[int, int]) -> list[Finding]:
    """Net and refusal claims that are decided, the clearest net claim of those that are not, what else is shown."""
    out = []
    for family in CODES:
        tested = [c for c in claims if c.family == family and c.p_value is not None and c.verdict != "not_tested"]
        decided = [c for c in tested if c.verdict in DECIDED]
        if family == "net" and not decided and tested:
            decided = [min(tested, key=lambda c: c.p_value or 0.0)]
        if family not in ("net", "refusal"):
            decided = [c for c in decided if c.verdict == "shown"]
        out += [_finding(c, changed, places[id(c)]) for c in decided]
    return out


def _finding(claim: Claim, changed: Sequence[Seen], place: int) -> Finding:
    rate = None
    if claim.family != "omnibus" and (claim.scale == "share" or claim.share_difference is not None):
        value, low, high = claim.estimate, claim.low, claim.high
        if claim.scale == "log_odds":
            value, low, high = claim.share_difference, claim.share_low, claim.share_high
        assert value is not None
        assert low is not None
        assert high is not None
        rate = Estimate(value=value, low=low, high=high, level=0.95, n=claim.texts, n_skipped=0, method=METHOD)
    steps = ((claim.attribute, claim.groups[1], claim.groups[0]),) if claim.groups else ()
    return Finding(
        id="",
        kind="claim",
        code=_code(claim),
        model=claim.model,
        format=claim.format,
        attributes=tuple(claim.attribute.split("+")),
        directions=steps,
        verdict=claim.verdict,
        rate=rate,
        p_value=claim.p_value,
        p_adjusted=claim.p_adjusted,
        exemplars=_examples(claim, changed),
        claim=place,
    )


def _code(claim: Claim) -> str:
    if claim.family == "net" and claim.scale == "number":
        return SCORE
    return JOINT if claim.family == "instability" and "+" in claim.attribute else CODES[claim.family]


def _examples(claim: Claim, changed: Sequence[Seen]) -> tuple[str, ...]:
    """Variants whose answer changed the way the claim says, then those whose score did; the clearest first."""
    if claim.family == "interaction":
        wanted = set(zip(claim.attribute.split("+"), claim.groups[0].split("+"), strict=True))
        changed = [one for one in changed if {(a, target) for a, _, target in one.directions} == wanted]
    if not claim.groups or claim.family == "interaction":
        return tuple(one.verdict.variant_id for one in changed[:EXEMPLARS])
    group, reference = claim.groups
    gains = (claim.estimate or 0.0) > 0

    def fits(one: Seen) -> bool:
        steps = [(s, t) for a, s, t in one.directions if a == claim.attribute]
        if len(steps) != 1:
            return False
        source, target = steps[0]
        if group not in steps[0] or (reference != OTHERS and reference not in steps[0]):
            return False
        v = one.verdict
        mine, other = (
            (v.variant_output, v.original_output) if target == group else (v.original_output, v.variant_output)
        )
        return (mine == claim.label) is gains and (other == claim.label) is not gains and source != target

    turned = [one.verdict.variant_id for one in changed if fits(one)] if claim.label else []
    first = [name for name in claim.examples if name in turned]
    moved = claim.examples if claim.scale != "share" and claim.verdict == "shown" else ()
    return tuple(dict.fromkeys((*first, *turned, *moved)))[:EXEMPLARS]


# -- what a rate rests on ------------------------------------------------------------------------------------


def rate_notes(attributes: Sequence[str], counts: Counts, rate: Estimate | None) -> list[str]:
    """What else was measured: what was lost, how many changes are hidden."""
    notes = [rate.note] if rate is not None and rate.note else []
    lost = int(counts.lost.sum())
    if lost:
        notes.append(
            f"{plural(lost, 'variant')} {verb(lost, 'was', 'were')} not judged (not asked, no majority, or too few "
            "answers that parse)"
        )
    hidden = int(counts.hidden.sum())
    if len(attributes) > 1 and hidden:
        total = int(counts.violations.sum())
        notes.append(f"{hidden} of {total} changes are hidden: no smaller set of these attributes changed the label")
    return notes


# -- hidden changes, against placebo edits ----------------------------------------------------------------------------


@one_thread
def interactions(
    observations: Observations, question: Question, rows: Mapping[str, int], *, seed: int = 7
) -> dict[Variant, Interaction]:
    """What is known of the joint versions in ``rows`` (variant id → row of its version).

    One that is not in the result has parts without an answer, or is no version of the table.
    """
    columns = observations.columns()
    by_order = joints(observations, columns, list(rows.values()))
    out: dict[Variant, Interaction] = {}
    for place, asked in observations.places(columns):
        rng = np.random.default_rng([seed, 6])
        made = (_Arms(observations, columns, asked, one, question) for one in by_order.values())
        arms = [arm for arm in made if len(arm)]
        gates = holm([arm.more_than_placebo(rng) for arm in arms])
        by_row = {row: one for arm, gate in zip(arms, gates, strict=True) for row, one in arm.judged(gate).items()}
        out |= {(place.model, id, place.format): by_row[row] for id, row in rows.items() if row in by_row}
    return out


class _Arms:
    """Measures of the joint versions of one order whose parts were all answered, edited and placebo ones."""

    def __init__(
        self, observations: Observations, columns: Columns, asked: Bools, joint: Joints, question: Question
    ) -> None:
        measures, here = [], np.zeros(len(joint.text), dtype=bool)
        for label in question.outcomes or [""]:
            self._scale, value = next(iter(scales(observations, columns, asked, label, question).items()))
            y, known = outcome_means(columns, asked, value)
            measures.append(joint.beyond_parts(y) if self._scale == "share" else joint.contrasts(y))
            here = joint.known(known)
        some = joint.where(here)
        self._measure = np.column_stack(measures)[here]
        self._spans, self._version = some.spans, some.cells[:, -1]
        self._edited: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)  # by text and attributes
        self._placebos: dict[int, list[int]] = defaultdict(list)
        rows = zip(some.text.tolist(), some.placebo.tolist(), some.shape.tolist(), strict=True)
        for row, (text, placebo, code) in enumerate(rows):
            if placebo:
                self._placebos[text].append(row)
            else:
                self._edited[text, observations.shapes.values[code].attributes].append(row)
        self._pools: dict[tuple[int, int], tuple[Floats, Floats, int]] = {}

    def __len__(self) -> int:
        return len(self._version)

    def more_than_placebo(self, rng: np.random.Generator) -> float | None:
        """One-sided p value that joint edits reach further than placebos in the same texts; None for few texts."""
        size = np.abs(self._measure).max(axis=1)
        edited: dict[int, list[float]] = defaultdict(list)
        for (text, _), rows in self._edited.items():
            edited[text].append(float(size[rows].mean()))
        differences = [
            sum(edited[text]) / len(edited[text]) - float(size[rows].mean())
            for text, rows in sorted(self._placebos.items())
            if text in edited
        ]
        if len(differences) < MIN_TEXTS:
            return None
        return sign_flip(differences, rng=rng, alternative="greater")

    def judged(self, gate: float | None) -> dict[int, Interaction]:
        """By row of the version; ``gate`` is the p value of the whole run."""
        # Standard deviation of a measure over placebos; what joint edits spread counts as one text of them.
        size = np.abs(self._measure).max(axis=1) ** 2
        edited = size[sorted(itertools.chain.from_iterable(self._edited.values()))]
        texts = [float(size[rows].mean()) for rows in self._placebos.values()]
        se = math.sqrt((sum(texts) + (float(edited.mean()) if len(edited) else 0.0)) / (len(texts) + 1))
        if gate is None:
            why = f"fewer than {MIN_TEXTS} texts have joint placebo edits to compare with"
            none = Interaction(kind="not_tested", why=why, scale=self._scale, se=se)
            every = itertools.chain.from_iterable(self._edited.values())
            return {int(self._version[row]): replace(none, contrast=self._strongest(row)) for row in every}
        means = [float(np.abs(self._measure[rows].mean(axis=0)).max()) for rows in self._edited.values()]
        p_values = [
            self._tail(mean, len(rows), round(float(self._spans[rows].mean())))
            for mean, rows in zip(means, self._edited.values(), strict=True)
        ]
        q_values = benjamini_hochberg(p_values)
        return {
            int(self._version[row]): self._verdict(row, rows, gate, float(q or 0.0), se)
            for rows, q in zip(self._edited.values(), q_values, strict=True)
            for row in rows
        }

    def _verdict(self, row: int, rows: Sequence[int], gate: float, q: float, se: float) -> Interaction:
        contrast = self._strongest(row)
        p = self._tail(abs(contrast), 1, int(self._spans[row]))
        # The text as a whole must point where this version does.
        column = int(np.abs(self._measure[row]).argmax())
        along = float(self._measure[rows, column].mean()) * contrast > 0
        why = ""
        if gate > LEVEL:
            why = f"joint edits reach no further beyond their parts than joint placebo edits do (p = {gate:.2g})"
        elif q > FALSE_SHARE or not along:
            why = f"in this text joint edits reach no further than placebo edits may (adjusted p = {q:.2g})"
        elif p > LEVEL:
            why = f"placebo edits reach as far beyond their parts as this change does (p = {p:.2g})"
        kind: InteractionKind = "threshold_crossing" if why else "confirmed"
        scale = self._scale
        return Interaction(kind=kind, why=why, contrast=contrast, se=se, scale=scale, p_value=p, p_adjusted=q)

    def _strongest(self, row: int) -> float:
        measure = self._measure[row]
        return float(measure[np.abs(measure).argmax()])

    def _tail(self, size: float, k: int, spans: int) -> float:
        """Share of placebo texts in which the mean of ``k`` versions is as large, the one in question counted in."""
        if (k, spans) not in self._pools:
            self._pools[k, spans] = self._pool(k, spans)
        values, weights, texts = self._pools[k, spans]
        # `weights` are summed from the largest value down.
        reached = int(len(values) - np.searchsorted(values, size - 1e-9 * max(1.0, size), side="left"))
        return min(1.0, (1.0 + (float(weights[reached - 1]) if reached else 0.0)) / (texts + 1.0))

    def _pool(self, k: int, spans: int) -> tuple[Floats, Floats, int]:
        matched = {
            text: some
            for text, rows in self._placebos.items()
            if (some := [row for row in rows if self._spans[row] >= spans])
        }
        chosen = matched if len(matched) >= MATCHED else self._placebos
        values: list[Floats] = []
        weights: list[Floats] = []
        for rows in chosen.values():
            means = np.abs(self._measure[_subsets(rows, k)].mean(axis=1)).max(axis=1)
            values.append(means)
            weights.append(np.full(len(means), 1.0 / len(means)))
        size, weight = np.concatenate(values), np.concatenate(weights)
        order = np.argsort(size, kind="stable")
        return size[order], np.cumsum(weight[order][::-1]), len(chosen)


def _subsets(rows: Sequence[int], k: int) -> Ints:
    """Sets of ``k`` rows (all where there are no more), some of very many."""
    size = min(k, len(rows))
    if math.comb(len(rows), size) <= MOST_SUBSETS:
        return np.array(list(itertools.combinations(rows, size)))
    rng = np.random.default_rng([len(rows), size])
    return np.array([rng.choice(rows, size, replace=False) for _ in range(MOST_SUBSETS)])


# -- findings -------------------------------------------------------------------------------------------------


def hidden_variants(tables: Iterable[Observations]) -> Iterator[Seen]:
    """The hidden variants of the tables; placebos are none."""
    for table in tables:
        judged = table.judged()
        yield from Seen.of(table, judged, np.flatnonzero((judged.hidden == 1) & table.in_arm(Arm.EDITED)[judged.shape]))


def hidden_findings(tables: Iterable[Observations], settings: Settings) -> list[Finding]:
    """One finding for each text with a hidden variant: the strongest, by contrast in standard errors.

    Confirmed interactions come first; at most `MAX_HIDDEN` of one model and format are listed.
    """
    p_values = [again["p_value"] for again in settings.confirmed.values()]
    fresh = dict(zip(settings.confirmed, benjamini_hochberg(p_values), strict=True))
    best: dict[tuple[str, str], dict[str, tuple[Rank, Seen, Interaction]]] = {}
    for one in hidden_variants(tables):
        v = one.verdict
        known = _known(v, settings, fresh)
        rank = known.kind != "confirmed", -known.strength, -(v.distance or 0.0), v.case_id, v.variant_id
        texts = best.setdefault((v.model, v.format), {})
        if v.case_id not in texts or rank < texts[v.case_id][0]:
            texts[v.case_id] = rank, one, known
    return [
        _hidden(one, known, settings)
        for key in sorted(best)
        for _, one, known in sorted(best[key].values(), key=lambda one: one[0])[:MAX_HIDDEN]
    ]


Rank = tuple[bool, float, float, str, str]


def _known(v: Verdict, settings: Settings, fresh: Mapping[Variant, float | None]) -> Interaction:
    """What is known of a hidden variant: against placebo edits, and against its parts on fresh answers."""
    key = (v.model, v.variant_id, v.format)
    known = settings.interactions.get(key, ALONE)
    if known.kind != "confirmed" or settings.deterministic.get(v.model, False):
        return known
    if settings.confirmed.get(key, {}).get("confirmed") is False:
        return replace(known, kind="threshold_crossing", why="did not come again when its prompts were repeated")
    if known.scale != "share":  # scores carry their own spread into the placebo edits
        return known
    q = fresh.get(key)
    if q is None:
        return replace(known, kind="not_tested", why="not confirmed by repeating its prompts")
    if q > ALPHA:
        why = f"on fresh answers it does not differ from each of its parts (exact test, adjusted p = {q:.2g})"
        return replace(known, kind="threshold_crossing", why=why)
    return known


def _hidden(one: Seen, known: Interaction, settings: Settings) -> Finding:
    v, noise = one.verdict, settings.noise.get(one.verdict.model)
    chance: tuple[str, ...] = ()
    if noise is not None and len(v.attributes) == 2:
        rate, _ = hidden_by_chance(noise.value, settings.replicates.get(v.model, 1))
        digits = ".0f" if rate >= 0.0995 else ".1f" if rate >= 0.0005 else ".1g"
        said = f"at the measured noise, {100 * rate:{digits}} % of joint variants would look hidden by chance"
        chance = (said,) if rate > 0.0 else ()
    return Finding(
        id="",
        kind="hidden",
        code=HIDDEN,
        model=v.model,
        format=v.format,
        attributes=v.attributes,
        directions=one.directions,
        verdict=VERDICTS[known.kind],
        interaction=known.kind,
        noise=noise,
        p_value=known.p_value,
        p_adjusted=known.p_adjusted,
        exemplars=(v.variant_id,),
        text=hidden_text(v, one.directions),
        notes=(*((known.why,) if known.why else ()), *contrast_note(known), *chance),
    )


def hidden_text(verdict: Verdict, directions: Sequence[Direction]) -> str:
    """What was measured for one hidden variant, in one sentence."""
    changes = " and ".join(f"{a} ({s} → {t})" for a, s, t in directions).replace("_", " ")
    alone = "either was changed alone" if verdict.order == 2 else "fewer of them were changed"
    return (
        f"the label changed from {verdict.original_output} to {verdict.variant_output} when {changes} terms "
        f"were changed together; it stayed {verdict.original_output} when {alone}"
    )


def contrast_note(known: Interaction) -> tuple[str, ...]:
    """How far the joint change goes beyond its parts, beside what placebo edits do."""
    if known.contrast is None or known.se is None:
        return ()
    if known.scale == "share":
        return (
            f"beyond all of its parts by {100 * abs(known.contrast):.0f} points of the label's share (placebo edits: "
            f"standard deviation {100 * known.se:.0f})",
        )
    unit = " log odds" if known.scale == "log_odds" else ""
    return (
        f"interaction contrast: {known.contrast:+.2f}{unit} (joint effect minus the sum of the single ones; placebo "
        f"edits: standard deviation {known.se:.2f})",
    )


def hidden_by_chance(noise: float, replicates: int = 1) -> tuple[float, float | None]:
    """Return the share of joint variants, and of joint changes, that noise alone makes look hidden.

    If each of four independent answers (original, two atomic, joint) is off its usual label with probability
    d, the joint label differs while both atomic ones do not with d(1 − d)³ + d³(1 − d). With an odd number
    of replicates and a majority, d is the chance that most of them are off.
    """
    from scipy.stats import binom

    single = (1 - math.sqrt(max(0.0, 1 - 2 * noise))) / 2
    d = float(binom.sf(replicates // 2, replicates, single)) if replicates > 1 else single
    if d <= 0.0:
        return 0.0, None
    return d * (1 - d) ** 3 + d**3 * (1 - d), ((1 - d) ** 2 + d**2) / 2
