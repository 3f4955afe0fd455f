"""One record and one framework: what a legal page says of it, for `auditor.report.compliance` and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from auditor.core.record import RunRecord, head
from auditor.core.types import digest
from auditor.measure.claims import MIN_TEXTS
from auditor.report import claimed, planned, run_checks, words
from auditor.report import compliance_facts as facts
from auditor.report import compliance_fill as fill
from auditor.report import compliance_frameworks as frameworks

Pairs = tuple[tuple[str, str], ...]
FORMAT = "legal-page.v1"
UNKNOWN = "not recorded"
MISSING = "not given"
MAX_FIRST = 10  # claims about one group and another that stand in the first table
LIMITS = {"texts": ("limits", "text_limits", "more_limits"), "rows": ("rows_limits", "more_limits")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One record beside one framework.

    Attributes
    ----------
    kind : str
        ``texts``, ``rows`` or ``outcomes``.
    outcomes : RunRecord or None
        Tables of recorded outcomes that the record is or that lie beside it.
    sections : mapping of str to str
        Ids and titles of the sections that this page has, in order.
    claims, more_claims : tuple of Claim
        Who gets what more or less often, the clearest first, then changes by attribute; those that the first list
        has no place for.
    few : int
        Claims on fewer than `MIN_TEXTS` texts, which stand in the table of all estimates alone.
    """

    framework: frameworks.Framework
    record: RunRecord
    evidence: object
    outcomes: RunRecord | None
    kind: str
    sections: Mapping[str, str]
    form: fill.Form
    claims: tuple[facts.Claim, ...]
    more_claims: tuple[facts.Claim, ...]
    few: int
    gates: tuple[facts.Gate, ...]
    grounds: tuple[facts.Tested, ...]
    crossings: tuple[frameworks.Crossing, ...]

    @property
    def report(self) -> str:
        """What the page is called."""
        return f"{self.framework.id}/{self.record.id or digest(self.record.raw)[:12]}"

    @property
    def banners(self) -> tuple[str, ...]:
        """What has to be known of the finding."""
        return run_checks.banners(self.record) if self.kind == "texts" else ()

    @property
    def status(self) -> Pairs:
        """The strip at the top."""
        kept = (("Keep for", retention.text) for retention in self.framework.retention)
        return (*status(self.record, self.form), *kept)

    @property
    def says(self) -> tuple[str, ...]:
        """What the page says, and what it does not say."""
        return (*words.lines(f"{self.kind}_says"), *words.lines("says_not"), *self.framework.not_this)

    @property
    def not_tested(self) -> tuple[str, ...]:
        """What the record says nothing about; the grounds that were not tested come last."""
        bare = [g.ground for g in self.grounds if not g.attributes]
        listed = [f"Grounds that were not tested: {words.listing(bare)}."] if bare else []
        return (*facts.not_tested(self.record), *listed)

    @property
    def limits(self) -> tuple[str, ...]:
        """What no figure of the page can say."""
        names = [*LIMITS.get(self.kind, ()), *(["outcomes_limits"] if self.outcomes is not None else [])]
        return tuple(line for name in names for line in words.lines(name))


def build(framework: frameworks.Framework, record: RunRecord, evidence: object, outcomes: RunRecord | None) -> Page:
    """Lay a record of any kind beside a framework; ``outcomes`` are as in `Page`."""
    kind = facts.kind_of(record)
    every = facts.claims(record) if kind != "outcomes" else ()
    claims = [c for c in every if c.texts is None or c.texts >= MIN_TEXTS]
    own = {f.id for f in record.findings if f.kind == "claim" and facts.own(f)}
    net = sorted((c for c in claims if c.id not in own), key=lambda c: words.RANK.get(c.verdict, len(words.RANK)))
    form = fill.form(record, framework.id, framework.fields)
    grounds = facts.grounds(framework, record, outcomes)
    dropped = {*(facts.OUTCOMES_LACK if kind == "outcomes" else ()), *(() if grounds else ("grounds",))}
    order = sorted(frameworks.SECTIONS, key=lambda id: id != "impact" or kind != "outcomes")
    has, absent = facts.known(record, outcomes, form), facts.absent(record, outcomes)
    return Page(
        framework=framework,
        record=record,
        evidence=evidence,
        outcomes=outcomes,
        kind=kind,
        sections={id: frameworks.SECTIONS[id] for id in order if id not in dropped},
        form=form,
        claims=(*net[:MAX_FIRST], *(c for c in claims if c.id in own)),
        more_claims=tuple(net[MAX_FIRST:]),
        few=len(every) - len(claims),
        gates=facts.gates(record),
        grounds=grounds,
        crossings=frameworks.cross(framework, has, absent, form.filled),
    )


def to_json(page: Page) -> str:
    """The page as data, ASCII only; what nobody filled in is null."""
    framework, form = asdict(page.framework), page.form
    for name in ("clauses", "grounds", "fields"):
        del framework[name]
    plain = {
        "format": FORMAT,
        "framework": framework,
        "report": page.report,
        "kind": page.kind,
        "record_sha256": head(page.record.raw),
        "status": dict(page.status),
        "fields": {e.key: e.value for e in form.fields},
        "measures": [{e.key: e.value for e in line} for line in form.measures if any(e.value for e in line)],
        "signature": {e.key: e.value for e in form.signature},
        "to_be_filled_in": list(form.missing),
        "not_tested": list(page.not_tested),
        "claims": _dicts((*page.claims, *page.more_claims)),
        "delta": page.record.spec.delta,
        "plan": dict(plan(page.record)[1]),
        "deviations": [dict(zip(("what", "planned", "actual"), d, strict=True)) for d in deviations(page.record)],
        "materials": dict(materials(page.record)),
        "words": _dicts(claimed.written(page.record)),
        "accuracy": _dicts(facts.accuracy(page.record)),
        "grounds": _dicts(page.grounds),
        "controls": _dicts(page.gates),
        "impact": page.outcomes.raw["ll144"] if page.outcomes is not None else None,
        "clauses": [
            {
                **{name: getattr(c.clause, name) for name in ("ref", "asks", "gives", "read")},
                **{name: getattr(c, name) for name in ("level", "lacking", "sections", "source", "consulted")},
            }
            for c in page.crossings
        ],
        "says": list(page.says),
        "limits": list(page.limits),
        "hashes": dict(hashes(page.record)),
    }
    return json.dumps(plain, indent=2, sort_keys=True, allow_nan=False, default=str) + "\n"


def _dicts(values: Sequence[facts.Claim | claimed.Words | facts.Accuracy | facts.Tested | facts.Gate]) -> list[object]:
    return [asdict(value) for value in values]


# -- what a record says of itself -------------------------------------------------------------------------


def status(record: RunRecord, filled: fill.Form) -> Pairs:
    """Whether the page is signed, and what it is about."""
    by = {entry.key: entry.value for entry in filled.signature}
    state = f"filled in and dated {by['date']}" if by["date"] and by["signed"] else "draft, unsigned"
    who = ("Responsible person", by["name"] or "to be filled in below")
    if facts.kind_of(record) == "outcomes":
        data = record.data
        return (
            ("Report", state),
            ("Data", data.file or ", ".join(data.models) or UNKNOWN),
            ("Date of the bias audit", record.outcomes.audit_date or MISSING),
            ("Tool", f"{record.tool.name} {record.tool.version}"),
            who,
        )
    spec, made = record.spec, record.provenance
    models = list(record.models or spec.models or ()) or ([spec.model] if spec.model else [])
    return (
        ("Report", state),
        ("Run", record.id or UNKNOWN),
        ("State of the run", record.status or UNKNOWN),
        ("Models", ", ".join(models) or UNKNOWN),
        ("Period", period(made.started or UNKNOWN, made.ended or made.finished or UNKNOWN)),
        ("Plan", f"frozen {record.frozen.frozen_at}" if record.frozen else "not frozen in advance"),
        ("Tool", f"llm-bias-auditor {record.tool_version or UNKNOWN}"),
        ("Holds for", "these models, prompts and dates; test again when any of them changes"),
        who,
    )


def period(started: str, ended: str) -> str:
    """Begin and end of a run, for people; what is no time stays as it is.

    Examples
    --------
    >>> period("2026-05-01T09:00:41+00:00", "2026-05-01T09:12:00+00:00")
    '2026-05-01 09:00:41 to 09:12:00 UTC'
    """
    try:
        a, b = (datetime.fromisoformat(text).astimezone(UTC) for text in (started, ended))
    except ValueError:
        return f"{started} to {ended}"
    end = f"{b:%H:%M:%S}" if a.date() == b.date() else f"{b:%Y-%m-%d %H:%M:%S}"
    return f"{a:%Y-%m-%d %H:%M:%S} to {end} UTC"


def system(record: RunRecord) -> Pairs:
    """What the record itself knows about the system under test: ids asked for and reported, parameters."""
    rows = []
    for name, model in record.models.items():
        reported = ", ".join(model.reported) or "none reported"
        repeats = "declared to repeat itself" if model.deterministic else "not declared to repeat itself"
        rows.append((name, f"reported: {reported}; {repeats}; fingerprint {model.fingerprint or UNKNOWN}"))
    if facts.kind_of(record) == "outcomes":
        rows.append(("Source of the outcomes", record.data.source or MISSING))
    return tuple(rows)


def plan(record: RunRecord) -> tuple[str, Pairs]:
    """How far the plan was fixed in advance, in a sentence; and its settings."""
    if facts.kind_of(record) == "outcomes":
        chosen = {n: getattr(record.outcomes, n) for n in ("mode", "data_kind", "median_population", "partly_known")}
        settings = {name: planned.value(value) for name, value in chosen.items() if value is not None}
        said = "No plan was frozen: the tables are fixed by the rule, and the choices left open are below."
        return said, tuple((name.replace("_", " "), value) for name, value in settings.items())
    sha, frozen = record.provenance.plan_sha256 or UNKNOWN, record.frozen
    said = words.text("plan_not_frozen").format(sha=sha)
    if frozen:
        by = f" by {frozen.frozen_by}" if frozen.frozen_by else ", no name given"
        why = f" Reasons given: {words.sentence(frozen.reason)}" if frozen.reason else " No reasons were given for δ."
        said = (
            f"The plan was frozen {frozen.frozen_at}{by} (SHA-256 of the frozen plan {frozen.sha256}), and was "
            f"in plan.json before the first call (SHA-256 {sha}).{why} {' '.join(planned.frozen(record))}"
        )
    spec = sorted((record.raw.get("spec") or {}).items())
    values = [(name.replace("_", " "), planned.value(value)) for name, value in spec if name not in ("models", "kind")]
    left = [name for name, value in values if value == MISSING]
    rest = [(MISSING, ", ".join(left))] if left else []
    return said, (*(pair for pair in values if pair[1] != MISSING), *rest)


def deviations(record: RunRecord) -> tuple[tuple[str, str, str], ...]:
    """(what, as planned, as run); a run that stopped early is one of them."""
    rows = [*planned.deviations(record)]
    if record.status == "partial":
        reason = record.status_reason or "no reason was recorded"
        rows.append(("End of the run", "everything planned is asked", f"stopped early: {reason}"))
    return tuple(rows)


def materials(record: RunRecord) -> Pairs:
    """Where texts, words and labels come from, and how many."""
    kind = facts.kind_of(record)
    if kind == "outcomes":
        data, block = record.data, record.outcomes
        test = (
            ("Why no historical data", block.test_data_reason or MISSING),
            ("How the test data were made", block.test_data_generation or MISSING),
        )
        return (
            ("File", data.file or UNKNOWN),
            ("SHA-256 of the file", data.sha256 or UNKNOWN),
            ("Lines", words.count(data.rows)),
            ("Source", data.source or MISSING),
            ("Kind of data", f"{block.data_kind} data" if block.data_kind else "not said"),
            ("Unknown category", words.count(block.unknown_count)),
            *(test if block.data_kind == "test" else ()),
        )
    rows = [("Texts", record.provenance.seeds.source or record.spec.data or "embedded texts"), ("Language", "English")]
    if kind == "rows":
        schema = record.rows.schema
        rows = [("Table", schema.name), ("Protected columns", ", ".join(schema.protected) or "none")]
        rows += [("Rows in the domain", schema.rows_in_domain)]
    counts = (record.raw.get("counts") or {}).items()
    return (*rows, *((k.replace("_", " ").capitalize(), words.count(v)) for k, v in counts if isinstance(v, int)))


def hashes(record: RunRecord) -> Pairs:
    """Hashes of everything that shapes a run; what the record lacks is said to be lacking."""
    kind, made = facts.kind_of(record), record.provenance
    if kind == "outcomes":
        return (("File of outcomes", record.data.sha256 or UNKNOWN),)
    texts = kind == "texts"
    sources = (
        ("Rows", made.rows, not texts),
        ("Profile", made.profile, False),
        ("Parser", made.parser, texts),
        ("Grammar", made.grammar, False),
        ("Code of the tool", made.code, True),
    )
    known = (
        ("Plan (plan.json)", made.plan_sha256, True),
        ("Frozen plan", record.frozen.sha256 if record.frozen is not None else None, False),
        ("Task with its prompts", made.task_sha256, texts),
        ("Texts", made.seeds.sha256, texts),
        *((name, source.sha256 if source is not None else None, needed) for name, source, needed in sources),
    )
    rows = [(name, value or UNKNOWN) for name, value, needed in known if value or needed]
    rows += [(f"Dictionary {one.attribute} {one.name}".rstrip(), one.sha256 or UNKNOWN) for one in made.words]
    rows += [("Dictionaries", UNKNOWN)] if texts and not made.words else []
    rows += [("Schema", record.rows.schema.sha256)] if kind == "rows" else []
    journals = record.journal.items()
    return (*rows, *((f"{file}, last of {words.count(last.records)} records", last.hash) for file, last in journals))
