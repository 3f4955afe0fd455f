"""The first lines of a report: the question that was asked, answered with figures and a verdict.

Verdicts are those of `auditor.agent.judge`; nothing is concluded here that does not stand there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.agent import reading
from auditor.agent.session import LABELS
from auditor.report import words

LEADS = {
    "shown": "A difference was shown",
    "shown_for_words": "A difference was shown for the words used",
    "bounded": "Changes were bounded below δ",
    "not_determined": "Not determined: a difference was neither shown nor bounded",
    "not_tested": "Not tested on fresh texts",
}
MOST_OTHERS = 12  # further sets that are listed


def lead(record: Mapping[str, Any]) -> list[str]:
    """The answer to the question, one paragraph for each model; why there is none where there is none."""
    runs = [r for r in record["runs"] if r["figures"]]
    if not runs:
        why = record["status_reason"] or "no run came to its end"
        return [f"Nothing was measured: {why.rstrip('.')}."]
    empty = [why for r in runs if (why := reading.unread(r["figures"]))]
    if len(empty) == len(runs):
        if all(not (r["figures"]["counts"]["calls"] + r["figures"]["counts"]["cached"]) for r in runs):
            return [f"Nothing was measured: {empty[0]}. {words.sentence('; '.join(runs[0]['notes']))}"]
        labels = record.get("labels") or ()
        known = "reads answers of another form"
        if labels:
            all_of_them = len(labels) < LABELS
            known = (
                f"knows {'the answers' if all_of_them else 'answers such as'} {words.listing(labels, 'or')}"
            )
        return [
            f"Nothing was measured: {empty[0]}. The task {record['goal']['task']} {known}; what the model answered "
            "stands in the report of the run. Give a model that answers so, or a task file of your own (--task)."
        ]
    out = []
    for model, questions in _by_model(record):
        prefix = f"{_model(record, model)}: " if len(record["models"]) > 1 else ""
        out.append(prefix + _main(record, questions))
    return out


def others(record: Mapping[str, Any]) -> list[str]:
    """The other attribute sets, one line each, those that were shown first; what the first lines tell is left out."""
    rank = ("shown", "shown_for_words", "bounded", "not_determined", "not_tested")
    lines = []
    for model, questions in _by_model(record):
        prefix = f"{_model(record, model)}: " if len(record["models"]) > 1 else ""
        told = [] if record["goal"]["attributes"] is None else _leading(questions)
        rest = [q for q in questions if q["row"] is not None and q not in told]
        for q in sorted(rest, key=lambda q: rank.index(q["verdict"]))[:MOST_OTHERS]:
            lines.append(f"{prefix}{words.verdict(q['verdict'])}: {_measured(record, q)}{_turned(record, q)}")
    return lines


def ordered(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The questions that were measured, of all models, the one that the goal asks first."""
    return [q for _, questions in _by_model(record) for q in questions if q["row"] is not None]


def _by_model(record: Mapping[str, Any]) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    """Model → its questions; the one that the goal asks stands first."""
    models = sorted({q["model"] for q in record["questions"]})
    asked = record["goal"]["attributes"]
    for model in models:
        mine = [q for q in record["questions"] if q["model"] == model and (q["declared"] or q["run"])]
        if asked is None:
            # Nothing in particular was asked: what is best supported, and of that what changed most, answers.
            mine.sort(key=lambda q: (-_strength(q), len(q["attributes"])))
        else:
            mine.sort(key=lambda q: (-len(set(q["attributes"]) & set(asked)), len(q["attributes"])))
        if mine:
            yield model, mine


def _strength(q: Mapping[str, Any]) -> float:
    rank = {"shown": 4.0, "shown_for_words": 3.0, "bounded": 2.0, "not_determined": 1.0, "not_tested": 0.0}[
        q["verdict"]
    ]
    rate = (q["row"] or {}).get("rate")
    return rank + (0.0 if rate is None else min(0.99, rate["value"]))


def _model(record: Mapping[str, Any], number: str) -> str:
    return str(record["models"][int(number[1:]) - 1])


def _leading(questions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What the first lines answer with.

    The smallest sets for which a difference was shown: where one of age is shown, one of age and gender together need
    have nothing to do with gender. Where none was shown: what the goal asks, each set of several that stand alone.
    """
    shown = [q for q in questions if q["declared"] and q["verdict"] == "shown" and q["row"] is not None]
    least = [q for q in shown if not any(set(o["attributes"]) < set(q["attributes"]) for o in shown)]
    largest = len(questions[0]["attributes"])
    asked = [q for q in questions if q["declared"] and len(q["attributes"]) == largest]
    return least or asked or list(questions[:1])


def _main(record: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> str:
    """The answer for one model: the sets that lead in full, then what came of the sets around them."""
    if record["goal"]["attributes"] is None:
        return _overview(record, questions)
    leading = _leading(questions)
    parts = [_set(record, q, alone=len(leading) == len(questions) == 1) for q in leading]
    full = questions[0]
    if full not in leading and full["row"] is not None and len(full["attributes"]) > 1:
        parts.append(words.sentence(_brief(record, full)))
    if len(leading) == 1 and leading[0]["verdict"] == "shown":
        mine = set(leading[0]["attributes"])
        smaller = [
            q for q in questions if len(q["attributes"]) == 1 and set(q["attributes"]) < mine and q["row"]
        ]
        parts += [words.sentence(_brief(record, q)) for q in smaller]
    return " ".join(parts)


def _brief(record: Mapping[str, Any], q: Mapping[str, Any]) -> str:
    """One set in a few words: its verdict, and on how many texts the answer changed."""
    names = words.listing([words.group(a) for a in q["attributes"]])
    how = "together" if len(q["attributes"]) > 1 else "alone"
    row = q["row"]
    if row["rate"] is None:
        return f"{names} {how}: {words.verdict(q['verdict'], symbol=False)}"
    return (
        f"{names} {how}: {words.verdict(q['verdict'], symbol=False)}, the answer changed on {row['seeds_changed']} of "
        f"{words.plural(row['seeds'], 'text')}"
    )


def _set(record: Mapping[str, Any], q: Mapping[str, Any], *, alone: bool) -> str:
    """What was measured of one set, in full."""
    names = words.listing([words.group(a) for a in q["attributes"]])
    if q["row"] is None or (q["row"]["rate"] is None and not _said(record, q)):
        why = words.sentence(record["status_reason"] or "")
        return f"{LEADS['not_tested']}: {words.attributes(q['attributes'])}. {why} {_explored(record, q)}".rstrip()
    about = "" if alone else f" for {names}" + (" together" if len(q["attributes"]) > 1 else "")
    head, colon, rest = LEADS[q["verdict"]].partition(":")
    parts = [f"{head}{about}{colon}{rest}. {words.sentence(_measured(record, q))}"]
    turned = _turned(record, q)
    if turned:
        parts.append(words.sentence(turned.removeprefix("; ")))
    if q["row"]["rate"] is not None:
        parts.append(_floors(q["row"]))
    parts.append(_why(record, q))
    if _partial(record, q):
        parts.append(f"Run {q['run']} is partial: this rests on the texts that it reached.")
    return " ".join(filter(None, parts))


def _overview(record: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> str:
    """What was shown of everything that the texts name, where the goal names nobody in particular."""
    tested = [q for q in questions if q["row"] is not None and q["row"]["rate"] is not None]
    if not tested:
        return f"{LEADS['not_tested']}. {words.sentence(record['status_reason'] or '')}".rstrip()
    shown = [q for q in tested if q["verdict"] == "shown"]
    bounded = sum(q["verdict"] == "bounded" for q in tested)
    parts = [
        f"Of {words.plural(len(tested), 'attribute set')} that the texts name, a difference was shown for {len(shown)}"
        + (f", changes were bounded for {bounded}" if bounded else "")
        + f"; {sum(q['verdict'] == 'not_determined' for q in tested)} stay open."
    ]
    first = shown[0] if shown else max(tested, key=lambda q: q["row"]["seeds_changed"])
    parts.append(f"{'First' if shown else 'Most changes'}: {words.sentence(_measured(record, first))}")
    parts += [_floors(first["row"]), _why(record, first)]
    return " ".join(filter(None, parts))


def _measured(record: Mapping[str, Any], q: Mapping[str, Any]) -> str:
    row = q["row"]
    if row["rate"] is None:
        return _said(record, q) or f"{words.attributes(q['attributes'])}: no answer could be judged"
    return (
        f"when words of {_people(record, q['attributes'], q['run'])}, the answer changed on "
        f"{row['seeds_changed']} of {words.plural(row['seeds'], 'text')}, in {words.interval(row['rate'])} of the "
        "changed versions"
    )


def _said(record: Mapping[str, Any], q: Mapping[str, Any]) -> str:
    """What the run says of an amount or a text, which have no rate of changes."""
    if q["verdict"] == "not_tested":
        return ""
    return next(
        (str(r.get("said", {}).get(q["finding"], "")) for r in record["runs"] if r["name"] == q["run"]), ""
    )


def _people(record: Mapping[str, Any], attributes: Sequence[str], run: str) -> str:
    """Which words were changed: the attributes, and the groups they led to or from."""
    names = [words.group(a) for a in attributes]
    together = f"{words.listing(names)} were changed" + (" together" if len(names) > 1 else "")
    limited = next((r["request"].get("groups") for r in record["runs"] if r["name"] == run), None)
    if not limited:
        return together
    wanted = []
    named, other = _sides(record, attributes)
    if other:
        wanted.append(f"from {other} to {named} or back")
    free = [a for a in attributes if a in record["goal"]["groups"] and not _against(record, a)]
    listed = [words.listing([words.group(g) for g in record["goal"]["groups"][a]], "or") for a in free]
    if listed:
        wanted.append(f"to or from {words.listing(listed)}")
    return f"{together}, {words.listing(wanted)}" if wanted else together


def _against(record: Mapping[str, Any], attribute: str) -> Sequence[str]:
    """The groups of an attribute that the goal compares the others with; records of earlier versions have none."""
    found: Sequence[str] = record["goal"].get("against", {}).get(attribute, ())
    return found


def _sides(record: Mapping[str, Any], attributes: Sequence[str]) -> tuple[str, str]:
    """The groups of ``attributes`` that the goal compares with others, and those others; empty without a comparison."""
    groups = record["goal"]["groups"]
    both = [a for a in attributes if _against(record, a)]
    word = "or" if len(both) == 1 else "and"
    named = [words.group(g) for a in both for g in groups[a] if g not in _against(record, a)]
    return words.listing(named, word), words.listing(
        [words.group(g) for a in both for g in _against(record, a)], word
    )


def _turned(record: Mapping[str, Any], q: Mapping[str, Any]) -> str:
    """Towards which answer the named groups led, in counts."""
    run = next((r for r in record["runs"] if r["name"] == q["run"]), None)
    found = next(
        (
            e
            for e in (run or {}).get("ends", ())
            if e["model"] == q["model"] and e["attributes"] == q["attributes"]
        ),
        None,
    )
    if found is None or (found["difference"] is not None and _said(record, q)):
        return ""
    groups = record["goal"]["groups"]
    others = "other groups"
    several = "or" if len(q["attributes"]) == 1 else "and"
    named = words.listing(
        [words.group(g) for a in q["attributes"] for g in groups.get(a, ()) if g not in _against(record, a)],
        several,
    )
    if all(_against(record, a) for a in q["attributes"] if a in groups):
        others = _sides(record, q["attributes"])[1] or others
    if found["difference"] is not None:
        return f"; with {named} rather than {others}, the amount is {found['difference']:+,.12g} on average"
    told = [
        f"“{turn['named']}” instead of “{turn['other']}” on {words.plural(turn['seeds'], 'text')}"
        for turn in found["turns"]
    ]
    return f"; with {named} rather than {others}, the answer was {words.listing(told)}" if told else ""


def _floors(row: Mapping[str, Any]) -> str:
    told = []
    if row.get("noise") is not None:
        told.append(f"the same prompt asked again got another answer in {words.percent(row['noise'])}")
    elif row.get("deterministic", True):
        told.append("the model declares that it answers the same prompt always alike")
    else:
        told.append("the same prompt was not asked again")
    if row.get("placebo") is not None:
        told.append(f"edits that change no group changed the answer in {words.percent(row['placebo'])}")
    return words.sentence(" and ".join(told) if row.get("noise") is not None else "; ".join(told))


def _why(record: Mapping[str, Any], q: Mapping[str, Any]) -> str:
    where = f"(Run {q['run']}, finding {q['finding']}.)"
    if q["verdict"] == "shown":
        return where
    run = next(r for r in record["runs"] if r["name"] == q["run"])
    notes: Sequence[str] = run.get("reasons", {}).get(q["finding"], ())
    told = _reasons(notes)
    row = q["row"]
    if q["verdict"] == "not_determined" and row["verdict"] != q["verdict"]:
        told = [
            f"the run alone says {words.verdict(row['verdict'], symbol=False)}, at a level above that of a session"
        ]
    return f"Why: {words.sentence('; '.join(told))} {where}" if told else where


def _reasons(notes: Sequence[str]) -> list[str]:
    """Why nothing was shown: what the finding says first."""
    return list(notes[:1])


def _explored(record: Mapping[str, Any], q: Mapping[str, Any]) -> str:
    for run in reversed(record["runs"]):
        if run["name"] not in q["explored"]:
            continue
        for row in run["figures"]["sets"]:
            if row["model"] == q["model"] and row["attributes"] == q["attributes"]:
                return f"Exploratory, {run['name']}: {words.sentence(reading.told(row))}"
    return ""


def _partial(record: Mapping[str, Any], q: Mapping[str, Any]) -> bool:
    return any(r["name"] == q["run"] and not r["figures"]["complete"] for r in record["runs"])
