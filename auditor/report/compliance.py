"""Pages for auditors and lawyers: one record laid beside one framework, as HTML, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Renderer
from auditor.core.reading import from_json
from auditor.core.record import Plain, RunRecord, head, read
from auditor.core.registry import PAGES
from auditor.core.shown import quoted
from auditor.report import cards, claimed, first_screen, html, ll144_report, markdown, matrix, tabular_report, words
from auditor.report import compliance_facts as facts
from auditor.report import compliance_fill as fill
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_page as said
from auditor.report import document as doc
from auditor.report import legal_measured as measured
from auditor.report.compliance_page import Page
from auditor.report.legal_measured import MAX_LISTED

FORMS = {"": ".html", "-md": ".md", "-json": ".json"}
OF_OUTCOMES = "ll144"
OUTCOMES = "ll144.json"  # where a run folder may hold what `audit ll144 --out` wrote


class LegalPage(Renderer):
    """The page of one framework in one form.

    Treatment and impact have sections of their own; fields that only people can fill in stay empty where they did
    not. The HTML runs no script and asks for nothing from outside; texts are escaped as in `auditor.report.html`.

    Attributes
    ----------
    framework : str
        Id of a file in ``auditor/embedded/frameworks``.
    form : str
        A key of `FORMS`: what the name of the format ends in.
    """

    framework = ""
    form = ""
    name = ""
    suffix = ""

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the whole page.

        What people filled in lies in the record under ``responsible``; the folder of the evidence may hold
        ``ll144.json``.

        Raises
        ------
        DataFileError
            ``ll144.json`` is no record of ``audit ll144``.
        ConfigError
            The page is about outcomes of people and the run holds none, or they are rankings of made-up applications.
        """
        framework, record = frameworks.load(self.framework), read(record)
        if self.framework == OF_OUTCOMES:
            record, evidence = people(record, evidence, self.framework), None
        page = said.build(framework, record, evidence, outcomes_of(record, evidence))
        if self.form == "-json":
            return said.to_json(page)
        made = document(page)
        return markdown.write(made) if self.form == "-md" else html.write(made, record)


class Ll144Summary(Renderer):
    """``--format ll144-summary``: one HTML page to print or to publish, with fields for what was not given."""

    name, suffix = "ll144-summary", ".ll144-summary.html"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the page.

        Raises
        ------
        ConfigError
            The run holds no outcomes of people, or they are rankings of made-up applications.
        """
        return html.write(ll144_report.summary(people(read(record), evidence, "ll144-summary")))


@cache
def _kind(framework: str, form: str) -> type[LegalPage]:
    own = {"name": f"{framework}{form}", "suffix": f".{framework}{FORMS[form]}", "__doc__": LegalPage.__doc__}
    return type("LegalPage", (LegalPage,), {"framework": framework, "form": form, **own})


def __getattr__(name: str) -> type[LegalPage]:
    """``page_`` and the name of a format, hyphens as underscores: the id of a framework with a key of `FORMS`."""
    name = name.removeprefix("page_").replace("_", "-")
    for form in FORMS:
        if name.endswith(form) and (id := name.removesuffix(form)) in PAGES:
            return _kind(id, form)
    raise AttributeError(name)


# -- where the outcomes of people lie that a page is about ------------------------------------------------


def people(record: RunRecord, evidence: object, format: str) -> RunRecord:
    """The outcomes of people that a page is about; the rest of the run is not part of it.

    Raises
    ------
    ConfigError
        The run holds none, or they are rankings of made-up applications.
    """
    outcomes = outcomes_of(record, evidence)
    if outcomes is None:
        raise ConfigError(
            f"--format {format} needs outcomes of people who applied; run {record.id or ''} measured how answers "
            "change when texts or rows are altered, which says nothing about rates of selection. Compute the "
            "tables from a file of applicants with: audit ll144 --data FILE --sex COLUMN --race COLUMN "
            "--selected COLUMN (--out RUN/ll144.json puts them beside this run)"
        )
    if outcomes.kind == "ranking":
        raise ConfigError(
            "these outcomes are recorded rankings of made-up applications: test data that can never become tables "
            "under Local Law 144. See them with: audit report RUN --format html"
        )
    return outcomes if record.responsible is None else structs.replace(outcomes, responsible=record.responsible)


def outcomes_of(record: RunRecord, evidence: object) -> RunRecord | None:
    """The record of ``audit ll144`` that ``record`` is, or that lies in the run folder.

    Raises
    ------
    DataFileError
        The file in the run folder is no such record.
    """
    if record.ll144 is not None:
        return record
    folder = getattr(evidence, "path", None)
    if folder is None or not (path := Path(folder) / OUTCOMES).is_file():
        return None
    again = f"Write it with: audit ll144 --out {quoted(str(path))}"
    try:
        raw = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFileError(f"{path}: cannot be read: {error}. {again}") from None
    if not isinstance(raw, dict) or not {"ll144", "data", "kind", "tool", "warnings"} <= set(raw):
        raise DataFileError(f"{path}: this is no record of audit ll144. {again}")
    return read(raw)


# -- the page as a document -------------------------------------------------------------------------------

LEVELS = {"direct": "bounded", "input": "", "not_covered": "not_tested"}  # what colours a level
MAX_CARDS = 6


def document(page: Page) -> doc.Document:
    """Lay a legal page out."""
    framework = page.framework
    title = "Rates of recorded outcomes" if page.kind == "outcomes" else "Bias test report"
    return doc.Document(
        title=f"{title}, mapped to {framework.within}",
        name=f"Report {page.report}",
        meta=f"{framework.text} · text consulted {framework.consulted}",
        sections=tuple(_sections(page)),
        footer=f"SHA-256 of the record (canonical JSON): {head(page.record.raw)}",
        inert=True,
    )


def _sections(page: Page) -> Iterator[doc.Section]:
    short = words.named("legal_short")
    yield doc.Section(id="finding", title="Finding", blocks=tuple(_finding(page)))
    for id, title in page.sections.items():
        yield doc.Section(id=id, title=title, short=short.get(id, ""), blocks=tuple(BUILDERS[id](page)))
        if id == "provenance":
            glossary = doc.Facts("Words, each used in one sense", tuple(words.named("glossary").items()))
            yield doc.Section(id="glossary", title="Glossary", blocks=(glossary,))


def _finding(page: Page) -> Iterator[doc.Block]:
    """What was found, then what a reader must know of it."""
    if page.kind == "outcomes":
        yield from ll144_report.finding(page.record)
    elif page.kind == "rows":
        yield from tabular_report.answer(page.record).blocks
    elif (screen := first_screen.build(page.record, page.evidence)) is not None:
        yield doc.Text(f"{words.SYMBOLS[screen.kind]} {' '.join(screen.headline)}", "lead")
        yield doc.Items((*screen.sure, *screen.also))
        yield from matrix.plot(screen, rows=10, each=2)
    else:
        yield doc.Text(claimed.summary(page.record), "lead")
    yield from (doc.Text(note, "note") for note in page.banners)
    yield from (doc.Text(f"{note} Read every figure with that in mind.", "note") for note in measured.gates(page))


def _says(page: Page) -> Iterator[doc.Block]:
    yield from (doc.Items(page.says), doc.Text("Not tested here", "heading"), doc.Items(page.not_tested))


def _status(page: Page) -> Iterator[doc.Block]:
    yield doc.Facts("", page.status, grid=True)


# -- system, plan, materials, controls ------------------------------------------------------------------


def _system(page: Page) -> Iterator[doc.Block]:
    yield doc.Text(
        "What the record knows comes first. The rest is for the responsible person; nothing of it was checked."
    )
    if known := said.system(page.record):
        yield doc.Facts("From the record: what was asked for, and what answered", known)
    yield doc.form(words.text("legal_fields"), "field", page.form.fields)


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
    if page.kind != "outcomes":  # else it is the finding
        yield from ll144_report.finding(outcomes)
    yield from ll144_report.impact(outcomes)
    if outcomes.warnings:
        yield doc.Items(outcomes.warnings)
    yield doc.Text(words.text("impact_note"))
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
    if page.kind != "texts" or page.evidence is None:
        return
    claims = [f for f in page.record.findings if f.kind == "claim" and f.verdict == "shown"]
    claims = [f for f in claims if facts.own(f) and f.exemplars]
    single = [f for f in page.record.findings if f.kind == "violation"]
    chosen = [*claimed.hidden(page.record)[: MAX_CARDS // 2], *claims[: MAX_CARDS // 2], *single]
    for f in chosen[:MAX_CARDS]:
        row = claimed.row_of(page.record, f)
        yield doc.Evidence(cards.build(f, page.evidence, record=page.record, sentence=row.sentence, notes=row.notes))


def _response(page: Page) -> Iterable[doc.Block]:
    measures = doc.table("What was decided about each finding", tuple(fill.MEASURES.values()), page.form.measures)
    return doc.Text(words.text("legal_response")), measures


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
    if of := len(page.more_claims):
        left = f"; the first {MAX_LISTED} of {words.count(of)}, the others are in run.json" if of > MAX_LISTED else ""
        more = measured.claim_table(page, page.more_claims[:MAX_LISTED], f"Signed differences{left}")
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
    "claims": measured.claims,
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
        doc.form("Signature", "signature", page.form.signature),
    ),
}
