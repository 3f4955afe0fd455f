"""What a legal page says of one record, as typed values: the writers add form and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from auditor.core.provenance import head
from auditor.core.record import RunRecord
from auditor.core.types import digest
from auditor.measure.claims import MIN_TEXTS
from auditor.report import cards, ll144, tabular, view, words
from auditor.report import compliance_claims as claimed
from auditor.report import compliance_fill as fill
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_gates as gated
from auditor.report import compliance_groups as groups
from auditor.report import compliance_text as texts
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
    claims: tuple[claimed.Claim, ...]
    more_claims: tuple[claimed.Claim, ...]
    few: int
    delta: float | None
    system: work.Pairs
    plan_told: str
    plan: work.Pairs
    measures: tuple[tuple[str, str, str], ...]
    deviations: tuple[tuple[str, str, str], ...]
    frozen: bool
    materials: work.Pairs
    coverage: tuple[tuple[str, ...], ...]
    written: tuple[groups.Words, ...]
    accuracy: tuple[groups.Accuracy, ...]
    grounds: tuple[groups.Tested, ...]
    gates: tuple[gated.Gate, ...]
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


def build(
    framework: frameworks.Framework, record: RunRecord, evidence: Any, outcomes: RunRecord | None
) -> Page:
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
    kind = gated.kind_of(record)
    shown = view.build(record) if kind == "texts" else None
    gates = gated.gates(record)
    claims = claimed.claims(record, shown.noun if shown else "label") if kind != "outcomes" else ()
    few = [c for c in claims if c.texts is not None and c.texts < MIN_TEXTS]
    claims = tuple(c for c in claims if c not in few)
    own = {f.id for f in record.findings if f.kind == "claim" and claimed.own(f)}
    net = sorted((c for c in claims if c.id not in own), key=lambda c: RANK.get(c.verdict, len(RANK)))
    told, settings = work.plan(record)
    form = fill.form(record, framework.id, framework.fields)
    absent = work.absent(record, outcomes)
    dropped = set(work.OUTCOMES_LACK) if kind == "outcomes" else set()
    grounds = groups.grounds(framework, groups.attributes(record, outcomes))
    dropped |= set() if grounds else {"grounds"}
    bare = groups.untested(grounds)
    banners = [*(shown.banners if shown else ()), *([ll144.banner(record)] if kind == "outcomes" else [])]
    return Page(
        framework=framework,
        kind=kind,
        title="Rates of recorded outcomes" if kind == "outcomes" else "Bias test report",
        report=f"{framework.id}/{record.id or digest(record.raw)[:12]}",
        sections={id: name for id, name in frameworks.SECTIONS.items() if id not in dropped},
        form=form,
        status=(*work.status(record, form), *(("Keep for", kept.told) for kept in framework.retention)),
        says=(
            *{"texts": texts.SAYS, "rows": texts.SAYS_ROWS, "outcomes": texts.SAYS_OUTCOMES}[kind],
            *texts.SAYS_NOT,
            *framework.not_this,
        ),
        untested=(*work.untested(record, shown), *([bare] if bare else [])),
        banners=tuple(banners),
        claims=(*net[:MAX_FIRST], *(c for c in claims if c.id in own)),
        few=len(few),
        more_claims=tuple(net[MAX_FIRST:]),
        delta=record.spec.delta,
        system=work.system(record),
        plan_told=told,
        plan=settings,
        measures={"texts": texts.MEASURES, "rows": texts.ROW_MEASURES, "outcomes": texts.OUTCOME_MEASURES}[
            kind
        ],
        deviations=work.deviations(record),
        frozen=bool(record.frozen),
        materials=work.materials(record),
        coverage=work.coverage(shown) if shown else (),
        written=groups.written(record),
        accuracy=groups.accuracy(record),
        grounds=grounds,
        gates=gates,
        gate_banner=gated.gate_banner(gates),
        outcomes=outcomes,
        crossings=frameworks.cross(framework, work.facts(record, outcomes, form), absent, form.filled),
        limits=_limits(kind, outcomes),
        statistics={
            "texts": texts.STATISTICS,
            "rows": texts.ROW_STATISTICS,
            "outcomes": texts.OUTCOME_STATISTICS,
        }[kind],
        hashes=work.hashes(record),
        versions=work.versions(record),
        record_sha256=head(record.raw),
        run=words.run_name(record),
        view=shown,
        of_rows={section.id: section for section in tabular.build(record).sections} if kind == "rows" else {},
        cards=_cards(record, evidence, shown) if shown and evidence is not None else (),
    )


def _limits(kind: str, outcomes: RunRecord | None) -> tuple[str, ...]:
    people = texts.OUTCOME_LIMITS if outcomes is not None else ()
    if kind == "outcomes":
        return people
    first = words.LIMITS if kind == "texts" else tabular.LIMITS
    own = texts.TEXT_LIMITS if kind == "texts" else ()
    return (*first, *own, *texts.MORE_LIMITS, *people)


def _cards(record: RunRecord, evidence: Any, shown: view.View) -> tuple[cards.Card, ...]:
    """Hidden findings, claims that were shown, and single examples, in this order."""
    told = [f for f in record.findings if f.kind == "claim" and f.verdict == "shown"]
    told = [f for f in told if claimed.own(f) and f.exemplars]
    chosen = [*shown.hidden[: MAX_CARDS // 2], *told[: MAX_CARDS // 2], *shown.violations]
    return tuple(cards.build(f, evidence, noun=shown.noun, record=record) for f in chosen[:MAX_CARDS])
