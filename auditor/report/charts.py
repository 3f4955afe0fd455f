"""Charts as inline SVG, written by hand: no fonts, no scripts, and they reflow.

Horizontal positions are percentages of the drawing's width, vertical ones pixels; so one drawing suits a
desk and a phone without scaling its letters. Colours come from the page's style sheet by class; the shape of
a mark says the same as its colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from auditor.report import claimed, view, words

LINE = 22  # pixels per strip
LABELS = 30.0  # percent of the width left of the plot
PLOT = 64.0  # percent of the width that the plot takes
BARS = 44.0  # percent of the width left of bars, whose labels are longer
MARKS = {
    "shown": "M0,-6 L6,5 L-6,5 Z",
    "shown_for_words": "M0,-6 L6,5 L-6,5 Z",
    "bounded": "M-5,0 a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0",
    "not_determined": "M-4.5,0 a4.5,4.5 0 1,0 9,0 a4.5,4.5 0 1,0 -9,0",
    "not_tested": "M-4.5,0 L0,-4.5 L4.5,0 L0,4.5 Z",
}


def safe(text: object) -> Markup:
    """Escape text for HTML, after making acting characters visible."""
    return escape(words.visible(str(text)))


def scale_end(highest: float) -> float:
    """Round up to the end of a scale that divides into four or five ticks, at most 1."""
    for end in (0.01, 0.02, 0.04, 0.05, 0.08, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0):
        if highest <= end:
            return end
    return 1.0


def _ticks(end: float) -> list[float]:
    parts = 3 if end in (0.3, 0.6) else 5 if end in (0.05, 0.1, 0.5, 1.0) else 4
    return [end * i / parts for i in range(parts + 1)]


def forest(
    rows: Sequence[view.Row], subjects: Sequence[view.Subject], *, name: str, title: str, delta: float | None = None
) -> Markup:
    """Draw rates with intervals, one strip per row and subject, the noise of each beside it.

    Parameters
    ----------
    rows, subjects
        As in `View`.
    name : str
        Prefix of the element ids; unique on the page.
    title : str
        Accessible name of the drawing.
    delta : float, optional
        The bound set before the run, a share; the range below it is shaded.
    """
    rates = [c.rate for r in rows for c in r.cells if c.rate]
    if not rates:
        return Markup("")
    noises = [n.estimate for r in rows for c in r.cells if (n := c.noise) is not None and n.estimate is not None]
    highest = max([e.high for e in [*rates, *noises]] + [1.25 * (delta or 0)])
    end = scale_end(highest)
    body: list[str] = []
    y = 6
    for row in rows:
        y += 18
        body.append(f'<text class="row" x="0" y="{y - 4}">{safe(row.label)}</text>')
        for subject, cell in zip(subjects, row.cells, strict=True):
            body.append(f'<text class="sub" x="0" y="{y + 15}">{safe(subject.name)}</text>')
            body.append(_strip(cell, y + 11, end))
            y += LINE
        y += 8
    frame = _axis(end, y, delta)
    listed = (
        f"{r.label}, {s.name}: {words.interval(c.rate)}, {words.verdict(c.verdict, symbol=False)}"
        for r in rows
        for s, c in zip(subjects, r.cells, strict=True)
        if c.rate
    )
    return svg(name, title, "; ".join(listed), y + 28, [frame, *body], "forest")


def net(strips: Sequence[tuple[str, str, claimed.Effect, str, str]], *, name: str, title: str) -> Markup:
    """Draw differences with their intervals on both sides of zero.

    Parameters
    ----------
    strips : sequence of (label, subject, effect, verdict, text)
        All effects of one unit; ``text`` is the figure in words.
    name, title : str
        As for `forest`.
    """
    reach = max(e.scale * max(abs(e.low), abs(e.high)) for _, _, e, _, _ in strips) or 1.0
    step = 10 ** math.floor(math.log10(reach))
    end = next(k * step for k in (1, 2, 3, 4, 5, 6, 8, 10) if k * step >= reach * 0.999)

    def at(value: float) -> str:
        return f"{LABELS + PLOT * (value + end) / (2 * end):.3f}%"

    body: list[str] = []
    y = 6
    label = ""
    for told, subject, effect, kind, _ in strips:
        if told != label:
            y += 18
            label = told
            body.append(f'<text class="row" x="0" y="{y - 4}">{safe(told)}</text>')
        body.append(f'<text class="sub" x="0" y="{y + 15}">{safe(subject)}</text>')
        ends = [at(effect.scale * v) for v in (effect.low, effect.high, effect.value)]
        body.append(_drawn(ends, kind, y + 11))
        y += LINE + 4
    axis = []
    for tick in (-end, -end / 2, 0.0, end / 2, end):
        line = "zero" if not tick else "grid"
        axis.append(f'<line class="{line}" x1="{at(tick)}" x2="{at(tick)}" y1="4" y2="{y}"/>')
        text = f"{tick:+g}".replace("-", "−") if tick else "0"
        axis.append(f'<text class="tick" x="{at(tick)}" y="{y + 17}">{text}</text>')
    listed = "; ".join(f"{told}{', ' if subject else ''}{subject}: {text}" for told, subject, _, _, text in strips)
    return svg(name, title, listed, y + 28, [*axis, *body], "forest")


def _x(share: float, end: float) -> str:
    return f"{LABELS + PLOT * min(share, end) / end:.3f}%"


def _axis(end: float, bottom: int, delta: float | None) -> str:
    out = []
    if delta is not None:
        width = f"{PLOT * min(delta, end) / end:.3f}%"
        out.append(f'<rect class="delta" x="{LABELS}%" y="4" width="{width}" height="{bottom - 4}"/>')
    for tick in _ticks(end):
        x = _x(tick, end)
        out.append(f'<line class="grid" x1="{x}" x2="{x}" y1="4" y2="{bottom}"/>')
        out.append(f'<text class="tick" x="{x}" y="{bottom + 17}">{100 * tick:g}&#160;%</text>')
    return "".join(out)


def _strip(cell: view.Cell, y: int, end: float) -> str:
    if cell.rate is None:
        return f'<text class="sub" x="{LABELS}%" y="{y + 4}" dx="6">not measured</text>'
    out = []
    if cell.noise is not None and (noise := cell.noise.estimate) is not None:
        a, b = noise.low, noise.high
        width = f"{PLOT * (min(b, end) - min(a, end)) / end:.3f}%"
        out.append(f'<rect class="noise" x="{_x(a, end)}" y="{y - 8}" width="{width}" height="16"/>')
        at = _x(noise.value, end)
        out.append(f'<line class="noise" x1="{at}" x2="{at}" y1="{y - 8}" y2="{y + 8}"/>')
    if (placebo := cell.placebo) is not None:
        a, b = placebo.low, placebo.high
        width = f"{PLOT * (min(b, end) - min(a, end)) / end:.3f}%"
        out.append(f'<rect class="placebo" x="{_x(a, end)}" y="{y + 6}" width="{width}" height="4"/>')
        at = _x(placebo.value, end)
        out.append(f'<line class="placebo" x1="{at}" x2="{at}" y1="{y + 4}" y2="{y + 12}"/>')
    kind = cell.verdict if cell.verdict in MARKS else "not_tested"
    rate = cell.rate
    return "".join(out) + _drawn([_x(x, end) for x in (rate.low, rate.high, rate.value)], kind, y)


def _drawn(ends: Sequence[str], kind: str, y: int) -> str:
    low, high, value = ends
    out = []
    out.append(f'<line class="ci {kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
    out += [f'<line class="ci {kind}" x1="{x}" x2="{x}" y1="{y - 4}" y2="{y + 4}"/>' for x in (low, high)]
    mark = f'<path class="mark {kind}" d="{MARKS[kind]}"/>'
    out.append(f'<svg x="{value}" y="{y}" width="1" height="1" overflow="visible">{mark}</svg>')
    return "".join(out)


def bars(groups: Sequence[tuple[str, Sequence[tuple[str, int, int, str, str]]]], *, name: str, title: str) -> Markup:
    """Draw shares of 1 as horizontal bars under headings; every bar carries its figure.

    Parameters
    ----------
    groups : sequence of (str, sequence of (label, part, whole, text, kind))
        ``text`` is what stands on the bar; ``kind`` is a class of the style sheet ("joint", "hidden"). A bar of
        nothing (``whole`` 0) is a dashed frame.
    name : str
        Prefix of the element ids; unique on the page.
    title : str
        Accessible name of the drawing.

    Examples
    --------
    >>> "7.5" in bars([("pair", [("model", 3, 40, "7.5 %", "joint")])], name="x", title="Rates")
    True
    """
    body: list[str] = []
    listed: list[str] = []
    y = 4
    for heading, rows in groups:
        y += 20
        body.append(f'<text class="row" x="0" y="{y - 5}">{safe(heading)}</text>')
        for label, part, whole, text, kind in rows:
            body.append(f'<text class="sub" x="0" y="{y + 14}">{safe(label)}</text>')
            body.append(_bar(y, part / whole if whole else None, text, kind))
            listed.append(f"{heading}, {label}: {text}")
            y += LINE
        y += 6
    return svg(name, title, "; ".join(listed), y + 4, body, "matrix")


def _bar(y: int, share: float | None, text: str, kind: str) -> str:
    """One bar right of its label: the frame is the whole, the filling the share."""
    dashed = ' stroke-dasharray="3 3"' if share is None else ""
    frame = f'<rect x="{BARS}%" y="{y}" width="{100 - BARS:g}%" height="{LINE - 4}" rx="3"{dashed}/>'
    if share:
        width = f"{(100 - BARS) * share:.3f}%"
        frame += (
            f'<rect class="fill {safe(kind)}" x="{BARS}%" y="{y}" width="{width}" height="{LINE - 4}" rx="3" '
            'fill-opacity="0.4"/>'
        )
    return frame + f'<text x="{BARS}%" dx="7" y="{y + 13}">{safe(text)}</text>'


def svg(name: str, title: str, desc: str, height: int, body: Iterable[str], kind: str) -> Markup:
    """Wrap shapes as one drawing with an accessible name and description.

    Parameters
    ----------
    name : str
        Prefix of the element ids; unique on the page.
    title, desc : str
        What the drawing is called, and every figure in it as text.
    height : int
        Pixels; the width is that of the page.
    body : iterable of str
        SVG elements; every text in them has gone through `safe`.
    kind : str
        Classes of the style sheet.
    """
    drawing = (
        f'<svg class="chart {kind}" role="img" aria-labelledby="{name}-t {name}-d" '
        f'width="100%" height="{height}"><title id="{name}-t">{safe(title)}</title>'
        f'<desc id="{name}-d">{safe(desc)}</desc>{"".join(body)}</svg>'
    )
    return Markup(drawing)  # noqa: S704 - every text in it went through safe()
