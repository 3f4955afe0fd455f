"""Compares answers that are texts: style, and whether a rule distinguishes them without identity words."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from auditor.contrib.classifier_test import Bag, Classified, Pair, classify
from auditor.core.record.measured import Claim
from auditor.core.shown import plural
from auditor.core.types import Answer
from auditor.measure.claims import Question, Tested, decide, net
from auditor.measure.contrasts import Versions
from auditor.measure.intervals import holm
from auditor.measure.observations import STATUS, Arm, Columns, Observations
from auditor.perturb import dictionaries
from auditor.tasks import text_oracle as wording
from auditor.tasks.answers import is_refusal, normalise
from auditor.text.english import FIGURES, FUNCTION_WORDS, plain_words

IDENTITY = ("gender", "gender_identity", "names", "race", "nationality", "religion", "family")
TITLED = re.compile(rf"{wording.MASK}\.?\s+[A-Z][\w'\u2019-]*(?:\s+[A-Z][\w'\u2019-]*)?")
TOKEN = re.compile(r"\w+(?:['\u2019-]\w+)*")
AGED = ("year-old", "years-old", "year-olds")
STAND_INS = ("individual", "person", "resident", "patient", "client", "applicant", "candidate", "someone", "user")
NAMED = 3  # answers in which a name stands
ALPHA = 0.05
Cell = tuple[str, str]  # text and format


@dataclass(frozen=True, kw_only=True, slots=True)
class Apart:
    """Whether a rule distinguishes the answers of one model about two groups."""

    model: str
    attribute: str
    groups: tuple[str, str]
    found: Classified
    p_adjusted: float | None = None

    @property
    def shown(self) -> bool:
        """Whether the corrected p-value is below 5 %."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA

    def as_record(self) -> dict[str, object]:
        """Return the test as in ``run.json``."""
        return dataclasses.asdict(self) | {"groups": list(self.groups), "shown": self.shown, "said": self.said()}

    def said(self) -> str:
        """Return the result as a sentence."""
        test = self.found
        about = f"{self.model}, {' / '.join(self.groups)}"
        if test.share is None or self.p_adjusted is None:
            return f"{about}: {plural(test.texts, 'text')}, too few to learn a rule from."
        beside = "" if test.placebo is None else f", and {100 * test.placebo:.0f} % of placebo pairs are"
        words = ", ".join(f"{w.word} ({w.first}:{w.second})" for w in test.words[:6])
        return (
            f"{about}: {'shown' if self.shown else 'not shown'}. Without identity words {100 * test.share:.0f} % of "
            f"{test.pairs:,} pairs of answers are distinguished (half is chance{beside}; p, corrected: "
            f"{self.p_adjusted:.2g})" + (f", by {words}." if self.shown else ".")
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """Contrasts of style, and tests of distinguishability."""

    claims: tuple[Claim, ...]
    apart: tuple[Apart, ...]


def study(table: Observations, question: Question, terms: Iterable[str] = ()) -> Study:
    """Test whether style differs between groups, and whether a rule distinguishes their answers.

    ``terms`` are further identity words, apart from pronouns, titles and words of the dictionaries.
    """
    columns = table.columns()
    groups = (group for shape in table.shapes.values for _, a, b in shape.directions for group in (a, b))
    own = {part for term in (*groups, *terms) for part in re.split(r"[\W_]+", term.lower()) if len(part) > 2}
    masked = identity(frozenset((own | _names(table, columns)) - FUNCTION_WORDS))
    texts = [masked_text(str(text), masked) for text in table.labels.values]
    bags = [frozenset(word.removesuffix("'s") for word in plain_words(text)) - FUNCTION_WORDS for text in texts]
    made = list(_claims(table, columns, question, texts))
    tests = _apart(table, columns, made, bags)
    adjusted = holm([one.found.p for one in tests])
    return Study(
        claims=tuple(made),
        apart=tuple(dataclasses.replace(a, p_adjusted=p) for a, p in zip(tests, adjusted, strict=True)),
    )


@cache
def identity(own: frozenset[str]) -> frozenset[str]:
    """Return words for a person: pronouns, titles, words of dictionaries, and ``own``."""
    singular, plural, _ = dictionaries.persons()
    terms = {t.text for attribute in IDENTITY for t in dictionaries.load(attribute).terms}
    said = {form for term in (*terms, *own, *singular, *plural, *STAND_INS) for form in wording.forms(term)}
    return frozenset(word for word in (*said, *wording.masked_terms(())) if " " not in word)


def masked_text(text: str, terms: frozenset[str]) -> str:
    """Replace words in ``terms``, ages, and names after a title by one sign."""

    def one(match: re.Match[str]) -> str:
        word = match[0].lower().replace("\u2019", "'")
        return wording.MASK if word in terms or word.endswith(AGED) else match[0]

    return TITLED.sub(wording.MASK, TOKEN.sub(one, text))


def _names(table: Observations, columns: Columns) -> set[str]:
    """Return names: words that always have a capital, in answers about one group alone."""
    groups: dict[str, set[str]] = defaultdict(set)
    count: dict[str, int] = defaultdict(int)
    small: set[str] = set()
    for at in np.flatnonzero(columns.label >= 0).tolist():
        shape = table.shapes.values[int(columns.version_shape[int(columns.version[at])])]
        about = " ".join(target for _, _, target in shape.directions) or "as it was"
        said = set(TOKEN.findall(str(table.labels.values[int(columns.label[at])])))
        small |= {word for word in said if word[:1].islower()}
        for word in said:
            if word[:1].isupper():
                groups[word.lower()].add(about)
                count[word.lower()] += 1
    return {word for word, about in groups.items() if len(about) == 1 and count[word] >= NAMED and word not in small}


def _claims(table: Observations, columns: Columns, question: Question, texts: Sequence[str]) -> Iterator[Claim]:
    """Yield net differences of each figure, decided together for each model."""
    known, refused = columns.label >= 0, columns.status == STATUS["refused"]
    figures = {name: (unit, [figure(text) for text in texts]) for name, (unit, figure) in FIGURES.items()}
    raw = [str(text) for text in table.labels.values]
    figures["sentiment"] = ("VADER, −1 to 1", [wording.sentiment(text) for text in texts])
    figures["refusal"] = ("points", [100.0 * is_refusal(normalise(text[:300])) for text in raw])
    tested: list[Tested] = []
    for name, (unit, values) in figures.items():
        numbers = table.bare()
        for at in np.flatnonzero(known | refused if name == "refusal" else known).tolist():
            value = 100.0 if refused[at] else values[int(columns.label[at])]
            # Formats (lengths that were asked for) are taken together: the question is about the model.
            numbers.answers(
                int(columns.version[at]),
                model=table.models.values[int(columns.model[at])],
                format="",
                answers=[Answer(status="ok", value=value)],
            )
        arrays = numbers.columns()
        asked = dataclasses.replace(question, outcomes=(), number=True, unit=unit, delta=None)
        for one in net(numbers, arrays, Versions(numbers, arrays), "net", asked):
            tested.append(dataclasses.replace(one, claim=dataclasses.replace(one.claim, label=name)))
    for model in table.models.values:
        yield from decide([t for t in tested if t.claim.model == model], dataclasses.replace(question, delta=None))


def _apart(table: Observations, columns: Columns, made: Sequence[Claim], bags: Sequence[Bag]) -> list[Apart]:
    versions = Versions(table, columns)
    known = np.zeros(len(columns.version_text), dtype=bool)
    known[columns.version[columns.status == STATUS["ok"]]] = True
    out = []
    wanted = dict.fromkeys((c.model, c.attribute, c.groups) for c in made if len(c.groups) == 2)
    for model, attribute, (group, reference) in wanted:
        rows = (columns.model == table.models.get(model)) & (columns.label >= 0)
        strands = versions.strands(attribute, known)
        if reference not in strands.names or group not in strands.names:
            continue
        first, second = (
            strands.version[strands.group == strands.names.index(name)].tolist() for name in (group, reference)
        )
        answers = _answers(table, columns, rows)
        placebos = _pairs(answers, *_placebos(table, columns, attribute), bags)
        found = classify(_pairs(answers, first, second, bags), placebos)
        out.append(Apart(model=model, attribute=attribute, groups=(group, reference), found=found))
    return out


def _placebos(table: Observations, columns: Columns, attribute: str) -> tuple[list[int], list[int]]:
    """Return versions that differ in nothing about a person: texts with and without a placebo edit, or two such."""
    shapes = list(enumerate(table.shapes.values))
    of_shape = {n: np.flatnonzero(columns.version_shape == n).tolist() for n, _ in shapes}
    placebo = [n for n, s in shapes if s.arm == Arm.PLACEBO]
    if plain := [v for n, s in shapes if s.arm == Arm.ORIGINAL for v in of_shape[n]]:
        own = [n for n, s in shapes if n in placebo and s.attributes in ((), (attribute,))]
        return [v for n in own for v in of_shape[n]], plain
    return (of_shape[placebo[0]], of_shape[placebo[1]]) if len(placebo) > 1 else ([], [])


def _answers(table: Observations, columns: Columns, rows: np.ndarray) -> dict[int, dict[Cell, list[int]]]:
    """Return the labels of answers by version, then by text and format."""
    out: dict[int, dict[Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at in np.flatnonzero(rows).tolist():
        version = int(columns.version[at])
        text = table.texts.values[int(columns.version_text[version])]
        out[version][text, table.formats.values[int(columns.format[at])]].append(int(columns.label[at]))
    return out


def _pairs(
    answers: dict[int, dict[Cell, list[int]]], first: Sequence[int], second: Sequence[int], bags: Sequence[Bag]
) -> list[Pair]:
    """Pair the answers of both sides to one text in one format."""
    sides: list[dict[Cell, list[int]]] = []
    for versions in (first, second):
        side: dict[Cell, list[int]] = defaultdict(list)
        for version in versions:
            for cell, labels in answers.get(version, {}).items():
                side[cell] += labels
        sides.append(side)
    return [
        Pair(text=cell[0], first=bags[a], second=bags[b])
        for cell in sorted(sides[0])
        for a, b in zip(sides[0][cell], sides[1].get(cell, ()), strict=False)
    ]
