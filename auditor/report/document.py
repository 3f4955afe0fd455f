"""A report as typed parts: a builder for each kind of run makes it, a writer for each format writes it.

Builders lay sections out with `section` and `table`; the writers are `terminal`, `html` and `markdown`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from auditor.core.record import Claim
from auditor.core.types import Estimate
from auditor.report import words
from auditor.report.cards import Brief, Card
from auditor.report.claimed import Effect

TO_FILL = "to be filled in"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A figure of a table: what stands below it, and the verdict that colours it."""

    text: str = ""
    sub: str = ""
    mark: str = ""  # the verdict as it is written
    kind: str = ""  # its key in `words.VERDICTS`
    links: tuple[tuple[str, str], ...] = ()  # id and title of sections

    @property
    def lines(self) -> tuple[str, ...]:
        """What is told, the most important first."""
        linked = ", ".join(title for _, title in self.links)
        return tuple(part for part in (self.text, self.mark, self.sub, linked) if part)


@dataclass(frozen=True, slots=True)
class Entry:
    """One field for a person: its name, what is asked, and what was filled in; None: nothing."""

    key: str
    label: str
    value: str | None

    @property
    def lines(self) -> tuple[str]:
        """What was filled in, or that nothing was."""
        return (TO_FILL if self.value is None else self.value,)


Line = tuple[str | Cell | Entry, ...]
Value = str | int | Estimate | Cell | Entry | None


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph or a heading within a section; ``link`` is a relative address of what it is about."""

    text: str
    tone: Literal["plain", "lead", "meta", "note", "heading"] = "plain"
    link: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with values; those of a ``grid`` stand beside each other where there is room."""

    caption: str
    pairs: tuple[tuple[str, str | Entry], ...]
    grid: bool = False  # next to each other where there is room
    name: str = ""  # of a form, unique in the document


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows of ``columns``; those in ``right`` hold counts."""

    caption: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    right: frozenset[str] = frozenset()
    most: int | None = None  # lines after so many are folded away in long reports, left out of short ones
    of: str = "line"

    @property
    def fields(self) -> bool:
        """Whether its lines are fields for a person."""
        return any(isinstance(cell, Entry) for line in self.lines for cell in line)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing (SVG, safe) with what its marks mean; only pages have it."""

    drawing: str
    caption: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands to copy, with what each gives."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings in a sentence each, without their texts."""

    title: str
    rows: tuple[Card, ...]


Block = Text | Items | Facts | Table | Chart | Commands | Card | Findings


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One section: id and title, a short name for the table of contents (the title, if empty), its parts."""

    id: str
    title: str
    short: str = ""
    blocks: tuple[Block, ...]
    folded: bool = False  # opens on a click
    brief: bool = False  # in summaries too
    whole: bool = False  # a terminal cuts nothing


@dataclass(frozen=True, slots=True)
class Example(Brief):
    """One variant with its answers."""

    finding_id: str  # that shows more like it; empty where no finding holds it
    more: int  # further examples of that finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One comparison: a line of the forest plot."""

    claim: Claim
    model: str  # as the subject is called; empty where there is one
    name: str  # of the attribute
    label: str  # the share of each group next to its name
    effect: Effect | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """What is read first, in this order."""

    ran: str
    banners: tuple[str, ...]
    kind: str  # the verdict of the headline
    headline: tuple[str, ...]  # sentences: who gets what how often, by how much, on how many texts of which model
    sure: tuple[str, ...]  # sentences: how sure, and against what
    also: tuple[str, ...]  # further differences that were shown
    example: Example | None
    label: str  # whose share rows have; empty for numbers
    rows: tuple[Row, ...]
    note: str  # why shares and net differences are not the same; empty where they are
    checked: tuple[str, ...]
    not_tested: tuple[str, ...]
    next: tuple[tuple[str, str], ...]  # (command, what it gives)

    @property
    def todo(self) -> list[tuple[str, str]]:
        """What to do besides reading the report."""
        return [one for one in self.next if not one[0].startswith("audit report")]

    @property
    def scale(self) -> tuple[float, str]:
        """Scale and unit of most rows: what a plot is drawn in; others have figures alone."""
        drawn = [(r.effect.scale, r.effect.unit) for r in self.rows if r.effect is not None and not r.effect.vague]
        return max(drawn, key=drawn.count, default=(1.0, ""))

    @property
    def axis(self) -> str:
        """What the differences are, as the title of a plot or column."""
        scale, unit = self.scale
        one = self.label and scale == 100 and all(r.claim.family == "net" for r in self.rows)
        of = f" of “{self.label}”" if one else ""
        return f"net difference{f', {unit}' if unit else ''}{of} (95 %)"

    def chosen(self, rows: int, each: int) -> list[Row]:
        """The first ``each`` rows of each attribute of a model, and ``rows`` in all."""
        kept: Counter[tuple[str, str]] = Counter()
        chosen = []
        for row in self.rows:
            kept[row.model, row.name] += 1
            chosen += [row] if kept[row.model, row.name] <= each else []
        return chosen[:rows]

    def drawn(self, row: Row) -> Effect | None:
        """The effect of a row that a plot can draw."""
        made = row.effect
        return made if made is not None and not made.vague and (made.scale, made.unit) == self.scale else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A whole report."""

    title: str
    name: str = ""  # of the run, session or comparison
    meta: str = ""  # one line: status, date, version
    banners: tuple[str, ...] = ()
    first: Screen | None = None  # the answer, where there are claims
    sections: tuple[Section, ...]
    footer: str = ""
    inert: bool = False  # runs no script
    bare: bool = False  # a sheet to print or publish, without navigation and footer


def table(
    caption: str,
    columns: str | Sequence[str],
    lines: Iterable[Iterable[Value]],
    *,
    most: int | None = None,
    of: str = "line",
) -> Table:
    """Make a table, its lines after the first ``most`` folded away, which ``of`` names.

    Titles of columns that hold counts begin with ``#``; in one string they have `` | `` between them. Counts, estimates
    and what there is none of are written as in every table.
    """
    titles = columns.split(" | ") if isinstance(columns, str) else columns
    return Table(
        caption=caption,
        columns=tuple(title.removeprefix("#") for title in titles),
        lines=tuple(tuple(map(_cell, line)) for line in lines),
        right=frozenset(title[1:] for title in titles if title.startswith("#")),
        most=most,
        of=of,
    )


def _cell(value: Value) -> str | Cell | Entry:
    if isinstance(value, Estimate):
        return words.interval(value)
    return words.count(value) if value is None or isinstance(value, int) else value


def section(
    id: str,
    title: str,
    *content: str | Block | Iterable[str | Block],
    short: str = "",
    folded: bool = False,
    brief: bool = False,
) -> Section:
    """A section of paragraphs (plain texts) and other parts; tables without a line are left out."""
    every = [part for one in content for part in ([one] if isinstance(one, str | Block) else one)]
    blocks = tuple(Text(part) if isinstance(part, str) else part for part in every)
    kept = tuple(block for block in blocks if not isinstance(block, Table) or block.lines)
    return Section(id=id, title=title, short=short, blocks=kept, folded=folded, brief=brief)


def sheet(id: str, title: str, notes: Iterable[str], columns: str, lines: Iterable[Iterable[Value]]) -> list[Section]:
    """A section that is one table with what is said of it; none without a line."""
    made = table(title, columns, lines)
    return [section(id, title, notes, made)] if made.lines else []


def form(caption: str, name: str, entries: Iterable[Entry]) -> Facts:
    """Fields below each other."""
    return Facts(caption, tuple((e.label, e) for e in entries), name=name)


def plain(cell: str | Cell | Entry, joint: str = "; ") -> str:
    """A cell in one line."""
    return cell if isinstance(cell, str) else joint.join(cell.lines)


def flat(value: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested plain data as (path, text) lines; missing values say so."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=str):
            yield from flat(value[key], f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list | tuple) and all(not isinstance(v, Mapping | list | tuple) for v in value):
        yield prefix, ", ".join(map(str, value)) or "none"
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from flat(item, f"{prefix}[{i}]")
    else:
        yield prefix, "not given" if value is None or value == {} else str(value)


def facts(caption: str, value: object) -> Facts:
    """Nested plain data as names with values."""
    return Facts(caption, tuple(flat(value or {})))


def data(document: Document) -> dict[str, object]:
    """Return a document as plain data: sections by id, tables as lists of lines by column; an empty field is None."""
    return {
        "title": document.title,
        "name": document.name,
        "meta": document.meta,
        "sections": {
            s.id: {"title": s.title, "blocks": [made for block in s.blocks if (made := _data(block)) is not None]}
            for s in document.sections
        },
    }


def _data(block: Block) -> object:
    match block:
        case Text():
            return block.text
        case Items():
            return {"items": list(block.lines)}
        case Facts():
            pairs = ((value.key if isinstance(value, Entry) else name, value) for name, value in block.pairs)
            return {"facts": block.caption, "lines": [{"name": name, "value": _value(value)} for name, value in pairs]}
        case Table():
            lines = (zip(block.columns, line, strict=True) for line in block.lines)
            return {"table": block.caption, "lines": [{name: _value(cell) for name, cell in line} for line in lines]}
        case Card():
            return {"finding": block.finding.id, "text": block.sentence}
        case Findings():
            return {"table": block.title, "lines": [{"id": r.finding.id, "text": r.sentence} for r in block.rows]}
        case _:
            return None  # drawings and commands


def _value(cell: str | Cell | Entry) -> str | None:
    return cell.value if isinstance(cell, Entry) else plain(cell)
