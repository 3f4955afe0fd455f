"""The options of ``audit ll144``: files, columns, and the user's decisions; see docs/guide/ll144.md."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from auditor.core.options import FURTHER, Option, PlanModel
from auditor.core.plan import Plan

LL144 = frozenset({"ll144"})
DATA_KINDS = ("historical", "test")
STATED = ("partly_known", "audit_date", "distribution_date", "data_kind", "test_data_reason", "test_data_generation")
DECISIONS = ("excluded", "unknown_in_median", "source", *STATED)


def _as_date(text: object) -> object:
    try:
        return datetime.date.fromisoformat(text) if isinstance(text, str) else text
    except ValueError:
        raise ValueError("must be a date as YYYY-MM-DD") from None


def _excluded(typed: object) -> object:
    """Read ``CATEGORY=JUSTIFICATION`` texts."""
    if not isinstance(typed, list | tuple):
        return typed
    pairs = {category.strip(): reason.strip() for category, _, reason in (str(text).partition("=") for text in typed)}
    if not all(pairs) or not all(pairs.values()):
        raise ValueError(
            'needs "CATEGORY=JUSTIFICATION", as the published summary has to carry the justification (6 RCNY 5-301(d))'
        )
    return pairs


Date = Annotated[datetime.date | None, BeforeValidator(_as_date)]


class Settings(PlanModel):
    """What ``audit ll144`` is told: files, columns, and the user's decisions, all of them recorded."""

    # fmt: off
    data: Annotated[Path | None, Plan.flags()["data"].meaning(LL144, "CSV with one applicant a line.")] = None
    counts: Annotated[Path | None, Option("--counts", FURTHER, LL144,
        "CSV with sex, race, n, and selected or above_median; * is all.")] = None
    sex: Annotated[str | None, Option("--sex", FURTHER, LL144, "Column of the sex.")] = None
    race: Annotated[str | None, Option("--race", FURTHER, LL144, "Column of race/ethnicity.")] = None
    ethnicity: Annotated[str | None, Option("--ethnicity", FURTHER, LL144,
        "Column that says Hispanic or Latino, if there is one.")] = None
    selected: Annotated[str | None, Option("--selected", FURTHER, LL144, "Column of the outcome: yes or no.")] = None
    score: Annotated[str | None, Option("--score", FURTHER, LL144, "Column of the score: numbers.")] = None
    group: Annotated[str | None, Option("--group", FURTHER, LL144,
        "Column of groups; each group gets its tables. Without --selected and --score, membership in a group is the "
        "outcome."
    )] = None
    excluded: Annotated[dict[str, str], BeforeValidator(_excluded), Option("--exclude-below-2-percent", FURTHER, LL144,
        '"CATEGORY=JUSTIFICATION": leave a category below 2 % out of the impact ratios.', repeated=True)
    ] = Field(default_factory=dict)
    unknown_in_median: Annotated[bool, Option("--unknown-in-median", FURTHER, LL144,
        "Include people of unknown category in the median.")] = False
    partly_known: Annotated[bool, Option("--partly-known", FURTHER, LL144,
        "Count people with one unknown attribute in the table of the other.")] = False
    source: Annotated[str | None, Option("--source", FURTHER, LL144,
        "Source of the outcomes: the system, the dates, and who collected them.")] = None
    audit_date: Annotated[Date, Option("--audit-date", FURTHER, LL144, "YYYY-MM-DD; else left empty.")] = None
    distribution_date: Annotated[Date, Option("--distribution-date", FURTHER, LL144,
        "Date the use began (YYYY-MM-DD); else left empty.")] = None
    data_kind: Annotated[str | None, Option("--data-kind", FURTHER, LL144,
        "historical or test. Without it, the report says that the kind of data was not given.")] = None
    test_data_reason: Annotated[str | None, Option("--test-data-reason", FURTHER, LL144,
        "Reason for not using historical data.")] = None
    test_data_generation: Annotated[str | None, Option("--test-data-generation", FURTHER, LL144,
        "How the test data were made and obtained.")] = None
    map: Annotated[Path | None, Option("--map", FURTHER, LL144, "YAML with your own category values.")] = None
    write_map: Annotated[Path | None, Option("--write-map", FURTHER, LL144,
        "Write the category map to edit, and stop.")] = None
    # fmt: on

    def columns(self) -> dict[str, str | None]:
        """What columns of --data say, by the options that name them."""
        names = ("sex", "race", "ethnicity", "selected", "score", "group")
        return {name: getattr(self, name) for name in names}

    def clashes(self) -> str | None:
        """Return which decision lacks another that it needs, or has no place."""
        if self.data_kind not in (None, *DATA_KINDS):
            return f"--data-kind must be historical or test; got {self.data_kind!r}"
        texts = {"--test-data-reason": self.test_data_reason, "--test-data-generation": self.test_data_generation}
        for option, text in texts.items():
            if self.data_kind == "test" and not (text or "").strip():
                return (
                    f"test data need {option}. The published summary has to say why no historical data were used, and "
                    "how the test data were made (6 RCNY 5-302(b))"
                )
            if self.data_kind != "test" and text is not None:
                return f"{option} belongs to --data-kind test"
        return None
