"""What the model said of variants that failed the validity check (HInter RQ3.2): a figure about the check."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from auditor.core.types import Verdict
from auditor.measure.intervals import korn_graubard

EXEMPLARS = 20


def table(verdicts: Sequence[Verdict], valid: Iterable[Verdict]) -> dict[str, Any]:
    """How often the answer changed for discarded variants, beside valid ones of the same attributes.

    Parameters
    ----------
    verdicts : iterable of Verdict
        Of variants that the validity check discarded. They enter no other figure of a run.
    valid : iterable of Verdict
        Of the variants that were kept.

    Returns
    -------
    dict
        ``rows``: model, format, attributes, ``estimate`` (share of judged discarded variants whose answer
        changed, by seed), ``estimate_valid`` (the same for valid ones, None without any), and
        ``share_of_all_changes``: the part of all changes that would have been reported wrongly without the
        check, the paper's share of false positives. ``exemplars``: ids of changed discarded variants.
    """
    cells = _by_seed(verdicts)
    beside = _by_seed(valid)
    rows = []
    for key in sorted(cells, key=lambda k: (k[0], k[1], len(k[2]), k[2])):
        ours, kept = _rate(cells[key]), _rate(beside.get(key, {}))
        changed = sum(x for x, _ in cells[key].values())
        of_valid = sum(x for x, _ in beside.get(key, {}).values())
        rows.append(
            {
                "model": key[0],
                "format": key[1],
                "attributes": list(key[2]),
                "estimate": ours,
                "estimate_valid": kept,
                "changes": changed,
                "changes_valid": of_valid,
                "share_of_all_changes": changed / (changed + of_valid) if changed + of_valid else None,
            }
        )
    exemplars = sorted({v.variant_id for v in verdicts if v.outcome == "violation"})
    return {"rows": [r for r in rows if r["estimate"] is not None], "exemplars": exemplars[:EXEMPLARS]}


Cells = dict[tuple[str, str, tuple[str, ...]], dict[str, tuple[int, int]]]


def _by_seed(verdicts: Iterable[Verdict]) -> Cells:
    out: Cells = defaultdict(dict)
    for v in verdicts:
        if v.outcome in ("pass", "violation"):
            seeds = out[v.model, v.format, v.attributes]
            changed, judged = seeds.get(v.case_id, (0, 0))
            seeds[v.case_id] = changed + (v.outcome == "violation"), judged + 1
    return out


def _rate(seeds: dict[str, tuple[int, int]]) -> dict[str, Any] | None:
    if not seeds:
        return None
    changed, judged = zip(*seeds.values(), strict=True)
    return dataclasses.asdict(korn_graubard(changed, judged))
