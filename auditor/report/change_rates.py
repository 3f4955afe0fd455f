"""How often answers changed at all, whoever got the better one: rates by set of attributes, of a run over texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from auditor.core.record import RunRecord
from auditor.core.record.controls import Control
from auditor.core.types import Estimate
from auditor.measure.claims import MIN_TEXTS
from auditor.report import run_checks, words

Place = tuple[str, str]  # model, format
RATE = "violation_rate"


@dataclass(frozen=True, slots=True)
class Row:
    """One set of attributes in one place; what was not measured is None."""

    attributes: tuple[str, ...]
    name: str  # of the place
    texts: int
    valid: int | None
    discarded: int | None
    rate: Estimate
    placebo: Estimate | None
    hidden: Estimate | None  # share of judged joint variants that are hidden
    verdict: str


@dataclass(frozen=True, slots=True)
class Rates:
    """The estimates of a record by what they are about, without those of one direction or kind."""

    record: RunRecord
    known: dict[tuple[str, tuple[str, ...], str, str], Estimate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for e in self.record.estimates:
            if not e.directions and not e.kind:
                self.known.setdefault((e.name, e.attributes, e.model, e.format), e.estimate)

    @property
    def places(self) -> dict[Place, str]:
        """Models in their formats, as they were asked, and what each is called."""
        asked = list(self.record.models or self.record.spec.models)
        rated = dict.fromkeys((model, form) for name, _, model, form in self.known if name == RATE and model)
        pairs = [*rated, *((model, "") for model in asked if not any(m == model for m, _ in rated))]
        order = {model: i for i, model in enumerate(asked)}
        return words.places(sorted(pairs, key=lambda p: (order.get(p[0], len(order)), p)))

    def find(self, name: str, attributes: tuple[str, ...], place: Place) -> Estimate | None:
        """An estimate of one place, else of its model or format, else of the run."""
        model, form = place
        known = (self.known.get((name, attributes, m, f)) for m in (model, "") for f in dict.fromkeys((form, "")))
        return next((e for e in known if e is not None), None)

    def noise(self, place: Place, attributes: tuple[str, ...] = ()) -> Control | None:
        """How often the same prompt was answered otherwise: declared, measured, or why not."""
        floors = self.record.controls.of("noise_floor")
        floor = None if floors is None else floors.parts.get(place[0])
        if floor is not None and floor.declared:
            return floor
        own = self.find("noise_floor", attributes, place) or self.find("noise_floor", (), place)
        if own is not None:
            return Control.of(own)
        return floors if floor is None and floors is not None and floors.reason is not None else floor

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every rate, by set of attributes and place."""
        verdicts: dict[tuple[str, str, tuple[str, ...]], str] = {}
        for f in self.record.findings:
            if f.kind == "claim" and not f.directions and not f.code.startswith("REF"):
                verdicts.setdefault((f.model, f.format, f.attributes), f.verdict)
        sets = dict.fromkeys(attributes for name, attributes, *_ in self.known if name == RATE)
        made = []
        for attributes in sorted(sets, key=lambda names: (not names, len(names), names)):
            for (model, form), name in self.places.items():
                rate = self.known.get((RATE, attributes, model, form))
                if rate is None:
                    continue
                verdict = verdicts.get((model, form, attributes)) or verdicts.get((model, "", attributes), "not_tested")
                placebo, hidden = (self.find(key, attributes, (model, form)) for key in ("placebo_rate", "hidden_rate"))
                made.append(Row(attributes, name, rate.n, *self._validity(attributes), rate, placebo, hidden, verdict))
        return tuple(made)

    def _validity(self, attributes: tuple[str, ...]) -> tuple[int | None, int | None]:
        """How many variants were valid, and how many discarded."""
        share = self.find("valid_share", attributes, ("", ""))
        if share is not None and share.n_variants is not None:
            valid = round(share.value * share.n_variants)
            return valid, share.n_variants - valid
        counts = self.record.counts
        return (None, None) if attributes else (counts.valid, counts.discarded)

    def said(self) -> Iterator[str]:
        """A sentence for each place: what changed its answers most often, or why there is no rate."""
        noun, rows = words.noun(self.record), self.rows
        for place, name in self.places.items():
            mine = [row for row in rows if row.name == name and row.attributes]
            if not mine:
                yield f"{name} {_why_no_rate(self.record, place[0])}, so no rate could be measured."
                continue
            # The lower end of the interval: a rate of a few texts is no headline.
            most = max(mine, key=lambda row: (row.rate.low, row.rate.value, row.attributes))
            with_what, texts = words.attributes(most.attributes), words.plural(most.texts, "text")
            if not most.rate.value:
                yield f"{name} changed its {noun} in none of the variants judged."
                continue
            figures = words.interval(most.rate)
            yield f"{name} changed its {noun} most often with {with_what}, in {figures} of the variants of {texts}."


def enough(rows: Iterable[Row]) -> list[Row]:
    """Those on at least `MIN_TEXTS` texts; all of them where there is none."""
    every = list(rows)
    return [row for row in every if row.texts >= MIN_TEXTS] or every


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
