"""A legal page as a document: one record beside one framework, a section for each that the page has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from auditor.core.record import head
from auditor.report import cards, ll144_report, ll144_words, words
from auditor.report import compliance_facts as facts
from auditor.report import compliance_page as said
from auditor.report import document as doc
from auditor.report import legal_measured as measured
from auditor.report.compliance_facts import Claim
from auditor.report.compliance_page import Page
from auditor.report.legal_measured import MAX_LISTED
from auditor.report.view import MIN_SEEDS

LEVELS = {"direct": "bounded", "input": "", "not_covered": "not_tested"}  # what colours a level
MAX_CARDS = 6


def build(page: Page) -> doc.Document:
    """Lay a legal page out."""
    framework = page.framework
    title = "Rates of recorded outcomes" if page.kind == "outcomes" else "Bias test report"
    return doc.Document(
        title=f"{title}, laid beside {framework.within}",
        name=f"Report {page.report}",
        meta=f"{framework.text} · text consulted {framework.consulted}",
        banners=(*page.banners, *(f"{note} The figures below stand under this." for note in measured.gates(page))),
        sections=tuple(_sections(page)),
        footer=f"SHA-256 of the record (canonical JSON): {head(page.record.raw)}",
        inert=True,
    )


def _sections(page: Page) -> Iterator[doc.Section]:
    short = words.named("legal_short")
    for id, title in page.sections.items():
        yield doc.Section(id=id, title=title, short=short.get(id, ""), blocks=tuple(BUILDERS[id](page)))
        if id == "provenance":
            glossary = doc.Facts("Words, each used in one sense", tuple(words.named("glossary").items()))
            yield doc.Section(id="glossary", title="Glossary", blocks=(glossary,))


def _says(page: Page) -> Iterator[doc.Block]:
    yield from (doc.Items(page.says), doc.Text("Not tested here", "heading"), doc.Items(page.not_tested))


def _status(page: Page) -> Iterator[doc.Block]:
    yield doc.Facts("", page.status, grid=True)


# -- claims ---------------------------------------------------------------------------------------------


def _claims(page: Page) -> Iterator[doc.Block]:
    rows, delta = page.kind == "rows", page.record.spec.delta
    if page.claims:
        level = "" if rows else " at 95 %"
        bound = "no bound δ was set, so nothing can be bounded"
        if delta is not None:
            bound = f"bound δ set before the run: {100 * delta:g} %"
        caption = f"Every claim, with its interval{level}, the controls beside it, and its verdict; {bound}"
        directed = [c for c in page.claims if c.placebo == "–"]
        others = [c for c in page.claims if c not in directed]
        if directed:
            yield _table_of(page, directed, caption)
        if others:
            more = "Any change of the answer, by attribute; verdicts as above"
            yield _table_of(page, others, more if directed else caption)
    elif page.kind == "outcomes":
        yield doc.Text("This record makes no claim: it holds rates of outcomes, which stand under Impact.")
    else:
        yield doc.Text("This record makes no claim.")
    meaning = words.named("row_verdicts" if rows else "verdicts")
    yield doc.Items(tuple(f"{words.verdict(name)}: {text}" for name, text in meaning.items()))
    if page.more_claims:
        further = words.plural(len(page.more_claims), "further claim")
        yield doc.Text(f"{further} about one group and another: in the statistical appendix.")
    if page.few:
        yield doc.Text(f"{words.plural(page.few, 'claim')} of fewer than {MIN_SEEDS} texts: in report.csv.", "meta")


def _table_of(page: Page, claims: Sequence[Claim], caption: str) -> doc.Table:
    """Claims, then what the same prompt asked again did to each model; placebo edits where they were asked."""
    units = "Rows" if page.kind == "rows" else "Texts"
    placebo = any(c.placebo != "–" for c in claims)
    middle = ("Placebo",) if placebo else ()
    columns = ("Claim", "What was measured", "Model", "Measured", *middle, units, "p, adjusted", "Verdict")
    lines: list[tuple[str | doc.Cell, ...]] = [
        (
            c.id,
            c.what,
            c.model,
            doc.Cell(text=c.effect),
            *((doc.Cell(text=c.placebo),) if placebo else ()),
            words.count(c.texts),
            c.p,
            measured.verdict(c.verdict),
        )
        for c in claims
    ]
    blank = ("",) * (len(columns) - 4)
    again = dict.fromkeys((c.model, c.noise) for c in claims)
    lines += [("", "same prompt again", model, noise, *blank) for model, noise in again]
    return doc.table(caption, columns, lines, right=(units, "p, adjusted"))


# -- system, plan, materials, controls ------------------------------------------------------------------


def _system(page: Page) -> Iterator[doc.Block]:
    yield doc.Text(
        "What the record knows comes first. The rest is for the responsible person; nothing of it was checked."
    )
    if known := said.system(page.record):
        yield doc.Facts("From the record: what was asked for, and what answered", known)
    yield doc.Form(words.text("legal_fields"), "field", page.form.fields)


def _plan(page: Page) -> Iterator[doc.Block]:
    intro, settings = said.plan(page.record)
    yield from (doc.Text(intro), doc.Facts("Settings", settings, grid=True))
    yield doc.table(
        "What each measure is, and what it says", "Measure | Is | Says", words.rows(f"{page.kind}_measures")
    )
    yield doc.Text("Deviations from the plan", "heading")
    if deviations := said.deviations(page.record):
        yield doc.table("What was done otherwise than planned", "What | As planned | As run", deviations)
    elif page.record.frozen:
        yield doc.Text("None was recorded.")
    else:
        yield doc.Text("No plan was frozen beforehand, so a deviation could not be seen.")


def _controls(page: Page) -> Iterator[doc.Block]:
    if page.gates:
        lines = ((g.name, facts.GATE_WORDS[g.state], g.result, g.depends) for g in page.gates)
        caption = "Each control, whether it held, and what hangs on it"
        yield doc.table(caption, "Control | State | Result | What hangs on it", lines)
    else:
        yield doc.Text(words.text("legal_no_gates"))


# -- treatment and impact -------------------------------------------------------------------------------


def _impact(page: Page) -> Iterator[doc.Block]:
    if (outcomes := page.outcomes) is None:
        yield doc.Text(words.text("no_impact"))
        return
    yield from (doc.Text(words.text("impact_note")), doc.Text(ll144_words.banner(outcomes), "note"))
    if outcomes.warnings:
        yield doc.Items(outcomes.warnings)
    yield doc.Items(tuple(ll144_words.sentences(outcomes)))
    yield from ll144_report.impact(outcomes)
    if page.framework.id == "ll144":
        yield doc.Text("Draft of the published summary (6 RCNY 5-303)", "heading")
        yield from ll144_report.draft(outcomes)


# -- what people do with it -----------------------------------------------------------------------------


def _evidence(page: Page) -> Iterator[doc.Block]:
    if chosen := list(_examples(page)):
        yield doc.Text(
            "Examples, those first that were shown. They illustrate and prove no rate. All prompts and answers lie in "
            f"the run folder; audit verify {words.run_name(page.record)} finds any line that was changed, taken out or "
            "moved."
        )
        yield from chosen
    else:
        yield from measured.of_rows(page, "pairs") or [doc.Text("No example was recorded.")]


def _examples(page: Page) -> Iterator[doc.Evidence]:
    """Hidden findings, claims that were shown, and single examples, in this order."""
    if (shown := page.view) is None or page.evidence is None:
        return
    claims = [f for f in page.record.findings if f.kind == "claim" and f.verdict == "shown"]
    claims = [f for f in claims if facts.own(f) and f.exemplars]
    chosen = [*shown.hidden[: MAX_CARDS // 2], *claims[: MAX_CARDS // 2], *shown.violations]
    for f in chosen[:MAX_CARDS]:
        yield doc.Evidence(cards.build(f, page.evidence, record=page.record))


def _response(page: Page) -> Iterable[doc.Block]:
    return doc.Text(words.text("legal_response")), doc.Sheet("What was decided about each finding", page.form.measures)


def _crosswalk(page: Page) -> Iterator[doc.Block]:
    framework, short = page.framework, words.named("legal_short")
    yield doc.Text(f"{framework.text}; consulted {framework.consulted}. {framework.how}")
    yield doc.Items(framework.notes)
    lines = (
        (
            c.clause.ref,
            c.clause.asks,
            doc.Cell(mark=c.word, kind=LEVELS[c.level]),
            c.gives,
            doc.Cell(links=tuple((id, short.get(id, title)) for id, title in c.links)) if c.links else "–",
            c.read,
        )
        for c in page.crossings
    )
    caption = (
        "Per clause: direct evidence, input to somebody's own assessment, or not covered. What a clause "
        "asks is put in our own words"
    )
    yield doc.table(caption, "Clause | Asks | This report | What it gives | Where | Read from", lines)
    yield doc.Facts("Sources", tuple(framework.sources.items()))


def _statistics(page: Page) -> Iterator[doc.Block]:
    yield doc.Items(words.lines(f"{page.kind}_statistics"))
    if page.claims:
        claims = tuple(
            f"{c.id} {words.verdict(c.verdict)}: {c.sentence}" + (f" {'; '.join(c.notes)}." if c.notes else "")
            for c in page.claims
        )
        yield doc.Fold("Claims in words", (doc.Items(claims),))
    if of := len(page.more_claims):
        left = f"; the first {MAX_LISTED} of {words.count(of)}, the others are in run.json" if of > MAX_LISTED else ""
        more = _table_of(page, page.more_claims[:MAX_LISTED], f"Signed differences{left}")
        yield doc.Fold(f"Further claims ({words.count(of)})", (more,))
    made = page.record.provenance
    versions = [(name, value) for name, value in (("Python", made.python), ("Platform", made.platform)) if value]
    versions += [(name, version or "not installed") for name, version in made.packages.items()]
    if versions:
        yield doc.Facts("Versions of what computed the figures", tuple(versions), grid=True)


def _provenance(page: Page) -> Iterator[doc.Block]:
    yield doc.Facts("SHA-256 of what shaped the run", said.hashes(page.record))
    yield doc.Text(
        f"To check: audit verify {words.run_name(page.record)} recomputes the chain of every journal from the plan on "
        "and names any line that was changed, is missing, or stands elsewhere."
    )


BUILDERS: dict[str, Callable[[Page], Iterable[doc.Block]]] = {
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
    "limits": lambda page: (doc.Items(page.limits),),
    "statistics": _statistics,
    "provenance": _provenance,
    "signature": lambda page: (
        doc.Text(words.text("legal_signed")),
        doc.Form("Signature", "signature", page.form.signature),
    ),
}
