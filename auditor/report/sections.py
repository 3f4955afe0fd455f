"""Sections of a report over texts: comparisons of groups, rates of changes, charts, and what else was measured.

Each is there only where there is something to tell.

Charts are inline SVG, written by hand: no fonts, no scripts, and they reflow. Horizontal positions are percentages of
the drawing's width, vertical ones pixels; so one drawing suits a desk and a phone without scaling its letters. Colours
come from the page's style sheet by class; the shape of a mark says the same as its colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from auditor.core.record import Claim, RunRecord
from auditor.core.record import measured as recorded
from auditor.core.record.outcome_tables import Category
from auditor.core.types import DECIDED, Estimate
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.measure.text_pairs import amount
from auditor.report import claimed, run_checks, words
from auditor.report.document import Block, Cell, Chart, Items, Screen, Section, Table, Text, Value, section, table

Names = Mapping[tuple[str, str], str]  # (model, format) → what it is called; empty where there is one
TITLES = {
    "refusal": "Refusals and unreadable answers",
    "instability": "Any change of the answer, beyond edits that change no group",
    "omnibus": "Words about an attribute, beyond neutral words",
    "interaction": "Interactions: two attributes together beyond each alone",
}
FIRST = 12  # comparisons of a family that a page does not fold away, and half of it where none is decided


def by_attribute(record: RunRecord) -> Iterator[Section]:
    """Every comparison of a run that makes claims, in one table for each family."""
    if not record.claims:
        return
    claims = [c for c in record.claims if c.verdict != "not_tested" and c.texts >= MIN_TEXTS]
    claims.sort(key=lambda c: (words.RANK[c.verdict], claimed.order(c)))
    names = subjects(claims)
    blocks: list[str | Block] = [
        _contrasts(record, family, [c for c in claims if c.family == family], names)
        for family in sorted({c.family for c in claims}, key=lambda family: (family != "net", family))
    ]
    if any(map(claimed.apart, claims)):
        blocks.append(Text(words.text("net_differs"), tone="meta"))
    for kind in (kind for kind in words.VERDICTS if any(c.verdict == kind for c in claims)):
        blocks.append(Text(f"{words.verdict(kind)}: {words.named('verdicts')[kind]}", tone="meta"))
    none = "No two groups were compared on six texts or more."
    yield replace(section("matrix", "By attribute", blocks or none, short="Attributes", brief=True), whole=True)


def pair(record: RunRecord, claim: Claim) -> str:
    """Who is compared with whom."""
    if not claim.groups:
        return "any edit against edits that change no group"
    group, reference = claim.groups
    if "+" in claim.attribute:
        sides = zip(claim.attribute.split("+"), group.split("+"), reference.split("+"), strict=False)
        return " × ".join(_pair(record, *side) for side in sides)
    return _pair(record, claim.attribute, group, reference)


def _pair(record: RunRecord, attribute: str, group: str, reference: str) -> str:
    other = "others" if reference == OTHERS else claimed.name(record, attribute, reference)
    return f"{claimed.name(record, attribute, group)} / {other}"


def cell(claim: Claim, sub: str = "") -> Cell:
    """The difference of a claim with its verdict."""
    return Cell(text=claimed.net(claim), mark=claimed.verdict(claim), kind=claim.verdict, sub=sub)


def _contrasts(record: RunRecord, family: str, claims: Sequence[Claim], names: Names) -> Table:
    several, levels = len(set(names.values())) > 1, any(c.shares is not None for c in claims)
    labels = {c.label for c in claims if c.shares is not None}
    share = f"“{words.visible(labels.pop(), newlines=False)}”" if len(labels) == 1 and labels != {""} else "Share"
    model = ["Model"] if several else []
    columns = ["Attribute", share if levels else "Groups", *model, "#Texts", "Net difference (95 %)", "Verdict"]
    known = record.vocabulary.groups
    lines = (
        (
            words.attributes(c.attribute.split("+")),
            (claimed.levels(c, known.get(c.attribute)) or pair(record, c))
            + (f", “{c.label}”" if share == "Share" and c.label else ""),
            *((names[c.model, c.format],) if several else ()),
            c.texts,
            claimed.net(c),
            Cell(mark=claimed.verdict(c), kind=c.verdict, sub=claimed.reason(c)),
        )
        for c in claims
    )
    title = TITLES.get(family, "Every comparison of groups")
    most = FIRST if family == "net" or any(c.verdict in DECIDED for c in claims) else FIRST // 2
    return table(title, columns, lines, most=most, of="comparison")


def subjects(claims: Sequence[Claim]) -> dict[tuple[str, str], str]:
    """(model, format) → what it is called; empty where there is one only."""
    names = words.places((c.model, c.format) for c in claims)
    return names if len(names) > 1 else dict.fromkeys(names, "")


# -- how often answers changed at all, whoever got the better one --------------------------------------------


RATE = "violation_rate"


@dataclass(frozen=True, slots=True)
class Rate:
    """One set of attributes, asked of one model in one format; what was not measured is None."""

    attributes: tuple[str, ...]
    name: str  # of the model
    rate: Estimate
    placebo: Estimate | None
    hidden: Estimate | None  # share of judged joint variants that are hidden
    verdict: str


class Rates:
    """The rates of a record, without those of one direction or kind."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        # name, attributes, model, format
        self._known: dict[tuple[str, tuple[str, ...], str, str], Estimate] = {}
        for e in record.estimates:
            if not e.directions and not e.kind:
                self._known.setdefault((e.name, e.attributes, e.model, e.format), e.estimate)
        asked = list(record.models or record.spec.models)
        rated = dict.fromkeys((model, form) for name, _, model, form in self._known if name == RATE and model)
        pairs = [*rated, *((model, "") for model in asked if not any(m == model for m, _ in rated))]
        order = {model: i for i, model in enumerate(asked)}
        self.places = words.places(sorted(pairs, key=lambda p: (order.get(p[0], len(order)), p)))
        self.rows = list(self._rows())

    def _rows(self) -> Iterator[Rate]:
        verdicts: dict[tuple[str, str, tuple[str, ...]], str] = {}
        for f in self.record.findings:
            if f.kind == "claim" and not f.directions and not f.code.startswith("REF"):
                verdicts.setdefault((f.model, f.format, f.attributes), f.verdict)

        def find(name: str, attributes: tuple[str, ...], model: str, form: str) -> Estimate | None:
            """An estimate of one place, else of its model or format, else of the run."""
            known = (self._known.get((name, attributes, m, f)) for m in (model, "") for f in dict.fromkeys((form, "")))
            return next((e for e in known if e is not None), None)

        sets = dict.fromkeys(attributes for name, attributes, *_ in self._known if name == RATE)
        for attributes in sorted(sets, key=lambda names: (not names, len(names), names)):
            for (model, form), name in self.places.items():
                if (rate := self._known.get((RATE, attributes, model, form))) is None:
                    continue
                placebo, hidden = (find(key, attributes, model, form) for key in ("placebo_rate", "hidden_rate"))
                verdict = verdicts.get((model, form, attributes)) or verdicts.get((model, "", attributes))
                yield Rate(attributes, name, rate, placebo, hidden, verdict or "not_tested")

    def said(self) -> Iterator[str]:
        """A sentence for each place: what changed its answers most often, or why there is no rate."""
        noun = words.noun(self.record)
        for (model, _), name in self.places.items():
            mine = [row for row in self.rows if row.name == name and row.attributes]
            if not mine:
                unread, counts = run_checks.nothing(self.record, model), self.record.counts
                why = "gave too few answers"
                if unread is not None:
                    why = f"gave no answer that could be read ({run_checks.losses(unread)})"
                elif counts.valid == 0 and self.record.status != "partial":
                    made = words.plural(counts.variants or 0, "variant")
                    none = (
                        f"all {made} were discarded by the validity check" if counts.variants else "none could be made"
                    )
                    why = f"was asked about no variant: {none}"
                yield f"{name} {why}, so no rate could be measured."
                continue
            # The lower end of the interval: a rate of a few texts is no headline.
            most = max(mine, key=lambda row: (row.rate.low, row.rate.value, row.attributes))
            if not most.rate.value:
                yield f"{name} changed its {noun} in none of the variants judged."
                continue
            figures, texts = words.interval(most.rate), words.plural(most.rate.n, "text")
            with_what = words.attributes(most.attributes)
            yield f"{name} changed its {noun} most often with {with_what}, in {figures} of the variants of {texts}."


def enough(rows: Sequence[Rate]) -> list[Rate]:
    """Those on at least `MIN_TEXTS` texts; all of them where there is none."""
    return [row for row in rows if row.rate.n >= MIN_TEXTS] or list(rows)


def rate_table(rates: Rates, rows: Sequence[Rate], caption: str = "") -> Table:
    """Draw one line for each rate, then what the same prompt asked again did."""
    further = {"Placebo": [r.placebo for r in rows], "Hidden": [r.hidden for r in rows]}
    shown = {title: values for title, values in further.items() if any(values)}
    lines: list[tuple[Value, ...]] = []
    for n, r in enumerate(rows):
        verdict = Cell(mark=words.verdict(r.verdict), kind=r.verdict)
        beside = (values[n] for values in shown.values())
        lines.append((words.attributes(r.attributes), r.name, r.rate, *beside, r.rate.n, verdict))
    floors = rates.record.controls.of("noise_floor")
    for (model, _), name in rates.places.items():
        floor = floors and (floors.parts.get(model) or floors)
        lines.append(("same prompt again", name, run_checks.result(floor or None), *("",) * (len(shown) + 2)))
    level = words.confidence(next((r.rate.level for r in rows), None))
    usual = f"Share of valid variants whose {words.noun(rates.record)} differs from that for their original"
    columns = ("Attributes", "Model", "Changed", *shown, "#Texts", "Verdict")
    return table(f"{caption or usual}, with the {level} interval by text", columns, lines)


def of_changes(record: RunRecord) -> Section:
    """Return the rates of a run; they are folded away where it makes claims."""
    rates, folded = Rates(record), bool(record.claims)
    rows = enough(rates.rows)
    blocks: list[str | Block] = list(rates.said()) if folded else []  # else the answer says it
    blocks.append(rate_table(rates, rows) if rows else "No rate could be estimated.")
    blocks += [words.text("placebo_note")] if any(row.placebo for row in rows) else []
    if few := len({row.attributes for row in rates.rows} - {row.attributes for row in rows}):
        blocks.append(Text(f"{words.plural(few, 'attribute set')} {run_checks.FEW}: see report.csv.", "meta"))
    if any(record.hinter.values()):
        from auditor.contrib.hinter import measures

        blocks += measures.blocks(record)
    meaning, verdicts = words.named("verdicts"), {} if folded else dict.fromkeys(row.verdict for row in rows)
    blocks += [Text(f"{words.verdict(name)}: {meaning[name]}", "meta") for name in verdicts if name in meaning]
    title = f"How often the {words.noun(record)} changed" + (" at all" if folded else "")
    return section("rates", title, blocks, short="Rates", folded=folded, brief=not folded)


# -- charts of differences and ratios ------------------------------------------------------------------------


LINE = 22  # pixels per strip
LABELS = 30.0  # percent of the width left of the plot
PLOT = 64.0  # percent of the width that the plot takes
DRAWN = 18  # lines of a plot, and of one attribute of a model
DRAWN_EACH = 4
RATIOS = 1.5  # end of the scale of impact ratios
MARKS = {
    "shown": "M0,-6 L6,5 L-6,5 Z",
    "bounded": "M-5,0 a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0",
    "not_determined": "M-4.5,0 a4.5,4.5 0 1,0 9,0 a4.5,4.5 0 1,0 -9,0",
    "not_tested": "M-4.5,0 L0,-4.5 L4.5,0 L0,4.5 Z",
}
At = Callable[[float], str]  # the place of a value on the scale


def safe(text: object) -> Markup:
    """Escape text for HTML, after making acting characters visible."""
    return escape(words.visible(str(text)))


def svg(name: str, title: str, desc: str, height: int, body: Iterable[str]) -> Markup:
    """Wrap shapes, whose texts have gone through `safe`, as a drawing with an accessible name and description."""
    drawing = (
        f'<svg class="chart forest" role="img" aria-labelledby="{name}-t {name}-d" '
        f'width="100%" height="{height}"><title id="{name}-t">{safe(title)}</title>'
        f'<desc id="{name}-d">{safe(desc)}</desc>{"".join(body)}</svg>'
    )
    return Markup(drawing)  # noqa: S704 - every text in it went through safe()


def _text(kind: str, text: str, y: int) -> str:
    return f'<text class="{kind}" x="0" y="{y}">{safe(text)}</text>'


def _upright(kind: str, x: str, top: int, bottom: int) -> str:
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'


def _tick(x: str, bottom: int, text: str, kind: str = "grid") -> str:
    return _upright(kind, x, 4, bottom) + f'<text class="tick" x="{x}" y="{bottom + 17}">{text}</text>'


def _mark(at: At, interval: tuple[float, float] | None, value: float, kind: str, y: int, end: float = math.inf) -> str:
    """A mark with its interval, which goes on beyond the ``end`` of the scale where it has an arrow."""
    out = ""
    if interval is not None:
        low, high = map(at, interval)
        out += f'<line class="ci {kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        out += _upright(f"ci {kind}", low, y - 4, y + 4)
        arrow = f'<text class="sub" x="{high}" y="{y + 4}" dx="4">→</text>'
        out += arrow if interval[1] > end else _upright(f"ci {kind}", high, y - 4, y + 4)
    mark = f'<path class="mark {kind}" d="{MARKS[kind]}"/>'
    return out + f'<svg x="{at(value)}" y="{y}" width="1" height="1" overflow="visible">{mark}</svg>'


def net(screen: Screen, rows: int = DRAWN, each: int = DRAWN_EACH) -> Iterator[Chart]:
    """Draw comparisons with their intervals on both sides of zero; the range below delta is shaded."""
    drawn = [(row, made) for row in screen.chosen(rows, each) if (made := screen.drawn(row)) is not None]
    if not drawn:
        return
    scale, delta = screen.scale[0], max((row.claim.delta or 0.0 for row in screen.rows), default=0.0)
    reach = max([scale * delta, *(scale * max(abs(e.low), abs(e.high)) for _, e in drawn)]) or 1.0
    step = 10 ** math.floor(math.log10(reach))
    end = next(k * step for k in (1, 2, 3, 4, 5, 6, 8, 10) if k * step >= reach * 0.999)

    def at(value: float) -> str:
        return f"{LABELS + PLOT * (value + end) / (2 * end):.3f}%"

    body: list[str] = []
    listed: list[str] = []
    y, last = 6, ""
    for row, e in drawn:
        name, figures = f"{row.name} ({row.model})" if row.model else row.name, claimed.net(row.claim)
        label = ": ".join(filter(None, (name, row.label)))
        listed.append(f"{label}: {figures}, {claimed.verdict(row.claim)}")
        if label != last:
            y += 18
            last = label
            body.append(_text("row", label, y - 4))
        body.append(_mark(at, (scale * e.low, scale * e.high), scale * e.value, row.claim.verdict, y + 11))
        body.append(_text("sub", figures, y + 15))
        y += LINE + 4
    axis = [
        _tick(at(tick), y, f"{tick:+g}".replace("-", "−") if tick else "0", "grid" if tick else "zero")
        for tick in (-end, -end / 2, 0.0, end / 2, end)
    ]
    if delta:
        width = f"{PLOT * scale * delta / end:.3f}%"
        axis.append(f'<rect class="delta" x="{at(-scale * delta)}" y="4" width="{width}" height="{y - 4}"/>')
    title = words.sentence(screen.axis)
    drawing = svg("net", title.rstrip("."), "; ".join(listed), y + 28, [*axis, *body])
    yield Chart(drawing, " ".join(filter(None, (title, words.text("net_marks"), screen.note))))


def ratios(rows: Sequence[tuple[Category, str]], *, name: str, title: str) -> Markup:
    """Draw impact ratios, each with its figure in words, on a scale from 0 to 1.5 with a line at 0.80."""

    def at(value: float) -> str:
        return f"{LABELS + PLOT * min(value, RATIOS) / RATIOS:.3f}%"

    if len(rows) < 2:
        return Markup("")
    body: list[str] = []
    y = 8
    for row, text in rows:
        y += 18
        kind = "shown" if row.alarm else "bounded"
        mark = _mark(at, row.interval, row.impact_ratio or 0.0, kind, y + 11, RATIOS)
        body += [_text("row", row.category, y - 4), mark, _text("sub", text, y + 15)]
        y += LINE + 4
    frame = [_tick(at(t), y, f"{t:g}") for t in (0, 0.5, 1.0, 1.5)] + [_tick(at(0.8), y, "0.80", "noise")]
    listed = "; ".join(f"{row.category} {text}" for row, text in rows)
    return svg(name, title, listed, y + 28, [*frame, *body])


# -- what was measured besides claims ------------------------------------------------------------------------


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
