"""Charts as inline SVG, written by hand: no fonts, no scripts, and they reflow.

Horizontal positions are percentages of the drawing's width, vertical ones pixels; so one drawing suits a
desk and a phone without scaling its letters. Colours come from the page's style sheet by class; the shape of
a mark says the same as its colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from markupsafe import Markup, escape

from auditor.core.record.outcome_tables import Category
from auditor.report import claimed, words
from auditor.report.document import Chart
from auditor.report.first_screen import Screen

LINE = 22  # pixels per strip
LABELS = 30.0  # percent of the width left of the plot
PLOT = 64.0  # percent of the width that the plot takes
DRAWN = 18  # lines of a plot, and of one attribute of a model
DRAWN_EACH = 4
RATIOS = 1.5  # end of the scale of impact ratios
MARKS = {
    "shown": "M0,-6 L6,5 L-6,5 Z",
    "bounded": "M-5,0 a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0",
    "not_determined": "M-4.5,0 a4.5,4.5 0 1,0 9,0 a4.5,4.5 0 1,0 -9,0",
    "not_tested": "M-4.5,0 L0,-4.5 L4.5,0 L0,4.5 Z",
}
At = Callable[[float], str]  # the place of a value on the scale


def safe(text: object) -> Markup:
    """Escape text for HTML, after making acting characters visible."""
    return escape(words.visible(str(text)))


def svg(name: str, title: str, desc: str, height: int, body: Iterable[str]) -> Markup:
    """Wrap shapes, whose texts have gone through `safe`, as a drawing with an accessible name and description."""
    drawing = (
        f'<svg class="chart forest" role="img" aria-labelledby="{name}-t {name}-d" '
        f'width="100%" height="{height}"><title id="{name}-t">{safe(title)}</title>'
        f'<desc id="{name}-d">{safe(desc)}</desc>{"".join(body)}</svg>'
    )
    return Markup(drawing)  # noqa: S704 - every text in it went through safe()


def _text(kind: str, text: str, y: int) -> str:
    return f'<text class="{kind}" x="0" y="{y}">{safe(text)}</text>'


def _upright(kind: str, x: str, top: int, bottom: int) -> str:
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'


def _tick(x: str, bottom: int, text: str, kind: str = "grid") -> str:
    return _upright(kind, x, 4, bottom) + f'<text class="tick" x="{x}" y="{bottom + 17}">{text}</text>'


def _mark(at: At, interval: tuple[float, float] | None, value: float, kind: str, y: int, end: float = math.inf) -> str:
    """A mark with its interval, which goes on beyond the ``end`` of the scale where it has an arrow."""
    out = ""
    if interval is not None:
        low, high = map(at, interval)
        out += f'<line class="ci {kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        out += _upright(f"ci {kind}", low, y - 4, y + 4)
        arrow = f'<text class="sub" x="{high}" y="{y + 4}" dx="4">→</text>'
        out += arrow if interval[1] > end else _upright(f"ci {kind}", high, y - 4, y + 4)
    mark = f'<path class="mark {kind}" d="{MARKS[kind]}"/>'
    return out + f'<svg x="{at(value)}" y="{y}" width="1" height="1" overflow="visible">{mark}</svg>'


# -- differences and ratios -------------------------------------------------------------------------------


def net(screen: Screen, rows: int = DRAWN, each: int = DRAWN_EACH) -> Iterator[Chart]:
    """Draw comparisons with their intervals on both sides of zero; the range below delta is shaded."""
    drawn = [(row, made) for row in screen.chosen(rows, each) if (made := screen.drawn(row)) is not None]
    if not drawn:
        return
    scale, delta = screen.scale[0], max((row.claim.delta or 0.0 for row in screen.rows), default=0.0)
    reach = max([scale * delta, *(scale * max(abs(e.low), abs(e.high)) for _, e in drawn)]) or 1.0
    step = 10 ** math.floor(math.log10(reach))
    end = next(k * step for k in (1, 2, 3, 4, 5, 6, 8, 10) if k * step >= reach * 0.999)

    def at(value: float) -> str:
        return f"{LABELS + PLOT * (value + end) / (2 * end):.3f}%"

    body: list[str] = []
    listed: list[str] = []
    y, last = 6, ""
    for row, e in drawn:
        name, figures = f"{row.name} ({row.model})" if row.model else row.name, claimed.net(row.claim)
        label = ": ".join(filter(None, (name, row.label)))
        listed.append(f"{label}: {figures}, {claimed.verdict(row.claim)}")
        if label != last:
            y += 18
            last = label
            body.append(_text("row", label, y - 4))
        body.append(_mark(at, (scale * e.low, scale * e.high), scale * e.value, row.claim.verdict, y + 11))
        body.append(_text("sub", figures, y + 15))
        y += LINE + 4
    axis = [
        _tick(at(tick), y, f"{tick:+g}".replace("-", "−") if tick else "0", "grid" if tick else "zero")
        for tick in (-end, -end / 2, 0.0, end / 2, end)
    ]
    if delta:
        width = f"{PLOT * scale * delta / end:.3f}%"
        axis.append(f'<rect class="delta" x="{at(-scale * delta)}" y="4" width="{width}" height="{y - 4}"/>')
    title = words.sentence(screen.axis)
    drawing = svg("net", title.rstrip("."), "; ".join(listed), y + 28, [*axis, *body])
    yield Chart(drawing, " ".join(filter(None, (title, words.text("net_marks"), screen.note))))


def ratios(rows: Sequence[tuple[Category, str]], *, name: str, title: str) -> Markup:
    """Draw impact ratios, each with its figure in words, on a scale from 0 to 1.5 with a line at 0.80."""

    def at(value: float) -> str:
        return f"{LABELS + PLOT * min(value, RATIOS) / RATIOS:.3f}%"

    if len(rows) < 2:
        return Markup("")
    body: list[str] = []
    y = 8
    for row, text in rows:
        y += 18
        kind = "shown" if row.alarm else "bounded"
        mark = _mark(at, row.interval, row.impact_ratio or 0.0, kind, y + 11, RATIOS)
        body += [_text("row", row.category, y - 4), mark, _text("sub", text, y + 15)]
        y += LINE + 4
    frame = [_tick(at(t), y, f"{t:g}") for t in (0, 0.5, 1.0, 1.5)] + [_tick(at(0.8), y, "0.80", "noise")]
    listed = "; ".join(f"{row.category} {text}" for row, text in rows)
    return svg(name, title, listed, y + 28, [*frame, *body])
