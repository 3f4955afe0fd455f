"""What a compliance report says of a record beside gates and claims: status, plan, materials, coverage, hashes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from auditor.report import compliance_groups as groups
from auditor.report import compliance_text as texts
from auditor.report import planned, view, words
from auditor.report.compliance_fill import Form
from auditor.report.compliance_gates import gates, kind_of

Data = Mapping[str, Any]
Pairs = tuple[tuple[str, str], ...]
UNKNOWN = "not recorded"
MISSING = "not given"
OUTCOMES_LACK = frozenset(
    {"claims", "accuracy", "controls", "counterfactual", "intersections", "rows", "evidence"}
)


def absent(record: Data, outcomes: Data | None) -> frozenset[str]:
    """The sections in which a report of this record has nothing."""
    kind = kind_of(record)
    if kind == "outcomes":
        return OUTCOMES_LACK
    lack = {"rows"} if kind == "texts" else {"counterfactual"}
    if not groups.accuracy(record):
        lack.add("accuracy")
    return frozenset(lack | ({"impact"} if outcomes is None else set()))


def facts(record: Data, outcomes: Data | None, filled: Form | None = None) -> frozenset[str]:
    """Which of `compliance_frameworks.NEEDS` a record has, with what people filled in."""
    has = set()
    if groups.accuracy(record):
        has.add("labels")
    if filled is not None:
        has |= {"dated"} if {"name", "date", "signed"} <= filled.filled else set()
        has |= {"measures"} if any(e.value for line in filled.measures for e in line) else set()
    spec, estimates = record.get("spec") or {}, record.get("estimates") or ()
    if record.get("frozen"):
        has.add("frozen")
    if spec.get("delta") is not None:
        has.add("delta")
    if any("age" in e.get("attributes", ()) for e in estimates):
        has.add("age")
    found = {g.name: g.state for g in gates(record)}
    has |= {
        need
        for need, name in (
            ("noise", "Same-prompt noise"),
            ("placebo", "Placebo edits"),
            ("readers", "Human readers"),
        )
        if found.get(name, "not_run") != "not_run"
    }
    if outcomes is not None:
        block = outcomes["ll144"]
        has |= {"outcomes", {"classification": "selection"}.get(block["mode"], block["mode"])}
        has |= {{"historical": "historical", "test": "test_data"}.get(block["data_kind"], "outcomes")}
        if block["groups"]:
            has.add("groups")
    return frozenset(has)


def status(record: Data, filled: Form) -> Pairs:
    """The strip at the top."""
    by = {entry.key: entry.value for entry in filled.signature}
    state = f"filled in and dated {by['date']}" if by["date"] and by["signed"] else "draft, unsigned"
    who = ("Responsible person", by["name"] or "to be filled in below")
    if kind_of(record) == "outcomes":
        data = record["data"]
        return (
            ("Report", state),
            ("Data", str(data.get("file") or ", ".join(data.get("models", ())) or UNKNOWN)),
            ("Date of the bias audit", record["ll144"]["audit_date"] or "not given"),
            ("Tool", f"{record['tool']['name']} {record['tool']['version']}"),
            who,
        )
    provenance = record.get("provenance") or {}
    ended = provenance.get("ended") or provenance.get("finished") or UNKNOWN
    frozen = record.get("frozen") or {}
    return (
        ("Report", state),
        ("Run", str(record.get("id", UNKNOWN))),
        ("State of the run", str(record.get("status", UNKNOWN))),
        ("Models", ", ".join(_models(record)) or UNKNOWN),
        ("Period", period(str(provenance.get("started") or UNKNOWN), str(ended))),
        ("Plan", f"frozen {frozen['frozen_at']}" if frozen else "not frozen in advance"),
        ("Tool", f"llm-bias-auditor {record.get('tool_version') or UNKNOWN}"),
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


def _models(record: Data) -> list[str]:
    spec = record.get("spec") or {}
    named = list(record.get("models") or spec.get("models") or ())
    return named or ([str(spec["model"])] if spec.get("model") else [])


def system(record: Data) -> Pairs:
    """What the record itself knows about the system under test: ids asked for and reported, parameters."""
    rows = []
    for name, model in (record.get("models") or {}).items():
        reported = ", ".join(model.get("reported") or ()) or "none reported"
        repeats = (
            "declared to repeat itself" if model.get("deterministic") else "not declared to repeat itself"
        )
        rows.append(
            (name, f"reported: {reported}; {repeats}; fingerprint {model.get('fingerprint') or UNKNOWN}")
        )
    if kind_of(record) == "outcomes":
        rows.append(("Source of the outcomes", record["data"].get("source") or "not given"))
    return tuple(rows)


def plan(record: Data) -> tuple[str, Pairs]:
    """How far the plan was fixed in advance, in a sentence; and its settings."""
    if kind_of(record) == "outcomes":
        chosen = {k: record["ll144"][k] for k in ("mode", "data_kind", "median_population", "partly_known")}
        rows = tuple((k.replace("_", " "), _plain(v)) for k, v in chosen.items() if v is not None)
        return (
            "No plan was frozen: the tables are fixed by the rule, and the choices left open are below.",
            rows,
        )
    sha = (record.get("provenance") or {}).get("plan_sha256") or UNKNOWN
    frozen = record.get("frozen")
    if frozen:
        by = f" by {frozen['frozen_by']}" if frozen.get("frozen_by") else ", no name given"
        why = (
            f" Reasons given: {words.sentence(str(frozen['reason']))}"
            if frozen.get("reason")
            else " No reasons were given for δ."
        )
        told = (
            f"The plan was frozen {frozen['frozen_at']}{by} (SHA-256 of the frozen plan {frozen['sha256']}), and was "
            f"in plan.json before the first call (SHA-256 {sha}).{why} {' '.join(planned.frozen(record))}"
        )
    else:
        told = (
            f"The plan was written to plan.json before the first call (SHA-256 {sha}). It was not frozen before that: "
            "nothing shows that its settings were chosen before other runs were seen."
        )
    skip = {"models", "kind"}
    spec = {k: _plain(v) for k, v in sorted((record.get("spec") or {}).items()) if k not in skip}
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


def deviations(record: Data) -> tuple[tuple[str, str, str], ...]:
    """(what, as planned, as run); a run that stopped early is one of them."""
    rows = [
        (str(d["what"]), _plain(d.get("planned")), _plain(d.get("actual")))
        for d in (record.get("frozen") or {}).get("deviations") or ()
    ]
    if record.get("status") == "partial":
        reason = str(record.get("status_reason") or "no reason was recorded")
        rows.append(("End of the run", "everything planned is asked", f"stopped early: {reason}"))
    return tuple(rows)


def materials(record: Data) -> Pairs:
    """Where texts, words and labels come from, and how many."""
    if kind_of(record) == "outcomes":
        data, block = record["data"], record["ll144"]
        rows = [
            ("File", str(data.get("file", UNKNOWN))),
            ("SHA-256 of the file", str(data.get("sha256", UNKNOWN))),
        ]
        rows += [("Lines", words.count(data.get("rows"))), ("Source", data.get("source") or "not given")]
        rows += [
            ("Kind of data", f"{block['data_kind']} data" if block["data_kind"] else "not said"),
            ("Unknown category", words.count(block["unknown_count"])),
        ]
        if block["data_kind"] == "test":
            rows += [("Why no historical data", str(block["test_data_reason"] or "not given"))]
            rows += [("How the test data were made", str(block["test_data_generation"] or "not given"))]
        return tuple(rows)
    counts, provenance = record.get("counts") or {}, record.get("provenance") or {}
    seeds = provenance.get("seeds") or {}
    rows = []
    if kind_of(record) == "rows":
        schema = record["tabular"]["schema"]
        rows += [
            ("Table", str(schema["name"])),
            ("Protected columns", ", ".join(schema["protected"]) or "none"),
        ]
        rows += [("Rows in the domain", str(schema["rows_in_domain"]))]
    else:
        rows += [
            ("Texts", str(seeds.get("source") or (record.get("spec") or {}).get("data") or "embedded texts"))
        ]
        rows += [("Language", "English")]
    rows += [
        (k.replace("_", " ").capitalize(), words.count(v)) for k, v in counts.items() if isinstance(v, int)
    ]
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


HASHES = (
    ("Plan (plan.json)", ("plan_sha256",)),
    ("Frozen plan", ("frozen_sha256",)),
    ("Task with its prompts", ("task_sha256",)),
    ("Texts", ("seeds", "sha256")),
    ("Rows", ("rows", "sha256")),
    ("Profile", ("profile", "sha256")),
    ("Parser", ("parser", "sha256")),
    ("Grammar", ("grammar", "sha256")),
    ("Code of the tool", ("code", "sha256")),
)


def hashes(record: Data) -> Pairs:
    """Hashes of everything that shapes a run; what the record lacks is said to be lacking."""
    if kind_of(record) == "outcomes":
        return (("File of outcomes", str(record["data"].get("sha256", UNKNOWN))),)
    provenance = dict(record.get("provenance") or {})
    if record.get("frozen"):
        provenance["frozen_sha256"] = record["frozen"]["sha256"]
    rows = []
    not_here = ("Rows",) if kind_of(record) == "texts" else ("Texts", "Parser", "Task with its prompts")
    for name, path in HASHES:
        value: Any = provenance
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None and (name in ("Frozen plan", "Grammar", "Profile") or name in not_here):
            continue
        rows.append((name, str(value or UNKNOWN)))
    known = provenance.get("dictionaries")
    if isinstance(known, Mapping):
        known = [{"attribute": k, "sha256": v} for k, v in known.items()]
    for entry in known or ():
        name = f"Dictionary {entry.get('attribute', '')} {entry.get('name', '')}".rstrip()
        rows.append((name, str(entry.get("sha256") or UNKNOWN)))
    if not known and kind_of(record) == "texts":
        rows.append(("Dictionaries", UNKNOWN))
    if kind_of(record) == "rows":
        rows.append(("Schema", str(record["tabular"]["schema"]["sha256"])))
    for file, head in (record.get("journal") or {}).items():
        rows.append((f"{file}, last of {words.count(head['records'])} records", str(head["hash"])))
    return tuple(rows)


def versions(record: Data) -> Pairs:
    """Python, platform and packages."""
    provenance = record.get("provenance") or {}
    rows = [
        (k.capitalize(), str(provenance[k])) for k in ("python", "platform") if provenance.get(k) is not None
    ]
    rows += [(k, str(v or "not installed")) for k, v in (provenance.get("packages") or {}).items()]
    return tuple(rows)


def untested(record: Data, shown: view.View | None) -> tuple[str, ...]:
    """What this record says nothing about."""
    kind = kind_of(record)
    if kind == "outcomes":
        return (texts.NO_TREATMENT,)
    rows = [texts.NO_TEXTS if kind == "rows" else texts.NO_ROWS]
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
