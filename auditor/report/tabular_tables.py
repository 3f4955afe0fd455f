"""Tables of the methods' own in tabular reports: phases, coverage, solver, retraining, answers."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.core.counting import plural, verb
from auditor.core.record.rows import Details, Retraining, Slices, Tabular
from auditor.core.types import Estimate
from auditor.report import words
from auditor.report.document import Section, Table, noted

PHASES = {
    "global": "global search",
    "local": "local search",
    "seed": "seed rows",
    "population": "population",
    "start": "start rows",
}
SOLVER = {"closed_form": "by closed form", "z3": "by Z3"}


def _section(
    id: str,
    title: str,
    lines: Sequence[str],
    caption: str,
    columns: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[str]],
) -> Section:
    """Paragraphs, then a table; a column is a heading and whether it holds numbers."""
    names = tuple(name[:1].upper() + name[1:] for name, _ in columns)
    right = frozenset(name for name, (_, number) in zip(names, columns, strict=True) if number)
    table = Table(caption=caption, columns=names, lines=tuple(map(tuple, rows)), right=right)
    return Section(id=id, title=title, short=title, blocks=noted(lines, [table]))


def sections(section: Tabular) -> list[Section]:
    """What a method reports beside scores, lattice and pairs.

    Parameters
    ----------
    section : Tabular
        Of the run record.
    """
    details = section.details
    found = [_slices(section.slices), _phases(details), _symbolic(details), _retraining(section.retraining)]
    return [section for section in found if section is not None]


def answers_line(section: Tabular) -> str:
    """How a language model was asked, and how many rows got no label; empty without one."""
    answers = section.answers
    if not answers:
        return ""
    rows = answers.rows
    lost = {key: n for key, n in rows.items() if key != "ok" and n}
    total = sum(rows.values())
    times = "" if answers.replicates == 1 else f", each {answers.replicates} times"
    through = f" through the task {answers.task} (format {answers.format}{times})" if answers.task else times
    text = (
        f"{plural(total, 'row')} {verb(total, 'was', 'were')} asked{through}: "
        f"{plural(answers.calls, 'call')}, {plural(answers.cached, 'answer')} from the cache. "
    )
    if not lost:
        return text + "Every row got a label."
    listed = ", ".join(f"{n:,} {key}" for key, n in lost.items())
    return text + (
        f"{plural(sum(lost.values()), 'row')} got no label ({listed}): they are not judged, and count "
        "neither as equal nor "
        f"as different."
    )


def _slices(found: Slices | None) -> Section | None:
    """Subgroups with high rates."""
    if found is None or not found.n:
        return None
    where = "given rows" if found.population == "given rows" else "rows drawn uniformly from the domain"
    lines = [
        f"{found.n:,} {where} were judged for this, with {found.evaluations:,} further questions to the model: "
        f"the label of {found.changes:,} changes ({words.percent(found.changes / found.n, 2)}). "
        f"{found.tested:,} slices of one or two columns were looked at."
    ]
    if not found.shown:
        lines.append("In none of them is the share shown to be above that of the other rows.")
    else:
        lines.append(
            f"The intervals are exact and hold for all slices together at {found.level * 100:g} %; p is Fisher's "
            f"exact test against all other rows, adjusted for their number (Holm). Slices of two columns stand here "
            f"only if the second column adds to the first."
        )
    rows = [
        (
            " and ".join(f"{name} = {value}" for name, value in s.where),
            f"{s.changes:,} of {s.n:,}",
            words.interval(s.estimate),
            words.percent(s.rest, 2),
            f"{s.p:.2g}" if s.p >= 1e-6 else "< 1e-6",
        )
        for s in found.shown
    ]
    return _section(
        id="slices",
        title="Where labels change most often",
        lines=lines,
        caption="Slices by the lower end of their interval",
        columns=[
            ("slice", False),
            ("label changes", True),
            ("share (interval)", True),
            ("other rows", True),
            ("p", True),
        ],
        rows=rows,
    )


def _phases(details: Details) -> Section | None:
    phases = details.phases
    if not phases:
        return None
    rows = [
        (
            PHASES.get(name, name),
            f"{entry.generated:,}",
            f"{entry.discriminatory:,}",
            words.percent(entry.discriminatory / entry.generated if entry.generated else None),
        )
        for name, entry in phases.items()
    ]
    lines = []
    if details.start_rows is not None:
        lines.append(f"Local search began at {plural(details.start_rows, 'row')} that the global search found.")
    chosen = details.column_probability
    if chosen:
        most = sorted(chosen.items(), key=lambda item: (-item[1], item[0]))[:3]
        named = ", ".join(f"{name} {words.percent(p)}" for name, p in most)
        lines.append(f"Columns that it came to change most often: {named}.")
    if details.ended:
        lines.append(f"The search ended because {details.ended}.")
    return _section(
        id="phases",
        title="Phases",
        lines=lines,
        caption="What each phase of the search contributed; cases were searched for, so the shares are not rates",
        columns=[("phase", False), ("new cases", True), ("label changes", True), ("share of new", True)],
        rows=rows,
    )


def _symbolic(details: Details) -> Section | None:
    coverage, solver = details.path_coverage, details.solver
    if coverage is None and solver is None:
        return None
    lines, rows = [], []
    if coverage is not None:
        lines.append(
            f"A surrogate tree was fitted to {plural(coverage.fitted_rows, 'row')}; on rows held out "
            "it agrees with the "
            f"model on {words.percent(coverage.fidelity)}. The cases took {coverage.paths:,} of its "
            f"{coverage.of:,} paths ({words.percent(coverage.paths / coverage.of)})."
        )
        rows.append(("paths of the surrogate tree taken", f"{coverage.paths:,} of {coverage.of:,}"))
    else:
        lines.append("No surrogate tree was fitted, so path coverage and distinct faults are not known.")
    if details.distinct_faults is not None:
        rows.append(("distinct faults (paths of a case with their labels)", f"{details.distinct_faults:,}"))
    for name, count in (solver or {}).items():
        label = SOLVER.get(name, name.replace("_", " "))
        rows.append((f"path constraints solved: {label}", f"{count:,}"))
    for n, label in (
        (details.visited_paths_skipped, "paths visited before"),
        (details.repeated_cases_skipped, "cases made before"),
    ):
        if n is not None:
            rows.append((label, f"{n:,}"))
    return _section(
        id="paths",
        title="Paths and solver",
        lines=lines,
        caption="Counts of the symbolic search",
        columns=[("what", False), ("count", True)],
        rows=rows,
    )


def _retraining(retraining: Retraining | None) -> Section | None:
    if retraining is None:
        return None

    def rate(value: Estimate) -> str:
        return f"{words.interval(value)} at {value.level * 100:g} %"

    kept = sum(p.kept for p in retraining.portions)
    lines = [
        f"Share of discriminatory cases on {retraining.before.n:,} uniform rows held out: {rate(retraining.before)} "
        f"before, {rate(retraining.after)} after.",
        f"Accuracy on {plural(retraining.accuracy_before.n, 'given row')} held out: {rate(retraining.accuracy_before)} "
        f"before, {rate(retraining.accuracy_after)} after.",
        f"{plural(retraining.available, 'discriminatory case')} "
        f"{verb(retraining.available, 'was', 'were')} there to add; {kept} of {len(retraining.portions)} "
        f"portions were kept. It ended because {retraining.stopped}.",
        "Both models are fresh fits of the given estimator on the same part of the given rows; the model file that "
        "was given is not changed. The model after is retrained.skops in the run folder.",
        *(f"{note[0].upper()}{note[1:]}." for note in retraining.notes),
    ]
    rows = [
        (
            f"{p.percent:.3g} %",
            f"{p.cases:,}",
            f"{p.rows:,}",
            f"{p.ties:,}",
            words.percent(p.share),
            "yes" if p.kept else "no",
        )
        for p in retraining.portions
    ]
    return _section(
        id="retraining",
        title="Retraining",
        lines=lines,
        caption="Portions that were added, in order; the share is on the sample that decides",
        columns=[
            ("portion", False),
            ("cases", True),
            ("rows added", True),
            ("ties", True),
            ("share", True),
            ("kept", False),
        ],
        rows=rows,
    )
