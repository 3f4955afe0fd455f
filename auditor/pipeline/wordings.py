"""Further wordings of the texts of a round: made of neutral edits and of variants that passed the check."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from auditor.suites.wordings import worded
from auditor.types import Case, Check, draws_of

TRIED = 8  # neutral edits that are checked for each wording wanted, and pairs of them


def checked(gate: Any, cases: Sequence[Case]) -> dict[str, Check]:
    """The check of every variant of ``cases``."""
    return {check.variant_id: check for one in gate.check_many(cases) for check in one}


def with_wordings(
    cases: Sequence[Case], checks: Mapping[str, Check], gate: Any, placebos: Any, *, n: int, seed: int
) -> tuple[list[Case], dict[str, Check]]:
    """Cases with ``n`` further wordings of both sides, and the checks of these.

    Parameters
    ----------
    cases : sequence of Case
        With their placebo variants; cases of a search stay as they are.
    checks : mapping of str to Check
        Of their variants. One that failed gets no further wording.
    gate : ValidityCheck
        What checks the neutral edits too, and then every new version.
    placebos : object
        ``neutral(case, most, rng)`` gives the original with neutral words changed.
    n, seed : int
        How many; with the case id, ``seed`` determines every choice.
    """
    tried: dict[str, Case] = {}
    for case in cases:
        if case.sampling == "iid":
            rng = Random(f"{seed}:{draws_of(case.id)}:wording")
            tried[case.id] = dataclasses.replace(case, variants=placebos.neutral(case, TRIED * n, rng))
    fine = checked(gate, list(tried.values()))
    added: dict[str, Case] = {}
    for case in cases:
        if case.id in tried:
            neutral = [v.edits for v in tried[case.id].variants if fine[v.id].status != "invalid"]
            good = [v for v in case.variants if checks[v.id].status != "invalid"]
            new = worded(dataclasses.replace(case, variants=tuple(good)), n, neutral)
            added[case.id] = dataclasses.replace(case, variants=new)
    found = checked(gate, list(added.values()))
    return [
        dataclasses.replace(c, variants=(*c.variants, *added[c.id].variants)) if c.id in added else c
        for c in cases
    ], found
