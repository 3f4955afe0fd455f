"""What a record of any kind has for a legal page: controls as gates, grounds, needs of clauses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.report import claimed, run_checks, words
from auditor.report.legal.fill import Form
from auditor.report.legal.frameworks import Framework

OUTCOMES_LACK = frozenset({"claims", "accuracy", "controls", "counterfactual", "intersections", "rows", "evidence"})
OF_PEOPLE = frozenset({"sex", "race", "ethnicity"})  # what tables of recorded outcomes go by


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


def gates(record: RunRecord) -> Iterator[Gate]:
    """The controls, each with what depends on it; completeness comes first."""
    if (kind := kind_of(record)) == "outcomes":
        return
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
        lines, state = [], "not_run"
        if (value := record.controls.of(key)) is not None:
            lines = list(run_checks.control(name, "", value))
            seen = [one.positive.seen for one in value.walk() if one.positive is not None]
            seen += [not one.shift.shifted for one in value.walk() if one.shift is not None]
            repeats = [m.deterministic for m in record.models.values()]
            if seen:
                state = "held" if all(seen) else "not_held"
            elif any(line.ran for line in lines):
                state = "measured"
            elif key == "canary" and repeats and all(repeats):
                state = "not_needed"
        result = "; ".join(f"{line.scope}: {line.result}" if line.scope else line.result for line in lines)
        if len(lines) > MAX_LINES:
            result = f"{words.plural(len(lines), 'rate')}, listed with the claims"
        yield Gate(name, state, result or "the record holds no result", depends[key])


# -- what was tested, and what the clauses ask for ---------------------------------------------------------


def has_labels(record: RunRecord) -> bool:
    """Test whether answers were compared with labels in the data."""
    return any(entry.overall.accuracy for entry in record.performance.models or ())


def grounds(framework: Framework, record: RunRecord, outcomes: RunRecord | None) -> dict[str, tuple[str, ...]]:
    """Return for each ground of the framework what was changed or recorded for it: attributes, columns, categories."""
    kind = kind_of(record)
    known = {name.casefold() for name in record.rows.schema.protected} if kind == "rows" else set()
    known |= claimed.tested(record) if kind == "texts" else set()
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
        names = words.listing(sorted(a for a in claimed.tested(record) if "+" not in a))
        which = f"Attributes other than {names}" if names else "All attributes"
        out += [f"{line}: not tested." for line in claimed.not_tested(record)]
        out.append(f"{which}, other groups and words, and other languages: not tested.")
    return tuple(out)
