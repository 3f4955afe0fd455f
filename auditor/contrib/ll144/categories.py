"""Recorded values to the categories that the rule prints."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from auditor.core import reading
from auditor.core.errors import DataFileError

SEXES = ("Male", "Female")
HISPANIC, TWO_OR_MORE = "Hispanic or Latino", "Two or More Races"
RACES = (
    HISPANIC,
    "White",
    "Black or African American",
    "Native Hawaiian or Pacific Islander",
    "Asian",
    "Native American or Alaska Native",
    TWO_OR_MORE,
)
NOT_HISPANIC = "not"
DEFAULT = Path(__file__).with_name("categories.yaml")
_FIELDS = {"sex": SEXES, "race_ethnicity": RACES, "ethnicity": (HISPANIC, NOT_HISPANIC)}
_PARTS = re.compile(r"[;|+,]")


def plain(value: str) -> str:
    """Fold case, turn punctuation into spaces, squeeze spaces."""
    folded = unicodedata.normalize("NFKC", value).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", folded).split()) or value.strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A category, or none; ``unmapped`` if the map knows the value neither as one nor as unknown."""

    category: str | None
    unmapped: bool = False


UNKNOWN, UNMAPPED = Found(category=None), Found(category=None, unmapped=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryMap:
    """Recorded values with their category, by column, and values that say nothing; all of them `plain`."""

    sex: Mapping[str, str]
    race_ethnicity: Mapping[str, str]
    ethnicity: Mapping[str, str]
    unknown: frozenset[str]

    def find_sex(self, value: str) -> Found:
        """Look up a value of the sex column."""
        return self._find(self.sex, value)

    def find_race(self, value: str, ethnicity: str | None = None) -> Found:
        """Look up race and, where there is one, the ethnicity column; Hispanic or Latino comes first.

        A value that lists several races (``White; Asian``) is Two or More Races, unless one of them is
        Hispanic or Latino or stands for nothing known.
        """
        if ethnicity is not None:
            said = self._find(self.ethnicity, ethnicity)
            if said.category == HISPANIC or said.unmapped:
                return said
        whole = self._find(self.race_ethnicity, value)
        parts = [p for p in _PARTS.split(value) if p.strip()]
        if whole.category or not whole.unmapped or len(parts) < 2:
            return whole
        each = {self._find(self.race_ethnicity, p) for p in parts}
        named = {f.category for f in each if f.category}
        if HISPANIC in named:
            return Found(category=HISPANIC)
        if any(not f.category for f in each):
            return UNMAPPED
        return Found(category=named.pop() if len(named) == 1 else TWO_OR_MORE)

    def _find(self, table: Mapping[str, str], value: str) -> Found:
        key = plain(value)
        if key in table:
            return Found(category=table[key])
        return UNKNOWN if not key or key in self.unknown else UNMAPPED


class MapFile(msgspec.Struct, forbid_unknown_fields=True):
    """A map as it is written: categories with their values."""

    sex: dict[str, list[str | int | float]] = {}
    race_ethnicity: dict[str, list[str | int | float]] = {}
    ethnicity: dict[str, list[str | int | float]] = {}
    unknown: list[str | int | float] = []


def load(path: Path | None = None) -> CategoryMap:
    """Read the map of this package, with the lines of ``path`` added."""
    tables: dict[str, dict[str, str]] = {name: {plain(c): c for c in cats} for name, cats in _FIELDS.items()}
    unknown: set[str] = set()
    for file in (DEFAULT, *([path] if path else [])):
        try:
            added = msgspec.convert(reading.load_yaml(file), MapFile)
        except msgspec.ValidationError as error:
            raise DataFileError(
                f"{file}: {error}. A map has the fields {', '.join(_FIELDS)} (categories, each with a list of values "
                "such as [m, male]) and unknown (a list). Put yes, no, true and false in quotation marks"
            ) from None
        unknown |= {plain(str(v)) for v in added.unknown}
        for name, known in _FIELDS.items():
            seen: dict[str, str] = {}
            for category, values in getattr(added, name).items():
                if category not in known:
                    raise DataFileError(
                        f"{file}, field {name}: unknown category {category!r}; known: {', '.join(known)}"
                    )
                for value in values:
                    if (before := seen.setdefault(plain(str(value)), category)) != category:
                        raise DataFileError(
                            f"{file}, field {name}: {value!r} is under {before!r} and under {category!r}"
                        )
            tables[name] |= seen
            unknown -= set(seen) if file is not DEFAULT else set()
    return CategoryMap(**tables, unknown=frozenset(unknown))
