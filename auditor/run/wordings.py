"""Further wordings of the texts of a round: made of neutral edits and of variants that passed the check."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from auditor.core.types import Case, Check, draws_of
from auditor.perturb.irrelevant import is_irrelevant
from auditor.perturb.name_lines import line_end
from auditor.perturb.wordings import unframed, worded

TRIED = 8  # neutral edits that are checked for each wording wanted, and pairs of them


def checked(gate: Any, cases: Sequence[Case]) -> dict[str, Check]:
    """The check of every variant of ``cases``.

    What lies in a line in front of a text alone, and what the task names as irrelevant, needs no parse.
    """
    found: dict[str, Check] = {}
    for case in cases:
        end = line_end(case)
        for v in case.variants:
            inside = all(isinstance(e.where, tuple) and e.where[1] < end for e in v.edits)
            if inside or is_irrelevant(v.edits):
                found[v.id] = Check(variant_id=v.id, check=case.suite, status="valid")
    left = [dataclasses.replace(case, variants=tuple(v for v in case.variants if v.id not in found)) for case in cases]
    return found | {check.variant_id: check for one in gate.check_many(left) for check in one}


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
        ``neutral(case, most, rng)`` gives the original in other neutral words; ``primary`` are the pairs of groups
        that are compared first.
    n, seed : int
        How many; with the case id, ``seed`` determines every choice.
    """
    tried: dict[str, Case] = {}
    for case in cases:
        if case.sampling == "iid" and not line_end(case):  # the names of a line are its wordings
            rng = Random(f"{seed}:{draws_of(case.id)}:wording")
            tried[case.id] = dataclasses.replace(case, variants=placebos.neutral(case, TRIED * n, rng))
    fine = checked(gate, _bare(tried.values()))
    added: dict[str, Case] = {}
    for case in cases:
        if case.id in tried:
            neutral = [v.edits for v in tried[case.id].variants if fine[v.id].status != "invalid"]
            good = [v for v in case.variants if checks[v.id].status != "invalid"]
            new = worded(dataclasses.replace(case, variants=tuple(good)), n, neutral, placebos.primary)
            added[case.id] = dataclasses.replace(case, variants=new)
    found = checked(gate, _bare(added.values()))
    return [
        dataclasses.replace(c, variants=(*c.variants, *added[c.id].variants)) if c.id in added else c for c in cases
    ], found


def _bare(cases: Iterable[Case]) -> list[Case]:
    """Cases as they are checked: a sentence before or after a text changes no other sentence."""
    return [dataclasses.replace(c, variants=tuple(unframed(v, c.original) for v in c.variants)) for c in cases]
