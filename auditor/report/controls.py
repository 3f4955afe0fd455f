"""The controls of a run, and a paper's own counting, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.report import words
from auditor.report.rows import DECLARED

Data = Mapping[str, Any]
PAPER_COLUMNS = ("Model", "Pair", "Joint errors", "Atomic errors", "Hidden", "Valid, joint")
FEW_SEEDS = 6
LOSSES = ("refused", "filtered", "unparsed", "failed")
CONTROL_NAMES = {
    "noise_floor": "Same-prompt noise",
    "validity": "Agreement problems",
    "placebo": "Placebo edits",
    "positive_control": "Positive control",
    "canary": "Same prompts later",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """One line of the controls: what, for whom, the figure or the reason why there is none."""

    name: str
    scope: str
    result: str
    ran: bool = True
    few: bool = False  # of one attribute set, on fewer than `FEW_SEEDS` seeds


def losses(rows: Iterable[Data]) -> tuple[str, ...]:
    """The kinds of answers that are told of: what a provider's filter kept back only where it kept something back."""
    filtered = any(row.get("filtered") for row in rows)
    return tuple(name for name in LOSSES if filtered or name != "filtered")


def lost(counts: Data) -> str:
    """How many prompts got no answer that counts, of how many that were asked or found in the cache.

    Examples
    --------
    >>> lost({"refused": 0, "unparsed": 2, "failed": 0, "calls": 3, "cached": 861})
    'refused 0, unparsed 2, failed 0 of 864 (3 asked, 861 from the cache)'
    """
    told = ", ".join(f"{name} {words.count(counts.get(name))}" for name in losses([counts]))
    calls, cached = counts.get("calls"), counts.get("cached") or 0
    if calls is None:
        return told
    return f"{told} of {words.count(calls + cached)} ({words.count(calls)} asked, {words.count(cached)} from the cache)"


def lines(record: Data) -> Iterable[Control]:
    """Yield one line per control; those that were not run say why."""
    controls = record.get("controls") or {}
    for key in [*CONTROL_NAMES, *sorted(set(controls) - set(CONTROL_NAMES) - {"answers_by_group"})]:
        name = CONTROL_NAMES.get(key, key.replace("_", " ").capitalize())
        if controls.get(key) is None:
            yield Control(name=name, scope="", result="not run: the run record holds no result", ran=False)
        else:
            yield from control(name, "", controls[key])


def control(name: str, scope: str, value: Any) -> Iterable[Control]:
    """One control as lines: a rate, a test, or why it was not run."""
    if not isinstance(value, Mapping):
        text = words.percent(value) if isinstance(value, float) else str(value)
        yield Control(name=name, scope=scope, result=text)
    elif value.get("status") == "not_tested":
        yield Control(
            name=name, scope=scope, result=f"not run: {value.get('reason') or 'no reason given'}", ran=False
        )
    elif value.get("declared"):
        yield Control(name=name, scope=scope, result=DECLARED)
    elif words.is_estimate(value):
        n = f" · n = {words.count(value['n'])}" if value.get("n") is not None else ""
        note = f" · {value['note']}" if value.get("note") else ""
        few = ", " in scope and value.get("n") is not None and value["n"] < FEW_SEEDS
        yield Control(name=name, scope=scope, result=words.interval(value) + n + note, few=few)
    elif "shifted" in value:
        told = "answered differently" if value["shifted"] else "no shift seen"
        yield Control(
            name=name,
            scope=scope,
            result=f"{told}: p = {value['p_value']:.2g} ({words.plural(int(value['prompts']), 'prompt')}, "
            f"{words.plural(int(value['answers']), 'answer')})",
        )
    elif "rate" in value:
        n = f" of {words.count(value['n'])}" if value.get("n") is not None else ""
        yield Control(name=name, scope=scope, result=words.percent(value["rate"]) + n)
    else:
        for key in sorted(value):
            label = str(key).replace("_", " ") if isinstance(value[key], Mapping) else str(key)
            yield from control(name, f"{scope}, {label}" if scope else label, value[key])


def paper(record: Data) -> Iterable[tuple[str, ...]]:
    """Lay out the measures of ``--protocol hinter``, one line per model and pair of attributes."""

    def share(part: int, whole: int) -> str:
        value = words.percent(part / whole) if whole else "none"
        return f"{value} ({words.count(part)} of {words.count(whole)})"

    for model, pairs in (record.get("hinter") or {}).items():
        for pair in pairs:
            joint = pair["joint"]
            atomic = (f"{a}: {share(x['errors'], x['tested'])}" for a, x in pair["atomic"].items())
            yield (
                model,
                words.attributes(pair["attributes"]),
                share(joint["errors"], joint["tested"]),
                "; ".join(atomic),
                share(pair["hidden"], joint["errors"]),
                share(joint["valid"], joint["generated"]),
            )
