"""Pairs of texts that the user brings: asked as they are. No dictionary changes them, and no check leaves any out."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.protocols import Suite
from auditor.core.types import Case, Check, Edit, Variant, id_of
from auditor.tasks.seeds import from_file, text_file

FIRST, SECOND = "text_a", "text_b"
WITHOUT = "group"  # what the attribute is called where no column says it
PLACEBO = "placebo"
TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
Groups = tuple[tuple[str, str, str], ...]  # attribute, group of the first text, of the second


class Pair(NamedTuple):
    """Two texts that differ in who they are about, or in nothing that concerns a person."""

    text: str
    other: str
    groups: Groups
    placebo: bool
    label: str | None


class Span(NamedTuple):
    """A piece of the first text, and what stands there in the second."""

    start: int
    end: int
    source: str
    target: str


def spans(first: str, second: str) -> list[Span]:
    """What differs, word by word; changes with nothing but white space between them are one."""
    a, b = TOKEN.findall(first), TOKEN.findall(second)
    out: list[Span] = []
    at = new = 0
    for tag, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        source, target = "".join(a[i:j]), "".join(b[k:m])
        if tag != "equal":
            last = out[-1] if out else None
            between = first[last.end : at] if last else ""
            if last and not between.strip():
                out[-1] = Span(
                    last.start, at + len(source), last.source + between + source, last.target + between + target
                )
            else:
                out.append(Span(at, at + len(source), source, target))
        at, new = at + len(source), new + len(target)
    return out


def edits(pair: Pair) -> tuple[Edit, ...]:
    """What is changed from the first text to the second; where two attributes change, every span is of both."""
    changed = [(a, g, g) for a, g, _ in pair.groups] if pair.placebo else [g for g in pair.groups if g[1] != g[2]]
    return tuple(
        Edit(
            attribute=attribute,
            kind="placebo" if pair.placebo else "swap" if span.source else "insertion",
            source_group=before,
            target_group=after,
            source=span.source,
            target=span.target,
            where=(span.start, span.end),
        )
        for attribute, before, after in changed
        for span in spans(pair.text, pair.other)
    )


def suite_of(plan: Plan) -> Pairs | None:
    """The pairs that the file of texts of a plan holds, where it holds pairs."""
    if plan.data is None or not is_pairs(plan.data):
        return None
    refused = {
        "--suite": plan.suite != "mutation",
        "--protocol": plan.protocol != "default",
        "--dictionary": plan.dictionaries,
        "--attributes": plan.attributes,
        "--groups": plan.groups,
        "--carrier": plan.carrier,
        "--wordings": plan.wordings > 1,
        "--until-decided": plan.until_decided,
    }
    for flag in (flag for flag, asked in refused.items() if asked):
        raise ConfigError(f"{plan.data} holds pairs of texts, which are asked as they are; leave {flag} out.")
    return Pairs(str(plan.data), limit=plan.limit)


def is_pairs(data: str) -> bool:
    """Whether a file of texts holds two of them in a row."""
    if data.startswith("hf:") or not Path(data).is_file() or Path(data).suffix.lower() == ".txt":
        return False
    columns, rows = from_file(Path(data), text_file(Path(data)), FIRST)
    names = columns if columns is not None else next((list(row) for _, row in rows), [])
    return FIRST in names and SECOND in names


class Pairs(Suite):
    """Cases of a file with the columns ``text_a`` and ``text_b``.

    The groups stand in ``group_a`` and ``group_b`` (``attribute`` says of what), or in a pair of columns for each
    attribute: ``gender_a`` and ``gender_b``. ``arm`` marks placebo pairs, as do equal groups; ``label`` is the outcome
    that was right.
    Rows with the same first text are one case.
    """

    name = "pairs.v1"

    def __init__(self, source: str, *, limit: int | None = None) -> None:
        path = Path(source)
        raw = text_file(path)
        self.sha256, self.source = hashlib.sha256(raw).hexdigest(), source
        _, rows = from_file(path, raw, FIRST)
        by_text: dict[str, list[Pair]] = {}
        self.rows = 0
        for where, row in rows:
            if limit is not None and self.rows == limit:
                break
            self.rows += 1
            pair = self._pair(f"{source}, {where}", row)
            if pair is not None:
                # A placebo stands beside one attribute; its prompt is asked once all the same.
                apart = [pair._replace(groups=(one,)) for one in pair.groups] if pair.placebo else [pair]
                by_text.setdefault(pair.text, []).extend(apart)
        if not by_text:
            lost = ", ".join(f"{n} {reason}" for reason, n in self.skipped.most_common())
            raise DataFileError(f"{source}: no pair of texts ({lost or 'no rows'})")
        self.texts = len(by_text)
        self.groups: dict[str, set[str]] = {}
        for attribute, *both in (one for pairs in by_text.values() for pair in pairs for one in pair.groups):
            self.groups.setdefault(attribute, set()).update(both)
        cases = [_case(text, pairs) for text, pairs in by_text.items()]
        self.checks = {v.id: Check(variant_id=v.id, check=self.name, status="valid") for c in cases for v in c.variants}
        self._cases = iter(cases)

    def _pair(self, where: str, row: Mapping[str, object]) -> Pair | None:
        first, second = row.get(FIRST), row.get(SECOND)
        if not isinstance(first, str) or not isinstance(second, str) or not first.strip() or not second.strip():
            self.skipped["one text is missing"] += 1
            return None
        groups = _groups(row)
        if not groups:
            raise DataFileError(
                f"{where}: no groups. Give them in group_a and group_b (and their attribute in attribute), or in a "
                "pair of columns for each attribute, such as gender_a and gender_b"
            )
        placebo = _text(row.get("arm")) == PLACEBO or all(before == after for _, before, after in groups)
        if first == second:
            self.skipped["both texts are the same"] += 1
            return None
        return Pair(first, second, groups, placebo, _text(row.get("label")) or None)

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """The next ``n`` texts with their pairs."""
        return [case for case, _ in zip(self._cases, range(n), strict=False)]

    def describe(self) -> Mapping[str, object]:
        """The file that was read."""
        return {"name": self.name, "sha256": self.sha256, "rows": self.rows}


def _case(text: str, pairs: Sequence[Pair]) -> Case:
    name = id_of("c", ["pairs", text])
    variants: dict[tuple[str, Groups], Variant] = {}
    for pair in pairs:
        kind = "p" if pair.placebo else "v"
        groups = {a: g if pair.placebo else after for a, g, after in pair.groups}
        variants.setdefault(
            (pair.other, pair.groups),
            Variant(id=f"{name}.{kind}{len(variants)}", input=pair.other, groups=groups, edits=edits(pair)),
        )
    own = {a: before for pair in pairs for a, before, _ in pair.groups}
    label = next((pair.label for pair in pairs if pair.label), None)
    original = Variant(id=f"{name}.o", input=text, groups=own)
    return Case(id=name, suite=Pairs.name, original=original, variants=tuple(variants.values()), label=label)


def _groups(row: Mapping[str, object]) -> Groups:
    groups = []
    for name, value in row.items():
        attribute = name.removesuffix("_a")
        if attribute == name or name == FIRST or f"{attribute}_b" not in row:
            continue
        before, after = _text(value), _text(row[f"{attribute}_b"])
        if before and after:
            named = (_text(row.get("attribute")) or WITHOUT) if attribute == WITHOUT else attribute
            groups.append((named, before, after))
    return tuple(sorted(groups))


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
