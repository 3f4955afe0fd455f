"""Dictionaries: which words name which group, and what may replace what.

A typed dictionary (YAML) puts terms into slots; terms of equal slots in different groups are counterparts.
A raw pair file (``source;target`` lines, as HInter publishes them) states its pairs one by one. Both become
a `Dictionary`. The file format is described in ``dictionaries/README.md``; shared words lie in ``dictionaries/shared``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin
from auditor.core.shown import plural
from auditor.perturb.combine import grouped
from auditor.perturb.dictionaries.entries import NAMED, NAMES, Group
from auditor.perturb.dictionaries.entries import Dictionary as Dictionary
from auditor.perturb.dictionaries.entries import Term as Term
from auditor.text.english import plural_of, word_set

NEUTRAL = "neutral"
PASSED_OVER = ", so the file was passed over"
# What the categories race, gender and body of the published pair files cover, as unions of attributes.
VIEWS: dict[str, tuple[str, ...]] = {
    "race": ("race", "nationality", "religion"),
    "gender": ("gender", "sexual_orientation"),
    "body": ("body", "age", "disability"),
}
_FIRST_PEOPLES = frozenset(("alaska", "indigenous", "nations"))
# What tells an everyday word from the person or group: any of these conditions.
_CONDITIONS = word_set("case lower name before:person after:person before:name as:noun as:adjective")


def builtin() -> list[str]:
    """Return the names of the dictionaries that come with the tool, sorted; `neutral` is none of them."""
    return [name for name in reading.shipped_names("dictionaries") if name != NEUTRAL]


def neutral() -> Dictionary:
    """Return the neutral words: terms of one slot replace each other and name no group."""
    return load(reading.shipped("dictionaries", f"{NEUTRAL}.yaml"))


def view(name: str) -> Dictionary:
    """Return one of `VIEWS` as a dictionary of that name: the union of its attributes."""
    if name not in VIEWS:
        raise UnknownPlugin("view", name, VIEWS, "A view is a union of attributes, for --protocol hinter.")
    members = [load(attribute) for attribute in VIEWS[name]]
    names = [group for one in members for group in one.groups]
    groups: dict[str, Group] = {}
    terms: list[Term] = []
    for one in members:
        renamed = {g: f"{one.attribute}.{g}" if names.count(g) > 1 else g for g in one.groups}
        for group in one.groups.values():
            own, fallback = renamed[group.name], renamed[group.fallback] if group.fallback else None
            groups[own] = dataclasses.replace(group, name=own, fallback=fallback)
        terms += [
            dataclasses.replace(term, attribute=name, group=renamed[term.group], slot=f"{one.attribute}:{term.slot}")
            for term in one.terms
        ]
    return Dictionary(
        attribute=name,
        groups=groups,
        terms=tuple(terms),
        version=max(one.version for one in members),
        name=f"{name} (view of {', '.join(VIEWS[name])})",
        sha256=hashlib.sha256("".join(one.sha256 for one in members).encode()).hexdigest(),
    )


def load(path_or_name: str | Path) -> Dictionary:
    """Load a typed dictionary by name (``gender``) or from a YAML file; `DataFileError` names file and field."""
    path = Path(path_or_name)
    if path.suffix.lower() not in {".yaml", ".yml"}:
        if str(path_or_name) not in builtin():
            hint = "A file of your own: --dictionary [ATTRIBUTE=]FILE."
            raise unknown(str(path_or_name), builtin(), hint)
        path = reading.shipped("dictionaries", f"{path_or_name}.yaml")
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    return _load_yaml(path, stamp)


@lru_cache(maxsize=32)
def _load_yaml(path: Path, stamp: int) -> Dictionary:
    from auditor.perturb.dictionaries.yaml_file import read  # pydantic is loaded with the first file

    return read(path, load)


def _expand(files: Iterable[str | Path]) -> list[Path]:
    """Return the given files, and the ``.csv`` files of given folders."""
    paths: list[Path] = []
    for name in files:
        path = Path(name)
        paths += sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not paths:
        raise DataFileError("no pair files were given, or the folder holds no .csv file")
    return paths


def _read_pairs(text: str, path: Path, attribute: str) -> tuple[list[tuple[Term, Term]], list[str]]:
    first, _, second = path.stem.partition("_")
    groups = (first, second) if second else ("source", "target")
    pairs: list[tuple[Term, Term]] = []
    short = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(";")]
        if len(cells) > 2 and any(cells[2:]):
            raise DataFileError(f"{path}, line {number}: {plural(len(cells), 'cell')}, expected source;target")
        if len(cells) < 2 or not cells[0] or not cells[1]:
            short += 1
            continue
        for cell in cells[:2]:
            if not any(c.isalnum() for c in cell):
                raise DataFileError(f"{path}, line {number}: the term {cell!r} holds no letter or digit")
        if cells[0] == cells[1]:
            continue
        source, target = (
            Term(text=cell, attribute=attribute, group=group, slot="pair")
            for cell, group in zip(cells[:2], groups, strict=True)
        )
        pairs.append((source, target))
    if not pairs:
        return pairs, [f"{path}: no line reads source;target{PASSED_OVER}"]
    return pairs, [f"{path.name}: {plural(short, 'line')} without a pair passed over"] if short else []


def _from_pairs(attribute: str, paths: Sequence[Path]) -> Dictionary:
    """The dictionary of all pair files of one attribute."""
    if not NAMED.fullmatch(attribute):
        raise ConfigError(f"attribute {attribute!r}: only {NAMES}. Name it with --dictionary NAME=FILE.")
    pairs: list[tuple[Term, Term]] = []
    notes: list[str] = []
    hashes = ""
    for path in paths:
        text = reading.read_text(path)
        own, passed = _read_pairs(text, path, attribute)
        pairs += own
        notes += passed
        hashes += hashlib.sha256(text.encode()).hexdigest()
    if not pairs:
        hint = "Separate the two words by a semicolon, one pair a line: man;woman"
        raise DataFileError(f"{notes[0].removesuffix(PASSED_OVER)}. {hint}")
    terms = tuple(dict.fromkeys(term for pair in pairs for term in pair))
    groups = sorted({term.group for term in terms})
    return Dictionary(
        attribute=attribute,
        groups={g: Group(name=g, label=g.replace("_", " ")) for g in groups},
        terms=terms,
        pairs=tuple(dict.fromkeys(pairs)),
        name=f"{attribute} (pairs)",
        sha256=hashlib.sha256(hashes.encode()).hexdigest(),
        notes=tuple(notes),
    )


def parse_option(option: str) -> tuple[str | None, str]:
    """Split ``[ATTRIBUTE=]FILE``."""
    attribute, sign, file = option.partition("=")
    if not sign or "/" in attribute or "\\" in attribute or not attribute:
        if not option or option.startswith("="):
            raise ConfigError(f"--dictionary {option!r}: expected [ATTRIBUTE=]FILE, for example race=pairs.csv")
        return None, option
    if not file:
        raise ConfigError(f"--dictionary {option!r}: no file after '='")
    return attribute, file


def load_options(options: Sequence[str]) -> list[Dictionary]:
    """Load what ``--dictionary`` names: built-in names, YAML files, pair files and folders of pair files."""
    chosen: dict[str, Dictionary] = {}
    raw: dict[str | None, list[str]] = {}
    for option in options:
        attribute, file = parse_option(option)
        path = Path(file)
        if path.is_dir() or path.suffix.lower() in {".csv", ".txt"}:
            raw.setdefault(attribute, []).append(file)
            continue
        one = load(file)
        if attribute and attribute != one.attribute:
            raise ConfigError(f"--dictionary {option!r}: the file says attribute: {one.attribute}")
        _add(chosen, one)
    every = [(attribute, path) for attribute, files in raw.items() for path in _expand(files)]
    for name, paths in grouped((attribute or path.resolve().parent.name, path) for attribute, path in every).items():
        _add(chosen, _from_pairs(name, paths))
    return [chosen[name] for name in sorted(chosen)]


def _add(chosen: dict[str, Dictionary], one: Dictionary) -> None:
    if one.attribute in chosen:
        hint = "Give one of them another name: --dictionary NAME=FILE."
        raise ConfigError(f"two dictionaries for the attribute {one.attribute!r}. {hint}")
    # What is named is wanted, whatever its own file says of audits that name nothing.
    chosen[one.attribute] = dataclasses.replace(one, default=True)


def _shared(name: str) -> Any:
    return reading.load_yaml(reading.shipped("dictionaries", "shared", f"{name}.yaml"))


def unknown(attribute: str, known: Iterable[str], hint: str) -> UnknownPlugin:
    """Return the error for an attribute that is none of ``known``; it offers the one that a synonym means."""
    synonyms = {word: name for name, words in _shared("synonyms").items() for word in words.split()}
    return UnknownPlugin("attribute", attribute, known, hint, synonyms=synonyms)


@lru_cache(maxsize=1)
def persons() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return singular and plural person nouns and the modifiers that may precede them, in lower case."""
    content = _shared("persons")
    irregular = dict(content["irregular"])
    singular = {noun for noun in content["nouns"].split() if noun not in irregular}
    plural = {plural_of(noun) for noun in singular} | set(irregular)
    for term in load("gender").sources:
        if term.pos == "NNS":
            plural.add(term.text.lower().split()[-1])
        elif term.pos == "NN" and term.role in {"person", "kin", "occupation", "rank"}:
            singular.add(term.text.lower().split()[-1])
    return frozenset(singular), frozenset(plural), frozenset(content["modifiers"].split())


@lru_cache(maxsize=1)
def titles() -> dict[str, tuple[str, ...]]:
    """Return titles of films, books and the like, in lower case, by their longest words."""
    rows = ((max(title.split(), key=len), title) for title in _shared("titles")["titles"].splitlines())
    return {word: tuple(titles) for word, titles in grouped(rows).items()}


@lru_cache(maxsize=1)
def phrases() -> re.Pattern[str]:
    """Return the phrases in which a word for a gender means nobody of it (*best man*), as one expression."""
    return re.compile(rf"\b(?:{'|'.join(_shared('titles')['phrases'])})", re.IGNORECASE)


@lru_cache(maxsize=1)
def gendered() -> frozenset[str]:
    """Return the words, in lower case, that name a gender (she, Mr, wife): the marked terms of one word."""
    gender = load("gender")
    marked = [t.text.lower().rstrip(".") for t in gender.sources if not gender.groups[t.group].unmarked]
    return frozenset(word for word in marked if word.isalpha())


@lru_cache(maxsize=1)
def nations() -> frozenset[str]:
    """Return the words, in lower case, that a term of a nationality ends with (american, britons, african)."""
    return frozenset(t.text.lower().split()[-1] for t in load("nationality").sources) | _FIRST_PEOPLES


def check(dictionaries: Sequence[Dictionary]) -> list[str]:
    """Say what is doubtful about ``dictionaries``; empty if nothing is."""
    everyday = frozenset(_shared("everyday")["words"].split())  # of things far more often than of a person or group
    problems: list[str] = []
    owner: dict[str, str] = {}
    for one in dictionaries:
        mine = {t.text.lower(): t for t in one.sources}
        for word in sorted(mine):
            if word in owner and owner[word] != one.attribute:
                problems.append(f"{word!r} belongs to {owner[word]} and {one.attribute}; keep it in one of them")
            elif word in owner:
                problems.append(f"{one.attribute}: two dictionaries hold {word!r}")
            owner.setdefault(word, one.attribute)
        if one.terms and not one.raw:
            problems += _check_slots(one)
            written = {t.group for t in one.terms if "source-only" not in t.tags}
            problems += [
                f"{one.attribute}: no word of group {name!r} can be written, so no edit leads to it"
                for name in one.targets
                if name not in written
            ]
        loose = {t.text for t in one.sources if t.text.lower() in everyday and not t.tags & _CONDITIONS}
        problems += [
            f"{one.attribute}: {word!r} is an everyday word, and no condition tells its uses apart"
            for word in sorted(loose)
        ]
    return problems


def _check_slots(one: Dictionary) -> list[str]:
    problems = []
    seen: dict[str, Term] = {}
    for term in one.sources:
        other = seen.setdefault(term.text.lower(), term)
        told_apart = (other.tags ^ term.tags) & {"as:noun", "as:adjective", "before:person"}
        if other is not term and not told_apart and not term.slot.startswith("pronoun."):
            problems.append(f"{one.attribute}: {term.text!r} is in {other.slot} and in {term.slot}")
        if not any(one.counterparts(term, g) for g in one.targets if g != term.group):
            problems.append(f"{one.attribute}: {term.text!r} ({term.slot}) has no counterpart in any group")
    return problems
