"""Pages for auditors and lawyers: one record laid beside one framework, as HTML, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.registry import PAGES
from auditor.core.shown import quoted
from auditor.report import cards, charts, html, ll144, ll144_summary, tabular, view
from auditor.report import compliance_claims as claimed
from auditor.report import compliance_export as export
from auditor.report import compliance_fill as fill
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_page as built
from auditor.report import compliance_text as texts
from auditor.report.document import Section

if TYPE_CHECKING:
    from jinja2 import Template

OUTCOMES = "ll144.json"  # where a run folder may hold what `audit ll144 --out` wrote
MAX_CARDS = 12

Data = Mapping[str, Any]


class LegalPage:
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

    def render(self, record: Data, evidence: Any = None) -> str:
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
        framework = frameworks.load(self.framework)
        if self.framework == OF_OUTCOMES:
            record, evidence = people(record, evidence, self.framework), None
        made = built.build(framework, record, evidence, outcomes_of(record, evidence))
        if self.form == "-json":
            return export.to_json(made)
        return export.to_markdown(made) if self.form == "-md" else _html(made, record, evidence)


FORMS = {"": ".html", "-md": ".md", "-json": ".json"}
OF_OUTCOMES = "ll144"


@cache
def _kind(framework: str, form: str) -> type[LegalPage]:
    told = {
        "name": f"{framework}{form}.v1",
        "suffix": f".{framework}{FORMS[form]}",
        "__doc__": LegalPage.__doc__,
    }
    return type("LegalPage", (LegalPage,), {"framework": framework, "form": form, **told})


def __getattr__(name: str) -> type[LegalPage]:
    """``page-`` and the name of a format, which is the id of a framework with a key of `FORMS`: its renderer."""
    for form in FORMS:
        if name.endswith(form) and (id := name.removeprefix("page-").removesuffix(form)) in PAGES:
            return _kind(id, form)
    raise AttributeError(name)


def people(record: Data, evidence: Any, format: str) -> Data:
    """The outcomes of people that a page is about; the rest of the run is not part of it.

    Raises
    ------
    ConfigError
        The run holds none, or they are rankings of made-up applications.
    """
    found = outcomes_of(record, evidence)
    if found is None:
        raise ConfigError(
            f"--format {format} needs outcomes of people who applied; run {record.get('id', '')} measured how answers "
            "change when texts or rows are altered, which says nothing about rates of selection. Compute the "
            "tables from a file of applicants with: audit ll144 --data FILE --sex COLUMN --race COLUMN "
            "--selected COLUMN (--out RUN/ll144.json puts them beside this run)"
        )
    if found["kind"] == "ranking":
        raise ConfigError(
            "these outcomes are recorded rankings of made-up applications: test data that can never become tables "
            "under Local Law 144. See them with: audit ll144 --rankings FILE --out FILE.html"
        )
    return {**found, "responsible": record["responsible"]} if "responsible" in record else found


def outcomes_of(record: Data, evidence: Any) -> Data | None:
    """The record of ``audit ll144`` that ``record`` is, or that lies in the run folder.

    Raises
    ------
    DataFileError
        The file in the run folder is no such record.
    """
    if "ll144" in record:
        return record
    folder = getattr(evidence, "path", None)
    path = Path(folder) / OUTCOMES if folder is not None else None
    if path is None or not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"{path}: cannot be read: {error}. Write it with: audit ll144 --out {quoted(str(path))}"
        ) from None
    needed = {"ll144", "data", "kind", "tool", "warnings"}
    if not isinstance(found, dict) or not needed <= set(found):
        raise DataFileError(
            f"{path}: this is no record of audit ll144. Write it with: audit ll144 --out {quoted(str(path))}"
        )
    return found


def _html(made: built.Page, record: Data, evidence: Any) -> str:
    """The page as HTML: what every form has, with charts and examples."""
    shown = made.view
    rows = shown.rows if shown else ()
    return _template().render(
        {name.name: getattr(made, name.name) for name in fields(made)},
        f=made.framework,
        record=record,
        v=shown,
        t=_rows(record, made.kind),
        single=[r for r in rows if len(r.attributes) == 1],
        joint=[r for r in rows if len(r.attributes) > 1],
        forest=_forest(record, shown, joint=False),
        forest_joint=_forest(record, shown, joint=True),
        cards=_cards(record, evidence, shown),
    )


def _forest(record: Data, shown: view.View | None, *, joint: bool) -> Any:
    """The chart of single attributes, or of joint changes; rows of few seeds are not drawn where others have more."""
    rows = [r for r in shown.rows if r.attributes and (len(r.attributes) > 1) == joint] if shown else []
    if shown is None or not rows:
        return ""
    together = "several attributes" if joint else "one attribute"
    return charts.forest(
        view.split(rows)[0],
        shown.subjects,
        name="joint" if joint else "rates",
        title=f"How often the {shown.noun} changed with {together}",
        delta=(record.get("spec") or {}).get("delta"),
    )


def _cards(record: Data, evidence: Any, shown: view.View | None) -> list[cards.Card]:
    """The findings with their texts, those that were shown first."""
    if shown is None or evidence is None:
        return []
    examples = [f for f in record.get("findings", ()) if f["kind"] == "claim" and f["verdict"] == "shown"]
    examples = [f for f in examples if claimed.own(f) and f.get("exemplars")]
    chosen = [*shown.hidden[: MAX_CARDS // 2], *examples[: MAX_CARDS // 2], *shown.violations]
    return [cards.build(f, evidence, noun=shown.noun, record=record) for f in chosen[:MAX_CARDS]]


def _rows(record: Data, kind: str) -> dict[str, Section | None]:
    """The sections of a search over rows that a legal page shows, by id; None where there is none."""
    made = tabular.build(record).sections if kind == "rows" else ()
    found = {section.id: section for section in made}
    return {name: found.get(name) for name in ("summary", "scores", "lattice", "pairs")}


@cache
def _template() -> Template:
    environment = html._environment()
    environment.filters["noise"] = view.noise_text
    environment.globals |= {
        "texts": texts,
        "ll": ll144,
        "split": view.split,
        "few_seeds": view.MIN_SEEDS,
        "summary_fields": ll144_summary.fields,
        "to_fill": fill.TO_FILL,
        "accuracy_scope": export.scope,
        "max_listed": built.MAX_LISTED,
    }
    return environment.get_template("compliance.html.j2")
