"""The controls of a record as gates: whether each held, and what hangs on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.record.parts import Control
from auditor.report import controls, words

GATE_WORDS = {
    "held": "● held",
    "not_held": "▲ not held",
    "not_run": "– not run",
    "not_needed": "– not needed",
    "measured": "· measured",
}


MAX_LINES = 4  # results of one control that are spelled out


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


def kind_of(record: RunRecord) -> str:
    """``outcomes`` for tables of people, ``rows`` for tabular search, else ``texts``."""
    if record.ll144 is not None:
        return "outcomes"
    return "rows" if record.spec.kind == "tabular" or record.tabular is not None else "texts"


DEPENDS = {
    "noise_floor": "Without it a change may be the model's own noise.",
    "placebo": "Without it a change may go with any change of wording.",
    "positive_control": "Without it nothing can be bounded: the test may be blind.",
    "canary": "If answers shifted, the figures mix two states of the model.",
    "validity": "Variants that read oddly may change answers for that reason.",
    "human_readers": "How many variants people found odd.",
}


NAMES = controls.CONTROL_NAMES | {"human_readers": "Human readers"}


def gates(record: RunRecord) -> tuple[Gate, ...]:
    """The controls, each with what hangs on it; a run that was cut off comes first."""
    if kind_of(record) == "outcomes":
        return ()
    reason = record.status_reason or ""
    done = record.status == "complete"
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
    counts = record.counts
    known = counts.lost | ({} if counts.not_judged is None else {"not_judged": counts.not_judged})
    lost = [f"{name} {words.count(n)}" for name, n in known.items()]
    if lost:
        told = controls.lost(counts)
        if counts.rows_asked is not None:
            told = f"{', '.join(lost).replace('_', ' ')} of {words.count(counts.rows_asked)} rows"
        depends = "They are outcomes of their own; if one group gets more of them, that is a result."
        found.append(Gate(name="Answers that are no label", state="measured", result=told, depends=depends))
    if kind_of(record) == "rows":
        return tuple(found)
    for key, depends in DEPENDS.items():
        found.append(_gate(NAMES[key], record.controls.of(key), record, depends))
    return tuple(found)


def _gate(name: str, value: Control | None, record: RunRecord, depends: str) -> Gate:
    if value is None:
        return Gate(name=name, state="not_run", result="the record holds no result", depends=depends)
    lines = list(controls.control(name, "", value))
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
        repeats = [m.deterministic for m in record.models.values()]
        if state == "not_run" and name == NAMES["canary"] and repeats and all(repeats):
            state = "not_needed"
    return Gate(name=name, state=state, result=told, depends=depends)


def _states(value: Control) -> Iterable[str]:
    for told in value.walk():
        if told.seen is not None:
            yield "held" if told.seen else "not_held"
        elif told.shift is not None:
            yield "not_held" if told.shift.shifted else "held"


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
