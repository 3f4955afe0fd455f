"""From a finished loop to the run record (``run.json``): estimates, controls, findings, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from auditor.core.record import Caution, dictionaries, frame
from auditor.core.record.base import Unread
from auditor.core.record.measured import Claim
from auditor.core.types import Diagnosis, Estimate, Finding
from auditor.measure import answer_quality, findings, rates
from auditor.measure.findings import Settings, hidden_variants, interactions
from auditor.measure.findings import claims as all_claims
from auditor.measure.observations import Place, attributes_of
from auditor.report import run_checks as sentences
from auditor.run import free, freeze
from auditor.run.loop import TIMES, Loop
from auditor.run.state import Tally
from auditor.tasks.load import offered
from auditor.tasks.oracles import label_text

Confirmed = Mapping[tuple[str, str, str], Mapping[str, Any]]
HINTER = "the protocol has none"
EXAMPLES = 3  # answers without a label that a record holds
SUMS = ("asked", "cached", "failed", "filtered", "unparsed", "refused", "tokens_in", "tokens_out")
PACKAGES = ("numpy", "scipy", "spacy", "openai", "vaderSentiment")


def build(loop: Loop, confirmed: Confirmed, *, started: datetime, seconds: float) -> dict[str, object]:
    """The sections of the run record, as `RunFolder.write_run` takes them."""
    plan, task, suite, observed = loop.plan, loop.parts.task, loop.parts.suite, loop.observed
    noise = {tally.model.name: _noise(loop, tally) for tally in loop.tallies}
    floors = {name: value for name, value in noise.items() if isinstance(value, Estimate)}
    estimates = rates.estimates(observed.table, observed.discarded)
    estimates += [rates.row("noise_floor", value, Place(name, "")) for name, value in floors.items()]
    claims, seen, sections = _conclusions(loop, confirmed, floors)
    reason = _why_partial(loop)
    spec = plan.as_dict() | {"models": [t.model.name for t in loop.tallies], "kind": task.kind.name}
    known, changed = loop.parts.dictionaries, set(attributes_of(observed.table))
    edited = [d for d in known if d.attribute in changed]
    folder, facts = loop.folder, dictionaries(suite.describe()) | loop.parts.facts
    record: dict[str, Any] = {
        **frame(folder.id, folder.plan_sha256, spec, facts, started, seconds, reason=reason, packages=PACKAGES),
        "stopped_by": loop.stopped_by or None,
        "counts": _counts(loop),
        "estimates": estimates,
        "controls": _controls(loop, noise),
        "performance": _performance(loop),
        "claims": claims,
        "findings": seen,
        "diagnoses": _diagnoses(seen, confirmed),
        "models": {t.model.name: _model(loop, t) for t in loop.tallies},
        "cautions": [c for t in loop.tallies for c in _cautions(loop, t)],
        "vocabulary": {
            "favourable": task.favourable,
            "attributes": sorted(plan.attributes or (d.attribute for d in known if d.default)),
            "groups": {d.attribute: {g.name: g.label for g in d.groups.values()} for d in edited},
        },
        **sections,
    }
    if loop.folder.plan.get("frozen"):
        record["frozen"] = freeze.of_run(loop.folder.plan, plan)
    record |= suite.record()
    if figures := loop.figures.rows():
        record["figures"] = figures
    if plan.test_discarded:
        record["discarded"] = rates.discarded(observed.table, observed.discarded)
    if plan.oracle == "probability":
        # For every tolerance, the distinct cases with a variant beyond it; directed cases are left out.
        oracle = loop.parts.oracle
        rows = rates.exceeding(observed.table, oracle.epsilons)
        record["probability"] = {"label": oracle.label, "reference": plan.reference, "rows": rows}
    if plan.protocol == "hinter":
        from auditor.contrib.hinter import measures

        tables = observed.table, observed.discarded
        made = {t.model.name: list(measures.mutants(*tables, t.model.name, t.formats)) for t in loop.tallies}
        record |= measures.records(made)
    else:
        places = [Place(t.model.name, name) for t in loop.tallies for name in t.formats]
        record["tokens"] = _tokens(loop, places)
    if loop.until is not None:
        record["looks"] = loop.until.record()
    return record


def _conclusions(
    loop: Loop, confirmed: Confirmed, floors: Mapping[str, Estimate]
) -> tuple[Sequence[Claim], list[Finding], Mapping[str, object]]:
    """Who is worse off, by how much, how sure; and what was seen. For the default protocol, with further sections."""
    plan, table = loop.plan, loop.observed.table
    claims: list[Claim] = []
    if plan.protocol == "default" and not loop.parts.task.kind.text:
        claims = all_claims(table, loop.question()) if loop.until is None else loop.until.claims()
    if loop.parts.task.kind.by_degrees and plan.oracle != "probability":
        return free.study(loop, claims)
    if plan.protocol != "default":
        return claims, [], {}
    rows = {one.verdict.variant_id: one.version for one in hidden_variants([table])}
    settings = Settings(
        deterministic={t.model.name: t.model.deterministic for t in loop.tallies},
        noise=floors,
        replicates={t.model.name: t.replicates for t in loop.tallies},
        interactions=interactions(table, loop.question(), rows, seed=plan.seed) if rows else {},
        confirmed=confirmed,
    )
    return claims, findings.findings((table, loop.observed.directed), settings, claims), {}


def _noise(loop: Loop, tally: Tally) -> Estimate | dict[str, object]:
    """The same-prompt noise of one model: an estimate, a declaration, or why there is none."""
    from auditor.measure.rates import noise_floor

    if tally.model.deterministic:
        return {"declared": True}
    if loop.plan.oracle == "probability":
        return _none("scores are compared, and the noise of labels says nothing about them")
    if loop.parts.task.kind.by_degrees:
        return _none("see the table of differences")
    if tally.replicates == 1:
        return _none("no prompt was asked twice")
    estimate = noise_floor(loop.observed.table, tally.model.name)
    return estimate or _none("no prompt has two answers that could be read")


def _controls(loop: Loop, noise: Mapping[str, Estimate | dict[str, object]]) -> dict[str, object]:
    """All controls of a run by name; one that was not run says why."""
    from auditor.measure import rates

    table, hinter = loop.observed.table, loop.plan.protocol != "default"
    seen: dict[str, object] = {}
    for tally in loop.tallies:
        for name, made in tally.controls.items():
            seen[tally.model.name if len(tally.control) == 1 else f"{tally.model.name}, {name}"] = made
    unseen = loop.status_reason or "the task brings no control texts, or their answers were not recorded"
    placebos = "no placebo variant was asked" if loop.counts["placebos"] else "the cases have no placebo variants"
    joint = "no joint placebo variant was judged"
    return {
        "noise_floor": noise,
        "placebo": rates.placebo_controls(table) or _none(HINTER if hinter else placebos),
        "placebo_hidden": rates.placebo_controls(table, rates.looks_hidden) or _none(HINTER if hinter else joint),
        "positive_control": seen or _none(HINTER if hinter else unseen),
        "canary": _none(HINTER) if hinter else {t.model.name: _canary(loop, t) for t in loop.tallies},
        "answers_by_group": rates.answers_by_group(table),
    }


def _none(reason: str) -> dict[str, object]:
    """What stands for a control that was not run."""
    return {"status": "not_tested", "reason": reason}


def _canary(loop: Loop, tally: Tally) -> object:
    """Whether the first prompts were answered alike at the start, in the middle and at the end."""
    import numpy as np

    from auditor.measure.answer_quality import shift

    if tally.model.deterministic:
        return _none("the model is declared deterministic")
    asked = [[times.get(t, ()) for t in TIMES] for times in tally.canaries.values()]
    moved = shift(asked, rng=np.random.default_rng([loop.plan.seed, 4]))
    return _none("no prompt was asked again at the end") if moved is None else moved


def _performance(loop: Loop) -> dict[str, object]:
    """Answers against the gold labels, where the texts carry some: a description, never a filter."""
    task = loop.parts.task
    if not task.labels:
        return _none(f"a task of kind {task.kind} has no labels")
    table = loop.observed.table
    labels = {name: table.golds.get(text) for text, name in enumerate(table.texts.values)}
    read = {label: task.read(label, "text").value for label in labels.values() if label is not None}
    gold = answer_quality.gold_summary(labels.values(), lambda label: read[label] is not None)
    if not gold.given:
        return _none("the texts carry no gold labels")
    if not gold.mapped:
        such = ", ".join(map(repr, gold.examples))
        reason = f"none of the {gold.given} gold labels names a label of the task (such as {such})"
        return _none(reason) | {"gold": gold}
    named = {name: read[label] for name, label in labels.items() if label is not None}
    golds = {name: value for name, value in named.items() if isinstance(value, str | tuple)}
    models = list(answer_quality.performance(table, golds, loop.parts.oracle.answer))
    source = loop.parts.facts.get("seeds", {}).get("source", "the stored cases")
    return {"source": source, "gold": gold, "models": models}


def _why_partial(loop: Loop) -> str:
    if hopeless := [t for t in loop.tallies if t.client.unreadable]:
        return " ".join(sentences.reason(t.model.name, _unread(loop, t)) for t in hopeless)
    if loop.status_reason:
        return loop.status_reason.rstrip(".") + "."
    failed = sum(counts["failed"] for counts in _counters(loop))
    asked = sum(len(t.seen) for t in loop.tallies) + (len(loop.judge.seen) if loop.judge else 0)
    why = [f"{failed} of {asked} questions got no answer."] if failed else []
    if too_long := sum(counts["too_long"] for counts in _counters(loop)):
        why.append(f"{too_long} of them are longer than the context of the model.")
    why += [sentences.reason(t.model.name, _unread(loop, t)) for t in loop.tallies if t.judged_nothing]
    return " ".join(why)


def _unread(loop: Loop, tally: Tally) -> Unread:
    variant, output = tally.unread or ("", "")
    task = loop.parts.task
    said = [text for text, _ in tally.unparsed.most_common(EXAMPLES)] or [output]
    read = {str(value) for values in tally.values.values() for value in values} if task.labels else ()
    asked = task.number_asked if task.kind.number else task.kind.answered_with
    return Unread(
        answers=len(tally.seen),
        unparsed=tally.counts["unparsed"],
        refused=tally.counts["refused"],
        filtered=tally.counts["filtered"],
        failed=tally.counts["failed"],
        judged_nothing=tally.judged_nothing and (tally.client.unreadable is not None or not loop.status_reason),
        cut_off=tally.counts["cut_off"],
        stopped=tally.client.unreadable,
        variant=variant,
        example=None if loop.plan.redact or tally.unread is None else ", ".join(map(sentences.quoted, said)),
        expected=sentences.listed(task.labels) or asked,
        labels=() if loop.plan.redact or task.turns else offered(tally.unparsed, read),
    )


def _counts(loop: Loop) -> dict[str, object]:
    orders = range(1, loop.plan.order + 1)
    violations, hidden = loop.observed.changes()
    return {
        "seeds": loop.parts.seeds if loop.parts.seeds is not None else loop.counts["cases"],
        **{key: loop.counts[key] for key in ("cases", "variants", "valid", "discarded")},
        "placebos": loop.counts["placebos"],
        "placebos_valid": loop.counts["placebos_valid"],
        **{key: sum(counts[key] for counts in _counters(loop)) for key in SUMS},
        **loop.parts.budget.as_record([t.model for t in loop.tallies] + ([loop.judge.model] if loop.judge else [])),
        **({"conversations": True} if loop.parts.task.turns else {}),
        "violations": {str(k): violations[k] for k in orders},
        "hidden": {str(k): hidden[k] for k in orders},
        "skipped": dict(loop.parts.suite.skipped),
        "passed_over": dict(loop.parts.suite.passed_over),
    }


def _counters(loop: Loop) -> list[Counter[str]]:
    return [t.counts for t in loop.tallies] + ([loop.judge.counts] if loop.judge else [])


def _model(loop: Loop, tally: Tally) -> dict[str, object]:
    many = answer_quality.too_many_unreadable(tally.lost, len(tally.seen))
    return (
        ({"unread": _unread(loop, tally)} if many else {})
        | {
            "counts": {key: tally.counts[key] for key in SUMS} | {"measured_usd": round(tally.cost_usd, 6)},
            "deterministic": tally.model.deterministic,
            "fingerprint": tally.model.fingerprint,
            "style": tally.model.style,
            "replicates": tally.replicates,
            "formats": list(tally.formats),
            "reported": sorted(tally.reported),
            "answers": _labels_given(loop, tally),
        }
        | ({"unparsed": dict(tally.unparsed.most_common(EXAMPLES))} if tally.unparsed and not loop.plan.redact else {})
        | ({"parameters_changed": dict(changed)} if (changed := tally.model.changed) else {})
    )


def _labels_given(loop: Loop, tally: Tally) -> dict[str, int]:
    """How often each label was given, in all formats; nothing for numbers and texts."""
    counts: Counter[str] = Counter()
    for values in tally.values.values() if loop.parts.task.labels else ():
        for value, n in values.items():
            counts[str(label_text(value) or "others")] += n
    return dict(counts.most_common())


def _cautions(loop: Loop, tally: Tally) -> list[Caution]:
    task = loop.parts.task
    values = {form: counts for form, counts in tally.values.items() if not task.graded(form)}  # numbers say more
    labels = {v: str(label_text(v)) for counts in tally.values.values() for v in counts} if not task.kind.text else {}
    return list(
        answer_quality.cautions(
            tally.model.name,
            lost=tally.lost,
            answers=len(tally.seen),
            counts=values,
            labels=labels,
            control=tally.controls,
            reported=tally.reported,
        )
    )


def _diagnoses(seen: list[Finding], confirmed: Confirmed) -> list[Diagnosis]:
    """For each hidden finding: the smallest variant that shows it is itself; with what its cells answered."""
    rows = []
    for finding in (one for one in seen if one.kind == "hidden"):
        again = confirmed.get((finding.model, finding.exemplars[0], finding.format), {"cells": {}})
        cells = "; ".join(
            f"{variant}: " + ", ".join(f"{label} {n}×" for label, n in cell.items())
            for variant, cell in again["cells"].items()
        )
        rows.append(
            Diagnosis(
                finding=finding.id,
                cause=f"the change needs {' and '.join(finding.attributes)} together; "
                "no smaller set of them changes the answer",
                evidence=f"answers when asked again: {cells}"
                if cells
                else "every smaller variant was valid and kept the answer",
                minimal=finding.exemplars[0],
            )
        )
    return rows


def _tokens(loop: Loop, places: Sequence[Place]) -> list[dict[str, object]]:
    from auditor.contrib.astraea import outliers
    from auditor.perturb.grammar.cases import GrammarSuite

    suite, table = loop.parts.suite, loop.observed.table
    if not isinstance(suite, GrammarSuite):
        return outliers.of_words(table, places)
    return outliers.of_grammar(table, suite, places)
