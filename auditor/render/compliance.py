"""Reports for auditors and lawyers: one record laid beside one framework, as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.errors import ConfigError, DataFileError
from auditor.provenance import head
from auditor.render import cards, charts, html, ll144, tabular, view, words
from auditor.render import compliance_claims as claimed
from auditor.render import compliance_frameworks as frameworks
from auditor.render import compliance_gates as gated
from auditor.render import compliance_text as texts
from auditor.render import compliance_view as work
from auditor.shown import quoted
from auditor.types import digest

if TYPE_CHECKING:
    from jinja2 import Template

OUTCOMES = "ll144.json"  # where a run folder may hold what `audit ll144 --out` wrote
MAX_CARDS = 12
MAX_LISTED = 200

Data = Mapping[str, Any]


class ComplianceReport:
    """One framework's report.

    Treatment and impact have sections of their own; fields that only people can fill in stay empty. The
    page runs no script and asks for nothing from outside; texts are escaped as in `auditor.render.html`.
    """

    framework = ""
    name = ""
    suffix = ""

    def render(self, record: Data, evidence: Any = None) -> str:
        """Write the whole page.

        Parameters
        ----------
        record : mapping
            ``run.json`` of an audit or of tabular search, or a record of ``audit ll144``.
        evidence : object, optional
            Reads cases and answers by id; its folder may hold ``ll144.json``.

        Raises
        ------
        DataFileError
            ``ll144.json`` is no record of ``audit ll144``.
        """
        return page(frameworks.load(self.framework), record, evidence)


class EuAiAct(ComplianceReport):
    """``--format eu-ai-act``."""

    framework, name, suffix = "eu-ai-act", "eu-ai-act.v1", ".eu-ai-act.html"


class NistAiRmf(ComplianceReport):
    """``--format nist-ai-rmf``."""

    framework, name, suffix = "nist-ai-rmf", "nist-ai-rmf.v1", ".nist-ai-rmf.html"


class AiVerify(ComplianceReport):
    """``--format ai-verify``; the same as data: `auditor.render.compliance_data`."""

    framework, name, suffix = "ai-verify", "ai-verify.v1", ".ai-verify.html"


class Ll144(ComplianceReport):
    """``--format ll144``: only where there are outcomes of people."""

    framework, name, suffix = "ll144", "ll144.v1", ".ll144.html"

    def render(self, record: Data, evidence: Any = None) -> str:
        """Write the page about the outcomes; the rest of the run is not part of it.

        Raises
        ------
        ConfigError
            The run holds no outcomes of people, or they are rankings of made-up applications.
        """
        found = outcomes_of(record, evidence)
        if found is None:
            raise ConfigError(
                f"--format ll144 needs outcomes of people who applied; run {record.get('id', '')} measured how answers "
                "change when texts or rows are altered, which says nothing about rates of selection. Compute the "
                "tables from a file of applicants with: audit ll144 --data FILE --sex COLUMN --race COLUMN "
                "--selected COLUMN (--out RUN/ll144.json puts them beside this run)"
            )
        if found["kind"] == "ranking":
            raise ConfigError(
                "these outcomes are recorded rankings of made-up applications: test data that can never become tables "
                "under Local Law 144. See them with: audit ll144 --rankings FILE --out FILE.html"
            )
        return page(frameworks.load("ll144"), found, None)


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


def page(framework: frameworks.Framework, record: Data, evidence: Any) -> str:
    """One report, doctype to end tag."""
    kind = gated.kind_of(record)
    outcomes = outcomes_of(record, evidence)
    shown = view.build(record) if kind == "texts" else None
    noun = shown.noun if shown else "label"
    gates = gated.gates(record)
    claims = claimed.claims(record, noun) if kind != "outcomes" else ()
    own = {str(f["id"]) for f in record.get("findings", ()) if f["kind"] == "claim" and claimed.own(f)}
    told, settings = work.plan(record)
    return _template().render(
        record=record,
        f=framework,
        kind=kind,
        v=shown,
        t=tabular.shown(record) if kind == "rows" else None,
        says={"texts": texts.SAYS, "rows": texts.SAYS_ROWS, "outcomes": texts.SAYS_OUTCOMES}[kind],
        status=work.status(record),
        report_id=_report_id(framework, record),
        untested=work.untested(record, shown),
        claims=[c for c in claims if c.id in own],
        directions=[c for c in claims if c.id not in own][:MAX_LISTED],
        n_directions=sum(c.id not in own for c in claims),
        system=work.system(record),
        fields=(*texts.SYSTEM_FIELDS, *texts.EXTRA_FIELDS.get(framework.id, ())),
        plan_told=told,
        plan=settings,
        deviations=work.deviations(record),
        measures={"texts": texts.MEASURES, "rows": texts.ROW_MEASURES, "outcomes": texts.OUTCOME_MEASURES}[
            kind
        ],
        materials=work.materials(record),
        coverage=work.coverage(shown) if shown else (),
        gates=gates,
        gate_banner=gated.gate_banner(gates),
        single=[r for r in shown.rows if len(r.attributes) == 1] if shown else [],
        joint=[r for r in shown.rows if len(r.attributes) > 1] if shown else [],
        forest=_forest(record, shown, joint=False),
        forest_joint=_forest(record, shown, joint=True),
        parts=ll144.parts(outcomes) if outcomes is not None else [],
        outcomes=outcomes,
        cards=_cards(record, evidence, shown),
        crossings=frameworks.cross(framework, work.facts(record, outcomes), work.absent(record, outcomes)),
        dropped=work.OUTCOMES_LACK if kind == "outcomes" else frozenset(),
        title="Rates of recorded outcomes" if kind == "outcomes" else "Bias test report",
        limits=_limits(kind, outcomes),
        statistics={
            "texts": texts.STATISTICS,
            "rows": texts.ROW_STATISTICS,
            "outcomes": texts.OUTCOME_STATISTICS,
        }[kind],
        hashes=work.hashes(record),
        versions=work.versions(record),
        record_sha256=head(record),
    )


def _report_id(framework: frameworks.Framework, record: Data) -> str:
    name = record.get("id") or digest(record)[:12]
    return f"{framework.id}/{name}"


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


def _limits(kind: str, outcomes: Data | None) -> list[str]:
    people = list(texts.OUTCOME_LIMITS) if outcomes is not None else []
    if kind == "outcomes":
        return people
    first = words.LIMITS if kind == "texts" else tabular.LIMITS
    own = texts.TEXT_LIMITS if kind == "texts" else ()
    return [*first, *own, *texts.MORE_LIMITS, *people]


@cache
def _template() -> Template:
    environment = html._environment()
    environment.globals |= {
        "texts": texts,
        "ll": ll144,
        "sections": frameworks.SECTIONS,
        "max_listed": MAX_LISTED,
    }
    return environment.get_template("compliance.html.j2")
