"""Pages for auditors and lawyers: one record laid beside one framework, as HTML, Markdown or JSON."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Renderer
from auditor.core.reading import from_json
from auditor.core.record import Plain, RunRecord, read
from auditor.core.registry import PAGES
from auditor.core.shown import quoted
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_page, html, legal, ll144_report, markdown

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
        page = compliance_page.build(framework, record, evidence, outcomes_of(record, evidence))
        if self.form == "-json":
            return compliance_page.to_json(page)
        document = legal.build(page)
        return markdown.write(document) if self.form == "-md" else html.write(document, record)


class Ll144Summary(Renderer):
    """``--format ll144-summary``: one HTML page to print or to publish, with fields for what was not given."""

    name, suffix = "ll144-summary.v1", ".ll144-summary.html"

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
    own = {"name": f"{framework}{form}.v1", "suffix": f".{framework}{FORMS[form]}", "__doc__": LegalPage.__doc__}
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
            "under Local Law 144. See them with: audit ll144 --rankings FILE --out FILE.html"
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
