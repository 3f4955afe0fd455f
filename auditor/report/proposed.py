"""The commands that a report proposes: what to look at, to ask again, to go on with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import USUAL_DELTA, Claim
from auditor.report import checks, words
from auditor.report.example import Example

NAMED = (
    "reviews",
    "vader",
    "textblob",
    "rules",
    "openai",
    "azure",
    "hf",
    "http",
    "python",
)  # models that a command can name


def commands(record: RunRecord, hidden: Sequence[Finding], findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    """What to do next: (command, what it gives); nothing where no run folder was written."""
    if record.id == "in-memory":
        return ()
    run = words.run_name(record)
    out = [(f"audit report {run} --format html", "the full report, one file")]
    with_example = [f for f in (*hidden, *findings) if f.exemplars]
    if checks.variant(record):
        out.insert(0, (show_unread(record), "a prompt and the answers that could not be read"))
        return tuple(out)
    if with_example:
        first = min(with_example, key=lambda f: f.verdict != "shown").id
        out[:0] = [
            (f"audit show {run} {first}", "one finding: its prompts and every answer"),
            (f"audit replay {run} {first} --replicates 5", "ask it again"),
        ]
    if record.status == "partial":
        out.insert(0, (f"audit resume {run}{raised(record)}", "go on; no answered prompt is asked twice"))
    return tuple(out)


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


def show_unread(record: RunRecord) -> str:
    """The command that shows answers which could not be read; empty where each model gave some that could."""
    variant = checks.variant(record)
    return f"audit show {words.run_name(record)} {variant}" if variant else ""


def _more(record: RunRecord, claims: Sequence[Claim]) -> Iterable[tuple[str, str]]:
    """The command that asks until net differences are decided, where more calls would decide some."""
    spec = record.spec
    undecided = [c for c in claims if c.family == "net" and c.calls_needed is not None]
    if not undecided or spec.until_decided or any(c.code == "constant_answers" for c in record.cautions):
        return
    # Functions of a program and texts that a program handed over are no words of a command.
    models = list(spec.models)
    known = all(m.partition(":")[0] in NAMED for m in models) and spec.suite == "mutation"
    data = spec.data
    if not known or (data is None) != _embedded(record):
        return
    delta = spec.delta or (USUAL_DELTA if undecided[0].scale != "number" else None)
    if delta is None:
        return
    asked = spec.attributes
    options = {
        "--task": [spec.task or ""],
        "--model": models,
        "--data": [data] if data else [],
        "--attributes": [",".join(asked)] if asked else [],
    }
    given = "".join(f" {name} {words.quoted(str(v))}" for name, values in options.items() for v in values)
    out = None if spec.out == words.DEFAULT_OUT else spec.out
    more = {"base-url": spec.base_url, "text-column": spec.text_column, "label-column": spec.label_column, "out": out}
    given += "".join(f" --{name} {words.quoted(value)}" for name, value in more.items() if value)
    yield f"audit{given} --until-decided --delta {delta:g}", "ask until each difference is shown or bounded"


def _embedded(record: RunRecord) -> bool:
    """Whether the texts are those of the task."""
    source = record.provenance.seeds.source or ""
    return not source or source.startswith("embedded")


def following(record: RunRecord, claims: Sequence[Claim], shown: Example | None) -> tuple[tuple[str, str], ...]:
    """What to do next, the strongest finding that has an example first."""
    if record.id == "in-memory":
        return ()
    run = words.run_name(record)
    known = commands(record, [], record.findings)
    out = [c for c in known if "audit show" not in c[0] and "audit replay" not in c[0]]
    looked = [c for c in known if c not in out]
    if shown is not None:
        id = shown.finding_id or shown.variant_id
        looked = [
            (f"audit show {run} {id}", "its prompts and every answer"),
            (f"audit replay {run} {id} --replicates 5", "ask it again"),
        ]
    resume = [c for c in out if "audit resume" in c[0]]
    full = (f"audit report {run} --full", "more of what was measured")
    return (*resume, *looked, full, *(c for c in out if c not in resume), *_more(record, claims))
