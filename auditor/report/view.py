"""How often answers changed, worked out once for every report of a run over texts: columns, rows, sentences.

The record is read leniently: what a run did not measure is missing, and is shown as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.core.record import NamedEstimate, RunRecord
from auditor.core.record.controls import Control
from auditor.core.record.measured import Probability
from auditor.core.types import Estimate, Finding
from auditor.measure.claims import MIN_TEXTS
from auditor.report import run_checks, words

RESERVED = "reserved is the most that calls can have cost which failed or did not say what they used"


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One column of the comparison: a model, in one prompt format."""

    model: str
    format: str
    name: str  # what the column is called


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What one subject did in one row."""

    rate: Estimate | None
    noise: Control | None
    verdict: str
    hidden: Estimate | None  # share of judged joint variants that are hidden
    claim: Finding | None
    placebo: Estimate | None = None  # how often edits that change no group changed the answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One attribute set, with one cell per subject."""

    label: str
    attributes: tuple[str, ...]
    seeds: int | None
    valid: int | None
    discarded: int | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The rates of one run as reports show them, and its findings about single texts, those shown first."""

    record: RunRecord
    noun: str  # what the task's answers are called
    subjects: tuple[Subject, ...]
    rows: tuple[Row, ...]
    hidden: tuple[Finding, ...]
    violations: tuple[Finding, ...]

    @property
    def none_hidden(self) -> str:
        """What stands where there is no hidden finding."""
        if any(self.record.hinter.values()):
            return "This protocol records no findings; its hidden share stands with the paper's own counting."
        return "None was recorded. That is a statement about the variants asked, not about others."


def build(record: RunRecord) -> View:
    """Work out everything that does not need the cases themselves."""
    subjects = _subjects(record)
    by_set: dict[tuple[str, ...], dict[tuple[str, str], Estimate]] = {}
    for e in record.estimates:
        if e.name == "violation_rate" and _whole(e):
            by_set.setdefault(e.attributes, {})[e.model, e.format] = e.estimate
    rows = [_row(record, attributes, rates, subjects) for attributes, rates in by_set.items()]
    ranked = sorted(record.findings, key=lambda f: (words.RANK.get(f.verdict, 4), f.model, f.id))
    return View(
        record=record,
        noun=words.noun(record),
        subjects=subjects,
        rows=tuple(sorted(rows, key=lambda r: (not r.attributes, len(r.attributes), r.attributes))),
        hidden=tuple(f for f in ranked if f.kind == "hidden"),
        violations=tuple(f for f in ranked if f.kind == "violation"),
    )


def split(rows: Sequence[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Part rows into those of at least `MIN_TEXTS` seeds and the others; few others stay where they are."""
    few = tuple(r for r in rows if r.attributes and (r.seeds or 0) < MIN_TEXTS)
    if len(few) < 2 or not any(r.attributes and r not in few for r in rows):
        return tuple(rows), ()
    return tuple(r for r in rows if r not in few), few


def _whole(entry: NamedEstimate) -> bool:
    """Whether a figure is about an attribute set as a whole: without direction or kind."""
    return not entry.directions and not entry.kind


def _subjects(record: RunRecord) -> tuple[Subject, ...]:
    asked = list(record.models) or list(record.spec.models)
    rated = {(e.model, e.format or ""): None for e in record.estimates if e.model and e.name == "violation_rate"}
    pairs = [*rated, *((model, "") for model in asked if not any(m == model for m, _ in rated))]
    order = {model: i for i, model in enumerate(asked)}
    pairs.sort(key=lambda p: (order.get(p[0], len(order)), p))
    return tuple(Subject(model=m, format=f, name=name) for (m, f), name in words.places(pairs).items())


def _row(
    record: RunRecord, attributes: tuple[str, ...], rates: dict[tuple[str, str], Estimate], subjects: Sequence[Subject]
) -> Row:
    valid, discarded = _validity(record, attributes)
    return Row(
        label=words.attributes(attributes),
        attributes=attributes,
        seeds=max((e.n for e in rates.values()), default=None),
        valid=valid,
        discarded=discarded,
        cells=tuple(_cell(record, s, attributes, rates.get((s.model, s.format))) for s in subjects),
    )


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
        about = (e.name, e.attributes) == (name, attributes) and _whole(e)
        if about and e.model in ("", subject.model) and e.format in ("", subject.format):
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
        if e.name == "valid_share" and e.attributes == attributes and _whole(e) and e.estimate.n_variants is not None:
            valid = round(e.estimate.value * e.estimate.n_variants)
            return valid, e.estimate.n_variants - valid
    return (None, None) if attributes else (record.counts.valid, record.counts.discarded)


# -- in sentences -----------------------------------------------------------------------------------------


def asked(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """What was asked, of whom, and how: (name, value)."""
    spec, counts, source = record.spec, record.counts, record.provenance.seeds
    attributes = spec.attributes or sorted({a for e in record.estimates for a in e.attributes})
    limit = f", first {spec.limit}" if spec.limit else ""
    texts = words.plural(counts.seeds, "text") if counts.seeds is not None else "unknown number"
    n = source.not_english
    other = f", {n:,} that {words.verb(n, 'does', 'do')} not look like English" if n else ""
    repeats = [f"{m}: {v.replicates}" for m, v in record.models.items() if v.replicates]
    replicates = ", ".join(repeats) or spec.replicates
    items = [
        ("Task", str(spec.asked)),
        ("Texts", f"{spec.data or source.source or 'embedded texts'}{limit}; {texts} used{other}"),
        ("Models", ", ".join(record.models or spec.models or ["none"])),
        ("Attributes", ", ".join(attributes) or "those that the texts name"),
        ("Edits", _edits(record)),
        ("Replicates", str(replicates) if replicates else "3 per prompt; 1 where a model is declared deterministic"),
        ("Formats", ", ".join(f for f in spec.formats if f) or "the task's default"),
        ("Parser", str(spec.parser)),
    ]
    if counts.cost_usd:
        items.append(("Cost", words.cost(counts) + (f": {RESERVED}" if counts.reserved_usd else "")))
    items += [("Protocol", spec.protocol)] if spec.protocol != "default" else []
    items += [("Compared", compared(record.probability))] if record.probability else []
    items += [("Bound δ", f"{100 * spec.delta:g} %")] if spec.delta is not None else []
    return tuple(items)


def _edits(record: RunRecord) -> str:
    spec, person = record.spec, words.whose(record)
    order = f"up to {words.plural(spec.order, 'attribute')} at once"
    if spec.protocol == "hinter":
        return f"{order}, all occurrences of a word pair, one pair after the other"
    if spec.suite == "grammar":
        return f"{order}, terminals of the grammar"
    return order + (f", in words about {person}" if person else "")


def compared(section: Probability) -> str:
    """Say what the probability oracle compared, in one line.

    Examples
    --------
    >>> compared(Probability(label="his"))
    "probability of 'his'"
    """
    first = next((row.epsilon for row in section.rows), None)
    less = ", less that of the shares in the occupations," if section.reference == "bls" else ""
    beyond = "" if first is None else f"; a difference{less} of more than {first:g} counts as a change"
    return f"probability of {section.label!r}{beyond}"


def answer(shown: View) -> Iterator[tuple[str, str]]:
    """Two sentences of measured facts per subject: (its name, what it did)."""
    for i, subject in enumerate(shown.subjects):
        judged = [(r, r.cells[i], rate) for r in shown.rows if r.attributes and (rate := r.cells[i].rate)]
        if not judged:
            yield subject.name, f"{_why_no_rate(shown.record, subject.model)}, so no rate could be measured."
            continue
        # The lower end of the interval: a rate of a few seeds is no headline.
        row, cell, rate = max(judged, key=lambda one: (one[2].low, one[2].value, one[0].label))
        if all(rate.value == 0 for _, _, rate in judged):
            kept = split([r for r, _, _ in judged])[0]
            highest = max(rate.high for r, _, rate in judged if r in kept)
            first = (
                f"changed its {shown.noun} in none of the variants judged; the intervals reach up to "
                f"{words.percent(highest, 0 if highest >= 0.2 else 1)}."
            )
        else:
            placebo = f"; placebo edits changed it in {words.interval(cell.placebo)}" if cell.placebo else ""
            first = (
                f"changed its {shown.noun} most often with {row.label}, in {words.interval(rate)} of the variants of "
                f"{words.plural(rate.n, 'text')}; the same prompt again: {run_checks.noise(cell.noise)}{placebo}."
            )
        yield subject.name, f"{first} {_claimed(shown, subject, [(r, c) for r, c, _ in judged])}"


def _claimed(shown: View, subject: Subject, judged: Sequence[tuple[Row, Cell]]) -> str:
    """In how many comparisons of a subject a difference was shown, and how many hidden findings it has."""
    cells = [cell for _, cell in judged]
    if not any(cell.claim for cell in cells):
        if shown.record.scores or shown.record.generation_pairs:
            return "Its claims are about differences between groups: see their table."
        return f"No claim was tested for its {words.plural(len(cells), 'attribute set')}."
    few = sum(cell.verdict == "not_tested" for cell in cells)
    tested = words.plural(len(cells) - few, "comparison")
    named = [row.label for row, cell in judged if cell.verdict == "shown"]
    claims = f"A difference was shown in {len(named)} of {tested}: {words.listing(named)}"
    if not named:
        claims = f"No difference was shown in {tested}"
    claims += f"; {few} had too few texts" if few else ""
    n = sum(f.model == subject.model and f.format in ("", subject.format) for f in shown.hidden)
    hidden = words.plural(n, "hidden finding") if n else "no hidden finding"
    about = ("", ", about one text,")[n] if n < 2 else ", each about one text,"
    recorded = words.sentence(f"{hidden}{about} {'was' if n < 2 else 'were'} recorded.")
    return f"{claims}. {recorded}"


def _why_no_rate(record: RunRecord, model: str) -> str:
    """Why there is no rate of a model: nothing could be read, nothing valid could be asked, or too little came."""
    unread, counts = run_checks.nothing(record, model), record.counts
    if unread is not None:
        return f"gave no answer that could be read ({run_checks.losses(unread)})"
    if counts.valid != 0 or record.status == "partial":
        return "gave too few answers"
    made = counts.variants or 0
    if not made:
        return "was asked about no variant: none could be made"
    was = words.verb(made, "was", "were")
    which = "the only one" if made == 1 else f"all {made:,}"
    return f"was asked about no variant: {which} that {was} made {was} discarded by the validity check"
