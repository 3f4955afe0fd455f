"""Dictionaries: which words name which group, and what may replace what.

A typed dictionary (YAML) puts terms into slots; terms of equal slots in different groups are counterparts.
A raw pair file (``source;target`` lines, as HInter publishes them) states its pairs one by one. Both become
a `Dictionary`. The file format is described in ``dictionaries/README.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from auditor import data
from auditor.errors import ConfigError, DataFileError, UnknownPlugin

TAGS = frozenset(
    {
        "case",  # only with a capital letter (Polish), and at a sentence start only before a person noun
        "lower",  # not with a capital letter inside a sentence, where it is a name (Stephen King)
        "no_exclamation",  # not as an exclamation (Oh boy! Man, was I wrong.)
        "before:person",  # only before a person noun, with modifiers between (a white elderly man)
        "before:name",  # only before a capitalised word (Ms. Hendricks)
        "as:noun",  # only where it stands as a noun (an American.)
        "as:adjective",  # only where it stands as an adjective (an American film; He is American.)
        "source-only",  # found, never written
        "target-only",  # written, never found
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group of an attribute.

    ``unmarked`` groups name nobody's attribute (people, person): an edit from one is of kind "marking", and
    they are never a target. ``fallback`` is the group whose terms stand in where this one has no term in a
    slot.
    """

    name: str
    label: str
    unmarked: bool = False
    fallback: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """One word or phrase of one group.

    ``slot`` says what may replace it, ``pos`` is its Penn tag, ``number`` "sg", "pl" or "", ``tags`` are of
    `TAGS`.
    """

    text: str
    attribute: str
    group: str
    slot: str
    pos: str = ""
    number: str = ""
    role: str = ""
    register: str = "neutral"
    source: str = ""
    tags: frozenset[str] = frozenset()
    not_before: frozenset[str] = frozenset()
    not_after: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The groups and terms of one attribute.

    ``pairs`` is None for a typed dictionary (counterparts come from slots), else the explicit pairs of a
    raw one. ``notes`` says what was passed over while reading.
    """

    attribute: str
    groups: Mapping[str, Group]
    terms: tuple[Term, ...]
    pairs: tuple[tuple[Term, Term], ...] | None = None
    version: int = 1
    name: str = ""
    sha256: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def raw(self) -> bool:
        """Whether the pairs were given one by one."""
        return self.pairs is not None

    @cached_property
    def sources(self) -> tuple[Term, ...]:
        """The terms that are looked for in texts."""
        if self.pairs is not None:
            return tuple(dict.fromkeys(source for source, _ in self.pairs))
        return tuple(t for t in self.terms if "target-only" not in t.tags)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The groups that an edit may lead to, sorted."""
        if self.pairs is not None:
            return tuple(sorted({target.group for _, target in self.pairs}))
        return tuple(sorted(g.name for g in self.groups.values() if not g.unmarked))

    def counterparts(self, term: Term, group: str) -> tuple[Term, ...]:
        """Return what may replace ``term`` to name ``group``, the usual word first.

        Where the group has no term in the slot, those of its fallback group serve (father → parent for
        non-binary people); their ``group`` tells. Empty if nothing can.

        >>> gender = load("gender")
        >>> man = next(t for t in gender.terms if t.text == "man")
        >>> [t.text for t in gender.counterparts(man, "trans_female")]
        ['trans woman']
        """
        if self.pairs is not None:
            return self._by_pair.get((term, group), ())
        own = self._by_slot.get((term.slot, group), ())
        fallback = self.groups[group].fallback
        return own or (self._by_slot.get((term.slot, fallback), ()) if fallback else ())

    @cached_property
    def _by_slot(self) -> dict[tuple[str, str], tuple[Term, ...]]:
        found: dict[tuple[str, str], list[Term]] = {}
        for term in self.terms:
            if "source-only" not in term.tags:
                found.setdefault((term.slot, term.group), []).append(term)
        return {key: tuple(terms) for key, terms in found.items()}

    @cached_property
    def _by_pair(self) -> dict[tuple[Term, str], tuple[Term, ...]]:
        found: dict[tuple[Term, str], list[Term]] = {}
        for source, target in self.pairs or ():
            found.setdefault((source, target.group), []).append(target)
        return {key: tuple(terms) for key, terms in found.items()}


def builtin() -> list[str]:
    """Return the names of the dictionaries that come with the tool, sorted."""
    return data.names("dictionaries")


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
            )
        path = data.path("dictionaries", f"{path_or_name}.yaml")
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    return _load_yaml(path, stamp)


@lru_cache(maxsize=32)
def _load_yaml(path: Path, stamp: int) -> Dictionary:
    from auditor._dictionary_file import parse_dictionary

    text = read_text(path)
    return parse_dictionary(text, path)


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
    united: dict[str, dict[tuple[Term, Term], None]] = {}
    notes: dict[str, list[str]] = {}
    hashes: dict[str, list[str]] = {}
    for path in _expand(files):
        name = attribute or path.resolve().parent.name
        text = read_text(path)
        pairs, passed = _read_pairs(text, path, name)
        united.setdefault(name, {}).update(dict.fromkeys(pairs))
        notes.setdefault(name, []).extend(passed)
        hashes.setdefault(name, []).append(hashlib.sha256(text.encode()).hexdigest())
    out = []
    for name in sorted(united):
        if not united[name]:
            raise DataFileError(
                f"{notes[name][0]}. Separate the two words by a semicolon, one pair a line: man;woman"
            )
        out.append(_from_pairs(name, tuple(united[name]), notes[name], hashes[name]))
    return out


def _expand(files: Iterable[str | Path]) -> list[Path]:
    paths: list[Path] = []
    for given in files:
        path = Path(given)
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
            raise DataFileError(f"{path}, line {number}: {len(cells)} cells, expected source;target")
        if len(cells) < 2 or not cells[0] or not cells[1]:
            short += 1
            continue
        for cell in cells[:2]:
            if not any(c.isalnum() for c in cell):
                raise DataFileError(f"{path}, line {number}: the term {cell!r} holds no letter or digit")
        if cells[0] == cells[1]:
            continue
        made = [
            Term(text=cell, attribute=attribute, group=group, slot="pair", source=path.name)
            for cell, group in zip(cells[:2], groups, strict=True)
        ]
        pairs.append((made[0], made[1]))
    if not pairs:
        return pairs, [f"{path}: no line reads source;target, so the file was passed over"]
    return pairs, [f"{path.name}: {short} lines without a pair were passed over"] if short else []


def _from_pairs(
    attribute: str, pairs: tuple[tuple[Term, Term], ...], notes: Sequence[str], hashes: Sequence[str]
) -> Dictionary:
    # One term may come from several files: the file must not make it two terms.
    canonical: dict[tuple[str, str], Term] = {}
    for pair in pairs:
        for term in pair:
            canonical.setdefault((term.text, term.group), term)
    unified = tuple(dict.fromkeys((canonical[s.text, s.group], canonical[t.text, t.group]) for s, t in pairs))
    groups = sorted({t.group for t in canonical.values()})
    return Dictionary(
        attribute=attribute,
        groups={g: Group(name=g, label=g.replace("_", " ")) for g in groups},
        terms=tuple(canonical.values()),
        pairs=unified,
        name=f"{attribute} (pairs)",
        sha256=hashlib.sha256("".join(hashes).encode()).hexdigest(),
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
            raise ConfigError(
                f"--dictionary {option!r}: expected [ATTRIBUTE=]FILE, for example race=pairs.csv"
            )
        return None, option
    if not file:
        raise ConfigError(f"--dictionary {option!r}: no file after '='")
    return attribute, file


def load_options(options: Sequence[str]) -> list[Dictionary]:
    """Load what ``--dictionary`` names: built-in names, YAML files, pair files and folders of pair files.

    Pair files of one attribute are united. Two dictionaries for one attribute are an error.
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
    chosen[one.attribute] = one


def check(dictionaries: Sequence[Dictionary]) -> list[str]:
    """Say what is doubtful about ``dictionaries``; empty if nothing is.

    Reported: a word that two attributes look for, a word in two slots of one group that nothing tells
    apart, a slot without counterpart, and an attribute given twice.
    """
    problems: list[str] = []
    owner: dict[str, str] = {}
    for one in dictionaries:
        mine = {t.text.lower(): t for t in one.sources}
        for word in sorted(mine):
            if word in owner and owner[word] != one.attribute:
                problems.append(
                    f"{word!r} belongs to {owner[word]} and {one.attribute}; keep it in one of them"
                )
            elif word in owner:
                problems.append(f"{one.attribute}: two dictionaries hold {word!r}")
            owner.setdefault(word, one.attribute)
        if not one.raw:
            problems += _check_slots(one)
    return problems


def _check_slots(one: Dictionary) -> list[str]:
    problems = []
    seen: dict[str, Term] = {}
    for term in one.sources:
        other = seen.setdefault(term.text.lower(), term)
        told_apart = (other.tags ^ term.tags) & {"as:noun", "as:adjective", "before:person"}
        if other is not term and not told_apart and not term.slot.startswith("pronoun."):
            problems.append(f"{one.attribute}: {term.text!r} stands in {other.slot} and in {term.slot}")
        if not any(one.counterparts(term, g) for g in one.targets if g != term.group):
            problems.append(f"{one.attribute}: {term.text!r} ({term.slot}) has no counterpart in any group")
    return problems


def read_text(path: Path) -> str:
    """Read a UTF-8 file; a byte order mark is dropped. Raises `DataFileError`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot be read ({error.strerror}). Check the path, or list what there is: "
            "audit dictionary list"
        ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataFileError(
            f"{path}, line {line}: not UTF-8 (byte {error.start}). Save the file as UTF-8, for example: "
            f"iconv -f latin1 -t utf-8 {path.name} > new.csv"
        ) from error


@lru_cache(maxsize=1)
def persons() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return singular and plural person nouns and the modifiers that may precede them, in lower case."""
    import yaml

    content: dict[str, Any] = yaml.safe_load(read_text(data.path("dictionaries", "shared", "persons.yaml")))
    irregular = dict(content["irregular"])
    singular = {noun for noun in content["nouns"].split() if noun not in irregular}
    plural = {_plural(noun) for noun in singular} | set(irregular)
    for term in load("gender").sources:
        if term.pos == "NNS":
            plural.add(term.text.lower().split()[-1])
        elif term.pos == "NN" and term.role in {"person", "kin", "occupation", "rank"}:
            singular.add(term.text.lower().split()[-1])
    return frozenset(singular), frozenset(plural), frozenset(content["modifiers"].split())


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
