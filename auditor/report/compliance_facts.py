"""What a record says on a legal page: its claims, its controls as gates, and whom it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.record.parts import Control
from auditor.core.types import Estimate, Finding
from auditor.measure.claims import MIN_TEXTS
from auditor.report import claimed, controls, tabular, view, words
from auditor.report.compliance_frameworks import Framework


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One line of the table of claims."""

    id: str
    what: str
    model: str
    effect: str
    texts: int | None
    noise: str
    placebo: str
    verdict: str
    p: str
    notes: tuple[str, ...]
    sentence: str


def claims(record: RunRecord, noun: str) -> tuple[Claim, ...]:
    """Every claim of the record, in its order."""
    index = claimed.index(record)
    return tuple(_claim(record, f, noun, index) for f in record.findings if f.kind == "claim")


def _claim(record: RunRecord, f: Finding, noun: str, index: claimed.Claims) -> Claim:
    rate = f.rate
    subject = view.Subject(model=f.model, format=f.format, name=f.model)
    attributes = f.attributes
    directions = f.directions
    what = words.direction(directions) or words.attributes(attributes)
    p = f.p_adjusted
    rows = kind_of(record) == "rows"
    if rows:
        what = _score(record, f, what)
    noise = Control.of(f.noise) if f.noise is not None else None if rows else view.noise_of(record, subject, attributes)
    told, shown, n = claimed.told(record, f, index), effect(f), rate.n if rate else None
    if told is not None:
        what, n = told.subject, told.claim.texts
        shown = "too wide" if told.effect.vague else f"{told.effect.text} {told.effect.unit}"
    placebo = None if directions or rows else view.find(record, "placebo_rate", subject, attributes)
    return Claim(
        id=f.id,
        what=what,
        model=f.model,
        effect=shown,
        texts=n,
        noise="not applicable" if rows and noise is None else view.noise_text(noise),
        placebo="–" if rows or directions else words.interval(placebo),
        verdict=f.verdict,
        p="–" if p is None else "<0.0001" if p < 0.0001 else f"{p:.2g}",
        notes=f.notes,
        sentence=claimed.sentence(told)
        if told is not None
        else words.sentence(f.text)
        if f.text
        else words.claim_sentence(f, noun),
    )


def _score(record: RunRecord, finding: Finding, columns: str) -> str:
    """Which score of which columns on which rows a claim of tabular search is about."""
    key = finding.code.removeprefix("tabular-").replace("-", "_")
    about = (s for s in record.rows.measured if (s.name, s.columns) == (key, finding.attributes))
    of = next((s.population for s in about if s.estimate == finding.rate), "")
    return f"{tabular.SCORES.get(key, key)}: {columns}" + (f" ({of})" if of else "")


def effect(finding: Finding) -> str:
    """The figure of a claim. A signed difference is told in points, a rate in percent."""
    rate = finding.rate
    if rate is None:
        return "not measured"
    value, low, high = (100 * x for x in (rate.value, rate.low, rate.high))
    if low < 0 or finding.code.startswith(("DIR", "REF")):
        low, high = max(low, -100.0), min(high, 100.0)  # shares cannot differ by more
        return f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    if finding.code.startswith("tabular-"):  # of several levels, so each is named
        return words.rate_text(rate)
    return words.interval(rate)


def own(claim: Finding) -> bool:
    """Whether a finding is a claim about an attribute set, and not about a direction in it or refusals."""
    return not claim.directions and not claim.code.startswith(("DIR", "REF"))


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
            result="everything planned was asked" if done else f"partial: {reason or 'no reason was recorded'}",
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


OF_PEOPLE = frozenset({"sex", "race", "ethnicity"})  # what tables of recorded outcomes go by


@dataclass(frozen=True, slots=True)
class Words:
    """The words that were written for one group of an attribute."""

    attribute: str
    group: str
    words: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many words."""
        return len(self.words)

    @property
    def told(self) -> str:
        """``women: she, woman``; the name alone where it is the only word."""
        name = words.group(self.group)
        return name if self.words == (name,) else f"{name}: {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of the original texts that name a group and were answered like their label."""

    model: str
    attribute: str
    group: str
    texts: int
    estimate: Estimate

    @property
    def scope(self) -> str:
        """Which texts it is of."""
        return f"{self.attribute}: {words.group(self.group)}" if self.attribute else "all texts"


@dataclass(frozen=True, slots=True)
class Tested:
    """A ground as the framework names it, and the attributes of this record that stand for it; none: not tested."""

    ground: str
    attributes: tuple[str, ...]


def written(record: RunRecord) -> tuple[Words, ...]:
    """Groups and their words, from the diagnosis of words; none where the record has none.

    A word that also stood beside words for another group is listed with its own group alone.
    """
    tokens = [t for section in record.tokens for t in section.tokens]
    found: dict[tuple[str, str], set[str]] = {}
    known: set[tuple[str, str]] = set()
    for token in sorted(tokens, key=lambda t: "," in t.group):
        key = (token.family, token.token)
        if "," not in token.group or key not in known:
            found.setdefault((token.family, token.group), set()).add(key[1])
        known.add(key)
    return tuple(Words(*key, tuple(sorted(told))) for key, told in sorted(found.items()))


def accuracy(record: RunRecord) -> tuple[Accuracy, ...]:
    """Accuracy of all texts, then by group of at least `MIN_TEXTS` texts."""
    found = []
    for entry in record.performance.models or ():
        for told in (entry.overall, *entry.groups):
            estimate = told.accuracy
            if estimate and (not told.attribute or estimate.n >= MIN_TEXTS):
                found.append(Accuracy(entry.model, told.attribute, told.group, estimate.n, estimate))
    return tuple(found)


def attributes(record: RunRecord, outcomes: RunRecord | None) -> frozenset[str]:
    """What of people was changed or recorded: attributes of texts, protected columns, categories."""
    kind = kind_of(record)
    if kind == "outcomes":
        return OF_PEOPLE
    if kind == "rows":
        found = {name.casefold() for name in record.rows.schema.protected}
    elif record.claims is not None:
        found = {c.attribute for c in record.claims if c.verdict != "not_tested"}
    else:  # a run of an older version
        found = {a for e in record.estimates for a in e.attributes}
    return frozenset(found | (OF_PEOPLE if outcomes is not None else set()))


def grounds(framework: Framework, names: Iterable[str]) -> tuple[Tested, ...]:
    """Each ground of the framework with what was tested of it."""
    known = set(names)
    return tuple(Tested(ground.name, tuple(a for a in ground.attributes if a in known)) for ground in framework.grounds)


def untested(found: Iterable[Tested]) -> str:
    """The grounds that were not tested, in a sentence; nothing where all were."""
    bare = [g.ground for g in found if not g.attributes]
    return f"Grounds that were not tested: {words.listing(bare)}." if bare else ""
