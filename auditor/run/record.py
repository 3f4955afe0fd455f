"""From a finished loop to the run record (``run.json``): estimates, controls, findings, provenance."""

from __future__ import annotations

import dataclasses
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor._version import __version__
from auditor.core.types import FORMAT_VERSION, Diagnosis, Finding, Verdict
from auditor.measure import cautions
from auditor.report import unread
from auditor.run import freeze

if TYPE_CHECKING:
    from auditor.measure.claims import Claim, Question
    from auditor.run import Loop, Tally

Confirmed = Mapping[tuple[str, str, str], Mapping[str, Any]]
SUMS = ("calls", "cached", "failed", "filtered", "unparsed", "refused", "tokens_in", "tokens_out")
NO_TWO = "no prompt has two answers that could be read"
PACKAGES = ("numpy", "scipy", "statsmodels", "spacy", "openai", "vaderSentiment")


class Judged(NamedTuple):
    """The verdicts of one model, which a tally makes anew whenever it is asked for them."""

    verdicts: list[Verdict]
    drawn: list[Verdict]  # without those of directed cases, which enter no rate
    placebos: list[Verdict]

    @classmethod
    def of(cls, loop: Loop, tally: Tally) -> Judged:
        """Those of ``tally``."""
        verdicts = list(tally.verdicts)
        drawn = [v for v in verdicts if v.case_id not in loop.directed] if loop.directed else verdicts
        return cls(verdicts, drawn, list(tally.placebos))


def build(loop: Loop, confirmed: Confirmed, *, started: datetime, seconds: float) -> dict[str, Any]:
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
    from auditor.measure import arms, contrast, summary, two_way
    from auditor.measure import findings as found

    judged = [Judged.of(loop, tally) for tally in loop.tallies]
    verdicts = [v for own in judged for v in own.verdicts]
    drawn = [v for own in judged for v in own.drawn]
    placebos = [v for own in judged for v in own.placebos]
    table = summary.tabulate(drawn, loop.about)
    estimates = two_way.beside(summary.estimates(table), drawn, loop.about)
    estimates += summary.valid_share(loop.valid_by_case)
    estimates += arms.placebo_rates(table, arms.placebo_arm(placebos))
    estimates += contrast.estimates(
        (tally.model.name, *told) for tally in loop.tallies for told in tally.contrasts
    )
    oracle = loop.plan.oracle or loop.parts.task.kind
    noise = {tally.model.name: _noise(loop, tally, oracle) for tally in loop.tallies}
    estimates += [_noise_row(name, value) for name, value in noise.items() if "value" in value]
    findings: list[Finding] = []
    claims = _claims(loop)
    # Claims about labels say nothing of amounts and texts: those have claims of their own.
    free = loop.free_text(claims)
    if free is not None:
        findings = free.findings
    elif loop.plan.protocol == "default":
        settings = found.Settings(
            deterministic={t.model.name: t.model.deterministic for t in loop.tallies},
            # Noise of labels says nothing about the noise of scores: no claim is made from it.
            labels={
                t.model.name: _drawn(loop, t)
                for t in loop.tallies
                if not t.model.deterministic and loop.plan.oracle != "probability"
            },
            interactions=_interactions(loop),
            fresh={key: value["p_value"] for key, value in confirmed.items()},
            confirmed={key: value["confirmed"] for key, value in confirmed.items()},
            directed=frozenset(loop.directed),
        )
        findings = found.findings(verdicts, loop.about, settings, claims, table=table)
    reason = _why_partial(loop)
    folder = loop.folder
    record: dict[str, Any] = {
        "id": getattr(folder, "id", "in-memory") if folder is not None else "in-memory",
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": "partial" if reason else "complete",
        "status_reason": reason,
        "stopped_by": loop.stopped_by or None,
        "spec": loop.plan.as_dict()
        | {"models": [t.model.name for t in loop.tallies], "kind": loop.parts.task.kind},
        "provenance": _provenance(loop, started, seconds),
        "counts": _counts(loop, verdicts),
        "estimates": estimates,
        "controls": _controls(loop, noise, judged),
        "performance": _performance(loop),
        "claims": [claim.as_record() for claim in claims],
        "findings": found.as_records(findings),
        "diagnoses": [dataclasses.asdict(d) for d in _diagnoses(findings, confirmed)],
        "models": {t.model.name: _model(loop, t) for t in loop.tallies},
        "cautions": [dataclasses.asdict(c) for t in loop.tallies for c in _cautions(loop, t)],
    }
    if free is not None:
        record[free.name] = free.section
    if frozen := freeze.of_run(getattr(loop.folder, "plan", {}), loop.plan):
        record["frozen"] = frozen
    if hasattr(loop.parts.suite, "report"):
        record["generation"] = loop.parts.suite.report()
    if hasattr(loop.parts.suite, "search_report"):
        record["adaptive"] = loop.parts.suite.search_report() | {"models": _candidates(loop, confirmed)}
    if loop.plan.test_discarded:
        from auditor.measure import discarded

        asked = [v for t in loop.tallies for v in t.discarded if v.case_id not in loop.directed]
        record["discarded"] = discarded.table(asked, drawn)
    if len(loop.tallies) > 1 and loop.plan.protocol == "default":
        from auditor.measure import models_compared

        record["comparison"] = models_compared.measure(
            drawn, seed=loop.plan.seed, directed=frozenset(loop.directed)
        )
    if loop.plan.oracle == "probability":
        record["probability"] = _probability(loop, judged)
    if loop.plan.protocol != "hinter":
        record["tokens"] = _tokens(loop, judged)
    if loop.plan.protocol == "hinter":
        record["hinter"] = _hinter(loop)
        record["hinter_figures"] = _hinter_figures(loop)
    if loop.until is not None:
        record["looks"] = loop.until.record()
    return record


def _claims(loop: Loop) -> list[Claim]:
    """Who is worse off, by how much, how sure: for the default protocol, where answers are labels or numbers."""
    from auditor.measure.families import claims

    if loop.plan.protocol != "default" or loop.parts.task.kind == "generation":
        return []
    if loop.until is not None:  # as they are after all looks
        return loop.until.claims()
    return claims(loop.observed.table, question(loop))


def question(loop: Loop) -> Question:
    """What the claims of a run are about."""
    from auditor.run.controls import control_seen

    seen = {t.model.name: control_seen(t) for t in loop.tallies}
    return loop.observed.question(loop.plan, loop.parts.dictionaries, seen, _given(loop))


def _interactions(loop: Loop) -> Mapping[tuple[str, str, str], Any]:
    """What each hidden change does beyond its parts, beside placebo edits."""
    from auditor.measure.hidden import interactions

    if not loop.observed.hidden:
        return {}
    return interactions(loop.observed.table, question(loop), loop.observed.hidden, seed=loop.plan.seed)


def _candidates(loop: Loop, confirmed: Confirmed) -> list[dict[str, Any]]:
    """Hidden candidates of the directed search, and how many came again when their prompts were repeated."""
    rows = []
    for tally in loop.tallies:
        found = [(v, name) for case, v, name in tally.hidden if case.id in loop.directed]
        asked = [confirmed[key] for v, name in found if (key := (tally.model.name, v, name)) in confirmed]
        again = sum(one["confirmed"] is True for one in asked)
        declared = tally.model.deterministic
        rows.append(
            {"model": tally.model.name, "deterministic": declared, "candidates": len(found)}
            | {"repeated": len(asked), "confirmed": len(found) if declared else again}
        )
    return rows


def _probability(loop: Loop, judged: Sequence[Judged]) -> dict[str, Any]:
    """For every tolerance, the distinct cases with a variant beyond it; directed cases are left out."""
    from auditor.measure.intervals import clopper_pearson
    from auditor.tasks.oracles.probability import exceeding

    oracle = loop.parts.oracle
    rows = []
    for tally, own in zip(loop.tallies, judged, strict=True):
        for name in tally.formats:
            verdicts = [v for v in own.drawn if v.format == name]
            for epsilon, (found, n) in exceeding(verdicts, oracle.epsilons).items():
                rate = dataclasses.asdict(clopper_pearson(found, n)) if n else _none("no case was judged")
                rows.append(
                    {"model": tally.model.name, "format": name, "epsilon": epsilon, "cases": n}
                    | {"violating_cases": found, "rate": rate}
                )
    return {"label": oracle.label, "reference": loop.plan.reference, "rows": rows}


def _performance(loop: Loop) -> dict[str, Any]:
    """Answers against the gold labels, where the texts carry some: a description, never a filter."""
    from auditor.measure import performance

    task = loop.parts.task
    if not task.labels:
        return {"status": "not_tested", "reason": f"a task of kind {task.kind} has no labels"}
    golds = {case: text for case, (text, _) in loop.golds.items() if case not in loop.directed}
    read = {case: task.read(text, "text") for case, text in golds.items() if text is not None}
    gold = performance.gold_summary(
        {case: (text, case in read and read[case].status == "ok") for case, text in golds.items()}
    )
    if not gold["given"]:
        return {"status": "not_tested", "reason": "the texts carry no gold labels"}
    if not gold["mapped"]:
        names = ", ".join(repr(text) for text in gold["examples"])
        reason = f"none of the {gold['given']} gold labels names a label of the task (such as {names})"
        return {"status": "not_tested", "reason": reason, "gold": gold}
    models = []
    for tally in loop.tallies:
        for name, rows in sorted(tally.originals.items()):
            originals = [
                performance.Original(
                    case_id=case,
                    gold=read[case].value,
                    predicted=told,
                    groups=loop.golds[case][1],
                    judged=judged,
                    violations=violations,
                )
                for case, told, judged, violations in rows
                if case in read and read[case].status == "ok"
            ]
            models.append(performance.table(tally.model.name, name, originals))
    source = loop.parts.facts.get("seeds", {}).get("source", "the stored cases")
    return {"source": source, "gold": gold, "models": models}


def _given(loop: Loop) -> Counter[str]:
    """How often each label was given."""
    out: Counter[str] = Counter()
    if len(loop.parts.task.labels) > 2:
        for tally in loop.tallies:
            for given in tally.labels.values():
                for values in given.values():
                    for value in values:
                        out.update(value if isinstance(value, tuple) else (str(value),))
    return out


def _why_partial(loop: Loop) -> str:
    if given_up := [t for t in loop.tallies if t.first.hopeless]:
        return " ".join(unread.reason(t.model.name, _unread(loop, t)) for t in given_up)
    if loop.status_reason:
        return loop.status_reason.rstrip(".") + "."
    failed = sum(counts["failed"] for counts in _counters(loop))
    asked = sum(len(t.seen) for t in loop.tallies) + (len(loop.judge.seen) if loop.judge else 0)
    told = [f"{failed} of {asked} questions got no answer."] if failed else []
    told += [unread.reason(t.model.name, _unread(loop, t)) for t in loop.tallies if t.judged_nothing]
    return " ".join(told)


def _unread(loop: Loop, tally: Tally) -> dict[str, Any]:
    """What became of the answers of one model, and what was expected instead of the example."""
    variant, output = tally.unread or ("", "")
    kinds = {"score": "a number", "generation": "a text"}
    expected = unread.listed(loop.parts.task.labels) or kinds.get(loop.parts.task.kind, "an answer")
    return {
        "answers": len(tally.seen),
        **{key: tally.counts[key] for key in ("unparsed", "refused", "filtered", "failed")},
        "judged_nothing": tally.judged_nothing and (tally.first.hopeless or not loop.status_reason),
        "cut_off": tally.counts["cut_off"],
        "stopped": [tally.first.lost, tally.first.answers] if tally.first.hopeless else None,
        "variant": variant,
        "example": None if loop.plan.redact or tally.unread is None else unread.quoted(output),
        "expected": expected,
    }


def _drawn(loop: Loop, tally: Tally) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Labels of cases at random: a search repeats what differs, which says nothing of the noise."""
    if not loop.directed:
        return tally.labels
    return {key: arms for key, arms in tally.labels.items() if key[0] not in loop.directed}


def _noise(loop: Loop, tally: Tally, oracle: str = "") -> dict[str, Any]:
    """The same-prompt noise of one model: an estimate, a declaration, or why there is none."""
    from auditor.measure.summary import noise_of

    if tally.model.deterministic:
        return {"declared": True}
    if oracle == "probability":
        return _none("scores are compared, and the noise of labels says nothing about them")
    if oracle in ("score", "generation"):
        return _none("see the table of differences")
    estimate = noise_of(_drawn(loop, tally)) if tally.replicates > 1 else None
    if estimate is None:
        return _none("no prompt was asked twice" if tally.replicates == 1 else NO_TWO)
    return dataclasses.asdict(estimate)


def _noise_row(model: str, estimate: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "noise_floor",
        "model": model,
        "format": "",
        "attributes": [],
        "directions": None,
        "kind": None,
        "estimate": estimate,
    }


def _counts(loop: Loop, verdicts: list[Any]) -> dict[str, Any]:
    orders = [str(k) for k in range(1, loop.plan.order + 1)]
    violations = Counter(str(v.order) for v in verdicts if v.outcome == "violation")
    hidden = Counter(str(v.order) for v in verdicts if v.hidden)
    return {
        "seeds": loop.parts.seeds if loop.parts.seeds is not None else loop.counts["cases"],
        **{key: loop.counts[key] for key in ("cases", "variants", "valid", "discarded")},
        "placebos": loop.counts["placebos"],
        "placebos_valid": loop.counts["placebos_valid"],
        **{key: sum(counts[key] for counts in _counters(loop)) for key in SUMS},
        "cost_usd": _cost(loop),
        "violations": {order: violations[order] for order in orders},
        "hidden": {order: hidden[order] for order in orders},
        "skipped": dict(getattr(loop.parts.suite, "skipped", {})),
    }


def _counters(loop: Loop) -> list[Counter[str]]:
    """What was counted of each model that was asked, the judge of texts with them."""
    return [t.counts for t in loop.tallies] + ([loop.judge.counts] if loop.judge else [])


def _cost(loop: Loop) -> float | None:
    """Dollars spent; None where a model costs money and its price is not known."""
    from auditor.run.free import judge_cost

    for tally in loop.tallies:
        if hasattr(tally.model, "price") and loop.parts.budget.price_of(tally.model) is None:
            return None
    judged = judge_cost(loop)
    return None if judged is None else round(judged + sum(t.cost_usd for t in loop.tallies), 6)


def _model(loop: Loop, tally: Tally) -> dict[str, Any]:
    many = cautions.too_many_unreadable(tally.lost, len(tally.seen))
    return (
        ({"unread": _unread(loop, tally)} if many else {})
        | {
            "counts": {key: tally.counts[key] for key in SUMS} | {"cost_usd": round(tally.cost_usd, 6)},
            "deterministic": tally.model.deterministic,
            "fingerprint": tally.model.fingerprint,
            "style": tally.model.style,
            "replicates": tally.replicates,
            "formats": list(tally.formats),
            "reported": sorted(tally.reported),
        }
        | (
            {"parameters_changed": dict(changed)}
            if (changed := getattr(tally.model, "changed", None))
            else {}
        )
    )


def _cautions(loop: Loop, tally: Tally) -> list[cautions.Caution]:
    """What must be known of the answers of one model before its figures."""
    from auditor.run.controls import seen_by_format
    from auditor.tasks.oracles.label import label_text

    task = loop.parts.task
    texts = task.kind == "generation"
    given = {asked: told for asked, told in tally.given.items() if not task.graded(asked)}  # numbers say more
    labels = {v: str(label_text(v)) for given in tally.given.values() for v in given} if not texts else {}
    name = tally.model.name
    return [
        *cautions.alike(name, given, labels),
        *cautions.unreadable(name, tally.lost, len(tally.seen)),
        *cautions.control(name, seen_by_format(tally)),
        *cautions.changed(name, tally.reported, len(tally.seen)),
    ]


def _controls(loop: Loop, noise: Mapping[str, Any], judged: Sequence[Judged]) -> dict[str, Any]:
    validity = {
        arm: {"rate": bad / n, "n": n} if n else {"status": "not_tested", "reason": f"no {arm}"}
        for arm, (bad, n) in loop.agreement.items()
    }
    hinter = loop.plan.protocol != "default"
    return {
        "noise_floor": dict(noise),
        "validity": validity
        if loop.parts.agreement is not None
        else {"status": "not_tested", "reason": "the cases came from a file"},
        "placebo": _placebo(loop, judged, hinter=hinter),
        "placebo_hidden": _placebo_hidden(loop, judged, hinter=hinter),
        "positive_control": _positive(loop, hinter=hinter),
        "canary": _canary(loop, hinter=hinter),
        "answers_by_group": [
            {
                "model": tally.model.name,
                "attribute": attribute,
                "group": group,
                "n": cell["n"],
                "refused": cell["refused"],
                "unparsed": cell["unparsed"],
                "filtered": cell["filtered"],
                "failed": cell["failed"],
            }
            for tally in loop.tallies
            for (attribute, group), cell in sorted(tally.groups.items())
        ],
    }


def _none(reason: str) -> dict[str, Any]:
    return {"status": "not_tested", "reason": reason}


def _placebo(loop: Loop, judged: Sequence[Judged], *, hinter: bool) -> dict[str, Any]:
    """How often placebo edits changed the answer: by model, and by the attributes whose edits they copy."""
    from auditor.measure import arms

    out: dict[str, Any] = {}
    for tally, own in zip(loop.tallies, judged, strict=True):
        rates = arms.by_attributes(own.placebos)
        if rates:
            out[tally.model.name] = {
                " + ".join(attributes): dataclasses.asdict(rate) for attributes, rate in rates.items()
            }
    if out:
        return out
    if hinter:
        return _none("the protocol has none")
    return _none(
        "no placebo variant was asked" if loop.counts["placebos"] else "the cases have no placebo variants"
    )


def _placebo_hidden(loop: Loop, judged: Sequence[Judged], *, hinter: bool) -> dict[str, Any]:
    """How often joint placebo edits look hidden, beside the joint edits of the same seeds."""
    import numpy as np

    from auditor.measure import arms

    out: dict[str, dict[str, Any]] = {}
    for number, (tally, own) in enumerate(zip(loop.tallies, judged, strict=True)):
        rng = np.random.default_rng([loop.plan.seed, 5, number])
        for row in arms.placebo_hidden(own.drawn, own.placebos, rng=rng):
            name = " + ".join(row["attributes"])
            if len(tally.formats) > 1:
                name += f", {row['format']}"
            p, joint = row["p_adjusted"], 100 * row["hidden"]["value"]
            told = (
                "too few seeds for a test" if p is None else f"more often than placebo: p = {p:.2g}, adjusted"
            )
            out.setdefault(tally.model.name, {})[name] = row["placebo"] | {
                "note": f"joint edits looked hidden in {joint:.1f} % on the same seeds; {told}",
                "compared": row,
            }
    if out:
        return out
    return _none("the protocol has none" if hinter else "no joint placebo variant was judged")


def _positive(loop: Loop, *, hinter: bool) -> dict[str, Any]:
    """On what share of the control pairs the answers differed, by model and format."""
    from auditor.measure.intervals import clopper_pearson
    from auditor.run.controls import SEEN, seen_by_format

    out: dict[str, Any] = {}
    for tally in loop.tallies:
        for name, (seen, hits, of) in seen_by_format(tally).items():
            rate = dataclasses.replace(
                clopper_pearson(hits, of),
                note="seen" if seen else f"not seen: fewer than {100 * SEEN:.0f} % of the pairs",
            )
            key = tally.model.name if len(tally.control) == 1 else f"{tally.model.name}, {name}"
            out[key] = dataclasses.asdict(rate) | {"seen": seen}
    if out:
        return out
    if hinter:
        return _none("the protocol has none")
    return _none(loop.status_reason or "the task brings no control texts, or their answers were not recorded")


def _canary(loop: Loop, *, hinter: bool) -> dict[str, Any]:
    """Whether the first prompts were answered alike at the start, in the middle and at the end."""
    import numpy as np

    from auditor.measure.drift import shift

    out: dict[str, Any] = {}
    for tally in loop.tallies:
        if tally.model.deterministic:
            out[tally.model.name] = _none("the model is declared deterministic")
            continue
        asked = [[times.get(t, ()) for t in ("start", "middle", "end")] for times in tally.canaries.values()]
        found = shift(asked, rng=np.random.default_rng([loop.plan.seed, 4]))
        out[tally.model.name] = (
            _none("no prompt was asked again at the end") if found is None else dataclasses.asdict(found)
        )
    return _none("the protocol has none") if hinter else out


def _diagnoses(findings: list[Finding], confirmed: Confirmed) -> list[Diagnosis]:
    """For each hidden finding: the smallest variant that shows it is itself; with what its cells answered."""
    rows = []
    for finding in findings:
        if finding.kind != "hidden":
            continue
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


def _tokens(loop: Loop, judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Error rates of words, for each model and format: terminals of a grammar, or the terms put in."""
    from auditor.run import tokens

    rows = []
    for tally, own in zip(loop.tallies, judged, strict=True):
        for name in tally.formats:
            verdicts = [v for v in own.drawn if v.format == name]
            grammar = getattr(loop.parts.suite, "grammar", None)
            if grammar is None:
                unit, counted = "term", tokens.of_terms(verdicts, loop.about)
            else:
                again, cases = _drawn_again(loop, verdicts)
                unit, counted = "terminal", tokens.of_terminals(grammar, again.counts, again.errors)
                if not again.describe()["pairs"]:
                    swapped = tokens.of_swaps(grammar, cases, verdicts)
                    counted = [t for t in counted if not t.group] + swapped
            if counted:
                rows.append(tokens.as_record(tally.model.name, name, unit, counted))
    return rows


def _drawn_again(loop: Loop, verdicts: list[Any]) -> tuple[Any, Any]:
    """The suite once more, told the verdicts of one model alone, and its independent cases."""
    from random import Random

    suite = loop.parts.suite
    told = suite.describe()
    again = type(suite)(
        grammar=suite.grammar,
        generation="uniform" if told["generation"] == "uniform" else "rand",
        cases=told["cases"] if told["generation"] == "uniform" else told["rand_cases"],
        **{key: told[key] for key in ("attributes", "order", "per_case", "pairs", "seed")},
    )
    cases: list[Any] = []
    while more := again.ask(1024, Random(0)):
        cases += more
    again.tell(verdicts)
    return again, cases


def _hinter(loop: Loop) -> dict[str, Any]:
    """The paper's own measures for each model, raw: mutants are the units, nothing is controlled."""
    from auditor.contrib.hinter import statistics as hinter

    return {
        tally.model.name: [m.as_record() for m in hinter.measures(tally.mutants)] for tally in loop.tallies
    }


def _hinter_figures(loop: Loop) -> dict[str, Any]:
    """Counts of the paper's tables and figures, over all pairs of attributes."""
    from auditor.contrib.hinter import figures as hinter_figures
    from auditor.contrib.hinter.statistics import with_discarded

    return hinter_figures.record(
        {t.model.name: list(with_discarded(t.mutants, t.discarded)) for t in loop.tallies}
    )


def _provenance(loop: Loop, started: datetime, seconds: float) -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    from auditor.core.provenance import of_inputs

    packages: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    plan_sha256 = getattr(loop.folder, "plan_sha256", None)
    return {
        "started": started.isoformat(timespec="seconds"),
        "ended": (started + timedelta(seconds=seconds)).astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "plan_sha256": plan_sha256,
        **of_inputs(loop.parts.suite),
        **loop.parts.facts,
    }
