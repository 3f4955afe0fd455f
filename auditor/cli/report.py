"""``audit report RUN``: render again, without calling the model; ``audit compare``: two runs side by side."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from auditor.cli import frame
from auditor.cli.frame import must_be_new, option, put, say, screen
from auditor.cli.run_folders import find_intact, judge, of_outcomes, with_waivers
from auditor.core.errors import ConfigError
from auditor.core.protocols import PAGES
from auditor.core.record import RunRecord, with_sections
from auditor.core.shown import own
from auditor.core.types import names as parts_of
from auditor.store.folder import REPORT, RunFolder

if TYPE_CHECKING:
    from auditor.run.audit import Result

SHORT = {"md": "markdown"}
FORMS = tuple(page + form for page in PAGES for form in ("", "-md", "-json"))
BESIDE = (*FORMS, "ll144-summary")
OF_OUTCOMES = ("terminal", "html", "json", "csv", *BESIDE)  # there are no findings, texts or verdicts in these
WORSE = ("worse", "new", "never")  # what --fail-on takes
OUTCOMES = (
    "{} holds tables of recorded outcomes: audit compare is for runs of a model. Read both tables: "
    "audit report RUN --format csv"
)
UNLIKE = (
    "{} is a search over rows of a table, {} an audit of texts. They asked different questions, so their figures "
    "cannot be compared. Compare two runs of one kind."
)


@frame.run_argument
@frame.flag(
    "--format",
    default="terminal",
    help="Comma-separated: terminal (printed), html, json, markdown (md), csv, junit, sarif, "
    "answers (each answer, for audit import), github, ll144-summary. "
    f"Legal pages: {', '.join(PAGES)} (NAME-md, NAME-json: as Markdown, as data). Files are written to RUN.",
)
@frame.out("--output", "out", help="Write the one file format here instead; - prints it.", type=str)
@frame.full
@frame.file("--fill", help="TOML file with facts that only the people responsible know, for legal pages.")
@frame.flag("--write-fill", help="Write this file with empty fields, and stop; - prints it.")
@frame.fail_on
@frame.waivers
def report(
    *,
    run: Path,
    format: str,
    out: str | None,
    full: bool,
    fill: Path | None,
    write_fill: str | None,
    fail_on: str | None,
    waivers: Path | None,
) -> int:
    """Render RUN's report again from its record; the model is not called."""
    from auditor.agent.session import SESSION
    from auditor.cli.agent import report_session
    from auditor.contrib.imports import mapping
    from auditor.run.audit import load

    path = find_intact(run, outcomes=True)
    names = [SHORT.get(name, name) for name in parts_of(format or "")]
    files = [name for name in names if name != "terminal"]
    if out is not None and (len(files) != 1 or len(names) != 1):
        raise ConfigError("--out takes one file format: --format html --out report.html")
    if (path / SESSION).is_file():
        if extra := [n for n, v in (("fill", fill or write_fill), ("fail-on", fail_on), ("waivers", waivers)) if v]:
            raise ConfigError(
                f"--{extra[0]} is about one run, and {path} is a session. Its runs are in {path / 'runs'}."
            )
        return report_session(path, names, out, full=full)
    if write_fill is not None:
        return _write_fill(RunFolder.open(path).run(), write_fill)
    record, result = _shown(path, waivers, fill), None
    if record.ll144 is None and record.tabular is None:
        result = load(path)
        result.run = record
    if fail_on is not None and record.ll144 is not None:
        raise ConfigError(
            "--fail-on needs findings, and tables of recorded outcomes hold none: Local Law 144 sets no threshold. "
            "Read the figures from: audit report RUN --format json"
        )
    if "terminal" in names:
        _print(_rendered("terminal", record, path, result, full=full)[0])
    for name in files:
        content, suffix = _rendered(name, record, path, result, full=full)
        if name == "github" and out is None:
            _github(record, content, path)
        elif out == "-":
            # A file, whatever the terminal can show.
            _print(content if isinstance(content, bytes) else content.encode("utf-8"))
        else:
            target = Path(out) if out else path / f"report{suffix}"
            if target == path / REPORT and isinstance(content, str):
                RunFolder.open(path).write_text(REPORT, content)  # the register gets its hash
            else:
                target.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
            if name == "answers" and result is not None:
                roles = mapping.dump(result.answers().roles())  # what the columns say
                target.with_suffix(mapping.BESIDE).write_text(roles, encoding="utf-8")
            say(target)
    if fail_on is None:
        return 0
    sys.stdout.flush()
    return judge(record, fail_on, partial=not record.whole)


def _print(content: str | bytes) -> None:
    if isinstance(content, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(content)


def _github(record: RunRecord, summary: str | bytes, path: Path) -> None:
    """Append the summary where GitHub wants it (else to a file of the run) and print the annotations."""
    from auditor.report.exchange import workflow_commands

    assert isinstance(summary, str)
    wanted = os.environ.get("GITHUB_STEP_SUMMARY")
    target = Path(wanted) if wanted else path / "summary.md"
    with target.open("a" if wanted else "w", encoding="utf-8") as file:
        file.write(summary)
    for line in workflow_commands(record):
        own(sys.stdout, line + "\n")
    if not wanted:
        say(target)


def _own_fields() -> dict[str, dict[str, str]]:
    """The fields that each legal page alone has."""
    from auditor.report.legal import frameworks

    return {name: frameworks.load(name).fields for name in PAGES}


def _write_fill(record: RunRecord, target: str) -> int:
    """The file to fill in, with a line for each finding that was shown."""
    from auditor.report import claimed
    from auditor.report.legal import fill

    rows = claimed.rows(record) if record.findings else ()
    shown = [(r.finding.id, r.sentence) for r in rows if (r.finding.kind, r.finding.verdict) == ("claim", "shown")]
    text = fill.template(_own_fields(), shown)
    if target == "-":
        _print(text.encode("utf-8"))
        return 0
    must_be_new(Path(target), "exists already; give another file with --write-fill.").write_text(text, encoding="utf-8")
    say(target)
    return 0


def _shown(path: Path, waivers: Path | None, fill: Path | None) -> RunRecord:
    """The record with what is laid over it when it is shown."""
    record = with_waivers(RunFolder.open(path).run(), waivers)
    if fill is not None:
        from auditor.report.legal.fill import load

        record = with_sections(record, responsible=load(fill, _own_fields()))
    return record


def _rendered(
    name: str, record: RunRecord, path: Path, result: Result | None, *, full: bool
) -> tuple[str | bytes, str]:
    """One format of a run, and its file ending; ``result`` is that of texts: of others there is but the record."""
    from auditor.core.protocols import RENDERERS
    from auditor.report import outcome_report
    from auditor.report.legal.legal_page import OUTCOMES

    options: dict[str, object] = {**screen(), "full": full} if name == "terminal" else {}
    evidence: object = None
    if result is not None:
        if name == "terminal":
            return result.to_text(**screen(), full=full), ".txt"
        if name == "answers":
            return result.answers().csv(), ".answers.csv"
        options = {}
        evidence = result.evidence
    elif record.ll144 is not None:
        if name == "csv":
            return outcome_report.to_csv(record), ".csv"
        RENDERERS.resolve(name)  # says where there is none of this name
        if name not in OF_OUTCOMES:
            raise ConfigError(
                f"--format {name} is about findings of a test of a model; {record.id} holds tables of recorded "
                f"outcomes. Formats for these: {', '.join(n for n in OF_OUTCOMES if n in PAGES or n not in FORMS)}."
            )
    elif (path / OUTCOMES).is_file() and name in BESIDE:
        evidence = SimpleNamespace(path=path)  # of rows: these lay outcomes of people beside the run
    renderer = RENDERERS.create(name, **options)
    return renderer.render(record, evidence), renderer.suffix


@frame.argument("runs", "RUN…", "Two runs, before and after: folders, names, or latest.", nargs=-1, required=True)
@frame.page
@frame.out(help="Write it here instead of printing it.")
@frame.full
@option("fail_on", help="Exit 1 on: worse, new (or both, with a comma); never.")
def compare(*, runs: Sequence[Path], format: str, out: Path | None, full: bool, fail_on: str | None) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone)."""
    if len(runs) != 2:
        raise ConfigError("audit compare takes two runs: BEFORE AFTER. Of a series, compare the last two.")
    from auditor.measure import comparison as of_texts
    from auditor.report import side_by_side
    from auditor.run.state import side
    from auditor.tables.tabular_run import compared as of_rows

    words = parts_of(fail_on or ())
    for word in words:
        if word not in WORSE:
            raise ConfigError(f"--fail-on takes {', '.join(WORSE)}; got {word!r}.")
    paths = [find_intact(run, outcomes=True) for run in runs]
    folders = [RunFolder.open(path) for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        if of_outcomes(folder.plan):
            raise ConfigError(OUTCOMES.format(path))
    rows = [folder.plan.get("kind") == "tabular" for folder in folders]
    if any(rows) and not all(rows):
        raise ConfigError(UNLIKE.format(paths[rows.index(True)], paths[rows.index(False)]))
    if all(rows):
        compared = of_rows(*(folder.run() for folder in folders))
        document = side_by_side.runs(compared)
    else:
        sides = [side(path) for path in paths]
        compared = of_texts.compare(*sides)
        document = side_by_side.runs(compared, [side.record for side in sides])
    put(dataclasses.asdict(compared), format, document, out, full=full)
    return int(any(r.change in words for r in compared.rates) or any(f.fate in words for f in compared.findings))
