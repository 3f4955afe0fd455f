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

import dataclasses
import datetime
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.reading import from_toml, toml_line
from auditor.core.record import RunRecord, Waived, read
from auditor.core.types import Finding

FILE = "waivers.toml"
FIELDS = ("finding", "reason", "owner", "expires", "run")
NEEDED = FIELDS[:4]
Status = Literal["active", "expired", "unmatched"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """One entry of the file: ``finding`` is a key or pattern of keys (see `key`), or the id of a finding of ``run``.

    ``expires`` is the last day on which it holds, ``line`` where it stands in the file, from 1.
    """

    finding: str
    run: str = ""
    reason: str
    owner: str
    expires: datetime.date
    line: int = 0

    def matches(self, finding: Finding, run: str) -> bool:
        """Whether it is about ``finding`` of the run ``run``."""
        if self.run and self.run != run:
            return False
        if self.run and self.finding == finding.id:
            return True
        return glob(self.finding).fullmatch(key(finding)) is not None


def key(finding: Finding) -> str:
    """What a finding is about, the same in every run: ``code/model/format/attributes``.

    An attribute with a direction reads ``attribute:source>target``; several are joined by ``+``.

    Examples
    --------
    >>> about = Finding(id="F1", kind="claim", code="MUT102", model="m", attributes=("gender", "race"), verdict="shown")
    >>> key(about)
    'MUT102/m//gender+race'
    """
    steps = [f"{a}:{source}>{target}" for a, source, target in finding.directions]
    return "/".join((finding.code, finding.model, finding.format, "+".join(steps or finding.attributes)))


def glob(pattern: str) -> re.Pattern[str]:
    """``*`` matches any text, ``?`` one character; all else stands for itself."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)


def load(path: Path) -> tuple[Waiver, ...]:
    """Read a waivers file; `DataFileError` names file and line where it cannot be read or an entry is malformed."""
    text = reading.read_text(path)
    try:
        values = from_toml(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        line = at.group(1) if at else len(text.splitlines()) or 1
        raise DataFileError(f"{path}, line {line}: no valid TOML: {error}.") from error
    for name in values:
        if name != "waiver":
            raise DataFileError(
                f"{path}, line {toml_line(text, name) or 1}: unknown entry {name!r}; waivers are tables [[waiver]]."
            )
    entries = values.get("waiver", [])
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise DataFileError(f"{path}, line {toml_line(text, 'waiver') or 1}: write [[waiver]], with two brackets.")
    heads = [n for n, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*waiver\s*\]\]", line)]
    lines = heads if len(heads) == len(entries) else [1] * len(entries)
    return tuple(_entry(e, f"{path}, line {n}", n) for e, n in zip(entries, lines, strict=True))


def _entry(entry: Mapping[str, object], where: str, line: int) -> Waiver:
    for name in entry:
        if name not in FIELDS:
            raise DataFileError(f"{where}: a waiver has no field {name!r}; fields: {', '.join(FIELDS)}.")
    for name in NEEDED:
        if name not in entry:
            raise DataFileError(f"{where}: the waiver has no {name}. It needs {', '.join(NEEDED)}.")
    texts: dict[str, str] = {}
    for name in ("finding", "reason", "owner", "run"):
        value = entry.get(name, "")
        if not isinstance(value, str) or (name != "run" and not value.strip()):
            raise DataFileError(f"{where}: {name} must be a text that is not empty; got {value!r}.")
        texts[name] = value.strip()
    if "/" not in texts["finding"] and not texts["run"]:
        raise DataFileError(
            f"{where}: {texts['finding']!r} is no key of a finding (code/model/format/attributes), and an id is "
            'given anew in each run: add run = "RUN-ID", or write the key '
            "(audit report RUN --format csv lists them)."
        )
    return Waiver(expires=_date(entry["expires"], where), line=line, **texts)


def _date(value: object, where: str) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(str(value))
    except ValueError:
        raise DataFileError(f"{where}: expires must be a date as 2027-03-31; got {value!r}.") from None


def apply(
    record: Mapping[str, object], waivers: Sequence[Waiver], today: datetime.date, *, source: str = FILE
) -> dict[str, object]:
    """A copy of the run record with the entry ``waivers``; findings stay as they are.

    ``waivers`` is ``{"source", "date", "items": [{"finding", "run", "reason", "owner", "expires", "line",
    "status", "findings": [ids]}]}``; status is ``active``, ``expired`` or ``unmatched``. The findings of an
    expired waiver are those that it would cover. ``today`` is the day by which waivers expire.
    """
    items, typed = [], read(record)
    for waiver in waivers:
        about = [f.id for f in typed.findings if waiver.matches(f, typed.id or "")]
        status: Status = "unmatched" if not about else "expired" if waiver.expires < today else "active"
        own = dataclasses.asdict(waiver) | {"run": waiver.run or None, "expires": waiver.expires.isoformat()}
        items.append(own | {"status": status, "findings": about})
    return {**record, "waivers": {"source": source, "date": today.isoformat(), "items": items}}


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
