"""Claims in words and figures: who gets what more or less often, by how much, and why more cannot be said."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import MIN_TEXTS, OTHERS, USUAL_DELTA, Claim
from auditor.report import words

Claims = Mapping[tuple[object, ...], Claim]
MANY_TEXTS = 50  # a group of fewer, against all others, leads no report where anything else was shown
ENOUGH_TEXTS = 30  # the same of a pair
MOST_DIGITS = 6  # decimals of a figure
OPPOSED = "shares are of answers as they stand, the difference is without what edits and words do by themselves"
COUNTS_LESS = "texts whose words stand in many others count less"
# What is done to the person: of labels that are verbs. Others are named as they are.
DONE = {
    "accept": "accepted",
    "admit": "admitted",
    "approve": "approved",
    "hire": "hired",
    "invite": "invited",
    "promote": "promoted",
    "select": "selected",
    "shortlist": "shortlisted",
}
# How an answer that is a text is written: more of it, and less.
WRITTEN = {
    "length": ("longer answers", "shorter answers"),
    "reading ease": ("answers that are easier to read", "answers that are harder to read"),
    "sentiment": ("answers of higher sentiment", "answers of lower sentiment"),
    "hedging": ("answers that hedge more", "answers that hedge less"),
    "agency": ("answers with more words of agency", "answers with fewer words of agency"),
    "competence": ("answers with more words of competence", "answers with fewer words of competence"),
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
    def vague(self) -> bool:
        """Whether the interval covers more than half of all values that there are: no figure to print."""
        return self.scale == 100 and self.high - self.low > 1

    @property
    def text(self) -> str:
        """``−5.1 (−7.4 to −2.9)``."""
        return f"{self.figure} ({self.interval})"

    @property
    def told(self) -> str:
        """``−5.1 points (95 %: −7.4 to −2.9)``."""
        return f"{self.figure} {self.unit} (95 %: {self.interval})"

    @property
    def figure(self) -> str:
        """``−5.1``."""
        return signed(self.scale * self.value, self.digits)

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

    @property
    def interval(self) -> str:
        """``−7.4 to −2.9``."""
        return f"{signed(self.scale * self.low, self.digits)} to {signed(self.scale * self.high, self.digits)}"


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


def of(record: RunRecord) -> tuple[Claim, ...]:
    """The claims of a record; none where it makes none."""
    return record.claims or ()


def effect(claim: Claim) -> Effect | None:
    """What is printed of a claim: points where answers are labels, else the number; None where there is none.

    Of a claim that is shown for these words alone it is the difference for these words. Where the log odds show a
    difference and points alone would not, it is the log odds.
    """
    if claim.estimate is None or claim.low is None or claim.high is None:
        return None
    value, low, high = claim.estimate, claim.low, claim.high
    by_words = claim.words_estimate, claim.words_low, claim.words_high
    scale, unit = (100.0, "points") if claim.scale == "share" else (1.0, claim.unit)
    if claim.verdict == "shown_for_words" and None not in by_words:
        value, low, high = (float(x) for x in by_words if x is not None)
    elif claim.scale == "log_odds" and claim.share_difference is not None:
        assert claim.share_low is not None
        assert claim.share_high is not None
        if claim.verdict == "shown" and claim.share_low <= 0 <= claim.share_high:
            return Effect(value=value, low=low, high=high, unit=unit)
        value, low, high = claim.share_difference, claim.share_low, claim.share_high
        scale, unit = 100.0, "points"
    if scale == 100:
        low, high = max(-1.0, low), min(1.0, high)
        value = min(max(value, -1.0), 1.0)
    return Effect(value=value, low=low, high=high, unit=unit, scale=scale)


def order(claim: Claim) -> tuple[bool, bool, int, bool, bool, float]:
    """What is told first.

    Who is worse off before how often anything changes; groups of many texts before small ones; then the verdict, pairs
    of groups before a group against all others, and what is furthest from none.
    """
    found = effect(claim)
    nearest = 0.0 if found is None or found.low <= 0 <= found.high else min(abs(found.low), abs(found.high))
    other = claim.groups[-1:] in ((), (OTHERS,))
    return (
        claim.family == "instability",
        claim.texts < (MANY_TEXTS if other else ENOUGH_TEXTS),
        words.RANK[claim.verdict],
        claim.family != "net",
        other,
        -nearest,
    )


def clear(claim: Claim) -> float:
    """How far a difference lies from none, in widths of its interval: what ranks claims alike otherwise."""
    found = effect(claim)
    if found is None or found.high <= found.low:
        return 0.0
    return abs(found.value) / (found.high - found.low)


def net(claim: Claim) -> str:
    """The difference with its interval, as tables print it."""
    found = effect(claim)
    if found is None:
        return "–"
    unit = "" if found.scale == 100 else f" {found.unit}"
    return "too wide" if found.vague else f"{found.text}{unit}".rstrip()


def levels(claim: Claim) -> str:
    """The share of the label for the reference and for the group; empty for numbers.

    Examples
    --------
    >>> told = Claim(family="net", attribute="a", groups=("b", "c"), label="yes", model="m", format="", scale="share",
    ...              unit="share", shares=(0.5, 0.72))
    >>> levels(told)
    '72 → 50 %'
    """
    if claim.shares is None:
        return ""
    group, reference = claim.shares
    return f"{words.percent(reference, 0).removesuffix(' %')} → {words.percent(group, 0)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """One claim as a sentence about the group that it is worse for, as far as that is known."""

    claim: Claim
    group: str  # key in the dictionary
    reference: str
    subject: str  # "women and girls are invited less often than men and boys"
    effect: Effect

    @property
    def log_odds(self) -> str:
        """The difference that decided, where it is not the one that is printed; else empty."""
        claim = self.claim
        if claim.scale != "log_odds" or self.effect.scale != 100 or claim.estimate is None:
            return ""
        assert claim.low is not None
        assert claim.high is not None
        found = Effect(value=claim.estimate, low=claim.low, high=claim.high, unit=claim.unit)
        return (found if claim.groups[:1] in ((), (self.group,)) else found.turned()).text


def tell(record: RunRecord, claim: Claim) -> Told | None:
    """Who gets what more or less often than who; None where there is no figure."""
    found = effect(claim)
    if found is None:
        return None
    if claim.family == "instability":
        what = words.attributes(claim.attribute.split("+"))
        subject = f"answers change more often with {what} than with edits that change no group"
        return Told(claim=claim, group="", reference="", subject=subject, effect=found)
    group, reference = claim.groups
    good = claim.family == "net" and (claim.scale == "number" or claim.label == favourable(record))
    bad = claim.family == "refusal"
    # The one who is worse off is named first; against all others there is no other to name.
    if reference != OTHERS and ((good and found.value > 0) or (bad and found.value < 0)):
        group, reference, found = reference, group, found.turned()
    subject = f"{_who(record, claim.attribute, group)} {_gets(record, claim, found)}"
    whom = "others" if reference == OTHERS else _who(record, claim.attribute, reference)
    return Told(claim=claim, group=group, reference=reference, subject=f"{subject} than {whom}", effect=found)


def _gets(record: RunRecord, claim: Claim, found: Effect) -> str:
    more = found.value > 0
    often = "more often" if more else "less often"
    if claim.family == "refusal":
        return f"get a refusal or an answer that cannot be read {often}"
    if claim.scale == "number" and claim.label in WRITTEN:
        return f"get {WRITTEN[claim.label][not more]}"
    if claim.scale == "number":
        return f"get {'higher' if more else 'lower'} numbers"
    label = words.visible(claim.label, newlines=False)
    if claim.scale == "log_odds" and found.scale == 1:  # points would not show it: answers hardly turn
        return f"get a {'higher' if more else 'lower'} probability of “{label}”"
    if claim.label == favourable(record):
        done = DONE.get(claim.label)
        return f"are {done} {often}" if done else f"get “{label}” {often}"
    return f"get the label “{label}” {often}"


def index(record: RunRecord) -> Claims:
    """The claims of a record by family, attribute, groups in order, label, model and format."""
    return {(c.family, c.attribute, *sorted(c.groups), c.label, c.model, c.format): c for c in of(record)}


def told(record: RunRecord, finding: Finding, claims: Claims) -> Told | None:
    """The claim that a finding is about, in words; None where it is about no single claim."""
    family = FAMILY_OF.get(finding.code[:3])
    if finding.kind != "claim" or family is None:
        return None
    groups = sorted(g for step in finding.directions for g in step[1:])
    attribute, place = "+".join(finding.attributes), (finding.model, finding.format)
    found = [c for k, c in claims.items() if k[:-3] == (family, attribute, *groups) and k[-2:] == place]
    return tell(record, found[0]) if len(found) == 1 else None


def sentence(found: Told) -> str:
    """One claim in a sentence: who, by how much, how sure, on how many texts."""
    claim = found.claim
    mark = " with these words" if claim.verdict == "shown_for_words" else ""
    return words.sentence(f"{found.subject}: {found.effect.told}{mark}, {words.plural(claim.texts, 'text')}")


def loud(text: str) -> str:
    """In capital letters, but for what a task calls its labels.

    Examples
    --------
    >>> loud("women get “Not OK” more often")
    'WOMEN GET “Not OK” MORE OFTEN'
    """
    parts = text.split("“")
    return parts[0].upper() + "".join(
        "“" + label + "”" + rest.upper() for label, _, rest in (part.partition("”") for part in parts[1:])
    )


def name(record: RunRecord, attribute: str, group: str) -> str:
    """What the dictionary calls a group; of several attributes, what each calls its own."""
    known = record.vocabulary.groups
    pairs = zip(attribute.split("+"), group.split("+"), strict=False)
    parts = [known.get(a, {}).get(g) or words.group(g) for a, g in pairs]
    return words.visible(", ".join(parts), newlines=False)


def _who(record: RunRecord, attribute: str, group: str) -> str:
    """A group as a subject: a value of somebody's own column is no word for people."""
    known = record.vocabulary.groups
    pairs = zip(attribute.split("+"), group.split("+"), strict=False)
    people = all(known.get(a, {}).get(g, g) != g for a, g in pairs)
    return f"{'' if people else 'texts about '}{name(record, attribute, group)}"


def favourable(record: RunRecord) -> str | None:
    """The label that is good for the person concerned, where the task says so."""
    return record.vocabulary.favourable


def verdict(claim: Claim) -> str:
    """``▲ shown`` and its like."""
    if claim.verdict == "bounded" and claim.delta is not None:
        return f"{words.SYMBOLS[claim.verdict]} below {limit(claim)}"
    if claim.verdict == "shown_for_words":
        return f"{words.SYMBOLS[claim.verdict]} these words"
    return words.verdict(claim.verdict)


def limit(claim: Claim) -> str:
    """Delta with its unit."""
    delta = claim.delta or 0.0
    if claim.scale == "number":
        return f"{delta:g} {claim.unit}".rstrip()
    return f"{100 * delta:g} points"


def reason(claim: Claim) -> str:
    """Why nothing was shown and nothing bounded, and what it would take."""
    told = claim.why
    found = effect(claim)
    if claim.scale == "log_odds" and found is not None and found.scale == 100:
        odds = Effect(value=claim.estimate or 0.0, low=claim.low or 0.0, high=claim.high or 0.0, unit=claim.unit)
        told = f"log odds {odds.text}" + (f"; {told}" if told else "")
    if claim.calls_needed is not None:
        target = limit(claim) if claim.delta else f"{100 * USUAL_DELTA:g} points"
        told += f"{'; ' if told else ''}about {claim.calls_needed:,} calls would show {target}"
    if opposed := _opposed(claim, found):
        told += f"{'; ' if told else ''}{opposed}"
    return words.visible(told, newlines=False)


def _opposed(claim: Claim, found: Effect | None) -> str:
    """Why the shares that are printed point another way than the difference beside them; empty where they do not."""
    if claim.shares is None or found is None or found.vague:
        return ""
    group, reference = (round(100 * share) for share in claim.shares)
    if (group - reference) * round(found.scale * found.value, found.digits) >= 0:
        return ""
    if claim.scale != "share" or claim.words_estimate is None:
        return f"{OPPOSED}, and in it {COUNTS_LESS}"
    if (group - reference) * claim.words_estimate <= 0:
        return OPPOSED
    alike = 100 * abs(claim.words_estimate)
    return f"shares count texts alike, and then it is {alike:.1f} points their way; in the difference, {COUNTS_LESS}"


def of_delta(told: Told) -> str:
    """Where the limit lies against the interval; empty without a limit."""
    claim, found = told.claim, told.effect
    if not claim.delta or (claim.scale == "log_odds" and found.scale != 100):
        return ""
    nearest = 0.0 if found.low < 0 < found.high else min(abs(found.low), abs(found.high))
    if nearest > claim.delta:
        return f"limit {limit(claim)} exceeded"
    if abs(found.value) > claim.delta:
        return f"limit {limit(claim)}: exceeded by the estimate, not by all of its interval"
    return f"limit {limit(claim)}: not exceeded by the estimate"


def too_few(claim: Claim) -> str:
    """How many texts there are of an attribute that was not tested."""
    return f"{words.plural(claim.texts, 'text')}, {MIN_TEXTS} are needed" if claim.texts < MIN_TEXTS else ""
