"""What a run over texts measured beside its claims: sections that stand only where there is something to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.record import measured as recorded
from auditor.core.types import Estimate
from auditor.report import words
from auditor.report.document import Block, Items, Section, section, table

Names = Mapping[tuple[str, str], str]  # (model, format) → what it is called
FEW_TEXTS = 6  # groups of fewer stand in run.json only


# -- scores, and texts in pairs ---------------------------------------------------------------------------

MAX_ROWS = 24  # of rows that show nothing
FEW_ROWS = 5  # where no row had enough seeds for a test
SHOWN_FIRST = {name: n for n, name in enumerate(words.VERDICTS)}


def scores(record: RunRecord) -> Iterator[Section]:
    """How scores were compared."""
    if not (compared := record.scores):
        return
    unit = f" {compared.unit}" if compared.unit else ""
    notes = [_tolerance(compared)]
    for model, apart in compared.noise.items():
        if apart is not None:
            notes.append(f"{model}: two answers to one prompt lie {_amount(apart, sign=False)}{unit} apart on average.")
    yield section("scores", "Scores: how they were compared", notes, short="Scores")


def _tolerance(compared: recorded.Scores) -> str:
    beyond = "by more than any two answers to one of the two prompts differ from each other"
    if compared.tolerance is not None:
        beyond = f"by more than {_amount(compared.tolerance, sign=False)}"
    return f"In the rates above, a score counts as changed where the means of the answers differ {beyond}."


def texts(record: RunRecord, names: Names) -> Iterator[Section]:
    """What differs between the answers about two groups, where these are texts."""
    pairs, apart = record.generation_pairs, tuple(words.visible(one.said) for one in record.told_apart)
    content: list[str | Block] = [words.text("told_apart"), Items(apart)] if apart else []
    title = "Texts in pairs: what changed between the answers"
    if pairs:
        content += [line.format(masked=pairs.masked) for line in words.lines("text_pairs")]
        content += _judge(pairs.judge)
        columns = "Direction | Model | Difference | Same prompt | Placebo | #p | #Texts | Verdict | Example"
        tables = []
        for metric, caption in words.named("text_metrics").items():
            mine = _ranked([r for r in pairs.rows if r.metric == metric])
            tables += [table(caption, columns, [_difference(r, names) for r in mine])] if mine else []
        left = len(pairs.rows) - sum(len(made.lines) for made in tables)
        if left and tables:
            rows = words.plural(left, "further row")
            content.append(f"{rows}, most of them on too few texts for a test, can be found in run.json.")
        content += tables or ["No pair of texts could be measured."]
    if content:
        yield section("texts", title, content, short="Texts")


def _judge(judge: recorded.Judge) -> Iterator[str]:
    """What is known of the judge itself, how often it was asked, and what it cost (early records say less)."""
    if (controls := judge.controls) is None:
        return
    pairs = judge.pairs
    first = ""
    if pairs.named:
        share = words.percent(pairs.first_named / pairs.named)
        first = f" It named the text that stood first in {share} of its choices."
    yield (
        f"Judge {judge.model}: of {words.plural(controls.n, 'control pair')} in which one text is worse by "
        f"construction, {words.count(controls.right)} were judged right in both orders, "
        f"{words.count(controls.wrong)} wrong, {words.count(controls.undecided)} undecided and "
        f"{words.count(controls.unreadable)} not readable. Of {words.plural(pairs.pairs, 'pair')} of the run, "
        f"{words.count(pairs.inconsistent)} moved with the order and count as ties.{first}"
        + ("" if judge.trusted else " Too few were right: its preferences support no claim.")
    )
    if judge.tokens_in is not None:
        cost = "" if not judge.measured_usd else f", for {judge.measured_usd:.4f} USD as measured"
        cost = ", at a price that is not known" if judge.measured_usd is None else cost
        lost = f"; {words.count(judge.failed)} got no answer" if judge.failed else ""
        asked = words.plural(judge.asked + judge.cached, "question")
        cached = f"{words.count(judge.cached)} of them answered by the cache"
        yield f"The judge was asked {asked}, {cached}{lost}{cost}. The totals of the run include these."


def _ranked(rows: Sequence[recorded.Difference]) -> list[recorded.Difference]:
    """Rows that show something first, then the largest differences; the rest stay in the record."""

    def strength(r: recorded.Difference) -> tuple[object, ...]:
        p = 1.0 if r.p_adjusted is None else r.p_adjusted
        return SHOWN_FIRST.get(r.verdict, len(SHOWN_FIRST)), p, -abs(r.value), r.directions

    ranked = sorted(rows, key=strength)
    ranked = [r for r in ranked if r.verdict != "not_tested"] or ranked[:FEW_ROWS]
    shown = sum(r.verdict in ("shown", "bounded") for r in ranked)
    return ranked[: shown + MAX_ROWS]


def _difference(row: recorded.Difference, names: Names) -> tuple[str, ...]:
    value = f"{_amount(row.value)} (the same on every text)"
    if row.low is not None and row.high is not None:
        value = f"{_amount(row.value)} ({_amount(row.low)} to {_amount(row.high)})"
    return (
        words.direction(row.directions) if row.directions else words.attributes(row.attributes),
        names.get((row.model, row.format), row.model),
        value if row.n else "not measured",
        "–" if row.noise is None else _amount(row.noise, sign=False),
        "–" if row.placebo is None else _amount(row.placebo),
        words.number(row.p_adjusted),
        words.count(row.n),
        words.verdict(row.verdict),
        next(iter(row.exemplars), "–") if row.verdict == "shown" else "–",
    )


def _amount(value: float, *, sign: bool = True) -> str:
    from auditor.measure.text_pairs import amount

    text = amount(value)
    return f"+{text}" if sign and value > 0 and text != "0" else text


# -- generated cases --------------------------------------------------------------------------------------

PHASES = {"rand": "drawn", "prob": "directed", "bandit": "directed (bandit)"}
SAMPLINGS = {
    "iid": "drawn by the grammar's weights",
    "directed": "directed by verdicts",
    "uniform": "drawn uniformly from the sentences",
}


def generated(record: RunRecord, names: Names) -> Iterator[Section]:
    """What a grammar generated and how far it reached; how often a probability moved."""
    made, score = record.generation, record.probability
    content: list[str | Block] = []
    if made:
        content = [*_grammar(made)]
        columns = "Model | Cases by | #Cases | #With a change | #Unjudged | #Variants | #Changed"
        lines = [_phase(row, made) for row in made.phases]
        content.append(table("How the cases came about, and how many had a change", columns, lines))
        columns = "Covered by | Terminals | Pairs of sensitive terminals"
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
        size += f" in {words.count(derivations)} derivations"
    yield f"Cases come from the grammar {made.grammar}{size}. {words.text('generated_cases')}"
    for model, bound in made.bound.items():
        yield (
            f"{model}: at {words.confidence(bound.level)} confidence, at most "
            f"{words.percent(bound.share_at_most)} of the {words.count(bound.population)} sentences of this "
            f"grammar have a variant with a changed answer ({words.count(bound.found)} of "
            f"{words.count(bound.drawn)} drawn without replacement; those without a judgement count as changed)."
        )


def _phase(row: recorded.Phase, made: recorded.Generation) -> tuple[str, ...]:
    sampling = "uniform" if row.sampling == "iid" and made.generation == "uniform" else row.sampling
    way = SAMPLINGS.get(sampling, PHASES.get(row.phase, row.phase))
    counts = (row.cases, row.violating_cases, row.unjudged_cases, row.tests, row.violations)
    return (row.model, way, *map(words.count, counts))


def _coverage(made: recorded.Generation) -> Iterator[tuple[str, ...]]:
    for phase, row in made.coverage.items():
        cells = (
            f"{words.count(n)} of {words.count(of)}" + ("" if share is None else f" ({words.percent(share)})")
            for n, of, share in (
                (row.terminals_covered, row.terminals, row.terminal_share),
                (row.pairs_covered, row.pairs, row.pair_share),
            )
        )
        yield (f"{PHASES.get(phase, phase)} cases", *cells)


MAX_TOKENS = 10  # per model in short reports
MAX_MORE = 50  # per model in long ones; run.json has all of them
MAX_NAMES = 6


def tokens(record: RunRecord, names: Names) -> Iterator[Section]:
    """Which words the changes went with, where the run has a diagnosis of them."""
    if not record.tokens:
        return
    lines, more, sums = [], [], []
    for part in record.tokens:
        name = names.get((part.model, part.format), part.model)
        ranked = sorted((t for t in part.tokens if t.errors), key=lambda t: not t.stands_out)  # stable: by rate within
        lines += [_token(name, token) for token in ranked[:MAX_TOKENS]]
        more += [_token(name, token) for token in ranked[MAX_TOKENS:MAX_MORE]]
        sums.append(_sums(name, part))
    what = words.text("token_terminal" if record.tokens[0].unit == "terminal" else "token_term")
    ranking = table(
        "Words with changed answers; those that stand out first, then by the lower limit",
        "Model | Word | Among | #Cases | Changed | #Index | #q",
        [*lines, *more],
        most=len(lines),
        left=("further word", "further words"),
    )
    title, meaning = "Words that the changes went with", words.text("tokens").format(token=what)
    yield section("tokens", title, meaning, sums, ranking, short="Words", folded=True)


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


def _sums(name: str, part: recorded.Tokens) -> str:
    out = sum(t.stands_out for t in part.tokens)
    said = [f"{name}: {out} of {words.plural(len(part.tokens), 'word')} stand out"]
    reasons: dict[str, list[str]] = {}
    for family in part.families:
        reasons.setdefault(family.reason or "", []).append(words.group(family.name))
    for reason, names in reasons.items():
        if reason:
            where = words.listing(names) if len(names) <= MAX_NAMES else f"{len(names)} sets of words"
            said.append(f"index {reason} ({where})")
    return f"{'; '.join(said)}."


# -- labels in the data -----------------------------------------------------------------------------------

Measure = tuple[str, Callable[[recorded.Measures], Estimate | None]]  # its name, and how it is read
MEASURES: tuple[Measure, ...] = (
    ("Accuracy", lambda of: of.accuracy),
    ("Micro-F1", lambda of: of.micro_f1),
    ("Macro-F1", lambda of: of.macro_f1),
)
MAX_GROUPS = 8  # per model, the largest ones


def performance(record: RunRecord, names: Names, noun: str) -> Iterator[Section]:
    """How often answers equal the labels in the data, where the texts carry labels."""
    part = record.performance
    title = "Answers against the labels in the data"
    if part.gold and part.models is None:
        reason = words.sentence(f"Not measured: {part.reason or 'no reason given'}")
        yield section("performance", title, reason, short="Labels", folded=True)
    elif part.gold and part.models is not None:
        several = any(_differs(m.overall) for m in part.models)
        shown = [m for m in MEASURES if several or m[0] != "Micro-F1"]
        notes = [_labels(part, noun, several)]
        lines: list[tuple[str, ...]] = []
        more: list[tuple[str, ...]] = []
        for entry in part.models:
            name = names.get((entry.model, entry.format), entry.model)
            ranked = sorted(entry.groups, key=lambda g: (-g.n, g.attribute, g.group))[:MAX_GROUPS]
            lines.append((name, "all texts", *_figures(entry.overall, shown)))
            for group in (g for g in entry.groups if g.n >= FEW_TEXTS):
                label = f"{group.attribute}: {words.group(group.group)}"
                (lines if group in ranked else more).append((name, label, *_figures(group, shown)))
            notes += _changed(name, entry, noun)
        rates = table(
            "By the groups that the originals name, with intervals by text",
            ("Model", "Texts that name", "Texts", *(measure for measure, _ in shown)),
            [*lines, *more],
            right=["Texts"],
            most=len(lines),
            left=("further group", "further groups"),
        )
        yield section("performance", title, notes, _unlabelled(part.gold), rates, short="Labels", folded=True)


def _differs(overall: recorded.Measures) -> bool:
    first, second = overall.accuracy, overall.micro_f1
    return bool(first and second and first.value != second.value)


def _figures(of: recorded.Measures, shown: Iterable[Measure]) -> tuple[str, ...]:
    rates = (measure(of) for _, measure in shown)
    texts = words.count(of.accuracy.n if of.accuracy else 0)
    return (texts, *(words.interval(rate) if rate else "–" for rate in rates))


def _labels(part: recorded.Performance, noun: str, several: bool) -> str:
    whole = f"the whole set of {noun}s" if several else f"the {noun}"
    skipped = sum(m.overall.accuracy.n_skipped for m in part.models or () if m.overall.accuracy)
    lost = f" {words.plural(skipped, 'original')} without a clear answer left out." if skipped else ""
    source = part.source or "the texts"
    if source.startswith("embedded"):
        source = f"those of the {source}, as their writer meant them"
    return (
        f"Labels: {source}. Accuracy: {whole} for the original equals the label in "
        f"the data. Texts are never chosen by it.{lost}"
    )


def _changed(name: str, entry: recorded.ModelPerformance, noun: str) -> list[str]:
    """How often answers changed that were like the label, and that were not."""
    said = [
        f"in {words.interval(rate)} of the variants of {words.plural(rate.n, 'original')} {what}"
        for rate, what in (
            (entry.violations.right, "answered like the label in the data"),
            (entry.violations.wrong, "answered otherwise"),
        )
        if rate
    ]
    return [f"{name}: the {noun} changed {', and '.join(said)}."] if said else []


def _unlabelled(gold: recorded.Gold) -> Iterator[str]:
    if n := gold.unmapped:
        such = ", ".join(repr(text) for text in gold.examples)
        yield (
            f"{words.plural(n, 'label')} in the data {words.verb(n, 'names', 'name')} no "
            f"label of the task ({such}) and {words.verb(n, 'is', 'are')} left out."
        )
    if gold.missing:
        yield f"{words.plural(gold.missing, 'text')} without a label left out."
