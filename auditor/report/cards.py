"""One finding with its evidence: what was changed, what was answered, in every cell of the lattice; and examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from auditor.core import talk
from auditor.core.errors import RunFolderError
from auditor.core.record import RunRecord
from auditor.core.types import Case, Diagnosis, Finding, Prompt, Response, Variant
from auditor.measure.claims import OTHERS
from auditor.report import diff, words
from auditor.report.claimed import Statement

LABEL_LENGTH = 48  # longer answers are free text and are shown by their last line
TRIED = 60  # variants that are looked at for an example that fits
OUTCOMES: dict[str, Literal["same", "changed"]] = {"pass": "same", "violation": "changed"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How often each answer was given, in full; ``total`` is the number of replicates asked."""

    counts: tuple[tuple[str, int], ...]
    total: int

    @property
    def majority(self) -> str | None:
        """The answer of more than half of the replicates, if there is one."""
        top = self.counts[0] if self.counts else ("", 0)
        return top[0] if 2 * top[1] > self.total else None

    @property
    def short(self) -> str:
        """The answer where all are alike, else as in `text`."""
        return shorten(self.counts[0][0]) if len(self.counts) == 1 else self.text

    @property
    def text(self) -> str:
        """``positive 5/5`` or ``negative 3/5, positive 2/5``."""
        if not self.total:
            return "not asked"
        shown: Counter[str] = Counter()
        for answer, k in self.counts:
            shown[shorten(answer)] += k
        ranked = sorted(shown.items(), key=lambda kv: (-kv[1], kv[0]))
        return ", ".join(f"{answer} {k}/{self.total}" for answer, k in ranked)


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeCell:
    """One input of the lattice below a variant (the original, a smaller change, the variant itself), and its answers.

    ``prompts`` stand in cards alone.
    """

    variant_id: str
    label: str
    changes: tuple[tuple[str, str, str], ...]  # (attribute, old word, new word)
    responses: tuple[Response, ...]
    tally: Tally
    compared: Literal["", "same", "changed", "not judged"] = ""
    note: str = ""  # why a cell was not asked
    prompts: tuple[Prompt, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Brief:
    """One variant in a line: what it changes, and both answers; their scores where the label stayed."""

    variant_id: str
    text: str  # "… [He → She] grinned …"
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A finding as reports show it. ``cells`` is empty if the run folder does not hold the variant."""

    finding: Finding
    sentence: str
    variant_id: str
    original: tuple[diff.Segment, ...]
    variant: tuple[diff.Segment, ...]
    cells: tuple[LatticeCell, ...]
    diagnoses: tuple[Diagnosis, ...]
    brief: Brief | None = None  # the whole in a line
    more: tuple[Brief, ...] = ()  # further examples, the clearest first
    missing: str = ""  # why there is no evidence


def build(finding: Finding, evidence: object, *, record: RunRecord, sentence: str = "") -> Card:
    """Build the card of one finding, with the evidence of its clearest exemplar.

    Parameters
    ----------
    evidence : object
        Reads cases, checks, prompts and answers by id; what it does not hold is left out.
    sentence : str
        What was measured; the finding's own text, if empty.
    """
    variant_id = next(iter(finding.exemplars), "")
    model, format_ = finding.model, finding.format
    case, variant, missing = look_up(evidence, variant_id)
    sides: diff.Pair = ((), ())
    cells: tuple[LatticeCell, ...] = ()
    if case is not None and variant is not None:
        sides = diff.compare(case.original, variant)
        cells = tuple(_in_full(cell, evidence, format_) for cell in lattice(case, variant, evidence, model, format_))
    return Card(
        finding=finding,
        sentence=sentence or words.sentence(finding.text) or words.claim_sentence(finding, words.noun(record)),
        variant_id=variant_id,
        original=sides[0],
        variant=sides[1],
        cells=cells,
        diagnoses=tuple(d for d in record.diagnoses if d.finding == finding.id),
        brief=brief(evidence, variant_id, model, format_),
        more=tuple(filter(None, (brief(evidence, id, model, format_) for id in finding.exemplars[1:]))),
        missing=missing,
    )


def brief(evidence: object, variant_id: str, model: str, format_: str) -> Brief | None:
    """A variant in a line; None where the run does not hold it."""
    case, variant, _ = look_up(evidence, variant_id)
    if case is None or variant is None:
        return None
    both = [_responses(id, evidence, model, format_) for id in (case.original.id, variant.id)]
    before, after = (tally(responses).short for responses in both)
    if before == after and (label := tally(both[0]).majority) is not None:
        scores = [[r.scores[label] for r in side if r.scores and label in r.scores] for side in both]
        if all(scores):
            before, after = (f"{label} {sum(side) / len(side):.3f}" for side in scores)
    text = diff.marked(*diff.compare(case.original, variant))
    return Brief(variant_id=variant_id, text=text, before=before, after=after)


def look_up(evidence: Any, variant_id: str) -> tuple[Case | None, Variant | None, str]:
    """Find a variant and its case; where they cannot be read, the third value says why."""
    if not variant_id:
        return None, None, "no example was recorded"
    try:
        case, variant = evidence.case_of(variant_id), evidence.variant(variant_id)
    except RunFolderError as error:  # one damaged line must not cost the whole report
        return None, None, str(error)
    except KeyError:
        case = variant = None
    if case is None or variant is None:
        return None, None, f"the run holds no variant {variant_id}"
    return case, variant, ""


def lattice(case: Case, variant: Variant, evidence: object, model: str, format_: str) -> tuple[LatticeCell, ...]:
    """List the original, every smaller change that the case holds, and the variant, smallest first."""
    smaller = [v for v in case.variants if v.choices and v.choices < variant.choices and _whole(v, variant)]
    smaller.sort(key=lambda v: (v.order, v.attributes, v.id))
    cells = [_cell(case.original, None, evidence, model, format_)]
    for member in (*smaller, variant) if variant.edits else ():
        cells.append(_cell(member, cells[0], evidence, model, format_))
    return tuple(cells)


def _whole(part: Variant, variant: Variant) -> bool:
    """Whether ``part`` makes all edits of its attributes: a cell of the lattice over attributes."""
    return part.choices == {c for c in variant.choices if c[0] in part.attributes}


def _cell(variant: Variant, original: LatticeCell | None, evidence: Any, model: str, format_: str) -> LatticeCell:
    changes = dict.fromkeys((e.attribute, e.source, e.target) for e in variant.edits if e.kind != "agreement")
    responses = _responses(variant.id, evidence, model, format_)
    cell = LatticeCell(
        variant_id=variant.id,
        label="original" if original is None else words.attributes(variant.attributes),
        changes=tuple(changes),
        responses=tuple(responses),
        tally=tally(responses),
    )
    if original is None:
        return cell
    check = evidence.check(variant.id)
    invalid = check is not None and check.status != "valid"
    note = f"discarded: {check.reason or check.status}" if invalid else ""
    return replace(cell, compared=_compared(cell, original, evidence, model, format_), note=note)


def _compared(
    cell: LatticeCell, original: LatticeCell, evidence: Any, model: str, format_: str
) -> Literal["same", "changed", "not judged"]:
    """Follow the oracle's verdict where the evidence has one, else compare the majority answers as they stand."""
    for verdict in evidence.verdicts(cell.variant_id):
        if verdict.model in ("", model) and (not format_ or verdict.format in ("", format_)):
            return OUTCOMES.get(verdict.outcome, "not judged")
    base, answers = original.tally.majority, cell.tally.majority
    if base is None or answers is None:
        return "not judged"
    return "same" if base == answers else "changed"


def _responses(variant_id: str, evidence: Any, model: str, format_: str) -> list[Response]:
    mine = [
        r
        for r in evidence.responses(variant_id)
        if (not model or r.model in ("", model)) and (not format_ or r.format in ("", format_))
    ]
    return sorted(mine, key=lambda r: (r.format, r.replicate))


def _in_full(cell: LatticeCell, evidence: Any, format_: str) -> LatticeCell:
    """A cell with its prompts, and with conversations as they are shown."""
    return replace(
        cell,
        prompts=tuple(p for p in evidence.prompts(cell.variant_id) if not format_ or p.format in ("", format_)),
        responses=tuple(r if r.output is None else replace(r, output=talk.shown(r.output)) for r in cell.responses),
    )


def tally(responses: Sequence[Response]) -> Tally:
    """Count equal answers; failures count as answers of their own, by their error code."""
    counts: Counter[str] = Counter()
    for response in responses:
        counts[f"failed ({response.error})" if response.output is None else talk.brief(response.output).strip()] += 1
    ranked = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    return Tally(counts=tuple(ranked), total=len(responses))


def shorten(output: str) -> str:
    """Put an answer into one line: as it is if it is short, else its last line, cut."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    if not lines:
        return "(empty)"
    line = lines[-1]
    short = line if len(line) <= LABEL_LENGTH else line[: LABEL_LENGTH - 1].rstrip() + "…"
    return short if len(lines) == 1 else f"… {short}"


# -- the example that stands beside a claim ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Example(Brief):
    """One variant with its answers."""

    finding_id: str  # that shows more like it; empty where no finding holds it
    more: int  # further examples of that finding


def example(record: RunRecord, evidence: object, statement: Statement) -> Example | None:
    """The first variant of a claim, else of findings about its attribute, that shows what the claim says.

    Where no label changed with it, one whose score did.
    """
    second = None
    for variant_id, finding in islice(_candidates(record, statement), TRIED if evidence is not None else 0):
        made, turned = _fits(evidence, statement, variant_id)
        if made is None:
            continue
        one = Example(
            variant_id=variant_id,
            text=made.text,
            before=made.before,
            after=made.after,
            finding_id=finding.id if finding else "",
            more=len(set(finding.exemplars) - {variant_id}) if finding else 0,
        )
        if turned:
            return one
        second = second or one
    return second


def _candidates(record: RunRecord, statement: Statement) -> Iterator[tuple[str, Finding | None]]:
    """Variant ids with the finding that holds each: of this claim first, then of its attribute."""
    claim = statement.claim
    findings = [
        f
        for f in record.findings
        if list(f.attributes) == claim.attribute.split("+")
        and f.model == claim.model
        and f.format in ("", claim.format)
    ]
    groups = set(claim.groups)
    findings.sort(key=lambda f: ({g for s in f.directions for g in s[1:]} != groups, f.verdict != "shown"))
    for finding in findings:
        for variant_id in finding.exemplars:
            yield variant_id, finding
    for variant_id in claim.examples:
        yield variant_id, next((f for f in findings if f.exemplars), None)


def _fits(evidence: object, statement: Statement, variant_id: str) -> tuple[Brief | None, bool]:
    """The answers and the text, where the change is from one side to the other; whether it goes the way of the claim.

    None where the label changed otherwise, or nothing did.
    """
    claim = statement.claim
    case, variant, _ = look_up(evidence, variant_id)
    sides = set() if variant is None else {_side(statement, step) for step in variant.directions}
    if case is None or variant is None or len(sides) != 1 or None in sides:
        return None, False
    made = brief(evidence, variant_id, claim.model, claim.format)
    if made is None or made.before == made.after:
        return None, False
    cells = lattice(case, variant, evidence, claim.model, claim.format)
    old, new = cells[0].tally.majority, cells[-1].tally.majority
    if old is None or new is None or old == new:
        return (made if old is not None and new is not None else None), False
    turned = cells[-1].compared == "changed" and _as_claimed(statement, *((new, old) if True in sides else (old, new)))
    return (made if turned else None), turned


def _side(statement: Statement, step: tuple[str, str, str]) -> bool | None:
    """Whether an edit goes to the group of the claim (True) or from it (False); None: it is about others."""
    attribute, source, target = step
    if statement.claim.family == "instability":
        return True
    if attribute not in statement.claim.attribute.split("+"):
        return None
    if target == statement.group and statement.reference in (source, OTHERS):
        return True
    return False if source == statement.group and statement.reference in (target, OTHERS) else None


def _as_claimed(statement: Statement, group: str, reference: str) -> bool:
    """Whether the answer about the group lies on the side of that about the reference that the claim says."""
    claim, up = statement.claim, statement.effect.value > 0
    if claim.family != "net":
        return True
    if claim.scale == "number":
        first, second = (re.search(r"-?\d+(?:\.\d+)?", text.replace(",", "")) for text in (group, reference))
        return first is None or second is None or (float(first.group()) > float(second.group())) is up
    has, other = (claim.label.lower() in text.lower() for text in (group, reference))
    return (has and not other) if up else (other and not has)
