"""What a run over texts measured besides its claims: sections that are there only where there is something to tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.record import measured as recorded
from auditor.measure.claims import MIN_TEXTS
from auditor.measure.text_pairs import amount
from auditor.report import words
from auditor.report.document import Block, Items, Section, section, table

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


def _difference(row: recorded.Difference, names: Names) -> tuple[str, ...]:
    value = f"{_signed(row.value)} (the same on every text)"
    if row.low is not None and row.high is not None:
        value = f"{_signed(row.value)} ({_signed(row.low)} to {_signed(row.high)})"
    return (
        words.direction(row.directions) if row.directions else words.attributes(row.attributes),
        names.get((row.model, row.format), row.model),
        value,
        "–" if row.noise is None else amount(row.noise),
        "–" if row.placebo is None else _signed(row.placebo),
        words.number(row.p_adjusted),
        words.count(row.n),
        words.verdict(row.verdict),
        next(iter(row.exemplars), "–") if row.verdict == "shown" else "–",
    )


def _signed(value: float) -> str:
    text = amount(value)
    return f"+{text}" if value > 0 and text != "0" else text


# -- generated cases ----------------------------------------------------------------------------------------


def generated(record: RunRecord, names: Names) -> Iterator[Section]:
    """What a grammar generated and how far it reached; how often a probability moved."""
    made, score = record.generation, record.probability
    content: list[str | Block] = []
    if made:
        content = [*_grammar(made)]
        columns = "Model | Cases by | #Cases | #With a change | #Unjudged | #Variants | #Changed"
        content.append(
            table(
                "How the cases came about, and how many had a change",
                columns,
                [_phase(row, made) for row in made.phases],
            )
        )
        columns = "Covered by | Terminals"
        content.append(table("How much of the grammar was covered", columns, _coverage(made)))
    if score:
        rates = [
            (names.get((r.model, r.format), r.model), f"{r.epsilon:g}", words.count(r.cases), words.interval(r.rate))
            for r in score.rows
        ]
        content.append(table("Cases beyond each tolerance", "Model | #Beyond ε | #Cases | Share of cases", rates))
    if content:
        titles = ("Generated cases", "Generation") if made else ("Differences of the score", "Differences")
        yield section("generation", titles[0], content, short=titles[1])


def _grammar(made: recorded.Generation) -> Iterator[str]:
    """Its size, then one sentence for each model: at most this share of all sentences."""
    sentences, derivations = made.sentences, made.derivations
    size = "" if sentences is None else f" with {words.count(sentences)} distinct sentences"
    if derivations is not None and derivations != sentences:
        size += f"{' in' if size else ' with'} {words.count(derivations)} derivations"
    yield f"Cases come from the grammar {made.grammar}{size}. {words.text('generated_cases')}"
    for model, bound in made.bound.items():
        yield (
            f"{model}: at {words.confidence(bound.level)} confidence, at most {words.percent(bound.share_at_most)} of "
            f"the {words.count(bound.population)} sentences of this grammar have a variant with a changed answer. Of "
            f"{words.count(bound.drawn)} sentences drawn without replacement {words.count(bound.found)} have one. "
            "Sentences without a judgment count as changed."
        )


def _phase(row: recorded.Phase, made: recorded.Generation) -> tuple[str, ...]:
    sampling = "uniform" if row.sampling == "iid" and made.generation == "uniform" else row.sampling
    way = SAMPLINGS.get(sampling, PHASES.get(row.phase, row.phase))
    counts = (row.cases, row.violating_cases, row.unjudged_cases, row.tests, row.violations)
    return (row.model, way, *map(words.count, counts))


def _coverage(made: recorded.Generation) -> Iterator[tuple[str, ...]]:
    for phase, row in made.coverage.items():
        share = "" if row.terminal_share is None else f" ({words.percent(row.terminal_share)})"
        covered = f"{words.count(row.terminals_covered)} of {words.count(row.terminals)}{share}"
        yield f"{PHASES.get(phase, phase)} cases", covered


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
        left=("further word", "further words"),
    )
    title, meaning = "Words that the changes went with", words.text("tokens").format(token=what)
    yield section("tokens", title, meaning, notes, ranking, short="Words", folded=True)


def _token(name: str, token: recorded.Token) -> tuple[str, ...]:
    group = f" ({words.group(token.group)})" if token.group else ""
    return (
        name,
        f"{'▲ ' if token.stands_out else ''}{token.token}",
        f"{words.group(token.family)}{group}",
        words.count(token.n),
        words.interval(token.interval),
        words.number(token.index, "+.1f"),
        words.number(token.q),
    )


# -- labels in the data ---------------------------------------------------------------------------------------


def performance(record: RunRecord, names: Names, noun: str) -> Iterator[Section]:
    """How often answers equal the labels in the data, where the texts carry labels."""
    part = record.performance
    lines: list[tuple[str, ...]] = []
    more: list[tuple[str, ...]] = []
    if not part.gold or (part.models is None and not part.reason):
        return
    notes: list[str] = [] if part.models is not None else [words.sentence(f"Not measured: {part.reason}")]
    if part.models is not None:
        source = part.source or "the texts"
        said = f"those of the {source}, as their writer meant them" if source.startswith("embedded") else source
        notes = [
            f"Labels: {said}. Accuracy: the {noun} for the original equals the label in the data. The audit does not "
            "select texts by it.",
            *_unlabelled(part.gold, part.models),
        ]
    for entry in part.models or ():
        name = names.get((entry.model, entry.format), entry.model)
        ranked = sorted(entry.groups, key=lambda g: (-g.n, g.attribute, g.group))
        lines.append((name, "all texts", *_accuracy(entry.overall)))
        for n, group in enumerate(g for g in ranked if g.n >= MIN_TEXTS):
            line = (name, f"{group.attribute}: {words.group(group.group)}", *_accuracy(group))
            (lines if n < MAX_GROUPS else more).append(line)
        notes += _changed(name, entry, noun)
    rates = table(
        "By the groups that the originals name, with intervals by text",
        "Model | Texts that name | #Texts | Accuracy",
        [*lines, *more],
        most=len(lines),
        left=("further group", "further groups"),
    )
    title = "Answers against the labels in the data"
    yield section("performance", title, notes, rates, short="Labels", folded=True)


def _accuracy(of: recorded.Measures) -> tuple[str, str]:
    return words.count(of.accuracy.n if of.accuracy else 0), words.interval(of.accuracy) if of.accuracy else "–"


def _changed(name: str, entry: recorded.ModelPerformance, noun: str) -> list[str]:
    said = [
        f"in {words.interval(rate)} of the variants of {words.plural(rate.n, 'original')} {what}"
        for rate, what in (
            (entry.violations.right, "answered like the label in the data"),
            (entry.violations.wrong, "answered otherwise"),
        )
        if rate
    ]
    return [f"{name}: the {noun} changed {', and '.join(said)}."] if said else []


def _unlabelled(gold: recorded.Gold, models: Sequence[recorded.ModelPerformance]) -> Iterator[str]:
    if n := gold.unmapped:
        such = ", ".join(repr(text) for text in gold.examples)
        yield (
            f"{words.plural(n, 'label')} in the data {words.verb(n, 'names', 'name')} no "
            f"label of the task ({such}) and {words.verb(n, 'is', 'are')} left out."
        )
    skipped = sum(m.overall.accuracy.n_skipped for m in models if m.overall.accuracy)
    if gold.missing or skipped:
        yield f"Left out: {gold.missing:,} without a label, {skipped:,} without a clear answer."
