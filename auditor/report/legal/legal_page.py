"""One record mapped to one framework: the document of a legal page, and its renderer for every form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import PAGES, Renderer
from auditor.core.reading import from_json
from auditor.core.record import RunRecord, head, read
from auditor.core.shown import quoted
from auditor.core.types import Finding, digest
from auditor.measure.claims import MIN_TEXTS
from auditor.report import (
    cards,
    claimed,
    first_screen,
    html,
    markdown,
    outcome_report,
    run_checks,
    sections,
    tabular_report,
    words,
)
from auditor.report import document as doc
from auditor.report.legal import facts, fill, frameworks
from auditor.text.languages import title as language

FORMS = {"": ".html", "-md": ".md", "-json": ".json"}
OF_OUTCOMES = "ll144"
OUTCOMES = "ll144.json"  # where a run folder may hold what `audit ll144 --out` wrote
FORMAT = "legal-page.v2"
LIMITS = {"texts": ("limits", "text_limits", "more_limits"), "rows": ("rows_limits", "more_limits")}
LEVELS = {"direct": "bounded", "input": "", "not_covered": "not_tested"}  # verdicts that color a level
MAX_CARDS = 6
FIRST = 12  # lines of a table that an HTML page does not fold away
UNKNOWN, MISSING = "not recorded", "not given"


class LegalPage(Renderer):
    """The page of one framework in one form."""

    framework = ""
    form = ""
    name = ""
    suffix = ""

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the whole page; the folder of the evidence may hold ``ll144.json``."""
        framework = frameworks.load(self.framework)
        if self.framework == OF_OUTCOMES:
            record, evidence = people(record, evidence, self.framework), None
        made = document(Page(framework, record, evidence))
        if self.form == "-json":
            own = {"format": FORMAT, "framework": self.framework, "record_sha256": head(record.raw)}
            return json.dumps(own | doc.data(made), indent=2, allow_nan=False) + "\n"
        return markdown.write(made) if self.form == "-md" else html.write(made, record)


class Ll144Summary(Renderer):
    """``--format ll144-summary``: one HTML page to print or to publish, with fields for what was not given."""

    name, suffix = "ll144-summary", ".ll144-summary.html"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the page; `ConfigError` where the run holds no outcomes of people, or rankings of applications."""
        return html.write(outcome_report.summary(people(record, evidence, "ll144-summary")))


@cache
def __getattr__(name: str) -> type[LegalPage]:
    """``page_`` and the name of a format, hyphens as underscores: the id of a framework with a key of `FORMS`."""
    name = name.removeprefix("page_").replace("_", "-")
    for form, end in FORMS.items():
        if name.endswith(form) and (id := name.removesuffix(form)) in PAGES:
            own = {"framework": id, "form": form, "name": name, "suffix": f".{id}{end}", "__doc__": LegalPage.__doc__}
            return type("LegalPage", (LegalPage,), own)
    raise AttributeError(name)


# -- the outcomes of people that a page is about ----------------------------------------------------------


def people(record: RunRecord, evidence: object, format: str) -> RunRecord:
    """Return the outcomes of people that a page is about, without the run beside them."""
    outcomes = outcomes_of(record, evidence)
    if outcomes is None:
        raise ConfigError(
            f"--format {format} needs outcomes of people who applied; run {record.id or ''} measured how answers "
            "change when texts or rows are altered, not rates of selection. Compute the tables with: audit ll144 "
            "--data FILE --sex COLUMN --race COLUMN --selected COLUMN (--out RUN/ll144.json adds them to this run)"
        )
    if outcomes.kind == "ranking":
        raise ConfigError(
            "these outcomes are recorded rankings of made-up applications: test data that can never become tables "
            "under Local Law 144. See them with: audit report RUN --format html"
        )
    return outcomes if record.responsible is None else structs.replace(outcomes, responsible=record.responsible)


def outcomes_of(record: RunRecord, evidence: object) -> RunRecord | None:
    """Return the record of ``audit ll144`` that ``record`` is, or that its run folder holds; `DataFileError` if bad."""
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
        raise DataFileError(f"{path}: this is not a record of audit ll144. {again}")
    return read(raw)


# -- the page as a document -------------------------------------------------------------------------------


class Page:
    """One record of any kind mapped to one framework; ``kind`` as in `facts.kind_of`."""

    def __init__(self, framework: frameworks.Framework, record: RunRecord, evidence: object = None) -> None:
        self.framework, self.record, self.evidence = framework, record, evidence
        self.outcomes, self.kind = outcomes_of(record, evidence), facts.kind_of(record)
        self.form = fill.form(record, framework.id, framework.fields)
        self.gates = tuple(facts.gates(record))
        self.grounds = facts.grounds(framework, record, self.outcomes)
        has, absent = facts.known(record, self.outcomes, self.form), facts.absent(record, self.outcomes)
        self.crossings = frameworks.cross(framework, has, absent, self.form.filled)

    def gate_notes(self, end: str = "") -> Iterator[doc.Text]:
        """Name the controls that did not hold, or were not run."""
        states = {"Not held": "not_held", "Not run": "not_run"}
        named = {what: [g.name.lower() for g in self.gates if g.state == state] for what, state in states.items()}
        if said := " ".join(f"{what}: {words.listing(names)}." for what, names in named.items() if names):
            yield doc.Text(f"Gates. {said}{end}", "note")


def document(page: Page) -> doc.Document:
    """Lay a legal page out: the finding first."""
    framework, record = page.framework, page.record
    title = "Rates of recorded outcomes" if page.kind == "outcomes" else "Bias test report"
    return doc.Document(
        title=f"{title}, mapped to {framework.within}",
        name=f"Report {framework.id}/{record.id or digest(record.raw)[:12]}",
        meta=f"{framework.text} · text consulted {framework.consulted}",
        sections=tuple(_sections(page)),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
        inert=True,
    )


def _sections(page: Page) -> Iterator[doc.Section]:
    short, dropped = words.named("legal_short"), set(facts.OUTCOMES_LACK if page.kind == "outcomes" else ())
    dropped |= set() if page.grounds else {"grounds"}
    yield doc.section("finding", "Finding", _finding(page))
    for id in sorted(frameworks.SECTIONS, key=lambda id: id != "impact" or page.kind != "outcomes"):
        if id not in dropped:
            yield doc.section(id, frameworks.SECTIONS[id], BUILDERS[id](page), short=short.get(id, ""))
        if id == "provenance":
            glossary = doc.Facts("Words, each used in one sense", tuple(words.named("glossary").items()))
            yield doc.section("glossary", "Glossary", glossary)


def _finding(page: Page) -> Iterator[doc.Block]:
    if page.kind == "outcomes":
        yield from outcome_report.finding(page.record)
    elif page.kind == "rows":
        yield from tabular_report.answer(page.record).blocks
    else:
        screen = first_screen.build(page.record, page.evidence)
        yield doc.Text(f"{words.SYMBOLS[screen.kind]} {' '.join(screen.headline)}", "lead")
        yield doc.Items((*screen.sure, *screen.also))
        yield from sections.net(screen, rows=10, each=2)
    notes = run_checks.banners(page.record) if page.kind == "texts" else ()
    yield from (doc.Text(note, "note") for note in notes)
    yield from page.gate_notes(" Read every figure with that in mind.")


def _status(page: Page) -> Iterator[doc.Block]:
    """Say whether the page is signed, and what it is about."""
    record, by = page.record, {entry.key: entry.value for entry in page.form.signature}
    state = f"filled in and dated {by['date']}" if by["date"] and by["signed"] else "draft, unsigned"
    about: dict[str, str | None] = {"Report": state}
    if page.kind == "outcomes":
        about["Data"] = record.data.file or ", ".join(record.data.models)
        about["Date of the bias audit"] = record.outcomes.audit_date or MISSING
        about["Tool"] = f"{record.tool.name} {record.tool.version}"
    else:
        spec, made = record.spec, record.provenance
        about["Run"], about["State of the run"] = record.id, record.status
        about["Models"] = ", ".join(record.models or spec.models) or spec.model
        about["Period"] = period(made.started or UNKNOWN, made.ended or UNKNOWN)
        about["Plan"] = f"frozen {record.frozen.frozen_at}" if record.frozen else "not frozen in advance"
        about["Tool"] = f"llm-bias-auditor {record.tool_version or UNKNOWN}"
        about["Holds for"] = "these models, prompts and dates; test again when any of them changes"
    about["Responsible person"] = by["name"] or "to be filled in below"
    kept = (("Keep for", retention.text) for retention in page.framework.retention)
    yield doc.Facts("", (*((name, value or UNKNOWN) for name, value in about.items()), *kept), grid=True)


def period(started: str, ended: str) -> str:
    """Write begin and end of a run; what is no time stays as it is."""
    try:
        a, b = (datetime.fromisoformat(text).astimezone(UTC) for text in (started, ended))
    except ValueError:
        return f"{started} to {ended}"
    end = f"{b:%H:%M:%S}" if a.date() == b.date() else f"{b:%Y-%m-%d %H:%M:%S}"
    return f"{a:%Y-%m-%d %H:%M:%S} to {end} UTC"


def _says(page: Page) -> Iterator[doc.Block]:
    yield doc.Items((*words.lines(f"{page.kind}_says"), *words.lines("says_not"), *page.framework.not_this))
    yield doc.Text("Not tested here", "heading")
    bare = [ground for ground, attributes in page.grounds.items() if not attributes]
    listed = [f"Grounds that were not tested: {words.listing(bare)}."] if bare else []
    yield doc.Items((*facts.not_tested(page.record), *listed))


def _system(page: Page) -> Iterator[doc.Block]:
    yield doc.Text(
        "What the record knows comes first. The rest is for the responsible person; nothing of it was checked."
    )
    known = []
    for name, model in page.record.models.items():
        reported = ", ".join(model.reported) or "none reported"
        repeats = "declared deterministic" if model.deterministic else "not declared deterministic"
        known.append((name, f"reported: {reported}; {repeats}; fingerprint {model.fingerprint or UNKNOWN}"))
    if page.kind == "outcomes":
        known.append(("Source of the outcomes", page.record.data.source or MISSING))
    if known:
        yield doc.Facts("From the record: what was asked for, and what answered", tuple(known))
    yield doc.form(words.text("legal_fields"), "field", page.form.fields)


def _plan(page: Page) -> Iterator[doc.Block]:
    """Say how far the plan was fixed in advance, its settings, and what was done otherwise."""
    record, frozen = page.record, page.record.frozen
    if page.kind == "outcomes":
        said = "No plan was frozen: the tables are fixed by the rule, and the choices left open are below."
        chosen = ("mode", "data_kind", "median_population", "partly_known")
        settings = {name: value for name in chosen if (value := getattr(record.outcomes, name)) is not None}
    else:
        sha = record.provenance.plan_sha256 or UNKNOWN
        said = words.text("plan_not_frozen").format(sha=sha)
        if frozen:
            by = f" by {frozen.frozen_by}" if frozen.frozen_by else ", no name given"
            why = f"Reasons given: {words.sentence(frozen.reason)}" if frozen.reason else "No reasons were given for δ."
            said = (
                f"The plan was frozen {frozen.frozen_at}{by} (SHA-256 of the frozen plan {frozen.sha256}), and was in "
                f"plan.json before the first call (SHA-256 {sha}). {why} {' '.join(run_checks.frozen(record))}"
            )
        spec = record.raw.get("spec") or {}
        settings = {name: spec[name] for name in sorted(spec) if name not in ("models", "kind")}
    values = [(name.replace("_", " "), run_checks.value(value)) for name, value in settings.items()]
    left = [name for name, value in values if value == MISSING]
    shown = [pair for pair in values if pair[1] != MISSING] + ([(MISSING, ", ".join(left))] if left else [])
    yield from (doc.Text(said), doc.Facts("Settings", tuple(shown), grid=True))
    yield doc.table(
        "What each measure is, and what it says", "Measure | Is | Says", words.rows(f"{page.kind}_measures")
    )
    yield doc.Text("Deviations from the plan", "heading")
    otherwise = [*run_checks.deviations(record)]
    if record.status == "partial":
        reason = record.status_reason or "no reason was recorded"
        otherwise.append(("End of the run", "everything planned is asked", f"stopped early: {reason}"))
    if otherwise:
        yield doc.table("What was done otherwise than planned", "What | As planned | As run", otherwise)
    elif frozen:
        yield doc.Text("None was recorded.")
    else:
        yield doc.Text("No plan was frozen beforehand, so a deviation could not be seen.")


def _materials(page: Page) -> Iterator[doc.Block]:
    """Say where texts, words and labels come from, and how many there are."""
    record, seeds = page.record, page.record.provenance.seeds
    if page.kind == "outcomes":
        data, block = record.data, record.outcomes
        made = [
            ("File", data.file or UNKNOWN),
            ("SHA-256 of the file", data.sha256 or UNKNOWN),
            ("Lines", words.count(data.rows)),
            ("Source", data.source or MISSING),
            ("Kind of data", f"{block.data_kind} data" if block.data_kind else "not said"),
            ("Unknown category", words.count(block.unknown_count)),
        ]
        if block.data_kind == "test":
            made.append(("Why no historical data", block.test_data_reason or MISSING))
            made.append(("How the test data were made", block.test_data_generation or MISSING))
    elif page.kind == "rows":
        schema = record.rows.schema
        made = [("Table", schema.name), ("Protected columns", ", ".join(schema.protected) or "none")]
        made.append(("Rows in the domain", schema.rows_in_domain))
    else:
        made = [("Texts", seeds.source or record.spec.data or "embedded texts")]
        made.append(("Language", ", ".join(map(language, seeds.languages)) or "English"))
    counts = () if page.kind == "outcomes" else (record.raw.get("counts") or {}).items()
    made += [(k.replace("_", " ").capitalize(), words.count(v)) for k, v in counts if isinstance(v, int)]
    yield doc.Facts("What the figures rest on", tuple(made), grid=True)
    by_attribute: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for (name, group), own in claimed.written(record).items():
        by_attribute.setdefault(name, []).append((words.group(group), own))
    lines = (
        (
            name,
            words.count(sum(len(own) for _, own in mine)),
            "; ".join(group if own == (group,) else f"{group}: {', '.join(own)}" for group, own in mine),
        )
        for name, mine in by_attribute.items()
    )
    caption = "Groups, and every word that was written for them; a group whose only word is its name is listed alone"
    yield doc.table(caption, "Attribute | #Words | Groups: words", lines)


def _grounds(page: Page) -> Iterator[doc.Block]:
    caption = (
        "Each ground that the text names, and what was tested of it here. A ground that was tested was tested for the "
        "groups and words listed, and for no others"
    )
    bare = doc.Cell(mark=words.verdict("not_tested"), kind="not_tested")
    lines = ((ground, ", ".join(attributes) or bare) for ground, attributes in page.grounds.items())
    yield doc.table(caption, "Ground | Tested as", lines)


def _controls(page: Page) -> Iterator[doc.Block]:
    lines = ((g.name, facts.GATE_WORDS[g.state], g.result, g.depends) for g in page.gates)
    yield doc.table(
        "Each control, whether it held, and what depends on it", "Control | State | Result | What depends on it", lines
    )
    if not page.gates:
        yield doc.Text(words.text("legal_no_gates"))


# -- treatment and impact -------------------------------------------------------------------------------


def _claims(page: Page) -> Iterator[doc.Block]:
    delta = page.record.spec.delta
    bound = "no bound δ was set, so nothing can be bounded"
    bound = bound if delta is None else f"bound δ set before the run: {100 * delta:g} %"
    mine = [f for f in page.record.findings if f.kind == "claim"]
    yield _table_of(page, f"Every claim, with its interval and its verdict; {bound}", mine)
    if not mine:
        yield doc.Text("This record makes no claim.")
    meaning = words.named("row_verdicts" if page.kind == "rows" else "verdicts")
    yield doc.Items(tuple(f"{words.verdict(name)}: {text}" for name, text in meaning.items()))


def _table_of(page: Page, caption: str, findings: Sequence[Finding]) -> doc.Table:
    """Findings in a sentence each, those that were shown first."""
    ranked = sorted(findings, key=lambda f: words.RANK.get(f.verdict, len(words.RANK)))
    lines = (
        (
            f.id,
            claimed.sentence(page.record, f),
            f.model,
            words.p_value(f.p_adjusted),
            doc.Cell(mark=words.finding_verdict(f), kind=f.verdict),
        )
        for f in ranked
    )
    columns = "Finding | What was measured | Model | #p, adjusted | Verdict"
    return doc.table(caption, columns, lines, most=FIRST, of="finding")


def _accuracy(page: Page) -> Iterator[doc.Block]:
    if not facts.has_labels(page.record):
        yield doc.Text("Not measured: the texts or rows carry no labels to compare answers with.")
        return
    names = sections.Rates(page.record).places
    for section in sections.performance(page.record, names, words.noun(page.record)):
        yield from section.blocks
    yield doc.Text(words.text("legal_accuracy"), "meta")


def _counterfactual(page: Page) -> Iterator[doc.Block]:
    if page.kind != "texts":
        yield doc.Text(words.text("no_texts"))
        return
    yield from page.gate_notes()
    yield from _rates(page, "", joint=False)


def _intersections(page: Page) -> Iterator[doc.Block]:
    if page.kind == "rows":
        yield from _of_rows(page, "lattice") or [doc.Text("No joint change was judged.")]
        return
    yield from page.gate_notes()
    yield doc.Text(words.text("legal_hidden"))
    yield from _rates(page, "Joint changes; hidden is the share of judged joint variants", joint=True)
    hidden = claimed.hidden(page.record)
    yield _table_of(page, "Hidden findings", hidden) if hidden else doc.Text(claimed.none_hidden(page.record))


def _rates(page: Page, caption: str, *, joint: bool) -> Iterator[doc.Block]:
    every = sections.Rates(page.record)
    mine = [row for row in every.rows if row.attributes and (len(row.attributes) > 1) is joint]
    if not mine:
        yield doc.Text("No joint change was judged." if joint else "No rate could be estimated.")
        return
    kept = sections.enough(mine)
    few = dict.fromkeys(words.attributes(row.attributes) for row in mine if row not in kept)
    if few:
        yield doc.Text(f"In report.csv alone, with fewer than {MIN_TEXTS} texts: {words.listing(list(few))}.", "meta")
    yield sections.rate_table(every, kept, caption)


def _of_rows(page: Page, *names: str) -> list[doc.Block]:
    """The named sections of a search over rows."""
    sections = {section.id: section for section in tabular_report.measured(page.record)}
    return [block for name in names if name in sections for block in sections[name].blocks]


def _rows(page: Page) -> Iterator[doc.Block]:
    if page.kind == "rows":
        yield from page.gate_notes()
        yield from _of_rows(page, "summary", "scores", "meanings")
    else:
        yield doc.Text(words.text("no_rows"))


def _impact(page: Page) -> Iterator[doc.Block]:
    if (outcomes := page.outcomes) is None:
        yield doc.Text(words.text("no_impact"))
        return
    if page.kind != "outcomes":  # else it is the finding
        yield from outcome_report.finding(outcomes)
    yield from outcome_report.impact(outcomes)
    if outcomes.warnings:
        yield doc.Items(outcomes.warnings)
    yield doc.Text(words.text("impact_note"))
    if page.framework.id == OF_OUTCOMES:
        yield doc.Text("The summary to publish (6 RCNY 5-303): --format ll144-summary.")


# -- what people do with it -----------------------------------------------------------------------------


def _evidence(page: Page) -> Iterator[doc.Block]:
    """Hidden findings, sets of attributes whose claims were shown, and single examples, in this order."""
    chosen: list[Finding] = []
    if page.kind == "texts" and page.evidence is not None:
        shown = [f for f in page.record.findings if f.kind == "claim" and f.verdict == "shown" and f.exemplars]
        sets = [f for f in shown if not f.directions and not f.code.startswith(("DIR", "REF"))]
        single = [f for f in page.record.findings if f.kind == "violation"]
        chosen = [*claimed.hidden(page.record)[: MAX_CARDS // 2], *sets[: MAX_CARDS // 2], *single]
    if chosen:
        yield doc.Text(
            "Examples, those first that were shown. They illustrate and prove no rate. All prompts and answers are in "
            f"the run folder; audit verify {words.run_name(page.record)} finds any line that was changed, removed or "
            "moved."
        )
        rows = (claimed.card_of(page.record, f) for f in chosen[:MAX_CARDS])
        yield from (cards.with_evidence(row, page.evidence, page.record) for row in rows)
    else:
        pairs = _of_rows(page, "pairs") if page.kind == "rows" else []
        yield from pairs or [doc.Text("No example was recorded.")]


def _response(page: Page) -> Iterable[doc.Block]:
    measures = doc.table("What was decided about each finding", tuple(fill.MEASURES.values()), page.form.measures)
    return doc.Text(words.text("legal_response")), measures


def _crosswalk(page: Page) -> Iterator[doc.Block]:
    framework, short = page.framework, words.named("legal_short")
    yield doc.Text(f"{framework.text}; consulted {framework.consulted}. {framework.how}")
    yield doc.Items(framework.notes)
    lines = []
    for c in page.crossings:
        clause, gives, why = c.clause, c.clause.gives, "; ".join(c.lacking)
        if why:
            nothing = c.level == "not_covered"
            gives = f"Nothing here: {why}. Otherwise: {gives}" if nothing else f"{gives} Lacking: {why}."
        links = tuple((s, short.get(s, frameworks.SECTIONS[s])) for s in c.sections)
        source = clause.source or next(iter(framework.sources))
        read_from = f"{frameworks.READ[clause.read]}: {source}, {clause.consulted or framework.consulted}"
        level = doc.Cell(mark=frameworks.LEVELS[c.level], kind=LEVELS[c.level])
        lines.append((clause.ref, clause.asks, level, gives, doc.Cell(links=links) if links else None, read_from))
    caption = (
        "Per clause: direct evidence, input to somebody's own assessment, or not covered. What a clause "
        "asks is put in our own words"
    )
    yield doc.table(caption, "Clause | Asks | This report | What it gives | Where | Read from", lines)
    yield doc.Facts("Sources", tuple(framework.sources.items()))


def _limits(page: Page) -> Iterator[doc.Block]:
    names = [*LIMITS.get(page.kind, ()), *(["outcomes_limits"] if page.outcomes is not None else [])]
    yield doc.Items(tuple(line for name in names for line in words.lines(name)))


def _statistics(page: Page) -> Iterator[doc.Block]:
    yield doc.Items(words.lines(f"{page.kind}_statistics"))
    made = page.record.provenance
    versions = [(name, value) for name, value in (("Python", made.python), ("Platform", made.platform)) if value]
    versions += [(name, version or "not installed") for name, version in made.packages.items()]
    if versions:
        yield doc.Facts("Versions of what computed the figures", tuple(versions), grid=True)


def _provenance(page: Page) -> Iterator[doc.Block]:
    """Give the hashes of everything that shapes a run; of what a record lacks it is said."""
    record, made, texts = page.record, page.record.provenance, page.kind == "texts"
    if page.kind == "outcomes":
        rows = [("File of outcomes", record.data.sha256 or UNKNOWN)]
    else:
        known = (
            ("Plan (plan.json)", made.plan_sha256, True),
            ("Frozen plan", record.frozen and record.frozen.sha256, False),
            ("Task with its prompts", made.task_sha256, texts),
            ("Texts", made.seeds.sha256, texts),
            ("Rows", made.rows and made.rows.sha256, not texts),
            ("Profile", made.profile and made.profile.sha256, False),
            ("Parser", made.parser and made.parser.sha256, texts),
            ("Grammar", made.grammar and made.grammar.sha256, False),
            ("Code of the tool", made.code and made.code.sha256, True),
        )
        rows = [(name, value or UNKNOWN) for name, value, needed in known if value or needed]
        words_of = ((f"Dictionary {one.attribute} {one.name}".rstrip(), one.sha256) for one in made.dictionaries)
        rows += [(name, value or UNKNOWN) for name, value in words_of]
        rows += [("Dictionaries", UNKNOWN)] if texts and not made.dictionaries else []
        rows += [("Schema", record.rows.schema.sha256)] if page.kind == "rows" else []
        rows += [
            (f"{file}, last of {words.count(end.records)} records", end.hash) for file, end in record.journal.items()
        ]
    yield doc.Facts("SHA-256 of what shaped the run", tuple(rows))
    yield doc.Text(
        f"To check: audit verify {words.run_name(record)} recomputes the chain of every journal from the plan on. "
        "It names every line that was changed, moved or removed."
    )


def _signature(page: Page) -> Iterator[doc.Block]:
    yield doc.Text(words.text("legal_signed"))
    yield doc.form("Signature", "signature", page.form.signature)


BUILDERS: dict[str, Callable[[Page], Iterable[doc.Block]]] = {
    builder.__name__.removeprefix("_"): builder
    for builder in (
        _claims, _status, _says, _system, _plan, _materials, _grounds, _accuracy, _controls, _counterfactual,
        _intersections, _rows, _impact, _evidence, _response, _crosswalk, _limits, _statistics, _provenance, _signature,
    )
}  # fmt: skip
