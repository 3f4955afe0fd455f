"""Finds and reads dictionaries by name, by file, and as ``--dictionary`` gives them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from auditor.core import data, yamlfile
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.perturb.dictionaries.entries import Dictionary, Group, Term
from auditor.perturb.dictionaries.pairs import expand, load_pairs

NEUTRAL = "neutral"
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
    return [name for name in data.names("dictionaries") if name != NEUTRAL]


def neutral() -> Dictionary:
    """Return the neutral words: terms of one slot replace each other and name no group."""
    return load(data.path("dictionaries", f"{NEUTRAL}.yaml"))


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
    parts = [load(part) for part in VIEWS[name]]
    names = [group for part in parts for group in part.groups]
    groups: dict[str, Group] = {}
    terms: list[Term] = []
    for part in parts:

        def renamed(group: str, attribute: str = part.attribute) -> str:
            return f"{attribute}.{group}" if names.count(group) > 1 else group

        for group in part.groups.values():
            fallback = renamed(group.fallback) if group.fallback else None
            groups[renamed(group.name)] = dataclasses.replace(group, name=renamed(group.name), fallback=fallback)
        terms += [
            dataclasses.replace(term, attribute=name, group=renamed(term.group), slot=f"{part.attribute}:{term.slot}")
            for term in part.terms
        ]
    return Dictionary(
        attribute=name,
        groups=groups,
        terms=tuple(terms),
        version=max(part.version for part in parts),
        name=f"{name} (view of {', '.join(VIEWS[name])})",
        sha256=hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest(),
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
            raise UnknownPlugin(
                "attribute",
                str(path_or_name),
                builtin(),
                "A file of your own: --dictionary [ATTRIBUTE=]FILE.",
                synonyms=SYNONYMS,
            )
        path = data.path("dictionaries", f"{path_or_name}.yaml")
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    return _load_yaml(path, stamp)


@lru_cache(maxsize=32)
def _load_yaml(path: Path, stamp: int) -> Dictionary:
    from auditor.perturb.dictionaries.yamlform import parse_dictionary

    text = yamlfile.read_text(path, missing=" What there is: audit dictionary list")
    return parse_dictionary(text, path, load)


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
        for path in expand(files):
            by_name.setdefault(attribute or path.resolve().parent.name, []).append(path)
    for attribute, paths in by_name.items():
        for one in load_pairs(paths, attribute):
            _add(chosen, one)
    return [chosen[name] for name in sorted(chosen)]


def _add(chosen: dict[str, Dictionary], one: Dictionary) -> None:
    if one.attribute in chosen:
        raise ConfigError(
            f"two dictionaries for the attribute {one.attribute!r}. Give one of them another name: "
            "--dictionary NAME=FILE."
        )
    # What is named is wanted, whatever its own file says of audits that name nothing.
    chosen[one.attribute] = dataclasses.replace(one, default=True)
