"""The first screen of every report: who is worse off, by how much, how sure, and what to do next.

It is built from the claims of the record (`auditor.measure.claims.Claim`), never from sentences; writers lay it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from auditor.core import waivers
from auditor.core.record import Asked, RunRecord
from auditor.core.record.base import Control, SuiteFigure
from auditor.core.types import SHOWN
from auditor.measure.claims import OTHERS, Claim
from auditor.report import checks, claimed, example, proposed, words
from auditor.report.example import Example
from auditor.text.people import NOT_CLEAR

LABELS = 4  # labels whose share the line of checks names
ALSO = 3  # further shown differences that are named below the first
APART = 2  # sentences on texts that can be told apart by their words
FAMILIES = {"refusal": "refused", "instability": "any change", "interaction": "interaction"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One attribute of one model: the pair of groups that matters most."""

    claim: Claim
    model: str  # as the subject is called; empty where there is one
    name: str
    texts: str
    levels: str  # "72 % → 50 %"
    net: str
    verdict: str
    kind: str  # the verdict that colours it
    reason: str
    more: int  # further groups of the attribute
    more_shown: int  # those of them with a difference that was shown

    @property
    def left(self) -> str:
        """What else there is of the attribute; empty where there is nothing."""
        if not self.more:
            return ""
        told = words.plural(self.more, "more group")
        return f"{told}, {words.count(self.more_shown)} shown" if self.more_shown else told


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
    example: Example | None
    label: str  # whose share "levels" is; empty for numbers
    rows: tuple[Row, ...]
    checks: tuple[tuple[str, str], ...]  # (model or nothing, what was seen)
    not_tested: tuple[str, ...]
    next: tuple[tuple[str, str], ...]  # (command, what it gives)

    @property
    def checked(self) -> tuple[str, ...]:
        """The checks, the models beside each other of which they say the same."""
        by_told: dict[str, list[str]] = {}
        for name, told in self.checks:
            by_told.setdefault(told, []).append(name)
        return tuple(f"{words.listing(names)}: {told}" if names[0] else told for told, names in by_told.items())

    def also_of(self, most: int) -> tuple[str, ...]:
        """The first ``most`` further differences, and how many there are beside them."""
        told = self.also[:most]
        left = self.others - len(told)
        return (*told, f"{words.count(left)} more shown: see the table") if left > 0 else told

    @property
    def between(self) -> str:
        """What stands between the claim and its figures."""
        return " " if self.kind in ("bounded", "not_determined") else ": "

    @property
    def columns(self) -> tuple[str, ...]:
        """Titles of the table's columns; that of the shares only where there are some."""
        levels = (f"“{self.label}”" if self.label else "share",) if any(r.levels for r in self.rows) else ()
        return "group/reference", "texts", *levels, "net difference (95 %)", "verdict"

    def cells(self, row: Row) -> tuple[str, ...]:
        """A row under `columns`."""
        levels = (row.levels,) if any(r.levels for r in self.rows) else ()
        return row.name, row.texts, *levels, row.net, row.verdict


def build(record: RunRecord, evidence: object) -> Screen | None:
    """The first screen of a run; None where it makes no such claims (other oracles, old runs)."""
    if record.claims is None or record.spec.protocol != "default" or record.probability:
        return None
    if record.spec.kind == "generation" and not record.claims:
        return None  # of a version that made none of texts
    claims = claimed.of(record)
    names = subjects(claims)
    leading = sorted((c for c in claims if c.verdict in SHOWN), key=claimed.order)
    worst = leading[0] if leading else None
    told = claimed.tell(record, worst) if worst is not None else None
    shown = None if told is None else example.find(record, evidence, told)
    kind, claim, figures = _headline(record, claims, told, names)
    labels = {c.label for c in claims if c.family == "net" and c.scale != "number"}
    return Screen(
        ran=_ran(record),
        banners=tuple(checks.banners(record)),
        kind=kind,
        claim=claim,
        figures=figures,
        support=() if told is None else tuple(_support(record, told)),
        others=max(0, len(leading) - 1),
        also=tuple(_also(record, sorted(leading[1:], key=lambda c: c.family != "net"), names)),
        example=shown,
        label=labels.pop() if len(labels) == 1 else "",
        rows=tuple(_rows(record, claims, names, worst)),
        checks=tuple(_checks(record)),
        not_tested=tuple(_not_tested(record, claims)),
        next=proposed.following(record, claims, shown or _any(record, evidence, leading[1:])),
    )


def _ran(record: RunRecord) -> str:
    """Task, models, texts, calls, seconds, cost, status."""
    spec, counts = record.spec, record.counts
    seconds = record.provenance.seconds
    cost = counts.cost_usd
    parts = [
        spec.task or "task not recorded",
        ", ".join(record.models or spec.models or ["no model"]),
        words.plural(counts.seeds, "text") if counts.seeds is not None else "",
        words.asked(counts),
        words.plural(counts.answers, "recorded answer") if counts.answers is not None else "",
        f"{seconds:,.0f} s" if seconds is not None else "",
        f"USD {cost:,.2f}" if cost else "cost not known" if cost is None and counts.calls is not None else "",
        record.status,
    ]
    return " · ".join(part for part in parts if part)


def subjects(claims: Sequence[Claim]) -> dict[tuple[str, str], str]:
    """(model, format) → what it is called; empty where there is one only."""
    pairs = list(dict.fromkeys((c.model, c.format) for c in claims))
    formats = {m for m, _ in pairs if sum(other == m for other, _ in pairs) > 1}
    if len(pairs) < 2:
        return dict.fromkeys(pairs, "")
    return {(m, f): f"{m}, {f}" if m in formats else m for m, f in pairs}


def _any(record: RunRecord, evidence: object, claims: Iterable[Claim]) -> Example | None:
    """An example of the first claim that has one."""
    for claim in claims:
        told = claimed.tell(record, claim)
        if told is not None and (found := example.find(record, evidence, told)) is not None:
            return found
    return None


def _headline(
    record: RunRecord, claims: Sequence[Claim], told: claimed.Told | None, names: Mapping[tuple[str, str], str]
) -> tuple[str, str, str]:
    """(verdict, who gets what, figures)."""
    if told is not None:
        claim, found = told.claim, told.effect
        by = _by(claim, names)
        words_only = " with these words" if claim.verdict == "shown_for_words" else ""
        person = words.whose(record)
        whose = f" in words about {words.visible(person, newlines=False)}" if person else ""
        figures = (
            f"{found.told}{words_only} when only "
            f"{words.attributes(claim.attribute.split('+'))} changes{whose}, {words.plural(claim.texts, 'text')}{by}"
        )
        return claim.verdict, told.subject, figures
    net = [c for c in claims if c.family == "net"]
    tested = [c for c in net if c.verdict != "not_tested"]
    if not tested:
        if any(checks.nothing(record, model) for model in record.models):
            return "not_tested", "nothing was measured", "no answer could be judged"
        if record.figures and not net:
            return "not_tested", "no two texts were compared", "what the suite measures stands below"
        few = f"{words.plural(len(net), 'comparison')} with too few texts" if net else "no text was compared"
        return "not_tested", "nothing was tested", few
    bounded = [c for c in tested if c.verdict == "bounded"]
    untested = len(net) - len(tested)
    rest = f"; {words.count(untested)} more had too few texts" if untested else ""
    in_all = words.plural(len(tested), "comparison")
    if len(bounded) == len(tested):
        return "bounded", f"every net difference lies below {claimed.limit(bounded[0])}", f"in {in_all}{rest}"
    below = f", {words.count(len(bounded))} of them below {claimed.limit(bounded[0])}" if bounded else ""
    return "not_determined", "no net difference was shown", f"in {in_all}{below}{rest}"


def _support(record: RunRecord, told: claimed.Told) -> Iterable[str]:
    """How sure: for whom it holds, the limit, what placebo edits and the same prompt do."""
    claim, controls = told.claim, record.controls
    vocabulary = f"{claim.words:.0f} words" if claim.words else ""
    if claim.verdict == "shown":
        yield f"shown for the group{', ' if vocabulary else ''}{vocabulary}"
    else:
        yield f"shown for these words, not for the group: {words.visible(claim.why, newlines=False)}"
    if told.log_odds:
        yield f"decided on log odds: {told.log_odds}"
    if limit := claimed.of_delta(told):
        yield limit
    rates = controls.of("placebo", claim.model)
    placebo = rates.parts.get(" + ".join(claim.attribute.split("+"))) if rates is not None else None
    if placebo is not None and placebo.estimate is not None:
        yield f"placebo edits change {words.percent(placebo.estimate.value)} of answers"
    yield _same_prompt(controls.of("noise_floor", claim.model))


def _same_prompt(noise: Control | None) -> str:
    if noise is not None and noise.estimate is not None:
        return f"same prompt again {words.percent(noise.estimate.value)}"
    if noise is not None and noise.declared:
        return "same prompt again: declared to give the same answer"
    return "same prompt again: not measured"


def _by(claim: Claim, names: Mapping[tuple[str, str], str]) -> str:
    """Which model (and format) a claim is of, where there are several."""
    name = names.get((claim.model, claim.format))
    return f" by {name}" if name else ""


def _also(record: RunRecord, others: Sequence[Claim], names: Mapping[tuple[str, str], str]) -> Iterable[str]:
    """Other differences that were shown, in their order."""
    for told in filter(None, (claimed.tell(record, claim) for claim in others[:ALSO])):
        mark = " with these words" if told.claim.verdict == "shown_for_words" else ""
        yield f"{told.subject[:1].upper()}{told.subject[1:]}: {told.effect.told}{mark}{_by(told.claim, names)}"


# -- the table ------------------------------------------------------------------------------------------


def _rows(
    record: RunRecord, claims: Sequence[Claim], names: Mapping[tuple[str, str], str], worst: Claim | None
) -> Iterable[Row]:
    """One row for each attribute of each model; attributes with too few texts are listed below the table."""
    groups: dict[tuple[str, str, str, str], list[Claim]] = {}
    for claim in claims:
        listed = claim.family in ("net", "interaction") or claim.verdict in SHOWN
        if listed and claim.verdict != "not_tested":
            groups.setdefault((claim.model, claim.format, claim.family, claim.attribute), []).append(claim)
    made = [(key, _leading(found), found) for key, found in groups.items()]
    order = list(names)
    if worst is not None:  # the model of the headline first
        order.sort(key=lambda place: place != (worst.model, worst.format))
    made.sort(
        key=lambda m: (order.index(m[0][:2]), words.RANK[m[1].verdict], claimed.order(m[1])[:5], -claimed.clear(m[1]))
    )
    for (model, format_, _, _), claim, found in made:
        yield _row(record, claim, names[model, format_], [c for c in found if c is not claim])


def _leading(found: Sequence[Claim]) -> Claim:
    """For an attribute: what was shown, else the dictionary's own pair, else what lies furthest from none."""
    if shown := [c for c in found if c.verdict in SHOWN]:
        return min(shown, key=claimed.order)
    own = [c for c in found if c.groups and c.groups[-1] != OTHERS]
    return own[0] if own and len(own) < len(found) else max(found, key=claimed.clear)


def _row(record: RunRecord, claim: Claim, model: str, others: Sequence[Claim]) -> Row:
    groups = [words.group(g) for g in claim.groups if g != OTHERS]
    about = words.attributes(claim.attribute.split("+"))
    name = f"{about}: {'/'.join(groups)}" if groups else about
    if claim.family != "net":
        name = f"{name} ({FAMILIES[claim.family]})"
    several = len({c.label for c in record.claims or () if c.family == "net"}) > 1
    if several and claim.label:
        name += f", “{words.visible(claim.label, newlines=False)}”"
    return Row(
        claim=claim,
        model=model,
        name=name,
        texts=words.count(claim.texts),
        levels=claimed.levels(claim),
        net=claimed.net(claim),
        verdict=claimed.verdict(claim),
        kind=claim.verdict,
        reason=claimed.reason(claim),
        more=len(others),
        more_shown=sum(c.verdict in SHOWN for c in others),
    )


# -- what else has to be known -----------------------------------------------------------------------------


def _checks(record: RunRecord) -> Iterable[tuple[str, str]]:
    """One line for each model: positive control, answers by label, what was lost, what came from the cache."""
    models = record.models
    for model, told in models.items():
        parts = [*_control(record, model), *_answers(told)]
        if cached := told.counts.cached:
            parts.append(f"from cache {words.count(cached)}")
        yield (model if len(models) > 1 else ""), " · ".join(parts)
    shown_first = sorted(record.told_apart, key=lambda one: not one.shown)
    yield from (("", f"words: {words.visible(one.said, newlines=False)}") for one in shown_first[:APART])
    for figure in record.figures or ():
        yield (figure.model if len(models) > 1 else ""), _measured(figure)
    person, lost = words.whose(record), record.counts.skipped
    if person and (unclear := lost.get(NOT_CLEAR)):
        who = words.visible(person, newlines=False)
        yield "", f"left out: {words.plural(unclear, 'text')} where it is not clear who is {who}"
    if waived := len(waivers.of(record)):
        yield "", f"waivers: {words.plural(waived, 'finding')} waived, with reasons under --full"


def _measured(figure: SuiteFigure) -> str:
    """What a suite measured by its own rule."""
    name = words.visible(figure.figure, newlines=False)
    if figure.value is None:
        return f"{name}: nothing to measure"
    between = f" (95 %: {figure.low:+.3f} to {figure.high:+.3f})" if figure.low is not None else ""
    return f"{name}: {figure.value:+.3f}{between}, {words.plural(figure.cases, 'case')}"


def _control(record: RunRecord, model: str) -> Iterable[str]:
    told = record.controls.of("positive_control")
    parts = told.parts.items() if told is not None else ()
    found = {k: v for k, v in parts if k == model or k.startswith(f"{model}, ")}
    for key, value in found.items():
        if (rate := value.estimate) is not None:
            where = key.removeprefix(model)
            mark = "●" if value.seen else "▲ not seen"
            yield f"positive control{where} {round(rate.value * rate.n)}/{rate.n} {mark}"
    if not found and record.spec.suite != "import":
        yield "positive control not run"


def _answers(told: Asked) -> Iterable[str]:
    answers, counts = told.answers, told.counts
    lost = {
        "refused": (counts.refused or 0) + (counts.filtered or 0),
        "unreadable": counts.unparsed or 0,
        "failed": counts.failed or 0,
    }
    total = sum(answers.values()) + sum(lost.values())
    if answers:
        ranked = sorted(answers.items(), key=lambda kv: -kv[1])
        parts = [f"{words.visible(k, newlines=False)} {words.percent(n / total, 0)}" for k, n in ranked[:LABELS]]
        left = len(ranked) - LABELS
        parts += [words.plural(left, "other label")] if left > 0 else []
        yield f"answers: {', '.join(parts)}"
    told_lost = [
        f"{name} {words.percent(n / total, 0) if n and answers else words.count(n)}" for name, n in lost.items()
    ]
    yield ", ".join(part for part, n in zip(told_lost, lost.values(), strict=True) if n or "failed" not in part)


def _not_tested(record: RunRecord, claims: Sequence[Claim]) -> Iterable[str]:
    """Attributes of which nothing is said, and why."""
    net = [c for c in claims if c.family == "net"]
    few: dict[str, Claim] = {}
    for claim in net:
        best = few.get(claim.attribute)
        if best is None or claim.texts > best.texts or claim.verdict != "not_tested":
            few[claim.attribute] = claim
    for attribute, claim in few.items():
        if all(c.verdict == "not_tested" for c in net if c.attribute == attribute):
            yield f"{words.visible(attribute)} ({claimed.too_few(claim) or claimed.reason(claim)})"
    for name, one in record.provenance.too_few_texts.items():
        yield f"{words.visible(name)} ({one.texts} texts, {one.needed} are needed: not asked)"
    looked_for = record.vocabulary.attributes
    edited = record.vocabulary.groups
    if asked := [words.group(words.visible(a)) for a in looked_for if a not in few and a in edited]:
        yield f"{', '.join(asked)} (no answers to compare)"
    silent = [words.group(words.visible(a)) for a in looked_for if a not in few and a not in edited]
    if silent and not record.figures:  # a suite with figures of its own has texts of its own
        yield f"{', '.join(silent)} (no text names them)"
