"""The commands that a report proposes: what to look at, to ask again, to go on with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from auditor.core.record import RunRecord
from auditor.core.record.measured import Claim
from auditor.core.types import Finding
from auditor.measure.claims import USUAL_DELTA
from auditor.report import run_checks, words
from auditor.report.cards import Example

Commands = tuple[tuple[str, str], ...]  # (command, what it gives)
# Models that a command can name; functions of a program and texts that a program handed over are no words of one.
NAMED = ("reviews", "vader", "textblob", "rules", "openai", "azure", "hf", "http", "python")


def commands(record: RunRecord, findings: Iterable[Finding]) -> Commands:
    """What to do next, the first of the findings that were shown first; nothing where no run folder was written."""
    if record.id == "in-memory":
        return ()
    return (*_resumed(record), *_looked_at(record, findings), _page(record))


def following(record: RunRecord, claims: Sequence[Claim], example: Example | None) -> Commands:
    """What to do next after the first screen, whose example comes first."""
    if record.id == "in-memory":
        return ()
    looked = _looked_at(record, record.findings)
    if example is not None:
        looked = _look(record, example.finding_id or example.variant_id, "its prompts and every answer")
    full = (f"audit report {words.run_name(record)} --full", "more of what was measured")
    return (*_resumed(record), *looked, full, _page(record), *_until_decided(record, claims))


def _page(record: RunRecord) -> tuple[str, str]:
    return f"audit report {words.run_name(record)} --format html", "the full report, one file"


def _look(record: RunRecord, id: str, what: str) -> Commands:
    run = words.run_name(record)
    return (f"audit show {run} {id}", what), (f"audit replay {run} {id} --replicates 5", "ask it again")


def _looked_at(record: RunRecord, findings: Iterable[Finding]) -> Commands:
    """The answers that could not be read, where they are why a run stopped, else a finding with an example."""
    if variant := run_checks.variant(record):
        command = f"audit show {words.run_name(record)} {variant}"
        return ((command, "a prompt and the answers that could not be read"),)
    first = min((f for f in findings if f.exemplars), key=lambda f: f.verdict != "shown", default=None)
    return () if first is None else _look(record, first.id, "one finding: its prompts and every answer")


def _resumed(record: RunRecord) -> Iterator[tuple[str, str]]:
    if record.status == "partial" and not run_checks.variant(record):
        command = f"audit resume {words.run_name(record)}{raised(record)}"
        yield command, "go on; no answered prompt is asked twice"


def raised(record: RunRecord) -> str:
    """The option that lets a run go on which a limit ended: twice that limit; empty where none is in the way.

    Examples
    --------
    >>> from auditor.core.record import read
    >>> raised(read({"stopped_by": "max_calls", "spec": {"max_calls": 500}}))
    ' --max-calls 1000'
    """
    # Seconds are counted anew. Where the limit was 0, the second figure is proposed.
    limits = {"max_calls": (record.spec.max_calls, 100), "max_cost": (record.spec.max_cost, 1.0)}
    name = record.stopped_by or ""
    limit, other = limits.get(name, (None, 0))
    return f" --{name.replace('_', '-')} {2 * limit or other:.12g}" if limit is not None else ""


def _until_decided(record: RunRecord, claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    """The command that asks until net differences are decided, where more calls would decide some."""
    spec, source = record.spec, record.provenance.seeds.source or ""
    undecided = [c for c in claims if c.family == "net" and c.calls_needed is not None]
    if not undecided or spec.until_decided or any(c.code == "constant_answers" for c in record.cautions):
        return
    embedded = not source or source.startswith("embedded")
    known = all(m.partition(":")[0] in NAMED for m in spec.models) and spec.suite == "mutation"
    delta = spec.delta or (USUAL_DELTA if undecided[0].scale != "number" else None)
    if not known or (spec.data is None) != embedded or delta is None:
        return
    options: tuple[tuple[str, str | None], ...] = (
        ("task", spec.task or ""),
        *(("model", model) for model in spec.models),
        ("data", spec.data or None),
        ("attributes", ",".join(spec.attributes or ()) or None),
        ("base-url", spec.base_url or None),
        ("text-column", spec.text_column or None),
        ("label-column", spec.label_column or None),
        ("out", None if spec.out == words.DEFAULT_OUT else spec.out or None),
    )
    asked = "".join(f" --{name} {words.quoted(value)}" for name, value in options if value is not None)
    yield f"audit{asked} --until-decided --delta {delta:g}", "ask until each difference is shown or bounded"
