"""From verdicts to rates: the ``estimates`` of a run record.

Every rate is by seed: a case is made from one seed, and its variants are not independent of each other.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from operator import add
from typing import Any, NamedTuple, Protocol

from auditor.core.types import Estimate, Verdict
from auditor.measure.intervals import clopper_pearson, korn_graubard
from auditor.measure.noise import noise_floor

Direction = tuple[str, str, str]  # attribute, source group, target group
Labels = Mapping[tuple[str, str], Mapping[str, Sequence[Hashable]]]  # (case, format) -> variant -> labels


class Edited(Protocol):
    """What the statistics need to know of a variant."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Its (attribute, source group, target group)."""
        ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """The distinct kinds of its edits, repairs left out."""
        ...


class EditInfo(NamedTuple):
    """The plainest `Edited`."""

    directions: tuple[Direction, ...]
    kinds: tuple[str, ...]


class Key(NamedTuple):
    """What a rate is about."""

    model: str
    format: str
    attributes: tuple[str, ...]
    directions: tuple[Direction, ...] | None = None
    kind: str | None = None


class Counts(NamedTuple):
    """One seed's variants under one `Key`."""

    judged: int = 0
    violations: int = 0
    hidden: int = 0
    unsettled: int = 0  # joint violations of which it cannot be said whether they are hidden
    lost: int = 0  # skipped or inconclusive


Table = dict[Key, dict[str, Counts]]  # key -> case id -> counts


def tabulate(
    verdicts: Iterable[Verdict], edits: Mapping[str, Edited], *, directed: Container[str] = frozenset()
) -> Table:
    """Count verdicts by what they are about and by seed, in one pass.

    Parameters
    ----------
    verdicts : iterable of Verdict
        With model, format and ``hidden`` filled in.
    edits : mapping of str to Edited
        Directions and kinds by variant id.
    directed : container of str
        Ids of cases that were chosen because of earlier verdicts; they enter no rate.
    """
    table: Table = defaultdict(dict)
    # A run has many cells, and few different counts, places and sums: each of these is made once.
    none = Counts()
    sums: dict[tuple[Counts, Counts], Counts] = {}
    known: dict[Counts, Counts] = {none: none}
    places: dict[tuple[str, str, tuple[str, ...], int], tuple[Edited, list[dict[str, Counts]]]] = {}
    for v in verdicts:
        case_id = v.case_id
        if case_id in directed:
            continue
        about = edits[v.variant_id]
        place = v.model, v.format, v.attributes, id(about)
        if place not in places:  # with `about`, whose id must not be given to another
            places[place] = about, [table[key] for key in _keys(v, about)]
        more = _one(v)
        for cells in places[place][1]:
            before = cells.get(case_id, none)
            total = sums.get((before, more))
            if total is None:
                made = Counts._make(map(add, before, more))
                total = sums[before, more] = known.setdefault(made, made)
            cells[case_id] = total
    return table


def _keys(v: Verdict, about: Edited) -> tuple[Key, Key, Key]:
    """What a verdict counts for: its attributes, their directions, and the kind of its edits."""
    base = Key(v.model, v.format, v.attributes)
    kind = about.kinds[0] if len(about.kinds) == 1 else "mixed"
    return base, base._replace(directions=about.directions), base._replace(kind=kind)


_LOST, _PASS, _SHOWN = Counts(lost=1), Counts(judged=1), Counts(judged=1, violations=1)
_HIDDEN, _UNSETTLED = _SHOWN._replace(hidden=1), _SHOWN._replace(unsettled=1)


def _one(v: Verdict) -> Counts:
    """The counts of one verdict."""
    if v.outcome == "pass":
        return _PASS
    if v.outcome != "violation":
        return _LOST
    if v.hidden is None and v.order > 1:
        return _UNSETTLED
    return _HIDDEN if v.hidden else _SHOWN


def estimates(table: Table, level: float = 0.95) -> list[dict[str, Any]]:
    """The rates of a run as plain data, sorted; the names are those of the run record.

    For each model, format and attribute set: ``violation_rate`` (also by direction and by kind of edit),
    ``seed_violation_rate``, and for joint variants ``hidden_rate`` and ``hidden_share``. A joint violation
    with a subset that was not valid or not judged is left out of both hidden rates, and counted in the note.
    A rate without a judged seed is left out.
    """
    out: list[dict[str, Any]] = []
    for key in sorted(table, key=_sort_key):
        cells = list(table[key].values())
        for name, estimate in _rates(key, cells, level):
            out.append(
                {
                    "name": name,
                    "model": key.model,
                    "format": key.format,
                    "attributes": list(key.attributes),
                    "directions": None if key.directions is None else [list(d) for d in key.directions],
                    "kind": key.kind,
                    "estimate": dataclasses.asdict(estimate),
                }
            )
    return out


def violation_rate(cells: Iterable[Counts], level: float = 0.95) -> Estimate | None:
    """Share of judged variants that violate, by seed; None if no seed was judged."""
    return _share([(c.violations, c.judged) for c in cells], level)


def seed_violation_rate(cells: Iterable[Counts], level: float = 0.95) -> Estimate | None:
    """Share of judged seeds on which at least one variant violates; None if no seed was judged."""
    all_cells = list(cells)
    judged = [c for c in all_cells if c.judged]
    if not judged:
        return None
    hit = sum(c.violations > 0 for c in judged)
    return clopper_pearson(hit, len(judged), level, n_skipped=len(all_cells) - len(judged))


def valid_share(valid: Mapping[str, Mapping[tuple[str, ...], Sequence[int]]]) -> list[dict[str, Any]]:
    """The ``valid_share`` estimates: how many generated variants were valid, by attribute set.

    Parameters
    ----------
    valid : mapping
        Case id → attribute set → (valid variants, all variants).
    """
    by_set: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for cell in valid.values():
        for attributes, (good, total) in cell.items():
            by_set[attributes].append((good, total))
    out = []
    for attributes in sorted(by_set, key=lambda a: (len(a), a)):
        estimate = _share(by_set[attributes], 0.95)
        if estimate is not None:
            out.append(
                {
                    "name": "valid_share",
                    "model": "",
                    "format": "",
                    "attributes": list(attributes),
                    "directions": None,
                    "kind": None,
                    "estimate": dataclasses.asdict(estimate),
                }
            )
    return out


def noise_of(labels: Labels) -> Estimate | None:
    """Same-prompt disagreement of one model over all its prompts; None if nothing was repeated.

    A seed asked in several formats is one seed.
    """
    by_case: dict[str, list[Sequence[Hashable]]] = defaultdict(list)
    for (case_id, _), arms in labels.items():
        by_case[case_id].extend(arms.values())
    return noise_floor(by_case.values())


def percent(share: float, *, up: bool = False) -> str:
    """A share as a percentage, without ever rounding something to 0 or 100.

    ``up`` never rounds down, for what holds from a limit on: a smallest delta of 16.4 % is no 16 %.

    Examples
    --------
    >>> percent(0.1641), percent(0.1641, up=True), percent(0.9999, up=True)
    ('16', '17', '99.99')
    >>> [percent(x) for x in (0.0, 0.0004, 0.0414, 0.2646, 0.9996, 1.0)]
    ['0', '0.04', '4.1', '26', '99.96', '100']
    """
    if up:
        digits = len(percent(share).partition(".")[2])
        scale = 10**digits
        value = math.ceil(100 * share * scale - 1e-6) / scale
        return f"{value:.{digits if value < 10 or value > 99 else 0}f}" if value < 100 else "100"
    if share <= 0.0 or share >= 1.0:
        return "0" if share <= 0.0 else "100"
    if 0.0995 <= share <= 0.99:
        return f"{100 * share:.0f}"
    for digits in range(1, 16):
        text = f"{100 * share:.{digits}f}"
        if float(text) not in (0.0, 100.0):
            return text
    return "0" if share < 0.5 else "100"


def with_interval(estimate: Estimate | Mapping[str, Any]) -> str:
    """A rate with its interval, as reports print it.

    Examples
    --------
    >>> from auditor.measure.intervals import korn_graubard
    >>> with_interval(korn_graubard([0] * 12, [1] * 12))
    '0 % (0–26 %)'
    """
    plain = dataclasses.asdict(estimate) if isinstance(estimate, Estimate) else estimate
    return f"{percent(plain['value'])} % ({percent(plain['low'])}–{percent(plain['high'])} %)"


def _share(cells: Sequence[tuple[int, int]], level: float) -> Estimate | None:
    judged = [(x, n) for x, n in cells if n]
    if not judged:
        return None
    x, n = zip(*judged, strict=True)
    return korn_graubard(x, n, level, n_skipped=len(cells) - len(judged))


def _rates(key: Key, cells: Sequence[Counts], level: float) -> list[tuple[str, Estimate]]:
    found: list[tuple[str, Estimate | None]] = [("violation_rate", violation_rate(cells, level))]
    if key.directions is None and key.kind is None:
        found.append(("seed_violation_rate", seed_violation_rate(cells, level)))
        if len(key.attributes) > 1:
            unsettled = sum(c.unsettled for c in cells)
            rate = _share([(c.hidden, c.judged - c.unsettled) for c in cells], level)
            share = _share([(c.hidden, c.violations - c.unsettled) for c in cells if c.violations], level)
            found += [("hidden_rate", _noted(rate, unsettled)), ("hidden_share", _noted(share, unsettled))]
    return [(name, estimate) for name, estimate in found if estimate is not None]


def _noted(estimate: Estimate | None, unsettled: int) -> Estimate | None:
    if estimate is None or not unsettled:
        return estimate
    note = f"{unsettled} joint violations left out: a subset was not valid or not judged"
    return dataclasses.replace(estimate, note="; ".join(filter(None, (estimate.note, note))))


def _sort_key(key: Key) -> tuple[Any, ...]:
    return (key.model, key.format, len(key.attributes), key.attributes, key.kind or "", key.directions or ())
