"""Which column says what: the roles, written to ``import.toml`` and read from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from auditor.contrib.imports.answer_files import Table, named
from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.reading import from_toml
from auditor.core.shown import quoted

Names = Annotated[tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]
Kind = Literal["label", "labels", "number", "words", "matches", "text"]
BESIDE = ".import.toml"  # what stands beside a table of answers that a run was written to


class Arm(BaseModel):
    """The column that says what a version is for; every other value is an edited one."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    column: str
    original: Names = ()
    placebo: Names = ()


class Long(BaseModel):
    """Two columns for all attributes: the one names the attribute, the other its group."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    attribute: str
    group: str


class Roles(BaseModel):
    """The roles of the columns of a table in which one row is one answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: Names = Field(min_length=1)  # columns that together name the source text
    answer: str  # the column of answers; ``kind`` says what is taken of them
    kind: Kind = "label"  # the label, the number, how many words there are, or matches of ``pattern``
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
    references: Mapping[str, str] = Field(default_factory=dict)  # attribute → the group that others are compared with
    pattern: str = ""  # a regular expression; upper and lower case are alike
    parts: Mapping[str, str] = Field(default_factory=dict)  # column → a pattern whose named groups become columns
    wide: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)  # column of answers → the groups it is about
    minus: str | None = None  # a column that is taken from a number: log-probabilities of two labels
    task: str = "imported"  # what the run is called
    # Of a table that a run was written to; what became of a call: "ok", "refused", "unparsed", "failed".
    status: str | None = None
    score: str | None = None  # the log odds beside a label
    delta: float | None = None  # largest net difference that counts as none
    edits: str | None = None  # what was changed, as JSON
    version: str | None = None  # the id of the changed text
    primary: Mapping[str, tuple[str, str]] = Field(default_factory=dict)  # attribute → the pair that is compared first
    unmarked: Mapping[str, Names] = Field(default_factory=dict)  # attribute → groups that name nobody in particular
    graded: Names = ()  # formats whose answers are a number from 0 to 100 beside a label
    # model → whether texts that need different answers got them
    control: Mapping[str, bool] = Field(default_factory=dict)

    def columns(self) -> list[str]:
        """Every column that is named, once."""
        many = [
            *self.text,
            self.answer,
            *self.groups.values(),
            *self.original.values(),
            *self.where,
            *self.model,
            *self.format,
        ]
        one = [self.source, self.replicate, self.gold, self.word]
        one += [self.status, self.score, self.edits, self.version]
        one += [self.long.attribute, self.long.group] if self.long else []
        one += [self.arm.column] if self.arm else []
        return list(dict.fromkeys(name for name in (*many, *one) if name))

    def check(self, table: Table) -> None:
        """Refuse (`ConfigError`) columns that the table lacks, and roles that leave nothing to compare."""
        if missing := [name for name in self.columns() if name not in table.columns]:
            raise ConfigError(
                f"no column {quoted(missing[0])} in {table.sources[0].file}; it has {named(table.columns)}"
            )
        if not self.groups and self.long is None and self.edits is None:
            raise ConfigError(
                "no column names a group, so there is nobody to compare. Name it in import.toml: "
                '[groups] gender = "COLUMN", or [long] attribute = "COLUMN", group = "COLUMN"'
            )
        if self.kind in ("label", "labels") and not self.favourable and self.edits is None:
            labels = sorted({v for v in table.columns[self.answer] if v is not None})
            raise ConfigError(
                f"it is not known which answer is good to get: {', '.join(map(quoted, labels[:8]))}"
                f"{' …' if len(labels) > 8 else ''}. Say --favourable LABEL, or favourable in import.toml"
            )


def number(value: str) -> float | None:
    """The number that a field holds, or None."""
    try:
        read = float(value)
    except ValueError:
        return None
    return read if abs(read) < float("inf") else None


def load(path: Path) -> Roles:
    """Read ``import.toml``; `DataFileError` where it is no TOML, `ConfigError` where a role is missing or not known."""
    try:
        values = from_toml(reading.text(path))
    except FileNotFoundError:
        raise DataFileError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataFileError(f"{path}: {error}") from None
    try:
        return Roles.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {where}: {first['msg']}. Roles are {', '.join(Roles.model_fields)}") from None


def dump(roles: Roles) -> str:
    """``roles`` as TOML; what has its default is left out."""
    import tomli_w

    def plain(value: object) -> object:
        if isinstance(value, tuple | list):
            return value[0] if len(value) == 1 else list(value)
        return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value

    values = roles.model_dump(exclude_defaults=True, exclude_none=True)
    return tomli_w.dumps({k: plain(v) for k, v in values.items()})
