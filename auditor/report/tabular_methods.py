"""What the methods over rows report beside scores: phases, coverage, solver, retraining, slices, answers."""

from __future__ import annotations

from auditor.core.counting import plural, verb
from auditor.core.record.rows import Details, Retraining, RowAnswers, Slices, Tabular
from auditor.core.types import Estimate
from auditor.report import words
from auditor.report.document import Section, section, table

PHASES = {
    "global": "global search",
    "local": "local search",
    "seed": "seed rows",
    "population": "population",
    "start": "start rows",
}
SOLVER = {"closed_form": "by closed form", "z3": "by Z3"}


def sections(search: Tabular) -> list[Section]:
    """What a method reports beside scores, lattice and pairs."""
    details = search.details
    return [*_slices(search.slices), *_phases(details), *_symbolic(details), *_retraining(search.retraining)]


def answered(answers: RowAnswers) -> str:
    """How a language model was asked, and how many rows got no label."""
    lost = {key: n for key, n in answers.rows.items() if key != "ok" and n}
    total = sum(answers.rows.values())
    times = "" if answers.replicates == 1 else f", each {answers.replicates} times"
    through = f" through the task {answers.task} (format {answers.format}{times})" if answers.task else times
    text = (
        f"{plural(total, 'row')} {verb(total, 'was', 'were')} asked{through}: "
        f"{plural(answers.calls, 'call')}, {plural(answers.cached, 'answer')} from the cache. "
    )
    if not lost:
        return text + "Every row got a label."
    listed = ", ".join(f"{n:,} {key}" for key, n in lost.items())
    count = plural(sum(lost.values()), "row")
    return f"{text}{count} got no label ({listed}): they are not judged, and count neither as equal nor as different."


def _slices(slices: Slices | None) -> list[Section]:
    """Subgroups with high rates."""
    if slices is None or not slices.n:
        return []
    where = "given rows" if slices.population == "given rows" else "rows drawn uniformly from the domain"
    judged = (
        f"{slices.n:,} {where} were judged for this, with {slices.evaluations:,} further questions to the model: "
        f"the label of {slices.changes:,} changes ({words.percent(slices.changes / slices.n, 2)}). "
        f"{slices.tested:,} slices of one or two columns were looked at."
    )
    shown = words.text("slices").format(level=f"{slices.level * 100:g}")
    none = "In none of them is the share shown to be above that of the other rows."
    rows = [
        (
            " and ".join(f"{name} = {value}" for name, value in s.where),
            f"{s.changes:,} of {s.n:,}",
            words.interval(s.estimate),
            words.percent(s.rest, 2),
            f"{s.p:.2g}" if s.p >= 1e-6 else "< 1e-6",
        )
        for s in slices.shown
    ]
    columns = "Slice | #Label changes | #Share (interval) | #Other rows | #P"
    lines = table("Slices by the lower end of their interval", columns, rows)
    return [section("slices", "Where labels change most often", judged, shown if slices.shown else none, lines)]


def _phases(details: Details) -> list[Section]:
    notes = []
    if details.start_rows is not None:
        notes.append(f"Local search began at {plural(details.start_rows, 'row')} that the global search found.")
    if chosen := details.column_probability:
        most = sorted(chosen.items(), key=lambda item: (-item[1], item[0]))[:3]
        named = ", ".join(f"{name} {words.percent(p)}" for name, p in most)
        notes.append(f"Columns that it came to change most often: {named}.")
    if details.ended:
        notes.append(f"The search ended because {details.ended}.")
    rows = (
        (
            PHASES.get(name, name),
            f"{entry.generated:,}",
            f"{entry.discriminatory:,}",
            words.percent(entry.discriminatory / entry.generated if entry.generated else None),
        )
        for name, entry in (details.phases or {}).items()
    )
    caption = "What each phase of the search contributed; cases were searched for, so the shares are not rates"
    lines = table(caption, "Phase | #New cases | #Label changes | #Share of new", rows)
    return [section("phases", "Phases", notes, lines)] if details.phases else []


def _symbolic(details: Details) -> list[Section]:
    coverage, solver = details.path_coverage, details.solver
    if coverage is None and solver is None:
        return []
    note, rows = "No surrogate tree was fitted, so path coverage and distinct faults are not known.", []
    if coverage is not None:
        note = (
            f"A surrogate tree was fitted to {plural(coverage.fitted_rows, 'row')}; on rows held out it agrees with "
            f"the model on {words.percent(coverage.fidelity)}. The cases took {coverage.paths:,} of its "
            f"{coverage.of:,} paths ({words.percent(coverage.paths / coverage.of)})."
        )
        rows.append(("paths of the surrogate tree taken", f"{coverage.paths:,} of {coverage.of:,}"))
    solved = {f"path constraints solved: {SOLVER.get(k, k.replace('_', ' '))}": n for k, n in (solver or {}).items()}
    counts = {
        "distinct faults (paths of a case with their labels)": details.distinct_faults,
        **solved,
        "paths visited before": details.visited_paths_skipped,
        "cases made before": details.repeated_cases_skipped,
    }
    rows += [(what, f"{n:,}") for what, n in counts.items() if n is not None]
    lines = table("Counts of the symbolic search", "What | #Count", rows)
    return [section("paths", "Paths and solver", note, lines)]


def _retraining(retraining: Retraining | None) -> list[Section]:
    if (r := retraining) is None:
        return []

    def rate(value: Estimate) -> str:
        return f"{words.interval(value)} at {value.level * 100:g} %"

    kept = sum(p.kept for p in r.portions)
    notes = [
        f"Share of discriminatory cases on {r.before.n:,} uniform rows held out: {rate(r.before)} before, "
        f"{rate(r.after)} after.",
        f"Accuracy on {plural(r.accuracy_before.n, 'given row')} held out: {rate(r.accuracy_before)} before, "
        f"{rate(r.accuracy_after)} after.",
        f"{plural(r.available, 'discriminatory case')} {verb(r.available, 'was', 'were')} there to add; {kept} of "
        f"{len(r.portions)} portions were kept. It ended because {r.stopped}.",
        words.text("retrained"),
        *(f"{note[0].upper()}{note[1:]}." for note in r.notes),
    ]
    rows = (
        (
            f"{p.percent:.3g} %",
            f"{p.cases:,}",
            f"{p.rows:,}",
            f"{p.ties:,}",
            words.percent(p.share),
            "yes" if p.kept else "no",
        )
        for p in r.portions
    )
    caption = "Portions that were added, in order; the share is on the sample that decides"
    lines = table(caption, "Portion | #Cases | #Rows added | #Ties | #Share | Kept", rows)
    return [section("retraining", "Retraining", notes, lines)]
