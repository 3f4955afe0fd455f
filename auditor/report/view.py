"""What every report shows, worked out once: columns, rows, directions, controls, sentences.

The record is read leniently: what a run did not measure is missing, and is shown as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from auditor.core.record import NamedEstimate, RunRecord
from auditor.core.record.parts import Control, GroupAnswers
from auditor.core.types import Estimate, Finding
from auditor.report import controls, generation, headline, pairs, performance, proposed, sections, tokens, words
from auditor.report.controls import Line
from auditor.report.document import Section
from auditor.report.rows import MIN_SEEDS, Cell, Row, Subject, noise_text, split

__all__ = ["MIN_SEEDS", "Cell", "Row", "Subject", "View", "build", "find", "noise_of", "noise_text", "split"]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One run as reports show it."""

    record: RunRecord
    title: str
    noun: str  # what the task's answers are called
    banners: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    answer: tuple[tuple[str, str], ...]  # (subject, what it did)
    subjects: tuple[Subject, ...]
    rows: tuple[Row, ...]
    hidden: tuple[Finding, ...]
    violations: tuple[Finding, ...]
    controls: tuple[Line, ...]
    lost: str  # how many prompts got no answer that counts
    answers: tuple[GroupAnswers, ...]  # answers_by_group, those that lost some
    complete: tuple[GroupAnswers, ...]  # answers_by_group, those that lost none
    paper: tuple[tuple[str, ...], ...]  # the paper's own counting, one line per model and pair
    sections: tuple[Section, ...]  # of notes and tables, as the run has them
    commands: tuple[tuple[str, str], ...]

    @property
    def few(self) -> tuple[Row, ...]:
        """Attribute sets judged on fewer than `MIN_SEEDS` seeds: listed apart, where others have more."""
        return split(self.rows)[1]

    @property
    def main(self) -> tuple[Row, ...]:
        """All other attribute sets."""
        return split(self.rows)[0]

    @property
    def none_hidden(self) -> str:
        """What stands where there is no hidden finding."""
        if self.paper:
            return "This protocol records no findings; its hidden share stands with the paper's own counting."
        return "None was recorded. That is a statement about the variants asked, not about others."


def build(record: RunRecord) -> View:
    """Work out everything that does not need the cases themselves."""
    subjects = _subjects(record)
    rates = [e for e in record.estimates if e.name == "violation_rate"]
    sets = _rows(record, subjects, (e for e in rates if not e.directions and not e.kind))
    findings = record.findings
    by_group = record.controls.answers_by_group
    noun = words.noun(record)
    hidden = tuple(sorted((f for f in findings if f.kind == "hidden"), key=_rank))
    names = {(s.model, s.format): s.name for s in subjects}
    rows = tuple(sorted(sets, key=lambda r: (not r.attributes, len(r.attributes), r.attributes)))
    return View(
        record=record,
        title=f"Bias test report: {record.spec.task or 'unnamed task'}",
        noun=noun,
        banners=headline.banners(record),
        asked=headline.asked(record),
        answer=tuple(headline.answer(record, subjects, rows, hidden, noun)),
        subjects=subjects,
        rows=rows,
        hidden=hidden,
        violations=tuple(sorted((f for f in findings if f.kind == "violation"), key=_rank)),
        controls=tuple(controls.lines(record)),
        lost=controls.lost(record.counts),
        answers=tuple(a for a in by_group if any(a.lost.values())),
        complete=tuple(a for a in by_group if not any(a.lost.values())),
        paper=tuple(controls.paper(record)),
        sections=_sections(record, names, noun),
        commands=proposed.commands(record, hidden, findings),
    )


def _sections(record: RunRecord, names: Mapping[tuple[str, str], str], noun: str) -> tuple[Section, ...]:
    found = (
        generation.build(record, names),
        pairs.of_scores(record, names),
        pairs.build(record, names),
        tokens.build(record, names),
        performance.build(record, names, noun),
    )
    return (*sections.build(record), *(section for section in found if section is not None))


_RANK = {"shown": 0, "shown_for_words": 1, "bounded": 3, "not_determined": 2, "not_tested": 4}


def _rank(finding: Finding) -> tuple[int, str, str]:
    return _RANK.get(finding.verdict, 4), finding.model, finding.id


def _subjects(record: RunRecord) -> tuple[Subject, ...]:
    pairs: dict[tuple[str, str], None] = {}
    for entry in record.estimates:
        if entry.model and entry.name == "violation_rate":
            pairs[entry.model, entry.format or ""] = None
    asked = list(record.models) or list(record.spec.models)
    for model in asked:
        if not any(m == model for m, _ in pairs):
            pairs[model, ""] = None
    order = {model: i for i, model in enumerate(asked)}
    several = {m for m, _ in pairs if sum(other == m for other, _ in pairs) > 1}
    return tuple(
        Subject(model=m, format=f, name=f"{m}, {f}" if m in several and f else m)
        for m, f in sorted(pairs, key=lambda p: (order.get(p[0], len(order)), p))
    )


def _rows(record: RunRecord, subjects: Sequence[Subject], entries: Iterable[NamedEstimate]) -> tuple[Row, ...]:
    groups: dict[tuple[str, ...], dict[tuple[str, str], Estimate]] = {}
    for entry in entries:
        groups.setdefault(entry.attributes, {})[entry.model, entry.format] = entry.estimate
    out = []
    for attributes, by_subject in groups.items():
        valid, discarded = _validity(record, attributes)
        out.append(
            Row(
                label=words.attributes(attributes),
                attributes=attributes,
                seeds=max((e.n for e in by_subject.values()), default=None),
                valid=valid,
                discarded=discarded,
                cells=tuple(_cell(record, s, attributes, by_subject.get((s.model, s.format))) for s in subjects),
            )
        )
    return tuple(out)


def _cell(record: RunRecord, subject: Subject, attributes: tuple[str, ...], rate: Estimate | None) -> Cell:
    about = (
        f
        for f in record.findings
        if f.kind == "claim"
        and not f.code.startswith("REF")
        and (f.model, f.attributes, f.directions) == (subject.model, attributes, ())
        and f.format in ("", subject.format)
    )
    claim = next(about, None)
    own = None if claim is None or claim.noise is None else Control.of(claim.noise)
    return Cell(
        rate=rate,
        noise=own or noise_of(record, subject, attributes),
        verdict=claim.verdict if claim else "not_tested",
        hidden=find(record, "hidden_rate", subject, attributes),
        claim=claim,
        placebo=find(record, "placebo_rate", subject, attributes),
    )


def find(record: RunRecord, name: str, subject: Subject, attributes: tuple[str, ...]) -> Estimate | None:
    """Find the estimate ``name`` of one subject for one attribute set, without direction or kind."""
    for e in record.estimates:
        if (
            e.name == name
            and e.model in ("", subject.model)
            and e.format in ("", subject.format)
            and e.attributes == attributes
            and not e.directions
            and not e.kind
        ):
            return e.estimate
    return None


def noise_of(record: RunRecord, subject: Subject, attributes: tuple[str, ...]) -> Control | None:
    """The same-prompt noise that stands beside a rate: declared, measured, or why not."""
    floors = record.controls.of("noise_floor")
    floor = None if floors is None else floors.parts.get(subject.model)
    if floor is not None and floor.declared:
        return floor
    own = find(record, "noise_floor", subject, attributes) or find(record, "noise_floor", subject, ())
    if own is not None:
        return Control.of(own)
    return floors if floor is None and floors is not None and floors.reason is not None else floor


def _validity(record: RunRecord, attributes: tuple[str, ...]) -> tuple[int | None, int | None]:
    for e in record.estimates:
        same = e.attributes == attributes and not e.directions and not e.kind
        if e.name == "valid_share" and same and e.estimate.n_variants is not None:
            made = e.estimate.n_variants
            valid = round(e.estimate.value * made)
            return valid, made - valid
    if not attributes:
        counts = record.counts
        return counts.valid, counts.discarded
    return None, None
