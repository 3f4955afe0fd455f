"""A report as typed parts: a builder for each kind of run makes it, a writer for each format writes it.

Builders lay sections out with `section` and `table`; the writers are `terminal`, `html` and `markdown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from auditor.report.cards import Card
    from auditor.report.first_screen import Screen

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


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph or a heading within a section; ``link`` is a relative address of what it is about."""

    text: str
    tone: Literal["plain", "lead", "meta", "note", "heading"] = "plain"
    link: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list; items that are lists belong to the item before."""

    lines: tuple[str | Items, ...]


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
    more: tuple[Line, ...] = ()  # folded away in long reports, left out of short ones
    left: tuple[str, str] = ("further line", "further lines")

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
class Evidence:
    """One finding with its texts and answers."""

    card: Card


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings in a sentence each, without their texts."""

    title: str
    rows: tuple[Card, ...]


Block = Text | Items | Facts | Table | Chart | Commands | Evidence | Findings


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "short", self.short or self.title)

    @property
    def notes(self) -> tuple[str, ...]:
        """Its paragraphs."""
        return tuple(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables."""
        return tuple(block for block in self.blocks if isinstance(block, Table))


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

    @property
    def blocks(self) -> Iterator[Block]:
        """All parts."""
        return (block for section in self.sections for block in section.blocks)


def table(
    caption: str,
    columns: str | Sequence[str],
    lines: Iterable[Iterable[str | Cell | Entry]],
    *,
    right: Iterable[str] = (),
    most: int | None = None,
    left: tuple[str, str] = ("further line", "further lines"),
) -> Table:
    """Make a table, its lines after the first ``most`` folded away.

    In one string, titles of columns have `` | `` between them, and those that hold counts begin with ``#``.
    """
    if isinstance(columns, str):
        titles = columns.split(" | ")
        right = [title[1:] for title in titles if title.startswith("#")]
        columns = [title.removeprefix("#") for title in titles]
    rows = tuple(map(tuple, lines))
    shown, more = (rows, ()) if most is None else (rows[:most], rows[most:])
    return Table(caption=caption, columns=tuple(columns), lines=shown, right=frozenset(right), more=more, left=left)


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


def sheet(
    id: str, title: str, notes: Iterable[str], columns: str, lines: Iterable[Iterable[str | Cell | Entry]]
) -> list[Section]:
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


def _data(block: Block | str) -> object:
    match block:
        case str():
            return block
        case Text():
            return block.text
        case Items():
            return {"items": [_data(line) for line in block.lines]}
        case Facts():
            pairs = ((value.key if isinstance(value, Entry) else name, value) for name, value in block.pairs)
            return {"facts": block.caption, "lines": [{"name": name, "value": _value(value)} for name, value in pairs]}
        case Table():
            lines = (zip(block.columns, line, strict=True) for line in (*block.lines, *block.more))
            return {"table": block.caption, "lines": [{name: _value(cell) for name, cell in line} for line in lines]}
        case Evidence():
            return {"finding": block.card.finding.id, "text": block.card.sentence}
        case Findings():
            return {"table": block.title, "lines": [{"id": r.finding.id, "text": r.sentence} for r in block.rows]}
        case _:
            return None  # drawings and commands


def _value(cell: str | Cell | Entry) -> str | None:
    return cell.value if isinstance(cell, Entry) else plain(cell)
