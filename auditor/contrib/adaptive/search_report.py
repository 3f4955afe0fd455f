"""The directed search for hidden findings, as lines of text; shown where a run searched."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.record.base import SearchRate
from auditor.core.record.searches import Candidates, FreshArm, SearchPhase
from auditor.report import words

TITLE = "The search for hidden findings"
PHASES = {
    "random": "cases at random",
    "screening": "search: arms at random",
    "search": "search: arms by posterior",
    "fresh": "arms on fresh texts",
}
CALLS = ("Questions for", "Distinct texts", "Joint variants", "Hidden")
FRESH = ("Arm", "Found in the search", "Hidden on fresh texts", "Same terms", "Same directions", "Same target groups")
RIGHT = frozenset({"Distinct texts", "Joint variants", "Hidden", "Found in the search"})
MAX_ARMS = 20
RATES = ("Of all joint changes", "Model", "Estimate (95 %)", "Texts", "Asked")
NAMED = {"violation_rate": "change the answer", "hidden_rate": "are hidden"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """The section: notes, and lines of `RATES`, `CALLS` and `FRESH`."""

    notes: tuple[str, ...]
    rates: tuple[tuple[str, ...], ...]
    calls: tuple[tuple[str, ...], ...]
    fresh: tuple[tuple[str, ...], ...]


def build(record: RunRecord) -> Search | None:
    """Lay out ``record["adaptive"]``; None where the run did not search."""
    search = record.adaptive
    if search is None:
        return None
    notes = [
        f"Cases at random ({words.percent(search.share)} of the questions, from "
        f"{words.plural(search.seeds.random, 'text')} set apart for them) alone enter the claims of this report. "
        "The other questions went where earlier answers made a hidden finding likely: how many they found is no rate.",
        f"{words.plural(search.arms.tried, 'arm')} (attribute set, directions and terms) were tried on "
        f"{words.plural(search.seeds_searched, 'text')}; {search.arms.with_findings} of the arms gave a hidden "
        "finding.",
        *(_model(row) for row in search.models),
    ]
    fresh = [row for row in search.fresh if row.estimate is not None]
    if fresh:
        notes.append(
            "An arm behind a finding was asked again on texts that the search had not used. Its share there is about "
            "texts that offer the arm, and it was picked because it had shown: it is no rate of all texts."
        )
    if without := len(search.fresh) - len(fresh):
        notes.append(f"No unused text offers {words.plural(without, 'further arm')} behind the findings.")
    notes.append(f"The search ended: {search.ended}.")
    calls = tuple(
        (label, words.count(done.texts), words.count(done.joint), words.count(done.hidden))
        for phase, label in PHASES.items()
        for done in [search.phases.get(phase, SearchPhase())]
    )
    if search.rates:
        notes.append(
            "A third of the later joint variants were drawn with known chances. Weighed by them, they and what was "
            "asked before stand for all joint changes of the texts that the search has opened; the intervals say how "
            "the figures would vary with other texts and draws."
        )
    return Search(
        notes=tuple(notes),
        rates=tuple(map(_rate, search.rates)),
        calls=calls,
        fresh=tuple(_arm(row) for row in fresh[:MAX_ARMS]),
    )


def _model(row: Candidates) -> str:
    candidates = words.plural(row.candidates, "hidden candidate")
    if row.deterministic:
        return f"{row.model}: {candidates}; declared deterministic, so each is repeatable as it stands."
    return (
        f"{row.model}: {candidates}, of which {row.repeated} were asked again; {row.confirmed} came again and "
        "count as confirmed."
    )


def _rate(row: SearchRate) -> tuple[str, ...]:
    e = row.estimate
    if row.name == "net":
        group, reference = (words.group(name) for name in row.groups)
        what = f"{words.visible(row.label)}: {group} less {reference}, another attribute changed too"
        value, low, high = (f"{100 * share:+.1f}".replace("-", "−") for share in (e.value, e.low, e.high))
        figures = f"{value} points ({low} to {high})"
    else:
        what = f"{words.attributes(row.attributes) + ': ' if row.attributes else ''}{NAMED[row.name]}"
        figures = words.rate_text(e)
    place = row.model + (f", {row.format}" if row.format not in ("", "bare") else "")
    return what, place, figures, words.count(e.n), words.count(e.n_variants or 0)


def _arm(row: FreshArm) -> tuple[str, ...]:
    parts = [f"{a.replace('_', ' ')}: {term}" for a, term in zip(row.attributes, row.terms, strict=True)]
    rate = row.estimate
    shown = (
        ""
        if rate is None
        else (f"{row.fresh_hidden} of {row.fresh_seeds} ({words.percent(rate.low)} to {words.percent(rate.high)})")
    )
    fits = (f"{hidden} of {judged}" if judged else "–" for hidden, judged in row.by_fit.values())
    return (" + ".join(parts), str(row.hits), shown, *fits)
