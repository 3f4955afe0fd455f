"""Cases and checks as plain tuples, which cross between processes several times faster than the values do.

The names of fields and the classes of values stay behind; strings that many variants share travel once.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from auditor.core.types import Case, Check, Edit, Variant

_edit = attrgetter("attribute", "kind", "source_group", "target_group", "source", "target", "where")

PackedCase = tuple[Any, ...]


def pack(case: Case, checks: Mapping[str, Check]) -> PackedCase:
    """A case and the checks of its variants as nested tuples.

    Examples
    --------
    >>> case = Case(id="c", suite="s", original=Variant(id="c.o", input="A man."),
    ...             variants=(Variant(id="c.v0", input="A woman."),))
    >>> checks = {"c.v0": Check(variant_id="c.v0", check="dependency.v1", status="valid")}
    >>> unpack(pack(case, checks)) == (case, checks)
    True
    """
    variants = []
    for variant in case.variants:
        check = checks[variant.id]
        variants.append((*_packed(variant), check.check, check.status, check.reason))
    head = case.id, case.suite, case.sampling, case.label
    return (*head, _packed(case.original), variants)


def _packed(variant: Variant) -> tuple[Any, ...]:
    return variant.id, variant.input, dict(variant.groups), [_edit(edit) for edit in variant.edits]


def unpack(packed: PackedCase) -> tuple[Case, dict[str, Check]]:
    """The case and the checks that `pack` was given."""
    case_id, suite, sampling, label, original, rest = packed
    variants, checks = [], {}
    known: dict[tuple[Any, ...], Edit] = {}  # the variants of a case share most of their edits
    for variant_id, text, groups, edits, check, status, reason in rest:
        variants.append(Variant(id=variant_id, input=text, groups=groups, edits=_edits(edits, known)))
        checks[variant_id] = Check(variant_id=variant_id, check=check, status=status, reason=reason)
    first_id, text, groups, edits = original
    case = Case(
        id=case_id,
        suite=suite,
        sampling=sampling,
        label=label,
        original=Variant(id=first_id, input=text, groups=groups, edits=_edits(edits, known)),
        variants=tuple(variants),
    )
    return case, checks


def _edits(packed: list[tuple[Any, ...]], known: dict[tuple[Any, ...], Edit]) -> tuple[Edit, ...]:
    found = []
    for one in packed:
        edit = known.get(one)
        if edit is None:
            attribute, kind, source_group, target_group, source, target, where = one
            edit = known[one] = Edit(
                attribute=attribute,
                kind=kind,
                source_group=source_group,
                target_group=target_group,
                source=source,
                target=target,
                where=where,
            )
        found.append(edit)
    return tuple(found)
