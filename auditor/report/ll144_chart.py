"""Impact ratios as a drawing."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from auditor.core.record.outcomes import Category
from auditor.report import charts
from auditor.report.charts import LABELS, LINE, PLOT, safe

AXIS_END = 1.5


def ratio(row: Category) -> str:
    """Three decimals, or why there is no ratio."""
    return row.impact_ratio_text or row.reason or "–"


def limits(row: Category) -> str:
    """The interval of the ratio."""
    if (found := row.interval) is None:
        return "reference" if row.impact_ratio_text else ""
    low, high = found
    return f"({low:.2f}–{high:.2f})"


def dots(rows: Sequence[Category], *, name: str, title: str) -> Markup:
    """Draw impact ratios as dots with their intervals, on a scale from 0 to 1.5, with a line at 0.80."""
    shown = [r for r in rows if r.impact_ratio is not None]
    if len(shown) < 2:
        return Markup("")
    body: list[str] = []
    y = 8
    for row in shown:
        y += 18
        body.append(f'<text class="row" x="0" y="{y - 4}">{safe(row.category)}</text>')
        body.append(f'<text class="sub" x="0" y="{y + 15}">{safe(ratio(row))} {safe(limits(row))}</text>')
        body.append(_dot(row, y + 11))
        y += LINE + 4
    frame = "".join(
        f'<line class="grid" x1="{_x(t)}" x2="{_x(t)}" y1="4" y2="{y}"/>'
        f'<text class="tick" x="{_x(t)}" y="{y + 17}">{t:g}</text>'
        for t in (0, 0.5, 1.0, 1.5)
    )
    frame += f'<line class="noise" x1="{_x(0.8)}" x2="{_x(0.8)}" y1="4" y2="{y}"/>'
    frame += f'<text class="tick" x="{_x(0.8)}" y="{y + 17}">0.80</text>'
    listed = "; ".join(f"{r.category} {ratio(r)} {limits(r)}" for r in shown)
    return charts.svg(name, title, listed, y + 28, [frame, *body], "forest")


def _x(value: float) -> str:
    return f"{LABELS + PLOT * min(value, AXIS_END) / AXIS_END:.3f}%"


def _dot(row: Category, y: int) -> str:
    kind = "shown" if row.alarm else "bounded"
    shape = "M0,-6 L6,5 L-6,5 Z" if kind == "shown" else "M-5,0 a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0"
    out = []
    if (found := row.interval) is not None:
        low, high = found
        out.append(f'<line class="ci {kind}" x1="{_x(low)}" x2="{_x(high)}" y1="{y}" y2="{y}"/>')
        out.append(f'<line class="ci {kind}" x1="{_x(low)}" x2="{_x(low)}" y1="{y - 4}" y2="{y + 4}"/>')
        if high <= AXIS_END:
            out.append(f'<line class="ci {kind}" x1="{_x(high)}" x2="{_x(high)}" y1="{y - 4}" y2="{y + 4}"/>')
        else:
            out.append(f'<text class="sub" x="{_x(high)}" y="{y + 4}" dx="4">→</text>')
    mark = f'<path class="mark {kind}" d="{shape}"/>'
    at = _x(row.impact_ratio or 0.0)
    out.append(f'<svg x="{at}" y="{y}" width="1" height="1" overflow="visible">{mark}</svg>')
    return "".join(out)
