"""One finding, or one variant, as plain text for a terminal (``audit show``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from auditor.core.errors import RunFolderError, UnknownPlugin
from auditor.core.record import RunRecord, Waived
from auditor.core.types import Case, Finding, Variant
from auditor.report import cards, claimed, tabular_report, words
from auditor.report.page import Page

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
