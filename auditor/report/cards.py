"""One finding with its evidence: what was changed, what was answered, in every cell of the lattice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from auditor.core import talk
from auditor.core.errors import RunFolderError
from auditor.core.record import RunRecord
from auditor.core.types import Case, Diagnosis, Finding, Prompt, Response, Variant
from auditor.report import diff, words

LABEL_LENGTH = 48  # longer answers are free text and are shown by their last line


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
    """One input of the lattice below a variant: the original, a smaller change, or the variant itself."""

    role: Literal["original", "part", "whole"]
    variant_id: str
    label: str
    changes: tuple[tuple[str, str, str], ...]  # (attribute, old word, new word)
    tally: Tally
    compared: Literal["", "same", "changed", "not judged"]
    note: str = ""  # why a cell was not asked


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One prompt of a cell and all its answers."""

    cell: str
    variant_id: str
    prompts: tuple[Prompt, ...]
    responses: tuple[Response, ...]


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
    case_id: str
    variant_id: str
    original: tuple[diff.Segment, ...]
    variant: tuple[diff.Segment, ...]
    cells: tuple[LatticeCell, ...]
    asked: tuple[Asked, ...]
    diagnoses: tuple[Diagnosis, ...]
    brief: Brief | None = None  # the whole in a line
    more: tuple[Brief, ...] = ()  # further examples, the clearest first
    missing: str = ""  # why there is no evidence


def build(finding: Finding, evidence: object, *, record: RunRecord, sentence: str = "") -> Card:
    """Build the card of one finding, with the evidence of its clearest exemplar.

    Parameters
    ----------
    finding : Finding
        What is shown.
    evidence : object
        Reads cases, checks, prompts and answers by id; what it does not hold is left out.
    record : RunRecord
        For the diagnoses.
    sentence : str
        What was measured; the finding's own text if not given.
    """
    variant_id = next(iter(finding.exemplars), "")
    further = (brief(evidence, id, finding.model, finding.format) for id in finding.exemplars[1:])
    case, variant, missing = look_up(evidence, variant_id)
    original: tuple[diff.Segment, ...] = ()
    changed: tuple[diff.Segment, ...] = ()
    cells: tuple[LatticeCell, ...] = ()
    asked: tuple[Asked, ...] = ()
    if case is not None and variant is not None:
        original, changed = diff.compare(case.original, variant)
        model, format_ = finding.model, finding.format
        cells = lattice(case, variant, evidence, model, format_)
        asked = tuple(_asked(cell, evidence, model, format_) for cell in cells)
    return Card(
        finding=finding,
        sentence=sentence or words.sentence(finding.text) or words.claim_sentence(finding, words.noun(record)),
        case_id=case.id if case is not None else "",
        variant_id=variant_id,
        original=original,
        variant=changed,
        cells=cells,
        asked=asked,
        diagnoses=tuple(d for d in record.diagnoses if d.finding == finding.id),
        brief=brief(evidence, variant_id, finding.model, finding.format),
        more=tuple(filter(None, further)),
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
        scores = [[r.scores[label] for r in told if r.scores and label in r.scores] for told in both]
        if all(scores):
            before, after = (f"{label} {sum(found) / len(found):.3f}" for found in scores)
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
        return None, None, f"the run holds no variant {variant_id}"
    if case is None or variant is None:
        return None, None, f"the run holds no variant {variant_id}"
    return case, variant, ""


def case(evidence: Any, case_id: str) -> Case | None:
    """The case with this id; None where the evidence holds none."""
    try:
        found: Case = evidence.case(case_id)
    except (RunFolderError, KeyError):
        return None
    return found


def lattice(case: Case, variant: Variant, evidence: object, model: str, format_: str) -> tuple[LatticeCell, ...]:
    """List the original, every smaller change that the case holds, and the variant, smallest first."""
    base = tally(_responses(case.original.id, evidence, model, format_))
    first = _cell("original", case.original, evidence, base, "")
    if not variant.edits:
        return (first,)
    parts = [v for v in case.variants if v.choices and v.choices < variant.choices and _whole(v, variant)]
    cells = [first]
    for role, member in [*(("part", p) for p in sorted(parts, key=_small_first)), ("whole", variant)]:
        answers = tally(_responses(member.id, evidence, model, format_))
        compared = _compared(member.id, evidence, model, format_, base, answers)
        cells.append(_cell("whole" if role == "whole" else "part", member, evidence, answers, compared))
    return tuple(cells)


def _small_first(variant: Variant) -> tuple[int, tuple[str, ...], str]:
    return variant.order, variant.attributes, variant.id


def _compared(
    variant_id: str, evidence: Any, model: str, format_: str, base: Tally, answers: Tally
) -> Literal["same", "changed", "not judged"]:
    """Follow the oracle's verdict where the evidence has one, else compare the majority answers as given."""
    found: dict[str, Literal["same", "changed"]] = {"pass": "same", "violation": "changed"}
    for verdict in evidence.verdicts(variant_id):
        if verdict.model in ("", model) and (not format_ or verdict.format in ("", format_)):
            return found.get(verdict.outcome, "not judged")
    if base.majority is None or answers.majority is None:
        return "not judged"
    return "same" if base.majority == answers.majority else "changed"


def _whole(part: Variant, variant: Variant) -> bool:
    """Whether ``part`` makes all edits of its attributes: a cell of the lattice over attributes."""
    return part.choices == {c for c in variant.choices if c[0] in part.attributes}


def _cell(
    role: Literal["original", "part", "whole"],
    variant: Variant,
    evidence: Any,
    answers: Tally,
    compared: Literal["", "same", "changed", "not judged"],
) -> LatticeCell:
    changes = dict.fromkeys((e.attribute, e.source, e.target) for e in variant.edits if e.kind != "agreement")
    check = evidence.check(variant.id) if role != "original" else None
    invalid = check is not None and check.status != "valid"
    return LatticeCell(
        role=role,
        variant_id=variant.id,
        label="original" if role == "original" else words.attributes(variant.attributes),
        changes=tuple(changes),
        tally=answers,
        compared=compared,
        note=f"discarded: {check.reason or check.status}" if invalid and check is not None else "",
    )


def _responses(variant_id: str, evidence: Any, model: str, format_: str) -> list[Response]:
    found = [
        r
        for r in evidence.responses(variant_id)
        if (not model or r.model in ("", model)) and (not format_ or r.format in ("", format_))
    ]
    return sorted(found, key=lambda r: (r.format, r.replicate))


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


def _asked(cell: LatticeCell, evidence: Any, model: str, format_: str) -> Asked:
    prompts = [p for p in evidence.prompts(cell.variant_id) if not format_ or p.format in ("", format_)]
    return Asked(
        cell=cell.label,
        variant_id=cell.variant_id,
        prompts=tuple(prompts),
        responses=tuple(
            r if r.output is None else replace(r, output=talk.shown(r.output))
            for r in _responses(cell.variant_id, evidence, model, format_)
        ),
    )
