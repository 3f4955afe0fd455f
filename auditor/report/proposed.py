"""What a report proposes to look at: the example that stands for a claim, and the commands to go on with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from auditor.core.record import Claim, RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import OTHERS, USUAL_DELTA
from auditor.report import cards, run_checks, words
from auditor.report.claimed import Statement

Commands = tuple[tuple[str, str], ...]  # (command, what it gives)
TRIED = 60  # variants that are looked at for an example that fits
# Models that a command can name; functions of a program and texts that a program handed over are no words of one.
NAMED = ("reviews", "vader", "textblob", "rules", "openai", "azure", "hf", "http", "python")


def following(record: RunRecord, example: Example | None) -> Commands:
    """Return what to do next, the example of the first screen first; nothing where no run folder was written."""
    if record.id == "in-memory":
        return ()
    claims = record.claims or ()
    looked = _looked_at(record)
    if example is not None:
        several = words.plural(example.more + 1, "clearest text")
        looked = _look(record, example.finding_id or example.variant_id, f"read the {several.removeprefix('1 ')}")
    full = (f"audit report {words.run_name(record)} --full", "see all that was measured")
    tried: Commands = ()
    if run_checks.cannot_judge(record):
        tried = ((f"{again} --formats all", "try other prompt formats"),) if (again := _again(record)) else ()
    elif any(c.verdict == "shown" and c.family == "net" for c in claims):
        tried = _tried(record)
    return (
        *_resumed(record),
        *relabelled(record),
        *looked,
        *tried,
        *_until_decided(record, claims),
        full,
        (f"audit report {words.run_name(record)} --format html", "write the full report, one file"),
    )


def _tried(record: RunRecord) -> Commands:
    """Ask again in other wordings; try another prompt, where the model reads one."""
    again = _again(record)
    if again is None:
        return ()
    other = (f"{again} --wordings 3", "ask again with other words")
    prompts = any(model.style == "chat" for model in record.models.values())
    return (other, *([(f"audit mitigate {words.run_name(record)}", "try a blinded prompt")] if prompts else []))


def _look(record: RunRecord, id: str, what: str) -> Commands:
    return ((f"audit show {words.run_name(record)} {id}", what),)


def _looked_at(record: RunRecord) -> Commands:
    """The answers that could not be read, where they are why a run stopped, else a finding with an example."""
    if variant := run_checks.variant(record):
        command = f"audit show {words.run_name(record)} {variant}"
        return ((command, "read a prompt and the answers that could not be read"),)
    first = min((f for f in record.findings if f.exemplars), key=lambda f: f.verdict != "shown", default=None)
    if first is None:
        return ()
    if first.verdict == "shown":
        return _look(record, first.id, "read one finding: its prompts and every answer")
    return _look(record, first.exemplars[0], "read one text with its prompts and every answer")


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
    if record.stopped_by == "control":
        return " --anyway"
    reason = record.status_reason or ""  # runs over rows name the limit there alone
    name = record.stopped_by or next((n for n in limits if f"(--{n.replace('_', '-')})" in reason), "")
    limit, other = limits.get(name, (None, 0))
    return f" --{name.replace('_', '-')} {2 * limit or other:.12g}" if limit is not None else ""


def relabelled(record: RunRecord) -> Commands:
    """The command that takes the answers of a model for its labels, where they look like labels."""
    unread = next((m.unread for m in record.models.values() if m.unread is not None and m.unread.labels), None)
    command = _again(record)
    if unread is None or command is None:
        return ()
    labels = words.quoted(",".join(dict.fromkeys((*record.spec.labels, *unread.labels))))
    return ((f"{command} --labels {labels}", "ask again; name all labels, and the good one with --favourable"),)


def _again(record: RunRecord) -> str | None:
    """The command of the run, as far as it says what is asked; None where a command cannot name model or texts."""
    spec, source = record.spec, record.provenance.seeds.source or ""
    embedded = not source or source.startswith("embedded")
    known = all(m.partition(":")[0] in NAMED for m in spec.models) and spec.suite == "mutation"
    if not known or (spec.data is None) != embedded:
        return None
    options: tuple[tuple[str, str | None], ...] = (
        ("task", spec.task or ""),
        *(("model", model) for model in spec.models),
        ("data", spec.data or None),
        ("attributes", ",".join(spec.attributes or ()) or None),
        ("base-url", spec.base_url or None),
        *(("column", f"{name}={column}") for name, column in spec.named_columns.items()),
        ("out", None if spec.out == words.DEFAULT_OUT else spec.out or None),
    )
    return "audit" + "".join(f" --{name} {words.quoted(value)}" for name, value in options if value is not None)


def _until_decided(record: RunRecord, claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    """The command that asks until net differences are decided, where more calls would decide some."""
    spec = record.spec
    undecided = [c for c in claims if c.family == "net" and c.calls_needed is not None]
    if not undecided or spec.until_decided or any(c.code == "constant_answers" for c in record.cautions):
        return
    delta = spec.delta or (USUAL_DELTA if undecided[0].scale != "number" else None)
    command = _again(record)
    if command is None or delta is None:
        return
    if spec.labels:
        command += f" --labels {words.quoted(','.join(spec.labels))}"
    if spec.favourable:
        command += f" --favourable {words.quoted(spec.favourable)}"
    yield f"{command} --until-decided --delta {delta:g}", "ask until each difference is shown or bounded"


# -- the example that stands beside a claim ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Example(cards.Brief):
    """One variant with its answers."""

    finding_id: str  # that shows more like it; empty where no finding holds it
    more: int  # further examples of that finding


def example(record: RunRecord, evidence: object, statement: Statement) -> Example | None:
    """The first variant of a claim, else of findings about its attribute, that shows what the claim says.

    Where no label changed with it, one whose score did.
    """
    second = None
    for variant_id, finding in islice(_candidates(record, statement), TRIED if evidence is not None else 0):
        made, turned = _fits(evidence, statement, variant_id)
        if made is None:
            continue
        one = Example(
            variant_id=variant_id,
            text=made.text,
            before=made.before,
            after=made.after,
            finding_id=finding.id if finding else "",
            more=len(set(finding.exemplars) - {variant_id}) if finding else 0,
        )
        if turned:
            return one
        second = second or one
    return second


def _candidates(record: RunRecord, statement: Statement) -> Iterator[tuple[str, Finding | None]]:
    """Variant ids with the finding that holds each: of this claim first, then of its attribute."""
    claim = statement.claim
    findings = [
        f
        for f in record.findings
        if list(f.attributes) == claim.attribute.split("+")
        and f.model == claim.model
        and f.format in ("", claim.format)
    ]
    groups = set(claim.groups)
    findings.sort(key=lambda f: ({g for s in f.directions for g in s[1:]} != groups, f.verdict != "shown"))
    for finding in findings:
        for variant_id in finding.exemplars:
            yield variant_id, finding
    for variant_id in claim.examples:
        yield variant_id, next((f for f in findings if f.exemplars), None)


def _fits(evidence: object, statement: Statement, variant_id: str) -> tuple[cards.Brief | None, bool]:
    """The answers and the text, where the change is from one side to the other; whether it goes the way of the claim.

    None where the label changed otherwise, or nothing did.
    """
    claim = statement.claim
    case, variant, _ = cards.look_up(evidence, variant_id)
    sides = set() if variant is None else {_side(statement, step) for step in variant.directions}
    if case is None or variant is None or len(sides) != 1 or None in sides:
        return None, False
    made = cards.brief(evidence, variant_id, claim.model, claim.format)
    if made is None or made.before == made.after:
        return None, False
    cells = cards.lattice(case, variant, evidence, claim.model, claim.format)
    old, new = cells[0].tally.majority, cells[-1].tally.majority
    if old is None or new is None or old == new:
        return (made if old is not None and new is not None else None), False
    turned = cells[-1].compared == "changed" and _as_claimed(statement, *((new, old) if True in sides else (old, new)))
    return (made if turned else None), turned


def _side(statement: Statement, step: tuple[str, str, str]) -> bool | None:
    """Whether an edit goes to the group of the claim (True) or from it (False); None: it is about others."""
    attribute, source, target = step
    if statement.claim.family == "instability":
        return True
    if attribute not in statement.claim.attribute.split("+"):
        return None
    if target == statement.group and statement.reference in (source, OTHERS):
        return True
    return False if source == statement.group and statement.reference in (target, OTHERS) else None


def _as_claimed(statement: Statement, group: str, reference: str) -> bool:
    """Whether the answer about the group lies on the side of that about the reference that the claim says."""
    claim, up = statement.claim, statement.effect.value > 0
    if claim.family != "net":
        return True
    if claim.scale == "number":
        first, second = (re.search(r"-?\d+(?:\.\d+)?", text.replace(",", "")) for text in (group, reference))
        return first is None or second is None or (float(first.group()) > float(second.group())) is up
    has, other = (claim.label.lower() in text.lower() for text in (group, reference))
    return (has and not other) if up else (other and not has)
