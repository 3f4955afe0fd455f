"""A series of runs of one plan: what each measured by date, and when the model changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor.contrib.imports.observe import observe
from auditor.core.errors import RunFolderError
from auditor.core.reading import from_json
from auditor.core.shown import plural
from auditor.core.types import digest
from auditor.measure.claims import pairs, scales
from auditor.measure.contrasts import Versions, outcome_means
from auditor.measure.drift import ANSWERS, Key, Moved, Point, Series, Watch, Watched, moved
from auditor.measure.observations import Observations, Place, attributes_of
from auditor.run import freeze
from auditor.run.result import Result, load
from auditor.store.integrity import require_intact

MOST_TEXTS = 10
FEWEST = 12  # texts of a figure that is followed: with 8, half of which turned for good, eight runs did not show it
Values = dict[str, float]  # by text


def watch(*paths: Path) -> Watched:
    """Follow the runs in ``paths``, or below the one folder that is given, that have the plan of the last one."""
    folder = paths[0] if len(paths) == 1 else paths[0].parent
    runs, others = _runs([p.parent for p in folder.glob("*/run.json")] if len(paths) == 1 else paths)
    if not runs:
        raise RunFolderError(f"{folder}: no finished run of texts to follow. Run: audit run --plan FILE --out {folder}")
    asked = [_asked(result) for result in runs]
    same = [result for result, plan in zip(runs, asked, strict=True) if plan == asked[-1]]
    others |= {_id(r): "another plan" for r, plan in zip(runs, asked, strict=True) if plan != asked[-1]}
    texts: dict[str, str] = {}
    values = [_values(result, texts) for result in same]
    keys = list(dict.fromkeys(key for one in values for key in one))
    if not keys:
        raise RunFolderError(
            f"{folder}: it cannot be told whether anything changed: a figure is followed from {plural(FEWEST, 'text')} "
            f"with an answer on, and of {plural(len(texts), 'text')} fewer have one in each version. Ask more."
        )
    series, last = [], None
    for key in keys:
        made = _series(key, same, values, len(keys))
        series.append(made)
        for place, point in enumerate(made.points):
            if point.look.changed and (last is None or place >= last[0]):
                last = (place, key)
    place, key = last or (len(same) - 1, keys[0])
    changed = moved([one[key] for one in values[:place] if key in one], values[place].get(key, {}), MOST_TEXTS)
    return Watched(
        folder=str(folder),
        runs=tuple(_id(r) for r in same),
        others=others,
        series=tuple(series),
        moved=tuple(Moved(name, texts.get(name, ""), before, now) for name, before, now in changed),
        moved_at=_id(same[place]) if changed else "",
    )


def _id(result: Result) -> str:
    return result.run.id or ""


def _runs(paths: Iterable[Path]) -> tuple[list[Result], dict[str, str]]:
    # Dates are whole seconds: runs of one second follow one another as their folders were made.
    runs: list[tuple[str, int, Result]] = []
    others: dict[str, str] = {}
    for path in sorted(paths):
        try:
            require_intact(path)
            result = load(path)
            kind = from_json((path / "plan.json").read_text(encoding="utf-8")).get("kind")
        except (OSError, ValueError, KeyError, RunFolderError) as error:
            others[path.name] = str(error)
            continue
        if kind is not None:
            others[path.name] = "no run of texts"
        elif not result.complete:
            others[path.name] = "incomplete"
        else:
            made = (path / "plan.json").stat().st_mtime_ns
            runs.append((str(result.run.provenance.started), made, result))
    return [result for *_, result in sorted(runs, key=lambda one: one[:2])], others


def _asked(result: Result) -> str:
    """The settings that shape a run, and its texts."""
    fixed = {n: v for n, v in result.record["spec"].items() if n not in freeze.OPERATIONAL}
    return digest([fixed, result.record["provenance"].get("seeds", {}).get("sha256")])


def _values(result: Result, texts: dict[str, str]) -> dict[Key, Values]:
    """Each figure of one run, by text."""
    answers = result.answers()
    imported = observe(answers.table(texts), answers.roles())
    table, question = imported.table, imported.question
    columns = table.columns()
    versions = Versions(table, columns)
    out: dict[Key, Values] = {}
    for model, name in enumerate(table.models.values):
        for format, form in enumerate(table.formats.values):
            rows = (columns.model == model) & (columns.format == format)
            if not rows.any():
                continue
            about = Place(name, form)
            for label in question.outcomes or [""]:
                measured = scales(table, columns, rows, label, question)
                value = measured.get("share") or next(iter(measured.values()))
                y, known = outcome_means(columns, rows, value)
                out[Key(about.model, about.format, "", ANSWERS, "", label)] = _means(
                    table, columns.version_text, y, known
                )
                layout = versions.where(known)
                for attribute in attributes_of(table):
                    for pair in pairs(layout.names(attribute), attribute, question):
                        contrast, _ = layout.contrast(attribute, pair.group, pair.against)
                        key = Key(about.model, about.format, attribute, pair.group, pair.reference, label)
                        own = zip(contrast.text.tolist(), (contrast.map @ y).tolist(), strict=True)
                        out[key] = {table.texts.values[text]: float(v) for text, v in own}
    return {key: by_text for key, by_text in out.items() if len(by_text) >= FEWEST}


def _means(table: Observations, text: Any, y: Any, known: Any) -> Values:
    count = np.bincount(text[known], minlength=len(table.texts.values))
    total = np.bincount(text[known], y[known], minlength=len(table.texts.values))
    return {name: float(total[n] / count[n]) for n, name in enumerate(table.texts.values) if count[n]}


def _series(key: Key, runs: Sequence[Result], values: Sequence[dict[Key, Values]], figures: int) -> Series:
    watcher = Watch(figures)
    points, unit = [], ""
    for result, by_key in zip(runs, values, strict=True):
        if key not in by_key:
            continue
        here = np.array(list(by_key[key].values()))
        value, half = float(here.mean()), 1.96 * float(here.std(ddof=1)) / len(here) ** 0.5
        for claim in result.run.claims or ():
            about = (claim.model, claim.format, claim.attribute, *claim.groups[:2], claim.label)
            if claim.family == "net" and about == tuple(key):
                unit = claim.unit
        date, look = str(result.run.provenance.started)[:16].replace("T", " "), watcher.look(by_key[key])
        points.append(Point(run=_id(result), date=date, value=value, low=value - half, high=value + half, look=look))
    return Series(key=key, unit=unit, points=tuple(points))
