"""What a compliance report shows, worked out from a record: status, plan, coverage, gates, claims, hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.render import compliance_text as texts
from auditor.render import controls, tabular, view, words

Data = Mapping[str, Any]
Pairs = tuple[tuple[str, str], ...]
GATE_WORDS = {
    "held": "● held",
    "not_held": "▲ not held",
    "not_run": "– not run",
    "not_needed": "– not needed",
    "measured": "· measured",
}
UNKNOWN = "not recorded"
MISSING = "not given"
MAX_LINES = 4  # results of one control that are spelled out


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One line of the table of claims."""

    id: str
    what: str
    model: str
    effect: str
    seeds: int | None
    noise: str
    placebo: str
    verdict: str
    p: str
    notes: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """One control: whether it held, what was seen, and what hangs on it."""

    name: str
    state: str  # a key of GATE_WORDS
    result: str
    depends: str

    @property
    def word(self) -> str:
        """The state with its symbol."""
        return GATE_WORDS[self.state]


def kind_of(record: Data) -> str:
    """``outcomes`` for tables of people, ``rows`` for tabular search, else ``texts``."""
    if "ll144" in record:
        return "outcomes"
    return "rows" if (record.get("spec") or {}).get("kind") == "tabular" or "tabular" in record else "texts"


def facts(record: Data, outcomes: Data | None) -> frozenset[str]:
    """Which of `compliance_frameworks.NEEDS` a record has."""
    has = set()
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
        for need, name in (("noise", "Same-prompt noise"), ("placebo", "Placebo edits"))
        if found.get(name, "not_run") != "not_run"
    }
    if outcomes is not None:
        block = outcomes["ll144"]
        has |= {"outcomes", {"classification": "selection"}.get(block["mode"], block["mode"])}
        has.add("historical" if block["data_kind"] == "historical" else "test_data")
        if block["groups"]:
            has.add("groups")
    return frozenset(has)


def status(record: Data) -> Pairs:
    """The strip at the top."""
    if kind_of(record) == "outcomes":
        data = record["data"]
        return (
            ("Report", "draft, unsigned"),
            ("Data", str(data.get("file") or ", ".join(data.get("models", ())) or UNKNOWN)),
            ("Date of the bias audit", record["ll144"]["audit_date"] or "not given"),
            ("Tool", f"{record['tool']['name']} {record['tool']['version']}"),
        )
    provenance = record.get("provenance") or {}
    ended = provenance.get("ended") or provenance.get("finished") or UNKNOWN
    frozen = record.get("frozen") or {}
    return (
        ("Report", "draft, unsigned"),
        ("Run", str(record.get("id", UNKNOWN))),
        ("State of the run", str(record.get("status", UNKNOWN))),
        ("Models", ", ".join(_models(record)) or UNKNOWN),
        ("Period", f"{provenance.get('started', UNKNOWN)} to {ended}"),
        ("Plan", f"frozen {frozen['frozen_at']}" if frozen else "not frozen in advance"),
        ("Tool", f"llm-bias-auditor {record.get('tool_version') or UNKNOWN}"),
        ("Holds for", "these models, prompts and dates; test again when any of them changes"),
    )


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
        rows = tuple((k.replace("_", " "), str(v)) for k, v in chosen.items() if v is not None)
        return (
            "No plan was frozen: the tables are fixed by the rule, and the choices left open are below.",
            rows,
        )
    sha = (record.get("provenance") or {}).get("plan_sha256") or UNKNOWN
    frozen = record.get("frozen")
    if frozen:
        by = f" by {frozen['frozen_by']}" if frozen.get("frozen_by") else ", no name given"
        why = (
            f" Reasons given: {frozen['reason']}" if frozen.get("reason") else " No reasons were given for δ."
        )
        told = (
            f"The plan was frozen {frozen['frozen_at']}{by} (SHA-256 of the frozen plan {frozen['sha256']}), and was "
            f"in plan.json before the first call (SHA-256 {sha}).{why}"
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
            ("Kind of data", str(block["data_kind"])),
            ("Unknown category", words.count(block["unknown_count"])),
        ]
        if block["data_kind"] == "test":
            rows += [("Why no historical data", str(block["test_data_reason"]))]
            rows += [("How the test data were made", str(block["test_data_generation"]))]
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
    for r in shown.rows:
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


DEPENDS = {
    "noise_floor": "Without it a change may be the model's own noise.",
    "placebo": "Without it a change may go with any change of wording.",
    "positive_control": "Without it nothing can be bounded: the test may be blind.",
    "canary": "If answers shifted, the figures mix two states of the model.",
    "validity": "Variants that read oddly may change answers for that reason.",
    "human_readers": "How many variants people found odd.",
}
NAMES = controls.CONTROL_NAMES | {"human_readers": "Human readers"}


def gates(record: Data) -> tuple[Gate, ...]:
    """The controls, each with what hangs on it; a run that was cut off comes first."""
    if kind_of(record) == "outcomes":
        return ()
    reason = str(record.get("status_reason") or "")
    done = record.get("status") == "complete"
    found = [
        Gate(
            name="Completeness",
            state="held" if done else "not_held",
            result="everything planned was asked"
            if done
            else f"partial: {reason or 'no reason was recorded'}",
            depends="What was not asked may differ from what was.",
        )
    ]
    counts = record.get("counts") or {}
    lost = [
        f"{k} {words.count(counts[k])}"
        for k in ("refused", "unparsed", "failed", "not_judged")
        if k in counts
    ]
    if lost:
        asked = f" of {words.count(counts.get('calls'))} calls" if counts.get("calls") is not None else ""
        told = f"{', '.join(lost).replace('_', ' ')}{asked}"
        depends = "They are outcomes of their own; if one group gets more of them, that is a result."
        found.append(Gate(name="Answers that are no label", state="measured", result=told, depends=depends))
    if kind_of(record) == "rows":
        return tuple(found)
    held = record.get("controls") or {}
    for key, depends in DEPENDS.items():
        found.append(_gate(NAMES[key], held.get(key), record, depends))
    return tuple(found)


def _gate(name: str, value: Any, record: Data, depends: str) -> Gate:
    if value is None:
        return Gate(name=name, state="not_run", result="the record holds no result", depends=depends)
    lines = list(controls._control(name, "", value))
    if len(lines) > MAX_LINES:
        told = f"{words.plural(len(lines), 'rate')}; they stand beside the claims"
    else:
        told = "; ".join(f"{line.scope}: {line.result}" if line.scope else line.result for line in lines)
    states = list(_states(value))
    if "not_held" in states:
        state = "not_held"
    elif "held" in states:
        state = "held"
    else:
        state = "measured" if any(line.ran for line in lines) else "not_run"
        repeats = [m.get("deterministic") for m in (record.get("models") or {}).values()]
        if state == "not_run" and name == NAMES["canary"] and repeats and all(repeats):
            state = "not_needed"
    return Gate(name=name, state=state, result=told, depends=depends)


def _states(value: Any) -> Iterable[str]:
    if not isinstance(value, Mapping):
        return
    if "seen" in value:
        yield "held" if value["seen"] else "not_held"
    elif "shifted" in value:
        yield "not_held" if value["shifted"] else "held"
    else:
        for item in value.values():
            yield from _states(item)


def gate_banner(found: Sequence[Gate]) -> str:
    """What stands over the results where a gate did not hold; else nothing."""
    broken = [g.name.lower() for g in found if g.state == "not_held"]
    missing = [g.name.lower() for g in found if g.state == "not_run" and g.name != NAMES["human_readers"]]
    parts = []
    if broken:
        parts.append(f"Not held: {words.listing(broken)}.")
    if missing:
        parts.append(f"Not run: {words.listing(missing)}.")
    return " ".join(parts)


def claims(record: Data, noun: str) -> tuple[Claim, ...]:
    """Every claim of the record, in its order."""
    return tuple(_claim(record, f, noun) for f in record.get("findings", ()) if f["kind"] == "claim")


def _claim(record: Data, f: Data, noun: str) -> Claim:
    rate = f.get("rate")
    subject = view.Subject(model=f["model"], format=f.get("format", ""), name=f["model"])
    attributes = tuple(f.get("attributes") or ())
    directions = f.get("directions") or ()
    what = words.direction(directions) or words.attributes(attributes)
    p = f.get("p_adjusted")
    rows = kind_of(record) == "rows"
    if rows:
        what = _score(f, what)
    noise = f.get("noise") or (None if rows else view._noise(record, subject, attributes))
    placebo = None if directions or rows else view.find(record, "placebo_rate", subject, attributes)
    return Claim(
        id=str(f["id"]),
        what=what,
        model=str(f["model"]),
        effect=effect(f),
        seeds=rate.get("n") if rate else None,
        noise="not applicable" if rows else view.noise_text(noise),
        placebo="not applicable" if rows or directions else words.interval(placebo),
        verdict=str(f["verdict"]),
        p="–" if p is None else "<0.0001" if p < 0.0001 else f"{p:.2g}",
        notes=tuple(f.get("notes") or ()),
        sentence=words.sentence(f["text"]) if f.get("text") else words.claim_sentence(f, noun),
    )


def _score(finding: Data, columns: str) -> str:
    """Which score of which columns on which rows a claim of tabular search is about."""
    key = str(finding["code"]).removeprefix("tabular-").replace("-", "_")
    begin, text = f"{key} score of {', '.join(finding['attributes'])}, ", str(finding.get("text") or "")
    population = text.removeprefix(begin) if text.startswith(begin) else ""
    return f"{tabular.SCORES.get(key, key)}: {columns}" + (f" ({population})" if population else "")


def effect(finding: Data) -> str:
    """The figure of a claim. A signed difference is told in points, a rate in percent."""
    rate = finding.get("rate")
    if rate is None:
        return "not measured"
    value, low, high = (100 * float(rate[k]) for k in ("value", "low", "high"))
    if low < 0 or str(finding.get("code", "")).startswith(("DIR", "REF")):
        return f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    return words.interval(rate)


def own(claim: Data) -> bool:
    """Whether a finding is a claim about an attribute set, and not about a direction in it or refusals."""
    return not claim.get("directions") and not str(claim.get("code", "")).startswith(("DIR", "REF"))


HASHES = (
    ("Plan (plan.json)", ("plan_sha256",)),
    ("Frozen plan", ("frozen_sha256",)),
    ("Task with its prompts", ("task_sha256",)),
    ("Texts", ("seeds", "sha256")),
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
    for name, path in HASHES:
        value: Any = provenance
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None and name in ("Frozen plan", "Grammar"):
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
