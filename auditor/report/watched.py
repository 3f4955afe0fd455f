"""A series of runs as a page: each figure by date, when the model changed, and which texts did."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.measure.series import ANSWERS, Key, Point, Series, Watched
from auditor.report import charts, words
from auditor.report.claimed import Effect
from auditor.report.document import Block, Cell, Chart, Document, Section, Table, Text

COLUMNS = ("Began", "Run", "Figure (95 %)", "Difference from before", "Texts", "p", "Evidence", "")
MEANING = (
    "Each text is compared with itself: its value at a date with those at all earlier dates since the last change. The "
    "evidence (an e-process, begun at every look) may be read after every run: that it ever reaches the figure beside "
    "it without a change has a chance of 1 % at most, over all figures and looks together. Intervals are those of the "
    "texts of one run, and share texts with the others."
)
MARKS = {True: ("▲ changed", "shown"), False: ("no change shown", "not_determined")}


def title(key: Key, several: bool) -> str:
    """What a figure is called."""
    what = f"share of “{key.label}”" if key.label else "mean answer"
    about = (
        f"all answers, {what}" if key.group == ANSWERS else f"{key.attribute}: {key.group} and {key.reference}, {what}"
    )
    place = f"{key.model}, {key.format}" if key.format not in ("", "bare") else key.model
    return f"{place}: {about}" if several else about


def build(found: Watched) -> Document:
    """The page of a series."""
    several = len({(one.key.model, one.key.format) for one in found.series}) > 1
    sections = [
        Section(id="changes", title="Changes", short="Changes", blocks=tuple(_changes(found, several)), brief=True),
        *_moved(found),
        *(
            Section(
                id=f"figure-{n}",
                title=title(one.key, several),
                short=title(one.key, several),
                blocks=tuple(_figure(one, n, several)),
                folded=n > 3 and not one.changed,
            )
            for n, one in enumerate(found.series)
        ),
    ]
    left = tuple((name, why) for name, why in found.others.items())
    if left:
        table = Table(caption="Runs that were left out", columns=("Run", "Why"), lines=left)
        sections.append(Section(id="others", title="Left out", short="Left out", blocks=(table,), folded=True))
    return Document(
        title=f"History of {found.folder}",
        name=found.folder,
        meta=f"{words.plural(len(found.runs), 'run')} of one plan: {summary(found)}",
        banners=(),
        first=None,
        sections=tuple(sections),
    )


def summary(found: Watched) -> str:
    """Whether the last run shows a change, in one line."""
    if len(found.runs) < 2:
        return "one run; changes are looked for from the second on"
    last = [one for one in found.series if one.points and one.points[-1].look.changed]
    if last:
        return f"changed at the last run: {words.plural(len(last), 'figure')}"
    before = sum(len(one.changed) for one in found.series)
    return "no change shown at the last run" + (f"; {words.plural(before, 'change')} before it" if before else "")


def _changes(found: Watched, several: bool) -> Iterator[Block]:
    yield Text(MEANING)
    lines = tuple(
        (p.date, p.run, title(one.key, several), _points(p.look.difference), f"{p.look.texts:,}")
        for one in found.series
        for p in one.changed
    )
    if lines:
        columns = ("Began", "Run", "Figure", "Difference from before", "Texts")
        yield Table(caption="When a change was found", columns=columns, lines=lines)
    else:
        yield Text("No change was shown.")


def _moved(found: Watched) -> Iterator[Section]:
    if found.moved:
        lines = tuple((one.id, one.text[:300], f"{one.before:.2f}", f"{one.now:.2f}") for one in found.moved)
        table = Table(
            caption=f"Texts whose answers moved most at {found.moved_at}",
            columns=("Text", "", "Before", "Now"),
            lines=lines,
        )
        yield Section(id="moved", title="Texts that moved", short="Texts", blocks=(table,))


def _figure(one: Series, n: int, several: bool) -> Iterator[Block]:
    strips = [
        (p.date, "", Effect(value=p.value, low=p.low, high=p.high, unit=one.unit), MARKS[p.look.changed][1], _value(p))
        for p in one.points
        if p.value is not None and p.low is not None and p.high is not None
    ]
    if len(strips) > 1:
        drawn = charts.net(strips, name=f"watched-{n}", title=f"{title(one.key, several)} over time")
        yield Chart(drawn, "By date, with 95 % intervals.")
    yield Table(caption=title(one.key, several), columns=COLUMNS, lines=tuple(map(_line, one.points)))


def _line(p: Point) -> tuple[str | Cell, ...]:
    mark, kind = MARKS[p.look.changed]
    look = p.look
    if look.p_value is None:
        return (p.date, p.run, _value(p), "–", "–", "–", "–", "the first")
    return (
        p.date,
        p.run,
        _value(p),
        _points(look.difference),
        f"{look.texts:,}",
        f"{look.p_value:.4f}",
        f"{look.capital:.2g} of {look.needed:.0f}",
        Cell(mark=mark, kind=kind),
    )


def _value(p: Point) -> str:
    if p.value is None or p.low is None or p.high is None:
        return "–"
    return f"{p.value:+.3f} ({p.low:+.3f} to {p.high:+.3f})".replace("-", "−")


def _points(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")
