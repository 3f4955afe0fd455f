"""What was measured, as parts of a legal page: materials, grounds, accuracy, treatment; see `auditor.report.legal`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.report import charts, prose, view, words
from auditor.report.compliance_facts import Accuracy
from auditor.report.compliance_page import MAX_LISTED, Page
from auditor.report.document import Block, Cell, Chart, Facts, Fold, Lines, Table, Text
from auditor.report.rows import MIN_SEEDS

HIDDEN = (
    "A change is hidden if the answer moves only when several attributes change together; each smaller change was "
    "asked too, and left it as it was. Independent noise alone makes such cases: a count stands on the controls above "
    "and on repetition."
)
FIRST_HIDDEN = 6  # that stand in the open
LARGEST = 12  # groups whose accuracy does
FOREST = (
    "Mark: share changed. Line: interval by text. Dashed tick on a grey band: the same prompt asked again, where that "
    "was measured. Triangle: shown. Filled circle: bounded. Open circle: not determined. Open diamond: not tested."
)


def gates(page: Page) -> tuple[str, ...]:
    """That a control did not hold, or was not run."""
    return (f"Gates. {page.gate_banner}",) if page.gate_banner else ()


def under_gates(page: Page) -> Iterable[Block]:
    """The same, above the figures that stand under it."""
    return (Text(told, "note") for told in gates(page))


def verdict(kind: str) -> Cell:
    """A verdict as a cell."""
    return Cell(mark=words.verdict(kind), kind=kind)


def materials(page: Page) -> Iterable[Block]:
    """Texts, words and labels of the run, and how many."""
    yield Facts("What the figures rest on", page.materials, grid=True)
    if page.coverage:
        counts = ("Texts", "Variants", "Discarded")
        yield Table(
            caption="Sets of attributes that were tested; anything else was not",
            columns=("Attributes", *counts, "Verdicts"),
            lines=page.coverage,
            right=frozenset(counts),
        )
    if page.written:
        lines = []
        for name in dict.fromkeys(w.attribute for w in page.written):
            mine = [w for w in page.written if w.attribute == name]
            lines.append((name, words.count(sum(w.count for w in mine)), "; ".join(w.told for w in mine)))
        yield Table(
            caption=(
                "Groups, and every word that was written for them; a group that is named as its only word stands alone"
            ),
            columns=("Attribute", "Words", "Groups: words"),
            lines=tuple(lines),
            right=frozenset({"Words"}),
        )


def grounds(page: Page) -> Iterable[Block]:
    """The grounds of the framework, and what was tested of each."""
    caption = (
        "Each ground that the text names, and what was tested of it here. A ground that was tested was tested for the "
        "groups and words listed, and for no others"
    )
    lines: Lines = tuple(
        (g.ground, ", ".join(g.attributes) if g.attributes else verdict("not_tested")) for g in page.grounds
    )
    yield Table(caption=caption, columns=("Ground", "Tested as"), lines=lines)


def accuracy(page: Page) -> Iterable[Block]:
    """Answers against the labels, by group."""
    if not page.accuracy:
        yield Text("Not measured: the texts or rows carry no labels to compare answers with.")
        return
    models = tuple(dict.fromkeys(a.model for a in page.accuracy))
    found: dict[str, dict[str, Accuracy]] = {}
    for a in page.accuracy:
        found.setdefault(a.scope, {})[a.model] = a
    lines: list[tuple[str | Cell, ...]] = []
    for scope, by_model in sorted(found.items(), key=lambda kv: -max(a.texts for a in kv[1].values())):
        texts_ = next(iter(by_model.values())).texts
        cells = (_accuracy_of(by_model.get(model), texts_) for model in models)
        lines.append((scope, words.count(texts_), *cells))
    yield Table(
        caption="Share of original texts that were answered like their label, with its interval at 95 %",
        columns=("Texts that name", "Texts", *models),
        lines=tuple(lines[:LARGEST]),
        right=frozenset({"Texts"}),
        more=tuple(lines[LARGEST:]),
        left=("smaller group", "smaller groups"),
    )
    yield Text(
        "Different groups stand in different texts: a difference between two lines here may be one between their "
        "texts. Groups in fewer than 6 texts are left out.",
        "meta",
    )


def _accuracy_of(found: Accuracy | None, texts_: int) -> str | Cell:
    """An accuracy, with its number of texts where that is another than the one of the row."""
    if found is None:
        return "–"
    return Cell(
        text=words.interval(found.estimate), sub="" if found.texts == texts_ else words.plural(found.texts, "text")
    )


def counterfactual(page: Page) -> Iterable[Block]:
    """How often answers changed with one attribute."""
    if page.view is None:
        yield Text(prose.text("no_treatment" if page.kind == "outcomes" else "no_texts"))
        return
    yield from under_gates(page)
    rows = [r for r in page.view.rows if len(r.attributes) == 1]
    caption = f"Share of valid variants whose {page.view.noun} differs from that for their original"
    yield from _rates(page, page.view, rows, caption, "one attribute")
    if not rows:
        yield Text("No rate could be estimated.")


def intersections(page: Page) -> Iterable[Block]:
    """How often they changed with several, and the hidden changes."""
    if page.view is None:
        found = page.of_rows.get("lattice")
        none = prose.text("no_treatment") if page.kind == "outcomes" else "No joint change was judged."
        yield from found.blocks if found is not None else (Text(none),)
        return
    yield from under_gates(page)
    yield Text(HIDDEN)
    rows = [r for r in page.view.rows if len(r.attributes) > 1]
    yield from _rates(
        page,
        page.view,
        rows,
        "Joint changes; hidden is the share of judged joint variants",
        "several attributes",
        folded=True,
    )
    if not rows:
        yield Text("No joint change was judged.")
    hidden = page.view.hidden
    if not hidden:
        yield Text(page.view.none_hidden)
        return
    lines: Lines = tuple(
        (
            h.id,
            words.direction(h.directions) or words.attributes(h.attributes),
            h.model,
            Cell(mark=words.finding_verdict(h), kind=h.verdict),
        )
        for h in hidden[:MAX_LISTED]
    )
    of = f", the first {MAX_LISTED} of {words.count(len(hidden))}" if len(hidden) > MAX_LISTED else ""
    yield Table(
        caption=f"Hidden findings{of}",
        columns=("Finding", "Attributes", "Model", "Verdict"),
        lines=lines[:FIRST_HIDDEN],
        more=lines[FIRST_HIDDEN:],
        left=("further finding", "further findings"),
    )


def _rates(
    page: Page, shown: view.View, rows: Sequence[view.Row], caption: str, what: str, *, folded: bool = False
) -> Iterable[Block]:
    """Chart and table of attribute sets; those of few texts are not drawn where others have more.

    The chart holds no figure that the table lacks, so it may be ``folded`` away.
    """
    rows, few = view.split(rows)
    chart = charts.forest(
        rows,
        shown.subjects,
        name=what.split()[0],
        title=f"How often the {shown.noun} changed with {what}",
        delta=page.delta,
    )
    shaded = " Shaded from the left: below δ." if page.delta is not None else ""
    if chart and not folded:
        yield Chart(chart, FOREST + shaded)
    if few:
        told = words.listing([r.label for r in few])
        yield Text(f"In report.csv alone, with fewer than {MIN_SEEDS} texts: {told}.", "meta")
    if rows:
        lines: Lines = tuple(
            (
                r.label,
                subject.name,
                Cell(text=words.interval(c.rate)),
                Cell(text=words.interval(c.placebo)),
                Cell(text=words.interval(c.hidden)) if c.hidden else "–",
                words.count(r.seeds),
                verdict(c.verdict),
            )
            for r in rows
            for subject, c in zip(shown.subjects, r.cells, strict=True)
        )
        columns = ("Attributes", "Model", "Changed", "Placebo", "Hidden", "Texts", "Verdict")
        yield Table(caption=caption, columns=columns, lines=lines, right=frozenset({"Texts"}))
    if chart and folded:
        yield Fold(f"Drawn: how often the {shown.noun} changed with {what}", (Chart(chart, FOREST + shaded),))


def rows(page: Page) -> Iterable[Block]:
    """What a search over rows found."""
    found = [page.of_rows[name] for name in ("summary", "scores") if name in page.of_rows]
    if page.kind != "rows":
        yield Text(prose.text("no_treatment" if page.kind == "outcomes" else "no_rows"))
        return
    yield from under_gates(page)
    for section in found:
        yield from section.blocks
