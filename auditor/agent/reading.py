"""The figures of a run, and nothing else of it.

What is handed to a planner goes through here: counts, rates, names of attributes and groups of the shipped
dictionaries, ids. No tested text, no answer, no label, no message of a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = (
    "seeds", "cases", "variants", "valid", "discarded", "calls", "cached", "failed", "filtered", "unparsed", "refused",
)  # fmt: skip
DIGITS = 6


def figures(record: Mapping[str, Any]) -> dict[str, Any]:
    """Counts and rates of a run record.

    Returns
    -------
    dict
        ``complete``, ``counts``, ``noise`` (highest same-prompt disagreement of a model, or None),
        ``sets``: one entry per model, prompt format and attribute set, and ``directions``: those that were shown.
    """
    models = {name: f"M{n}" for n, name in enumerate(record["models"], 1)}
    return {
        "complete": record["status"] == "complete",
        "counts": {name: int(record["counts"].get(name) or 0) for name in COUNTS},
        "noise": _noise(record),
        "sets": [_set(record, f, models) for f in record["findings"] if _is_set(f)],
        "directions": [
            {
                "finding": f["id"],
                "model": models.get(f["model"], "M0"),
                "steps": [list(step) for step in f["directions"]],
                "verdict": f["verdict"],
            }
            for f in record["findings"]
            if f["code"] == "DIR110" and f["verdict"] == "shown"
        ],
    }


def _is_set(finding: Mapping[str, Any]) -> bool:
    return finding["kind"] == "claim" and finding["code"] not in ("DIR110", "REF120")


def _set(record: Mapping[str, Any], finding: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    rate = finding.get("rate")
    wanted = list(finding["attributes"])

    def same(row: Mapping[str, Any]) -> bool:
        return (
            row["attributes"] == wanted
            and row["model"] == finding["model"]
            and row["format"] == finding["format"]
            and row["directions"] is None
            and row["kind"] is None
        )

    rows = {row["name"]: row["estimate"] for row in reversed(record["estimates"]) if same(row)}
    by_seed = rows.get("seed_violation_rate")
    hidden = [
        f
        for f in record["findings"]
        if f["kind"] == "hidden" and list(f["attributes"]) == wanted and f["model"] == finding["model"]
    ]
    return {
        "finding": finding["id"],
        "model": models.get(finding["model"], "M0"),
        "attributes": wanted,
        "verdict": finding["verdict"],
        "p_adjusted": _round(finding.get("p_adjusted")),
        "rate": _interval(rate),
        "seeds": 0 if rate is None else rate["n"],
        "seeds_changed": 0 if by_seed is None else round(by_seed["value"] * by_seed["n"]),
        "placebo": _value(rows.get("placebo_rate")),
        "noise": _value(finding.get("noise")),
        "deterministic": record["models"][finding["model"]]["deterministic"],
        "intervals": {
            "placebo": _interval(rows.get("placebo_rate")),
            "noise": _interval(finding.get("noise")),
        },
        "hidden": len(hidden),
        "hidden_shown": sum(f["verdict"] == "shown" for f in hidden),
    }


def _noise(record: Mapping[str, Any]) -> float | None:
    values = [
        value["value"]
        for value in (record["controls"].get("noise_floor") or {}).values()
        if isinstance(value, Mapping) and isinstance(value.get("value"), int | float)
    ]
    return _round(max(values, default=None))


def _value(estimate: Mapping[str, Any] | None) -> float | None:
    return None if estimate is None else _round(estimate["value"])


def _interval(estimate: Mapping[str, Any] | None) -> dict[str, float | None] | None:
    return None if estimate is None else {k: _round(estimate[k]) for k in ("value", "low", "high")}


def _round(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def told(row: Mapping[str, Any]) -> str:
    """One attribute set in words, for a reason or a report.

    Examples
    --------
    >>> told({"attributes": ["age"], "rate": None, "seeds": 0, "seeds_changed": 0, "placebo": None, "hidden": 0})
    'age: not measured'
    """
    from auditor.report import words

    name = words.attributes(row["attributes"])
    if row["rate"] is None:
        return f"{name}: not measured"
    text = (
        f"{name}: {words.interval(row['rate'])} of the variants changed the answer, "
        f"on {row['seeds_changed']} of {words.plural(row['seeds'], 'seed')}"
    )
    if row["placebo"] is not None:
        text += f"; placebo edits {words.percent(row['placebo'])}"
    if row["hidden"]:
        text += f"; {words.plural(row['hidden'], 'hidden change')} looked at"
    return text


def promising(row: Mapping[str, Any]) -> bool:
    """Whether more answers changed than placebo edits bring about, on any seed."""
    return bool(
        row["rate"] is not None and row["seeds_changed"] and row["rate"]["value"] > (row["placebo"] or 0.0)
    )


def unread(values: Mapping[str, Any]) -> str:
    """Why a run measured nothing at all; empty where it measured something.

    Examples
    --------
    >>> counts = {"calls": 40, "cached": 0, "unparsed": 40, "refused": 0, "failed": 0}
    >>> unread({"sets": [{"rate": None}], "counts": counts})
    'no answer of this run could be judged: of 40 answers, 40 were no answer that the task knows'
    """
    if any(row["rate"] is not None for row in values["sets"]):
        return ""
    counts = values["counts"]
    why = [
        f"{counts[name]:,} {told}"
        for name, told in (
            ("unparsed", "were no answer that the task knows"),
            ("refused", "were refusals"),
            ("filtered", "were kept back by the provider's filter"),
            ("failed", "were failed calls"),
        )
        if counts.get(name)
    ]
    asked = counts["calls"] + counts["cached"]
    if not asked:
        return "no answer came"
    if sum(counts.get(name, 0) for name in ("unparsed", "refused", "filtered", "failed")) < asked:
        return ""  # amounts and texts are judged without a rate
    return f"no answer of this run could be judged: of {asked:,} answers, {', '.join(why)}"


def lines(values: Mapping[str, Any]) -> Sequence[str]:
    """All sets of a run in words; sets without a change last."""
    rows = sorted(values["sets"], key=lambda r: (not promising(r), len(r["attributes"]), r["attributes"]))
    return [told(row) for row in rows]
