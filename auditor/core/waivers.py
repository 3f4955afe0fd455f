"""``waivers.toml``: findings that somebody has looked at and lets stand, with reason, owner and expiry.

::

    [[waiver]]
    finding = "HID201/reviews/*/gender:*+nationality:*"   # the key of a finding; * and ? match
    reason  = "Known since ticket 812; the next model version is to mend it."
    owner   = "A. Person"
    expires = 2027-03-31                                  # the last day on which it holds

A waiver takes a finding out of ``--fail-on`` and of nothing else: every report goes on showing the finding,
and the waiver beside it. An id (``F009``) is given anew in each run, so a waiver by id must name its run:
``run = "20261122-024610-e92923"``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictStr, StringConstraints, model_validator

from auditor.core.reading import load_toml
from auditor.core.record import RunRecord, Waived, with_sections
from auditor.core.types import Finding

FILE = "waivers.toml"
Status = Literal["active", "expired", "unmatched"]
Filled = Annotated[StrictStr, StringConstraints(strip_whitespace=True, min_length=1)]


def _date(value: object) -> object:
    """Return a date of TOML, or one written as text, as a date."""
    if isinstance(value, datetime.datetime):
        return value.date()
    try:
        return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))
    except ValueError:
        raise ValueError("must be a date as 2027-03-31") from None


class Waiver(BaseModel):
    """One entry of the file: ``finding`` is a key or pattern of keys (see `key`), or the id of a finding of ``run``.

    ``expires`` is the last day on which it holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    finding: Filled
    run: Annotated[StrictStr, StringConstraints(strip_whitespace=True)] = ""
    reason: Filled
    owner: Filled
    expires: Annotated[datetime.date, BeforeValidator(_date)]
    line: int = 0  # of the file

    @model_validator(mode="after")
    def _holds_in_one_run(self) -> Self:
        if "/" not in self.finding and not self.run:
            raise ValueError(
                f"{self.finding!r} is not a key of a finding (code/model/format/attributes), and ids differ between "
                'runs. Add run = "RUN-ID", or write the key (audit report RUN --format csv lists them)'
            )
        return self

    def matches(self, finding: Finding, run: str) -> bool:
        """Whether it is about ``finding`` of the run ``run``."""
        if self.run and self.run != run:
            return False
        if self.run and self.finding == finding.id:
            return True
        return glob(self.finding).fullmatch(key(finding)) is not None


def key(finding: Finding) -> str:
    """Return what a finding is about, the same in every run: ``MUT102/MODEL/FORMAT/gender:male>female+race``."""
    steps = [f"{a}:{source}>{target}" for a, source, target in finding.directions]
    return "/".join((finding.code, finding.model, finding.format, "+".join(steps or finding.attributes)))


def glob(pattern: str) -> re.Pattern[str]:
    """``*`` matches any text, ``?`` one character; all else stands for itself."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    waiver: tuple[Waiver, ...] = ()


def load(path: Path) -> tuple[Waiver, ...]:
    """Return the waivers of a file; `DataFileError` names file, line and field of a mistake."""
    file, lines = load_toml(path, _File, "Waivers are tables [[waiver]] with finding, reason, owner, expires and run.")
    return tuple(w.model_copy(update={"line": lines.get(("waiver", n), 1)}) for n, w in enumerate(file.waiver))


def apply(record: RunRecord, waivers: Sequence[Waiver], today: datetime.date, *, source: str = FILE) -> RunRecord:
    """Return the run record with the entry ``waivers``; findings stay as they are.

    ``status`` of an item is ``active``, ``expired`` by ``today`` (its findings are those that it would cover) or
    ``unmatched``.
    """
    items = []
    for waiver in waivers:
        about = [f.id for f in record.findings if waiver.matches(f, record.id or "")]
        status: Status = "unmatched" if not about else "expired" if waiver.expires < today else "active"
        own = waiver.model_dump(mode="json") | {"run": waiver.run or None}
        items.append(own | {"status": status, "findings": about})
    return with_sections(record, waivers={"source": source, "date": today.isoformat(), "items": items})


def lines(record: RunRecord) -> list[str]:
    """What a report says about waivers, one plain sentence or two for each; the texts are not escaped."""
    return [_sentence(item) for item in record.waivers.items]


def _sentence(item: Waived) -> str:
    what = item.finding + (f" of run {item.run}" if item.run else "")
    ends = f"owner {item.owner}, until {item.expires}; reason: {item.reason}"
    if item.status == "unmatched":
        return f"Waiver that matches no finding of this run: {what}; {ends}"
    ids = ", ".join(item.findings[:8]) + (f" and {len(item.findings) - 8} more" if len(item.findings) > 8 else "")
    head = "Waived" if item.status == "active" else "Expired waiver, without effect"
    return f"{head}: {ids} ({what}); {ends}"
