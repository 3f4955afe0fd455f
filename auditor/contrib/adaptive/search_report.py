"""The directed search for hidden findings, as a section of a report."""

from __future__ import annotations

from auditor.core.record.base import SearchRate
from auditor.core.record.searches import Adaptive, Candidates, FreshArm, SearchPhase
from auditor.report import words
from auditor.report.document import Section, section, table

PHASES = {
    "random": "cases at random",
    "screening": "search: arms at random",
    "search": "search: arms by posterior",
    "fresh": "arms on fresh texts",
}
RATES = "Of all joint changes | Model | Estimate (95 %) | Texts | Asked"
CALLS = "Questions for | #Distinct texts | #Joint variants | #Hidden"
FRESH = "Arm | #Found in the search | Hidden on fresh texts | Same terms | Same directions | Same target groups"
MAX_ARMS = 20
NAMED = {"violation_rate": "change the answer", "hidden_rate": "are hidden"}


def build(search: Adaptive) -> Section:
    """The section of a run that searched."""
    notes = [
        f"Cases at random ({words.percent(search.share)} of the questions, from "
        f"{words.plural(search.seeds.random, 'text')} set apart for them) alone enter the claims of this report. "
        "The other questions went where earlier answers made a hidden finding likely: how many they found is no rate.",
        f"{words.plural(search.arms.tried, 'arm')} (attribute set, directions and terms) were tried on "
        f"{words.plural(search.seeds_searched, 'text')}; {search.arms.with_findings} of the arms gave a hidden "
        "finding.",
        *map(_model, search.models),
    ]
    fresh = [row for row in search.fresh if row.estimate is not None]
    notes += [words.text("search_fresh")] if fresh else []
    if without := len(search.fresh) - len(fresh):
        notes.append(f"No unused text offers {words.plural(without, 'further arm')} behind the findings.")
    notes.append(f"The search ended: {search.ended}.")
    notes += [words.text("search_rates")] if search.rates else []
    calls = (
        (label, *map(words.count, (done.texts, done.joint, done.hidden)))
        for phase, label in PHASES.items()
        for done in [search.phases.get(phase, SearchPhase())]
    )
    tables = (
        table("Estimates from what was drawn with known chances", RATES, map(_rate, search.rates)),
        table("What the questions went to", CALLS, calls),
        table("Arms on fresh texts (95 % intervals)", FRESH, map(_arm, fresh[:MAX_ARMS])),
    )
    return section("adaptive", "The search for hidden findings", notes, tables, short="Search", folded=True)


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
        figures = words.span(e.value, e.low, e.high, "+.1f", scale=100, unit=" points")
    else:
        what = f"{words.attributes(row.attributes) + ': ' if row.attributes else ''}{NAMED[row.name]}"
        figures = words.rate_text(e)
    place = row.model + (f", {row.format}" if row.format not in ("", "bare") else "")
    return what, place, figures, words.count(e.n), words.count(e.n_variants or 0)


def _arm(row: FreshArm) -> tuple[str, ...]:
    parts = [f"{a.replace('_', ' ')}: {term}" for a, term in zip(row.attributes, row.terms, strict=True)]
    shown = ""
    if (rate := row.estimate) is not None:
        shown = f"{row.fresh_hidden} of {row.fresh_seeds} ({words.percent(rate.low)} to {words.percent(rate.high)})"
    fits = (f"{hidden} of {judged}" if judged else "–" for hidden, judged in row.by_fit.values())
    return (" + ".join(parts), str(row.hits), shown, *fits)
