"""Claims and findings in words and figures: who gets what more or less often, by how much, why no more can be said."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from auditor.core.record import Claim, RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import MIN_TEXTS, OTHERS, USUAL_DELTA
from auditor.report import words
from auditor.report.cards import Card

MANY_TEXTS = 50  # a group of fewer, against all others, leads no report where anything else was shown
ENOUGH_TEXTS = 30  # the same of a pair
PLAIN_VALUES = frozenset({"yes", "no", "true", "false", "y", "n"})  # like numbers, nothing without their column
MOST_DIGITS = 6  # decimals of a figure
EDITS = "once the effect of editing is taken out"
SHARED = "with words shared by many texts counted less"
BOTH = "with editing taken out and shared words counted less"
APART = 0.005  # a share of answers and a net difference further apart than this need a word
MOST_WORDS = 8  # of a group that a sentence names
WHOLE = 4.0  # points: an interval this wide has no use for decimals
RATES = "MUT"  # how codes begin of findings about how often answers changed


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
    def parts(self) -> tuple[str, str]:
        """The amount without its sign, and the interval turned the same way: ``12 points``, ``(95 %: 5 to 20)``."""
        made = self.turned() if self.value < 0 else self
        ends = [made.scale * end for end in (made.value, made.low, made.high)]
        digits = 0 if self.scale == 100 and ends[2] - ends[1] >= WHOLE else self.digits
        if any(end and not round(end, digits) for end in ends):
            digits = max(digits, 1)
        value, low, high = (signed(end, digits).removeprefix("+") for end in ends)
        return in_unit(value, self.unit), f"(95 %: {low} to {high})"

    def size(self, more: str) -> str:
        """``12 points less (95 %: 5 to 20)``."""
        amount, interval = self.parts
        return f"{amount} {interval}" if amount.split()[0] == "0" else f"{amount} {more} {interval}"

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
        """Decimals of the value and of both ends: one of a point, else as many as the interval is narrow."""
        width = self.scale * (self.high - self.low)
        usual = 1 if self.scale == 100 else 2 if width < 10 else 1 if width < 100 else 0
        if math.isclose(self.low, self.high):
            return usual
        return max(usual, min(MOST_DIGITS, math.ceil(-math.log10(width / 3))))


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign, to ``digits`` decimals."""
    text = f"{abs(value):,.{digits}f}"
    if not float(text.replace(",", "")):
        return "0"
    return ("−" if value < 0 else "+") + text


def in_unit(amount: str, unit: str) -> str:
    """An amount with its unit: ``12 points``, ``1 point``."""
    return f"{amount} {'point' if amount == '1' and unit == 'points' else unit}".rstrip()


def effect(claim: Claim) -> Effect | None:
    """What is printed of a claim: points where answers are labels, else the number; None where there is none."""
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
        value, low, high = (min(max(end, -1.0), 1.0) for end in (made.value, made.low, made.high))
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
        claim.family in ("instability", "omnibus"),
        claim.texts < (MANY_TEXTS if other else ENOUGH_TEXTS),
        words.RANK[claim.verdict],
        claim.family != "net",
        other,
        0.0 if made is None else -made.nearest,
    )


# -- figures ----------------------------------------------------------------------------------------------


def net(claim: Claim) -> str:
    """The difference with its interval, as tables print it."""
    if (made := effect(claim)) is None:
        return "–"
    return "too wide" if made.vague else f"{made.text}{'' if made.scale == 100 else f' {made.unit}'}".rstrip()


def levels(claim: Claim, names: Mapping[str, str] | None = None) -> str:
    """The shares of both groups next to their names, the reference first; empty where there are none."""
    if claim.shares is None:
        return ""
    sides = zip(claim.groups or ("these", "neutral edits"), claim.shares, strict=True)
    named = (f"{(names or {}).get(group) or words.group(group)} {words.percent(share, 0)}" for group, share in sides)
    return " · ".join(reversed([*named]))


def verdict(claim: Claim) -> str:
    """``▲ shown`` and its like."""
    symbol = words.SYMBOLS[claim.verdict]
    if claim.verdict == "bounded" and claim.delta is not None:
        return f"{symbol} below {limit(claim)}"
    return words.verdict(claim.verdict)


def limit(claim: Claim) -> str:
    """Delta with its unit."""
    delta = claim.delta or 0.0
    return in_unit(f"{delta:g}", claim.unit) if claim.scale == "number" else in_unit(f"{100 * delta:g}", "points")


def apart(claim: Claim) -> str:
    """Why the net difference is another than that of the shares; empty where it is the same."""
    made = effect(claim)
    if claim.shares is None or made is None or made.scale != 100 or made.vague:
        return ""
    raw = claim.shares[0] - claim.shares[1]
    if abs(made.value - raw) < APART:
        return ""
    fixed = claim.words_estimate
    if claim.scale != "share" or fixed is None or abs(made.value - fixed) < APART:
        return EDITS
    return BOTH if abs(fixed - raw) >= APART else SHARED


def reason(claim: Claim) -> str:
    """Why nothing was shown and nothing bounded, and what it would take."""
    said = [claim.why]
    if claim.calls_needed is not None:
        target = limit(claim) if claim.delta else in_unit(f"{100 * USUAL_DELTA:g}", "points")
        said.append(f"about {claim.calls_needed:,} calls would show {target}")
    return words.visible("; ".join(filter(None, said)), newlines=False)


def chance(p: float | None) -> str:
    """How many of 100 runs of a model without the difference would show one like it, as a sentence."""
    if p is None:
        return ""
    base = next((base for base in (10_000, 1_000, 100) if p < 1 / base), 0)
    often = f"fewer than 1 of {base:,}" if base else f"about {100 * p:.0f} of 100"
    return f"Chance alone would give this in {often} such runs."


def would_be_seen(claim: Claim, comparisons: int) -> str:
    """The smallest difference that 8 of 10 such runs would show, with its unit; empty where none would be."""
    from scipy.stats import norm

    odds = _odds(claim)
    if odds is None or not odds.high > odds.low:
        return ""
    error = (odds.high - odds.low) / (2 * norm.isf(0.025))
    smallest = float(error * (norm.isf(0.025 / max(1, comparisons)) + norm.isf(0.2)))
    if claim.scale != "share":
        said = f"{words.figure(float(f'{smallest:.2g}'))} {claim.unit}".rstrip()
        if claim.scale != "log_odds" or claim.shares is None:
            return said
        share = min(max(sum(claim.shares) / 2, 0.01), 0.99)
        points = 100 * (share / (share + (1 - share) * math.exp(-smallest)) - share)
        return f"about {points:.{0 if points >= 10 else 1}f} points ({said})"
    return in_unit(f"{100 * smallest:.{0 if smallest >= 0.01 else 1}f}", "points") if smallest < 1 else ""


# -- sentences --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One claim in sentences, about the group that it is worse for, as far as that is known."""

    claim: Claim
    who: str  # "Women were invited in 43 of 100 texts, men in 60."
    amount: str  # "That is 17 points less (95 %: 10 to 24)."; empty where the first sentence says it
    scores: str  # what the log odds say, where the verdict rests on them
    scope: str  # which words the claim is about, where it is about no whole group
    limit: str  # where delta lies against the interval; empty without one

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who, by how much, for whom."""
        return tuple(filter(None, (self.who, self.amount, self.scores, self.scope)))

    @property
    def sentence(self) -> str:
        """The same in one paragraph, and on how many texts."""
        return " ".join((*self.sentences, f"{words.plural(self.claim.texts, 'text')}."))


def state(record: RunRecord, claim: Claim) -> Statement | None:
    """Say who gets what more or less often than whom; None where there is no figure."""
    if (made := effect(claim)) is None or not (claim.groups or claim.shares or claim.family == "omnibus"):
        return None
    group, reference = claim.groups or ("", "")
    good = claim.family == "net" and (claim.scale == "number" or claim.label == record.vocabulary.favourable)
    bad = claim.family == "refusal"
    # The one who is worse off is named first; against all others there is no other to name.
    turned = reference not in ("", OTHERS) and ((good and made.value > 0) or (bad and made.value < 0))
    if turned:
        group, reference, made = reference, group, made.turned()
    who, amount = _said(record, claim, group, reference, made, turned=turned)
    return Statement(
        claim=claim,
        who=words.sentence(who),
        amount=words.sentence(amount),
        scores=_scores(claim, made, turned=turned) if claim.family not in ("interaction", "omnibus") else "",
        scope=_scope(record, claim),
        limit=_beside_limit(claim, made),
    )


def _beside_limit(claim: Claim, made: Effect) -> str:
    if not claim.delta or (claim.scale == "log_odds" and made.scale != 100):
        return ""
    if made.nearest > claim.delta:
        return f"The whole interval is beyond the limit of {limit(claim)}."
    if abs(made.value) > claim.delta:
        return f"The estimate is beyond the limit of {limit(claim)}, but part of the interval is not."
    return f"The estimate is within the limit of {limit(claim)}."


def _said(
    record: RunRecord, claim: Claim, group: str, reference: str, made: Effect, *, turned: bool
) -> tuple[str, str]:
    if claim.family == "interaction":  # what one group of an attribute adds between two groups of another
        sides = zip(claim.attribute.split("+"), *(side.split("+") for side in claim.groups), strict=False)
        (first, than), (second, others) = (
            (_who(record, a, g), "others" if r == OTHERS else _who(record, a, r)) for a, g, r in sides
        )
        what = f"“{words.visible(claim.label, newlines=False)}”" if claim.label else "the answer"
        higher = "higher" if made.value > 0 else "lower"
        return (
            f"{first} against {than}: their difference in {what} is {higher} for {second} than for {others}",
            f"it is {made.size(higher)}",
        )
    if claim.family == "omnibus":
        names, (amount, interval) = words.attributes([claim.attribute]), made.parts
        return f"words about {names} move answers {amount} further than as many neutral words {interval}", ""
    more = "more" if made.value > 0 else "less"
    if not claim.groups:
        names = words.attributes(claim.attribute.split("+"))
        this, that = (
            f"answers changed in {{}} of {{}} texts when {names} was edited",
            "neutral edits changed them in {}",
        )
    else:
        whom = "others" if reference == OTHERS else _who(record, claim.attribute, reference)
        who = _who(record, claim.attribute, group)
        if claim.scale == "number":
            if got := words.named(f"written_{more}").get(claim.label):
                return f"{who} got {got} than {whom}: {made.size(more)}", ""
            amount, interval = made.parts
            return f"{who} were given {amount} {more} than {whom} {interval}", ""
        done = words.named("done_to_people").get(claim.label) if claim.label == record.vocabulary.favourable else None
        gets = f"were {done}" if done else f"got “{words.visible(claim.label, newlines=False)}”"
        gets = "got a refusal or an answer that cannot be read" if claim.family == "refusal" else gets
        this, that = f"{who} {gets} in {{}} of {{}} texts", f"{whom} in {{}}"
    if claim.shares is None:
        return f"{this.replace(' in {} of {} texts', '')}: {made.size(more)}", ""
    shares = (claim.shares[1], claim.shares[0]) if turned else claim.shares
    first, second, base = frequency(*shares, fine=claim.verdict == "shown")
    who = f"{this.format(first, base)}, {that.format(second)}"
    if made.scale != 100:
        return who, ""  # the scores say it
    if made.vague:
        return who, "the texts are too few to tell by how much"
    why, against = apart(claim), (shares[0] - shares[1]) * made.value < 0
    return who, f"{f'{why}, ' if why else ''}{'it is the other way round:' if against else 'that is'} {made.size(more)}"


def frequency(group: float, reference: float, *, fine: bool = True) -> tuple[str, str, str]:
    """Two shares as counts of 100; ``fine``: of 1,000 where 100 cannot tell them apart, or one from nothing."""
    both = (group, reference)
    small = any(0 < share < 0.005 or 0.995 < share < 1 for share in both)
    alike = group != reference and round(100 * group) == round(100 * reference)
    base = 1000 if fine and (small or alike) else 100
    return f"{base * group:,.0f}", f"{base * reference:,.0f}", f"{base:,}"


def _scores(claim: Claim, made: Effect, *, turned: bool) -> str:
    """What the log odds say, on which the verdict rests."""
    odds = _odds(claim)
    if claim.scale != "log_odds" or odds is None:
        return ""
    odds = odds.turned() if turned else odds
    share = claim.share_difference
    if made.scale == 100:
        way = "the same way" if odds.value * made.value >= 0 else "the other way"
        return f"The scores, on which the verdict rests, lean {way}: {odds.full}."
    opposite = share is not None and share * (claim.estimate or 0.0) < 0 and abs(share) >= APART
    labels = "The labels lean the other way" if opposite else "The labels hardly differ"
    lower = "higher" if odds.value > 0 else "lower"
    return f"{labels}; the scores for “{words.visible(claim.label, newlines=False)}” are {lower}: {odds.full}."


def _scope(record: RunRecord, claim: Claim) -> str:
    """Which words a claim is about, where they are few or the wording alone was recorded."""
    if claim.scope == "wording":
        names = [f"“{words.visible(g, newlines=False)}”" for g in claim.groups if g != OTHERS]
        of = f" of {words.listing(names)}" if names else ""
        return f"It holds for the recorded wording{of}; other wordings were not recorded."
    if claim.scope != "words" or claim.verdict != "shown":
        return ""
    by_group = written(record).items()
    mine = [w for (name, group), own in by_group if name == claim.attribute and group in claim.groups for w in own]
    if not mine:
        return "It is about the few words used for the group, not about the group."
    named = [f"“{words.visible(word, newlines=False)}”" for word in mine[:MOST_WORDS]]
    left = len(mine) - len(named)
    return f"It is about the words {words.listing([*named, *([f'{left} more'] if left else [])])}, not about the group."


def written(record: RunRecord) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the words that were written for each (attribute, group), from the diagnosis of words."""
    tokens = [t for section in record.tokens for t in section.tokens]
    by_group: dict[tuple[str, str], set[str]] = {}
    known: set[tuple[str, str]] = set()
    for token in sorted(tokens, key=lambda t: "," in t.group):
        key = (token.family, token.token)
        if "," not in token.group or key not in known:  # next to words for another group: listed with its own alone
            by_group.setdefault((token.family, token.group), set()).add(token.token)
        known.add(key)
    return {key: tuple(sorted(mine)) for key, mine in sorted(by_group.items())}


def of_finding(record: RunRecord, finding: Finding) -> Claim | None:
    """The claim that a finding goes by; None where there is none, as in runs of 0.2."""
    return None if finding.claim is None or not record.claims else record.claims[finding.claim]


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


# -- what nothing is said about -----------------------------------------------------------------------------


def tested(record: RunRecord) -> set[str]:
    """The attributes, and sets of them, of which something was tested; net claims decide it where there are some."""
    if record.claims is None:  # a run of an older version
        return {a for e in record.estimates for a in e.attributes}
    net = {c.attribute for c in record.claims if c.family == "net"}
    of = (c for c in record.claims if c.family == "net" or c.attribute not in net)
    return {c.attribute for c in of if c.verdict != "not_tested"}


def not_tested(record: RunRecord) -> Iterator[str]:
    """The attributes of which nothing is said, and why: the one list that all reports print."""
    edited, known = record.vocabulary.groups, tested(record)
    net: dict[str, list[Claim]] = {}
    for claim in record.claims or ():
        if claim.family == "net":
            net.setdefault(claim.attribute, []).append(claim)
    for attribute, mine in net.items():
        if attribute not in known:
            best = max(mine, key=lambda c: c.texts)
            why = reason(best)
            if best.texts < MIN_TEXTS:
                why = f"{words.plural(best.texts, 'text')}, {MIN_TEXTS} are needed"
            if attribute in edited and not best.texts:  # texts were changed, and no two answers can be compared
                lost = any(n for kind, n in record.counts.lost.items() if kind != "failed")
                why = "no answer could be read" if lost else "no answers to compare"
            yield f"{words.visible(attribute)} ({why})"
        elif waiting := [c for c in mine if c.verdict == "not_tested" and c.p_value is not None]:
            groups = words.plural(len(waiting), "single group")
            yield f"{groups} of {words.visible(attribute)} ({waiting[0].why.partition(', so ')[0]})"
    for name, one in record.provenance.too_few_texts.items():
        yield f"{words.visible(name)} ({words.plural(one.texts, 'text')}, {one.needed} are needed: not asked)"
    rated = () if record.claims else {a for e in record.estimates for a in e.attributes}  # of a run without claims
    looked_for = [a for a in record.vocabulary.attributes if a not in net and a not in rated]
    if asked := [words.group(words.visible(a)) for a in looked_for if a in edited]:
        yield f"{', '.join(asked)} (no answers to compare)"
    silent = [words.group(words.visible(a)) for a in looked_for if a not in edited]
    if silent and not record.figures:  # a suite with figures of its own has texts of its own
        yield f"{', '.join(silent)} (no text names them)"


# -- findings ---------------------------------------------------------------------------------------------


def rows(record: RunRecord) -> list[Card]:
    """Every finding, the shown ones first, then in the order of the record."""
    return sorted((card_of(record, f) for f in record.findings), key=lambda row: words.RANK.get(row.finding.verdict, 4))


def card_of(record: RunRecord, finding: Finding) -> Card:
    """One finding with what is said of it."""
    waiver = record.waived.get(finding.id)
    return Card(finding=finding, sentence=sentence(record, finding), notes=notes(record, finding), waiver=waiver)


def sentence(record: RunRecord, finding: Finding) -> str:
    """One finding in plain words: what was measured, on how much, how far it is supported."""
    if not finding.code:  # a variant that was asked for by its id
        return words.sentence(finding.text)
    if record.spec.kind == "tabular":
        text = f"{finding.model}: {finding.text or finding.code}"
        return (f"{text}: {words.rate_text(finding.rate)}" if finding.rate else text).rstrip(".") + "."
    of_rate, claim = finding.code.startswith(RATES), of_finding(record, finding)
    if claim is not None and not of_rate and (said := state(record, claim)) is not None:
        return said.sentence
    noun, model, rate = words.noun(record), finding.model or "the model", finding.rate
    what = words.direction(finding.directions) or words.attributes(finding.attributes)
    if finding.kind == "hidden":
        return f"The {noun} of {model} changed only when {words.attributes(finding.attributes)} changed together."
    if finding.kind == "violation":
        return f"The {noun} of {model} changed with {what}."
    if not of_rate and finding.text:
        return f"{model}: {finding.text.rstrip('.')}."
    if rate is None:
        return f"No rate was measured for {what} on {model}."
    again = f"; the same prompt asked again: {words.interval(finding.noise)}" if finding.noise else ""
    figures, texts = words.interval(rate, level=True), words.plural(rate.n, "text")
    return f"The {noun} of {model} changed in {figures} of the variants of {texts} when {what} changed{again}."


def notes(record: RunRecord, finding: Finding) -> tuple[str, ...]:
    """What else is known of a finding: why its claim is open, and what it says with exactly these words."""
    if (claim := of_finding(record, finding)) is None:
        return finding.notes
    if finding.code.startswith(RATES):
        beside = state(record, claim)  # what neutral edits did
        return tuple(filter(None, (beside.sentence if beside else "", reason(claim), *finding.notes)))
    low, high, scale = claim.words_low, claim.words_high, 100.0 if claim.scale == "share" else 1.0
    fixed = []
    if claim.family in ("net", "refusal") and claim.words_estimate is not None and low is not None and high is not None:
        unit = "points" if claim.scale == "share" else claim.unit
        with_words = Effect(value=claim.words_estimate, low=low, high=high, unit=unit, scale=scale)
        fixed = [f"with exactly these words: {with_words.full}; {claim.words:.1f} effective words"]
    return tuple(filter(None, (reason(claim), *fixed, *finding.notes)))


def title(record: RunRecord) -> str:
    """The heading of a report."""
    spec = record.spec
    if spec.kind == "tabular":
        return f"Tabular bias test report: {spec.data or spec.task or 'rows'}"
    return f"Bias test report: {spec.asked or 'unnamed task'}"


def summary(record: RunRecord) -> str:
    """How many findings carry which verdict, in one sentence."""
    verdicts, shown = [f.verdict for f in record.findings], [f for f in record.findings if f.verdict == "shown"]
    listed = ", ".join(f"{verdicts.count(name)} {words.VERDICTS[name]}" for name in words.RANK if name in verdicts)
    notes = {
        "of the shown about one text, not about a rate": sum(f.kind == "hidden" for f in shown),
        "of the shown waived": sum(f.id in record.waived for f in shown),
    }
    said = "; ".join(f"{n} {what}" for what, n in notes.items() if n)
    counted = words.plural(len(verdicts), "finding") + (f": {listed}" if listed else "")
    return f"{counted} ({said})." if said else f"{counted}."


def hidden(record: RunRecord) -> list[Finding]:
    """The findings about hidden changes of one text, those shown first."""
    mine = [f for f in record.findings if f.kind == "hidden"]
    return sorted(mine, key=lambda f: (words.RANK.get(f.verdict, 4), f.model, f.id))


def none_hidden(record: RunRecord) -> str:
    """What is said where there is no hidden finding."""
    if any(record.hinter.values()):
        return "This protocol records no findings. The paper's own counting gives the hidden share."
    return "None was recorded. This is about the variants that were asked, not about others."
