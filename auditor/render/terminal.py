"""The report as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auditor.errors import UnknownPlugin
from auditor.render import cards, controls, diff, generation, tokens, view, words
from auditor.render.page import Page

if TYPE_CHECKING:
    from rich.text import Text

MAX_CARDS = 5


class TerminalReport:
    """What was asked, what was measured, hidden findings, controls, limits, next commands.

    Parameters
    ----------
    width : int, default 100
        Columns of the page.
    encoding : str, default "utf-8"
        Encoding of the terminal; other than UTF means ASCII symbols.
    color : bool, default False
        ANSI styles for headings and marks.
    """

    name = "terminal.v1"
    suffix = ".txt"

    def __init__(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False) -> None:
        self.width, self.encoding, self.color = width, encoding, color

    def render(self, record: Mapping[str, Any], evidence: Any) -> str:
        """Write the report as text that ends in a line break."""
        page = Page(width=self.width, encoding=self.encoding, color=self.color)
        shown = view.build(record)
        page.line(shown.title, "bold")
        page.line(f"run {record.get('id', '–')} · {record.get('status', '–')}")
        for banner in shown.banners:
            page.line()
            page.paragraph(banner, first="!! ", indent="   ")
        _asked(page, shown)
        _headline(page, shown)
        _hidden(page, shown, evidence)
        _directions(page, shown)
        _generation(page, shown)
        _tokens(page, shown)
        _performance(page, shown)
        _controls(page, shown)
        page.heading("Limits")
        for limit in words.LIMITS:
            page.paragraph(limit, first="· ", indent="  ")
        page.heading("Next")
        widest = max(len(command) for command, _ in shown.commands)
        for command, what in shown.commands:
            page.line(f"{command:<{widest}}   {what}" if page.width >= 90 else command)
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
    _comparison(page, shown, shown.rows, "Attributes", validity=True)
    page.line()
    page.paragraph(
        "Share of valid variants whose answer differs from that for their original; in brackets the "
        f"{words.confidence(_level(shown))} interval by seed. ▲ shown: above noise. ● bounded: below δ. "
        "? not determined: the data support neither. – not tested: no claim was made."
    )
    if any(c.placebo for r in shown.rows for c in r.cells):
        page.paragraph(
            "Placebo: the same for edits of the same form that change no group. Where there are any, shown "
            "means: more than these."
        )
    if shown.paper:
        page.line()
        page.table([(name, False) for name in controls.PAPER_COLUMNS], shown.paper)
        page.paragraph("Counted as the paper's released code counts: every mutant alike, no intervals.")
    if shown.kinds:
        page.line()
        _comparison(page, shown, shown.kinds, "Kind of edit", validity=False)


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
        [(title, False), ("Model", False), ("Changed", False)],
        (
            [r.label, s.name, _cell_lines(c, validity)]
            for r in rows
            for s, c in zip(shown.subjects, r.cells, strict=True)
        ),
    )


def _hidden(page: Page, shown: view.View, evidence: Any) -> None:
    page.heading("Hidden findings: changes that only several attributes together bring about")
    if not shown.hidden:
        page.paragraph(shown.none_hidden)
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


def card(page: Page, shown: cards.Card) -> None:
    """One finding: sentence, both texts side by side, the lattice with its answers."""
    f = shown.finding
    page.line()
    what = words.direction(f["directions"]) or (
        "" if f["kind"] == "variant" else words.attributes(f["attributes"])
    )
    mark = "" if f["kind"] == "variant" else words.verdict(f["verdict"])
    page.paragraph(" · ".join(part for part in (f["id"], what, f["model"], mark) if part))
    page.paragraph(shown.sentence, indent="  ")
    if not shown.cells:
        page.paragraph(f"Its texts and answers are not available: {shown.missing}.", indent="  ")
        return
    page.line()
    left, right = diff.excerpt(shown.original), diff.excerpt(shown.variant)
    if len(shown.cells) > 1:
        page.pair(("original", _marked(page, left)), (f"variant {shown.variant_id}", _marked(page, right)))
        page.line()
    lattice(page, shown.cells)
    for note in f.get("notes") or ():
        page.paragraph(words.sentence(note), indent="  ")
    for diagnosis in shown.diagnoses:
        page.paragraph(f"Why: {diagnosis['cause']} ({diagnosis['evidence']}).", indent="  ")


def lattice(page: Page, cells: Sequence[cards.LatticeCell]) -> None:
    """One line per cell: what changed, the answers, and how they compare with the original's."""
    rows = []
    for cell in cells:
        changes = ", ".join(f"{old} → {new}" if old else f"+ {new}" for _, old, new in cell.changes)
        compared = {"changed": "▲ changed", "": "", "same": "same", "not judged": "? not judged"}[
            cell.compared
        ]
        rows.append((f"  {cell.label}", changes, cell.note or cell.tally.text, compared))
    page.table(
        [("  Changed", False), ("Words", False), ("Answers", False), ("Against original", False)], rows
    )


def _marked(page: Page, segments: Sequence[diff.Segment]) -> Text:
    """Segments as text with changed words in square brackets."""
    from rich.text import Text

    out = Text()
    for segment in segments:
        plain = page.plain(segment.text)
        out.append(f"[{plain}]" if segment.changed else plain, style="bold" if segment.changed else "")
    return out


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


def _generation(page: Page, shown: view.View) -> None:
    section = shown.generation
    if section is None:
        return
    page.heading(section.title)
    for note in section.notes:
        page.paragraph(note)
    for table in section.tables:
        page.line()
        page.table([(name, name in generation.RIGHT) for name in table.columns], table.lines)


def _tokens(page: Page, shown: view.View) -> None:
    section = shown.tokens
    if section is None:
        return
    page.heading("Words that the changes went with")
    if section.lines:
        page.table([(name, name in tokens.RIGHT) for name in tokens.COLUMNS], section.lines)
        if section.more:
            page.paragraph(f"{words.plural(len(section.more), 'further word')}: see the HTML report.")
        page.line()
    for note in section.notes:
        page.paragraph(note)


def _performance(page: Page, shown: view.View) -> None:
    section = shown.performance
    if section is None:
        return
    page.heading("Answers against the labels in the data")
    if section.lines:
        page.table([(name, name == "Texts") for name in section.columns], section.lines)
        if section.more:
            page.paragraph(f"{words.plural(len(section.more), 'further group')}: see the HTML report.")
        page.line()
    for note in section.notes:
        page.paragraph(note)


def _controls(page: Page, shown: view.View) -> None:
    page.heading("Controls")
    page.table(
        [("Control", False), ("For", False), ("Result", False)],
        ((c.name, c.scope, c.result) for c in shown.controls),
    )
    counts = shown.record.get("counts", {})
    lost = [f"{name} {words.count(counts.get(name))}" for name in ("refused", "unparsed", "failed")]
    page.line()
    page.paragraph(
        f"Answers that are no {shown.noun}: {', '.join(lost)} of {words.count(counts.get('calls'))} calls."
    )
    if shown.answers:
        page.table(
            [("Model", False), ("Attribute", False), ("Group", False)]
            + [(name, True) for name in ("Asked", "Refused", "Unparsed", "Failed")],
            (
                [
                    a["model"],
                    a["attribute"],
                    words.group(a["group"]),
                    *(words.count(a.get(k)) for k in COUNTS),
                ]
                for a in shown.answers[:MAX_GROUPS]
            ),
        )
    rest = max(0, len(shown.answers) - MAX_GROUPS)
    if rest:
        page.paragraph(f"{words.plural(rest, 'further group')} with lost answers: see the HTML report.")
    if shown.complete:
        page.paragraph(f"{words.plural(len(shown.complete), 'group')} of a model and attribute lost none.")


COUNTS = ("n", *controls.LOSSES)
MAX_GROUPS = 12


def render_finding(
    record: Mapping[str, Any],
    evidence: Any,
    finding_id: str,
    *,
    width: int = 100,
    encoding: str = "utf-8",
    color: bool = False,
) -> str:
    """Show one finding, or one variant, with its full prompts and every answer (``audit show``).

    Parameters
    ----------
    record, evidence
        As for a renderer.
    finding_id : str
        The id of a finding, or of a variant.
    width, encoding, color
        As for `TerminalReport`.

    Raises
    ------
    UnknownPlugin
        The run holds neither a finding nor a variant with this id; near misses are offered.
    """
    page = Page(width=width, encoding=encoding, color=color)
    noun = view.build(record).noun
    known = {f["id"]: f for f in record.get("findings", ())}
    if finding_id in known:
        chosen = [known[finding_id]]
    elif cards.look_up(evidence, finding_id)[1] is not None:
        chosen = list(_as_findings(record, evidence, finding_id))
    else:
        hint = f"List them with: audit report {record.get('id', 'RUN')}"
        raise UnknownPlugin("finding", finding_id, known, hint)
    for i, finding in enumerate(chosen):
        if i:
            page.line()
        _whole(page, finding, cards.build(finding, evidence, noun=noun, record=record))
    return page.value()


def _as_findings(record: Mapping[str, Any], evidence: Any, variant_id: str) -> Iterable[Mapping[str, Any]]:
    """Wrap a variant for each model that was asked it: the shape of a finding, no claim."""
    variant = evidence.variant(variant_id)
    pairs = sorted({(r.model, r.format) for r in evidence.responses(variant_id)}) or [("", "")]
    for model, format_ in pairs:
        what = words.direction(variant.directions) or "the original"
        yield {
            "id": variant_id,
            "kind": "variant",
            "model": model or "no model",
            "format": format_,
            "attributes": variant.attributes,
            "directions": variant.directions,
            "verdict": "not_tested",
            "exemplars": (variant_id,),
            "text": f"{what}, as {model or 'no model'} answered it.",
        }


def _whole(page: Page, finding: Mapping[str, Any], shown: cards.Card) -> None:
    card(page, shown)
    if finding.get("rate") is not None and finding.get("p_adjusted") is not None:
        page.paragraph(f"p = {finding['p_value']:.2g}, adjusted {finding['p_adjusted']:.2g}", indent="  ")
    for asked in shown.asked:
        page.heading(f"{asked.cell} · {asked.variant_id}")
        for prompt in asked.prompts:
            for message in prompt.messages or ():
                page.line(f"{message.role}:", "bold")
                page.line(message.content)
            if prompt.text is not None:
                page.line("input:", "bold")
                page.line(prompt.text)
            page.line(f"prompt {prompt.sha256[:16]} · format {prompt.format}", "dim")
        page.line()
        for response in asked.responses:
            scores = ", ".join(f"{k} {v:.3f}" for k, v in sorted((response.scores or {}).items()))
            page.line(f"answer {response.replicate}" + (f" ({scores})" if scores else "") + ":", "bold")
            failed = f"failed ({response.error}): {response.detail}"
            page.line(response.output if response.output is not None else failed)
        if not asked.responses:
            page.line("not asked")
