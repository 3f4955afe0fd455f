"""Dictionaries: which words name which group, and what may replace what.

A typed dictionary (YAML) puts terms into slots; terms of equal slots in different groups are counterparts.
A raw pair file (``source;target`` lines, as HInter publishes them) states its pairs one by one. Both become
a `Dictionary`. The file format is described in ``dictionaries/README.md``; shared words lie in ``dictionaries/shared``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin
from auditor.core.reading import Where, checked, load_fields, place
from auditor.core.shown import plural
from auditor.core.types import grouped
from auditor.text.english import plural_of, word_set

NAMED = re.compile(r"\w[\w .-]*")  # an attribute: it is typed in options, and stands in pages and commands
NAMES = "letters, digits, blanks, dots, _ and - are allowed in the name of an attribute"
# Conditions under which a term counts, as ``dictionaries/README.md`` tells them, and: found or written, but not both.
TAGS = word_set(
    "case lower start spoken no_exclamation before:person after:person after:pointer after:comma before:name as:noun "
    "as:adjective name source-only target-only"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group of an attribute.

    ``unmarked`` groups name nobody's attribute (people, person) and are never a target. The terms of ``fallback`` stand
    in where this group has none in a slot. ``agrees`` is the gender whose pronouns go with it.
    """

    name: str
    label: str
    unmarked: bool = False
    fallback: str | None = None
    agrees: str | None = None


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
    tags: frozenset[str] = frozenset()
    not_before: frozenset[str] = frozenset()
    not_after: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The groups and terms of one attribute.

    ``pairs`` are those of a raw dictionary; counterparts of a typed one (None) come from slots. ``default``: an audit
    that names no attributes looks for this one. ``primary`` are the group that is compared first, and its reference.
    ``notes`` says what was passed over while reading.
    """

    attribute: str
    groups: Mapping[str, Group]
    terms: tuple[Term, ...]
    pairs: tuple[tuple[Term, Term], ...] | None = None
    version: int = 1
    name: str = ""
    sha256: str = ""
    default: bool = True
    primary: tuple[str, str] | None = None
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

    def counterparts(self, term: Term, group: str) -> Sequence[Term]:
        """Return what may replace ``term`` to name ``group``, the usual word first."""
        if self.pairs is not None:
            return self._by_pair.get((term, group), ())
        own = self._by_slot.get((term.slot, group), ())
        fallback = self.groups[group].fallback
        return own or (self._by_slot.get((term.slot, fallback), ()) if fallback else ())

    def named(self, groups: Iterable[str]) -> str:
        """Return the groups that a text names, joined by "+"; unmarked ones only where no other is named."""
        every = set(groups)
        marked = {group for group in every if not self.groups[group].unmarked}
        implied = {self.groups[group].fallback for group in marked}
        return "+".join(sorted(marked - implied or marked or every))

    def alternatives(self, term: Term) -> tuple[Term, ...]:
        """Return other surface forms for the same group in the same slot, for a placebo."""
        if self.pairs is not None or term.slot.startswith("pronoun."):
            return ()
        same = {term.text.lower(): term}  # a form that two slots hold counts once, as the first one
        for other in self._by_kind.get((_kind(term), term.group), ()):
            same.setdefault(other.text.lower(), other)
        return tuple(t for t in same.values() if t is not term and t.register in (term.register, "neutral"))

    @cached_property
    def _by_kind(self) -> dict[tuple[tuple[str, ...], str], list[Term]]:
        return grouped(((_kind(t), t.group), t) for t in self.terms if "source-only" not in t.tags)

    @cached_property
    def _by_slot(self) -> dict[tuple[str, str], list[Term]]:
        return grouped(((t.slot, t.group), t) for t in self.terms if "source-only" not in t.tags)

    @cached_property
    def _by_pair(self) -> dict[tuple[Term, str], list[Term]]:
        return grouped(((source, target.group), target) for source, target in self.pairs or ())


def _kind(term: Term) -> tuple[str, ...]:
    """What two terms must share to stand for one another; nouns for people may differ in register, not in nation."""
    loose = term.role in {"person", "kin"} and not term.slot.startswith("nation.")
    slot = term.slot.partition(".")[0] if loose else term.slot
    return slot, term.pos, term.number, term.role


# -- which there are, and words that all of them share -------------------------------------------------------


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
    return _read_yaml(path)


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


# -- files in YAML, as dictionaries/README.md has them; all values are text (``no`` is a word) ---------------


HELP = "The format: audit list dictionaries format"
EVERY = "*"
_KINDS = {"terms": None, "source_only": "source-only", "target_only": "target-only"}


def _word(text: str) -> str:
    if not any(c.isalnum() for c in text) and text != EVERY:
        raise ValueError(f"{text!r} holds no letter or digit")
    return text.strip()


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _conditions(value: object) -> object:
    return {value: EVERY} if isinstance(value, str) else value


def _attribute(name: str) -> str:
    if not NAMED.fullmatch(name):
        raise ValueError(f"{name!r}: only {NAMES}")
    return name


Words = Annotated[tuple[Annotated[str, AfterValidator(_word)], ...], BeforeValidator(_listed)]
Needs = Annotated[dict[str, Words], BeforeValidator(_conditions)]  # condition -> words


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Group(_Part):
    label: str = ""
    unmarked: bool = False
    fallback: str | None = None
    agrees: str | None = None
    source: str = ""


class _Column(_Part):
    """What holds for all words of a slot."""

    pos: str = ""
    number: str = ""
    role: str = ""
    register_: str = Field("neutral", alias="register")
    source: str = ""
    before: str = ""
    after: str = ""
    as_: str = Field("", alias="as")
    needs: Needs = {}
    not_before: Words = ()
    not_after: Words = ()


class _Slot(_Column):
    terms: dict[str, Words] = {}
    source_only: dict[str, Words] = {}
    target_only: dict[str, Words] = {}


class _Table(_Part):
    columns: dict[str, _Column]
    rows: dict[str, Words]


class _File(_Part):
    attribute: Annotated[str, AfterValidator(_attribute)]
    groups: dict[str, Annotated[_Group, BeforeValidator(lambda value: value or {})]] | Literal["from_table"]
    extends: str = ""
    version: int = 1
    default: bool = True
    primary: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)] | None = None
    source: str = ""
    slots: dict[str, _Slot] | None = None
    table: _Table | None = None
    needs: Needs = {}
    not_before: dict[str, Words] = {}
    not_after: dict[str, Words] = {}


_Row = tuple[str, str, str, str | None, _Column]  # slot, group, word, tag, and what its slot says of it


def _read_yaml(path: Path) -> Dictionary:
    """Read a dictionary; `DataFileError` names file, line and field."""
    missing = " What there is: audit list dictionaries"
    raw, lines = load_fields(path, missing=missing, empty=f". {HELP}", plain=True)
    base = load(str(raw["extends"])) if "extends" in raw else None
    if base is not None:
        raw = {"attribute": base.attribute, "groups": {}, "default": base.default, **raw}
        if isinstance(slots := raw.get("slots"), dict):
            own = {name: slot for name, slot in slots.items() if isinstance(slot, dict)}
            raw["slots"] = slots | {name: _inherited(base, name) | slot for name, slot in own.items()}
    file = checked(_File, raw, path, lines, HELP)
    text = (base.sha256 if base else "") + reading.read_text(path)
    return _Reader(path, lines, file, base).dictionary(hashlib.sha256(text.encode()).hexdigest())


def _inherited(base: Dictionary, slot: str) -> dict[str, object]:
    """Return what holds for all terms of a slot in the dictionary that is extended."""
    known = [t for t in base.terms if t.slot == slot]
    if not known:
        return {}
    tags = frozenset.intersection(*(t.tags for t in known if "target-only" not in t.tags))
    values: dict[str, object] = {key: getattr(known[0], key) for key in ("pos", "number", "role", "register")}
    values |= dict(tag.split(":", 1) for tag in sorted(tags) if ":" in tag)
    for key in ("not_before", "not_after"):
        values[key] = sorted(frozenset.intersection(*(getattr(t, key) for t in known)))
    return {key: value for key, value in values.items() if value}


class _Reader:
    """Makes the dictionary of one file."""

    def __init__(self, path: Path, lines: Mapping[Where, int], file: _File, base: Dictionary | None) -> None:
        self.path, self.lines, self.file, self.base = path, lines, file, base

    def fail(self, where: Where, what: str) -> NoReturn:
        raise DataFileError(f"{place(self.path, self.lines, where)}: field {'.'.join(map(str, where))}: {what}. {HELP}")

    def dictionary(self, sha256: str) -> Dictionary:
        file, base = self.file, self.base
        if base is not None and file.attribute != base.attribute:
            self.fail(("attribute",), f"{file.attribute!r} is not the attribute that is extended, {base.attribute!r}")
        groups = self.groups()
        if file.primary and not set(file.primary) <= groups.keys():
            self.fail(("primary",), "must name two of the groups: the compared group and its reference")
        rows = [*self.slot_rows(), *self.table_rows()]
        if not rows and file.slots != {}:  # groups alone: names of other languages carry them
            self.fail(("slots",), "holds no term")
        terms = (base.terms if base else ()) + tuple(self.term(groups, row) for row in rows)
        seen: set[tuple[str, str, str]] = set()
        for term in terms:
            if (key := (term.text, term.group, term.slot)) in seen:
                self.fail(("slots", term.slot), f"{term.text!r} is twice in group {term.group}")
            seen.add(key)
        return Dictionary(
            attribute=file.attribute,
            groups=groups,
            terms=terms,
            version=file.version,
            name=file.attribute,
            sha256=sha256,
            default=file.default,
            primary=(file.primary[0], file.primary[1]) if file.primary else None,
        )

    def groups(self) -> dict[str, Group]:
        if self.file.groups == "from_table":
            rows = self.file.table.rows if self.file.table else {}
            return {name: Group(name=name, label=f"{cells[0]} people") for name, cells in rows.items()}
        out = dict(self.base.groups) if self.base else {}
        for name, own in self.file.groups.items():
            out[name] = Group(**own.model_dump(exclude={"source"}) | {"name": name, "label": own.label or name})
        for group in out.values():
            if group.fallback is not None and group.fallback not in out:
                self.fail(("groups", group.name, "fallback"), f"{group.fallback!r} is not a group of this file")
        return out

    def slot_rows(self) -> Iterator[_Row]:
        for name, slot in (self.file.slots or {}).items():
            for kind, tag in _KINDS.items():
                cells: Mapping[str, tuple[str, ...]] = getattr(slot, kind)
                yield from ((name, group, text, tag, slot) for group, own in cells.items() for text in own)

    def table_rows(self) -> Iterator[_Row]:
        table = self.file.table or _Table(columns={}, rows={})
        for group, texts in table.rows.items():
            if len(texts) != len(table.columns):
                counts = f"{plural(len(texts), 'cell')} for {plural(len(table.columns), 'column')}"
                self.fail(("table", "rows", group), counts)
            for (slot, column), text in zip(table.columns.items(), texts, strict=True):
                tag = "target-only" if text.startswith(texts[0] + " ") else None
                yield slot, group, text, tag, column

    def term(self, groups: Mapping[str, Group], row: _Row) -> Term:
        slot, group, text, tag, column = row
        if group not in groups:
            self.fail(("slots", slot), f"{group!r} is not a group of this file; groups: {', '.join(sorted(groups))}")
        tags = {tag} if tag else set()
        tags |= {f"{key.strip('_')}:{own}" for key in ("before", "after", "as_") if (own := getattr(column, key))}
        for needs in (column.needs, self.file.needs):
            tags |= {need for need, words in needs.items() if text in words or EVERY in words}
        if others := sorted(tags - TAGS):
            self.fail(("slots", slot), f"{others[0]!r} is not a condition; known: {', '.join(sorted(TAGS))}")
        near = {}
        for key, table in (("not_before", self.file.not_before), ("not_after", self.file.not_after)):
            words = (*table.get(EVERY, ()), *table.get(text, ()), *getattr(column, key))
            near[key] = frozenset(word.lower() for word in words)
        return Term(
            text=text,
            attribute=self.file.attribute,
            group=group,
            slot=slot,
            pos=column.pos,
            number=column.number,
            role=column.role,
            register=column.register_,
            tags=frozenset(tags),
            **near,
        )
