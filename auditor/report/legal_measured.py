"""What was measured, as parts of a legal page: claims, materials, grounds, accuracy, treatment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.measure.claims import MIN_TEXTS
from auditor.report import change_rates, claimed, tabular_report, words
from auditor.report import compliance_facts as facts
from auditor.report import compliance_page as said
from auditor.report.compliance_page import Page
from auditor.report.document import Block, Cell, Facts, Items, Table, Text, table

MAX_LISTED = 200
FIRST_HIDDEN = 6  # that stand in the open
LARGEST = 12  # groups whose accuracy does


def gates(page: Page) -> tuple[str, ...]:
    """That a control did not hold, or was not run."""
    banner = facts.gate_banner(page.gates)
    return (f"Gates. {banner}",) if banner else ()


def under_gates(page: Page) -> Iterator[Block]:
    """The same, above the figures that stand under it."""
    return (Text(note, "note") for note in gates(page))


def verdict(kind: str) -> Cell:
    """A verdict as a cell."""
    return Cell(mark=words.verdict(kind), kind=kind)


def claims(page: Page) -> Iterator[Block]:
    """Every claim with its figures and its verdict, and what the verdicts mean."""
    rows, delta = page.kind == "rows", page.record.spec.delta
    if page.claims:
        level = "" if rows else " at 95 %"
        bound = "no bound δ was set, so nothing can be bounded"
        if delta is not None:
            bound = f"bound δ set before the run: {100 * delta:g} %"
        caption = f"Every claim, with its interval{level}, the controls beside it, and its verdict; {bound}"
        directed, others = ([c for c in page.claims if c.directed is kind] for kind in (True, False))
        if directed:
            yield claim_table(page, directed, caption)
        if others:
            more = "Any change of the answer, by attribute; verdicts as above"
            yield claim_table(page, others, more if directed else caption)
    elif page.kind == "outcomes":
        yield Text("This record makes no claim: it holds rates of outcomes, which stand under Impact.")
    else:
        yield Text("This record makes no claim.")
    meaning = words.named("row_verdicts" if rows else "verdicts")
    yield Items(tuple(f"{words.verdict(name)}: {text}" for name, text in meaning.items()))
    if page.more_claims:
        further = words.plural(len(page.more_claims), "further claim")
        yield Text(f"{further} about one group and another: in the statistical appendix.")
    if page.few:
        yield Text(f"{words.plural(page.few, 'claim')} of fewer than {MIN_TEXTS} texts: in report.csv.", "meta")


def claim_table(page: Page, claims: Sequence[facts.Claim], caption: str) -> Table:
    """Claims with what was measured; what neutral edits and the same prompt did is with the rates."""
    units = "Rows" if page.kind == "rows" else "Texts"
    lines = (
        (c.id, c.what, c.model, Cell(text=c.effect), words.count(c.texts), c.p, verdict(c.verdict)) for c in claims
    )
    columns = ("Claim", "What was measured", "Model", "Measured", units, "p, adjusted", "Verdict")
    return table(caption, columns, lines, right=(units, "p, adjusted"))


def materials(page: Page) -> Iterator[Block]:
    """Texts, words and labels of the run, and how many."""
    yield Facts("What the figures rest on", said.materials(page.record), grid=True)
    if written := claimed.written(page.record):
        caption = (
            "Groups, and every word that was written for them; a group that is named as its only word stands alone"
        )
        lines = []
        for name in dict.fromkeys(w.attribute for w in written):
            mine = [w for w in written if w.attribute == name]
            lines.append((name, words.count(sum(len(w.words) for w in mine)), "; ".join(map(_written, mine))))
        yield table(caption, "Attribute | #Words | Groups: words", lines)


def _written(one: claimed.Words) -> str:
    """``women: she, woman``; the name alone where it is the only word."""
    name = words.group(one.group)
    return name if one.words == (name,) else f"{name}: {', '.join(one.words)}"


def grounds(page: Page) -> Iterator[Block]:
    """The grounds of the framework, and what was tested of each."""
    caption = (
        "Each ground that the text names, and what was tested of it here. A ground that was tested was tested for the "
        "groups and words listed, and for no others"
    )
    lines = ((g.ground, ", ".join(g.attributes) if g.attributes else verdict("not_tested")) for g in page.grounds)
    yield table(caption, "Ground | Tested as", lines)


def accuracy(page: Page) -> Iterator[Block]:
    """Answers against the labels, by group."""
    if not (every := facts.accuracy(page.record)):
        yield Text("Not measured: the texts or rows carry no labels to compare answers with.")
        return
    models = tuple(dict.fromkeys(a.model for a in every))
    by_scope: dict[str, dict[str, facts.Accuracy]] = {}
    for a in every:
        scope = f"{a.attribute}: {words.group(a.group)}" if a.attribute else "all texts"
        by_scope.setdefault(scope, {})[a.model] = a
    lines = []
    for scope, by_model in sorted(by_scope.items(), key=lambda kv: -max(a.texts for a in kv[1].values())):
        texts = next(iter(by_model.values())).texts
        lines.append((scope, words.count(texts), *(_accuracy_of(by_model.get(model), texts) for model in models)))
    yield table(
        "Share of original texts that were answered like their label, with its interval at 95 %",
        ("Texts that name", "Texts", *models),
        lines,
        right=["Texts"],
        most=LARGEST,
        left=("smaller group", "smaller groups"),
    )
    yield Text(words.text("legal_accuracy"), "meta")


def _accuracy_of(one: facts.Accuracy | None, texts: int) -> str | Cell:
    """An accuracy, with its number of texts where that is another than the one of the row."""
    if one is None:
        return "–"
    return Cell(text=words.interval(one.estimate), sub="" if one.texts == texts else words.plural(one.texts, "text"))


def counterfactual(page: Page) -> Iterator[Block]:
    """How often answers changed with one attribute."""
    if page.kind != "texts":
        yield Text(words.text("no_treatment" if page.kind == "outcomes" else "no_texts"))
        return
    yield from under_gates(page)
    yield from _rates(page, "", joint=False)


def intersections(page: Page) -> Iterator[Block]:
    """How often they changed with several, and the hidden changes."""
    if page.kind != "texts":
        lattice = [] if page.kind == "outcomes" else of_rows(page, "lattice")
        none = words.text("no_treatment") if page.kind == "outcomes" else "No joint change was judged."
        yield from lattice or [Text(none)]
        return
    yield from under_gates(page)
    yield Text(words.text("legal_hidden"))
    yield from _rates(page, "Joint changes; hidden is the share of judged joint variants", joint=True)
    if not (hidden := claimed.hidden(page.record)):
        yield Text(claimed.none_hidden(page.record))
        return
    lines = (
        (
            h.id,
            words.direction(h.directions) or words.attributes(h.attributes),
            h.model,
            Cell(mark=words.finding_verdict(h), kind=h.verdict),
        )
        for h in hidden[:MAX_LISTED]
    )
    of = f", the first {MAX_LISTED} of {words.count(len(hidden))}" if len(hidden) > MAX_LISTED else ""
    columns, left = "Finding | Attributes | Model | Verdict", ("further finding", "further findings")
    yield table(f"Hidden findings{of}", columns, lines, most=FIRST_HIDDEN, left=left)


def _rates(page: Page, caption: str, *, joint: bool) -> Iterator[Block]:
    """The rates of one attribute, or of several at once; those of few texts are in the CSV."""
    every = change_rates.Rates(page.record)
    mine = [row for row in every.rows if row.attributes and (len(row.attributes) > 1) is joint]
    if not mine:
        yield Text("No joint change was judged." if joint else "No rate could be estimated.")
        return
    kept = change_rates.enough(mine)
    few = dict.fromkeys(words.attributes(row.attributes) for row in mine if row not in kept)
    if few:
        yield Text(f"In report.csv alone, with fewer than {MIN_TEXTS} texts: {words.listing(list(few))}.", "meta")
    yield change_rates.rate_table(every, kept, caption)


def of_rows(page: Page, *names: str) -> list[Block]:
    """The named sections of a search over rows."""
    sections = (
        {section.id: section for section in tabular_report.build(page.record).sections} if page.kind == "rows" else {}
    )
    return [block for name in names if name in sections for block in sections[name].blocks]


def rows(page: Page) -> Iterator[Block]:
    """What a search over rows found."""
    if page.kind == "rows":
        yield from under_gates(page)
        yield from of_rows(page, "summary", "scores")
    else:
        yield Text(words.text("no_treatment" if page.kind == "outcomes" else "no_rows"))
