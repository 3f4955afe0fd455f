"""What a compliance report says of a record beside gates and claims: status, plan, materials, coverage, hashes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from auditor.core.record import RunRecord
from auditor.core.record.parts import Source
from auditor.report import planned, prose, view, words
from auditor.report.compliance_facts import accuracy, gates, kind_of
from auditor.report.compliance_fill import Form

Pairs = tuple[tuple[str, str], ...]
UNKNOWN = "not recorded"
MISSING = "not given"
OUTCOMES_LACK = frozenset({"claims", "accuracy", "controls", "counterfactual", "intersections", "rows", "evidence"})


def absent(record: RunRecord, outcomes: RunRecord | None) -> frozenset[str]:
    """The sections in which a report of this record has nothing."""
    kind = kind_of(record)
    if kind == "outcomes":
        return OUTCOMES_LACK
    lack = {"rows"} if kind == "texts" else {"counterfactual"}
    if not accuracy(record):
        lack.add("accuracy")
    return frozenset(lack | ({"impact"} if outcomes is None else set()))


def facts(record: RunRecord, outcomes: RunRecord | None, filled: Form | None = None) -> frozenset[str]:
    """Which of `compliance_frameworks.NEEDS` a record has, with what people filled in."""
    has = set()
    if accuracy(record):
        has.add("labels")
    if filled is not None:
        has |= {"dated"} if {"name", "date", "signed"} <= filled.filled else set()
        has |= {"measures"} if any(e.value for line in filled.measures for e in line) else set()
    spec, estimates = record.spec, record.estimates
    if record.frozen:
        has.add("frozen")
    if spec.delta is not None:
        has.add("delta")
    if any("age" in e.attributes for e in estimates):
        has.add("age")
    found = {g.name: g.state for g in gates(record)}
    has |= {
        need
        for need, name in (("noise", "Same-prompt noise"), ("placebo", "Placebo edits"), ("readers", "Human readers"))
        if found.get(name, "not_run") != "not_run"
    }
    if outcomes is not None:
        block = outcomes.outcomes
        has |= {"outcomes", {"classification": "selection"}.get(block.mode, block.mode)}
        has |= {{"historical": "historical", "test": "test_data"}.get(block.data_kind or "", "outcomes")}
        if block.groups:
            has.add("groups")
    return frozenset(has)


def status(record: RunRecord, filled: Form) -> Pairs:
    """The strip at the top."""
    by = {entry.key: entry.value for entry in filled.signature}
    state = f"filled in and dated {by['date']}" if by["date"] and by["signed"] else "draft, unsigned"
    who = ("Responsible person", by["name"] or "to be filled in below")
    if kind_of(record) == "outcomes":
        data = record.data
        return (
            ("Report", state),
            ("Data", data.file or ", ".join(data.models) or UNKNOWN),
            ("Date of the bias audit", record.outcomes.audit_date or "not given"),
            ("Tool", f"{record.tool.name} {record.tool.version}"),
            who,
        )
    provenance = record.provenance
    ended = provenance.ended or provenance.finished or UNKNOWN
    frozen = record.frozen
    return (
        ("Report", state),
        ("Run", record.id or UNKNOWN),
        ("State of the run", record.status or UNKNOWN),
        ("Models", ", ".join(_models(record)) or UNKNOWN),
        ("Period", period(provenance.started or UNKNOWN, ended)),
        ("Plan", f"frozen {frozen.frozen_at}" if frozen else "not frozen in advance"),
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


def _models(record: RunRecord) -> list[str]:
    spec = record.spec
    named = list(record.models or spec.models or ())
    return named or ([spec.model] if spec.model else [])


def system(record: RunRecord) -> Pairs:
    """What the record itself knows about the system under test: ids asked for and reported, parameters."""
    rows = []
    for name, model in record.models.items():
        reported = ", ".join(model.reported) or "none reported"
        repeats = "declared to repeat itself" if model.deterministic else "not declared to repeat itself"
        rows.append((name, f"reported: {reported}; {repeats}; fingerprint {model.fingerprint or UNKNOWN}"))
    if kind_of(record) == "outcomes":
        rows.append(("Source of the outcomes", record.data.source or "not given"))
    return tuple(rows)


def plan(record: RunRecord) -> tuple[str, Pairs]:
    """How far the plan was fixed in advance, in a sentence; and its settings."""
    if kind_of(record) == "outcomes":
        block = record.outcomes
        chosen = {
            "mode": block.mode,
            "data_kind": block.data_kind,
            "median_population": block.median_population,
            "partly_known": block.partly_known,
        }
        rows = tuple((k.replace("_", " "), _plain(v)) for k, v in chosen.items() if v is not None)
        return ("No plan was frozen: the tables are fixed by the rule, and the choices left open are below.", rows)
    sha = record.provenance.plan_sha256 or UNKNOWN
    frozen = record.frozen
    if frozen:
        by = f" by {frozen.frozen_by}" if frozen.frozen_by else ", no name given"
        why = f" Reasons given: {words.sentence(frozen.reason)}" if frozen.reason else " No reasons were given for δ."
        told = (
            f"The plan was frozen {frozen.frozen_at}{by} (SHA-256 of the frozen plan {frozen.sha256}), and was "
            f"in plan.json before the first call (SHA-256 {sha}).{why} {' '.join(planned.frozen(record))}"
        )
    else:
        told = (
            f"The plan was written to plan.json before the first call (SHA-256 {sha}). It was not frozen before that: "
            "nothing shows that its settings were chosen before other runs were seen."
        )
    skip = {"models", "kind"}
    spec = {k: _plain(v) for k, v in sorted((record.raw.get("spec") or {}).items()) if k not in skip}
    settings = [(k.replace("_", " "), v) for k, v in spec.items() if v != MISSING]
    left = [k.replace("_", " ") for k, v in spec.items() if v == MISSING]
    settings += [(MISSING, ", ".join(left))] if left else []
    return told, tuple(settings)


def _plain(value: object) -> str:
    if value is None or value in ([], {}, ""):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {_plain(v)}" for k, v in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def deviations(record: RunRecord) -> tuple[tuple[str, str, str], ...]:
    """(what, as planned, as run); a run that stopped early is one of them."""
    found = record.frozen.deviations if record.frozen is not None else ()
    rows = [(d.what, _plain(d.planned), _plain(d.actual)) for d in found]
    if record.status == "partial":
        reason = record.status_reason or "no reason was recorded"
        rows.append(("End of the run", "everything planned is asked", f"stopped early: {reason}"))
    return tuple(rows)


def materials(record: RunRecord) -> Pairs:
    """Where texts, words and labels come from, and how many."""
    if kind_of(record) == "outcomes":
        data, block = record.data, record.outcomes
        rows = [("File", data.file or UNKNOWN), ("SHA-256 of the file", data.sha256 or UNKNOWN)]
        rows += [("Lines", words.count(data.rows)), ("Source", data.source or "not given")]
        rows += [
            ("Kind of data", f"{block.data_kind} data" if block.data_kind else "not said"),
            ("Unknown category", words.count(block.unknown_count)),
        ]
        if block.data_kind == "test":
            rows += [("Why no historical data", block.test_data_reason or "not given")]
            rows += [("How the test data were made", block.test_data_generation or "not given")]
        return tuple(rows)
    counts, seeds = record.raw.get("counts") or {}, record.provenance.seeds
    rows = []
    if kind_of(record) == "rows":
        schema = record.rows.schema
        rows += [("Table", schema.name), ("Protected columns", ", ".join(schema.protected) or "none")]
        rows += [("Rows in the domain", schema.rows_in_domain)]
    else:
        rows += [("Texts", seeds.source or record.spec.data or "embedded texts")]
        rows += [("Language", "English")]
    rows += [(k.replace("_", " ").capitalize(), words.count(v)) for k, v in counts.items() if isinstance(v, int)]
    return tuple(rows)


def coverage(shown: view.View) -> tuple[tuple[str, ...], ...]:
    """(attributes, seeds, variants judged valid, discarded, verdicts): what was covered, one row for each set."""
    rows = []
    for r in view.split(shown.rows)[0]:
        told = sorted({c.verdict for c in r.cells}, key=list(words.VERDICTS).index)
        rows.append(
            (
                r.label,
                words.count(r.seeds),
                words.count(r.valid),
                words.count(r.discarded),
                ", ".join(words.verdict(v) for v in told),
            )
        )
    return tuple(rows)


def hashes(record: RunRecord) -> Pairs:
    """Hashes of everything that shapes a run; what the record lacks is said to be lacking."""
    kind, made = kind_of(record), record.provenance
    if kind == "outcomes":
        return (("File of outcomes", record.data.sha256 or UNKNOWN),)
    texts = kind == "texts"
    found = (
        ("Plan (plan.json)", made.plan_sha256, True),
        ("Frozen plan", record.frozen.sha256 if record.frozen is not None else None, False),
        ("Task with its prompts", made.task_sha256, texts),
        ("Texts", made.seeds.sha256, texts),
        ("Rows", _sha256(made.rows), not texts),
        ("Profile", _sha256(made.profile), False),
        ("Parser", _sha256(made.parser), texts),
        ("Grammar", _sha256(made.grammar), False),
        ("Code of the tool", _sha256(made.code), True),
    )
    rows = [(name, value or UNKNOWN) for name, value, needed in found if value or needed]
    for entry in made.words:
        rows.append((f"Dictionary {entry.attribute} {entry.name}".rstrip(), entry.sha256 or UNKNOWN))
    if not made.words and texts:
        rows.append(("Dictionaries", UNKNOWN))
    if kind == "rows":
        rows.append(("Schema", record.rows.schema.sha256))
    for file, head in record.journal.items():
        rows.append((f"{file}, last of {words.count(head.records)} records", head.hash))
    return tuple(rows)


def _sha256(source: Source | None) -> str | None:
    return None if source is None else source.sha256


def versions(record: RunRecord) -> Pairs:
    """Python, platform and packages."""
    made = record.provenance
    rows = [(name, value) for name, value in (("Python", made.python), ("Platform", made.platform)) if value]
    return (*rows, *((name, version or "not installed") for name, version in made.packages.items()))


def untested(record: RunRecord, shown: view.View | None) -> tuple[str, ...]:
    """What this record says nothing about."""
    kind = kind_of(record)
    if kind == "outcomes":
        return (prose.text("no_treatment"),)
    rows = [prose.text("no_texts" if kind == "rows" else "no_rows")]
    if shown is not None:
        known = {a for r in shown.rows for a in r.attributes}
        rows.append(
            f"Attributes other than {words.listing(sorted(known)) or 'none'}, other groups and words, and other "
            "languages: not tested."
        )
        bare = [r.label for r in shown.rows if r.attributes and all(c.claim is None for c in r.cells)]
        if bare:
            rows.append(f"Without a claim (described only): {', '.join(bare)}.")
    return tuple(rows)
