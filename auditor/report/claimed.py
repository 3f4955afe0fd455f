"""Claims and findings in words and figures: who gets what more or less often, by how much, why no more can be said."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from auditor.core import waivers
from auditor.core.record import Claim, RunRecord, Waived
from auditor.core.types import Finding
from auditor.measure.claims import MIN_TEXTS, OTHERS, USUAL_DELTA
from auditor.report import words
from auditor.report.cards import Brief

Claims = Mapping[tuple[object, ...], Claim]
MANY_TEXTS = 50  # a group of fewer, against all others, leads no report where anything else was shown
ENOUGH_TEXTS = 30  # the same of a pair
PLAIN_VALUES = frozenset({"yes", "no", "true", "false", "y", "n"})  # like numbers, nothing without their column
MOST_DIGITS = 6  # decimals of a figure
OPPOSED = "shares are of answers as they stand, the difference is without what edits and words do by themselves"
COUNTS_LESS = "texts whose words stand in many others count less"
SCOPES = {"group": "", "words": " with these words", "wording": " with this wording"}
ABOUT = {
    "group": "shown for the group",
    "words": "shown for the few words that stand for the group",
    "wording": "shown for this wording; what another wording does was not recorded",
}
FAMILY_OF = {"DIR": "net", "SCO": "net", "REF": "refusal", "INS": "instability"}  # of codes of findings


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """A difference with its 95 % interval, as reports print it."""

    value: float
    low: float
    high: float
    unit: str
    scale: float = 1.0  # 100 for shares

    def turned(self) -> Effect:
        """The same, of the reference against the group."""
        return dataclasses.replace(self, value=-self.value, low=-self.high, high=-self.low)

    @property
    def nearest(self) -> float:
        """How near to no difference the interval comes."""
        return 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))

    @property
    def vague(self) -> bool:
        """Whether the interval covers more than half of all values that there are: no figure to print."""
        return self.scale == 100 and self.high - self.low > 1

    @property
    def text(self) -> str:
        """``−5.1 (−7.4 to −2.9)``."""
        value, low, high = (signed(self.scale * end, self.digits) for end in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"

    @property
    def full(self) -> str:
        """``−5.1 points (95 %: −7.4 to −2.9)``."""
        return self.text.replace(" (", f" {self.unit} (95 %: ")

    @property
    def digits(self) -> int:
        """Decimals of the value and of both ends: one of a point, else as many as the interval is narrow.

        A narrow interval has as many as it takes to tell its ends apart.

        Examples
        --------
        >>> Effect(value=0.0012, low=0.0004, high=0.002, unit="log odds").text
        '+0.0012 (+0.0004 to +0.0020)'
        """
        width = self.scale * (self.high - self.low)
        usual = 1 if self.scale == 100 else 2 if width < 10 else 1 if width < 100 else 0
        return max(usual, min(MOST_DIGITS, math.ceil(-math.log10(width / 3)))) if width > 0 else usual


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign, to ``digits`` decimals.

    Examples
    --------
    >>> signed(-5.12), signed(0.0), signed(0.04, 2), signed(1234.5, 0)
    ('−5.1', '0', '+0.04', '+1,234')
    """
    text = f"{abs(value):,.{digits}f}"
    if not float(text.replace(",", "")):
        return "0"
    return ("−" if value < 0 else "+") + text


def effect(claim: Claim) -> Effect | None:
    """What is printed of a claim: points where answers are labels, else the number; None where there is none.

    Where the log odds show a difference and points alone would not, it is the log odds.
    """
    odds = _odds(claim)
    if odds is None:
        return None
    points = dataclasses.replace(odds, scale=100.0, unit="points")
    made = points if claim.scale == "share" else odds
    if claim.scale == "log_odds" and claim.share_difference is not None:
        assert claim.share_low is not None
        assert claim.share_high is not None
        share = (claim.share_difference, claim.share_low, claim.share_high)
        if claim.verdict != "shown" or not claim.share_low <= 0 <= claim.share_high:
            made = dataclasses.replace(points, value=share[0], low=share[1], high=share[2])
    if made.scale == 100:
        value, low, high = min(max(made.value, -1.0), 1.0), max(-1.0, made.low), min(1.0, made.high)
        made = dataclasses.replace(made, value=value, low=low, high=high)
    return made


def _odds(claim: Claim) -> Effect | None:
    """The difference that decided, in its own unit."""
    if claim.estimate is None or claim.low is None or claim.high is None:
        return None
    return Effect(value=claim.estimate, low=claim.low, high=claim.high, unit=claim.unit)


def order(claim: Claim) -> tuple[bool, bool, int, bool, bool, float]:
    """What comes first.

    Who is worse off before how often anything changes; groups of many texts before small ones; then the verdict, pairs
    of groups before a group against all others, and what is furthest from none.
    """
    made = effect(claim)
    other = claim.groups[-1:] in ((), (OTHERS,))
    return (
        claim.family == "instability",
        claim.texts < (MANY_TEXTS if other else ENOUGH_TEXTS),
        words.RANK[claim.verdict],
        claim.family != "net",
        other,
        0.0 if made is None else -made.nearest,
    )


def clear(claim: Claim) -> float:
    """How far a difference lies from none, in widths of its interval: what ranks claims alike otherwise."""
    made = effect(claim)
    return 0.0 if made is None or made.high <= made.low else abs(made.value) / (made.high - made.low)


# -- figures ----------------------------------------------------------------------------------------------


def net(claim: Claim) -> str:
    """The difference with its interval, as tables print it."""
    if (made := effect(claim)) is None:
        return "–"
    return "too wide" if made.vague else f"{made.text}{'' if made.scale == 100 else f' {made.unit}'}".rstrip()


def levels(claim: Claim) -> str:
    """The share of the label for the reference and for the group; empty for numbers.

    Examples
    --------
    >>> levels(Claim(family="net", attribute="a", groups=("b", "c"), label="yes", model="m", format="", scale="share",
    ...              unit="share", shares=(0.5, 0.72)))
    '72 → 50 %'
    """
    if claim.shares is None:
        return ""
    group, reference = claim.shares
    return f"{words.percent(reference, 0).removesuffix(' %')} → {words.percent(group, 0)}"


def verdict(claim: Claim) -> str:
    """``▲ shown`` and its like."""
    symbol = words.SYMBOLS[claim.verdict]
    if claim.verdict == "bounded" and claim.delta is not None:
        return f"{symbol} below {limit(claim)}"
    return words.verdict(claim.verdict)


def limit(claim: Claim) -> str:
    """Delta with its unit."""
    delta = claim.delta or 0.0
    return f"{delta:g} {claim.unit}".rstrip() if claim.scale == "number" else f"{100 * delta:g} points"


def reason(claim: Claim) -> str:
    """Why nothing was shown and nothing bounded, and what it would take."""
    made, odds = effect(claim), _odds(claim)
    said = []
    if claim.scale == "log_odds" and made is not None and odds is not None and made.scale == 100:
        said.append(f"log odds {odds.text}")
    said.append(claim.why)
    if claim.calls_needed is not None:
        target = limit(claim) if claim.delta else f"{100 * USUAL_DELTA:g} points"
        said.append(f"about {claim.calls_needed:,} calls would show {target}")
    said.append(_opposed(claim, made))
    return words.visible("; ".join(filter(None, said)), newlines=False)


def _opposed(claim: Claim, made: Effect | None) -> str:
    """Why the shares that are printed point another way than the difference beside them; empty where they do not."""
    if claim.shares is None or made is None or made.vague:
        return ""
    group, reference = (round(100 * share) for share in claim.shares)
    if (group - reference) * round(made.scale * made.value, made.digits) >= 0:
        return ""
    if claim.scale != "share" or claim.words_estimate is None:
        return f"{OPPOSED}, and in it {COUNTS_LESS}"
    if (group - reference) * claim.words_estimate <= 0:
        return OPPOSED
    alike = 100 * abs(claim.words_estimate)
    return f"shares count texts alike, and then it is {alike:.1f} points their way; in the difference, {COUNTS_LESS}"


def too_few(claim: Claim) -> str:
    """How many texts there are of an attribute that was not tested."""
    return f"{words.plural(claim.texts, 'text')}, {MIN_TEXTS} are needed" if claim.texts < MIN_TEXTS else ""


# -- sentences --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One claim as a sentence about the group that it is worse for, as far as that is known."""

    claim: Claim
    group: str  # key in the dictionary
    reference: str
    subject: str  # "women and girls are invited less often than men and boys"
    effect: Effect

    @property
    def figures(self) -> str:
        """The effect, and that it is about words and no group where it is."""
        return self.effect.full + SCOPES[self.claim.scope]

    @property
    def sentence(self) -> str:
        """Who, by how much, how sure, on how many texts."""
        return words.sentence(f"{self.subject}: {self.figures}, {words.plural(self.claim.texts, 'text')}")

    @property
    def log_odds(self) -> str:
        """The difference that decided, where it is not the one that is printed; else empty."""
        odds = _odds(self.claim)
        if self.claim.scale != "log_odds" or self.effect.scale != 100 or odds is None:
            return ""
        return (odds if self.claim.groups[:1] in ((), (self.group,)) else odds.turned()).text

    @property
    def limit(self) -> str:
        """Where the limit lies against the interval; empty without a limit."""
        claim, made = self.claim, self.effect
        if not claim.delta or (claim.scale == "log_odds" and made.scale != 100):
            return ""
        if made.nearest > claim.delta:
            return f"limit {limit(claim)} exceeded"
        if abs(made.value) > claim.delta:
            return f"limit {limit(claim)}: exceeded by the estimate, not by all of its interval"
        return f"limit {limit(claim)}: not exceeded by the estimate"


def state(record: RunRecord, claim: Claim) -> Statement | None:
    """Who gets what more or less often than who; None where there is no figure."""
    if (made := effect(claim)) is None:
        return None
    if claim.family == "instability":
        what = words.attributes(claim.attribute.split("+"))
        subject = f"answers change more often with {what} than with edits that change no group"
        return Statement(claim=claim, group="", reference="", subject=subject, effect=made)
    group, reference = claim.groups
    good = claim.family == "net" and (claim.scale == "number" or claim.label == record.vocabulary.favourable)
    bad = claim.family == "refusal"
    # The one who is worse off is named first; against all others there is no other to name.
    if reference != OTHERS and ((good and made.value > 0) or (bad and made.value < 0)):
        group, reference, made = reference, group, made.turned()
    whom = "others" if reference == OTHERS else _who(record, claim.attribute, reference)
    subject = f"{_who(record, claim.attribute, group)} {_gets(record, claim, made)} than {whom}"
    return Statement(claim=claim, group=group, reference=reference, subject=subject, effect=made)


def _gets(record: RunRecord, claim: Claim, made: Effect) -> str:
    more = made.value > 0
    often, higher = ("more often", "higher") if more else ("less often", "lower")
    if claim.family == "refusal":
        return f"get a refusal or an answer that cannot be read {often}"
    if claim.scale == "number":
        return f"get {words.named('written_more' if more else 'written_less').get(claim.label, f'{higher} numbers')}"
    label = words.visible(claim.label, newlines=False)
    if claim.scale == "log_odds" and made.scale == 1:  # points would not show it: answers hardly turn
        return f"get a {higher} probability of “{label}”"
    if claim.label == record.vocabulary.favourable:
        done = words.named("done_to_people").get(claim.label)
        return f"are {done} {often}" if done else f"get “{label}” {often}"
    return f"get the label “{label}” {often}"


def index(record: RunRecord) -> Claims:
    """The claims of a record by family, attribute, groups in order, label, model and format."""
    claims = record.claims or ()
    return {(c.family, c.attribute, *sorted(c.groups), c.label, c.model, c.format): c for c in claims}


def of_finding(record: RunRecord, finding: Finding, claims: Claims) -> Statement | None:
    """The claim that a finding is about, in words; None where it is about no single claim."""
    family = FAMILY_OF.get(finding.code[:3])
    if finding.kind != "claim" or family is None:
        return None
    groups = sorted(g for step in finding.directions for g in step[1:])
    attribute, place = "+".join(finding.attributes), (finding.model, finding.format)
    mine = [c for k, c in claims.items() if k[:-3] == (family, attribute, *groups) and k[-2:] == place]
    return state(record, mine[0]) if len(mine) == 1 else None


def name(record: RunRecord, attribute: str, group: str) -> str:
    """What the dictionary calls a group; of several attributes, what each calls its own."""
    known, pairs = record.vocabulary.groups, zip(attribute.split("+"), group.split("+"), strict=False)
    return words.visible(", ".join(known.get(a, {}).get(g) or words.group(g) for a, g in pairs), newlines=False)


def _who(record: RunRecord, attribute: str, group: str) -> str:
    """Return a group as a subject: a value of somebody's own column is no word for people."""
    known, pairs = record.vocabulary.groups, list(zip(attribute.split("+"), group.split("+"), strict=False))
    called = name(record, attribute, group)
    if all(known.get(a, {}).get(g, g) != g for a, g in pairs):
        return called
    if all(any(c.isalpha() for c in g) and g.casefold() not in PLAIN_VALUES for _, g in pairs):
        return f"texts about {called}"
    return f"texts with {words.attributes(attribute.split('+'))} {called}"


# -- findings ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One finding as every exchange format shows it. The texts are not escaped."""

    finding: Finding
    sentence: str
    waiver: Waived | None
    example: Brief | None = None

    @property
    def key(self) -> str:
        """What the finding is called across runs."""
        return waivers.key(self.finding)

    @property
    def place(self) -> str:
        """Attributes or directions, in words."""
        return words.direction(self.finding.directions) or words.attributes(self.finding.attributes)

    @property
    def counts(self) -> bool:
        """Whether it is shown and not waived: what ``--fail-on shown`` counts."""
        return self.finding.verdict == "shown" and self.waiver is None

    @property
    def waived(self) -> str:
        """The waiver in words; empty without one."""
        return "" if (w := self.waiver) is None else f"until {w.expires} by {w.owner}: {w.reason}"


def tested_p(finding: Finding) -> float | None:
    """The adjusted p value of a finding's own figure; the verdict of a rate of changes is that of other claims."""
    return None if finding.code.startswith("MUT") else finding.p_adjusted


def rows(record: RunRecord) -> list[Row]:
    """Every finding, the shown ones first, then in the order of the record."""
    waived, claims = record.waived, index(record)
    made = [Row(finding=f, sentence=_sentence(record, f, claims), waiver=waived.get(f.id)) for f in record.findings]
    return sorted(made, key=lambda row: words.RANK.get(row.finding.verdict, 4))


def _sentence(record: RunRecord, finding: Finding, claims: Claims) -> str:
    """What was measured, with interval and noise."""
    if record.spec.kind != "tabular":
        claim = of_finding(record, finding, claims)
        return claim.sentence if claim is not None else words.claim_sentence(finding, words.noun(record))
    text = f"{finding.model}: {finding.text or finding.code}"
    return (f"{text}: {words.rate_text(finding.rate)}" if finding.rate else text).rstrip(".") + "."


def title(record: RunRecord) -> str:
    """The heading of a report."""
    spec = record.spec
    if spec.kind == "tabular":
        return f"Tabular bias test report: {spec.data or spec.task or 'rows'}"
    return f"Bias test report: {spec.asked or 'unnamed task'}"


def summary(record: RunRecord) -> str:
    """How many findings carry which verdict, in one sentence."""
    counts, waived = Counter(str(f.verdict) for f in record.findings), record.waived
    listed = ", ".join(f"{counts[name]} {words.VERDICTS[name]}" for name in words.RANK if counts[name])
    text = words.plural(sum(counts[name] for name in words.RANK), "finding") + (f": {listed}" if listed else "")
    shown = [f for f in record.findings if f.verdict == "shown"]
    more = (
        (sum(f.kind == "hidden" for f in shown), "of the shown about one text, not about a rate"),
        (sum(f.id in waived for f in shown), "of the shown waived"),
    )
    notes = "; ".join(f"{n} {what}" for n, what in more if n)
    return f"{text} ({notes})." if notes else f"{text}."
