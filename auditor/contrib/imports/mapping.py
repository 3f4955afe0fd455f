"""Which column says what: the roles, written to ``import.toml`` and read from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from pydantic import BaseModel, BeforeValidator, Field

from auditor.contrib.imports.answer_files import Table
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.reading import load_toml

Names = Annotated[tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]
Kind = Literal["label", "labels", "number", "words", "matches", "text"]
T = TypeVar("T")
BESIDE = ".import.toml"  # what stands beside a table of answers that a run was written to


class Arm(BaseModel, frozen=True, extra="forbid"):
    """The column that says what a version is for; every other value is an edited one."""

    column: str
    original: Names = ()
    placebo: Names = ()


class Long(BaseModel, frozen=True, extra="forbid"):
    """Two columns for all attributes: the one names the attribute, the other its group."""

    attribute: str
    group: str


class Roles(BaseModel, frozen=True, extra="forbid"):
    """The roles of the columns of a table in which one row is one answer."""

    text: Names = Field(min_length=1)  # columns that together name the source text
    answer: str  # the column of answers; ``kind`` says what is taken of them
    kind: Kind = "label"  # the label, labels, the number, the text, how many words, or how many matches of ``pattern``
    labels: Names = ()  # what answers are read as; else the labels that they show
    field: str | None = None  # the key of JSON answers
    favourable: Names = ()  # labels that are good to get
    unit: str = ""
    groups: Mapping[str, str] = Field(default_factory=dict)  # attribute → the column that names its group
    long: Long | None = None  # instead of, or beside, ``groups``
    source: str | None = None  # what texts were made of: texts of one source are one unit
    original: Mapping[str, str] = Field(default_factory=dict)  # attribute → the column of the group before any change
    arm: Arm | None = None
    split: Mapping[str, Mapping[str, Mapping[str, str]]] = Field(default_factory=dict)  # identity."black woman"
    word: str | None = None  # the word or name that states the group, where several do
    model: Names = ()
    format: Names = ()
    replicate: str | None = None  # else the order of the rows
    gold: str | None = None
    where: Mapping[str, Names] = Field(default_factory=dict)  # column → values of rows that count; others are left out
    unmarked: Mapping[str, Names] = Field(default_factory=dict)  # attribute → groups that name nobody in particular
    references: Mapping[str, str] = Field(default_factory=dict)  # attribute → the group that others are compared with
    pattern: str = ""  # a regular expression; upper and lower case are alike
    parts: Mapping[str, str] = Field(default_factory=dict)  # column → a pattern whose named groups become columns
    wide: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)  # column of answers → the groups it is about
    task: str = "imported"  # what the run is called
    # Of a table that a run was written to; what became of a call: "ok", "refused", "unparsed", "failed".
    status: str | None = None
    score: str | None = None  # the log odds beside a label
    delta: float | None = None  # largest net difference that counts as none
    edits: str | None = None  # what was changed, as JSON
    place: str | None = None  # how much of a text comes before its first edit, in thousandths
    version: str | None = None  # the id of the changed text
    primary: Mapping[str, tuple[str, str]] = Field(default_factory=dict)  # attribute → the pair that is compared first
    graded: Names = ()  # formats whose answers are a number from 0 to 100 beside a label
    # model → whether texts that need different answers got them
    control: Mapping[str, bool] = Field(default_factory=dict)

    def columns(self) -> list[str]:
        """Every column that is named, once."""
        several = self.groups.values(), self.original.values(), self.where, self.model, self.format
        one = [self.source, self.replicate, self.gold, self.word]
        one += [self.status, self.score, self.edits, self.place, self.version]
        one += [self.long.attribute, self.long.group] if self.long else []
        one += [self.arm.column] if self.arm else []
        return list(dict.fromkeys(name for name in (*self.text, self.answer, *chain(*several), *one) if name))

    def check(self, table: Table) -> None:
        """Refuse columns and values that the table lacks, and roles that leave nothing to compare.

        Raises `UnknownValue` and `ConfigError`.
        """
        if missing := [name for name in self.columns() if name not in table.columns]:
            raise UnknownValue(table.sources[0].file, missing[0], "column", table.columns)
        if not self.groups and self.long is None and self.edits is None:
            raise ConfigError(
                "no column names a group, so there is nobody to compare. Name it in import.toml: "
                '[groups] gender = "COLUMN", or [long] attribute = "COLUMN", group = "COLUMN"'
            )
        if self.edits is None:
            self._check_values(table)

    def _check_values(self, table: Table) -> None:
        """Refuse values of a mapping that its columns lack, but for how they are spelled."""
        arm, long = self.arm, self.long
        wanted: list[tuple[str, str, Iterable[str]]] = [
            *((f"where.{name}", name, values) for name, values in self.where.items()),
            *((f"split.{name}", name, values) for name, values in self.split.items()),
        ]
        if arm is not None:
            wanted += [("arm.original", arm.column, arm.original), ("arm.placebo", arm.column, arm.placebo)]
        for attribute, groups in self.unmarked.items():
            column = self.groups.get(attribute) or (long.group if long else None)
            if column is None:
                raise UnknownValue("unmarked", attribute, "attribute", self.groups)
            wanted.append((f"unmarked.{attribute}", column, groups))
        for option, name, values in wanted:
            if name not in table.columns:
                raise UnknownValue(option.partition(".")[0], name, "column", table.columns)
            known = Counter(v for v in table.columns[name] if v is not None)
            exact = option.startswith("where.") and name not in self.groups.values()
            there = set(known) if exact else {fold(v) for v in known}
            for value in values:
                if value and (value if exact else fold(value)) not in there:
                    ranked = sorted(known, key=lambda v: (-known[v], v))
                    raise UnknownValue(option, value, f"value in the column {name}", ranked)


AROUND = " \t\r\n.,!;:\"'*_`()[]"  # what is written around a label


def fold(value: str) -> str:
    """Return a label without what does not tell labels apart."""
    return value.strip(AROUND).casefold() or value


def missing(value: str | None) -> bool:
    """Whether a field says that there is nothing: empty, NaN, or NA as R writes it ("Na" is a name)."""
    text = (value or "").strip()
    return text in ("", "NA") or text.lower() in ("nan", "n/a", "#n/a", "<na>", "null")


def spelled(values: Iterable[str], named: Iterable[str] = ()) -> dict[str, str]:
    """Return each value with the one of its spellings that the mapping names, or else the most frequent one."""
    count, named, best = Counter(values), list(named), dict[str, str]()
    for value in [*named, *sorted(count, key=lambda v: (-count[v], v))]:
        best.setdefault(fold(value), value.strip())
    return {value: value if value in named else best[fold(value)] for value in count}


def kind_of(word: str) -> str:
    """Return ``word``, a kind of answers; `UnknownValue` where there is none such."""
    if word not in get_args(Kind):
        raise UnknownValue("--kind", word, "kind of answers", get_args(Kind))
    return word


def number(value: str) -> float | None:
    """The number that a field holds, or None."""
    try:
        read = float(value)
    except ValueError:
        return None
    return read if abs(read) < float("inf") else None


def decoded(written: str, kind: type[T], what: str) -> T:
    """The value that a field of a table of a run holds as JSON."""
    try:
        return msgspec.json.decode(written, type=kind)
    except msgspec.DecodeError as error:
        raise DataFileError(f"not {what}: {written[:60]!r} ({error})") from None


def load(path: Path) -> Roles:
    """Read ``import.toml``; `DataFileError` names file, line and role of a mistake."""
    return load_toml(path, Roles, f"Roles are {', '.join(Roles.model_fields)}.")[0]


def dump(roles: Roles) -> str:
    """``roles`` as TOML; what has its default is left out."""
    import tomli_w

    def plain(value: object) -> object:
        if isinstance(value, tuple | list):
            return value[0] if len(value) == 1 else list(value)
        return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value

    values = roles.model_dump(exclude_defaults=True, exclude_none=True)
    return tomli_w.dumps({k: plain(v) for k, v in values.items()})
