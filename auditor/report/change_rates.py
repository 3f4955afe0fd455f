"""How often answers changed at all, whoever got the better one: rates by set of attributes, of a run over texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.types import Estimate
from auditor.measure.claims import MIN_TEXTS
from auditor.report import run_checks, words

RATE = "violation_rate"


@dataclass(frozen=True, slots=True)
class Rate:
    """One set of attributes, asked of one model in one format; what was not measured is None."""

    attributes: tuple[str, ...]
    name: str  # of the model
    rate: Estimate
    placebo: Estimate | None
    hidden: Estimate | None  # share of judged joint variants that are hidden
    verdict: str


class Rates:
    """The rates of a record, without those of one direction or kind."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        # name, attributes, model, format
        self._known: dict[tuple[str, tuple[str, ...], str, str], Estimate] = {}
        for e in record.estimates:
            if not e.directions and not e.kind:
                self._known.setdefault((e.name, e.attributes, e.model, e.format), e.estimate)
        asked = list(record.models or record.spec.models)
        rated = dict.fromkeys((model, form) for name, _, model, form in self._known if name == RATE and model)
        pairs = [*rated, *((model, "") for model in asked if not any(m == model for m, _ in rated))]
        order = {model: i for i, model in enumerate(asked)}
        self.places = words.places(sorted(pairs, key=lambda p: (order.get(p[0], len(order)), p)))
        self.rows = list(self._rows())

    def _rows(self) -> Iterator[Rate]:
        verdicts: dict[tuple[str, str, tuple[str, ...]], str] = {}
        for f in self.record.findings:
            if f.kind == "claim" and not f.directions and not f.code.startswith("REF"):
                verdicts.setdefault((f.model, f.format, f.attributes), f.verdict)

        def find(name: str, attributes: tuple[str, ...], model: str, form: str) -> Estimate | None:
            """An estimate of one place, else of its model or format, else of the run."""
            known = (self._known.get((name, attributes, m, f)) for m in (model, "") for f in dict.fromkeys((form, "")))
            return next((e for e in known if e is not None), None)

        sets = dict.fromkeys(attributes for name, attributes, *_ in self._known if name == RATE)
        for attributes in sorted(sets, key=lambda names: (not names, len(names), names)):
            for (model, form), name in self.places.items():
                if (rate := self._known.get((RATE, attributes, model, form))) is None:
                    continue
                placebo, hidden = (find(key, attributes, model, form) for key in ("placebo_rate", "hidden_rate"))
                verdict = verdicts.get((model, form, attributes)) or verdicts.get((model, "", attributes))
                yield Rate(attributes, name, rate, placebo, hidden, verdict or "not_tested")

    def said(self) -> Iterator[str]:
        """A sentence for each place: what changed its answers most often, or why there is no rate."""
        noun = words.noun(self.record)
        for (model, _), name in self.places.items():
            mine = [row for row in self.rows if row.name == name and row.attributes]
            if not mine:
                unread, counts = run_checks.nothing(self.record, model), self.record.counts
                why = "gave too few answers"
                if unread is not None:
                    why = f"gave no answer that could be read ({run_checks.losses(unread)})"
                elif counts.valid == 0 and self.record.status != "partial":
                    made = words.plural(counts.variants or 0, "variant")
                    none = (
                        f"all {made} were discarded by the validity check" if counts.variants else "none could be made"
                    )
                    why = f"was asked about no variant: {none}"
                yield f"{name} {why}, so no rate could be measured."
                continue
            # The lower end of the interval: a rate of a few texts is no headline.
            most = max(mine, key=lambda row: (row.rate.low, row.rate.value, row.attributes))
            if not most.rate.value:
                yield f"{name} changed its {noun} in none of the variants judged."
                continue
            figures, texts = words.interval(most.rate), words.plural(most.rate.n, "text")
            with_what = words.attributes(most.attributes)
            yield f"{name} changed its {noun} most often with {with_what}, in {figures} of the variants of {texts}."


def enough(rows: Sequence[Rate]) -> list[Rate]:
    """Those on at least `MIN_TEXTS` texts; all of them where there is none."""
    return [row for row in rows if row.rate.n >= MIN_TEXTS] or list(rows)
