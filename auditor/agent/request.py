"""What a planner may ask for: a closed list of fields, each with a closed range.

The model under test, the texts, the bound δ, prices, parser, cache and folders belong to the user. They are not
fields here, so no planner can name a path, a ``python:`` function or a command.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from auditor.core.errors import ConfigError
from auditor.core.plan import Scope, Strategy

Purpose = Literal["pilot", "fresh", "search"]
GROUPS = (
    "ATTRIBUTE:GROUP, such as age:old; only changes to these groups or from them; gender:female/male: between the two. "
    "Empty: all."
)


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    texts: Annotated[int, Meta(ge=1, le=5000)]
    attributes: tuple[str, ...] | None = None
    groups: Annotated[tuple[str, ...], Meta(description=GROUPS)] = ()
    order: Annotated[int, Meta(ge=1, le=4)] = 2
    suite: Literal["mutation", "grammar"] = "mutation"
    per_seed: Annotated[int, Meta(ge=1, le=32)] = 4
    replicates: Annotated[int, Meta(ge=1, le=10)] | None = None
    insertions: bool = False
    strategy: Strategy = "exhaustive"
    scope: Scope = "text"

    @property
    def grammar(self) -> bool:
        """Whether cases come from the grammar of the task."""
        return self.suite == "grammar"

    def as_dict(self) -> dict[str, object]:
        """Plain data, in the form that `checked` reads."""
        return plain(self)


def plain(value: msgspec.Struct) -> dict[str, Any]:
    """A record as JSON holds it."""
    return dict(msgspec.json.decode(msgspec.json.encode(value)))


def checked(values: Mapping[str, object], *, attributes: Collection[str]) -> Request:
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
    from auditor.perturb import dictionaries

    try:
        request = msgspec.convert(dict(values), Request)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the plan: {error}") from None
    if unknown := sorted(set(request.attributes or ()) - set(attributes)):
        raise ConfigError(f"unknown attribute {unknown[0][:40]!r}; known: {', '.join(sorted(attributes))}")
    if request.attributes == ():
        raise ConfigError("attributes must be a list of names, or null for those that the texts name")
    for one in request.groups:
        attribute, _, group = one.partition(":")
        if attribute not in (dictionaries.builtin() if request.attributes is None else request.attributes):
            raise ConfigError(f"groups: {attribute[:40]!r} is not among the attributes")
        known = sorted(dictionaries.load(attribute).groups)
        for name in group.split("/", 1):
            if name not in known:
                raise ConfigError(f"unknown group {name[:40]!r} of {attribute}; known: {', '.join(known)}")
    if request.grammar and (request.groups or request.insertions):
        raise ConfigError("groups and insertions belong to the suite mutation")
    return msgspec.structs.replace(
        request,
        attributes=None if request.attributes is None else tuple(sorted(set(request.attributes))),
        groups=tuple(sorted(set(request.groups))),
    )
