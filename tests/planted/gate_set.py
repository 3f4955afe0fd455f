"""The variants that two readers read: committed texts, and those rebuilt from ``../shared`` where that is."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from auditor.core.types import Case, Edit, Variant
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import load, neutral
from auditor.perturb.edits import apply
from auditor.perturb.matching import Matcher
from auditor.text.parse import sentences

HERE = Path(__file__).resolve().parent / "gate"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


class Read(NamedTuple):
    """One variant, and whether it was found good."""

    original: Variant
    variant: Variant
    file: str
    half: str
    verdict: str
    weight: float


def case_of(one: Read) -> Case:
    """A case of one variant."""
    return Case(id="", suite="", original=one.original, variants=(one.variant,))


def rows(file: str = "variants.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / file).read_text(encoding="utf-8").splitlines()]


def read(
    half: str | None = None, *, shared: bool = True, file: str = "variants.jsonl", made: bool = False
) -> list[Read]:
    """The variants of one half (all: None) whose texts are here; ``made``: of these, those that are still made."""
    out = []
    for row in rows(file):
        if half is not None and row["half"] != half:
            continue
        text = row.get("text") or (_rebuilt(row["file"], row["source"]) if shared else None)
        if text is None:
            continue
        assert hashlib.sha256(text.encode()).hexdigest() == row["sha256"], row["id"]
        if made and not still_made(row, text):
            continue
        edits = tuple(
            Edit(attribute=attribute, kind=kind, source_group=old, target_group=new, source=text[start:end],
                 target=target, where=(start, end))
            for start, end, _, target, kind, attribute, old, new in row["edits"]
        )  # fmt: skip
        original = Variant(id=f"{row['id']}.o", input=text)
        variant = Variant(id=row["id"], input=apply(text, edits), edits=edits)
        out.append(Read(original, variant, row["file"], row["half"], row["verdict"], row["weight"]))
    return out


def measure(gate: Any, found: Sequence[Read], *, weighted: bool = False) -> Mapping[tuple[bool, bool], float]:
    """(Good, kept) → how many."""
    checks = gate.check_many(case_of(one) for one in found)
    cells: Counter[tuple[bool, bool]] = Counter()
    for one, (check,) in zip(found, checks, strict=True):
        cells[one.verdict == "good", check.status != "invalid"] += one.weight if weighted else 1
    return cells


def precision(cells: Mapping[tuple[bool, bool], float]) -> float:
    return cells[True, True] / (cells[True, True] + cells[False, True])


def recall(cells: Mapping[tuple[bool, bool], float]) -> float:
    return cells[True, True] / (cells[True, True] + cells[True, False])


def still_made(row: Mapping[str, Any], text: str) -> bool:
    """Whether the dictionaries of today still make the words of a variant, each in its place.

    Pronouns and articles are not looked at. Terms were taken away, or tied to positions, since a set was
    drawn; what is not made any more is asked of no model.
    """
    own, beside = _matchers()
    groups = {hit.start: hit for hit in own.scan(text).hits}
    words = {hit.start: hit for hit in beside.scan(text).hits}
    for start, _, _, target, kind, attribute, _, _ in row["edits"]:
        if kind == "insertion":
            return False
        if kind in ("swap", "marking") and attribute in dictionaries.builtin():
            if start not in groups and text[start : start + 2].rstrip().lower() not in ("a", "an"):
                return False
        elif kind in ("placebo", "wording"):
            terms = [term for hit in (groups.get(start), words.get(start)) if hit for term in hit.terms]
            written = {
                other.text.lower()
                for term in terms
                for other in (neutral() if term.attribute == "neutral" else load(term.attribute)).alternatives(term)
            }
            if target.lower() not in written and not (kind == "wording" and start in groups):
                return False
    return True


@lru_cache(maxsize=1)
def _matchers() -> tuple[Matcher, Matcher]:
    every = [load(name) for name in dictionaries.builtin()]
    return Matcher(every), Matcher([neutral()], beside=every)


def _rebuilt(file: str, source: str) -> str | None:
    if not (SHARED / file).exists():
        return None
    name, _, window = source.partition("#")
    if file.startswith("ud_"):
        start, _, n = window.partition("+")
        return " ".join(_documents(file)[name][int(start) : int(start) + int(n)])
    text = _texts(file)[name]
    if not window:
        return text
    start, _, n = window.partition("+")
    spans = sentences(text)
    last = min(int(start) + int(n), len(spans)) - 1
    return text[spans[int(start)][0] : spans[last][1]].strip()


@lru_cache(maxsize=8)
def _texts(file: str) -> dict[str, str]:
    path = SHARED / file
    if file.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".txt")]
            return {Path(n).name: archive.read(n).decode("utf-8", "replace").strip() for n in names}
    if file.endswith(".csv"):
        with path.open() as lines:
            return {f"imdb-{i}": row["text"] for i, row in enumerate(csv.DictReader(lines))}
    with gzip.open(path, "rt") as lines:
        return {f"multilexsum-{i}": json.loads(line)["document"] for i, line in enumerate(lines)}


@lru_cache(maxsize=8)
def _documents(file: str) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, text in _sentences(SHARED / file):
        out.setdefault(name, []).append(text)
    return out


def _sentences(path: Path) -> Iterator[tuple[str, str]]:
    name = ""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if line.startswith("# newdoc id = "):
                name = line.split("= ", 1)[1].strip()
            elif line.startswith("# text = "):
                yield name, line[9:].strip()
