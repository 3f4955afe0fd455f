"""Several models in one run as tables: their rates side by side, and whether two of them differ.

The figures stand in the run record (key ``comparison``): `auditor.measure.two_models`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.core.record import NamedEstimate, RunRecord
from auditor.core.record.sections import ModelPair
from auditor.core.types import Estimate
from auditor.measure.two_models import MIN_SEEDS
from auditor.report import words
from auditor.report.rows import noise_text

Subject = tuple[str, str]  # model, format
RATES = ("Model", "Attributes", "Texts", "Changed", "Hidden", "Same prompt again")
PAIRS = ("Attributes", "First", "Second", "Texts", "Difference", "p, adjusted", "Verdict")
RIGHT = frozenset({"Texts"})
NOTES = (
    "Difference: share of variants whose answer changed with the first model, less the share with the second, over "
    "variants that both models answered, in percentage points; its interval is by text.",
    "A model that wobbles changes its answers more often for that alone: read a difference beside the same-prompt "
    "noise of both models. The two models answer the same texts, so the test is paired; p is adjusted for all "
    "pairs and attribute sets of this table (Holm). Fewer than six texts are not tested.",
    "A difference between two models says nothing about which of them is the better one. Rows of fewer than six texts "
    "stand in the CSV alone.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The tables of a comparison, every cell in words."""

    rates: tuple[tuple[str, ...], ...]  # columns as `RATES`
    pairs: tuple[tuple[str, ...], ...]  # columns as `PAIRS`
    notes: tuple[str, ...]


def build(record: RunRecord, *, alpha: float = 0.05) -> Comparison | None:
    """The tables of ``record``; None where it holds fewer than two models.

    Parameters
    ----------
    record : RunRecord
        Pairs stand under ``comparison``, where they were measured.
    alpha : float
        Adjusted p values up to it are told as a difference shown.
    """
    found: dict[tuple[str, str, tuple[str, ...]], Estimate] = {}
    hidden: dict[tuple[str, str, tuple[str, ...]], Estimate] = {}
    for entry in record.estimates:
        if entry.name in ("violation_rate", "hidden_rate") and _plain(entry):
            kind = found if entry.name == "violation_rate" else hidden
            kind[entry.model, entry.format, entry.attributes] = entry.estimate
    if len({model for model, _, _ in found}) < 2:
        return None
    several = _several([(m, f) for m, f, _ in found])
    order = {model: i for i, model in enumerate(record.models)}
    rates = tuple(
        (
            _name((model, name), several),
            _attributes(attributes),
            words.count(rate.n),
            words.interval(rate),
            words.interval(hidden[model, name, attributes]) if (model, name, attributes) in hidden else "–",
            noise_text(record.controls.of("noise_floor", model)),
        )
        for (model, name, attributes), rate in sorted(
            found.items(), key=lambda i: (len(i[0][2]), i[0][2], order.get(i[0][0], len(order)), i[0])
        )
        if rate.n >= MIN_SEEDS
    )
    measured = record.comparison.pairs if record.comparison is not None else ()
    pairs = tuple(_pair(row, several, alpha) for row in measured if row.n >= MIN_SEEDS)
    notes = NOTES if measured else ("No two models were judged on the same variants, so none were compared.",)
    return Comparison(rates=rates, pairs=pairs, notes=notes)


def _plain(entry: NamedEstimate) -> bool:
    return bool(entry.model) and not entry.directions and not entry.kind


def _several(pairs: Iterable[Subject]) -> frozenset[str]:
    """Models that were asked in more than one format."""
    formats: dict[str, set[str]] = defaultdict(set)
    for model, name in pairs:
        formats[model].add(name)
    return frozenset(model for model, names in formats.items() if len(names) > 1)


def _name(subject: Subject, several: frozenset[str]) -> str:
    return f"{subject[0]}, {subject[1]}" if subject[0] in several else subject[0]


def _attributes(attributes: Sequence[str]) -> str:
    return words.attributes(attributes) if attributes else "all"


def _pair(row: ModelPair, several: frozenset[str], alpha: float) -> tuple[str, ...]:
    first, second = (_name((side.model, side.format), several) for side in (row.first, row.second))
    p = row.p_adjusted
    shown = p is not None and p <= alpha
    return (
        _attributes(row.attributes),
        first,
        second,
        words.count(row.n),
        f"{points(row.value)} ({points(row.low)} to {points(row.high)})",
        "–" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001",
        words.verdict("not_tested" if p is None else "shown" if shown else "not_determined"),
    )


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.0312), points(-0.5), points(0.0)
    ('+3.1', '−50.0', '0.0')
    """
    text = f"{abs(100 * share):.1f}"
    return text if float(text) == 0 else f"{'+' if share > 0 else '−'}{text}"
