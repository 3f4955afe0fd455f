"""What every report shows, worked out once: columns, rows, directions, controls, sentences.

The record is read leniently: what a run did not measure is missing, and is shown as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.report import controls, extras, generation, headline, pairs, performance, scores, tokens, words
from auditor.report.controls import LOSSES, Control
from auditor.report.document import Section
from auditor.report.rows import MIN_SEEDS, Cell, Row, Steps, Subject, noise_text, split

__all__ = [
    "FEW_SEEDS",
    "MIN_SEEDS",
    "Cell",
    "Row",
    "Subject",
    "View",
    "build",
    "find",
    "noise_of",
    "noise_text",
    "split",
    "steps_of",
]
Data = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One run as reports show it."""

    record: Data
    title: str
    noun: str  # what the task's answers are called
    banners: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    answer: tuple[tuple[str, str], ...]  # (subject, what it did)
    subjects: tuple[Subject, ...]
    rows: tuple[Row, ...]
    directions: tuple[Row, ...]
    n_directions: int
    kinds: tuple[Row, ...]
    hidden: tuple[Data, ...]
    violations: tuple[Data, ...]
    controls: tuple[Control, ...]
    lost: str  # how many prompts got no answer that counts
    answers: tuple[Data, ...]  # answers_by_group, those that lost some
    complete: tuple[Data, ...]  # answers_by_group, those that lost none
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


MAX_DIRECTIONS = 10
FEW_SEEDS = 10  # a direction with fewer is not ranked where others have more


def build(record: Data) -> View:
    """Work out everything that does not need the cases themselves."""
    subjects = _subjects(record)
    rates = [e for e in record.get("estimates", ()) if e["name"] == "violation_rate"]
    sets = _rows(record, subjects, (e for e in rates if not e.get("directions") and not e.get("kind")))
    directions = _rows(record, subjects, (e for e in rates if e.get("directions")))
    kinds = _rows(record, subjects, (e for e in rates if e.get("kind") and not e.get("directions")))
    enough = [r for r in directions if (r.seeds or 0) >= FEW_SEEDS]
    ranked = sorted(enough or directions, key=lambda r: (-_top(r), r.label))
    findings = record.get("findings", ())
    by_group = (record.get("controls") or {}).get("answers_by_group") or ()
    noun = words.noun(record)
    hidden = tuple(sorted((f for f in findings if f["kind"] == "hidden"), key=_rank))
    names = {(s.model, s.format): s.name for s in subjects}
    rows = tuple(sorted(sets, key=lambda r: (not r.attributes, len(r.attributes), r.attributes)))
    return View(
        record=record,
        title=f"Bias test report: {record.get('spec', {}).get('task', 'unnamed task')}",
        noun=noun,
        banners=headline.banners(record),
        asked=headline.asked(record),
        answer=tuple(headline.answer(record, subjects, rows, hidden, noun)),
        subjects=subjects,
        rows=rows,
        directions=tuple(ranked[:MAX_DIRECTIONS]),
        n_directions=len(directions),
        kinds=kinds,
        hidden=hidden,
        violations=tuple(sorted((f for f in findings if f["kind"] == "violation"), key=_rank)),
        controls=tuple(controls.lines(record)),
        lost=controls.lost(record.get("counts", {})),
        answers=tuple(a for a in by_group if any(a.get(k) for k in LOSSES)),
        complete=tuple(a for a in by_group if not any(a.get(k) for k in LOSSES)),
        paper=tuple(controls.paper(record)),
        sections=_sections(record, names, noun),
        commands=headline.commands(record, hidden, findings),
    )


def _sections(record: Data, names: Mapping[tuple[str, str], str], noun: str) -> tuple[Section, ...]:
    found = (
        generation.build(record, names),
        scores.build(record, names),
        pairs.build(record, names),
        tokens.build(record, names),
        performance.build(record, names, noun),
    )
    return (*extras.build(record), *(section for section in found if section is not None))


def steps_of(value: Iterable[Sequence[str]] | None) -> Steps:
    """Directions as hashable triples."""
    return tuple((str(a), str(s), str(t)) for a, s, t in value or ())


_RANK = {"shown": 0, "shown_for_words": 1, "bounded": 3, "not_determined": 2, "not_tested": 4}


def _rank(finding: Data) -> tuple[int, str, str]:
    return _RANK.get(finding.get("verdict", ""), 4), str(finding.get("model", "")), str(finding["id"])


def _top(row: Row) -> float:
    """Rank by the lower end of the interval: one seed of one is no strong sign."""
    return max((float(c.rate["low"]) for c in row.cells if c.rate), default=-1.0)


def _subjects(record: Data) -> tuple[Subject, ...]:
    pairs: dict[tuple[str, str], None] = {}
    for entry in record.get("estimates", ()):
        if entry.get("model") and entry["name"] == "violation_rate":
            pairs[entry["model"], entry.get("format") or ""] = None
    asked = list(record.get("models", {})) or list(record.get("spec", {}).get("models", ()))
    for model in asked:
        if not any(m == model for m, _ in pairs):
            pairs[model, ""] = None
    order = {model: i for i, model in enumerate(asked)}
    several = {m for m, _ in pairs if sum(other == m for other, _ in pairs) > 1}
    return tuple(
        Subject(model=m, format=f, name=f"{m}, {f}" if m in several and f else m)
        for m, f in sorted(pairs, key=lambda p: (order.get(p[0], len(order)), p))
    )


def _rows(record: Data, subjects: Sequence[Subject], entries: Iterable[Data]) -> tuple[Row, ...]:
    groups: dict[tuple[tuple[str, ...], Steps, str], dict[tuple[str, str], Data]] = {}
    for entry in entries:
        key = (
            tuple(entry.get("attributes") or ()),
            steps_of(entry.get("directions")),
            entry.get("kind") or "",
        )
        groups.setdefault(key, {})[entry.get("model") or "", entry.get("format") or ""] = entry["estimate"]
    out = []
    for (attributes, steps, kind), by_subject in groups.items():
        cells = tuple(
            _cell(record, s, attributes, steps, kind, by_subject.get((s.model, s.format))) for s in subjects
        )
        valid, discarded = (None, None) if steps or kind else _validity(record, attributes)
        label = words.direction(steps) if steps else words.attributes(attributes)
        out.append(
            Row(
                label=f"{label}, {KINDS.get(kind, kind)}" if kind else label,
                attributes=attributes,
                steps=steps,
                seeds=max((int(e["n"]) for e in by_subject.values()), default=None),
                valid=valid,
                discarded=discarded,
                cells=cells,
            )
        )
    return tuple(out)


KINDS = {
    "swap": "group for group",
    "marking": "group named where none was",
    "insertion": "word inserted",
    "name_line": "name for name",
    "statement": "statement for statement",
    "placebo": "placebo",
    "mixed": "both at once",
}


def _cell(
    record: Data, subject: Subject, attributes: tuple[str, ...], steps: Steps, kind: str, rate: Data | None
) -> Cell:
    claim = None
    if not kind:
        claim = next(
            (
                f
                for f in record.get("findings", ())
                if f["kind"] == "claim"
                and not str(f.get("code", "")).startswith("REF")
                and f["model"] == subject.model
                and f.get("format", "") in ("", subject.format)
                and tuple(f["attributes"]) == attributes
                and steps_of(f.get("directions")) == steps
            ),
            None,
        )
    hidden = None if steps or kind else find(record, "hidden_rate", subject, attributes)
    verdict = str(claim["verdict"]) if claim else "not_tested"
    noise = (claim or {}).get("noise") or noise_of(record, subject, attributes)
    placebo = None if steps or kind else find(record, "placebo_rate", subject, attributes)
    return Cell(rate=rate, noise=noise, verdict=verdict, hidden=hidden, claim=claim, placebo=placebo)


def find(record: Data, name: str, subject: Subject, attributes: tuple[str, ...]) -> Data | None:
    """Find the estimate ``name`` of one subject for one attribute set, without direction or kind."""
    for e in record.get("estimates", ()):
        if (
            e["name"] == name
            and e.get("model", "") in ("", subject.model)
            and (e.get("format") or "") in ("", subject.format)
            and tuple(e.get("attributes") or ()) == attributes
            and not e.get("directions")
            and not e.get("kind")
        ):
            estimate: Data = e["estimate"]
            return estimate
    return None


def noise_of(record: Data, subject: Subject, attributes: tuple[str, ...]) -> Data | None:
    """The same-prompt noise that stands beside a rate: declared, measured, or why not."""
    floors = (record.get("controls") or {}).get("noise_floor") or {}
    if isinstance(floors.get(subject.model), Mapping) and floors[subject.model].get("declared"):
        declared: Data = floors[subject.model]
        return declared
    own = find(record, "noise_floor", subject, attributes) or find(record, "noise_floor", subject, ())
    if own is not None:
        return own
    floor = floors.get(subject.model) or (floors if floors.get("status") == "not_tested" else None)
    return floor if isinstance(floor, Mapping) else None


def _validity(record: Data, attributes: tuple[str, ...]) -> tuple[int | None, int | None]:
    for e in record.get("estimates", ()):
        same = (
            tuple(e.get("attributes") or ()) == attributes and not e.get("directions") and not e.get("kind")
        )
        if e["name"] == "valid_share" and same and e["estimate"].get("n_variants") is not None:
            made = int(e["estimate"]["n_variants"])
            valid = round(float(e["estimate"]["value"]) * made)
            return valid, made - valid
    if not attributes:
        counts = record.get("counts", {})
        return counts.get("valid"), counts.get("discarded")
    return None, None
