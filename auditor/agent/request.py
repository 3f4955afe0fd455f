"""What a planner may ask for: a closed list of fields, each with a closed range.

The model under test, the texts, the bound δ, prices, parser, cache and folders belong to the user. They are not
fields here, so no planner can name a path, a ``python:`` function or a command.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from auditor.core.errors import ConfigError

Purpose = Literal["pilot", "fresh", "search"]
PURPOSES = ("pilot", "fresh", "search")
SUITES = ("mutation", "grammar")
STRATEGIES = ("exhaustive", "adaptive")
SCOPES = ("text", "term", "occurrence")
MAX_TEXTS, MAX_PER_SEED, MAX_REPLICATES, MAX_ORDER = 5000, 32, 10, 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One run that a planner proposes.

    Attributes
    ----------
    purpose : {"pilot", "fresh", "search"}
        A pilot looks where to look; a fresh run asks texts that no run of the session has asked, and alone can
        settle a question; a search goes through texts that were asked before.
    texts : int
        How many texts (cases, for a grammar).
    attributes : tuple of str or None
        None means those that the texts name.
    groups : tuple of str
        ``attribute:group``; only changes that lead to one of these groups, or from one to any other; of
        ``attribute:group/group`` those between the two. Empty: all.
    """

    purpose: Purpose
    texts: int
    attributes: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    order: int = 2
    suite: str = "mutation"
    per_seed: int = 4
    replicates: int | None = None
    insertions: bool = False
    strategy: str = "exhaustive"
    scope: str = "text"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in the form that `checked` reads."""
        values = dataclasses.asdict(self)
        values["attributes"] = None if self.attributes is None else list(self.attributes)
        values["groups"] = list(self.groups)
        return values


FIELDS = tuple(f.name for f in dataclasses.fields(Request))


def checked(values: Mapping[str, Any], *, attributes: Collection[str]) -> Request:
    """The request in ``values``, or an error that names the field.

    Parameters
    ----------
    values : mapping
        Untrusted. Types are taken as they are: ``"3"`` is no number, ``True`` neither.
    attributes : collection of str
        The attributes there are.

    Raises
    ------
    ConfigError
        An unknown field, a wrong type, or a value out of range.

    Examples
    --------
    >>> checked({"purpose": "pilot", "texts": 20}, attributes=("age",)).order
    2
    """
    for name in values:
        if name not in FIELDS:
            raise ConfigError(f"{str(name)[:40]!r} is not a field of a plan; fields: {', '.join(FIELDS)}")
    for name in ("purpose", "texts"):
        if name not in values:
            raise ConfigError(f"the plan has no {name!r}")
    given = dict(values)
    for name, allowed in (
        ("purpose", PURPOSES), ("suite", SUITES), ("strategy", STRATEGIES), ("scope", SCOPES)
    ):  # fmt: skip
        value = given.get(name)
        if name in given and not (isinstance(value, str) and value in allowed):
            raise ConfigError(f"{name} must be one of {', '.join(allowed)}")
    for name, most in (
        ("texts", MAX_TEXTS), ("per_seed", MAX_PER_SEED), ("replicates", MAX_REPLICATES), ("order", MAX_ORDER)
    ):  # fmt: skip
        value = given.get(name)
        if name in given and not (name == "replicates" and value is None) and not _whole(value, most):
            raise ConfigError(f"{name} must be a whole number from 1 to {most}")
    if "insertions" in given and not isinstance(given["insertions"], bool):
        raise ConfigError("insertions must be true or false")
    given["attributes"] = _attributes(given.get("attributes"), attributes)
    given["groups"] = _groups(given.get("groups", []), given["attributes"])
    if given["groups"] and given.get("suite") == "grammar":
        raise ConfigError("groups belong to the suite mutation")
    if given.get("insertions") and given.get("suite") == "grammar":
        raise ConfigError("insertions belong to the suite mutation")
    return Request(**given)


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _attributes(value: object, known: Collection[str]) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) for v in value):
        raise ConfigError("attributes must be a list of names, or null for those that the texts name")
    unknown = sorted({v for v in value if v not in known})
    if unknown:
        raise ConfigError(f"unknown attribute {unknown[0][:40]!r}; known: {', '.join(sorted(known))}")
    return tuple(sorted(set(value)))


def _groups(value: object, attributes: Collection[str] | None) -> tuple[str, ...]:
    from auditor.perturb import dictionaries

    if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise ConfigError("groups must be a list of ATTRIBUTE:GROUP")
    for one in value:
        attribute, _, group = one.partition(":")
        if attribute not in (dictionaries.builtin() if attributes is None else attributes):
            raise ConfigError(f"groups: {attribute[:40]!r} is not among the attributes")
        known = sorted(dictionaries.load(attribute).groups)
        for name in group.split("/", 1):
            if name not in known:
                raise ConfigError(f"unknown group {name[:40]!r} of {attribute}; known: {', '.join(known)}")
    return tuple(sorted(set(value)))
