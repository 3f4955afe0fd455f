"""Which groups a goal compares with each other: those before and those behind a word that compares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

from auditor.core.errors import ConfigError

THAN = re.compile(r"\b(?:than|versus|vs|compared (?:to|with)|as opposed to|instead of|over(?![ -]?\d))\b")
# These compare only two groups, and only where the goal asks for a difference.
AND = re.compile(r"\b(?:and|or|from)\b")
DIFFERENCE = re.compile(r"\b(?:between|differ\w*|equal\w*|unequal\w*|same|alike|gap|prefer\w*|rather)\b")
SIDE_BY_SIDE = re.compile(r",(?=.*\b(?:and|or)\b)|\b(?:and|or|nor|as well as|than|versus|vs|plus)\b")
Place = tuple[int, str, str]  # where in a goal a group is named: its attribute and name


def compared(plain: str, places: Iterable[Place]) -> dict[str, set[str]]:
    """The groups that a goal compares the others of their attribute with.

    Parameters
    ----------
    plain : str
        The goal in lower case.
    places : iterable of (int, str, str)
        Where it names which group of which attribute.

    Returns
    -------
    dict of str to set of str
        Attribute → the groups behind the word that compares. Attributes are left out where it stands before or
        behind all of their groups, or between two mentions of one.

    Examples
    --------
    >>> compared("women vs men", [(0, "gender", "female"), (9, "gender", "male")])
    {'gender': {'male'}}
    >>> compared("women and men", [(0, "gender", "female"), (10, "gender", "male")])
    {}
    """
    by_attribute: dict[str, list[tuple[int, str]]] = {}
    for start, attribute, group in places:
        by_attribute.setdefault(attribute, []).append((start, group))
    words = [(match.start(), True) for match in THAN.finditer(plain)]
    if DIFFERENCE.search(plain):
        words += [(match.start(), False) for match in AND.finditer(plain)]
    out: dict[str, set[str]] = {}
    for attribute, named in by_attribute.items():
        for at, strong in words:
            before, behind = ({g for start, g in named if (start < at) is side} for side in (True, False))
            if before and behind and not before & behind and (strong or len(named) == 2):
                out[attribute] = behind
                break
    return out


def side_by_side(plain: str, places: Iterable[Place]) -> list[dict[str, str]]:
    """Attribute → group of each group of people that stands beside others."""
    cuts = [match.start() for match in SIDE_BY_SIDE.finditer(plain)]
    parts: dict[int, dict[str, str]] = {}
    for start, attribute, group in places:
        parts.setdefault(sum(cut < start for cut in cuts), {})[attribute] = group
    return [parts[place] for place in sorted(parts)]


def refuse_several(plain: str, places: Iterable[Place], against: Set[str]) -> None:
    """Ask back where several groups of several attributes stand side by side: their parts would be crossed.

    Raises
    ------
    ConfigError
        They do, and are not compared with each other (``against``: the attributes that are).
    """
    joint = [part for part in side_by_side(plain, places) if len(part) > 1]
    others = [part for part in joint if part.keys() != joint[0].keys() or not against & part.keys()]
    if len(joint) > 1 and others:
        listed = "; ".join(" and ".join(f"{a}: {g}" for a, g in sorted(part.items())) for part in joint)
        raise ConfigError(
            f"The goal names {len(joint)} groups of several attributes each ({listed}), and a session would mix them. "
            "Ask about each in a goal of its own."
        )
