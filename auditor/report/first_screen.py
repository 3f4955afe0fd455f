"""The first screen of every report: who is worse off, by how much, how sure, and what to do next.

It is built from the claims of the record (`auditor.measure.claims.Claim`); the sentences are those of `claimed`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from unicodedata import bidirectional

from auditor.core import waivers
from auditor.core.record import Asked, Claim, RunRecord
from auditor.core.record.base import NOT_CLEAR
from auditor.measure.claims import OTHERS
from auditor.report import cards, claimed, run_checks, words
from auditor.report.claimed import Statement
from auditor.report.document import Example, Row, Screen
from auditor.report.sections import Names, Rates, subjects

LABELS = 4  # labels whose share the line of checks names
ALSO = 3  # further shown differences that are named below the first
APART = 2  # sentences on texts that can be told apart by their words
FAMILIES = {"refusal": "refused", "instability": "any change", "interaction": "interaction", "omnibus": "its words"}


def build(record: RunRecord, evidence: object) -> Screen:
    """Return the first screen of a run over texts."""
    claims = record.claims or ()
    names = subjects(claims)
    leading = sorted((c for c in claims if c.verdict == "shown"), key=claimed.order)
    statements = [made for c in leading if (made := claimed.state(record, c)) is not None]
    first = statements[0] if statements and statements[0].claim is leading[0] else None
    example = None if first is None else clearest(record, evidence, first.claim)
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
    further = (clearest(record, evidence, one.claim) for one in statements if one is not first)
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
        next=tuple(following(record, example or next(filter(None, further), None))),
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
        return "not_tested", list(Rates(record).said()), []
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


# -- what is proposed: the example of a claim, and the commands to go on with --------------------------------


def following(record: RunRecord, example: Example | None) -> Iterator[tuple[str, str]]:
    """Yield (command, what it gives), the example of the first screen first; nothing where no run folder exists."""
    if record.id == "in-memory":
        return
    run, unread = words.run_name(record), run_checks.variant(record)
    if record.status == "partial" and not unread:
        yield f"audit resume {run}{raised(record)}", "go on; no answered prompt is asked twice"
    first = min((f for f in record.findings if f.exemplars), key=lambda f: f.verdict != "shown", default=None)
    if example is not None:
        several = words.plural(example.more + 1, "clearest text").removeprefix("1 ")
        yield f"audit show {run} {example.finding_id or example.variant_id}", f"read the {several}"
    elif unread:
        yield f"audit show {run} {unread}", "read a prompt and the answers that could not be read"
    elif first is not None and first.verdict == "shown":
        yield f"audit show {run} {first.id}", "read one finding: its prompts and every answer"
    elif first is not None:
        yield f"audit show {run} {first.exemplars[0]}", "read one text with its prompts and every answer"
    shown = any(c.verdict == "shown" and c.family == "net" for c in record.claims or ())
    if shown and any(model.style == "chat" for model in record.models.values()):
        yield f"audit mitigate {run}", "try a blinded prompt"
    yield f"audit report {run} --full", "see all that was measured"
    yield f"audit report {run} --format html", "write the full report, one file"


def raised(record: RunRecord) -> str:
    """Return the option that lets a run go on which a limit ended: twice that limit; "" where none is in the way."""
    # Seconds are counted anew. Where the limit was 0, the second figure is
    limits = {"max_calls": (record.spec.max_calls, 100), "max_cost": (record.spec.max_cost, 1.0)}
    if record.stopped_by == "control":
        return " --anyway"
    if record.spec.until_decided:  # its looks were planned with the limit
        return ""
    reason = record.status_reason or ""  # runs over rows name the limit there alone
    name = record.stopped_by or next((n for n in limits if f"(--{n.replace('_', '-')})" in reason), "")
    limit, other = limits.get(name, (None, 0))
    return f" --{name.replace('_', '-')} {2 * limit or other:.12g}" if limit is not None else ""


def clearest(record: RunRecord, evidence: object, claim: Claim) -> Example | None:
    """Return the first variant of a claim, the clearest first, whose label or score changed."""
    place = record.claims.index(claim) if evidence is not None and record.claims else -1
    own = next((f for f in record.findings if f.claim == place), None)
    shown = own.exemplars if own is not None else ()
    for variant_id in dict.fromkeys((*shown, *claim.examples) if place >= 0 else ()):
        made = cards.brief(evidence, variant_id, claim.model, claim.format)
        if made is not None and made.before != made.after:
            more = len(set(shown) - {variant_id})
            plain = (made.variant_id, made.text, made.before, made.after)
            return Example(*plain, finding_id=own.id if own is not None else "", more=more)
    return None
