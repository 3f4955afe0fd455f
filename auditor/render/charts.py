"""Charts as inline SVG, written by hand: no fonts, no scripts, and they reflow.

Horizontal positions are percentages of the drawing's width, vertical ones pixels; so one drawing suits a
desk and a phone without scaling its letters. Colours come from the page's style sheet by class; the shape of
a mark says the same as its colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from auditor.render import view, words

LINE = 22  # pixels per strip
LABELS = 30.0  # percent of the width left of the plot
PLOT = 64.0  # percent of the width that the plot takes
MARKS = {
    "shown": "M0,-6 L6,5 L-6,5 Z",
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
    rows: Sequence[view.Row],
    subjects: Sequence[view.Subject],
    *,
    name: str,
    title: str,
    delta: float | None = None,
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
    noises = [c.noise for r in rows for c in r.cells if words.is_estimate(c.noise)]
    highest = max([float(e["high"]) for e in [*rates, *(n for n in noises if n)]] + [1.25 * (delta or 0)])
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
    return _svg(name, title, "; ".join(listed), y + 28, [frame, *body], "forest")


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
    low, high, value = (_x(float(cell.rate[k]), end) for k in ("low", "high", "value"))
    out = []
    if cell.noise is not None and words.is_estimate(cell.noise):
        a, b = (float(cell.noise[k]) for k in ("low", "high"))
        width = f"{PLOT * (min(b, end) - min(a, end)) / end:.3f}%"
        out.append(f'<rect class="noise" x="{_x(a, end)}" y="{y - 8}" width="{width}" height="16"/>')
        at = _x(float(cell.noise["value"]), end)
        out.append(f'<line class="noise" x1="{at}" x2="{at}" y1="{y - 8}" y2="{y + 8}"/>')
    kind = cell.verdict if cell.verdict in MARKS else "not_tested"
    out.append(f'<line class="ci {kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
    out += [f'<line class="ci {kind}" x1="{x}" x2="{x}" y1="{y - 4}" y2="{y + 4}"/>' for x in (low, high)]
    mark = f'<path class="mark {kind}" d="{MARKS[kind]}"/>'
    out.append(f'<svg x="{value}" y="{y}" width="1" height="1" overflow="visible">{mark}</svg>')
    return "".join(out)


def matrix(shown: view.View, column: int, *, name: str) -> Markup:
    """Draw attributes against attributes for one subject.

    Diagonal: rate of single changes; below it: rate of joint changes; above it: share of judged joint
    variants that are hidden. Every square carries its figure.
    """
    subject = shown.subjects[column]
    cells = {r.attributes: r.cells[column] for r in shown.rows if 1 <= len(r.attributes) <= 2}
    names = sorted({a for key in cells for a in key})
    if len(names) < 2 or not any(len(k) == 2 for k in cells):
        return Markup("")
    rates = [float(e["value"]) for c in cells.values() for e in (c.rate, c.hidden) if e]
    top = max(rates, default=0.0) or 1.0
    left, size, head = 24.0, 76.0 / len(names), 30
    body, listed = [], []
    for j, across in enumerate(names):
        x = left + size * (j + 0.5)
        body.append(f'<text class="head" x="{x:.3f}%" y="18">{safe(across)}</text>')
        body.append(f'<text class="row" x="0" y="{head + 52 * j + 30}">{safe(across)}</text>')
    for i, down in enumerate(names):
        for j, across in enumerate(names):
            cell = cells.get((down,) if i == j else (min(down, across), max(down, across)))
            found = None if cell is None else (cell.hidden if j > i else cell.rate)
            value = None if found is None else float(found["value"])
            kind = "single" if i == j else "joint" if j < i else "hidden"
            body.append(_square(left + size * j, head + 52 * i, size, value, top, kind))
            if value is not None:
                listed.append(f"{kind} {down if i == j else f'{down} and {across}'} {words.percent(value)}")
    svg = _svg(
        name,
        f"Attributes against attributes, {subject.name}",
        "; ".join(listed),
        head + 52 * len(names) + 4,
        body,
        "matrix",
    )
    return Markup('<div class="wide" style="--columns: {}">{}</div>').format(len(names), svg)


def _square(x: float, y: int, size: float, value: float | None, top: float, kind: str) -> str:
    strength = 0.0 if value is None else 0.06 + 0.44 * value / top
    text = "–" if value is None else words.percent(value)
    return (
        f'<svg x="{x:.3f}%" y="{y}" width="{size:.3f}%" height="48">'
        f'<rect class="{kind}" x="1%" width="98%" height="48" rx="4"/>'
        f'<rect class="fill {kind}" x="1%" width="98%" height="48" rx="4" fill-opacity="{strength:.3f}"/>'
        f'<text class="num" x="50%" y="23">{safe(text)}</text>'
        f'<text class="kind" x="50%" y="39">{kind}</text></svg>'
    )


def _svg(name: str, title: str, desc: str, height: int, body: Iterable[str], kind: str) -> Markup:
    drawing = (
        f'<svg class="chart {kind}" role="img" aria-labelledby="{name}-t {name}-d" '
        f'width="100%" height="{height}"><title id="{name}-t">{safe(title)}</title>'
        f'<desc id="{name}-d">{safe(desc)}</desc>{"".join(body)}</svg>'
    )
    return Markup(drawing)  # noqa: S704 - every text in it went through safe()
