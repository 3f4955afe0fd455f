"""A dictionary: its groups and terms, what may replace what, and its YAML form; every mistake names file and field."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.shown import plural
from auditor.perturb.combine import grouped

K = TypeVar("K", bound=Hashable)
TAGS = frozenset(
    {
        "case",  # only with a capital letter (Polish), and at a sentence start only before a person noun
        "lower",  # not with a capital letter inside a sentence, where it is a name (Stephen King)
        "start",  # only with a capital letter that opens a sentence
        "spoken",  # in a text that is said to somebody: a question, an exclamation, a contraction, I or you
        "no_exclamation",  # not as an exclamation (Oh boy! Man, was I wrong.)
        "before:person",  # only before a person noun, with modifiers between (a white elderly man)
        "after:person",  # only right after a person noun (a student with dyslexia)
        "after:pointer",  # only behind a word that says which ones (the people, her angry parents)
        "after:comma",  # only right after a comma
        "before:name",  # only before a capitalised word (Ms. Hendricks)
        "as:noun",  # only where it stands as a noun (an American.)
        "as:adjective",  # only where it stands as an adjective (an American film; He is American.)
        "name",  # only as a first name (Emily, Emily Walsh; not Joan Emily, the Emily)
        "source-only",  # found, never written
        "target-only",  # written, never found
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group of an attribute.

    ``unmarked`` groups name nobody's attribute (people, person): an edit from one is of kind "marking", and
    they are never a target. ``fallback`` is the group whose terms stand in where this one has no term in a
    slot. ``agrees`` is the gender group whose pronouns go with this one: a name is exchanged for one of
    another gender only where no word of the text names a gender.
    """

    name: str
    label: str
    unmarked: bool = False
    fallback: str | None = None
    agrees: str | None = None
    source: str = ""


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
    raw one. ``default`` says whether an audit that names no attributes looks for this one. ``primary`` are the two
    groups that are compared first (the second one is the reference). ``notes`` says what was passed over while
    reading.
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

    def counterparts(self, term: Term, group: str) -> tuple[Term, ...]:
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
    def _by_kind(self) -> dict[tuple[tuple[str, ...], str], tuple[Term, ...]]:
        return _grouped(((_kind(t), t.group), t) for t in self.terms if "source-only" not in t.tags)

    @cached_property
    def _by_slot(self) -> dict[tuple[str, str], tuple[Term, ...]]:
        return _grouped(((t.slot, t.group), t) for t in self.terms if "source-only" not in t.tags)

    @cached_property
    def _by_pair(self) -> dict[tuple[Term, str], tuple[Term, ...]]:
        return _grouped(((source, target.group), target) for source, target in self.pairs or ())


def _grouped(rows: Iterable[tuple[K, Term]]) -> dict[K, tuple[Term, ...]]:
    return {key: tuple(terms) for key, terms in grouped(rows).items()}


def _kind(term: Term) -> tuple[str, ...]:
    """What two terms must share to stand for one another; nouns for people may differ in register, not in nation."""
    loose = term.role in {"person", "kin"} and not term.slot.startswith("nation.")
    slot = term.slot.partition(".")[0] if loose else term.slot
    return slot, term.pos, term.number, term.role


NAMED = re.compile(r"\w[\w .-]*")  # an attribute: it is typed in options, and stands in pages and commands
NAMES = "letters, digits, blanks, dots, _ and - are allowed in the name of an attribute"
_NEAR = ("not_before", "not_after")
_TOP = {"attribute", "extends", "version", "default", "primary", "source", "groups", "slots", "table", "needs", *_NEAR}
_META = {"pos", "number", "role", "register", "source", "before", "after", "as", "needs", *_NEAR}
_GROUP = ("label", "unmarked", "fallback", "agrees", "source")
_KINDS: dict[str, str | None] = {"terms": None, "source_only": "source-only", "target_only": "target-only"}


def parse_dictionary(text: str, path: Path, builtin: Callable[[str], Dictionary]) -> Dictionary:
    """Build the dictionary that ``text`` describes; ``path`` is for messages, ``builtin`` loads what it ``extends``."""
    return _Reader(reading.load_yaml(path, text), path, builtin).dictionary(text)


class _Row(NamedTuple):
    """One word of a file, and what its slot or column says of it."""

    slot: str
    group: str
    text: str
    tag: str | None
    meta: Mapping[str, object]


class _Reader:
    """Walks one parsed file."""

    def __init__(self, content: object, path: Path, builtin: Callable[[str], Dictionary]) -> None:
        self.path = path
        self.content = self.mapping(content, "the file")
        for key in self.content:
            if key not in _TOP:
                self.fail(str(key), f"is not a field of a dictionary; known: {', '.join(sorted(_TOP))}")
        self.base = None
        if "extends" in self.content:
            self.base = builtin(self.strings(self.content["extends"], "extends")[0])
            self.content = {"attribute": self.base.attribute, "groups": {}, **self.content}
        for key in ("attribute", "groups"):
            if key not in self.content:
                self.fail(key, "is missing")

    def fail(self, where: str, what: str) -> NoReturn:
        raise DataFileError(f"{self.path}, field {where}: {what}. The format: audit list dictionaries format")

    def mapping(self, value: object, where: str) -> Mapping[str, object]:
        if not isinstance(value, dict):
            self.fail(where, f"expected fields with values, got {type(value).__name__}")
        for key in value:
            if not isinstance(key, str):  # YAML reads a bare no, yes or 1 as something else than a word
                self.fail(where, f"{key!r} is not text; put it in quotation marks")
        return value

    def strings(self, value: Any, where: str) -> list[str]:
        values = value if isinstance(value, list) else [value]
        for one in values:
            if not isinstance(one, str):
                self.fail(where, f"{one!r} is not text; put it in quotation marks")
            if not any(c.isalnum() for c in one) and one != "*":
                self.fail(where, f"{one!r} holds no letter or digit")
        return [one.strip() for one in values]

    def word(self, meta: Mapping[str, object], key: str, where: str, otherwise: str = "") -> str:
        value = meta.get(key, otherwise)
        if not isinstance(value, str | None):
            self.fail(f"{where}.{key}", f"{value!r} is not text; put it in quotation marks")
        return value or ""

    def dictionary(self, text: str) -> Dictionary:
        attribute = self.strings(self.content["attribute"], "attribute")[0]
        if not NAMED.fullmatch(attribute):
            self.fail("attribute", f"{attribute!r}: only {NAMES}")
        base = self.base
        if base is not None and attribute != base.attribute:
            self.fail("attribute", f"{attribute!r} is not the attribute that is extended, {base.attribute!r}")
        version = self.content.get("version", 1)
        if not isinstance(version, int):
            self.fail("version", f"{version!r} is not a whole number")
        default = self.content.get("default", base is None or base.default)
        if not isinstance(default, bool):
            self.fail("default", f"{default!r} is neither true nor false")
        groups = self.groups()
        primary = self.strings(self.content["primary"], "primary") if "primary" in self.content else []
        if primary and (len(set(primary)) != 2 or not set(primary) <= groups.keys()):
            self.fail("primary", "must name two of the groups: the compared group and its reference")
        rows = [*self.slot_rows(), *self.table_rows()]
        terms = tuple(self.term(attribute, groups, row) for row in rows)
        if base is not None:
            terms = base.terms + terms
        if not rows and self.content.get("slots") != {}:  # groups alone: names of other languages carry them
            self.fail("slots", "holds no term")
        self.no_repeats(terms)
        return Dictionary(
            attribute=attribute,
            groups=groups,
            terms=terms,
            version=version,
            name=attribute,
            sha256=hashlib.sha256(((base.sha256 if base else "") + text).encode()).hexdigest(),
            default=default,
            primary=(primary[0], primary[1]) if primary else None,
        )

    def groups(self) -> dict[str, Group]:
        out: dict[str, Group] = dict(self.base.groups) if self.base else {}
        if self.content["groups"] == "from_table":
            rows = self.mapping(self.mapping(self.content.get("table"), "table").get("rows"), "table.rows")
            labels = {name: self.strings(cells, f"table.rows.{name}")[0] for name, cells in rows.items()}
            return {name: Group(name=name, label=f"{label} people") for name, label in labels.items()}
        for name, value in self.mapping(self.content["groups"], "groups").items():
            where = f"groups.{name}"
            info = self.mapping(value or {}, where)
            for key in info:
                if key not in _GROUP:
                    self.fail(f"{where}.{key}", f"is unknown; known: {', '.join(_GROUP)}")
            out[name] = Group(
                name=name,
                label=self.word(info, "label", where, name),
                unmarked=bool(info.get("unmarked", False)),
                fallback=self.word(info, "fallback", where) or None,
                agrees=self.word(info, "agrees", where) or None,
                source=self.word(info, "source", where),
            )
        for group in out.values():
            if group.fallback is not None and group.fallback not in out:
                self.fail(f"groups.{group.name}.fallback", f"{group.fallback!r} is not a group of this file")
        return out

    def slot_rows(self) -> Iterator[_Row]:
        for slot, value in self.mapping(self.content.get("slots", {}), "slots").items():
            row = {**self.inherited(slot), **self.mapping(value, f"slots.{slot}")}
            meta = {k: v for k, v in row.items() if k not in _KINDS}
            for kind, tag in _KINDS.items():
                where = f"slots.{slot}.{kind}"
                for group, cell in self.mapping(row.get(kind, {}), where).items():
                    for text in self.strings(cell, f"{where}.{group}"):
                        yield _Row(slot, group, text, tag, meta)

    def inherited(self, slot: str) -> dict[str, object]:
        """What holds for all terms of a slot in the dictionary that is extended."""
        known = [t for t in self.base.terms if t.slot == slot] if self.base else []
        if not known:
            return {}
        tags = frozenset.intersection(*(t.tags for t in known if "target-only" not in t.tags))
        values: dict[str, object] = {key: getattr(known[0], key) for key in ("pos", "number", "role", "register")}
        values |= dict(tag.split(":", 1) for tag in sorted(tags) if ":" in tag)
        values |= {key: sorted(frozenset.intersection(*(getattr(t, key) for t in known))) for key in _NEAR}
        return {key: value for key, value in values.items() if value}

    def table_rows(self) -> Iterator[_Row]:
        if "table" not in self.content:
            return
        table = self.mapping(self.content["table"], "table")
        columns = self.mapping(table.get("columns"), "table.columns")
        for group, cells in self.mapping(table.get("rows"), "table.rows").items():
            texts = self.strings(cells, f"table.rows.{group}")
            if len(texts) != len(columns):
                self.fail(f"table.rows.{group}", f"{plural(len(texts), 'cell')} for {plural(len(columns), 'column')}")
            for (slot, meta), text in zip(columns.items(), texts, strict=True):
                tag = "target-only" if text.startswith(texts[0] + " ") else None
                yield _Row(slot, group, text, tag, self.mapping(meta, f"table.columns.{slot}"))

    def term(self, attribute: str, groups: Mapping[str, Group], row: _Row) -> Term:
        slot, group, text, tag, meta = row
        where = f"slots.{slot}"
        if group not in groups:
            self.fail(where, f"{group!r} is not a group of this file; groups: {', '.join(sorted(groups))}")
        for key in meta:
            if key not in _META:
                self.fail(f"{where}.{key}", f"is unknown; known: {', '.join(sorted(_META | set(_KINDS)))}")
        tags = {tag} if tag else set()
        tags |= {f"{key}:{meta[key]}" for key in ("before", "after", "as") if key in meta}
        own = meta.get("needs", {})
        if isinstance(own, str):
            tags.add(own)
        else:
            tags |= self.needed(own, text, f"{where}.needs")
        tags |= self.needed(self.content.get("needs", {}), text, "needs")
        own_source = self.word(meta, "source", where)
        if unknown := tags - TAGS:
            self.fail(where, f"{sorted(unknown)[0]!r} is not a condition; known: {', '.join(sorted(TAGS))}")
        return Term(
            text=text,
            attribute=attribute,
            group=group,
            slot=slot,
            pos=self.word(meta, "pos", where),
            number=self.word(meta, "number", where),
            role=self.word(meta, "role", where),
            register=self.word(meta, "register", where, "neutral"),
            source=own_source or groups[group].source or self.word(self.content, "source", "the file"),
            tags=frozenset(tags),
            not_before=self.near("not_before", text, meta),
            not_after=self.near("not_after", text, meta),
        )

    def near(self, key: str, text: str, meta: Mapping[str, object]) -> frozenset[str]:
        table = self.mapping(self.content.get(key, {}), key)
        lists = [source[name] for source, name in ((table, "*"), (table, text), (meta, key)) if name in source]
        return frozenset(w.lower() for words in lists for w in self.strings(words, key))

    def needed(self, table: object, text: str, where: str) -> set[str]:
        """The conditions that ``table`` (condition to words) sets for ``text``."""
        rows = self.mapping(table, where).items()
        return {str(need) for need, words in rows if text in self.strings(words, f"{where}.{need}")}

    def no_repeats(self, terms: tuple[Term, ...]) -> None:
        seen: set[tuple[str, str, str]] = set()
        for term in terms:
            key = (term.text, term.group, term.slot)
            if key in seen:
                self.fail(f"slots.{term.slot}", f"{term.text!r} is twice in group {term.group}")
            seen.add(key)
