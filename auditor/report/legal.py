"""A legal page as a document: one record beside one framework, a section for each key of `SECTIONS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.report import legal_measured as measured
from auditor.report import ll144, ll144_report, prose, words
from auditor.report.compliance_facts import Claim
from auditor.report.compliance_page import MAX_LISTED, Page
from auditor.report.document import (
    Block,
    Cell,
    Document,
    Evidence,
    Facts,
    Fold,
    Form,
    Items,
    Lines,
    Section,
    Sheet,
    Table,
    Text,
)
from auditor.report.rows import MIN_SEEDS

SHORT = {
    "says": "What it says",
    "system": "System",
    "plan": "Plan",
    "materials": "Materials",
    "grounds": "Grounds",
    "accuracy": "Accuracy",
    "controls": "Controls",
    "counterfactual": "Treatment",
    "intersections": "Jointly",
    "rows": "Rows",
    "impact": "Impact",
    "evidence": "Evidence",
    "response": "Response",
    "crosswalk": "Clauses",
    "statistics": "Statistics",
}
LEVELS = {"direct": "bounded", "input": "", "not_covered": "not_tested"}  # what colours a level
FIELDS = (
    "For the responsible person. What is typed here stays in this window: print it, or put it into responsible.toml "
    "and report with --fill"
)
RESPONSE = (
    "For the responsible person. A result without a response is half a record: what was decided, why, by whom, and "
    "which run tests it again."
)
SIGNED = (
    "Without date and signature this is a draft. Whoever signs vouches for what they filled in and for having read the "
    "limits; the tool vouches for nobody."
)


def build(page: Page) -> Document:
    """Lay a legal page out."""
    framework = page.framework
    sections = []
    for id, title in page.sections.items():
        blocks = tuple(_BUILDERS[id](page))
        sections.append(Section(id=id, title=title, short=SHORT.get(id, title), blocks=blocks))
        if id == "provenance":
            glossary = Facts("Words, each used in one sense", tuple(prose.named("glossary").items()))
            title = "Glossary"
            sections.append(Section(id="glossary", title=title, short=title, blocks=(glossary,)))
    return Document(
        title=f"{page.title}, laid beside {framework.within}",
        name=f"Report {page.report}",
        meta=f"{framework.text} · text consulted {framework.consulted}",
        banners=(*page.banners, *(f"{told} The figures below stand under this." for told in measured.gates(page))),
        first=None,
        sections=tuple(sections),
        footer=f"SHA-256 of the record (canonical JSON): {page.record_sha256}",
        inert=True,
    )


def _says(page: Page) -> Iterable[Block]:
    return Items(page.says), Text("Not tested here", "heading"), Items(page.untested)


def _status(page: Page) -> Iterable[Block]:
    return (Facts("", page.status, grid=True),)


# -- claims ---------------------------------------------------------------------------------------------


def _claims(page: Page) -> Iterable[Block]:
    rows = page.kind == "rows"
    if page.claims:
        level = "" if rows else " at 95 %"
        bound = "no bound δ was set, so nothing can be bounded"
        if page.delta is not None:
            bound = f"bound δ set before the run: {100 * page.delta:g} %"
        caption = f"Every claim, with its interval{level}, the controls beside it, and its verdict; {bound}"
        directed = [c for c in page.claims if c.placebo == "–"]
        others = [c for c in page.claims if c not in directed]
        if directed:
            yield _table_of(page, directed, caption)
        if others:
            more = "Any change of the answer, by attribute; verdicts as above"
            yield _table_of(page, others, more if directed else caption)
    elif page.kind == "outcomes":
        yield Text("This record makes no claim: it holds rates of outcomes, which stand under Impact.")
    else:
        yield Text("This record makes no claim.")
    meaning = prose.named("row_verdicts" if rows else "verdicts")
    yield Items(tuple(f"{words.verdict(name)}: {told}" for name, told in meaning.items()))
    if page.more_claims:
        told = words.plural(len(page.more_claims), "further claim")
        yield Text(f"{told} about one group and another: in the statistical appendix.")
    if page.few:
        yield Text(f"{words.plural(page.few, 'claim')} of fewer than {MIN_SEEDS} texts: in report.csv.", "meta")


def _table_of(page: Page, claims: Sequence[Claim], caption: str) -> Table:
    """Claims, then what the same prompt asked again did to each model; placebo edits where they were asked."""
    units = "Rows" if page.kind == "rows" else "Texts"
    placebo = any(c.placebo != "–" for c in claims)
    middle = ("Placebo",) if placebo else ()
    columns = ("Claim", "What was measured", "Model", "Measured", *middle, units, "p, adjusted", "Verdict")
    lines: list[tuple[str | Cell, ...]] = [
        (
            c.id,
            c.what,
            c.model,
            Cell(text=c.effect),
            *((Cell(text=c.placebo),) if placebo else ()),
            words.count(c.texts),
            c.p,
            measured.verdict(c.verdict),
        )
        for c in claims
    ]
    again = dict.fromkeys((c.model, c.noise) for c in claims)
    blank = ("",) * (len(columns) - 4)
    lines += [("", "same prompt again", model, noise, *blank) for model, noise in again]
    right = frozenset({units, "p, adjusted"})
    return Table(caption=caption, columns=columns, lines=tuple(lines), right=right)


def _system(page: Page) -> Iterable[Block]:
    yield Text("What the record knows comes first. The rest is for the responsible person; nothing of it was checked.")
    if page.system:
        yield Facts("From the record: what was asked for, and what answered", page.system)
    yield Form(FIELDS, "field", page.form.fields)


def _plan(page: Page) -> Iterable[Block]:
    yield Text(page.plan_told)
    yield Facts("Settings", page.plan, grid=True)
    yield Table(
        caption="What each measure is, and what it says", columns=("Measure", "Is", "Says"), lines=page.measures
    )
    yield Text("Deviations from the plan", "heading")
    if page.deviations:
        columns = ("What", "As planned", "As run")
        yield Table(caption="What was done otherwise than planned", columns=columns, lines=page.deviations)
    elif page.frozen:
        yield Text("None was recorded.")
    else:
        yield Text("No plan was frozen beforehand, so a deviation could not be seen.")


def _controls(page: Page) -> Iterable[Block]:
    if not page.gates:
        told = (
            "Tables of outcomes have no controls of this kind; what was left out and who is unknown stands under "
            "Impact."
        )
        yield Text(told)
        return
    yield Table(
        caption="Each control, whether it held, and what hangs on it",
        columns=("Control", "State", "Result", "What hangs on it"),
        lines=tuple((g.name, g.word, g.result, g.depends) for g in page.gates),
    )


def _impact(page: Page) -> Iterable[Block]:
    if page.outcomes is None:
        yield Text(prose.text("no_impact"))
        return
    yield Text(prose.text("impact_note"))
    yield Text(ll144.banner(page.outcomes), "note")
    if page.outcomes.warnings:
        yield Items(page.outcomes.warnings)
    yield Items(tuple(ll144_report.sentences(page.outcomes)))
    yield from ll144_report.impact(page.outcomes)
    if page.framework.id == "ll144":
        yield Text("Draft of the published summary (6 RCNY 5-303)", "heading")
        yield from ll144_report.draft(page.outcomes)


# -- what people do with it -----------------------------------------------------------------------------


def _evidence(page: Page) -> Iterable[Block]:
    if page.cards:
        yield Text(
            "Examples, those first that were shown. They illustrate and prove no rate. All prompts and answers lie in "
            f"the run folder; audit verify {page.run} finds any line that was changed, taken out or moved."
        )
        yield from map(Evidence, page.cards)
    elif "pairs" in page.of_rows:
        yield from page.of_rows["pairs"].blocks
    else:
        yield Text("No example was recorded.")


def _response(page: Page) -> Iterable[Block]:
    return Text(RESPONSE), Sheet("What was decided about each finding", page.form.measures)


def _crosswalk(page: Page) -> Iterable[Block]:
    framework = page.framework
    yield Text(f"{framework.text}; consulted {framework.consulted}. {framework.how}")
    yield Items(framework.notes)
    lines: Lines = tuple(
        (
            c.clause.ref,
            c.clause.asks,
            Cell(mark=c.word, kind=LEVELS[c.level]),
            c.gives,
            Cell(links=tuple((id, SHORT.get(id, title)) for id, title in c.links)) if c.links else "–",
            c.read,
        )
        for c in page.crossings
    )
    yield Table(
        caption="Per clause: direct evidence, input to somebody's own assessment, or not covered. What a clause "
        "asks is put in our own words",
        columns=("Clause", "Asks", "This report", "What it gives", "Where", "Read from"),
        lines=lines,
    )
    yield Facts("Sources", tuple(framework.sources.items()))


def _statistics(page: Page) -> Iterable[Block]:
    yield Items(page.statistics)
    if page.claims:
        told = tuple(
            f"{c.id} {words.verdict(c.verdict)}: {c.sentence}" + (f" {'; '.join(c.notes)}." if c.notes else "")
            for c in page.claims
        )
        yield Fold("Claims in words", (Items(told),))
    if page.more_claims:
        of = len(page.more_claims)
        left = f"; the first {MAX_LISTED} of {words.count(of)}, the others are in run.json" if of > MAX_LISTED else ""
        table = _table_of(page, page.more_claims[:MAX_LISTED], f"Signed differences{left}")
        yield Fold(f"Further claims ({words.count(of)})", (table,))
    if page.versions:
        yield Facts("Versions of what computed the figures", page.versions, grid=True)


def _provenance(page: Page) -> Iterable[Block]:
    yield Facts("SHA-256 of what shaped the run", page.hashes)
    yield Text(
        f"To check: audit verify {page.run} recomputes the chain of every journal from the plan on and names any line "
        f"that was changed, is missing, or stands elsewhere."
    )


def _signature(page: Page) -> Iterable[Block]:
    return Text(SIGNED), Form("Signature", "signature", page.form.signature)


_BUILDERS: dict[str, Callable[[Page], Iterable[Block]]] = {
    "status": _status,
    "says": _says,
    "claims": _claims,
    "system": _system,
    "plan": _plan,
    "materials": measured.materials,
    "grounds": measured.grounds,
    "accuracy": measured.accuracy,
    "controls": _controls,
    "counterfactual": measured.counterfactual,
    "intersections": measured.intersections,
    "rows": measured.rows,
    "impact": _impact,
    "evidence": _evidence,
    "response": _response,
    "crosswalk": _crosswalk,
    "limits": lambda page: (Items(page.limits),),
    "statistics": _statistics,
    "provenance": _provenance,
    "signature": _signature,
}
