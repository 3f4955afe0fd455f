"""Plain text for a terminal: a document, the answer on one screen and all else below it; and one finding or variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, Literal, NamedTuple

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from auditor.core.errors import RunFolderError, UnknownPlugin
from auditor.core.protocols import Renderer
from auditor.core.record import RunRecord, Waived
from auditor.core.types import Case, Finding, Variant
from auditor.report import cards, claimed, tabular_report, words
from auditor.report import document as doc

MAX_CARDS = 3  # findings with their texts
MAX_LINES = 20  # of a table
FEW_LINES = 5  # of each below an answer
LOOKED_UP = frozenset({"method", "provenance"})
MOST = 40  # lines of a screen
STYLES = {"shown": "bold red", "bounded": "green", "not_determined": "yellow", "not_tested": "dim"}


class TerminalReport(Renderer):
    """The answer on one screen; with ``full`` all that was asked, measured and found."""

    name = "terminal"
    suffix = ".txt"

    def __init__(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False, full: bool = False) -> None:
        self.width, self.encoding, self.color, self.full = width, encoding, color, full

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the report as text that ends in a line break."""
        from auditor.report import build, first_screen

        page = Page(width=self.width, encoding=self.encoding, color=self.color)
        if not self.full and record.claims:  # the rest is not needed
            answer_screen(page, first_screen.build(record, evidence))
            return page.value()
        return write(page, build.document(record, evidence), full=self.full)


def write(page: Page, document: doc.Document, *, full: bool = True) -> str:
    """Lay a document out: every part but drawings; without ``full`` the answer and what is brief, or whole."""
    first = document.first
    answered = first is not None and bool(first.rows)
    if first is not None:
        answer_screen(page, first)
    if full or first is None:
        page.title(document.title)
        for banner in document.banners if first is None else ():
            page.paragraph(banner, first="!! ", indent="   ")
        page.paragraph(" · ".join(filter(None, (document.name, document.meta))))
    shown = [s for s in document.sections if s.id not in LOOKED_UP or (full and not answered)]
    if not full:
        shown = [s for s in shown if s.brief or s.whole] or shown
    for section in shown:
        _section(page, section, answered=answered, short=answered or not full)
    if not full and (left := [s.title for s in document.sections if s not in shown]):
        page.line()
        page.paragraph(f"More with --full: {', '.join(left)}.")
    if answered and full:
        page.line()
        page.paragraph("Method, limits, settings and hashes: the HTML report. Every figure: --format csv.")
    return page.value()


def _section(page: Page, section: doc.Section, *, answered: bool, short: bool) -> None:
    page.heading(section.title)
    blocks = section.blocks
    if answered and section.folded:  # its first paragraph says enough of what a page folds
        blocks = tuple(b for b in blocks if b is blocks[0] or not isinstance(b, doc.Text))
    every = [block for block in blocks if isinstance(block, cards.Card)]
    left = every[1 if short else MAX_CARDS :]
    for block in blocks:
        if block not in left:
            named = isinstance(block, doc.Table) and block.caption == section.title
            if named and block is not blocks[0]:
                page.line()
            brief = short and not section.whole
            _put(page, block, FEW_LINES if brief else MAX_LINES, short=brief, inside=named)
    if left:
        page.paragraph(f"{words.plural(len(left), 'further example')}: see the HTML report.")


def _put(page: Page, block: doc.Block, most: int = MAX_LINES, *, short: bool = False, inside: bool = False) -> None:
    match block:
        case doc.Text(tone="heading"):
            page.title(block.text)
        case doc.Text():
            page.paragraph(block.text, first="! " if block.tone == "note" else None)
            if block.link:
                page.line(f"  {block.link}")
        case doc.Items():
            for item in block.lines:
                page.paragraph(item, first="· ", indent="  ")
        case doc.Facts():
            _facts(page, block.caption, block.pairs)
        case doc.Table(fields=True):
            for line in block.lines:
                _facts(page, block.caption, list(zip(block.columns, line, strict=True)))
        case doc.Table():
            if not inside:
                page.title(block.caption)
            rows = block.lines
            lines = ([_short(cell) if short else doc.plain(cell, "\n") for cell in line] for line in rows[:most])
            page.table(block.columns, lines, block.right)
            if (left := len(rows) - most) > 0:
                page.paragraph(f"{words.plural(left, f'further {block.of}')}: see the HTML report.")
        case doc.Commands():
            page.commands(block.lines)
        case cards.Card():
            card(page, block)
        case doc.Findings():
            page.title(block.title)
            kept = block.rows[:most] if short else block.rows
            for row in kept:
                page.paragraph(f"{row.finding.id} {words.finding_verdict(row.finding)}: {row.sentence}", indent="  ")
            if left := len(block.rows) - len(kept):
                page.paragraph(f"{words.plural(left, 'further finding')}: see the CSV (--format csv).")


def _short(cell: str | doc.Cell | doc.Entry) -> str:
    """The figure and the mark of a cell, without what stands below."""
    return " ".join(filter(None, (cell.text, cell.mark))) if isinstance(cell, doc.Cell) else doc.plain(cell)


def _facts(page: Page, caption: str, pairs: Sequence[tuple[str, str | doc.Cell | doc.Entry]]) -> None:
    page.title(caption)
    widest = min(36, max((len(name) for name, _ in pairs), default=0))
    for name, value in pairs:
        page.paragraph(doc.plain(value), first=f"  {name:<{widest}}  ", indent=" " * (widest + 4))


# -- the answer on one screen -----------------------------------------------------------------------------


class Detail(NamedTuple):
    """How much has room: rows, rows of one attribute, notes, further differences."""

    rows: int
    each: int
    notes: int
    also: int


# The first has whole lines, the last no reasons for its commands.
LEVELS = tuple(
    Detail(*most) for most in ((24, 8, 3, 3), (16, 6, 3, 3), (12, 4, 3, 3), (10, 3, 2, 3), (8, 2, 2, 1), (4, 1, 1, 0))
)


def answer_screen(page: Page, screen: doc.Screen) -> None:
    """Lay the first screen out, with as much as has room."""
    for detail in LEVELS:
        trial = Page(width=page.width, encoding=page.encoding, color=page.color)
        _put_answer(trial, screen, detail)
        if trial.value().count("\n") <= MOST:
            break
    _put_answer(page, screen, detail)


def _put_answer(page: Page, screen: doc.Screen, detail: Detail) -> None:
    whole = detail is LEVELS[0]
    page.line(screen.ran if whole else page.cut(screen.ran), "bold")
    for banner in screen.banners[: detail.notes]:
        if whole or banner is screen.banners[0]:
            page.paragraph(banner, first="!! ", indent="   ", style="yellow")
        else:
            page.line(page.cut(f"!! {banner}"), "yellow")
    if (left := len(screen.banners) - detail.notes) > 0:
        page.line(f"   + {words.plural(left, 'more note')}: --full", "yellow")
    mark = words.SYMBOLS[screen.kind]
    page.paragraph(" ".join(screen.headline), first=f"{mark} ", indent="  ", style=STYLES[screen.kind])
    if screen.sure:
        page.paragraph(" ".join(screen.sure), indent="  ")
    for line in screen.also[: detail.also]:
        page.paragraph(line, first="  also: ", indent="  ")
    if (one := screen.example) is not None:
        page.paragraph(f"e.g. “{one.text}”: {one.before} → {one.after}", indent="  ")
    if screen.rows:
        page.line()
        forest(page, screen, rows=detail.rows, each=detail.each)
    page.line()
    for line in screen.checked:
        page.paragraph(line, first="CHECKS  ", indent="        ")
    if screen.not_tested:
        page.paragraph("; ".join(screen.not_tested), first="NOT TESTED  ", indent="        ")
    commands = [(command, what if detail is not LEVELS[-1] else "") for command, what in screen.next]
    page.commands(commands, lead=" " * 8, first="DO      ")


# -- the forest plot ---------------------------------------------------------------------------------------

PLOT = 25  # columns of the plot where there is room
LABEL = 34  # columns of a row's name, where there is no more room
LEAST_PLOT = 11  # where there is less, figures stand alone
CHARACTERS = {True: "│┊─├┤●", False: "|:-[]o"}  # by whether there is Unicode: zero, delta, line, ends, estimate


def forest(page: Page, screen: doc.Screen, *, rows: int, each: int) -> None:
    """One line for each comparison: verdict, shares, interval around zero, figures, texts."""
    chosen = screen.chosen(rows, each)
    alone = {place for place, n in Counter((row.model, row.name) for row in screen.rows).items() if n == 1}
    alone = {(r.model, r.name) for r in chosen if (r.model, r.name) in alone and page.size(_named(r, alone)) <= LABEL}
    labels = [_named(row, alone) for row in chosen]
    effects = [screen.drawn(row) for row in chosen]
    figures = [claimed.net(row.claim) if e is None else e.text for row, e in zip(chosen, effects, strict=True)]
    texts = [words.count(row.claim.texts) for row in chosen]
    right = max(map(page.size, figures)) + 2 + max(5, *map(len, texts))
    widest = max(map(page.size, labels))
    room = page.width - right - 4
    plot = min(PLOT, room - min(widest, LABEL) - 1)
    plot = plot - 1 + plot % 2 if plot >= LEAST_PLOT else 0
    left = max(10, min(widest, room - plot - 1))
    reach = max([0.0, *(max(abs(e.low), abs(e.high)) for e in effects if e), *(r.claim.delta or 0.0 for r in chosen)])
    end = claimed.signed(screen.scale[0] * reach, 0 if screen.scale[0] * reach >= 10 else 1)
    ends = (end.replace("+", "−"), end) if 2 * len(end) + 3 <= plot and end != "0" else ("less", "more")
    axis = f"{ends[0]:<{plot // 2}}0{ends[1]:>{plot // 2}}"
    page.line(page.cut(screen.axis.rjust(min(page.width - 7, left + plot + right - 4)) + "  texts"), "bold")
    if plot:
        page.line(f"{'':{left + 3}}{axis}", "dim")
    model = name = ""
    for row, label, effect, figure, n in zip(chosen, labels, effects, figures, texts, strict=True):
        if row.model != model:
            model, name = row.model, ""
            page.line(page.cut(f"  {model}"), "bold")
        if row.name != name and (row.model, row.name) not in alone:
            page.line(page.cut(f"  {row.name}"))
        name = row.name
        strip = _strip(effect, screen, reach, plot, unicode=words.is_utf8(page.encoding)) if plot else ""
        shown = page.padded(page.cut(label, left), left)
        numbers = page.padded(figure, right - 2 - max(5, *map(len, texts)), right=True)
        line = f"{words.SYMBOLS[row.claim.verdict]} {shown} {strip} {numbers}  {n:>5}"
        page.line(page.cut(line), STYLES[row.claim.verdict])
    kinds = dict.fromkeys(row.claim.verdict for row in chosen)
    page.line(f"  {'   '.join(words.verdict(kind) for kind in kinds)}", "dim")
    if screen.note:
        page.paragraph(screen.note, indent="  ", style="dim")
    left_out = Counter(row.claim.verdict for row in screen.rows) - Counter(row.claim.verdict for row in chosen)
    if left_out:
        listed = ", ".join(f"{words.count(n)} {words.verdict(kind)}" for kind, n in left_out.items())
        page.line(page.cut(f"  further comparisons, with --full: {listed}"), "dim")


def _named(row: doc.Row, alone: Container[tuple[str, str]]) -> str:
    """The groups of a row, after its attribute where that has no line of its own."""
    return f"{row.name}: {row.label}".removesuffix(": ") if (row.model, row.name) in alone else f"  {row.label}"


def _strip(effect: claimed.Effect | None, screen: doc.Screen, reach: float, width: int, *, unicode: bool) -> str:
    zero, limit, line, left, right, mark = list(CHARACTERS[unicode])
    cells = [" "] * width

    def at(value: float) -> int:
        return round((min(max(value / reach, -1.0), 1.0) + 1) / 2 * (width - 1)) if reach else width // 2

    for delta in {row.claim.delta for row in screen.rows if row.claim.delta and screen.drawn(row) is not None}:
        cells[at(-delta)] = cells[at(delta)] = limit
    cells[width // 2] = zero
    if effect is not None:
        low, high = at(effect.low), at(effect.high)
        cells[low : high + 1] = [line] * (high + 1 - low)
        cells[low], cells[high] = left, right
        cells[at(effect.value)] = mark
    return "".join(cells)


# -- a page of plain text that untrusted strings cannot act on -----------------------------------------------


# Stands for a space that does not break while a table is laid out: rich breaks at U+00A0 too. `words.visible` lets
# no lone surrogate through, so none comes from a text.
_UNBROKEN = "\ud800"


class Page:
    """Collects lines of one report, of at least 40 columns: everything laid out here is made visible first."""

    def __init__(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False) -> None:
        self.width, self.encoding, self.color = max(40, width), encoding, color
        self._file = StringIO()
        self._console = Console(
            file=self._file,
            width=self.width,
            color_system="standard" if color else None,
            force_terminal=color,
            no_color=not color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            safe_box=False,
            _environ={},
        )

    def plain(self, text: object, *, newlines: bool = True) -> str:
        """Text that may be laid out: no controls, only what the encoding can carry."""
        return words.encodable(words.visible(str(text), newlines=newlines), self.encoding)

    def text(self, text: object, style: str = "") -> Text:
        """Wrap a piece of `plain` text, never read as markup."""
        return Text(self.plain(text), style=style)

    def heading(self, text: str) -> None:
        """Print a section title with a rule under it."""
        self.line()
        self._console.print(self.text(text, "bold"))
        self._console.print(self.plain("─" if words.is_utf8(self.encoding) else "-") * self.width, style="dim")

    def title(self, text: str) -> None:
        """A line that stands apart over what follows; only the gap, if empty."""
        self.line()
        if text:
            self.line(text, "bold")

    def line(self, text: object = "", style: str = "", *, whole: bool = False) -> None:
        """One line; a longer one wraps, unless it is to stay ``whole``: a command to copy."""
        self._console.print(self.text(text, style), soft_wrap=whole)

    def size(self, text: str) -> int:
        """Columns that a text takes."""
        return cell_len(self.plain(text, newlines=False))

    def cut(self, text: str, width: int | None = None) -> str:
        """Text that fits into ``width`` columns (the page's, if not given), ``…`` where something was cut off."""
        line, width = self.plain(text, newlines=False), self.width if width is None else width
        if self.size(line) <= width:
            return line
        mark = self.plain("…")
        return set_cell_size(line, max(0, width - self.size(mark))).rstrip() + mark

    def padded(self, text: str, width: int, *, right: bool = False) -> str:
        """Text filled up to ``width`` columns."""
        line = self.plain(text, newlines=False)
        room = " " * max(0, width - self.size(line))
        return room + line if right else line + room

    def paragraph(self, text: str, *, indent: str = "", first: str | None = None, style: str = "") -> None:
        """Prose, wrapped at spaces, figures kept together with their unit."""
        plain = words.glue(self.plain(text, newlines=False))
        lead, rest = self.plain(indent if first is None else first), self.plain(indent)
        current = lead
        for word in plain.split(" "):
            fits = cell_len(current) + cell_len(word) + 1 <= self.width
            if current in (lead, rest) or fits:
                current += word if current in (lead, rest) else f" {word}"
            else:
                self._emit(current, style)
                current = rest + word
        self._emit(current, style)

    def commands(self, lines: Sequence[tuple[str, str]], *, lead: str = "", first: str = "") -> None:
        """Commands to copy, each whole on a line of its own, after what it gives: next to it where it has room."""
        widest = max((len(what) for _, what in lines), default=0)
        for n, (command, what) in enumerate(lines):
            start = lead if n or not first else first
            if not what or len(start) + widest + 2 + len(command) <= self.width:
                self.line(f"{start}{f'{what:<{widest}}  ' if what else ''}{command}", whole=True)
            else:
                self.paragraph(f"{what}:", first=start, indent=" " * len(start))
                self.line(f"{' ' * (len(start) + 2)}{command}", whole=True)

    def _emit(self, text: str, style: str) -> None:
        self.line(text.replace("\u00a0", " "), style)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Container[str] = ()) -> None:
        """Print a table with a header; the columns in ``right`` are aligned to the right."""
        cells = [[self._cell(cell) for cell in row] for row in (columns, *rows)]
        fitting = widths(cells, self.width)
        if sum(fitting) + GAP * (len(fitting) - 1) > self.width:
            self._stack(cells)
            return
        shape = box.SIMPLE_HEAD if words.is_utf8(self.encoding) else box.ASCII2
        table = Table(box=shape, show_edge=False, pad_edge=False, header_style="bold")
        for name, title, width in zip(columns, cells[0], fitting, strict=True):
            justify: Literal["right", "left"] = "right" if name in right else "left"
            table.add_column(Text(title), justify=justify, width=width, overflow="fold", vertical="top")
        for row in cells[1:]:
            table.add_row(*map(Text, row))
        self._console.print(table)

    def _stack(self, rows: Sequence[Sequence[str]]) -> None:
        """A table on a page that is too narrow for it: a row below the other, each cell with its title."""
        for row in rows[1:]:
            cells = zip(rows[0][1:], row[1:], strict=True)
            lines = (f"  {title}: {cell}" if title else f"  {cell}" for title, cell in cells if cell.strip())
            for line in (row[0].strip(), *lines):
                self._console.print(Text(line, overflow="fold"))

    def _cell(self, text: object) -> str:
        return words.glue(self.plain(text)).replace("\u00a0", _UNBROKEN)

    def pair(self, left: tuple[str, Text], right: tuple[str, Text]) -> None:
        """Two texts side by side, or one below the other where the page is narrow."""
        if self.width < 80:
            for title, text in (left, right):
                self.line(title, "bold")
                self._console.print(text)
                self.line()
            return
        table = Table(box=None, expand=True, padding=(0, 2, 0, 0), show_edge=False)
        for title, _ in (left, right):
            table.add_column(self.text(title, "bold"), ratio=1, overflow="fold")
        table.add_row(left[1], right[1])
        self._console.print(table)

    def value(self) -> str:
        """Everything so far, without white space at line ends."""
        lines = (line.rstrip(" ") for line in self._file.getvalue().replace(_UNBROKEN, " ").split("\n"))
        text = "\n".join(lines).strip("\n") + "\n"
        return words.encodable(text, self.encoding)  # what the layout cut off is marked in its own way


_LONG = 24  # a longer word may be cut where the table is too wide
GAP = 3  # between two columns


def widths(rows: Sequence[Sequence[str]], page: int) -> list[int]:
    """Return how wide each column has to be so that the table fits on the page."""
    columns = list(zip(*rows, strict=True))
    fitting = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    words = [[cell_len(word) for cell in column for word in cell.split()] for column in columns]
    least = [max((min(size, _LONG) for size in sizes), default=1) for sizes in words]
    while sum(fitting) + GAP * (len(columns) - 1) > page and (
        over := [i for i, width in enumerate(fitting) if width > least[i]]
    ):
        fitting[max(over, key=lambda i: fitting[i])] -= 1
    return fitting


# -- one finding, or one variant, with its evidence (``audit show``) -----------------------------------------


COMPARED = {"changed": "▲ changed", "": "", "same": "same", "not judged": "? not judged"}
Judged = Callable[[str, str, str], str | None]  # (variant id, model, format) → what a judge of texts said


def card(page: Page, shown: cards.Card) -> None:
    """One finding: sentence, both texts side by side, the lattice with its answers."""
    f = shown.finding
    page.line()
    what = words.direction(f.directions) or (words.attributes(f.attributes) if f.code else "")
    mark = words.finding_verdict(f).replace(" ", "\u00a0") if f.code else ""
    page.paragraph(" · ".join(filter(None, (f.id, what, f.model, mark))))
    page.paragraph(shown.sentence, indent="  ")
    if not shown.cells:
        page.paragraph(f"Its texts and answers are not available: {shown.missing}.", indent="  ")
        return
    page.line()
    if len(shown.cells) > 1:
        left, right = (_marked(page, cards.excerpt(side)) for side in (shown.original, shown.variant))
        page.pair(("original", left), (f"variant {shown.variant_id}", right))
        page.line()
    rows = [
        (
            f"  {cell.label}",
            ", ".join(f"{old} → {new}" if old else f"+ {new}" for _, old, new in cell.changes),
            cell.note or cell.tally.text,
            COMPARED[cell.compared],
        )
        for cell in shown.cells
    ]
    page.table(("  Changed", "Words", "Answers", "Against original"), rows)
    for note in shown.notes:
        page.paragraph(words.sentence(note), indent="  ")
    for diagnosis in shown.diagnoses:
        page.paragraph(f"Why: {diagnosis.cause} ({diagnosis.evidence}).", indent="  ")


def _marked(page: Page, segments: Sequence[cards.Segment]) -> Text:
    """Segments as text with changed words in square brackets."""
    out = Text()
    for segment in segments:
        plain = page.plain(segment.text)
        out.append(f"[{plain}]" if segment.changed else plain, style="bold" if segment.changed else "")
    return out


def render_finding(
    record: RunRecord, evidence: object, finding_id: str, *, judged: Judged = lambda *_: None, **screen: Any
) -> str:
    """Show one finding, variant, or case with all its variants, with full prompts and every answer."""
    page, known = Page(**screen), {f.id: f for f in record.findings}
    if finding_id in known:
        chosen = [known[finding_id]]
    elif (variants := _variants(evidence, finding_id)) is not None:
        chosen = [f for v in variants for f in _as_findings(evidence, v)]
    else:
        hint = f"List them with: audit report {words.run_name(record)}"
        raise UnknownPlugin("finding", finding_id, known, hint)
    seen: set[tuple[str, ...]] = set()
    for i, finding in enumerate(chosen):
        if i:
            page.line()
        row = claimed.card_of(record, finding)
        row = replace(row, sentence=words.sentence(finding.text) or row.sentence)
        _whole(page, cards.with_evidence(row, evidence, record), judged, seen)
        _waiver(page, row.waiver)
    return page.value()


def list_findings(record: RunRecord, **screen: Any) -> str:
    """A line for each finding of a run, strongest first: what ``audit show RUN ID`` takes (without an ID)."""
    page = Page(**screen)
    if not record.findings:
        page.paragraph("This run has no finding. A variant or a case is shown by its id too.")
        return page.value()
    rows = [
        (f.id, words.direction(f.directions) or words.attributes(f.attributes), f.model, words.finding_verdict(f))
        for f in record.findings
    ]
    page.table(("Finding", "Changed", "Model", "Verdict"), rows)
    return page.value()


def _variants(evidence: Any, id: str) -> Sequence[Variant] | None:
    """The variant with this id, or those of the case with it; None where there is neither."""
    if (variant := cards.look_up(evidence, id)[1]) is not None:
        return (variant,)
    try:
        case: Case | None = evidence.case(id)
    except (RunFolderError, KeyError):
        return None
    return None if case is None else case.variants


def _as_findings(evidence: Any, variant: Variant) -> Iterator[Finding]:
    """A variant for each model that was asked it: the shape of a finding, no claim."""
    asked = sorted({(r.model, r.format) for r in evidence.responses(variant.id)}) or [("no model", "")]
    for model, format_ in asked:
        yield Finding(
            id=variant.id,
            kind="violation",
            code="",  # it is no finding
            model=model or "no model",
            format=format_,
            attributes=variant.attributes,
            directions=variant.directions,
            verdict="not_tested",
            exemplars=(variant.id,),
            text=f"{words.direction(variant.directions) or 'the original'}, as {model or 'no model'} answered it.",
        )


def _whole(page: Page, shown: cards.Card, judged: Judged, seen: set[tuple[str, ...]]) -> None:
    finding = shown.finding
    card(page, shown)
    if finding.rate is not None and (p := finding.p_adjusted) is not None:
        page.paragraph(f"p = {finding.p_value:.2g}, adjusted {p:.2g}", indent="  ")
    if shown.more:
        page.line()
        page.line(words.plural(len(shown.more), "more example"), "bold")
    for one in shown.more:
        page.paragraph(f"{one.variant_id} “{one.text}”: {one.before} → {one.after}", indent="    ", first="  ")
    for cell in shown.cells:
        place = (cell.variant_id, finding.model, finding.format)
        if place in seen or (not cell.responses and any(one[0] == cell.variant_id for one in seen)):
            continue
        seen.add(place)
        page.heading(f"{cell.label} · {cell.variant_id}")
        for prompt in cell.prompts:
            turns = [(f"{message.role}:", message.content) for message in prompt.messages or ()]
            for role, content in turns if prompt.text is None else [*turns, ("input:", prompt.text)]:
                page.line(role, "bold")
                page.line(content)
            page.line(f"prompt {prompt.sha256[:16]} · format {prompt.format}", "dim")
        page.line()
        for response in cell.responses:
            scores = ", ".join(f"{k} {v:.3f}" for k, v in sorted((response.scores or {}).items()))
            page.line(f"answer {response.replicate}" + (f" ({scores})" if scores else "") + ":", "bold")
            failed = f"failed ({response.error}): {response.detail}"
            page.line(response.output if response.output is not None else failed)
        if not cell.responses:
            page.line("not asked")
        for place in sorted({(cell.variant_id, r.model, r.format) for r in cell.responses}):
            if cell is not shown.cells[0] and (said := judged(*place)) is not None:
                page.line()
                page.line(said, "bold")


def _waiver(page: Page, one: Waived | None) -> None:
    if one is not None:
        page.paragraph(f"Waived until {one.expires} by {one.owner}; reason: {one.reason}", indent="  ")


def render_row_finding(record: RunRecord, id: str, **screen: Any) -> str:
    """Show one finding of a search over rows with its figure, its notes, and pairs of rows."""
    known = {f.id: f for f in record.findings}
    if id not in known:
        raise UnknownPlugin("finding", id, known)
    f, page = known[id], Page(**screen)
    page.line(f"{id} · {words.attributes(f.attributes)} · {f.model} · {words.verdict(f.verdict)}", "bold")
    page.paragraph(words.sentence(f.text))
    if f.rate:
        page.paragraph(f"Measured: {words.rate_text(f.rate)} of {words.plural(f.rate.n, 'row')}.")
    for note in f.notes:
        page.paragraph(words.sentence(note), first="- ", indent="  ")
    page.heading(tabular_report.PAIRS)
    pairs = [tabular_report.pair(p) for p in record.rows.pairs if set(p.changed) <= set(f.attributes)]
    for changed, labels, rest in pairs:
        page.paragraph(f"{changed}   label {labels}")
        page.paragraph(rest, indent="    ")
    if not pairs:
        page.paragraph("The run kept none.")
    _waiver(page, record.waived.get(id))
    page.paragraph(f"What {f.code} means: audit show {f.code}")
    return page.value()
