"""GitHub Actions: a job summary in Markdown, and annotations as workflow commands."""

from __future__ import annotations

from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
from auditor.report import exchange, prose, words
from auditor.report.markdown import MarkdownReport, escape

MAX_ANNOTATIONS = 10  # GitHub shows no more of one kind for one step
MAX_BYTES = 1_000_000  # a summary of a step may hold 1 MiB
CUT = "\n\nThe rest was cut off: GitHub shows 1 MiB. Everything stands in the other formats.\n"


class GithubSummary(Renderer):
    """The job summary (``$GITHUB_STEP_SUMMARY``); `workflow_commands` gives the lines for stdout."""

    name = "github.v1"
    suffix = ".md"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the summary, at most 1 MiB."""
        text = MarkdownReport(full=False).render(record, evidence)
        text += f"\nRun {escape(read(record).id)}. {prose.named('verdicts')['not_determined']}\n"
        data = text.encode("utf-8")
        if len(data) <= MAX_BYTES:
            return text
        kept = data[: MAX_BYTES - len(CUT)].decode("utf-8", "ignore")
        return kept[: kept.rfind("\n")] + CUT


def workflow_commands(plain: Plain | RunRecord) -> list[str]:
    """Workflow commands: a warning for each shown finding that is not waived, an error for a partial run.

    Examples
    --------
    >>> workflow_commands({"status": "partial", "status_reason": "Interrupted.", "findings": []})
    ['::error title=Audit incomplete::Partial run: Interrupted. The figures cover what was answered until then.']
    """
    lines, record = [], read(plain)
    if exchange.partial(record):
        lines.append(command("error", "Audit incomplete", exchange.partial(record)))
    shown = [row for row in exchange.rows(record) if row.counts]
    kept = shown if len(shown) <= MAX_ANNOTATIONS else shown[: MAX_ANNOTATIONS - 1]
    lines += [command("warning", f"{row.code} {row.place}", f"{row.id}: {row.sentence}") for row in kept]
    if len(kept) < len(shown):
        left = words.plural(len(shown) - len(kept), "further finding")
        lines.append(command("warning", "Further findings", f"{left}: see the job summary."))
    return lines


def command(kind: str, title: str, message: str) -> str:
    """One workflow command, on one line whatever the texts hold."""
    return f"::{kind} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    text = words.visible(text, newlines=False).replace("%", "%25")
    return text.replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
