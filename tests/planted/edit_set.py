"""Texts that the mutation suite and the gate have to get right, and what checks them.

``edits/mutators.yaml`` holds defects of published tools and sentences that a mutator got wrong, ``edits/gates.yaml``
variants that a gate must refuse or let pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from auditor.core import reading
from auditor.core.protocols import Gate
from auditor.core.types import Edit, EditKind, SourceText, Variant
from auditor.perturb.dictionaries import load
from auditor.perturb.edits import apply
from auditor.perturb.matching import ALL, SUBJECT
from auditor.perturb.mutation import MutationSuite
from auditor.text.parse import Parser

Mutator = Callable[[str, str, str, str], list[str]]


@dataclass(frozen=True, kw_only=True)
class MutatorFixture:
    """One text and the acceptable results; none where the text does not name the source group."""

    id: str
    text: str
    attribute: str
    source_group: str
    target_group: str
    must_equal_one_of: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    why: str


@dataclass(frozen=True, kw_only=True)
class GateFixture:
    """One text with the edits of a variant, and whether a careful writer could have written the variant."""

    id: str
    text: str
    edits: tuple[Edit, ...]
    good: bool

    @property
    def original(self) -> Variant:
        return Variant(id="fixture.o", input=self.text)

    @property
    def variant(self) -> Variant:
        return Variant(id="fixture.v0", input=apply(self.text, self.edits), edits=self.edits)


def gate_fixture(name: str, text: str, *changes: str, good: bool) -> GateFixture:
    """A fixture from changes like ``attribute:old>new source=target``; each takes the next place of its source."""
    edits: list[Edit] = []
    at = 0
    for change in changes:
        attribute, old, new, source, target = re.match(r"(.*?):(.*?)>(\S*) (.*?)=(.*)", change).groups()  # type: ignore[union-attr]
        start, at = next(m.span() for m in re.compile(rf"(?<!\w){re.escape(source)}").finditer(text, at))
        kind: EditKind = "agreement" if old == "agreement" else "marking" if old == "unmarked" else "swap"
        edits.append(
            Edit(
                attribute=attribute, kind="placebo" if old == new else kind, source_group=old, target_group=new,
                source=source, target=target, where=(start, at),
            )
        )  # fmt: skip
    return GateFixture(id=name, text=text, edits=tuple(edits), good=good)


def _read(name: str) -> object:
    return reading.load_yaml(Path(__file__).with_name("edits") / f"{name}.yaml")


_MUTATORS = msgspec.convert(_read("mutators"), dict[str, tuple[MutatorFixture, ...]])
MUTATOR_FIXTURES, PERSON_FIXTURES = _MUTATORS["mutators"], _MUTATORS["persons"]
_GATES = {
    verdict: tuple(gate_fixture(name, *row, good=verdict == "good") for name, row in rows.items())
    for verdict, rows in msgspec.convert(_read("gates"), dict[str, dict[str, list[str]]]).items()
}
GATE_FIXTURES, UNMADE = _GATES["wrong"] + _GATES["good"], _GATES["unmade"]


def check_mutator(mutator: Mutator, fixtures: Iterable[MutatorFixture] = MUTATOR_FIXTURES) -> dict[str, str]:
    """What is wrong, by fixture: each output must be acceptable, and there must be one where the group is named."""
    made = {one: mutator(one.text, one.attribute, one.source_group, one.target_group) for one in fixtures}
    return {one.id: problem for one, output in made.items() if (problem := _problem(one, output))}


def _problem(one: MutatorFixture, output: list[str]) -> str:
    for text in output:
        for bad in one.must_not_contain:
            if re.search(rf"(?<!\w){re.escape(bad)}", text.lower()):
                return f"contains {bad!r} ({one.why})"
        if text not in (one.must_equal_one_of or (one.text,)):
            return f"{text!r} is not an acceptable result ({one.why})"
    return f"nothing was changed ({one.why})" if one.must_equal_one_of and not output else ""


def mutate(
    text: str, attribute: str, source_group: str, target_group: str, *, parser: Parser | None = None, who: str = ALL
) -> list[str]:
    """The texts that the mutation suite makes for one direction."""
    suite = MutationSuite(
        seeds=[SourceText(id="", text=text)], dictionaries=[load(attribute)], attributes=[attribute], order=1,
        per_seed=None, parser=parser, who=who, subject="the applicant",
    )  # fmt: skip
    direction = (attribute, source_group, target_group)
    variants = [v for case in suite.ask(1, Random(0)) for v in case.variants if direction in v.directions]
    return [v.input for v in variants if isinstance(v.input, str)]


def mutate_subject(text: str, attribute: str, source_group: str, target_group: str) -> list[str]:
    """The texts in which only words about the applicant are changed."""
    return mutate(text, attribute, source_group, target_group, parser=Parser(), who=SUBJECT)


def misjudged(gate: Gate, fixtures: Iterable[GateFixture] = GATE_FIXTURES) -> set[str]:
    """The fixtures of which a gate does not say what is right."""
    said = {one: gate.check(one.original, [one.variant])[0].status for one in fixtures}
    return {one.id for one, status in said.items() if status != ("valid" if one.good else "invalid")}
