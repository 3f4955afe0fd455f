"""The first screen of every report: who is worse off, by how much, how sure, and what to do next.

It is built from the claims of the record (`auditor.measure.claims.Claim`); the sentences are those of `claimed`.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import bidirectional

from auditor.core import waivers
from auditor.core.record import Asked, Claim, RunRecord
from auditor.core.record.base import NOT_CLEAR
from auditor.measure.claims import OTHERS
from auditor.report import change_rates, claimed, proposed, run_checks, words
from auditor.report.claimed import Statement

LABELS = 4  # labels whose share the line of checks names
ALSO = 3  # further shown differences that are named below the first
APART = 2  # sentences on texts that can be told apart by their words
FAMILIES = {"refusal": "refused", "instability": "any change", "interaction": "interaction", "omnibus": "its words"}
Names = Mapping[tuple[str, str], str]  # (model, format) → what it is called; empty where there is one


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One comparison: a line of the forest plot."""

    claim: Claim
    model: str  # as the subject is called; empty where there is one
    name: str  # of the attribute
    label: str  # the share of each group next to its name
    effect: claimed.Effect | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """What is read first, in this order."""

    ran: str
    banners: tuple[str, ...]
    kind: str  # the verdict of the headline
    headline: tuple[str, ...]  # sentences: who gets what how often, by how much, on how many texts of which model
    sure: tuple[str, ...]  # sentences: how sure, and against what
    also: tuple[str, ...]  # further differences that were shown
    example: proposed.Example | None
    label: str  # whose share rows have; empty for numbers
    rows: tuple[Row, ...]
    note: str  # why shares and net differences are not the same; empty where they are
    checked: tuple[str, ...]
    not_tested: tuple[str, ...]
    next: tuple[tuple[str, str], ...]  # (command, what it gives)

    @property
    def todo(self) -> list[tuple[str, str]]:
        """What to do besides reading the report."""
        return [one for one in self.next if not one[0].startswith("audit report")]

    @property
    def scale(self) -> tuple[float, str]:
        """Scale and unit of most rows: what a plot is drawn in; others have figures alone."""
        drawn = [(r.effect.scale, r.effect.unit) for r in self.rows if r.effect is not None and not r.effect.vague]
        return max(drawn, key=drawn.count, default=(1.0, ""))

    @property
    def axis(self) -> str:
        """What the differences are, as the title of a plot or column."""
        scale, unit = self.scale
        one = self.label and scale == 100 and all(r.claim.family == "net" for r in self.rows)
        of = f" of “{self.label}”" if one else ""
        return f"net difference{f', {unit}' if unit else ''}{of} (95 %)"

    def chosen(self, rows: int, each: int) -> list[Row]:
        """The first ``each`` rows of each attribute of a model, and ``rows`` in all."""
        kept: Counter[tuple[str, str]] = Counter()
        chosen = []
        for row in self.rows:
            kept[row.model, row.name] += 1
            chosen += [row] if kept[row.model, row.name] <= each else []
        return chosen[:rows]

    def drawn(self, row: Row) -> claimed.Effect | None:
        """The effect of a row that a plot can draw."""
        made = row.effect
        return made if made is not None and not made.vague and (made.scale, made.unit) == self.scale else None


def build(record: RunRecord, evidence: object) -> Screen:
    """Return the first screen of a run over texts."""
    claims = record.claims or ()
    names = subjects(claims)
    leading = sorted((c for c in claims if c.verdict == "shown"), key=claimed.order)
    statements = [made for c in leading if (made := claimed.state(record, c)) is not None]
    first = statements[0] if statements and statements[0].claim is leading[0] else None
    example = None if first is None else proposed.example(record, evidence, first.claim)
    kind, headline, sure = _answer(record, first)
    others = sorted(statements[1:] if first else [], key=lambda one: one.claim.family != "net")[:ALSO]
    cannot = run_checks.cannot_judge(record)
    stopped = record.models if record.stopped_by == "control" else ()
    alike = {*stopped, *(c.model for c in record.cautions if c.code == "constant_answers")}  # nothing to draw
    checked: dict[str, list[str]] = {}  # what was seen → the models of which it is the same
    for name, seen in _checks(record):
        checked.setdefault(seen, []).append(name)
    picked = _picked([c for c in claims if c.model not in alike], names, leading[0] if leading else None)
    labels = {c.label for c in picked if c.family == "net" and c.shares is not None}
    label = labels.pop() if len(labels) == 1 else ""  # none where there are several, or refusals alone
    rows = []
    for c in picked:
        attribute = words.attributes(c.attribute.split("+"))
        attribute += f" ({FAMILIES.get(c.family, c.family)})" if c.family != "net" else ""
        who = claimed.levels(c) or " against ".join(words.group(g) for g in c.groups)
        if c.label and c.label != label and c.shares:
            who += f", “{words.visible(c.label, newlines=False)}”"
        model = names[c.model, c.format]
        rows.append(Row(claim=c, model=model, name=attribute, label=who, effect=claimed.effect(c)))
    alone = (row.effect is not None and row.effect.nearest > 0 for row in rows if row.claim.verdict == "not_determined")
    notes = {"net_alone": any(alone), "net_differs": any(map(claimed.apart, picked))}
    further = (proposed.example(record, evidence, one.claim) for one in statements if one is not first)
    return Screen(
        ran=_ran(record),
        banners=tuple(banner for banner in run_checks.banners(record) if banner not in cannot),
        kind=kind,
        headline=tuple(headline),
        sure=tuple(filter(None, sure)),
        also=tuple(
            ": ".join(filter(None, (names[one.claim.model, one.claim.format], " ".join(one.sentences))))
            for one in others
        ),
        example=example,
        label=label,
        rows=tuple(rows),
        note=" ".join(words.text(name) for name, holds in notes.items() if holds),
        checked=tuple(f"{words.listing(of)}: {seen}" if of[0] else seen for seen, of in checked.items()),
        not_tested=tuple(claimed.not_tested(record)),
        next=tuple(proposed.following(record, example or next(filter(None, further), None))),
    )


def _ran(record: RunRecord) -> str:
    spec, counts, seconds = record.spec, record.counts, record.provenance.seconds
    parts = [
        spec.asked or "task not recorded",
        ", ".join(record.models or spec.models or ["no model"]),
        words.plural(counts.seeds, "text") if counts.seeds is not None else "",
        words.asked(counts),
        words.plural(counts.answers, "recorded answer") if counts.answers is not None else "",
        f"{seconds:,.0f} s" if seconds is not None else "",
        words.cost(counts),
        record.status,
    ]
    return " · ".join(filter(None, parts))


def subjects(claims: Sequence[Claim]) -> dict[tuple[str, str], str]:
    """(model, format) → what it is called; empty where there is one only."""
    names = words.places((c.model, c.format) for c in claims)
    return names if len(names) > 1 else dict.fromkeys(names, "")


Answer = tuple[str, Sequence[str], Sequence[str]]  # verdict, headline, how sure


def _answer(record: RunRecord, first: Statement | None) -> Answer:
    if first is not None:
        claim = first.claim
        sure = [claimed.chance(claim.p_adjusted), first.scores, first.scope, first.limit, *_controls(record, claim)]
        return claim.verdict, [first.who, *filter(None, [first.amount]), _basis(record, claim)], sure
    if cannot := run_checks.cannot_judge(record):
        return "not_tested", cannot, []
    other = record.spec.protocol != "default" or record.probability is not None  # makes no claims, only rates
    if record.claims is None or (
        not record.claims and (other or (record.spec.kind == "generation" and not record.figures))
    ):
        return "not_tested", list(change_rates.Rates(record).said()), []
    net = [c for c in record.claims if c.family == "net"]
    tested = [c for c in net if c.verdict != "not_tested"]
    if not tested:
        few = f"{words.plural(len(net), 'comparison')} had too few texts" if net else "no text was compared"
        said = f"Nothing was tested: {few}."
        if any(run_checks.nothing(record, model) for model in record.models):
            said = "Nothing was measured: no answer could be judged."
        elif record.figures and not net:
            said = "No two texts were compared; what the suite measures is below."
        return "not_tested", [said], []
    bounded = [c for c in tested if c.verdict == "bounded"]
    in_all, untested = words.plural(len(tested), "comparison"), len(net) - len(tested)
    more = f"{words.plural(untested, 'more comparison')} {words.verb(untested, 'was', 'were')} not tested."
    rest = [more] if untested else []
    pairs = [c for c in tested if c.groups[-1:] != (OTHERS,)]
    best = min(pairs or tested, key=lambda c: float("inf") if (e := claimed.effect(c)) is None else e.high - e.low)
    about = claimed.state(record, best)
    seen = [*([about.who] if about is not None else []), _basis(record, best)]
    if len(bounded) == len(tested):
        said = f"Every net difference lies below {claimed.limit(bounded[0])}, in {in_all}."
        return "bounded", [said, *rest], [*seen, *_controls(record, best)]
    below = [f"{words.count(len(bounded))} of them lie below {claimed.limit(bounded[0])}."] if bounded else []
    said = f"No difference between groups was shown, in {in_all}."
    mine = [c for c in pairs if (c.model, c.format) == (best.model, best.format)]
    if amount := claimed.would_be_seen(best, len(mine)):
        seen.append(f"A difference of {amount} in {best.attribute} would have been seen in 8 of 10 such runs.")
    else:
        seen.append(words.sentence(words.visible(best.why, newlines=False)))
    return "not_determined", [said, *below, *rest], [*seen, *_controls(record, best)]


def _basis(record: RunRecord, claim: Claim) -> str:
    model = f"{claim.model}, {claim.format}" if sum(f != "" for f in record.spec.formats) > 1 else claim.model
    model, texts = words.visible(model, newlines=False), words.plural(claim.texts, "text")
    if record.spec.suite == "import":
        return f"{texts}, recorded answers{'' if model == 'recorded' else f' of {model}'}."
    person, what = words.whose(record), words.attributes(claim.attribute.split("+"))
    whose = f", in words about {words.visible(person, newlines=False)}" if person else ""
    return f"{texts}, model {model}: only {words.visible(what, newlines=False)} was changed{whose}."


def _controls(record: RunRecord, claim: Claim) -> Iterator[str]:
    """What neutral edits and the same prompt asked again did."""
    rates = record.controls.of("placebo", claim.model)
    placebo = rates.parts.get(" + ".join(claim.attribute.split("+"))) if rates is not None else None
    if placebo is not None and placebo.estimate is not None:
        yield f"Edits that change no group changed {words.percent(placebo.estimate.value)} of the answers."
    noise = record.controls.of("noise_floor", claim.model)
    if noise is not None and noise.estimate is not None:
        yield f"The same prompt asked again changed {words.percent(noise.estimate.value)}."
    elif record.spec.suite != "import":
        declared = noise is not None and noise.declared
        why = "the model is declared deterministic" if declared else "its noise was not measured"
        yield f"No prompt was asked twice: {why}."


# -- the rows ------------------------------------------------------------------------------------------


def _picked(claims: Sequence[Claim], names: Names, worst: Claim | None) -> list[Claim]:
    """Return net differences that were tested, and what else was shown: by model, attribute and verdict."""
    groups: dict[tuple[str, str, str, str], list[Claim]] = {}
    for claim in claims:
        if claim.verdict == "shown" or (claim.family == "net" and claim.verdict != "not_tested"):
            groups.setdefault((claim.model, claim.format, claim.family, claim.attribute), []).append(claim)
    order = list(names)
    if worst is not None:  # the model of the headline first
        order.sort(key=lambda place: place != (worst.model, worst.format))

    def rank(claim: Claim) -> tuple[object, ...]:
        return words.RANK[claim.verdict], claimed.order(claim)

    for mine in groups.values():
        mine.sort(key=rank)
    by_group = sorted(groups.values(), key=lambda mine: (order.index((mine[0].model, mine[0].format)), rank(mine[0])))
    return [claim for mine in by_group for claim in mine]


# -- what else has to be known -----------------------------------------------------------------------------


def _checks(record: RunRecord) -> Iterator[tuple[str, str]]:
    """(model or nothing, what was seen): positive control, answers by label, what was lost or cached."""
    several = len(record.models) > 1
    for model, asked in record.models.items():
        cached = [f"from cache {words.count(n)}"] if (n := asked.counts.cached) else []
        control = record.controls.of("positive_control")
        parts = control.parts if control is not None else {}
        mine = {key: part for key, part in parts.items() if key == model or key.startswith(f"{model}, ")}
        seen = [] if mine or record.spec.suite == "import" else ["positive control not run"]
        for key, part in mine.items():
            if (made := part.positive) is not None:
                mark = "●" if made.seen else "▲ not seen"
                scored = f", {made.mean:+.1f} log odds" if made.scale == "log_odds" else ""
                seen.append(f"positive control{key.removeprefix(model)} {made.differ}/{made.pairs}{scored} {mark}")
        yield model if several else "", " · ".join([*seen, *_answers(asked), *cached])
    for one in sorted(record.told_apart, key=lambda one: not one.shown)[:APART]:
        yield "", f"words: {words.visible(one.said, newlines=False)}"
    for figure in record.figures or ():
        measured = "nothing to measure"
        if figure.value is not None:
            between = f" (95 %: {figure.low:+.3f} to {figure.high:+.3f})" if figure.low is not None else ""
            measured = f"{figure.value:+.3f}{between}, {words.plural(figure.cases, 'case')}"
        yield figure.model if several else "", f"{words.visible(figure.figure, newlines=False)}: {measured}"
    source = record.provenance.seeds
    if gone := run_checks.dropped(source.skipped, source.repeated):
        yield "", f"left out: {gone}"
    if said := run_checks.golds(record.performance.gold):
        yield "", said
    person, unclear = words.visible(words.whose(record), newlines=False), record.counts.skipped.get(NOT_CLEAR)
    if person and unclear:
        yield "", f"left out: {words.plural(unclear, 'text')} where it is not clear who is {person}"
    unmatched = [w.finding for w in record.waivers.items if w.status == "unmatched" and w.run in (None, record.id)]
    if unmatched:
        close = difflib.get_close_matches(unmatched[0], map(waivers.key, record.findings), n=1)
        meant = f"; did you mean {words.visible(close[0], newlines=False)}?" if close else ""
        named = words.visible(unmatched[0], newlines=False)
        yield "", f"waivers: {words.count(len(unmatched))} without a finding of this run, such as {named}{meant}"
    if waived := len(record.waived):
        yield "", f"waivers: {words.plural(waived, 'finding')} waived, with reasons under --full"


def _answers(asked: Asked) -> Iterator[str]:
    answers, counts = asked.answers, asked.counts
    lost = {
        "refused": (counts.refused or 0) + (counts.filtered or 0),
        "unreadable": counts.unparsed or 0,
        "failed": counts.failed or 0,
    }
    total = sum(answers.values()) + sum(lost.values())
    if answers:
        ranked = sorted(answers.items(), key=lambda kv: -kv[1])
        named = []
        for label, n in ranked[:LABELS]:
            # A word between keeps the order where a label runs from right to left.
            between = " in " if any(bidirectional(character) in ("R", "AL") for character in label) else " "
            named.append(f"{words.visible(label, newlines=False)}{between}{words.percent(n / total, 0)}")
        left = len(ranked) - LABELS
        yield f"answers: {', '.join([*named, *([words.plural(left, 'other label')] if left > 0 else [])])}"
    shares = {name: words.percent(n / total, 0) if n and answers else words.count(n) for name, n in lost.items()}
    if asked.unparsed:
        shares["unreadable"] += f" ({', '.join(map(run_checks.quoted, asked.unparsed))})"
    yield ", ".join(f"{name} {share}" for name, share in shares.items() if lost[name] or name != "failed")
