"""A run folder for imported answers: mapping, record, page. No model is asked, so its journals are empty."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from auditor.contrib import free_text
from auditor.contrib.imports import mapping
from auditor.contrib.imports.answer_files import Table
from auditor.contrib.imports.mapping import Roles
from auditor.contrib.imports.observe import Counted, Imported, Said, observe
from auditor.core.record import frame
from auditor.core.record.measured import Caution, Claim
from auditor.core.shown import plural, verb
from auditor.measure import findings
from auditor.measure.answer_quality import cautions
from auditor.measure.findings import claims
from auditor.perturb import dictionaries
from auditor.report import build, html
from auditor.store.folder import REPORT, RunFolder

KIND = "import"
MAP = "import.toml"
EXAMPLES = 3  # answers that could not be read, in the record
LOST = ("refused", "filtered", "unparsed", "failed")


def write(table: Table, roles: Roles, root: Path, references: Mapping[str, str] | None = None) -> Path:
    """Compute the claims of ``table`` and keep them as a run below ``root``; returns its folder.

    It holds ``plan.json``, ``import.toml``, ``run.json`` and ``report.html``. Raises `ConfigError` or `DataFileError`
    where the mapping does not fit the table, or no row is left. ``references`` are those that the user named beside the
    mapping.
    """
    started, labels = datetime.now(UTC), roles.kind in ("label", "labels")
    imported = observe(table, roles, references)
    # Of a run, the words that its dictionaries have for people: none of them may tell answers apart.
    names = dictionaries.builtin() if roles.edits else ()
    terms = [term.text for name in names for term in dictionaries.load(name).terms]
    studied = free_text.study(imported.table, imported.question, terms) if roles.kind == "text" else None
    made = claims(imported.table, imported.question) if studied is None else list(studied.claims)
    sources = [dataclasses.asdict(source) for source in table.sources]
    plan = {"kind": KIND, "plan": roles.model_dump(mode="json"), "inputs": {"answers": sources}, "fingerprints": {}}
    with RunFolder.create(root, plan) as folder:
        (folder.path / MAP).write_text(mapping.dump(roles), encoding="utf-8")
        spec = {
            "task": roles.task,
            "models": list(imported.models),
            "kind": "classification" if labels else "score",
            "protocol": "default",
            "suite": KIND,
            "data": ", ".join(source.file for source in table.sources),
            "delta": roles.delta,
            "references": dict(roles.references),
            "out": str(root),
        }
        record = frame(folder.id, folder.plan_sha256, spec, {"answers": sources}, started) | {
            "stopped_by": None,
            "counts": _counts(imported),
            "import": {
                "rows": imported.counted,
                "limits": [*left_out(imported.counted), *limits(imported.counted, made)],
            },
            "claims": made,
            "findings": findings.of_claims(made, [imported.table]),
            "models": {name: _model(said) for name, said in imported.models.items()},
            "cautions": [*_cautions(imported)],
            "vocabulary": _vocabulary(imported, roles),
        }
        if studied is not None:
            record["told_apart"] = [one.as_record() for one in studied.apart]
        folder.write_run(record)
        written = folder.run()
        folder.write_text(REPORT, html.write(build.document(written), written))
        return folder.path


def left_out(counted: Counted) -> Iterable[str]:
    """Say how many rows do not count, and why."""
    said = (
        (counted.empty, "has no answer (an empty cell)", "have no answer (empty cells)"),
        (counted.unreadable, "has an answer that cannot be read", "have answers that cannot be read"),
        (counted.no_text, "has no text (an empty cell)", "have no text (empty cells)"),
        (counted.no_group, "names no group", "name no group"),
        (counted.repeated, "repeats an answer to a replicate", "repeat answers to a replicate"),
        (
            counted.contradictory,
            "has a second, other answer to a replicate",
            "have second, other answers to a replicate",
        ),
    )
    for n, one, many in said:
        if n:
            yield f"{n:,} of {plural(counted.rows, 'row')} {verb(n, f'{one} and is', f'{many} and are')} left out."


def limits(counted: Counted, made: Iterable[Claim]) -> Iterable[str]:
    """What the design of the table does not let anybody claim, in sentences."""
    if counted.without_original == counted.texts:
        yield "No unchanged text: how often answers change at all, and what an edit does by itself, cannot be told."
    if counted.without_placebo == counted.texts:
        yield "No placebo: what a change that concerns nobody does is not known; versions about people are compared."
    if all(claim.words == 0 for claim in made):
        yield "The table does not say which words name a group, so nothing is said of other words for it."
    for attribute, lacking in sorted(counted.unbalanced.items()):
        if lacking:
            some = f"{lacking:,} of {plural(counted.texts, 'text')} {verb(lacking, 'lacks', 'lack')}"
            yield f"{attribute}: {some} one of its groups."


def _counts(imported: Imported) -> dict[str, int]:
    counted = imported.counted
    lost = {status: sum(said.lost[status] for said in imported.models.values()) for status in LOST}
    return {"seeds": counted.texts, "variants": counted.versions, "answers": counted.used} | lost


def _model(said: Said) -> dict[str, object]:
    lost = {status: said.lost[status] for status in LOST if said.lost[status]}
    unread = {"unparsed": dict(said.unread.most_common(EXAMPLES))} if said.unread else {}
    asked = {"counts": lost, "answers": dict(said.labels.most_common()), "deterministic": False}
    return asked | {"style": "recorded", "reported": []} | unread


def _cautions(imported: Imported) -> Iterator[Caution]:
    """What must be known of the answers of each model; recorded ones have no positive control."""
    for model, said in imported.models.items():
        labels: dict[object, int] = dict(said.labels.items())
        yield from cautions(
            model,
            lost=said.lost.total(),
            answers=said.answers,
            counts={"": labels} if labels else {},
            labels={label: str(label) for label in labels},
            control={},
            reported=(),
        )


def _vocabulary(imported: Imported, roles: Roles) -> dict[str, object]:
    """What groups are called, where the attribute is one of ours, and the favourable label."""
    groups: dict[str, dict[str, str]] = {}
    for shape in imported.table.shapes.values:
        for attribute, _, group in shape.directions:
            if attribute not in groups:
                own = dictionaries.load(attribute).groups.values() if attribute in dictionaries.builtin() else ()
                groups[attribute] = {one.name: one.label for one in own}
            groups[attribute].setdefault(group, group)
    favourable = next(iter(roles.favourable), None) if roles.kind in ("label", "labels") else None
    return {"favourable": favourable, "attributes": sorted(groups), "groups": groups}
