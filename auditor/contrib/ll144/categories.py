"""Recorded values to the categories that the rule prints."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
    """Fold case, turn punctuation into spaces, squeeze spaces.

    Examples
    --------
    >>> plain("  Hispanic/Latino ")
    'hispanic latino'
    """
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
    """Synonyms by column; keys are `plain`."""

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


def load(path: Path | None = None) -> CategoryMap:
    """Read the map of this package, with the lines of ``path`` added.

    Raises
    ------
    DataFileError
        The file is missing, no YAML, names an unknown field or category, or gives one value two categories.
    """
    tables: dict[str, dict[str, str]] = {name: {plain(c): c for c in cats} for name, cats in _FIELDS.items()}
    unknown: set[str] = set()
    for file in (DEFAULT, *([path] if path else [])):
        added = _read(file)
        unknown |= {plain(v) for v in _texts(file, "unknown", added.pop("unknown", []))}
        for name, groups in added.items():
            seen: dict[str, str] = {}
            for category, values in _groups(file, name, groups):
                for value in _texts(file, f"{name}.{category}", values):
                    key = plain(value)
                    if seen.setdefault(key, category) != category:
                        raise DataFileError(
                            f"{file}, field {name}: {value!r} stands under {seen[key]!r} and under {category!r}"
                        )
            tables[name] |= seen
            unknown -= set(seen) if file is not DEFAULT else set()
    return CategoryMap(
        sex=tables["sex"],
        race_ethnicity=tables["race_ethnicity"],
        ethnicity=tables["ethnicity"],
        unknown=frozenset(unknown),
    )


def _groups(file: Path, name: str, groups: object) -> list[tuple[str, object]]:
    if name not in _FIELDS:
        raise DataFileError(f"{file}: unknown field {name!r}; known: {', '.join([*_FIELDS, 'unknown'])}")
    if not isinstance(groups, dict):
        raise DataFileError(f"{file}, field {name}: expected categories with lists of values")
    for category in groups:
        if category not in _FIELDS[name]:
            raise DataFileError(
                f"{file}, field {name}: unknown category {category!r}; known: {', '.join(_FIELDS[name])}"
            )
    return list(groups.items())


def _texts(file: Path, name: str, values: object) -> list[str]:
    if not isinstance(values, list) or any(isinstance(v, dict | list) or v is None for v in values):
        raise DataFileError(f"{file}, field {name}: expected a list of values, such as [m, male]")
    for value in values:
        if isinstance(value, bool):
            raise DataFileError(f"{file}, field {name}: put yes, no, true and false in quotation marks")
    return [str(v) for v in values]


def _read(file: Path) -> dict[str, object]:
    value = reading.load_yaml(file)
    if not isinstance(value, dict):
        raise DataFileError(f"{file}: expected the fields {', '.join([*_FIELDS, 'unknown'])}")
    return value
