"""Pages for auditors and lawyers: one record laid beside one framework, as HTML, Markdown or JSON."""

from __future__ import annotations

from functools import cache
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
from auditor.core.registry import PAGES
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_page as built
from auditor.report import html, legal, ll144_report, markdown, outcomes


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

        Parameters
        ----------
        record : mapping
            ``run.json`` of an audit or of tabular search, or a record of ``audit ll144``; what people filled in lies
            under ``responsible``.
        evidence : object, optional
            Reads cases and answers by id; its folder may hold ``ll144.json``.

        Raises
        ------
        DataFileError
            ``ll144.json`` is no record of ``audit ll144``.
        ConfigError
            The page is about outcomes of people and the run holds none, or they are rankings of made-up applications.
        """
        framework, record = frameworks.load(self.framework), read(record)
        if self.framework == OF_OUTCOMES:
            record, evidence = outcomes.people(record, evidence, self.framework), None
        made = built.build(framework, record, evidence, outcomes.outcomes_of(record, evidence))
        if self.form == "-json":
            return built.to_json(made)
        told = legal.build(made)
        return markdown.write(told) if self.form == "-md" else html.write(told, record)


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
        return html.write(ll144_report.summary(outcomes.people(read(record), evidence, "ll144-summary")))


FORMS = {"": ".html", "-md": ".md", "-json": ".json"}
OF_OUTCOMES = "ll144"


@cache
def _kind(framework: str, form: str) -> type[LegalPage]:
    told = {"name": f"{framework}{form}.v1", "suffix": f".{framework}{FORMS[form]}", "__doc__": LegalPage.__doc__}
    return type("LegalPage", (LegalPage,), {"framework": framework, "form": form, **told})


def __getattr__(name: str) -> type[LegalPage]:
    """``page_`` and the name of a format, hyphens as underscores: the id of a framework with a key of `FORMS`."""
    name = name.removeprefix("page_").replace("_", "-")
    for form in FORMS:
        if name.endswith(form) and (id := name.removesuffix(form)) in PAGES:
            return _kind(id, form)
    raise AttributeError(name)
