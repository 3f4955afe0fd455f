"""What a record of any kind says on a legal page: controls as gates, grounds, needs of clauses, plan, hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from auditor.core.record import RunRecord
from auditor.core.record.controls import Control
from auditor.report import claimed, planned, run_checks, words
from auditor.report.legal.fill import Form
from auditor.report.legal.frameworks import Framework
from auditor.text.languages import title

Pairs = tuple[tuple[str, str], ...]
OUTCOMES_LACK = frozenset({"claims", "accuracy", "controls", "counterfactual", "intersections", "rows", "evidence"})
OF_PEOPLE = frozenset({"sex", "race", "ethnicity"})  # what tables of recorded outcomes go by
UNKNOWN, MISSING = "not recorded", "not given"


def kind_of(record: RunRecord) -> str:
    """Return ``outcomes`` for tables of people, ``rows`` for a tabular search, else ``texts``."""
    if record.ll144 is not None:
        return "outcomes"
    return "rows" if record.spec.kind == "tabular" or record.tabular is not None else "texts"


# -- controls as gates ------------------------------------------------------------------------------------

GATE_WORDS = {
    "held": "● held",
    "not_held": "▲ not held",
    "not_run": "– not run",
    "not_needed": "– not needed",
    "measured": "· measured",
}
NAMES = run_checks.CONTROLS
MAX_LINES = 4  # results of one control that are spelled out


@dataclass(frozen=True, slots=True)
class Gate:
    """One control: whether it held (a key of `GATE_WORDS`), what was seen, and what depends on it."""

    name: str
    state: str
    result: str
    depends: str


def gates(record: RunRecord) -> tuple[Gate, ...]:
    """Return the controls, each with what depends on it; completeness comes first."""
    kind = kind_of(record)
    return () if kind == "outcomes" else tuple(_gates(record, kind))


def _gates(record: RunRecord, kind: str) -> Iterator[Gate]:
    depends, counts = words.named("gates"), record.counts
    stopped = f"partial: {record.status_reason or 'no reason was recorded'}"
    held, result = ("held", "everything planned was asked") if record.status == "complete" else ("not_held", stopped)
    yield Gate("Completeness", held, result, depends["completeness"])
    lost = counts.lost | ({} if counts.not_judged is None else {"not_judged": counts.not_judged})
    if lost:
        result = run_checks.lost(counts)
        if counts.rows_asked is not None:
            listed = ", ".join(f"{name} {words.count(n)}" for name, n in lost.items()).replace("_", " ")
            result = f"{listed} of {words.count(counts.rows_asked)} rows"
        yield Gate("Answers without a label", "measured", result, depends["lost"])
    for key, name in NAMES.items() if kind == "texts" else ():
        yield Gate(name, *_gate(key, record.controls.of(key), record), depends[key])


def _gate(key: str, value: Control | None, record: RunRecord) -> tuple[str, str]:
    if value is None:
        return "not_run", "the record holds no result"
    lines = list(run_checks.control(NAMES[key], "", value))
    result = "; ".join(f"{line.scope}: {line.result}" if line.scope else line.result for line in lines)
    if len(lines) > MAX_LINES:
        result = f"{words.plural(len(lines), 'rate')}, listed with the claims"
    seen = [one.positive.seen for one in value.walk() if one.positive is not None]
    seen += [not one.shift.shifted for one in value.walk() if one.shift is not None]
    if seen:
        return ("held" if all(seen) else "not_held"), result
    if any(line.ran for line in lines):
        return "measured", result
    repeats = [m.deterministic for m in record.models.values()]
    return ("not_needed" if key == "canary" and repeats and all(repeats) else "not_run"), result


def gate_banner(every: Sequence[Gate]) -> str:
    """Name the gates that did not hold or were not run; empty where all did."""
    states = {"Not held": "not_held", "Not run": "not_run"}
    named = {what: [g.name.lower() for g in every if g.state == state] for what, state in states.items()}
    return " ".join(f"{what}: {words.listing(names)}." for what, names in named.items() if names)


# -- what was tested, and what the clauses ask for ---------------------------------------------------------


def has_labels(record: RunRecord) -> bool:
    """Test whether answers were compared with labels in the data."""
    return any(entry.overall.accuracy for entry in record.performance.models or ())


def tested(record: RunRecord) -> set[str]:
    """Return the attributes that a claim of the run is about, unless it was not tested."""
    if record.claims is None:  # a run of an older version
        return {a for e in record.estimates for a in e.attributes}
    return claimed.tested(record)


def grounds(framework: Framework, record: RunRecord, outcomes: RunRecord | None) -> dict[str, tuple[str, ...]]:
    """Return for each ground of the framework what was changed or recorded for it: attributes, columns, categories."""
    kind = kind_of(record)
    known = {name.casefold() for name in record.rows.schema.protected} if kind == "rows" else set()
    known |= tested(record) if kind == "texts" else set()
    known |= OF_PEOPLE if outcomes is not None or kind == "outcomes" else set()
    return {ground.name: tuple(a for a in ground.attributes if a in known) for ground in framework.grounds}


def absent(record: RunRecord, outcomes: RunRecord | None) -> frozenset[str]:
    """Return the sections in which a report of this record has nothing."""
    kind = kind_of(record)
    if kind == "outcomes":
        return OUTCOMES_LACK
    lack = {"rows"} if kind == "texts" else {"counterfactual"}
    lack |= set() if has_labels(record) else {"accuracy"}
    return frozenset(lack | ({"impact"} if outcomes is None else set()))


def known(record: RunRecord, outcomes: RunRecord | None, filled: Form | None = None) -> frozenset[str]:
    """Return the needs of clauses that a record meets, with what people filled in."""
    state = {g.name: g.state for g in gates(record)}
    met = {
        "noise": state.get(NAMES["noise_floor"], "not_run") != "not_run",
        "placebo": state.get(NAMES["placebo"], "not_run") != "not_run",
        "labels": has_labels(record),
        "frozen": record.frozen is not None,
        "delta": record.spec.delta is not None,
        "age": any("age" in e.attributes for e in record.estimates),
        "dated": filled is not None and {"name", "date", "signed"} <= filled.filled,
        "measures": filled is not None and any(e.value for line in filled.measures for e in line),
    }
    if outcomes is not None:
        block = outcomes.outcomes
        of_kind = {"historical": "historical", "test": "test_data"}.get(block.data_kind or "", "outcomes")
        met |= dict.fromkeys(("outcomes", {"classification": "selection"}.get(block.mode, block.mode), of_kind), True)
        met["groups"] = bool(block.groups)
    return frozenset(need for need, yes in met.items() if yes)


def not_tested(record: RunRecord) -> tuple[str, ...]:
    """Return what this record says nothing about."""
    kind = kind_of(record)
    out = [words.text({"outcomes": "no_treatment", "rows": "no_texts"}.get(kind, "no_rows"))]
    if kind == "texts":
        names = words.listing(sorted(a for a in tested(record) if "+" not in a))
        which = f"Attributes other than {names}" if names else "All attributes"
        out += [f"{line}: not tested." for line in claimed.not_tested(record)]
        out.append(f"{which}, other groups and words, and other languages: not tested.")
    return tuple(out)


# -- what a record says of itself -------------------------------------------------------------------------


def status(record: RunRecord, filled: Form) -> Pairs:
    """Say whether the page is signed, and what it is about."""
    by = {entry.key: entry.value for entry in filled.signature}
    state = ("Report", f"filled in and dated {by['date']}" if by["date"] and by["signed"] else "draft, unsigned")
    who = ("Responsible person", by["name"] or "to be filled in below")
    if kind_of(record) == "outcomes":
        data = record.data
        return (
            state,
            ("Data", data.file or ", ".join(data.models) or UNKNOWN),
            ("Date of the bias audit", record.outcomes.audit_date or MISSING),
            ("Tool", f"{record.tool.name} {record.tool.version}"),
            who,
        )
    spec, made = record.spec, record.provenance
    models = list(record.models or spec.models or ()) or ([spec.model] if spec.model else [])
    return (
        state,
        ("Run", record.id or UNKNOWN),
        ("State of the run", record.status or UNKNOWN),
        ("Models", ", ".join(models) or UNKNOWN),
        ("Period", period(made.started or UNKNOWN, made.ended or UNKNOWN)),
        ("Plan", f"frozen {record.frozen.frozen_at}" if record.frozen else "not frozen in advance"),
        ("Tool", f"llm-bias-auditor {record.tool_version or UNKNOWN}"),
        ("Holds for", "these models, prompts and dates; test again when any of them changes"),
        who,
    )


def period(started: str, ended: str) -> str:
    """Write begin and end of a run; what is no time stays as it is."""
    try:
        a, b = (datetime.fromisoformat(text).astimezone(UTC) for text in (started, ended))
    except ValueError:
        return f"{started} to {ended}"
    end = f"{b:%H:%M:%S}" if a.date() == b.date() else f"{b:%Y-%m-%d %H:%M:%S}"
    return f"{a:%Y-%m-%d %H:%M:%S} to {end} UTC"


def system(record: RunRecord) -> Pairs:
    """Return what the record knows about the system under test: ids asked for and reported, parameters."""
    rows = []
    for name, model in record.models.items():
        reported = ", ".join(model.reported) or "none reported"
        repeats = "declared deterministic" if model.deterministic else "not declared deterministic"
        rows.append((name, f"reported: {reported}; {repeats}; fingerprint {model.fingerprint or UNKNOWN}"))
    if kind_of(record) == "outcomes":
        rows.append(("Source of the outcomes", record.data.source or MISSING))
    return tuple(rows)


def plan(record: RunRecord) -> tuple[str, Pairs]:
    """Say how far the plan was fixed in advance, and give its settings."""
    if kind_of(record) == "outcomes":
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
    """Return (what, as planned, as run); a run that stopped early is one of them."""
    rows = [*planned.deviations(record)]
    if record.status == "partial":
        reason = record.status_reason or "no reason was recorded"
        rows.append(("End of the run", "everything planned is asked", f"stopped early: {reason}"))
    return tuple(rows)


def materials(record: RunRecord) -> Pairs:
    """Say where texts, words and labels come from, and how many there are."""
    kind = kind_of(record)
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
    seeds = record.provenance.seeds
    rows = [
        ("Texts", seeds.source or record.spec.data or "embedded texts"),
        ("Language", ", ".join(map(title, seeds.languages)) or "English"),
    ]
    if kind == "rows":
        schema = record.rows.schema
        rows = [("Table", schema.name), ("Protected columns", ", ".join(schema.protected) or "none")]
        rows += [("Rows in the domain", schema.rows_in_domain)]
    counts = (record.raw.get("counts") or {}).items()
    return (*rows, *((k.replace("_", " ").capitalize(), words.count(v)) for k, v in counts if isinstance(v, int)))


def hashes(record: RunRecord) -> Pairs:
    """Return the hashes of everything that shapes a run; a hash that the record lacks is said to be lacking."""
    kind, made = kind_of(record), record.provenance
    if kind == "outcomes":
        return (("File of outcomes", record.data.sha256 or UNKNOWN),)
    texts = kind == "texts"
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
    rows += [(f"Dictionary {one.attribute} {one.name}".rstrip(), one.sha256 or UNKNOWN) for one in made.dictionaries]
    rows += [("Dictionaries", UNKNOWN)] if texts and not made.dictionaries else []
    rows += [("Schema", record.rows.schema.sha256)] if kind == "rows" else []
    journals = record.journal.items()
    return (*rows, *((f"{file}, last of {words.count(last.records)} records", last.hash) for file, last in journals))
