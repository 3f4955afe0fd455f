"""Who a record is about: groups with the words written for them, accuracy by group, grounds tested and not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.types import Estimate
from auditor.measure.claims import MIN_TEXTS
from auditor.report import words
from auditor.report.compliance_frameworks import Framework
from auditor.report.compliance_gates import kind_of

OF_PEOPLE = frozenset({"sex", "race", "ethnicity"})  # what tables of recorded outcomes go by


@dataclass(frozen=True, slots=True)
class Words:
    """The words that were written for one group of an attribute."""

    attribute: str
    group: str
    words: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many words."""
        return len(self.words)

    @property
    def told(self) -> str:
        """``women: she, woman``; the name alone where it is the only word."""
        name = words.group(self.group)
        return name if self.words == (name,) else f"{name}: {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of the original texts that name a group and were answered like their label."""

    model: str
    attribute: str
    group: str
    texts: int
    estimate: Estimate

    @property
    def scope(self) -> str:
        """Which texts it is of."""
        return f"{self.attribute}: {words.group(self.group)}" if self.attribute else "all texts"


@dataclass(frozen=True, slots=True)
class Tested:
    """A ground as the framework names it, and the attributes of this record that stand for it; none: not tested."""

    ground: str
    attributes: tuple[str, ...]


def written(record: RunRecord) -> tuple[Words, ...]:
    """Groups and their words, from the diagnosis of words; none where the record has none.

    A word that also stood beside words for another group is listed with its own group alone.
    """
    tokens = [t for section in record.tokens for t in section.tokens]
    found: dict[tuple[str, str], set[str]] = {}
    known: set[tuple[str, str]] = set()
    for token in sorted(tokens, key=lambda t: "," in t.group):
        key = (token.family, token.token)
        if "," not in token.group or key not in known:
            found.setdefault((token.family, token.group), set()).add(key[1])
        known.add(key)
    return tuple(Words(*key, tuple(sorted(told))) for key, told in sorted(found.items()))


def accuracy(record: RunRecord) -> tuple[Accuracy, ...]:
    """Accuracy of all texts, then by group of at least `MIN_TEXTS` texts."""
    found = []
    for entry in record.performance.models or ():
        for told in (entry.overall, *entry.groups):
            estimate = told.accuracy
            if estimate and (not told.attribute or estimate.n >= MIN_TEXTS):
                found.append(Accuracy(entry.model, told.attribute, told.group, estimate.n, estimate))
    return tuple(found)


def attributes(record: RunRecord, outcomes: RunRecord | None) -> frozenset[str]:
    """What of people was changed or recorded: attributes of texts, protected columns, categories."""
    kind = kind_of(record)
    if kind == "outcomes":
        return OF_PEOPLE
    if kind == "rows":
        found = {name.casefold() for name in record.rows.schema.protected}
    elif record.claims is not None:
        found = {c.attribute for c in record.claims if c.verdict != "not_tested"}
    else:  # a run of an older version
        found = {a for e in record.estimates for a in e.attributes}
    return frozenset(found | (OF_PEOPLE if outcomes is not None else set()))


def grounds(framework: Framework, names: Iterable[str]) -> tuple[Tested, ...]:
    """Each ground of the framework with what was tested of it."""
    known = set(names)
    return tuple(
        Tested(ground.name, tuple(a for a in ground.attributes if a in known)) for ground in framework.grounds
    )


def untested(found: Iterable[Tested]) -> str:
    """The grounds that were not tested, in a sentence; nothing where all were."""
    bare = [g.ground for g in found if not g.attributes]
    return f"Grounds that were not tested: {words.listing(bare)}." if bare else ""
