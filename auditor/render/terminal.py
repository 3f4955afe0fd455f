"""The report as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.render import answer, cards, controls, hinter, terminal_answer, view, waived, words
from auditor.render.finding import card, render_finding
from auditor.render.page import Page

__all__ = ["TerminalReport", "card", "render_finding"]
MAX_CARDS = 5
MAX_FEW = 8  # names of attribute sets on few seeds


class TerminalReport:
    """The answer on one screen; with ``full`` what was asked, measured and found, controls, limits, next commands.

    A run without claims (free texts, a paper's own protocol, an old record) is told in full.

    Parameters
    ----------
    width : int, default 100
        Columns of the page.
    encoding : str, default "utf-8"
        Encoding of the terminal; other than UTF means ASCII symbols.
    color : bool, default False
        ANSI styles for headings and marks.
    full : bool, default False
        Everything that was measured, below the answer.
    """

    name = "terminal.v1"
    suffix = ".txt"

    def __init__(
        self, *, width: int = 100, encoding: str = "utf-8", color: bool = False, full: bool = False
    ) -> None:
        self.width, self.encoding, self.color, self.full = width, encoding, color, full

    def render(self, record: Mapping[str, Any], evidence: Any) -> str:
        """Write the report as text that ends in a line break."""
        page = Page(width=self.width, encoding=self.encoding, color=self.color)
        first = answer.build(record, evidence)
        if first is not None:
            terminal_answer.write(page, first, full=self.full)
            if not self.full:
                return page.value()
            page.line()
        shown = view.build(record)
        page.line(shown.title, "bold")
        for banner in shown.banners if first is None else ():
            page.paragraph(banner, first="!! ", indent="   ")
        page.line(f"run {record.get('id', '–')} · {record.get('status', '–')}")
        _asked(page, shown)
        _headline(page, shown)
        _paper(page, shown)
        _hidden(page, shown, evidence)
        _directions(page, shown)
        _sections(page, shown)
        _controls(page, shown)
        waived.section(page, record)
        page.heading("Limits")
        for limit in words.LIMITS:
            page.paragraph(limit, first="· ", indent="  ")
        if shown.commands:
            page.heading("Next")
        widest = max((len(command) for command, _ in shown.commands), default=0)
        beside = all(widest + 3 + len(what) <= page.width for _, what in shown.commands)
        for command, what in shown.commands:
            page.line(f"{command:<{widest}}   {what}" if beside else command, whole=True)
            if not beside and page.width >= 90:
                page.line(f"    {what}")
        return page.value()


def _asked(page: Page, shown: view.View) -> None:
    page.heading("What was asked")
    widest = max(len(name) for name, _ in shown.asked)
    for name, value in shown.asked:
        page.paragraph(value, first=f"{name:<{widest}}  ", indent=" " * (widest + 2))


def _cell_lines(cell: view.Cell, verdicts: bool) -> str:
    lines = [words.interval(cell.rate)]
    if verdicts or cell.claim is not None:
        lines.append(words.verdict(cell.verdict))
    if cell.hidden is not None:
        lines.append(f"hidden {words.interval(cell.hidden)}")
    if cell.placebo is not None:
        lines.append(f"placebo {words.glue(words.interval(cell.placebo))}")
    return "\n".join(lines)


def _headline(page: Page, shown: view.View) -> None:
    page.heading(f"How often the {shown.noun} changed")
    for name, sentence in shown.answer:
        page.paragraph(f"{name} {sentence}")
    page.line()
    if not shown.rows:
        page.line("No rate could be estimated.")
        return
    _comparison(page, shown, shown.main, "Attributes", validity=True)
    if shown.few:
        page.line()
        page.paragraph(_few(shown.few, "attribute set"), indent="  ")
    page.line()
    page.paragraph(
        "Share of valid variants whose answer differs from that for their original; in brackets the "
        f"{words.confidence(_level(shown))} interval by seed. ▲\u00a0shown: above noise. ●\u00a0bounded: below δ. "
        "?\u00a0not\u00a0determined: the data support neither. –\u00a0not\u00a0tested: no claim was made."
    )
    if any(c.placebo for r in shown.rows for c in r.cells):
        page.paragraph(
            "Placebo: the same for edits of the same form that change no group. Where there are any, shown "
            "means: more than these."
        )
    if shown.kinds:
        page.line()
        kinds, few = view.split(shown.kinds)
        _comparison(page, shown, kinds, "Kind of edit", validity=False)
        if few:
            page.paragraph(_few(few, "kind of edit", "kinds of edit"), indent="  ")


def _few(rows: Sequence[view.Row], what: str, many: str = "") -> str:
    """One line for rows that are judged on too few seeds for any test."""
    listed = [f"{r.label} ({words.count(r.seeds)})" for r in rows[:MAX_FEW]]
    left = len(rows) - len(listed)
    return (
        f"{words.plural(len(rows), what, many)} with fewer than {view.MIN_SEEDS} seeds: {', '.join(listed)}"
        + (f" and {left} more" if left else "")
        + "; rates: see the HTML report."
    )


def _paper(page: Page, shown: view.View) -> None:
    """The paper's own counting, and its tables and figures."""
    if not shown.paper:
        return
    page.line()
    page.table([(name, False) for name in controls.PAPER_COLUMNS], shown.paper)
    page.paragraph("Counted as the paper's released code counts: every mutant alike, no intervals.")
    for figure in hinter.build(shown.record):
        page.line()
        page.line(f"HInter, {figure.title}", "bold")
        page.paragraph(figure.note)
        if figure.lines:
            page.table([(name, name in hinter.RIGHT) for name in figure.columns], figure.lines)


def _level(shown: view.View) -> float | None:
    return next(
        (float(c.rate["level"]) for r in shown.rows for c in r.cells if c.rate and "level" in c.rate), None
    )


def _comparison(
    page: Page, shown: view.View, rows: Sequence[view.Row], title: str, *, validity: bool
) -> None:
    """Models side by side where they fit, else one line per model."""
    counts = [("Seeds", True), ("Valid", True), ("Discarded", True)] if validity else [("Seeds", True)]

    def numbers(row: view.Row) -> list[str]:
        every = [words.count(row.seeds), words.count(row.valid), words.count(row.discarded)]
        return every if validity else every[:1]

    if page.width >= 56 + 26 * (len(shown.subjects) - 1) - (0 if validity else 18):
        names = [(s.name, False) for s in shown.subjects]
        body = [[r.label, *numbers(r), *(_cell_lines(c, validity) for c in r.cells)] for r in rows]
        if validity:
            body.append(["same prompt again", "", "", "", *(c.noise_text for c in rows[0].cells)])
        page.table([(title, False), *counts, *names], body)
        return
    if validity:
        for subject, cell in zip(shown.subjects, rows[0].cells, strict=True):
            page.paragraph(f"Same prompt again, {subject.name}: {cell.noise_text}.")
        page.line()
    page.table(
        [(title, False), ("Seeds", True), ("Model", False), ("Changed", False)],
        (
            [*(("", "") if i else (r.label, words.count(r.seeds))), s.name, _cell_lines(c, validity)]
            for r in rows
            for i, (s, c) in enumerate(zip(shown.subjects, r.cells, strict=True))
        ),
    )


def _hidden(page: Page, shown: view.View, evidence: Any) -> None:
    page.heading("Hidden findings: changes that only several attributes together bring about")
    page.paragraph(words.HIDDEN_FINDING if shown.hidden else shown.none_hidden)
    for finding in shown.hidden[:MAX_CARDS]:
        card(page, cards.build(finding, evidence, noun=shown.noun, record=shown.record))
    left = len(shown.hidden) - MAX_CARDS
    if left > 0:
        page.paragraph(
            f"… and {words.plural(left, 'further hidden finding')}; the HTML report lists all of them."
        )
    if shown.violations:
        page.line()
        page.line("Single examples of a change", "bold")
        for finding in shown.violations[:MAX_CARDS]:
            card(page, cards.build(finding, evidence, noun=shown.noun, record=shown.record))


def _directions(page: Page, shown: view.View) -> None:
    if not shown.directions:
        return
    page.heading("Directions with the highest rates")
    _comparison(page, shown, shown.directions, "Direction", validity=False)
    if shown.n_directions > len(shown.directions):
        left = shown.n_directions - len(shown.directions)
        page.paragraph(f"{words.plural(left, 'further direction')} can be found in run.json.")
    page.paragraph(
        "Picked after the fact, by the lower ends of their intervals: where to look, not a result of its own."
    )


def _sections(page: Page, shown: view.View) -> None:
    """What stands only where the run has it; waivers are told in sentences further down."""
    for section in shown.sections:
        if section.id == "waivers":
            continue
        page.heading(section.title)
        for table in section.tables[section.id == "comparison" :]:  # the rates stand in the first table
            if len(section.tables) > 2:
                page.line(table.caption, "bold")
            page.table([(name, name in table.right) for name in table.columns], table.lines)
            if table.more:
                page.paragraph(f"{words.plural(len(table.more), *table.left)}: see the HTML report.")
            page.line()
        for note in section.notes:
            page.paragraph(note)


def _controls(page: Page, shown: view.View) -> None:
    page.heading("Controls")
    page.table(
        [("Control", False), ("For", False), ("Result", False)],
        ((c.name, c.scope, c.result) for c in shown.controls if not c.few),
    )
    few = sum(c.few for c in shown.controls)
    if few:
        page.paragraph(
            f"{words.plural(few, 'control')} on fewer than {controls.FEW_SEEDS} seeds: see the HTML report."
        )
    page.line()
    page.paragraph(f"Answers that are no {shown.noun}: {shown.lost}.")
    ranked = sorted(
        shown.answers, key=lambda a: -sum(a.get(k) or 0 for k in controls.LOSSES) / max(1, a.get("n") or 0)
    )
    if ranked:
        kinds = controls.losses(ranked)
        page.table(
            [("Model", False), ("Attribute", False), ("Group", False), ("Asked", True)]
            + [(name.capitalize(), True) for name in kinds],
            (
                [
                    a["model"],
                    a["attribute"],
                    words.group(a["group"]),
                    *(words.count(a.get(k)) for k in ("n", *kinds)),
                ]
                for a in ranked[:MAX_GROUPS]
            ),
        )
    rest = max(0, len(ranked) - MAX_GROUPS)
    if rest:
        page.paragraph(
            "Those with the largest share of lost answers. "
            f"{words.plural(rest, 'further group')} with lost answers: see the HTML report."
        )
    if shown.complete:
        page.paragraph(f"{words.plural(len(shown.complete), 'group')} of a model and attribute lost none.")


MAX_GROUPS = 6
