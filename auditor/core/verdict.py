"""The verdict of a run for a rule of ``--fail-on``: the one place that commands, reports and formats ask.

Rules speak of the claims of a record; where it has none (rows of a table, older runs), of its findings. Nothing holds
that is not shown, and nothing is judged that was not tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from auditor.core.errors import ConfigError, UnknownValue
from auditor.core.fail_on import Part, parse
from auditor.core.record import Claim, RunRecord
from auditor.core.record.measured import FAMILIES, Family
from auditor.core.types import Finding

State = Literal["holds", "does not hold", "cannot be judged", "incomplete"]
CODES: dict[State, int] = {"does not hold": 0, "holds": 1, "cannot be judged": 3, "incomplete": 3}
UNFIT = {  # cautions under which a model that shows nothing is not judged
    "constant_answers": "all its answers are the same",
    "unreadable_answers": "too many of its answers could not be read",
    "control_not_seen": "its positive control was not seen",
}
SCORES: dict[str, Family] = {"group": "net", "causal": "instability", "share": "instability"}  # of rows: ends of codes


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What came of a rule, and why; ``findings`` make it hold, ``waived`` would."""

    state: State
    why: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The exit code."""
        return CODES[self.state]

    @property
    def said(self) -> str:
        """What came of the rule, in a line without its full stop."""
        waived = f", since the finding is waived ({_listed(self.waived)})" if self.waived else ""
        listed = f" ({_listed(self.findings)})" if self.findings else ""
        return f"{self.state}{waived}: {'; '.join(self.why)}{listed}"


Told = tuple[Claim, tuple[str, ...]]  # a claim and the findings that say it


def verdict(record: RunRecord, rule: str = "shown") -> Verdict:
    """Say whether ``rule`` holds for a run; `UnknownValue` for an attribute that the run does not have.

    Examples
    --------
    >>> verdict(RunRecord()).said
    'cannot be judged: nothing was tested'
    """
    every = [_of_part(record, part) for part in parse(rule)]
    if not record.whole:
        return Verdict(state="incomplete", why=((record.status_reason or "no reason was recorded").rstrip("."),))
    state: State = next(s for s in ("holds", "cannot be judged", "does not hold") if any(v.state == s for v in every))
    mine = [v for v in every if v.state == state]
    return Verdict(
        state=state,
        why=tuple(dict.fromkeys(one for v in mine for one in v.why)),
        findings=tuple(dict.fromkeys(one for v in mine for one in v.findings)),
        waived=tuple(dict.fromkeys(one for v in mine for one in v.waived)),
    )


def _of_part(record: RunRecord, part: Part) -> Verdict:
    if part.word == "failed":
        return _failed(record, part)
    if part.word == "hidden":
        return _hidden(record, part)
    every: list[Told] = [(_claim(f), (f.id,)) for f in record.findings]
    of_claims = [f for f in record.findings if f.kind == "claim" and f.code[:3] in FAMILIES]
    said: list[Told] = [
        (claim, tuple(f.id for f in of_claims if f.claim == n)) for n, claim in enumerate(record.claims or ())
    ]
    said = said or [one for one, f in zip(every, record.findings, strict=True) if f.kind == "claim"]
    _check(record, part, [*said, *every])
    said, every = ([one for one in some if part.about in ((), _about(one[0]))] for some in (said, every))
    if part.word == "shown":
        held = [*every, *(one for one in said if not one[1])]
    else:
        said = [one for one in said if one[0].family == ("net" if part.word == "net" else "instability")]
        held = [one for one in said if _beyond(one[0], part)]
    held = [one for one in held if one[0].verdict == "shown"]
    left = [one for one in held if not one[1] or not record.waived.keys() >= set(one[1])]
    names = tuple(id for one in left or held for id in one[1])
    if left:
        figure = "" if part.word == "shown" else f": 95 % {_interval(left[0][0])}"
        return Verdict(state="holds", why=(f"{part.text}{figure}",), findings=names)
    if unknown := _unknown(record, part, said):
        return Verdict(state="cannot be judged", why=(unknown,))
    return Verdict(state="does not hold", why=(part.text,), waived=names)


def _check(record: RunRecord, part: Part, said: Sequence[Told]) -> None:
    """Refuse an attribute that the run does not have."""
    names = (*record.vocabulary.attributes, *record.rows.schema.protected, *record.provenance.too_few_texts)
    known = sorted({"+".join(_about(claim)) for claim, _ in said if claim.attribute} | set(names))
    if part.about and known and "+".join(part.about) not in known:
        raise UnknownValue(f"--fail-on {part.text}:", "+".join(part.about), "attribute in this run", known)


def _unfit(record: RunRecord) -> str:
    """Why a model that shows nothing is not judged; empty where all are."""
    return next((f"{one.model}: {UNFIT[one.code]}" for one in record.cautions if one.code in UNFIT), "")


def _unknown(record: RunRecord, part: Part, said: Sequence[Told]) -> str:
    """Why a part cannot be judged; empty where it can."""
    if unfit := _unfit(record):
        return unfit
    for place in dict.fromkeys((c.model, c.format) for c, _ in said) or {("", ""): None}:
        mine = [c for c, _ in said if (c.model, c.format) == place]
        if all(c.verdict == "not_tested" for c in mine):
            what = f"{' with '.join(part.about)} was not tested" if part.about else "nothing was tested"
            return ": ".join(filter(None, (what, next((c.why for c in mine if c.why), ""))))
    return ""


def _failed(record: RunRecord, part: Part) -> Verdict:
    counts, lost = record.counts, sum(record.counts.lost.values())
    asked = counts.rows_asked or (counts.fresh or 0) + (counts.cached or 0) or counts.answers
    if not counts.lost or not asked:
        return Verdict(state="cannot be judged", why=("no calls were counted",))
    why = f"{part.text}: {lost:,} of {asked:,} calls without an answer ({100 * lost / asked:.3g} %)"
    return Verdict(state="holds" if lost / asked > part.limit else "does not hold", why=(why,))


def _hidden(record: RunRecord, part: Part) -> Verdict:
    ids: tuple[str, ...] = ()
    if record.tabular is not None:
        sets = record.tabular.lattice
        n, tested = (sets[-1].hidden or 0) if sets else 0, len(sets) > 1
    else:
        hidden = (f for f in record.findings if f.kind == "hidden" and f.verdict == "shown")
        ids = tuple(f.id for f in hidden if f.id not in record.waived)
        n, tested = len(ids), any(e.name == "hidden_rate" for e in record.estimates)
    if n > part.limit:
        return Verdict(state="holds", why=(f"{part.text}: {n}",), findings=ids)
    if unknown := _unfit(record) if tested else "no attributes were changed together":
        return Verdict(state="cannot be judged", why=(unknown,))
    return Verdict(state="does not hold", why=(f"{part.text}: {n}",))


def _about(claim: Claim) -> tuple[str, ...]:
    return tuple(sorted(claim.attribute.split("+"))) if claim.attribute else ()


def _claim(f: Finding) -> Claim:
    """A finding as a claim, as far as rules speak of it."""
    return Claim(
        family=FAMILIES.get(f.code[:3]) or SCORES.get(f.code.rpartition("-")[2], "interaction"),
        attribute="+".join(f.attributes),
        groups=tuple(group for step in f.directions for group in step[:0:-1]),
        label="",
        model=f.model,
        format=f.format,
        scale="share",
        unit="points",
        low=None if f.rate is None else f.rate.low,
        high=None if f.rate is None else f.rate.high,
        verdict=f.verdict,
    )


def _interval(claim: Claim) -> str:
    low, high, share = _ends(claim)
    text = f"{100 * low:+.1f} to {100 * high:+.1f} points" if share else f"{low:+.3g} to {high:+.3g}"
    return text.replace("-", "−")


def _ends(claim: Claim) -> tuple[float, float, bool]:
    """The interval of a claim, of shares where it has one, and whether it is one of shares."""
    low, high = (claim.low, claim.high) if claim.share_low is None else (claim.share_low, claim.share_high)
    return low or 0.0, high or 0.0, claim.scale == "share" or claim.share_low is not None


def _beyond(claim: Claim, part: Part) -> bool:
    """Whether the whole interval lies beyond the limit."""
    low, high, share = _ends(claim)
    if claim.verdict != "not_tested" and share is not part.percent:
        form = "2%" if share else "2, since answers are numbers"
        raise ConfigError(f"--fail-on {part.text}: write {part.word}({'+'.join(part.about)}) > {form}.")
    return max(low, -high) > part.limit


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:10]) + (" …" if len(ids) > 10 else "")
