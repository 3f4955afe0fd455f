"""The first screen of every report: who is worse off, by how much, how sure, and what to do next.

It is built from the claims of the record (`auditor.measure.claims.Claim`), never from sentences; writers lay it out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from auditor.core import waivers
from auditor.core.record import Asked, Claim, RunRecord
from auditor.core.record.base import NOT_CLEAR
from auditor.core.verdict import verdict
from auditor.measure.claims import OTHERS
from auditor.report import claimed, proposed, run_checks, words
from auditor.report.claimed import Statement

LABELS = 4  # labels whose share the line of checks names
ALSO = 3  # further shown differences that are named below the first
APART = 2  # sentences on texts that can be told apart by their words
FAMILIES = {"refusal": "refused", "instability": "any change", "interaction": "interaction"}
SHARES = {"refusal": "refused", "instability": "changed"}  # of what a share is that is about no label
Names = Mapping[tuple[str, str], str]  # (model, format) → what it is called; empty where there is one


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One attribute of one model: the pair of groups that matters most."""

    claim: Claim
    model: str  # as the subject is called; empty where there is one
    name: str
    more: int  # further groups of the attribute
    more_shown: int  # those of them with a difference that was shown

    @property
    def left(self) -> str:
        """What else there is of the attribute; empty where there is nothing."""
        more = words.plural(self.more, "more group") if self.more else ""
        return f"{more}, {words.count(self.more_shown)} shown" if self.more_shown else more


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """What stands first, in the order in which it is read."""

    ran: str
    banners: tuple[str, ...]
    kind: str  # the verdict of the headline
    claim: str  # who gets what less often, capitals where a writer has no size
    figures: str
    support: tuple[str, ...]  # how sure: parts of one line
    also: tuple[str, ...]
    others: int  # differences that were shown beside the one of the headline
    example: proposed.Example | None
    label: str  # whose share "levels" is; empty for numbers
    rows: tuple[Row, ...]
    checked: tuple[str, ...]
    not_tested: tuple[str, ...]
    next: tuple[tuple[str, str], ...]  # (command, what it gives)

    def also_of(self, most: int) -> tuple[str, ...]:
        """The first ``most`` further differences, and how many there are beside them."""
        named = self.also[:most]
        left = self.others - len(named)
        return (*named, f"{words.count(left)} more shown: see the table") if left > 0 else named

    @property
    def between(self) -> str:
        """What stands between the claim and its figures."""
        return " " if self.kind in ("bounded", "not_determined") else ": "

    @property
    def columns(self) -> tuple[str, ...]:
        """Titles of the table's columns; that of the shares only where there are some."""
        levels = (f"“{self.label}”" if self.label else "share",) if any(r.claim.shares for r in self.rows) else ()
        return "group/reference", "texts", *levels, "net difference (95 %)", "verdict"

    def share(self, row: Row) -> str:
        """Return ``17 → 95 % refused`` where the column of shares is about something else; else ""."""
        what = SHARES.get(row.claim.family, "") if self.label and row.claim.shares else ""
        return f"{claimed.levels(row.claim)} {what}" if what else ""

    def cells(self, row: Row) -> tuple[str, ...]:
        """A row under `columns`."""
        claim = row.claim
        levels = ("–" if self.share(row) else claimed.levels(claim),) if any(r.claim.shares for r in self.rows) else ()
        return row.name, words.count(claim.texts), *levels, claimed.net(claim), claimed.verdict(claim)


def build(record: RunRecord, evidence: object) -> Screen | None:
    """The first screen of a run; None where it makes no such claims (other oracles, old runs)."""
    if record.claims is None or record.spec.protocol != "default" or record.probability:
        return None
    if record.spec.kind == "generation" and not record.claims:
        return None  # of a version that made none of texts
    names = subjects(record.claims)
    leading = sorted((c for c in record.claims if c.verdict == "shown"), key=claimed.order)
    statements = [made for c in leading if (made := claimed.state(record, c)) is not None]
    first = statements[0] if statements and statements[0].claim is leading[0] else None
    example = None if first is None else proposed.example(record, evidence, first)
    kind, claim, figures = _headline(record, first, names)
    others = sorted(leading[1:], key=lambda c: c.family != "net")[:ALSO]
    picked = _picked(record.claims, names, leading[0] if leading else None)
    label = _label([claim for claim, _ in picked])
    further = (proposed.example(record, evidence, one) for one in statements if one is not first)
    return Screen(
        ran=_ran(record),
        banners=run_checks.banners(record),
        kind=kind,
        claim=claim,
        figures=figures,
        support=() if first is None else tuple(_support(record, first)),
        others=max(0, len(leading) - 1),
        also=tuple(_also(one, names) for one in filter(None, (claimed.state(record, c) for c in others))),
        example=example,
        label=label,
        rows=tuple(_row(claim, names[claim.model, claim.format], others, label) for claim, others in picked),
        checked=tuple(_checked(record)),
        not_tested=tuple(_not_tested(record, record.claims)),
        next=proposed.following(record, record.claims, example or next(filter(None, further), None)),
    )


def _ran(record: RunRecord) -> str:
    """Task, models, texts, calls, seconds, cost, status."""
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


def _headline(record: RunRecord, first: Statement | None, names: Names) -> tuple[str, str, str]:
    """(verdict, who gets what, figures)."""
    if first is not None:
        claim, person = first.claim, words.whose(record)
        whose = f" in words about {words.visible(person, newlines=False)}" if person else ""
        figures = (
            f"{first.figures} when only {words.attributes(claim.attribute.split('+'))} changes{whose}, "
            f"{words.plural(claim.texts, 'text')}{_by(claim, names)}"
        )
        return claim.verdict, first.subject, figures
    net = [c for c in record.claims or () if c.family == "net"]
    tested = [c for c in net if c.verdict != "not_tested"]
    if not tested:
        if any(run_checks.nothing(record, model) for model in record.models):
            return "not_tested", "nothing was measured", "no answer could be judged"
        if record.figures and not net:
            return "not_tested", "no two texts were compared", "what the suite measures stands below"
        few = f"{words.plural(len(net), 'comparison')} with too few texts" if net else "no text was compared"
        return "not_tested", "nothing was tested", few
    if (made := verdict(record)).state == "cannot be judged":
        return "not_tested", "this run cannot be judged", "; ".join(made.why)
    bounded = [c for c in tested if c.verdict == "bounded"]
    untested = len(net) - len(tested)
    rest = f"; {words.count(untested)} more had too few texts" if untested else ""
    in_all = words.plural(len(tested), "comparison")
    if len(bounded) == len(tested):
        return "bounded", f"every net difference lies below {claimed.limit(bounded[0])}", f"in {in_all}{rest}"
    below = f", {words.count(len(bounded))} of them below {claimed.limit(bounded[0])}" if bounded else ""
    return "not_determined", "no net difference was shown", f"in {in_all}{below}{rest}"


def _support(record: RunRecord, first: Statement) -> Iterator[str]:
    """How sure: for whom it holds, the limit, what placebo edits and the same prompt do."""
    claim, controls = first.claim, record.controls
    yield f"{claimed.ABOUT[claim.scope]}" + (f", {claim.words:.0f} words" if claim.words else "")
    yield from [f"decided on log odds: {first.log_odds}"] if first.log_odds else []
    yield from [first.limit] if first.limit else []
    rates = controls.of("placebo", claim.model)
    placebo = rates.parts.get(" + ".join(claim.attribute.split("+"))) if rates is not None else None
    if placebo is not None and placebo.estimate is not None:
        yield f"placebo edits change {words.percent(placebo.estimate.value)} of answers"
    noise = controls.of("noise_floor", claim.model)
    if noise is not None and noise.estimate is not None:
        yield f"same prompt again {words.percent(noise.estimate.value)}"
    else:
        declared = noise is not None and noise.declared
        yield f"same prompt again: {'declared to give the same answer' if declared else 'not measured'}"


def _by(claim: Claim, names: Names) -> str:
    """Which model (and format) a claim is of, where there are several."""
    name = names.get((claim.model, claim.format))
    return f" by {name}" if name else ""


def _also(one: Statement, names: Names) -> str:
    return f"{one.subject[:1].upper()}{one.subject[1:]}: {one.figures}{_by(one.claim, names)}"


# -- the table ------------------------------------------------------------------------------------------


def _picked(claims: Sequence[Claim], names: Names, worst: Claim | None) -> list[tuple[Claim, list[Claim]]]:
    """Return the claim of each attribute of each model that matters most, in order, with the others of it.

    Attributes with too few texts are listed below the table.
    """
    groups: dict[tuple[str, str, str, str], list[Claim]] = {}
    for claim in claims:
        listed = claim.family in ("net", "interaction") or claim.verdict == "shown"
        if listed and claim.verdict != "not_tested":
            groups.setdefault((claim.model, claim.format, claim.family, claim.attribute), []).append(claim)
    order = list(names)
    if worst is not None:  # the model of the headline first
        order.sort(key=lambda place: place != (worst.model, worst.format))

    def rank(one: tuple[Claim, list[Claim]]) -> tuple[object, ...]:
        claim = one[0]
        place = order.index((claim.model, claim.format))
        return place, words.RANK[claim.verdict], claimed.order(claim)[:5], -claimed.clear(claim)

    return sorted(((lead := _leading(mine), [c for c in mine if c is not lead]) for mine in groups.values()), key=rank)


def _label(claims: Sequence[Claim]) -> str:
    """Return the label whose shares the rows have; "" where there are several labels, or refusals alone."""
    labels = {c.label for c in claims if c.family == "net" and c.shares is not None}
    return labels.pop() if len(labels) == 1 else ""


def _leading(claims: Sequence[Claim]) -> Claim:
    """For an attribute: what was shown, else the dictionary's own pair, else what lies furthest from none."""
    if shown := [c for c in claims if c.verdict == "shown"]:
        return min(shown, key=claimed.order)
    own = [c for c in claims if c.groups and c.groups[-1] != OTHERS]
    return own[0] if own and len(own) < len(claims) else max(claims, key=claimed.clear)


def _row(claim: Claim, model: str, others: Sequence[Claim], label: str) -> Row:
    """Return the row of a claim; it names its label where the column does not."""
    groups = [words.group(g) for g in claim.groups if g != OTHERS]
    name = words.attributes(claim.attribute.split("+")) + (f": {'/'.join(groups)}" if groups else "")
    name += f" ({FAMILIES[claim.family]})" if claim.family != "net" else ""
    name += (
        f", “{words.visible(claim.label, newlines=False)}”"
        if claim.label and claim.label != label and claim.shares
        else ""
    )
    shown = sum(c.verdict == "shown" for c in others)
    return Row(claim=claim, model=model, name=name, more=len(others), more_shown=shown)


# -- what else has to be known -----------------------------------------------------------------------------


def _checked(record: RunRecord) -> Iterator[str]:
    """What was seen, the models beside each other of which it is the same."""
    models: dict[str, list[str]] = {}
    for name, seen in _checks(record):
        models.setdefault(seen, []).append(name)
    return (f"{words.listing(names)}: {seen}" if names[0] else seen for seen, names in models.items())


def _checks(record: RunRecord) -> Iterator[tuple[str, str]]:
    """(model or nothing, what was seen): positive control, answers by label, what was lost or cached."""
    several = len(record.models) > 1
    for model, asked in record.models.items():
        cached = [f"from cache {words.count(n)}"] if (n := asked.counts.cached) else []
        yield model if several else "", " · ".join([*_control(record, model), *_answers(asked), *cached])
    for one in sorted(record.told_apart, key=lambda one: not one.shown)[:APART]:
        yield "", f"words: {words.visible(one.said, newlines=False)}"
    for figure in record.figures or ():
        seen = "nothing to measure"
        if figure.value is not None:
            between = f" (95 %: {figure.low:+.3f} to {figure.high:+.3f})" if figure.low is not None else ""
            seen = f"{figure.value:+.3f}{between}, {words.plural(figure.cases, 'case')}"
        yield figure.model if several else "", f"{words.visible(figure.figure, newlines=False)}: {seen}"
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


def _control(record: RunRecord, model: str) -> Iterator[str]:
    control = record.controls.of("positive_control")
    parts = control.parts if control is not None else {}
    mine = {key: part for key, part in parts.items() if key == model or key.startswith(f"{model}, ")}
    for key, part in mine.items():
        if (made := part.positive) is not None:
            mark = "●" if made.seen else "▲ not seen"
            scored = f", {made.mean:+.1f} log odds" if made.scale == "log_odds" else ""
            yield f"positive control{key.removeprefix(model)} {made.differ}/{made.pairs}{scored} {mark}"
    if not mine and record.spec.suite != "import":
        yield "positive control not run"


def _answers(asked: Asked) -> Iterator[str]:
    """Shares of the labels, and of answers that were lost."""
    answers, counts = asked.answers, asked.counts
    lost = {
        "refused": (counts.refused or 0) + (counts.filtered or 0),
        "unreadable": counts.unparsed or 0,
        "failed": counts.failed or 0,
    }
    total = sum(answers.values()) + sum(lost.values())
    if answers:
        ranked = sorted(answers.items(), key=lambda kv: -kv[1])
        named = [f"{words.visible(k, newlines=False)} {words.percent(n / total, 0)}" for k, n in ranked[:LABELS]]
        left = len(ranked) - LABELS
        yield f"answers: {', '.join([*named, *([words.plural(left, 'other label')] if left > 0 else [])])}"
    shares = {name: words.percent(n / total, 0) if n and answers else words.count(n) for name, n in lost.items()}
    if asked.unparsed:
        shares["unreadable"] += f" ({', '.join(map(run_checks.quoted, asked.unparsed))})"
    yield ", ".join(f"{name} {share}" for name, share in shares.items() if lost[name] or name != "failed")


def _not_tested(record: RunRecord, claims: Iterable[Claim]) -> Iterator[str]:
    """Attributes of which nothing is said, and why."""
    edited = record.vocabulary.groups
    by_attribute: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.family == "net":
            by_attribute.setdefault(claim.attribute, []).append(claim)
    for attribute, mine in by_attribute.items():
        if all(c.verdict == "not_tested" for c in mine):
            best = max(mine, key=lambda c: c.texts)
            why = claimed.too_few(best) or claimed.reason(best)
            if attribute in edited and not best.texts:  # texts were changed, and no two answers can be compared
                lost = any(n for kind, n in record.counts.lost.items() if kind != "failed")
                why = "no answer could be read" if lost else "no answers to compare"
            yield f"{words.visible(attribute)} ({why})"
    for name, one in record.provenance.too_few_texts.items():
        yield f"{words.visible(name)} ({words.plural(one.texts, 'text')}, {one.needed} are needed: not asked)"
    looked_for = [a for a in record.vocabulary.attributes if a not in by_attribute]
    if asked := [words.group(words.visible(a)) for a in looked_for if a in edited]:
        yield f"{', '.join(asked)} (no answers to compare)"
    silent = [words.group(words.visible(a)) for a in looked_for if a not in edited]
    if silent and not record.figures:  # a suite with figures of its own has texts of its own
        yield f"{', '.join(silent)} (no text names them)"
