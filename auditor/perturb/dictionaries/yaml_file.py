"""Dictionary files in YAML, as dictionaries/README.md describes them; all values are text (``no`` is a word)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.reading import Where, checked, load_fields, place
from auditor.core.shown import plural
from auditor.perturb.dictionaries.entries import NAMED, NAMES, TAGS, Dictionary, Group, Term

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


def read(path: Path, builtin: Callable[[str], Dictionary]) -> Dictionary:
    """Read a dictionary; ``builtin`` loads the one that it extends. `DataFileError` names file, line and field."""
    missing = " What there is: audit list dictionaries"
    raw, lines = load_fields(path, missing=missing, empty=f". {HELP}", plain=True)
    base = builtin(str(raw["extends"])) if "extends" in raw else None
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
        if unknown := sorted(tags - TAGS):
            self.fail(("slots", slot), f"{unknown[0]!r} is not a condition; known: {', '.join(sorted(TAGS))}")
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
