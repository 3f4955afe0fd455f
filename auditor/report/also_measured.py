"""What a run over texts measured besides its claims: sections that are there only where there is something to tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.core.record import RunRecord
from auditor.core.record import measured as recorded
from auditor.core.types import Estimate
from auditor.measure.claims import MIN_TEXTS
from auditor.measure.text_pairs import amount
from auditor.report import run_checks, words
from auditor.report.document import Block, Items, Section, Value, section, table

Names = Mapping[tuple[str, str], str]  # (model, format) → what it is called
MAX_ROWS = 24  # differences of texts that a page does not fold away
MAX_TOKENS = 10  # words, per model
MAX_MORE = 50  # words that a page folds away; run.json has all of them
MAX_GROUPS = 8  # groups with an accuracy, per model: the largest ones
RANK = {name: n for n, name in enumerate(words.VERDICTS)}
SAMPLINGS = {
    "iid": "drawn by the grammar's weights",
    "directed": "directed by verdicts",
    "uniform": "drawn uniformly from the sentences",  # in runs of 0.2
}
PHASES = {"rand": "drawn", "prob": "directed"}


# -- texts in pairs -----------------------------------------------------------------------------------------


def texts(record: RunRecord, names: Names) -> Iterator[Section]:
    """What differs between the answers about two groups, where these are texts."""
    pairs, apart = record.generation_pairs, tuple(words.visible(one.said) for one in record.told_apart)
    content: list[str | Block] = [words.text("told_apart"), Items(apart)] if apart else []
    if pairs:
        content += [line.format(masked=pairs.masked) for line in words.lines("text_pairs")]
        content += _judge(pairs.judge)
        columns = "Direction | Model | Difference | Same prompt | Placebo | #p | #Texts | Verdict | Example"
        ranked = sorted((r for r in pairs.rows if r.n), key=_strength)
        made = [
            table(caption, columns, [_difference(r, names) for r in ranked if r.metric == metric], most=MAX_ROWS)
            for metric, caption in words.named("text_metrics").items()
        ]
        content += made if ranked else ["No pair of texts could be measured."]
    if content:
        yield section("texts", "Texts in pairs: what changed between the answers", content, short="Texts")


def _strength(row: recorded.Difference) -> tuple[object, ...]:
    p = 1.0 if row.p_adjusted is None else row.p_adjusted
    return RANK.get(row.verdict, len(RANK)), p, -abs(row.value), row.directions


def _judge(judge: recorded.Judge) -> Iterator[str]:
    """What is known of the judge itself, how often it was asked, and what it cost (early records say less)."""
    if (controls := judge.controls) is None:
        return
    pairs = judge.pairs
    yield (
        f"Judge {judge.model}: of {words.plural(controls.n, 'control pair')} in which one text is worse by "
        f"construction, it judged {words.count(controls.right)} right in both orders. Of "
        f"{words.plural(pairs.pairs, 'pair')} of the run, {words.count(pairs.inconsistent)} moved with the order and "
        "count as ties." + ("" if judge.trusted else " Too few were right: its preferences support no claim.")
    )
    if judge.tokens_in is not None:
        cost = "" if not judge.measured_usd else f", for {judge.measured_usd:.4f} USD as measured"
        cost = ", at a price that is not known" if judge.measured_usd is None else cost
        asked, cached = words.plural(judge.asked + judge.cached, "question"), words.count(judge.cached)
        yield (
            f"The judge was asked {asked}, {cached} of them answered by the cache; {words.count(judge.failed)} got no "
            f"answer{cost}. The totals of the run include these."
        )


def _difference(row: recorded.Difference, names: Names) -> Iterator[Value]:
    between = "the same on every text"
    if row.low is not None and row.high is not None:
        between = f"{_signed(row.low)} to {_signed(row.high)}"
    yield words.direction(row.directions) or words.attributes(row.attributes)
    yield names.get((row.model, row.format), row.model)
    yield f"{_signed(row.value)} ({between})"
    yield None if row.noise is None else amount(row.noise)
    yield None if row.placebo is None else _signed(row.placebo)
    yield from (words.number(row.p_adjusted), row.n, words.verdict(row.verdict))
    yield next(iter(row.exemplars), None) if row.verdict == "shown" else None


def _signed(value: float) -> str:
    text = amount(value)
    return f"+{text}" if value > 0 and text != "0" else text


# -- generated cases ----------------------------------------------------------------------------------------


def generated(record: RunRecord, names: Names) -> Iterator[Section]:
    """What a grammar generated and how far it reached; how often a probability moved."""
    made, score = record.generation, record.probability
    content: list[str | Block] = []
    if made:
        size = "" if made.sentences is None else f" with {words.count(made.sentences)} distinct sentences"
        if made.derivations is not None and made.derivations != made.sentences:
            size += f"{' in' if size else ' with'} {words.count(made.derivations)} derivations"
        content.append(f"Cases come from the grammar {made.grammar}{size}. {words.text('generated_cases')}")
        for model, bound in made.bound.items():
            content.append(
                f"{model}: at {words.confidence(bound.level)} confidence, at most {words.percent(bound.share_at_most)} "
                f"of the {words.count(bound.population)} sentences of this grammar have a variant with a changed "
                f"answer. Of {words.count(bound.drawn)} sentences drawn without replacement "
                f"{words.count(bound.found)} have one. "
                "Sentences without a judgment count as changed."
            )
        phases, covered = [], []
        for row in made.phases:
            sampling = "uniform" if row.sampling == "iid" and made.generation == "uniform" else row.sampling
            way = SAMPLINGS.get(sampling, PHASES.get(row.phase, row.phase))
            counts = (row.cases, row.violating_cases, row.unjudged_cases, row.tests, row.violations)
            phases.append((row.model, way, *counts))
        for phase, of in made.coverage.items():
            share = "" if of.terminal_share is None else f" ({words.percent(of.terminal_share)})"
            reached = f"{words.count(of.terminals_covered)} of {words.count(of.terminals)}{share}"
            covered.append((f"{PHASES.get(phase, phase)} cases", reached))
        columns = "Model | Cases by | #Cases | #With a change | #Unjudged | #Variants | #Changed"
        content.append(table("How the cases came about, and how many had a change", columns, phases))
        content.append(table("How much of the grammar was covered", "Covered by | Terminals", covered))
    if score:
        rates = (
            (names.get((r.model, r.format), r.model), f"{r.epsilon:g}", r.cases, words.interval(r.rate))
            for r in score.rows
        )
        content.append(table("Cases beyond each tolerance", "Model | #Beyond ε | #Cases | Share of cases", rates))
    if content:
        titles = ("Generated cases", "Generation") if made else ("Differences of the score", "Differences")
        yield section("generation", titles[0], content, short=titles[1])


# -- words ----------------------------------------------------------------------------------------------------


def tokens(record: RunRecord, names: Names) -> Iterator[Section]:
    """Which words the changes went with, where the run has a diagnosis of them."""
    if not record.tokens:
        return
    lines, more, notes = [], [], []
    for part in record.tokens:
        name = names.get((part.model, part.format), part.model)
        ranked = sorted((t for t in part.tokens if t.errors), key=lambda t: not t.stands_out)  # stable: by rate within
        lines += [_token(name, token) for token in ranked[:MAX_TOKENS]]
        more += [_token(name, token) for token in ranked[MAX_TOKENS:MAX_MORE]]
        out = sum(t.stands_out for t in part.tokens)
        notes.append(f"{name}: {out} of {words.plural(len(part.tokens), 'word')} stand out.")
        if without := [family for family in part.families if family.reason]:
            notes.append(f"{words.plural(len(without), 'set')} of words without an index: {without[0].reason}.")
    what = words.text("token_terminal" if record.tokens[0].unit == "terminal" else "token_term")
    ranking = table(
        "Words with changed answers; those that stand out first, then by the lower limit",
        "Model | Word | Among | #Cases | Changed | #Index | #q",
        [*lines, *more],
        most=len(lines),
        of="word",
    )
    title, meaning = "Words that the changes went with", words.text("tokens").format(token=what)
    yield section("tokens", title, meaning, notes, ranking, short="Words", folded=True)


def _token(name: str, token: recorded.Token) -> tuple[Value, ...]:
    among = words.group(token.family) + (f" ({words.group(token.group)})" if token.group else "")
    rate = recorded.Bounds(value=token.rate, low=token.low, high=token.high)
    figures = words.interval(rate), words.number(token.index, "+.1f"), words.number(token.q)
    return (name, f"{'▲ ' if token.stands_out else ''}{token.token}", among, token.n, *figures)


# -- labels in the data ---------------------------------------------------------------------------------------


def performance(record: RunRecord, names: Names, noun: str) -> Iterator[Section]:
    """How often answers equal the labels in the data, where the texts carry labels."""
    part = record.performance
    lines: list[tuple[Value, ...]] = []
    more: list[tuple[Value, ...]] = []
    if not part.gold or (part.models is None and not part.reason):
        return
    notes = [words.sentence(f"Not measured: {part.reason}")]
    if part.models is not None:
        source = part.source or "the texts"
        said = f"those of the {source}, as their writer meant them" if source.startswith("embedded") else source
        notes = [
            f"Labels: {said}. Accuracy: the {noun} for the original equals the label in the data. The audit does not "
            "select texts by it.",
            *filter(None, [run_checks.golds(part.gold)]),
        ]
        skipped = sum(m.overall.accuracy.n_skipped for m in part.models if m.overall.accuracy)
        if part.gold.missing or skipped:
            notes.append(f"Left out: {part.gold.missing:,} without a label, {skipped:,} without a clear answer.")
    for entry in part.models or ():
        name = names.get((entry.model, entry.format), entry.model)
        ranked = sorted(entry.groups, key=lambda g: (-g.n, g.attribute, g.group))
        lines.append((name, "all texts", *_accuracy(entry.overall)))
        for n, group in enumerate(g for g in ranked if g.n >= MIN_TEXTS):
            line = (name, f"{group.attribute}: {words.group(group.group)}", *_accuracy(group))
            (lines if n < MAX_GROUPS else more).append(line)
        changes = {"like the label in the data": entry.violations.right, "otherwise": entry.violations.wrong}
        said = ", and ".join(
            f"in {words.interval(rate)} of the variants of {words.plural(rate.n, 'original')} answered {how}"
            for how, rate in changes.items()
            if rate
        )
        notes += [f"{name}: the {noun} changed {said}."] if said else []
    rates = table(
        "By the groups that the originals name, with intervals by text",
        "Model | Texts that name | #Texts | Accuracy",
        [*lines, *more],
        most=len(lines),
        of="group",
    )
    title = "Answers against the labels in the data"
    yield section("performance", title, notes, rates, short="Labels", folded=True)


def _accuracy(of: recorded.Measures) -> tuple[int, Estimate | None]:
    return of.accuracy.n if of.accuracy else 0, of.accuracy
