"""What stands first in a report: what has to be known, what was asked, two sentences of facts; and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.core.record import RunRecord
from auditor.core.record.sections import Probability
from auditor.core.types import Finding
from auditor.report import cautions, words
from auditor.report.rows import Row, Subject, split

MANY_OTHERS = 0.05  # share of texts in other languages from which on a report warns


def banners(record: RunRecord) -> tuple[str, ...]:
    """What has to be known before any figure."""
    out = cautions.banners(record)
    if record.status == "partial":
        reason = (record.status_reason or "no reason was recorded").rstrip(".")
        figures = "" if cautions.variant(record) else " The figures cover what was answered until then."
        out.append(f"Partial run: {reason}.{figures}")
    canary = record.controls.of("canary")
    for model, drift in canary.parts.items() if canary is not None else ():
        if drift.shift is not None and drift.shift.shifted:
            out.append(
                f"{model} answered the same prompts differently at the start and at the end of the run "
                f"(permutation test, p = {drift.shift.p_value:.2g}): it may have been changed meanwhile, and its "
                "figures mix both."
            )
    out += filter(None, [_language(record)])
    spec = record.spec
    if spec.protocol != "default":
        out.append(
            f"Protocol {spec.protocol}: counted as the paper's own code counts, without the controls of "
            "the default protocol, so that figures can be laid beside published ones."
        )
    return tuple(out)


def asked(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """What was asked, of whom, and how: (name, value)."""
    spec, counts = record.spec, record.counts
    attributes = spec.attributes or sorted({a for e in record.estimates for a in e.attributes})
    limit = f", first {spec.limit}" if spec.limit else ""
    seeds = words.plural(counts.seeds, "text") if counts.seeds is not None else "unknown number"
    repeats = [f"{m}: {v.replicates}" for m, v in record.models.items() if v.replicates]
    replicates = ", ".join(repeats) or spec.replicates
    formats = [f for f in spec.formats if f]
    items = [
        ("Task", str(spec.task)),
        ("Texts", f"{_source(record)}{limit}; {seeds} used{_not_english(record)}"),
        ("Models", ", ".join(record.models or spec.models or ["none"])),
        ("Attributes", ", ".join(attributes) or "those that the texts name"),
        ("Edits", _edits(record)),
        ("Replicates", str(replicates) if replicates else "3 per prompt; 1 where a model is declared deterministic"),
        ("Formats", ", ".join(formats) if formats else "the task's default"),
        ("Parser", str(spec.parser)),
    ]
    if spec.protocol != "default":
        items.append(("Protocol", spec.protocol))
    if record.probability:
        items.append(("Compared", compared(record.probability)))
    if spec.delta is not None:
        items.append(("Bound δ", f"{100 * spec.delta:g} %"))
    return tuple(items)


def _not_english(record: RunRecord) -> str:
    """How many texts do not look like English, where there are some."""
    n = record.provenance.seeds.not_english
    return f", {n:,} that {'does' if n == 1 else 'do'} not look like English" if n else ""


def _language(record: RunRecord) -> str:
    """A warning where many texts do not look like English."""
    told = record.provenance.seeds
    n, texts = told.not_english, told.n or 0
    if not n or n < MANY_OTHERS * texts:
        return ""
    return (
        f"{n:,} of {words.plural(texts, 'text')} {'does' if n == 1 else 'do'} not look like English, by script and "
        "function words. Group terms, grammar check and placebo edits are made for English: what such texts give is "
        "not to be relied on."
    )


def _source(record: RunRecord) -> str:
    """Where the texts come from, in words."""
    return record.spec.data or record.provenance.seeds.source or "embedded texts"


def _edits(record: RunRecord) -> str:
    spec, person = record.spec, words.whose(record)
    order = f"up to {words.plural(spec.order, 'attribute')} at once"
    if spec.protocol == "hinter":
        return f"{order}, all occurrences of a word pair, one pair after the other"
    if spec.suite == "grammar":
        return f"{order}, terminals of the grammar"
    return f"{order}, scope {spec.scope or '–'}" + (f", in words about {person}" if person else "")


def answer(
    record: RunRecord, subjects: Sequence[Subject], rows: Sequence[Row], hidden: Sequence[Finding], noun: str
) -> Iterable[tuple[str, str]]:
    """Yield two sentences of measured facts per subject."""
    for i, subject in enumerate(subjects):
        judged = [(r, r.cells[i]) for r in rows if r.attributes and r.cells[i].rate]
        if not judged:
            yield subject.name, f"{_why_no_rate(record, subject.model)}, so no rate could be measured."
            continue
        # The lower end of the interval: a rate of a few seeds is no headline.
        row, cell = max(
            judged,
            key=lambda rc: (
                (float(rc[1].rate.low), float(rc[1].rate.value)) if rc[1].rate else (0.0, 0.0),
                rc[0].label,
            ),
        )
        assert cell.rate is not None
        shown = [r.label for r, c in judged if c.verdict == "shown"]
        n = sum(f.model == subject.model and f.format in ("", subject.format) for f in hidden)
        if all(float(c.rate.value) == 0 for _, c in judged if c.rate):
            kept = split([r for r, _ in judged])[0]
            highest = max(float(c.rate.high) for r, c in judged if c.rate and r in kept)
            first = (
                f"changed its {noun} in none of the variants judged; the intervals reach up to "
                f"{words.percent(highest, 0 if highest >= 0.2 else 1)}."
            )
        else:
            first = (
                f"changed its {noun} most often with {row.label}, in {words.interval(cell.rate)} of the variants of "
                f"{words.plural(int(cell.rate.n), 'text')}; the same prompt again: {cell.noise_text}"
                + (f"; placebo edits changed it in {words.interval(cell.placebo)}." if cell.placebo else ".")
            )
        sets = words.plural(len(judged), "attribute set")
        if not any(c.claim for _, c in judged):
            none = f"No claim was tested for its {sets}."
            if record.scores or record.generation_pairs:
                none = "Its claims are about differences between groups: see their table."
            yield subject.name, f"{first} {none}"
            continue
        few = sum(c.verdict == "not_tested" for _, c in judged)
        tested = words.plural(len(judged) - few, "comparison")
        claims = f"A difference was shown in {len(shown)} of {tested}: {words.listing(shown)}"
        if not shown:
            claims = f"No difference was shown in {tested}"
        claims += f"; {few} had too few texts" if few else ""
        found = words.plural(n, "hidden finding") if n else "no hidden finding"
        about = ("", ", about one text,")[n] if n < 2 else ", each about one text,"
        told = f"{found}{about} {'was' if n < 2 else 'were'} recorded."
        yield subject.name, f"{first} {claims}. {words.sentence(told)}"


def _why_no_rate(record: RunRecord, model: str) -> str:
    """Why there is no rate of a model: nothing could be read, nothing valid could be asked, or too little came."""
    told, counts = cautions.nothing(record, model), record.counts
    if told is not None:
        return f"gave no answer that could be read ({cautions.losses(told)})"
    if counts.valid == 0 and record.status != "partial":
        made = counts.variants or 0
        if not made:
            return "was asked about no variant: none could be made"
        all_ = "the only one" if made == 1 else f"all {made:,}"
        was = "was" if made == 1 else "were"
        return f"was asked about no variant: {all_} that {was} made {was} discarded by the validity check"
    return "gave too few answers"


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
