"""Finds and reads dictionaries: by name, YAML files, raw pair files as HInter publishes them, and ``--dictionary``."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin
from auditor.core.shown import plural
from auditor.perturb.dictionaries.entries import Dictionary, Group, Term, parse_dictionary

NEUTRAL = "neutral"
PASSED_OVER = ", so the file was passed over"
# What the categories race, gender and body of the published pair files cover, as unions of attributes.
VIEWS: dict[str, tuple[str, ...]] = {
    "race": ("race", "nationality", "religion"),
    "gender": ("gender", "sexual_orientation"),
    "body": ("body", "age", "disability"),
}

# Other words that people ask for an attribute by.
SYNONYMS: dict[str, str] = {
    **dict.fromkeys(("sex", "genders", "sexes", "women", "men"), "gender"),
    **dict.fromkeys(("ethnicity", "ethnic", "ethnic_group", "colour", "color", "skin", "races"), "race"),
    **dict.fromkeys(("origin", "national_origin", "country", "citizenship"), "nationality"),
    **dict.fromkeys(("faith", "belief", "beliefs", "creed", "confession"), "religion"),
    **dict.fromkeys(("orientation", "sexuality", "lgbt", "lgbtq"), "sexual_orientation"),
    **dict.fromkeys(("class", "social_class", "income", "wealth", "poverty", "ses"), "socioeconomic"),
    **dict.fromkeys(("disabled", "disabilities", "handicap", "health"), "disability"),
    **dict.fromkeys(("appearance", "looks", "weight", "height"), "body"),
    **dict.fromkeys(("ages", "years", "elderly"), "age"),
    **dict.fromkeys(("immigration", "refugees", "immigration_status"), "migration"),
    **dict.fromkeys(("trans", "transgender", "cisgender", "intersex"), "gender_identity"),
    **dict.fromkeys(("marital_status", "marriage", "parental_status", "parenthood", "pregnancy"), "family"),
    **dict.fromkeys(("veteran", "veterans", "military"), "service"),
    **dict.fromkeys(("conviction", "ex_offenders", "criminal"), "criminal_record"),
    **dict.fromkeys(("political_views", "ideology", "party"), "politics"),
    **dict.fromkeys(("victims", "survivors"), "victim"),
    **dict.fromkeys(("first_name", "surname", "person_names"), "names"),
}


def builtin() -> list[str]:
    """Return the names of the dictionaries that come with the tool, sorted; `neutral` is none of them."""
    return [name for name in reading.shipped_names("dictionaries") if name != NEUTRAL]


def neutral() -> Dictionary:
    """Return the neutral words: terms of one slot replace each other and name no group."""
    return load(reading.shipped("dictionaries", f"{NEUTRAL}.yaml"))


def view(name: str) -> Dictionary:
    """Return one of `VIEWS` as a dictionary of that name: the union of its attributes.

    A term keeps to the slots of its own attribute (an age never replaces a hair colour). A group name that
    two attributes share gets the attribute before it.

    Raises
    ------
    UnknownPlugin
        There is no such view.

    Examples
    --------
    >>> one = view("body")
    >>> one.attribute, len(one.terms) >= 98
    ('body', True)
    """
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
    """Load a typed dictionary by name (``gender``) or from a YAML file.

    Raises
    ------
    UnknownPlugin
        No built-in dictionary has this name.
    DataFileError
        The file is missing or malformed; the message names file and field.
    """
    path = Path(path_or_name)
    if path.suffix.lower() not in {".yaml", ".yml"}:
        if str(path_or_name) not in builtin():
            hint = "A file of your own: --dictionary [ATTRIBUTE=]FILE."
            raise UnknownPlugin("attribute", str(path_or_name), builtin(), hint, synonyms=SYNONYMS)
        path = reading.shipped("dictionaries", f"{path_or_name}.yaml")
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    return _load_yaml(path, stamp)


@lru_cache(maxsize=32)
def _load_yaml(path: Path, stamp: int) -> Dictionary:
    text = reading.read_text(path, missing=" What there is: audit dictionary list")
    return parse_dictionary(text, path, load)


def load_pairs(files: Iterable[str | Path], attribute: str | None = None) -> list[Dictionary]:
    """Load raw pair files: ``source;target`` per line, terms are literal text.

    Parameters
    ----------
    files : iterable of path
        CSV files or folders of them. Groups come from the file's name ``a_b.csv`` (split at the first
        underscore). A file without any pair is passed over, and noted.
    attribute : str or None
        The attribute of all files; None takes each file's folder name.

    Returns
    -------
    list of Dictionary
        One for each attribute, sorted; the files of one attribute are united.

    Raises
    ------
    DataFileError
        A file is missing or not UTF-8, or an attribute has no pair at all; names file and line.
    """
    by_attribute: dict[str, list[Path]] = {}
    for path in _expand(files):
        by_attribute.setdefault(attribute or path.resolve().parent.name, []).append(path)
    return [_from_pairs(name, paths) for name, paths in sorted(by_attribute.items())]


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
            Term(text=cell, attribute=attribute, group=group, slot="pair", source=path.name)
            for cell, group in zip(cells[:2], groups, strict=True)
        )
        pairs.append((source, target))
    if not pairs:
        return pairs, [f"{path}: no line reads source;target{PASSED_OVER}"]
    return pairs, [f"{path.name}: {plural(short, 'line')} without a pair passed over"] if short else []


def _from_pairs(attribute: str, paths: Sequence[Path]) -> Dictionary:
    """The dictionary of all pair files of one attribute."""
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
    # One term may come from several files: the file must not make it two terms.
    canonical: dict[tuple[str, str], Term] = {}
    for pair in pairs:
        for term in pair:
            canonical.setdefault((term.text, term.group), term)
    unified = dict.fromkeys((canonical[s.text, s.group], canonical[t.text, t.group]) for s, t in pairs)
    groups = sorted({t.group for t in canonical.values()})
    return Dictionary(
        attribute=attribute,
        groups={g: Group(name=g, label=g.replace("_", " ")) for g in groups},
        terms=tuple(canonical.values()),
        pairs=tuple(unified),
        name=f"{attribute} (pairs)",
        sha256=hashlib.sha256(hashes.encode()).hexdigest(),
        notes=tuple(notes),
    )


def parse_option(option: str) -> tuple[str | None, str]:
    """Split ``[ATTRIBUTE=]FILE``.

    >>> parse_option("race=own/pairs.csv"), parse_option("pairs.csv")
    (('race', 'own/pairs.csv'), (None, 'pairs.csv'))
    """
    attribute, sign, file = option.partition("=")
    if not sign or "/" in attribute or "\\" in attribute or not attribute:
        if not option or option.startswith("="):
            raise ConfigError(f"--dictionary {option!r}: expected [ATTRIBUTE=]FILE, for example race=pairs.csv")
        return None, option
    if not file:
        raise ConfigError(f"--dictionary {option!r}: no file after '='")
    return attribute, file


def load_options(options: Sequence[str]) -> list[Dictionary]:
    """Load what ``--dictionary`` names: built-in names, YAML files, pair files and folders of pair files.

    Pair files of one attribute are united; what is named here is looked for (``default`` is True).
    Two dictionaries for one attribute are an error.
    """
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
    by_name: dict[str, list[Path]] = {}
    for attribute, files in raw.items():
        for path in _expand(files):
            by_name.setdefault(attribute or path.resolve().parent.name, []).append(path)
    for name, paths in by_name.items():
        _add(chosen, _from_pairs(name, paths))
    return [chosen[name] for name in sorted(chosen)]


def _add(chosen: dict[str, Dictionary], one: Dictionary) -> None:
    if one.attribute in chosen:
        hint = "Give one of them another name: --dictionary NAME=FILE."
        raise ConfigError(f"two dictionaries for the attribute {one.attribute!r}. {hint}")
    # What is named is wanted, whatever its own file says of audits that name nothing.
    chosen[one.attribute] = dataclasses.replace(one, default=True)
