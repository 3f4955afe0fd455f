"""Proposes dictionary entries from the Social Bias Inference Corpus (SBIC; Sap et al., 2020).

SBIC's public aggregated files have one row for each post; ``targetMinority`` (who is meant), ``targetCategory``
(race, gender, body …) and ``targetStereotype`` hold JSON lists of strings. HInter's dictionaries were derived
from them. What comes out here is a proposal: counts say what annotators wrote, and a person decides which
words belong in a dictionary.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from auditor.core import row_files
from auditor.core.errors import DataFileError
from auditor.core.reading import from_json
from auditor.core.shown import plural
from auditor.perturb.combine import grouped
from auditor.perturb.dictionaries.entries import Dictionary

POST, GROUPS, CATEGORIES, STEREOTYPES = "post", "targetMinority", "targetCategory", "targetStereotype"
COLUMNS = (POST, GROUPS, CATEGORIES, STEREOTYPES)
ATTRIBUTES = {  # SBIC's category -> the attribute whose file a reviewer would put a word in
    "race": "race",
    "gender": "gender",
    "culture": "religion",
    "disabled": "disability",
    "social": "socioeconomic",
    "body": "body",
    "victim": "victim",
}
MAX_TERMS = 200_000  # terms counted at once; beyond it those seen once are dropped, and that is noted
_MAX_WORDS = 5
_PLURALS = frozenset(["people", "folks", "men", "women", "children", "kids", "girls", "boys", "persons"])
_SINGULARS = frozenset(["person", "man", "woman", "child", "kid", "girl", "boy"])


@dataclass(kw_only=True, slots=True)
class Counts:
    """What a corpus holds: posts, and how often a term was named, by category and with a stereotype beside it."""

    posts: int = 0
    by_category: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_term: Counter[str] = field(default_factory=Counter)
    stereotypes: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    dropped: int = 0

    @property
    def notes(self) -> list[str]:
        """What was passed over, in words; empty if nothing was."""
        cells = f"{plural(self.unreadable, 'cell')} without a list of texts passed over"
        terms = f"{plural(self.dropped, 'term')} seen once dropped to keep the memory bounded"
        return [note for note, n in ((cells, self.unreadable), (terms, self.dropped)) if n]


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """One term to review: its slot by form, how often it was named, and what the tool has already.

    ``share`` is the part of the term's posts that have this category; ``also`` are other categories that reach
    the least count, with their posts; ``known`` names the attribute that holds the term already, or is empty.
    """

    text: str
    category: str
    slot: str
    pos: str
    number: str
    count: int
    share: float
    stereotypes: int
    known: str
    also: tuple[tuple[str, int], ...] = ()


def count(paths: Iterable[Path]) -> Counts:
    """Count the groups that annotators named, by category.

    Raises
    ------
    DataFileError
        A file cannot be read, is not UTF-8 or lacks a column; the message names file, line and column.
    """
    counts = Counts()
    for path in paths:
        for row in _rows(path):
            _add(counts, row)
            if len(counts.by_term) > MAX_TERMS:
                rare = [term for term, n in counts.by_term.items() if n == 1]
                for counter in (counts.by_term, counts.stereotypes, *counts.by_category.values()):
                    for term in rare:
                        counter.pop(term, None)
                counts.dropped += len(rare)
    return counts


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    table = row_files.parse(path, row_files.decode(path, row_files.content(path)), wanted=COLUMNS, delimiters=(",",))
    if missing := [c for c in (GROUPS, CATEGORIES) if c not in table.columns]:
        raise DataFileError(
            f"{path}: no column {missing[0]!r}; found: {', '.join(table.columns)}. "
            f"The public SBIC files (SBIC.v2.agg.*.csv) have {', '.join(COLUMNS)}."
        )
    for _, cells in table.rows:
        row = dict(zip(table.columns, cells, strict=True))
        yield {key: row.get(key, "") for key in COLUMNS}


def _add(counts: Counts, row: Mapping[str, str]) -> None:
    counts.posts += 1
    terms = {term for cell in _cell(counts, row[GROUPS]) for term in split_terms(cell)}
    categories = {c.strip().lower() for c in _cell(counts, row[CATEGORIES]) if c.strip()}
    stereotyped = bool(_cell(counts, row[STEREOTYPES]))
    for term in sorted(terms):
        counts.by_term[term] += 1
        counts.stereotypes[term] += stereotyped
        for category in sorted(categories):
            counts.by_category[category][term] += 1


def _cell(counts: Counts, text: str) -> list[str]:
    """Return the texts of a cell: a JSON list (aggregated files), or one plain text (one row per annotator)."""
    text = text.strip()
    if not text:
        return []
    if not text.startswith("["):
        return [text]
    try:
        texts = from_json(text)
    except json.JSONDecodeError:
        texts = None
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        counts.unreadable += 1
        return []
    return [one for one in texts if one.strip()]


def split_terms(cell: str) -> list[str]:
    """Split what an annotator wrote into terms, in lower case and without repeated blanks.

    >>> split_terms("Older  people, retirees / pensioners")
    ['older people', 'retirees', 'pensioners']
    """
    parts = re.split(r"[,;/]|\band/or\b", cell.lower())
    terms = [" ".join(re.sub(r"[^\w\s'+-]", " ", part).split()).strip("'-+") for part in parts]
    return [t for t in terms if any(c.isalpha() for c in t) and len(t.split()) <= _MAX_WORDS]


def slot_of(term: str) -> tuple[str, str, str]:
    """Guess slot, Penn tag and number of a term by its form, for a reviewer to correct.

    >>> slot_of("older people"), slot_of("a nun"), slot_of("retirees"), slot_of("elderly")
    (('noun.pl', 'NNS', 'pl'), ('noun.sg', 'NN', 'sg'), ('noun.pl', 'NNS', 'pl'), ('adjective', 'JJ', ''))
    """
    first, last = term.split()[0], term.split()[-1]
    plural = last in _PLURALS or (last.endswith("s") and not last.endswith(("ss", "us", "is")))
    if plural or " with " in f" {term} ":
        return "noun.pl", "NNS", "pl"
    if last in _SINGULARS or first in {"a", "an"}:
        return "noun.sg", "NN", "sg"
    return "adjective", "JJ", ""


def propose(
    counts: Counts, dictionaries: Sequence[Dictionary], *, min_count: int = 5, category: str | None = None
) -> list[Proposal]:
    """Return the terms named in at least ``min_count`` posts, each under the category it stands with most.

    Sorted by category, then by falling count; ``category`` keeps one of them.
    """
    known = {t.text.lower(): d.attribute for d in reversed(dictionaries) for t in d.terms}
    best: dict[str, tuple[int, str]] = {}
    for name in sorted(counts.by_category):
        for term, n in counts.by_category[name].items():
            if n > best.get(term, (0, ""))[0]:
                best[term] = (n, name)
    rows = []
    for term, (n, name) in best.items():
        if n < min_count or (category is not None and name != category):
            continue
        bare = re.sub(r"^(an?|the) ", "", term)
        slot, pos, number = slot_of(term)
        others = ((other, counter[term]) for other, counter in sorted(counts.by_category.items()) if other != name)
        rows.append(
            Proposal(
                text=bare,
                category=name,
                slot=slot,
                pos=pos,
                number=number,
                count=n,
                share=n / counts.by_term[term],
                stereotypes=counts.stereotypes[term],
                known=known.get(bare, ""),
                also=tuple((other, posts) for other, posts in others if posts >= min_count),
            )
        )
    return sorted(rows, key=lambda p: (p.category, -p.count, p.text))


def to_yaml(proposals: Sequence[Proposal], counts: Counts, source: str, min_count: int) -> dict[str, str]:
    """Write ``proposals`` in the form of dictionaries: attribute to the text of a file.

    Each term is a group of its own: which terms name one group is for the reviewer to say. Counts, and other
    categories that a term stands in, are comments. Each file can be read as it is (``audit dictionary check``).
    """
    files = {}
    by_attribute = grouped((ATTRIBUTES.get(one.category, _group(one.category)), one) for one in proposals)
    for attribute, rows in sorted(by_attribute.items()):
        own = list({_group(p.text): p for p in reversed(rows)}.values())[::-1]
        categories = ", ".join(sorted({_comment(p.category) for p in own}))
        lines = [
            f"# Proposed from {counts.posts} posts; terms named in at least {min_count} of them. To be reviewed:",
            "# put terms of one group together, correct the slots by hand, and leave out what names nobody.",
            f"# Category in the corpus: {categories}.",
            f"attribute: {json.dumps(attribute)}",
            "version: 1",
            f"source: {json.dumps(source)}",
            "groups:",
        ]
        lines += [f"  {json.dumps(_group(p.text))}: {{label: {json.dumps(p.text)}}}" for p in own]
        lines.append("slots:")
        for slot in sorted({p.slot for p in own}):
            same = [p for p in own if p.slot == slot]
            number = f", number: {same[0].number}" if same[0].number else ""
            role = {"adjective": "modifier, before: person", "noun.sg": "person, as: noun"}.get(slot, "person")
            lines.append(f"  {slot}:")
            lines += [f"    {key}" for key in f"pos: {same[0].pos}{number}, role: {role}".split(", ")]
            lines.append("    terms:")
            for p in same:
                note = f"{p.count} posts, {p.share:.0%} of them {_comment(p.category)}"
                note += f", {p.stereotypes} with a stereotype"
                note += "".join(f"; {n} of them {_comment(other)} too" for other, n in p.also)
                note += f"; in {p.known} already" if p.known else ""
                lines.append(f"      {json.dumps(_group(p.text))}: {json.dumps(p.text)}  # {note}")
        files[attribute] = "\n".join(lines) + "\n"
    return files


def _group(term: str) -> str:
    return re.sub(r"\W+", "_", term).strip("_")


def _comment(text: str) -> str:
    return " ".join(text.split())
