"""What a legal page says of one record, as typed values: the writers add form and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from auditor.core.provenance import head
from auditor.core.record import RunRecord
from auditor.core.types import digest
from auditor.measure.claims import MIN_TEXTS
from auditor.report import cards, ll144, prose, tabular, view, words
from auditor.report import compliance_facts as facts
from auditor.report import compliance_fill as fill
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_view as work
from auditor.report.claimed import RANK
from auditor.report.document import Section

MAX_LISTED = 200
MAX_CARDS = 6
MAX_FIRST = 10  # claims about one group and another that stand in the first table


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One record beside one framework.

    Attributes
    ----------
    kind : str
        ``texts``, ``rows`` or ``outcomes``.
    sections : mapping of str to str
        Ids and titles of the sections that this page has, in order.
    claims, more_claims : tuple of Claim
        Who gets what more or less often, the clearest first, then changes by attribute; those that the first list
        has no place for.
    few : int
        Claims on fewer than `MIN_TEXTS` texts, which stand in the table of all estimates alone.
    view : View or None
        Rates by attribute, for charts and tables of an audit of texts.
    of_rows : mapping of str to Section
        The sections of a search over rows, by id.
    cards : tuple of Card
        Findings with their texts, those that were shown first.
    """

    framework: frameworks.Framework
    kind: str
    title: str
    report: str
    sections: Mapping[str, str]
    form: fill.Form
    status: work.Pairs
    says: tuple[str, ...]
    untested: tuple[str, ...]
    banners: tuple[str, ...]
    claims: tuple[facts.Claim, ...]
    more_claims: tuple[facts.Claim, ...]
    few: int
    delta: float | None
    system: work.Pairs
    plan_told: str
    plan: work.Pairs
    measures: tuple[tuple[str, ...], ...]
    deviations: tuple[tuple[str, str, str], ...]
    frozen: bool
    materials: work.Pairs
    coverage: tuple[tuple[str, ...], ...]
    written: tuple[facts.Words, ...]
    accuracy: tuple[facts.Accuracy, ...]
    grounds: tuple[facts.Tested, ...]
    gates: tuple[facts.Gate, ...]
    gate_banner: str
    outcomes: RunRecord | None
    crossings: tuple[frameworks.Crossing, ...]
    limits: tuple[str, ...]
    statistics: tuple[str, ...]
    hashes: work.Pairs
    versions: work.Pairs
    record_sha256: str
    run: str
    view: view.View | None
    of_rows: Mapping[str, Section]
    cards: tuple[cards.Card, ...]


def build(framework: frameworks.Framework, record: RunRecord, evidence: object, outcomes: RunRecord | None) -> Page:
    """Lay a record beside a framework.

    Parameters
    ----------
    framework : Framework
        The clauses.
    record : RunRecord
        A record of any kind.
    outcomes : RunRecord or None
        Tables of recorded outcomes that it is or that lie beside it.
    """
    kind = facts.kind_of(record)
    shown = view.build(record) if kind == "texts" else None
    gates = facts.gates(record)
    claims = facts.claims(record, shown.noun if shown else "label") if kind != "outcomes" else ()
    few = [c for c in claims if c.texts is not None and c.texts < MIN_TEXTS]
    claims = tuple(c for c in claims if c not in few)
    own = {f.id for f in record.findings if f.kind == "claim" and facts.own(f)}
    net = sorted((c for c in claims if c.id not in own), key=lambda c: RANK.get(c.verdict, len(RANK)))
    told, settings = work.plan(record)
    form = fill.form(record, framework.id, framework.fields)
    absent = work.absent(record, outcomes)
    dropped = set(work.OUTCOMES_LACK) if kind == "outcomes" else set()
    grounds = facts.grounds(framework, facts.attributes(record, outcomes))
    dropped |= set() if grounds else {"grounds"}
    bare = facts.untested(grounds)
    banners = [*(shown.banners if shown else ()), *([ll144.banner(record)] if kind == "outcomes" else [])]
    return Page(
        framework=framework,
        kind=kind,
        title="Rates of recorded outcomes" if kind == "outcomes" else "Bias test report",
        report=f"{framework.id}/{record.id or digest(record.raw)[:12]}",
        sections={id: name for id, name in frameworks.SECTIONS.items() if id not in dropped},
        form=form,
        status=(*work.status(record, form), *(("Keep for", kept.told) for kept in framework.retention)),
        says=(*prose.lines(f"{kind}_says"), *prose.lines("says_not"), *framework.not_this),
        untested=(*work.untested(record, shown), *([bare] if bare else [])),
        banners=tuple(banners),
        claims=(*net[:MAX_FIRST], *(c for c in claims if c.id in own)),
        few=len(few),
        more_claims=tuple(net[MAX_FIRST:]),
        delta=record.spec.delta,
        system=work.system(record),
        plan_told=told,
        plan=settings,
        measures=prose.rows(f"{kind}_measures"),
        deviations=work.deviations(record),
        frozen=bool(record.frozen),
        materials=work.materials(record),
        coverage=work.coverage(shown) if shown else (),
        written=facts.written(record),
        accuracy=facts.accuracy(record),
        grounds=grounds,
        gates=gates,
        gate_banner=facts.gate_banner(gates),
        outcomes=outcomes,
        crossings=frameworks.cross(framework, work.facts(record, outcomes, form), absent, form.filled),
        limits=_limits(kind, outcomes),
        statistics=prose.lines(f"{kind}_statistics"),
        hashes=work.hashes(record),
        versions=work.versions(record),
        record_sha256=head(record.raw),
        run=words.run_name(record),
        view=shown,
        of_rows={section.id: section for section in tabular.build(record).sections} if kind == "rows" else {},
        cards=_cards(record, evidence, shown) if shown and evidence is not None else (),
    )


def _limits(kind: str, outcomes: RunRecord | None) -> tuple[str, ...]:
    own = {"texts": ("limits", "text_limits", "more_limits"), "rows": ("rows_limits", "more_limits")}.get(kind, ())
    names = (*own, *(("outcomes_limits",) if outcomes is not None else ()))
    return tuple(line for name in names for line in prose.lines(name))


def _cards(record: RunRecord, evidence: object, shown: view.View) -> tuple[cards.Card, ...]:
    """Hidden findings, claims that were shown, and single examples, in this order."""
    told = [f for f in record.findings if f.kind == "claim" and f.verdict == "shown"]
    told = [f for f in told if facts.own(f) and f.exemplars]
    chosen = [*shown.hidden[: MAX_CARDS // 2], *told[: MAX_CARDS // 2], *shown.violations]
    return tuple(cards.build(f, evidence, noun=shown.noun, record=record) for f in chosen[:MAX_CARDS])


FORMAT = "legal-page.v1"


def to_json(page: Page) -> str:
    """The page as data, ASCII only; what nobody filled in is null."""
    return json.dumps(plain(page), indent=2, sort_keys=True, allow_nan=False, default=str) + "\n"


def plain(page: Page) -> dict[str, object]:
    """The page as plain data."""
    framework = page.framework
    return {
        "format": FORMAT,
        "framework": {
            key: value for key, value in asdict(framework).items() if key not in ("clauses", "grounds", "fields")
        },
        "report": page.report,
        "kind": page.kind,
        "record_sha256": page.record_sha256,
        "status": dict(page.status),
        "fields": {e.key: e.value for e in page.form.fields},
        "measures": [{e.key: e.value for e in line} for line in page.form.measures if any(e.value for e in line)],
        "signature": {e.key: e.value for e in page.form.signature},
        "to_be_filled_in": list(page.form.missing),
        "not_tested": list(page.untested),
        "claims": [asdict(c) for c in (*page.claims, *page.more_claims)],
        "delta": page.delta,
        "plan": dict(page.plan),
        "deviations": [dict(zip(("what", "planned", "actual"), d, strict=True)) for d in page.deviations],
        "materials": dict(page.materials),
        "words": [asdict(w) for w in page.written],
        "accuracy": [asdict(a) for a in page.accuracy],
        "grounds": [asdict(g) for g in page.grounds],
        "controls": [asdict(g) for g in page.gates],
        "impact": page.outcomes.raw["ll144"] if page.outcomes is not None else None,
        "clauses": [
            {
                "ref": c.clause.ref,
                "asks": c.clause.asks,
                "level": c.level,
                "gives": c.clause.gives,
                "lacking": list(c.lacking),
                "sections": list(c.sections),
                "read": c.clause.read,
                "source": c.source,
                "consulted": c.consulted,
            }
            for c in page.crossings
        ],
        "says": list(page.says),
        "limits": list(page.limits),
        "hashes": dict(page.hashes),
    }
