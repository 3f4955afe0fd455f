"""What a record says on a legal page: its claims, its controls as gates, whom it is about, which needs it meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.record.controls import Control
from auditor.core.types import Estimate, Finding
from auditor.measure.claims import MIN_TEXTS
from auditor.report import claimed, run_checks, tabular_report, words
from auditor.report.compliance_fill import Form
from auditor.report.compliance_frameworks import Framework

OUTCOMES_LACK = frozenset({"claims", "accuracy", "controls", "counterfactual", "intersections", "rows", "evidence"})
OF_PEOPLE = frozenset({"sex", "race", "ethnicity"})  # what tables of recorded outcomes go by


def kind_of(record: RunRecord) -> str:
    """``outcomes`` for tables of people, ``rows`` for tabular search, else ``texts``."""
    if record.ll144 is not None:
        return "outcomes"
    return "rows" if record.spec.kind == "tabular" or record.tabular is not None else "texts"


# -- claims -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One line of the table of claims."""

    id: str
    what: str
    model: str
    effect: str
    texts: int | None
    directed: bool  # about one group and another, and not about how often answers changed
    verdict: str
    p: str
    notes: tuple[str, ...]


def claims(record: RunRecord) -> tuple[Claim, ...]:
    """Every claim of the record, in its order."""
    return tuple(_claim(record, f) for f in record.findings if f.kind == "claim")


def _claim(record: RunRecord, f: Finding) -> Claim:
    rows = kind_of(record) == "rows"
    what = words.direction(f.directions) or words.attributes(f.attributes)
    shown, n = effect(f), f.rate.n if f.rate else None
    if rows:
        what = _score(record, f, what)
    if (one := claimed.of_finding(record, f)) is not None:
        what, n = one.who, one.claim.texts
        shown = "too wide" if one.effect.vague else f"{one.effect.text} {one.effect.unit}"
    return Claim(
        id=f.id,
        what=what,
        model=f.model,
        effect=shown,
        texts=n,
        directed=rows or bool(f.directions),
        verdict=f.verdict,
        p=words.p_value(claimed.tested_p(f)),
        notes=claimed.notes(record, f),
    )


def _score(record: RunRecord, finding: Finding, columns: str) -> str:
    """Which score of which columns on which rows a claim of tabular search is about."""
    key = finding.code.removeprefix("tabular-").replace("-", "_")
    about = (s for s in record.rows.measured if (s.name, s.columns) == (key, finding.attributes))
    of = next((s.population for s in about if s.estimate == finding.rate), "")
    return f"{tabular_report.SCORES.get(key, key)}: {columns}" + (f" ({of})" if of else "")


def effect(finding: Finding) -> str:
    """The figure of a claim. A signed difference is told in points, a rate in percent."""
    rate = finding.rate
    if rate is None:
        return "not measured"
    if rate.low < 0 or finding.code.startswith(("DIR", "REF")):
        low, high = max(100 * rate.low, -100.0), min(100 * rate.high, 100.0)  # shares cannot differ by more
        return f"{100 * rate.value:+.1f} points ({low:+.1f} to {high:+.1f})"
    if finding.code.startswith("tabular-"):  # of several levels, so each is named
        return words.rate_text(rate)
    return words.interval(rate)


def own(claim: Finding) -> bool:
    """Whether a finding is a claim about an attribute set, and not about a direction in it or refusals."""
    return not claim.directions and not claim.code.startswith(("DIR", "REF"))


# -- controls as gates ------------------------------------------------------------------------------------

GATE_WORDS = {
    "held": "● held",
    "not_held": "▲ not held",
    "not_run": "– not run",
    "not_needed": "– not needed",
    "measured": "· measured",
}
NAMES = run_checks.CONTROLS
GATES = ("noise_floor", "placebo", "positive_control", "canary", "validity")
MAX_LINES = 4  # results of one control that are spelled out


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """One control: whether it held (a key of `GATE_WORDS`), what was seen, and what hangs on it."""

    name: str
    state: str
    result: str
    depends: str


def gates(record: RunRecord) -> tuple[Gate, ...]:
    """The controls, each with what hangs on it; a run that was cut off comes first."""
    kind = kind_of(record)
    return () if kind == "outcomes" else tuple(_gates(record, kind))


def _gates(record: RunRecord, kind: str) -> Iterator[Gate]:
    depends, counts = words.named("gates"), record.counts
    done = record.status == "complete"
    stopped = f"partial: {record.status_reason or 'no reason was recorded'}"
    yield Gate(
        name="Completeness",
        state="held" if done else "not_held",
        result="everything planned was asked" if done else stopped,
        depends=depends["completeness"],
    )
    lost = counts.lost | ({} if counts.not_judged is None else {"not_judged": counts.not_judged})
    if lost:
        result = run_checks.lost(counts)
        if counts.rows_asked is not None:
            listed = ", ".join(f"{name} {words.count(n)}" for name, n in lost.items()).replace("_", " ")
            result = f"{listed} of {words.count(counts.rows_asked)} rows"
        yield Gate(name="Answers that are no label", state="measured", result=result, depends=depends["lost"])
    for key in GATES if kind == "texts" else ():
        state, result = _gate(key, record.controls.of(key), record)
        yield Gate(name=NAMES[key], state=state, result=result, depends=depends[key])


def _gate(key: str, value: Control | None, record: RunRecord) -> tuple[str, str]:
    """(state, result) of one control."""
    if value is None:
        return "not_run", "the record holds no result"
    lines = list(run_checks.control(NAMES[key], "", value))
    result = "; ".join(f"{line.scope}: {line.result}" if line.scope else line.result for line in lines)
    if len(lines) > MAX_LINES:
        result = f"{words.plural(len(lines), 'rate')}; they stand beside the claims"
    if held := list(_held(value)):
        return ("held" if all(held) else "not_held"), result
    if any(line.ran for line in lines):
        return "measured", result
    repeats = [m.deterministic for m in record.models.values()]
    return ("not_needed" if key == "canary" and repeats and all(repeats) else "not_run"), result


def _held(value: Control) -> Iterator[bool]:
    for one in value.walk():
        if one.positive is not None:
            yield one.positive.seen
        elif one.shift is not None:
            yield not one.shift.shifted


def gate_banner(every: Sequence[Gate]) -> str:
    """What stands over the results where a gate did not hold; else nothing."""
    broken = [g.name.lower() for g in every if g.state == "not_held"]
    missing = [g.name.lower() for g in every if g.state == "not_run"]
    named = (("Not held", broken), ("Not run", missing))
    return " ".join(f"{what}: {words.listing(names)}." for what, names in named if names)


# -- groups and grounds -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of the original texts that name a group and were answered like their label."""

    model: str
    attribute: str
    group: str
    texts: int
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Tested:
    """A ground as the framework names it, and the attributes of this record that stand for it; none: not tested."""

    ground: str
    attributes: tuple[str, ...]


def accuracy(record: RunRecord) -> tuple[Accuracy, ...]:
    """Accuracy of all texts, then by group of at least `MIN_TEXTS` texts."""
    return tuple(
        Accuracy(entry.model, one.attribute, one.group, one.accuracy.n, one.accuracy)
        for entry in record.performance.models or ()
        for one in (entry.overall, *entry.groups)
        if one.accuracy and (not one.attribute or one.accuracy.n >= MIN_TEXTS)
    )


def tested(record: RunRecord) -> set[str]:
    """Return the attributes that a claim of the run is about, unless it was not tested."""
    if record.claims is None:  # a run of an older version
        return {a for e in record.estimates for a in e.attributes}
    return claimed.tested(record)


def grounds(framework: Framework, record: RunRecord, outcomes: RunRecord | None) -> tuple[Tested, ...]:
    """Each ground of the framework with what was changed or recorded for it: attributes, columns, categories."""
    kind = kind_of(record)
    if kind == "outcomes":
        known = set(OF_PEOPLE)
    elif kind == "rows":
        known = {name.casefold() for name in record.rows.schema.protected}
    else:
        known = tested(record)
    known |= OF_PEOPLE if outcomes is not None else set()
    return tuple(Tested(ground.name, tuple(a for a in ground.attributes if a in known)) for ground in framework.grounds)


# -- what the clauses ask for -----------------------------------------------------------------------------


def absent(record: RunRecord, outcomes: RunRecord | None) -> frozenset[str]:
    """The sections in which a report of this record has nothing."""
    kind = kind_of(record)
    if kind == "outcomes":
        return OUTCOMES_LACK
    lack = {"rows"} if kind == "texts" else {"counterfactual"}
    return frozenset(lack | (set() if accuracy(record) else {"accuracy"}) | ({"impact"} if outcomes is None else set()))


def known(record: RunRecord, outcomes: RunRecord | None, filled: Form | None = None) -> frozenset[str]:
    """Which needs of clauses (`compliance_frameworks`) a record meets, with what people filled in."""
    state = {g.name: g.state for g in gates(record)}
    controls = {"noise": "noise_floor", "placebo": "placebo"}
    has = {need for need, key in controls.items() if state.get(NAMES[key], "not_run") != "not_run"}
    has |= {"labels"} if accuracy(record) else set()
    has |= {"frozen"} if record.frozen else set()
    has |= {"delta"} if record.spec.delta is not None else set()
    has |= {"age"} if any("age" in e.attributes for e in record.estimates) else set()
    if filled is not None:
        has |= {"dated"} if {"name", "date", "signed"} <= filled.filled else set()
        has |= {"measures"} if any(e.value for line in filled.measures for e in line) else set()
    if outcomes is not None:
        block = outcomes.outcomes
        has |= {"outcomes", {"classification": "selection"}.get(block.mode, block.mode)}
        has |= {{"historical": "historical", "test": "test_data"}.get(block.data_kind or "", "outcomes")}
        has |= {"groups"} if block.groups else set()
    return frozenset(has)


def not_tested(record: RunRecord) -> tuple[str, ...]:
    """What this record says nothing about."""
    kind = kind_of(record)
    out = [words.text({"outcomes": "no_treatment", "rows": "no_texts"}.get(kind, "no_rows"))]
    if kind == "texts":
        names = words.listing(sorted(a for a in tested(record) if "+" not in a))
        which = f"Attributes other than {names}" if names else "All attributes"
        out += [f"{line}: not tested." for line in claimed.not_tested(record)]
        out.append(f"{which}, other groups and words, and other languages: not tested.")
    return tuple(out)
