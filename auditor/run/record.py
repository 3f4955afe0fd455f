"""From a finished loop to the run record (``run.json``): estimates, controls, findings, provenance."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from auditor._version import __version__
from auditor.core.record import Caution
from auditor.core.record.parts import Unread
from auditor.core.types import FORMAT_VERSION, Case, Diagnosis, Estimate, Finding, Verdict
from auditor.measure import cautions
from auditor.report import cautions as told_of
from auditor.run import control_record, freeze

if TYPE_CHECKING:
    from auditor.measure.claims import Claim
    from auditor.perturb.grammar.cases import GrammarSuite
    from auditor.run.loop import Loop
    from auditor.run.tally import Tally

Confirmed = Mapping[tuple[str, str, str], Mapping[str, Any]]
SUMS = ("calls", "cached", "failed", "filtered", "unparsed", "refused", "tokens_in", "tokens_out")
PACKAGES = ("numpy", "scipy", "statsmodels", "spacy", "openai", "vaderSentiment")


def build(loop: Loop, confirmed: Confirmed, *, started: datetime, seconds: float) -> dict[str, object]:
    """The run record as plain data.

    Parameters
    ----------
    loop : Loop
        After its last round, or where it was stopped.
    confirmed : mapping
        What `auditor.run.confirm` returned.
    started : datetime
        When the run began (UTC).
    seconds : float
        How long it took.
    """
    from auditor.measure import findings as found
    from auditor.measure import rates

    observed = loop.observed
    tables = (observed.table, observed.directed)
    noise = {tally.model.name: control_record.noise(loop, tally) for tally in loop.tallies}
    estimates = rates.estimates(observed.table, observed.discarded)
    estimates += [
        rates.row("noise_floor", value, rates.Place(name, ""))
        for name, value in noise.items()
        if isinstance(value, Estimate)
    ]
    findings: list[Finding] = []
    claims = _claims(loop)
    # Claims about labels say nothing of amounts and texts: those have claims of their own.
    free = loop.free_text(claims)
    if free is not None:
        claims, findings = list(free.claims), free.findings
    elif loop.plan.protocol == "default":
        settings = found.Settings(
            deterministic={t.model.name: t.model.deterministic for t in loop.tallies},
            noise={name: value for name, value in noise.items() if isinstance(value, Estimate)},
            replicates={t.model.name: t.replicates for t in loop.tallies},
            interactions=_interactions(loop),
            fresh={key: value["p_value"] for key, value in confirmed.items()},
            confirmed={key: value["confirmed"] for key, value in confirmed.items()},
        )
        findings = found.findings(tables, settings, claims)
    reason = _why_partial(loop)
    record: dict[str, Any] = {
        "id": loop.folder.id,
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": "partial" if reason else "complete",
        "status_reason": reason,
        "stopped_by": loop.stopped_by or None,
        "spec": loop.plan.as_dict()
        | {"models": [t.model.name for t in loop.tallies], "kind": loop.parts.task.kind.name},
        "provenance": _provenance(loop, started, seconds),
        "counts": _counts(loop),
        "estimates": estimates,
        "controls": control_record.of_run(loop, noise),
        "performance": _performance(loop),
        "claims": [claim.as_record() for claim in claims],
        "findings": found.as_records(findings),
        "diagnoses": [dataclasses.asdict(d) for d in _diagnoses(findings, confirmed)],
        "models": {t.model.name: _model(loop, t) for t in loop.tallies},
        "cautions": [dataclasses.asdict(c) for t in loop.tallies for c in _cautions(loop, t)],
    }
    if free is not None:
        record |= free.sections
    if frozen := freeze.of_run(loop.folder.plan, loop.plan):
        record["frozen"] = frozen
    record |= loop.parts.suite.record()
    if figures := loop.figures.rows():
        record["figures"] = figures
    if loop.parts.suite.listens:
        record["adaptive"] |= {"models": _candidates(loop, confirmed)} | _weighted(loop)
    if loop.plan.test_discarded:
        record["discarded"] = rates.discarded(observed.table, observed.discarded)
    if len(loop.tallies) > 1 and loop.plan.protocol == "default":
        from auditor.measure import two_models

        record["comparison"] = two_models.measure(observed.table, seed=loop.plan.seed)
    if loop.plan.oracle == "probability":
        record["probability"] = _probability(loop)
    if loop.plan.protocol != "hinter":
        record["tokens"] = _tokens(loop)
    if loop.plan.protocol == "hinter":
        record |= _hinter(loop)
    if loop.until is not None:
        record["looks"] = loop.until.record()
    return record


def _claims(loop: Loop) -> list[Claim]:
    """Who is worse off, by how much, how sure: for the default protocol, where answers are labels or numbers."""
    from auditor.measure.families import claims

    if loop.plan.protocol != "default" or loop.parts.task.kind.text:
        return []
    if loop.until is not None:  # as they are after all looks
        return loop.until.claims()
    return claims(loop.observed.table, loop.question())


def _interactions(loop: Loop) -> Mapping[tuple[str, str, str], Any]:
    """What each hidden change does beyond its parts, beside placebo edits."""
    from auditor.measure.hidden import interactions
    from auditor.measure.hidden_findings import hidden_variants

    table = loop.observed.table
    rows = {one.verdict.variant_id: one.version for one in hidden_variants([table])}
    if not rows:
        return {}
    return interactions(table, loop.question(), rows, seed=loop.plan.seed)


def _candidates(loop: Loop, confirmed: Confirmed) -> list[dict[str, object]]:
    """Hidden candidates of the directed search, and how many came again when their prompts were repeated."""
    rows = []
    for tally in loop.tallies:
        found = [(v, name) for case, v, name in tally.hidden if case.sampling == "directed"]
        asked = [confirmed[key] for v, name in found if (key := (tally.model.name, v, name)) in confirmed]
        again = sum(one["confirmed"] is True for one in asked)
        declared = tally.model.deterministic
        rows.append(
            {"model": tally.model.name, "deterministic": declared, "candidates": len(found)}
            | {"repeated": len(asked), "confirmed": len(found) if declared else again}
        )
    return rows


def _weighted(loop: Loop) -> dict[str, object]:
    """Rates over all joint changes that the search knows, and what each that was asked stands for."""
    from auditor.contrib.adaptive.suite import AdaptiveSuite
    from auditor.contrib.adaptive.weighted import rates

    suite = loop.parts.suite
    if not isinstance(suite, AdaptiveSuite):
        return {}
    asked, stands = loop.question(), suite.chances.stands()
    label = asked.outcomes[0] if len(asked.outcomes) == 1 else None
    tables = (loop.observed.table, loop.observed.directed)
    weights = {name: round(one.weight, 9) for name, one in sorted(stands.items())}
    return {"rates": rates(tables, stands, label, asked.primary), "weights": weights}


def _probability(loop: Loop) -> dict[str, object]:
    """For every tolerance, the distinct cases with a variant beyond it; directed cases are left out."""
    from auditor.measure.rates import exceeding

    oracle = loop.parts.oracle
    rows = exceeding(loop.observed.table, oracle.epsilons)
    return {"label": oracle.label, "reference": loop.plan.reference, "rows": rows}


def _performance(loop: Loop) -> dict[str, object]:
    """Answers against the gold labels, where the texts carry some: a description, never a filter."""
    from auditor.measure import performance

    task = loop.parts.task
    if not task.labels:
        return {"status": "not_tested", "reason": f"a task of kind {task.kind} has no labels"}
    table = loop.observed.table
    golds = {name: table.golds.get(text) for text, name in enumerate(table.texts.values)}
    read = {case: task.read(text, "text") for case, text in golds.items() if text is not None}
    gold = performance.gold_summary(
        {case: (text, case in read and read[case].status == "ok") for case, text in golds.items()}
    )
    if not gold.given:
        return {"status": "not_tested", "reason": "the texts carry no gold labels"}
    if not gold.mapped:
        names = ", ".join(repr(text) for text in gold.examples)
        reason = f"none of the {gold.given} gold labels names a label of the task (such as {names})"
        return {"status": "not_tested", "reason": reason, "gold": gold._asdict()}
    given = {case: told.value for case, told in read.items() if isinstance(told.value, str | tuple)}
    originals = performance.originals(table, given, loop.parts.oracle.answer)
    models = [performance.table(*place, originals[place]) for place in sorted(originals)]
    source = loop.parts.facts.get("seeds", {}).get("source", "the stored cases")
    return {"source": source, "gold": gold._asdict(), "models": models}


def _why_partial(loop: Loop) -> str:
    if given_up := [t for t in loop.tallies if t.first.hopeless]:
        return " ".join(told_of.reason(t.model.name, _unread(loop, t)) for t in given_up)
    if loop.status_reason:
        return loop.status_reason.rstrip(".") + "."
    failed = sum(counts["failed"] for counts in _counters(loop))
    asked = sum(len(t.seen) for t in loop.tallies) + (len(loop.judge.seen) if loop.judge else 0)
    told = [f"{failed} of {asked} questions got no answer."] if failed else []
    told += [told_of.reason(t.model.name, _unread(loop, t)) for t in loop.tallies if t.judged_nothing]
    return " ".join(told)


def _unread(loop: Loop, tally: Tally) -> Unread:
    """What became of the answers of one model, and what was expected instead of the example."""
    variant, output = tally.unread or ("", "")
    task = loop.parts.task
    asked = task.number_asked if task.kind.number else task.kind.answered_with
    return Unread(
        answers=len(tally.seen),
        unparsed=tally.counts["unparsed"],
        refused=tally.counts["refused"],
        filtered=tally.counts["filtered"],
        failed=tally.counts["failed"],
        judged_nothing=tally.judged_nothing and (tally.first.hopeless or not loop.status_reason),
        cut_off=tally.counts["cut_off"],
        stopped=(tally.first.lost, tally.first.answers) if tally.first.hopeless else None,
        variant=variant,
        example=None if loop.plan.redact or tally.unread is None else told_of.quoted(output),
        expected=told_of.listed(task.labels) or asked,
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
        **({"questions": loop.parts.budget.calls} if loop.parts.task.turns else {}),
        "cost_usd": _cost(loop),
        "violations": {str(k): violations[k] for k in orders},
        "hidden": {str(k): hidden[k] for k in orders},
        "skipped": dict(loop.parts.suite.skipped),
    }


def _counters(loop: Loop) -> list[Counter[str]]:
    """What was counted of each model that was asked, the judge of texts with them."""
    return [t.counts for t in loop.tallies] + ([loop.judge.counts] if loop.judge else [])


def _cost(loop: Loop) -> float | None:
    """Dollars spent; None where a model costs money and its price is not known."""
    from auditor.run.free import judge_cost

    for tally in loop.tallies:
        if tally.model.costs == "tokens" and loop.parts.budget.price_of(tally.model) is None:
            return None
    judged = judge_cost(loop)
    return None if judged is None else round(judged + sum(t.cost_usd for t in loop.tallies), 6)


def _model(loop: Loop, tally: Tally) -> dict[str, object]:
    many = cautions.too_many_unreadable(tally.lost, len(tally.seen))
    return (
        ({"unread": msgspec.to_builtins(_unread(loop, tally))} if many else {})
        | {
            "counts": {key: tally.counts[key] for key in SUMS} | {"cost_usd": round(tally.cost_usd, 6)},
            "deterministic": tally.model.deterministic,
            "fingerprint": tally.model.fingerprint,
            "style": tally.model.style,
            "replicates": tally.replicates,
            "formats": list(tally.formats),
            "reported": sorted(tally.reported),
        }
        | ({"parameters_changed": dict(changed)} if (changed := tally.model.changed) else {})
    )


def _cautions(loop: Loop, tally: Tally) -> list[Caution]:
    """What must be known of the answers of one model before its figures."""
    from auditor.run.controls import seen_by_format
    from auditor.tasks.oracles.label import label_text

    task = loop.parts.task
    texts = task.kind.text
    given = {asked: told for asked, told in tally.given.items() if not task.graded(asked)}  # numbers say more
    labels = {v: str(label_text(v)) for given in tally.given.values() for v in given} if not texts else {}
    name = tally.model.name
    return [
        *cautions.alike(name, given, labels),
        *cautions.unreadable(name, tally.lost, len(tally.seen)),
        *cautions.control(name, seen_by_format(tally)),
        *cautions.changed(name, tally.reported, len(tally.seen)),
    ]


def _diagnoses(findings: list[Finding], confirmed: Confirmed) -> list[Diagnosis]:
    """For each hidden finding: the smallest variant that shows it is itself; with what its cells answered."""
    rows = []
    for finding in (one for one in findings if one.kind == "hidden"):
        told = confirmed.get((finding.model, finding.exemplars[0], finding.format))
        cells = (
            ""
            if told is None
            else "; ".join(
                f"{variant}: " + ", ".join(f"{label} {n}×" for label, n in cell.items())
                for variant, cell in told["cells"].items()
            )
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


def _tokens(loop: Loop) -> list[dict[str, object]]:
    """Error rates of words, for each model and format: terminals of a grammar, or the terms put in."""
    from auditor.measure.rates import Place
    from auditor.perturb.grammar.cases import GrammarSuite
    from auditor.run import tokens

    table, rows, suite = loop.observed.table, [], loop.parts.suite
    terms = tokens.of_terms(table)
    for place in (Place(t.model.name, name) for t in loop.tallies for name in t.formats):
        if not isinstance(suite, GrammarSuite):
            unit, counted = "term", terms.get(place, [])
        else:
            verdicts = list(table.of(*place))
            again, cases = _drawn_again(suite, verdicts)
            unit, counted = "terminal", tokens.of_terminals(suite.grammar, again.counts, again.errors)
            if not again.describe()["pairs"]:
                swapped = tokens.of_swaps(suite.grammar, cases, verdicts)
                counted = [t for t in counted if not t.group] + swapped
        if counted:
            rows.append(tokens.as_record(*place, unit, counted))
    return rows


def _drawn_again(suite: GrammarSuite, verdicts: list[Verdict]) -> tuple[GrammarSuite, list[Case]]:
    """The suite once more, told the verdicts of one model alone, and its independent cases."""
    from random import Random

    told = suite.describe()
    again = type(suite)(
        grammar=suite.grammar,
        generation="uniform" if told["generation"] == "uniform" else "rand",
        cases=told["cases"] if told["generation"] == "uniform" else told["rand_cases"],
        **{key: told[key] for key in ("attributes", "order", "per_case", "pairs", "seed")},
    )
    cases: list[Case] = []
    while more := again.ask(1024, Random(0)):
        cases += more
    again.tell(verdicts)
    return again, cases


def _hinter(loop: Loop) -> dict[str, object]:
    """The paper's own measures for each model, raw (mutants are the units, nothing is controlled), and its figures."""
    from auditor.contrib.hinter import figures, statistics

    tables = loop.observed.table, loop.observed.discarded
    made = {t.model.name: list(statistics.mutants(*tables, t.model.name, t.formats)) for t in loop.tallies}
    return {
        "hinter": {name: [m.as_record() for m in statistics.measures(own)] for name, own in made.items()},
        "hinter_figures": figures.record(made),
    }


def _provenance(loop: Loop, started: datetime, seconds: float) -> dict[str, object]:
    from auditor.core.provenance import of_inputs, surroundings

    return {
        "started": started.isoformat(timespec="seconds"),
        "ended": (started + timedelta(seconds=seconds)).astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        **surroundings(PACKAGES),
        "plan_sha256": loop.folder.plan_sha256,
        **of_inputs(loop.parts.suite.describe()),
        **loop.parts.facts,
    }
