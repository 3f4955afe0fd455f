"""Whether the chain of a journal is whole, and where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from auditor.core.counting import plural
from auditor.core.errors import RunFolderError
from auditor.store.journal import Head, intact, link_of

ProblemKind = Literal["changed", "missing", "reordered", "repeated", "torn", "other-plan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong with a file of a run folder.

    ``line`` counts from 1; it is None where the whole file is meant.
    """

    file: str
    line: int | None
    kind: ProblemKind
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.message}"


def verify(path: Path, start: str, head: Head | None = None) -> list[Problem]:
    """Recompute the chain of a journal.

    Parameters
    ----------
    path : Path
        The file. One that is not there is an empty journal.
    start : str
        Its `genesis` value.
    head : Head or None
        What the file should end with, from ``run.json``; without it, lines missing at the end are not seen.

    Returns
    -------
    list of Problem
        Empty if each line is intact and follows from the one before. One pass; memory grows with the
        number of problems only.
    """
    check = _Verifier(path.name, start)
    try:
        with path.open("rb") as file:
            for line in file:
                check.take(line)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunFolderError(f"cannot read {path}: {error.strerror or error}") from error
    return check.finish(head)


class _Verifier:
    def __init__(self, file: str, start: str) -> None:
        self.file, self.start = file, start
        self.number = 0
        self.next = 0
        self.last = start  # hash of record next - 1
        self.last_known = True
        self.gaps: list[tuple[int, int, int]] = []  # first and last missing record, line that shows it
        self.problems: list[Problem] = []

    def note(self, line: int | None, kind: ProblemKind, message: str) -> None:
        self.problems.append(Problem(file=self.file, line=line, kind=kind, message=message))

    def take(self, line: bytes) -> None:
        self.number += 1
        if not line.endswith(b"\n"):
            self.note(self.number, "torn", "the last line is incomplete (the run was interrupted while writing)")
            return
        link = link_of(line)
        if link is None:
            self.note(self.number, "changed", "this line is not a journal record: it was changed")
            self.next, self.last_known = self.next + 1, False
            return
        if not intact(line, link):
            # Its own number is not to be trusted: count it by where it stands.
            self.note(self.number, "changed", f"record {self.next} was changed: its hash does not match")
            self.next, self.last, self.last_known = self.next + 1, link.hash, True
            return
        if link.seq < self.next:
            self._earlier(link.seq)
            return
        if link.seq > self.next:
            self.gaps.append((self.next, link.seq - 1, self.number))
        elif self.last_known and link.prev != self.last:
            self._broken(link.seq)
        self.next, self.last, self.last_known = link.seq + 1, link.hash, True

    def _broken(self, seq: int) -> None:
        if seq == 0:
            message = "the file belongs to another plan, or plan.json was changed"
            self.note(self.number, "other-plan", message)
        else:
            message = f"record {seq - 1} was changed or replaced: record {seq} does not follow from it"
            self.note(self.number - 1, "changed", message)

    def _earlier(self, seq: int) -> None:
        for index, (low, high, line) in enumerate(self.gaps):
            if low <= seq <= high:
                rest = [(low, seq - 1, line), (seq + 1, high, line)]
                self.gaps[index : index + 1] = [gap for gap in rest if gap[0] <= gap[1]]
                self.note(self.number, "reordered", f"record {seq} stands after record {self.next - 1}")
                return
        self.note(self.number, "repeated", f"record {seq} stands here a second time")

    def finish(self, head: Head | None) -> list[Problem]:
        for low, high, line in self.gaps:
            which = f"record {low} is" if low == high else f"records {low} to {high} are"
            self.note(line, "missing", f"{which} missing before this line")
        if head is not None:
            named = f"holds {plural(self.next, 'record')}, but run.json names {head.records}"
            if self.next < head.records:
                self.note(None, "missing", f"{named}: lines at the end are missing")
            elif self.next > head.records:
                self.note(None, "changed", f"{named}: lines were added after the run")
            elif self.last_known and self.last != head.hash:
                self.note(None, "changed", "its last hash is not the one in run.json: the chain was made anew")
        return sorted(self.problems, key=lambda p: (p.line is None, p.line or 0))
