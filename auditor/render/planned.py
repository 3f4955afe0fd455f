"""What a plan was expected to ask and to show, in words: for frozen plans and for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.render import words

Data = Mapping[str, Any]


def lines(expected: Data | None) -> list[str]:
    """Sentences about an expectation, of texts or of rows; none without one.

    Parameters
    ----------
    expected : mapping, optional
        What ``--dry-run`` counts for texts (`auditor.pipeline.estimate`), or `auditor.tabular.expect.expected`.
    """
    if not expected:
        return []
    return _rows(expected) if expected.get("kind") == "rows" else _texts(expected)


def frozen(record: Data) -> list[str]:
    """What the frozen plan of a run expected, and beside it what the run came to; none without a frozen plan."""
    about = record.get("frozen") or {}
    told = lines(about.get("expected"))
    if not about:
        return []
    if not told:
        return [
            "The frozen plan says nothing about the number of cases, nor about the effect that can be seen."
        ]
    return ["This was worked out before the run.", *told, _came(record)]


def _came(record: Data) -> str:
    counts = record.get("counts") or {}
    if "tabular" in record:
        names = [("generated", "case"), ("evaluations", "row asked about"), ("calls", "call")]
    else:
        names = [("cases", "case"), ("variants", "variant"), ("valid", "valid variant"), ("calls", "call")]
    many = {"row asked about": "rows asked about"}
    found = [
        words.plural(counts[k], noun, many.get(noun, ""))
        for k, noun in names
        if isinstance(counts.get(k), int)
    ]
    return f"The run came to {words.listing(found)}."


def _texts(expected: Data) -> list[str]:
    told = [
        f"{words.plural(expected['cases'], 'case')} of {words.plural(expected['seeds'], 'seed')}, with "
        f"{words.plural(expected['variants'], 'variant')} ({words.count(expected['valid'])} valid) and "
        f"{words.plural(expected.get('placebos', 0), 'placebo variant')}."
    ]
    for name, row in (expected.get("models") or {}).items():
        cost = row.get("cost_usd")
        money = f", about {cost:.2f} USD" if cost else ""
        told.append(
            f"{name}: {words.plural(row['calls'] + row.get('calls_canary', 0), 'call')} for "
            f"{words.plural(row['prompts'], 'prompt')}{money}."
        )
    return [*told, *at_best(expected.get("power") or {})]


def at_best(power: Data) -> list[str]:
    """What so many seeds cannot be expected to show, in lines; not what the run at hand will show.

    The figures are those of one claim alone, with one pair of texts for each seed and nothing else that changes the
    answer. A run makes several claims and asks more of each, so they are limits from below.
    """
    if not power.get("seeds"):
        return []
    often = words.percent(power["power"], 0)
    told = [
        f"At best, for one claim alone, with one pair of texts for each of {words.plural(power['seeds'], 'seed')}, and "
        "where nothing but the group changes the answer:"
    ]
    for row in power.get("rows") or ():
        which = "any net difference" if row.get("difference") is None else "a net difference"
        below = "" if row.get("difference") is None else f" below {_points(row['difference'])} points"
        told.append(
            f"  if the answer changes on {words.percent(row['discordant'], 0)} of the seeds, fewer than {often} of "
            f"such runs show {which}{below}, or bound a δ below {_points(row['delta'])} points;"
        )
    nothing = _points(power["delta_if_nothing_changes"])
    return [
        *told,
        f"  if it changes on none, no δ below {nothing} points can be bounded.",
        "Several claims, placebo edits and noise ask for more: how often this run would show something is not worked "
        "out.",
    ]


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _rows(expected: Data) -> list[str]:
    asked = expected.get("evaluations") or {}
    cases = words.sentence(_range(expected.get("cases") or {}, "case")).rstrip(".")
    told = [
        f"{cases}, each with "
        f"{words.plural(expected['combinations'], 'combination')} of protected values; "
        f"{words.plural(expected['given_rows'], 'given row')}."
    ]
    if expected.get("sets"):
        told.append(f"Sets of columns that are tested: {_range(expected['sets'], 'set')}.")
    if expected.get("estimate_cases"):
        told.append(
            f"Further {words.plural(expected['estimate_cases'], 'uniform case')} for the estimate of the share."
        )
    most = asked.get("at_most")
    why = f" ({asked['reason']})" if asked.get("reason") else ""
    rows = "not known beforehand" if most is None else _range(asked, "row")
    told.append(f"Rows that the model is asked about: {rows}{why}.")
    if expected.get("again_at_most"):
        told.append(f"Beside them, at most {expected['again_at_most']:,} rows for examples and slices.")
    if expected.get("calls_at_most") is not None:
        told.append(f"Calls: at most {words.count(expected['calls_at_most'])}, less what the cache has.")
    if expected.get("limits"):
        named = ", ".join(f"{k.replace('_', ' ')} {words.figure(v)}" for k, v in expected["limits"].items())
        told.append(f"Limits: {named}.")
    return [*told, _effect(expected)]


def _effect(expected: Data) -> str:
    effect = expected.get("effect")
    if not effect:
        return f"No effect size is worked out: {expected.get('effect_reason') or 'no reason was recorded'}."
    return (
        f"With {words.plural(effect['n'], 'case')}, a share of {words.percent(effect['share'], 2)} or more is shown "
        f"with a probability of {words.percent(effect['power'], 0)} or more; if no label changes, the interval at "
        f"{100 * effect['level']:g} % ends at {words.percent(effect['bound'], 2)}; it reaches at most "
        f"{words.percent(effect['half_width'], 2)} to either side."
    )


def _range(bounds: Data, noun: str) -> str:
    least, most = bounds.get("at_least"), bounds.get("at_most")
    if most is None:
        return f"at least {words.plural(least or 0, noun)}"
    if least == most:
        return words.plural(most, noun)
    return (
        f"at most {words.plural(most, noun)}"
        if not least or least == 1
        else f"{least:,} to {words.plural(most, noun)}"
    )


def deviations(record: Data) -> Sequence[tuple[str, str, str]]:
    """(what, as planned, as run) of every deviation from the frozen plan."""
    return [
        (str(d["what"]), value(d.get("planned")), value(d.get("actual")))
        for d in (record.get("frozen") or {}).get("deviations") or ()
    ]


def value(what: object) -> str:
    """A setting in words; None is ``not given``."""
    if what is None:
        return "not given"
    return words.listing([str(v) for v in what]) if isinstance(what, list | tuple) else str(what)
