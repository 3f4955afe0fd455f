"""The tables and figures of the HInter paper's results, as counts for any set of models.

`statistics` counts one pair of attributes. The paper's Table 9 and Figures 4, 5, 7, 8 and 10 are over
all pairs: there a text counts once however many pairs it was changed in, so the totals cannot be added up from
pairs. Figure 11 needs each attribute's atomic errors by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from auditor.contrib.hinter.statistics import Level, Mutant, Split, is_error, level, split


@dataclass(frozen=True, kw_only=True, slots=True)
class Regions:
    """Original texts by which of three kinds of mutant is an error: one Venn diagram of Figure 11.

    Attributes
    ----------
    attributes : (str, str)
        The pair.
    counts : mapping of str to int
        Texts for each combination of "first", "second" (atomic mutants of either attribute) and "joint", joined
        by "+", all eight of them; "" are those without an error. Texts with at least one judged joint mutant.
    """

    attributes: tuple[str, str]
    counts: Mapping[str, int]

    def as_record(self) -> dict[str, object]:
        """Plain data."""
        return {"attributes": list(self.attributes), "counts": dict(self.counts)}


REGIONS = ("joint", "first+joint", "second+joint", "first+second+joint", "first+second", "first", "second", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """One model over all pairs of attributes, or several models added up.

    Attributes
    ----------
    joint, atomic : Level
        Mutants of two attributes and of one.
    split : Split
        Joint and atomic errors beside each other.
    """

    joint: Level
    atomic: Level
    split: Split

    @property
    def every(self) -> Level:
        """Both orders together; a text with mutants of both orders counts twice among its originals."""
        return _added([self.joint, self.atomic])

    def as_record(self) -> dict[str, object]:
        """Counts and shares as plain data."""
        both = self.every.as_record()
        for name in ("originals", "originals_with_error", "originals_with_error_share"):
            del both[name]
        return {
            "joint": self.joint.as_record(),
            "atomic": self.atomic.as_record(),
            "both": both,
            **self.split.as_record(),
        }


def totals(mutants: Iterable[Mutant]) -> Totals:
    """Count the mutants of one model, whatever their attributes; those of three and more are left out.

    Examples
    --------
    >>> found = totals([
    ...     Mutant(id="a", original="o", attributes=("gender",), valid=True, error=True),
    ...     Mutant(id="b", original="o", attributes=("race",), valid=True, error=False),
    ...     Mutant(id="ab", original="o", attributes=("gender", "race"), valid=True, error=True,
    ...            parts=("a", "b")),
    ... ])
    >>> found.joint.errors, found.atomic.errors, found.split.hidden, found.split.atomic_with_joint
    (1, 1, 0, 1)
    """
    every = list(mutants)
    atomic = {m.id: m for m in every if len(m.attributes) == 1}
    joint = [m for m in every if len(m.attributes) == 2]
    return Totals(joint=level(joint), atomic=level(list(atomic.values())), split=split(joint, atomic))


def added(parts: Sequence[Totals]) -> Totals:
    """Add up models: a text counts once for each of them."""
    return Totals(
        joint=_added([p.joint for p in parts]),
        atomic=_added([p.atomic for p in parts]),
        split=Split(**{f.name: sum(getattr(p.split, f.name) for p in parts) for f in fields(Split)}),
    )


def _added(levels: Sequence[Level]) -> Level:
    return Level(**{f.name: sum(getattr(one, f.name) for one in levels) for f in fields(Level)})


def regions(mutants: Iterable[Mutant]) -> list[Regions]:
    """Figure 11: the original texts of each pair of attributes, by what shows an error.

    Examples
    --------
    >>> found, = regions([
    ...     Mutant(id="a", original="o", attributes=("gender",), valid=True, error=True),
    ...     Mutant(id="b", original="o", attributes=("race",), valid=True, error=False),
    ...     Mutant(id="ab", original="o", attributes=("gender", "race"), valid=True, error=True,
    ...            parts=("a", "b")),
    ... ])
    >>> found.attributes, found.counts["first+joint"]
    (('gender', 'race'), 1)
    """
    tested: dict[tuple[str, str], set[str]] = {}
    by_joint: dict[tuple[str, str], set[str]] = {}
    by_atomic: dict[str, set[str]] = {}
    for m in mutants:
        if len(m.attributes) == 1:
            if is_error(m):
                by_atomic.setdefault(m.attributes[0], set()).add(m.original)
        elif len(m.attributes) == 2:
            first, second = sorted(m.attributes)
            tested.setdefault((first, second), set())
            if m.valid and m.error is not None:
                tested[first, second].add(m.original)
            if is_error(m):
                by_joint.setdefault((first, second), set()).add(m.original)
    out = []
    for pair in sorted(tested):
        sets = {
            "first": by_atomic.get(pair[0], set()),
            "second": by_atomic.get(pair[1], set()),
            "joint": by_joint.get(pair, set()),
        }
        counts = dict.fromkeys(REGIONS, 0)
        for original in tested[pair]:
            counts["+".join(name for name, found in sets.items() if original in found)] += 1
        out.append(Regions(attributes=pair, counts=counts))
    return out


def record(models: Mapping[str, Sequence[Mutant]]) -> dict[str, object]:
    """Everything that the tables and figures show, as plain data.

    Parameters
    ----------
    models : mapping of str to sequence of Mutant
        The mutants by model.

    Returns
    -------
    dict
        ``models``: name → totals and ``regions``; ``all``: their sum.
    """
    counted = {name: totals(mutants) for name, mutants in models.items()}
    return {
        "models": {
            name: {**counted[name].as_record(), "regions": [r.as_record() for r in regions(mutants)]}
            for name, mutants in models.items()
        },
        "all": added(list(counted.values())).as_record(),
    }
